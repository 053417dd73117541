/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that are lost.
 *
 * While tasks run, the connection to a node's agent tells. Before they have begun
 * srun says so of some nodes. For others it waits, up to ten minutes, without a
 * word: where a link breaks while tasks are started, as where a prolog takes long.
 * So a connection to the node's slurmd tells the two apart: what still runs its
 * prolog accepts one.
 */
#define _GNU_SOURCE
#include "supervisor/lost_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "slurm/scontrol.h"
#include "supervisor/attempt.h"
#include "util/clock.h"
#include "util/file.h"
#include "verdict/times.h"

enum {
	BEGIN_MS = 2000,	/* in which tasks usually begin */
	ASK_MS = 5000,		/* until slurmctld is asked once more */
	ANSWER_MS = 25000,	/* more, until an answer is given up: there are
				 * three questions in it, and Slurm's own limit
				 * is 10 s for each (MessageTimeout) */
	ASKS_MAX = 3,
	SLOW_MS = 60000,	/* a node that takes longer to begin is told of */
	SPARE_FILES = 64,	/* that others in this process may open */
	END_MS = 600000,	/* then srun itself gives up */
	TICK_MS = 250
};

/* ---- while tasks run */

void ddp_node_lose(struct ddp_step *step, struct ddp_step_node *node, int why,
		   int64_t heard_ns)
{
	if (why == 0 || why == EPROTO || why == ECONNRESET || why == EPIPE ||
	    why == ENOBUFS) {
		node->left = true;
		node->left_ns = ddp_clock_ns();
	} else if (!node->orphaned) {
		node->lost = step->failed = true;
		node->lost_ns = heard_ns;
	}
}

/* ---- what Slurm knows of nodes, asked in a process of its own */

/*
 * "SlurmdPort              = 6818": that of all nodes which do not differ. False
 * where it is not told, or where slurmds may not listen by IPv4.
 */
static bool read_port(char port[16])
{
	char *text = ddp_scontrol_show("config", NULL);
	const char *at = ddp_scontrol_find_setting(text, "SlurmdPort");
	int number = at && !strcasestr(text, "EnableIPv6") ? atoi(at) : 0;

	snprintf(port, 16, "%d", number);
	free(text);
	return number > 0 && number <= UINT16_MAX;
}

/* A node whose address is not known here is left out. */
static void print_node(const char *line, const char *usual)
{
	struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
	}, *list;
	char name[256], port[16], host[256];
	int name_length, length;
	const char *at = ddp_scontrol_find_word(line, "Port", &length);

	if (length > 0)
		snprintf(port, sizeof(port), "%.*s", length, at);
	else
		snprintf(port, sizeof(port), "%s", usual);
	at = ddp_scontrol_find_word(line, "NodeAddr", &length);
	snprintf(host, sizeof(host), "%.*s", length, at);
	at = ddp_scontrol_find_word(line, "NodeName", &name_length);
	snprintf(name, sizeof(name), "%.*s", name_length, at);
	if (!*name || !*host || getaddrinfo(host, port, &hints, &list) != 0)
		return;
	if (getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof(host),
			port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		printf("%s %s %s\n", name, host, port);
	freeaddrinfo(list);
}

static void print_nodes(uint32_t job_id, uint32_t step_id, const char *other)
{
	char *text = ddp_scontrol_show_step(job_id, step_id), *line, *save;
	char *list = NULL, port[16];
	bool known;
	int length;
	const char *at = ddp_scontrol_find_word(text, "NodeList", &length);

	if (length > 0 && asprintf(&list, "%.*s%s%s", length, at,
				   other ? "," : "", other ? other : "") < 0)
		list = NULL;
	free(text);
	text = list ? ddp_scontrol_show("node", list) : NULL;
	known = text && read_port(port);
	for (line = known ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		print_node(line, port);
	if (known)
		puts("end");
	fflush(stdout);
}

/*
 * Start a process that asks for the nodes of a step and for another one, unless
 * NULL. Returns a descriptor, which does not block, for its answer, as
 * ddp_late_read takes it; -1: there can be none. The process leads a group of
 * its own, with whatever it starts.
 */
static int ask_slurm(uint32_t job_id, uint32_t step_id, const char *other,
		     pid_t *pid)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	*pid = fork();
	if (*pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipes[1], STDOUT_FILENO);
		/* A user has nothing from scontrol's complaints. */
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		/* A connection must not outlive the supervisor. */
		ddp_close_from(STDERR_FILENO + 1);
		print_nodes(job_id, step_id, other);
		_exit(0);
	}
	close(pipes[1]);
	if (*pid < 0) {
		close(pipes[0]);
		return -1;
	}
	/* Whoever is first: from now on the group can be ended. */
	setpgid(*pid, *pid);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	return pipes[0];
}

/* ---- before their tasks have begun */

/* Which step the srun says it launches; of one it has heard its agents. */
static bool is_step(const struct ddp_attempt *attempt, uint32_t job_id,
		    uint32_t step_id)
{
	const struct ddp_child_launch *launch = &attempt->child.launch;
	const struct ddp_step *step = &attempt->facts.step;

	if (step->world_size)
		return job_id == step->job_id && step_id == step->step_id;
	return attempt->child.launched_ms && job_id == launch->job_id &&
	       step_id == launch->step_id;
}

