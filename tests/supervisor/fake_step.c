/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake srun with fake agents under the real supervisor, without Slurm. Its
 * times are those of clock.c; in fake_step_real they are the machine's.
 *
 *	fake_step [grace=S] [kill=0] [alone=1] [watchdog=S] [report=FILE]
 *		[restarts=N] [spare=NODES] [signal=SIGNAL@S] [own=1]
 *		[ports=FIRST-LAST] [launcher=NAME]
 *		WORLD AGENT... srun:WORDS [AGENT... srun:WORDS]...
 *
 * Each attempt has agents and an srun of its own. NODES are those of the job;
 * the last is kept back. own=1: the job is srun's own.
 * AGENT is NODE:FIRST-LAST:WORDS. Words have a comma between; an agent's are
 *
 *	w100	wait 100 ms (pings are answered in every wait)
 *	b700	be busy for 700 ms: answer nothing
 *	c5000	its clock is 5000 ms ahead; the first word
 *	l500	it connects 500 ms late; the first word
 *	a200	what follows happened 200 ms ago
 *	e2=3	rank 2 ends with exit code 3; e2=3=TEXT: with a message
 *	k2=9	it ends by signal 9; k2=9=TEXT: with a cause
 *	t2=TEXT	the tail of rank 2, before its end; "/" is a new line
 *	E2=TEXT	rank 2 runs, and has left this error
 *	i5000	its ranks have been idle for 5000 ms
 *	X	wait for EXPLAIN
 *	d2=S=futex=600	what rank 2 does: state, place, bytes of its stack
 *	K, T	wait for KILL, for SIGNAL; KILL ends all that are left
 *	K0	the same, but they have ended at once, and none is told
 *	orphan, stays, done
 *	quit	go without a word; reset: the same, as by a firewall
 *	deaf	answer nothing for ever
 *	forge	prove with a wrong secret; the first word
 *	s9=2	be no agent, but 9 strangers who prove nothing, until 2 of
 *		them are put out or 15 s have passed; print how many, and
 *		whether they came first; the only word
 *
 * and srun's: w100, pTEXT (print it on stderr, "/" is a new line), x3 (exit 3),
 * s9 (end by signal 9), trap (ignore SIGTERM), I (count SIGINTs from now on),
 * S (send one to the supervisor), B (block them), n2 (take them, wait for 2 and
 * 300 ms more, print how many there were), hang, all (wait until all agents have
 * gone), nodes (print the step's nodes, and whether it overlaps), launch (tell that
 * it launches the step now), files (print how many files it may open).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/child.h"
#include "supervisor/supervisor.h"
#include "util/clock.h"
#include "verdict/times.h"
#include "wire/wire.h"

enum { STRANGERS_MAX = 2048, RANKS_MAX = 64 };

static struct {
	struct ddp_link *link;
	const char *node;
	unsigned int first, last;
	int64_t ahead_ns, ago_ns;
	bool ended[RANKS_MAX], killed, signalled, explains, deaf, forge;
	char tails[RANKS_MAX][512];
	struct ddp_secret secret;
} me;

static void send_wire(struct ddp_wire *wire)
{
	if (ddp_link_send(me.link, wire) < 0)
		_exit(1);
}

static uint64_t clock_ns(void)
{
	return (uint64_t)(ddp_clock_ns() + me.ahead_ns);
}

static void end(unsigned int rank, int status, const char *message,
		const char *cause)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_END, .rank = rank, .status = (uint32_t)status,
		.at_ns = clock_ns() - (uint64_t)me.ago_ns,
	};
	char *at;

	snprintf(wire.message, sizeof(wire.message), "%s", message);
	snprintf(wire.cause, sizeof(wire.cause), "%s", cause);
	strcpy(wire.tail, me.tails[rank]);
	while ((at = strchr(wire.tail, '/')))
		*at = '\n';
	me.ended[rank] = true;
	send_wire(&wire);
}

static void greet(const struct ddp_wire *challenge, unsigned int world)
{
	struct ddp_wire wire = {
		.kind = DDP_WIRE_HELLO, .job_id = 12, .step_id = 3,
		.world_size = world, .count = me.last - me.first + 1,
	};

	strcpy(wire.node, me.node);
	if (me.forge)
		me.secret.bytes[0] ^= 1;
	ddp_proof_random(wire.nonce);
	ddp_proof_make(&me.secret, "agent", me.node, challenge->nonce,
		       wire.proof);
	send_wire(&wire);
}

static void introduce(void)
{
	struct ddp_wire wire = { .kind = DDP_WIRE_RANK };
	unsigned int i;

	for (i = me.first; i <= me.last; i++) {
		wire.rank = i;
		wire.pid = 1000 + i;
		if (i == 0)
			strcpy(wire.gpus, "0");
		send_wire(&wire);
	}
}

/* Answer what has come. Returns its kind. */
static int answer(unsigned int world)
{
	struct ddp_wire wire, pong = { .kind = DDP_WIRE_PONG };
	int rc = ddp_link_receive(me.link, &wire);

	if (rc < 0)
		_exit(1);
	if (rc == 0)
		return 0;
	if (wire.kind == DDP_WIRE_CHALLENGE)
		greet(&wire, world);
	if (wire.kind == DDP_WIRE_WELCOME)
		introduce();
	if (wire.kind == DDP_WIRE_PING && !me.deaf) {
		pong.ping_ns = wire.at_ns;
		pong.at_ns = clock_ns();
		send_wire(&pong);
	}
	me.killed |= wire.kind == DDP_WIRE_KILL;
	me.explains |= wire.kind == DDP_WIRE_EXPLAIN;
	me.signalled |= wire.kind == DDP_WIRE_SIGNAL && wire.status == SIGTERM;
	return (int)wire.kind;
}

/* Answer for so long, or until a message of this kind. */
static void attend(int64_t for_ms, int kind, unsigned int world)
{
	int64_t until_ns = ddp_clock_ns() + ms(for_ms), left_ns;
	struct pollfd fd = { .fd = ddp_link_fd(me.link), .events = POLLIN };

	for (;;) {
		int got = answer(world);

		if (got && got == kind)
			return;
		left_ns = until_ns - ddp_clock_ns();
		if (left_ns <= 0)
			return;
		if (!got)
			poll(&fd, 1, (int)(left_ns / 1000000) + 1);
	}
}

static void await_kill(bool tells, unsigned int world)
{
	unsigned int i;

	while (!me.killed)
		attend(1000, DDP_WIRE_KILL, world);
	for (i = me.first; tells && i <= me.last; i++)
		if (!me.ended[i])
			end(i, SIGKILL, "", "");
}

static void detail(struct ddp_wire *wire, char state, const char *where)
{
	wire->kind = DDP_WIRE_DETAIL;
	wire->status = (uint32_t)state;
	wire->idle_ms = 3000;
	strcpy(wire->message, where);
}

static void reset(void)
{
	const struct linger linger = { .l_onoff = 1 };

	setsockopt(ddp_link_fd(me.link), SOL_SOCKET, SO_LINGER, &linger,
		   sizeof(linger));
	_exit(0);
}

static void act(char *word, unsigned int world)
{
	struct ddp_wire wire = {
		.rank = me.first, .at_ns = clock_ns() - (uint64_t)me.ago_ns,
	};
	char text[256] = "";
	unsigned int rank;
	char state;
	int number;

	if (sscanf(word, "w%d", &number) == 1)
		attend(number, 0, world);
	else if (sscanf(word, "b%d", &number) == 1)
		usleep((useconds_t)number * 1000);
	else if (sscanf(word, "c%d", &number) == 1)
		me.ahead_ns = ms(number);
	else if (sscanf(word, "l%d", &number) == 1)
		usleep((useconds_t)number * 1000);
	else if (sscanf(word, "a%d", &number) == 1)
		me.ago_ns = ms(number);
	else if (sscanf(word, "e%u=%d=%255[^\n]", &rank, &number, text) >= 2)
		end(rank, number << 8, text, "");
	else if (sscanf(word, "k%u=%d=%255[^\n]", &rank, &number, text) >= 2)
		end(rank, number, "", text);
	else if (sscanf(word, "t%u=%255[^\n]", &rank, text) == 2)
		strcpy(me.tails[rank], text);
	else if (sscanf(word, "E%u=%255[^\n]", &wire.rank, wire.message) == 2)
		wire.kind = DDP_WIRE_ERROR;
	else if (sscanf(word, "i%u", &wire.idle_ms) == 1)
		wire.kind = DDP_WIRE_PULSE;
	else if (sscanf(word, "d%u=%c=%255[^=]=%u", &wire.rank, &state, text,
			&wire.depth) == 4)
		detail(&wire, state, text);
	else if (strcmp(word, "X") == 0)
		while (!me.explains)
			attend(1000, DDP_WIRE_EXPLAIN, world);
	else if (strcmp(word, "K") == 0 || strcmp(word, "K0") == 0)
		await_kill(!word[1], world);
	else if (strcmp(word, "T") == 0)
		while (!me.signalled)
			attend(1000, DDP_WIRE_SIGNAL, world);
	else if (strcmp(word, "quit") == 0)
		_exit(0);
	else if (strcmp(word, "reset") == 0)
		reset();
	else if (strcmp(word, "deaf") == 0)
		me.deaf = true;
	else if (strcmp(word, "forge") == 0)
		me.forge = true;
	else if (strcmp(word, "orphan") == 0)
		wire.kind = DDP_WIRE_ORPHANED;
	else if (strcmp(word, "stays") == 0)
		wire.kind = DDP_WIRE_STAYS;
	else if (strcmp(word, "done") == 0)
		wire.kind = DDP_WIRE_DONE;
	if (wire.kind == DDP_WIRE_STAYS) {
		wire.pid = 1000 + me.first;
		strcpy(wire.message, "D, in nfs_wait_bit_killable");
	}
	if (wire.kind)
		send_wire(&wire);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (void *)&address, sizeof(address)) < 0)
		_exit(2);
	return fd;
}