static void lose(struct ddp_attempt *attempt, const char *name, bool silent,
		 int64_t now_ns)
{
	const struct ddp_child_launch *launch = &attempt->child.launch;
	struct ddp_step *step = &attempt->facts.step;
	struct ddp_wire wire = {
		.job_id = step->job_id, .world_size = step->world_size,
	};
	struct ddp_step_node *node;
	int index;

	/* Its tasks have started, or this was said before. */
	if (ddp_step_find_node(step, name) >= 0)
		return;
	if (!step->world_size) {
		wire.job_id = launch->job_id;
		wire.step_id = launch->step_id;
		wire.world_size = launch->tasks;
	}
	snprintf(wire.node, sizeof(wire.node), "%s", name);
	index = ddp_step_add_node(step, &wire, step->world_size ? now_ns :
				  ms(attempt->child.launched_ms));
	if (index < 0)
		return;
	node = &step->nodes[index];
	node->lost = node->unlaunched = step->failed = true;
	node->awaited = silent;
	node->lost_ns = now_ns;
}

/* A node where srun says that it could not start tasks is lost. */
static void find_unlaunched(struct ddp_attempt *attempt, int64_t now_ns)
{
	unsigned int job_id, step_id;
	char *lines, *line, *save, name[DDP_WIRE_NODE_SIZE];

	if (!attempt->facts.said.unlaunched.length ||
	    (!attempt->facts.step.world_size && !attempt->child.launched_ms))
		return;
	lines = ddp_text_finish(&attempt->facts.said.unlaunched);
	for (line = lines ? strtok_r(lines, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%u %u %255s", &job_id, &step_id, name) == 3 &&
		    is_step(attempt, job_id, step_id) && !attempt->facts.failed_ns)
			lose(attempt, name, false, now_ns);
	free(lines);
}

/* Whether srun waits for nodes of which it says nothing. */
static bool waits(const struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_absent *absent = &attempt->absent;
	const struct ddp_step *step = &attempt->facts.step;

	return attempt->child.launched_ms && !attempt->child.ended &&
	       now_ns - ms(attempt->child.launched_ms) < ms(END_MS) &&
	       (absent->asks < ASKS_MAX || absent->asked ||
		absent->late.count > 0) && !step->failed &&
	       (!step->world_size || step->known < step->world_size);
}

/* As ddp_absent_clear, within one attempt. */
static void forget(struct ddp_attempt *attempt)
{
	uint32_t asks = attempt->absent.asks;
	bool slow = attempt->absent.slow;

	ddp_absent_clear(attempt);
	attempt->absent.asks = asks;
	attempt->absent.slow = slow;
}

/* All of the answer is there. */
static void read_answer(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_restart *restart = &attempt->wish->restart;
	struct ddp_absent *absent = &attempt->absent;
	struct ddp_late *late = &absent->late;
	char *text;
	size_t i;

	close(absent->out);
	absent->asked = false;
	ddp_text_add_bytes(&absent->answer, "", 1);
	text = ddp_text_finish(&absent->answer);
	if (!text || !ddp_late_read(late, text))
		ddp_late_clear(late);
	free(text);
	for (i = 0; i < late->count && restart->spares; i++)
		late->all[i].here = strcmp(late->all[i].name,
			restart->names[restart->count]) == 0;
	late->next_ns = now_ns;
}

/* Begin to ask, or read what has come. */
static void ask(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_child_launch *launch = &attempt->child.launch;
	const struct ddp_restart *restart = &attempt->wish->restart;
	struct ddp_absent *absent = &attempt->absent;
	char bytes[4096];
	ssize_t got;

	if (!absent->asked) {
		absent->next_ns = now_ns + ms(ASK_MS);
		absent->asks++;
		absent->out = ask_slurm(launch->job_id, launch->step_id,
			restart->spares ? restart->names[restart->count] :
					  NULL, &attempt->child.asker);
		absent->asked = absent->out >= 0;
		return;
	}
	while ((got = read(absent->out, bytes, sizeof(bytes))) > 0)
		ddp_text_add_bytes(&absent->answer, bytes, (size_t)got);
	if (got == 0 || (errno != EAGAIN && errno != EINTR))
		read_answer(attempt, now_ns);
	else if (now_ns - absent->next_ns >= ms(ANSWER_MS))
		forget(attempt);
}

/* Whether the last connection has come about. */
static void look(struct ddp_late *late, struct ddp_late_node *node)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer), size = sizeof(int);
	int cause = 0;

	if (node->fd < 0)
		return;
	getsockopt(node->fd, SOL_SOCKET, SO_ERROR, &cause, &size);
	ddp_late_take(late, node,
		      getpeername(node->fd, (struct sockaddr *)&peer,
				  &length) == 0,
		      node->cause ? node->cause : cause);
	close(node->fd);
	node->fd = -1;
}