/* Each has its place when it gets the CHALLENGE: so they come one by one. */
static void play_strangers(int count, int awaited, uint16_t port)
{
	struct pollfd fds[STRANGERS_MAX];
	struct ddp_wire wire;
	int i, waits, out, last;

	for (i = 0; i < count; i++) {
		fds[i].fd = connect_to(port);
		fds[i].events = POLLRDHUP;
		if (read(fds[i].fd, &wire, 1) < 1)
			_exit(3);
		usleep(1000);
	}
	for (waits = out = last = 0; waits < 150 && out < awaited; waits++) {
		usleep(100000);
		poll(fds, (nfds_t)count, 0);
		for (i = out = last = 0; i < count; i++)
			if (fds[i].revents) {
				out++;
				last = i + 1;
			}
	}
	dprintf(STDERR_FILENO, "strangers: %d put out%s\n", out,
		last == out ? ", the first" : "");
	_exit(0);
}

/* An agent, in a process of its own: it ends when its words do. */
static void play_agent(char *text, unsigned int world, uint16_t port)
{
	int count, awaited;
	char *save, *word;

	me.node = strtok_r(text, ":", &save);
	sscanf(strtok_r(NULL, ":", &save), "%u-%u", &me.first, &me.last);
	word = strtok_r(NULL, ",", &save);
	if (word && strchr("cfl", *word))
		act(word, world);
	if (word && sscanf(word, "s%d=%d", &count, &awaited) == 2)
		play_strangers(count, awaited, port);
	me.link = ddp_link_create(connect_to(port));
	attend(2000, DDP_WIRE_WELCOME, world);
	attend(50, 0, world);
	if (word && *word == 'l')
		word = strtok_r(NULL, ",", &save);
	for (; word; word = strtok_r(NULL, ",", &save))
		act(word, world);
	_exit(0);
}

static void print_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	dprintf(STDERR_FILENO, "%llu files\n",
		(unsigned long long)limit.rlim_cur);
}

static void print_nodes(const struct ddp_restart *restart)
{
	dprintf(STDERR_FILENO, "on %s%s\n", restart->count ?
		ddp_restart_format(restart) : "any",
		restart->overlap ? ", overlapping" : "");
}

static volatile sig_atomic_t interrupts;

/* A signal does not end it. */
static void wait_ms(int milliseconds)
{
	int64_t until_ms = ddp_clock_ms() + milliseconds, now_ms;

	while ((now_ms = ddp_clock_ms()) < until_ms)
		usleep((useconds_t)(until_ms - now_ms) * 1000);
}

static void count_interrupt(int signal)
{
	(void)signal;
	interrupts++;
}

static void mask_interrupts(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(how, &set, NULL);
}

/* One more than these would come soon after them. */
static void await_interrupts(int wanted)
{
	int64_t now_ms = ddp_clock_ms(), until_ms = now_ms + 20000;

	mask_interrupts(SIG_UNBLOCK);
	for (; now_ms < until_ms; now_ms = ddp_clock_ms()) {
		usleep(10000);
		if (interrupts == wanted && until_ms > now_ms + 300)
			until_ms = now_ms + 300;
	}
	dprintf(STDERR_FILENO, "interrupts: %d\n", (int)interrupts);
}