static void knock(struct ddp_late_node *node)
{
	node->fd = socket(node->address.ss_family, SOCK_STREAM |
			  SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	node->cause = 0;
	/* Of one that fails at once, too, look tells. */
	if (node->fd >= 0 &&
	    connect(node->fd, (struct sockaddr *)&node->address,
		    node->length) < 0 && errno != EINPROGRESS)
		node->cause = errno;
}

static void say_absent(struct ddp_attempt *attempt, struct ddp_late_node *node)
{
	struct ddp_text text = { 0 };

	if (node->told)
		return;
	node->told = true;
	ddp_text_add_quoted(&text, "slurm-ddp: node %s is lost, as its slurmd "
			    "does not answer; the step ends once the other "
			    "nodes have begun, too", node->name);
	ddp_text_add(&text, "\n");
	ddp_relay_say(&attempt->relay, &text);
}

/*
 * A rank that begins on another node when its step has been given up would meet
 * the next attempt there. So where there is one, all others must have begun.
 */
static void judge(struct ddp_attempt *attempt, int64_t now_ns)
{
	const struct ddp_restart *restart = &attempt->wish->restart;
	struct ddp_late *late = &attempt->absent.late;
	struct ddp_late_node *node;
	size_t i, others = 0;

	for (i = 0; i < late->count; i++)
		others += !late->all[i].here &&
			 !ddp_late_is_lost(late, &late->all[i]);
	for (i = 0; i < late->count; i++) {
		node = &late->all[i];
		if (!ddp_late_is_lost(late, node))
			continue;
		if (others > 0 && restart->done < restart->max)
			say_absent(attempt, node);
		else
			lose(attempt, node->name, true, now_ns);
	}
}

/* An administrator alone can tell what keeps such a node. */
static void say_slow(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_late *late = &attempt->absent.late;
	const char *first = NULL;
	struct ddp_text text = { 0 };
	size_t i, count = 0;

	if (attempt->absent.slow ||
	    now_ns - ms(attempt->child.launched_ms) < ms(SLOW_MS))
		return;
	for (i = 0; i < late->count; i++) {
		if (late->all[i].here || !late->all[i].answered)
			continue;
		if (count++ == 0)
			first = late->all[i].name;
	}
	if (count == 0)
		return;
	attempt->absent.slow = true;
	ddp_text_add_quoted(&text, "slurm-ddp: no ddp-agent has come from node "
			    "%s", first);
	if (count > 1)
		ddp_text_add(&text, " and %zu other%s", count - 1,
			     count > 2 ? "s" : "");
	ddp_text_add(&text, " within %d s, though %s answers: a prolog or an "
		     "image takes long, slurmstepd has died, or the node is "
		     "not watched\n", SLOW_MS / 1000,
		     count > 1 ? "each slurmd" : "its slurmd");
	ddp_relay_say(&attempt->relay, &text);
}

/*
 * How many connections may be made at once. Each node that has not begun yet
 * needs one for its agent, too.
 */
static size_t find_room(const struct ddp_attempt *attempt)
{
	const struct ddp_late *late = &attempt->absent.late;
	size_t used = attempt->agents.count + late->count + SPARE_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= used)
		return 1;
	return limit.rlim_cur - used < DDP_LATE_AT_ONCE ?
		(size_t)(limit.rlim_cur - used) : DDP_LATE_AT_ONCE;
}

static void try(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_late *late = &attempt->absent.late;
	size_t chosen[DDP_LATE_AT_ONCE], count, i;
	struct ddp_late_node *node;

	for (i = 0; i < late->count; i++) {
		node = &late->all[i];
		look(late, node);
		node->here = node->here ||
			ddp_step_find_node(&attempt->facts.step, node->name) >= 0;
	}
	judge(attempt, now_ns);
	say_slow(attempt, now_ns);
	count = ddp_late_choose(late, now_ns, find_room(attempt), chosen);
	for (i = 0; i < count; i++)
		knock(&late->all[chosen[i]]);
}

void ddp_absent_tick(struct ddp_attempt *attempt, int64_t now_ns)
{
	struct ddp_absent *absent = &attempt->absent;
	int64_t since_ns = ms(attempt->child.launched_ms);

	find_unlaunched(attempt, now_ns);
	if (!waits(attempt, now_ns)) {
		forget(attempt);
	} else if (now_ns - since_ns < ms(BEGIN_MS)) {
		return;
	} else if (absent->late.count) {
		if (now_ns >= absent->late.next_ns)
			try(attempt, now_ns);
	} else if (absent->asked || now_ns >= absent->next_ns) {
		ask(attempt, now_ns);
	}
}

int ddp_absent_timeout_ms(const struct ddp_attempt *attempt, int64_t now_ns)
{
	return waits(attempt, now_ns) ? TICK_MS : -1;
}

void ddp_absent_clear(struct ddp_attempt *attempt)
{
	struct ddp_absent *absent = &attempt->absent;

	if (absent->asked) {
		close(absent->out);
		ddp_child_end_asker(&attempt->child);
	}
	free(absent->answer.data);
	ddp_late_clear(&absent->late);
	*absent = (struct ddp_absent){ .asked = false };
}