__attribute__((noreturn)) static void
play_srun(char *text, unsigned int world, const struct ddp_restart *restart)
{
	const struct ddp_child_launch launch = { 12, 3, world };
	char *save, *word, *at;
	int number;

	for (word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		while (*word == 'p' && (at = strchr(word, '/')))
			*at = '\n';
		if (*word == 'p' &&
		    write(STDERR_FILENO, word + 1, strlen(word + 1)) < 0)
			_exit(99);
		if (sscanf(word, "w%d", &number) == 1)
			wait_ms(number);
		if (strcmp(word, "S") == 0)
			kill(getppid(), SIGINT);
		if (sscanf(word, "x%d", &number) == 1)
			_exit(number);
		if (sscanf(word, "s%d", &number) == 1)
			kill(getpid(), number);
		if (strcmp(word, "trap") == 0)
			signal(SIGTERM, SIG_IGN);
		if (strcmp(word, "I") == 0)
			signal(SIGINT, count_interrupt);
		if (strcmp(word, "B") == 0)
			mask_interrupts(SIG_BLOCK);
		if (sscanf(word, "n%d", &number) == 1)
			await_interrupts(number);
		if (strcmp(word, "launch") == 0)
			ddp_child_tell_launch(getppid(), &launch);
		if (strcmp(word, "files") == 0)
			print_files();
		if (strcmp(word, "nodes") == 0)
			print_nodes(restart);
		while (strcmp(word, "hang") == 0)
			pause();
		while (strcmp(word, "all") == 0 && wait(NULL) > 0)
			;
	}
	_exit(0);
}

/* Returns how many options there are. */
static int read_options(char **argv, struct ddp_supervisor *wish)
{
	struct ddp_restart_job job = { .spares = 1 };
	int i;

	wish->restart.lists = true;
	for (i = 0; argv[i] && strchr(argv[i], '='); i++) {
		if (strncmp(argv[i], "report=", 7) == 0)
			wish->report = argv[i] + 7;
		else if (strcmp(argv[i], "kill=0") == 0)
			wish->kill = false;
		else if (strcmp(argv[i], "alone=1") == 0)
			wish->alone = true;
		else if (strncmp(argv[i], "spare=", 6) == 0)
			job.nodes = argv[i] + 6;
		else if (strncmp(argv[i], "launcher=", 9) == 0)
			wish->launcher = argv[i] + 9;
		else if (strncmp(argv[i], "signal=", 7) == 0)
			ddp_notice_parse(argv[i] + 7, &wish->notice, NULL);
		else if (strcmp(argv[i], "own=1") == 0)
			wish->own_job = true;
		else if (strncmp(argv[i], "ports=", 6) == 0)
			sscanf(argv[i], "ports=%hu-%hu", &wish->port_first,
			       &wish->port_last);
		else if (strncmp(argv[i], "watchdog=", 9) == 0)
			wish->watchdog_s = (uint32_t)atoi(argv[i] + 9);
		else if (sscanf(argv[i], "grace=%u", &wish->grace_s) != 1)
			sscanf(argv[i], "restarts=%u", &wish->restart.max);
	}
	if (job.nodes)
		ddp_restart_choose(&wish->restart, &job, NULL);
	return i;
}

/* The agents and the srun of an attempt, of the arguments of all. */
__attribute__((noreturn)) static void
play_attempt(char **argv, const struct ddp_supervisor *wish)
{
	unsigned int world = (unsigned int)atoi(*argv++), passed = 0;

	for (; passed < wish->restart.done; argv++)
		passed += strncmp(*argv, "srun:", 5) == 0;
	for (; strncmp(*argv, "srun:", 5) != 0; argv++)
		if (fork() == 0)
			play_agent(*argv, world, wish->port);
	play_srun(*argv + 5, world, &wish->restart);
}

int main(int argc, char **argv)
{
	struct ddp_supervisor wish = { .kill = true };
	struct ddp_error error;
	sigset_t none;
	int i = 1 + read_options(argv + 1, &wish), fd;

	if (ddp_supervisor_open(&wish, &error) != 0) {
		fprintf(stderr, "%s\n", error.text);
		return 98;
	}
	if (i + 1 >= argc || ddp_supervisor_run(&wish, &me.secret) < 0)
		return 97;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* As exec does; the listener and the supervisor's ends of pipes */
	for (fd = STDERR_FILENO + 1; fd < 64; fd++)
		close(fd);
	play_attempt(argv + i, &wish);
}
