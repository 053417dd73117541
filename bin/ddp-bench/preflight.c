/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of a preflight: between its worker and rank 0's judge. */
#define _GNU_SOURCE
#include "preflight.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "layout/clock.h"
#include "layout/hostlist.h"
#include "layout/text.h"
#include "tool/promise.h"
#include "tool/tool.h"

enum {
	LIMIT_MS = 7000,
	PATIENCE_MS = 30000,
	GPUS_LIMIT_MS = 60000,
	EARLY_MS = 1000,	/* before the judge's own limit */
	CLOSE_MS = 5000,	/* MPI's and NCCL's end */
	KILL_MS = 1000,		/* a process that a driver holds stays */
	LOST_MS = 1000,
	NAP_MS = 10
};

int64_t preflight_limit_ms(const struct options *options, bool gpus)
{
	if (options->limit > 0)
		return (int64_t)options->limit * 1000;
	return gpus ? GPUS_LIMIT_MS : LIMIT_MS;
}

int64_t preflight_patience_ms(const struct options *options, bool gpus)
{
	int64_t limit = preflight_limit_ms(options, gpus);

	return options->limit > 0 || limit > PATIENCE_MS ? limit : PATIENCE_MS;
}

struct message preflight_message(const struct preflight *preflight,
				 enum message_kind kind)
{
	struct message message;

	memset(&message, 0, sizeof(message));
	message.header = (struct header){
		.size = sizeof(message), .kind = kind,
		.rank = (uint32_t)preflight->rank,
		.world_size = (uint32_t)preflight->size,
		.version = DDP_VERSION
	};
	memcpy(message.header.tag, preflight->tag, PREFLIGHT_TAG_SIZE);
	memcpy(message.header.host, preflight->host, FACT_HOST);
	return message;
}

int preflight_send(int fd, const void *data, size_t size)
{
	struct pollfd poller = { fd, POLLOUT, 0 };
	const char *at = data;
	ssize_t count;

	while (size > 0) {
		count = send(fd, at, size, MSG_NOSIGNAL);
		if (count < 0 && errno == EAGAIN)
			poll(&poller, 1, -1);
		else if (count < 0 && errno != EINTR)
			return -1;
		if (count > 0) {
			at += count;
			size -= (size_t)count;
		}
	}
	return 0;
}

int preflight_receive(int fd, void *data, size_t size)
{
	struct pollfd poller = { fd, POLLIN, 0 };
	char *at = data;
	ssize_t count;

	while (size > 0) {
		count = recv(fd, at, size, 0);
		if (count < 0 && errno == EAGAIN)
			poll(&poller, 1, -1);
		else if (count == 0 || (count < 0 && errno != EINTR))
			return -1;
		if (count > 0) {
			at += count;
			size -= (size_t)count;
		}
	}
	return 0;
}

static void say(const struct preflight *preflight, const char *why)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_SYSTEM, "%s: %s", preflight->host,
		      why);
	tool_print_error("ddp-bench", &error);
}

/* ---- beginning */

static int read_number(const char *name, const char *other)
{
	const char *value = getenv(name);

	if (!value)
		value = getenv(other);
	return value ? atoi(value) : -1;
}

/* Where nobody else says who the ranks are, there is one. */
static int begin(struct preflight *preflight, const struct options *options,
		 struct ddp_error *error)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *step = getenv("SLURM_STEP_ID");
	const char *host = getenv("SLURMD_NODENAME");
	struct tool_promise promise;

	if (tool_promise_read(&promise, error) < 0)
		return -1;
	*preflight = (struct preflight){
		.options = options, .rank = promise.rank,
		.size = promise.size, .master = getenv("MASTER_ADDR"),
		.port = getenv("MASTER_PORT"),
		.local_rank = read_number("LOCAL_RANK", "SLURM_LOCALID")
	};
	if (preflight->rank < 0 || preflight->size < 0) {
		preflight->rank = read_number("SLURM_PROCID", "RANK");
		preflight->size = promise.tasks;
	}
	if (preflight->rank < 0 || preflight->size <= preflight->rank ||
	    !preflight->master || !preflight->port)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--preflight "
				     "needs RANK, WORLD_SIZE, MASTER_ADDR and "
				     "MASTER_PORT; start it by srun --ddp");
	if (preflight->local_rank < 0)
		preflight->local_rank = 0;
	snprintf(preflight->tag, sizeof(preflight->tag), "%s.%s",
		 job ? job : "", step ? step : "");
	if (host)
		snprintf(preflight->host, FACT_HOST, "%s", host);
	else
		gethostname(preflight->host, FACT_HOST - 1);
	ddp_text_quote(preflight->host);
	return 0;
}

/* A child that does not outlive this process. Returns as fork(2) does. */
static pid_t start_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

/* ---- the worker */

static _Noreturn void work(const struct preflight *preflight, int fd)
{
	struct message message = preflight_message(preflight, MESSAGE_FACTS);
	struct word word;

	facts_gather(preflight, &message.facts);
	preflight_send(fd, &message, sizeof(message));
	if (preflight_receive(fd, &word, sizeof(word)) == 0 &&
	    word.kind == WORD_GO)
		preflight_move(preflight, word.value == GO_MPI ? &backend_mpi :
			       &backend_nccl, fd);
	_exit(0);
}

struct worker {
	pid_t pid;
	int fd;				/* -1: it has ended */
	bool told;			/* it has sent its facts */
	struct moved last;
};

static int start_worker(const struct preflight *preflight,
			struct worker *worker)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*worker = (struct worker){ start_child(), pair[0], false, { 0 } };
	if (worker->pid == 0) {
		close(pair[0]);
		work(preflight, pair[1]);
	}
	close(pair[1]);
	return worker->pid < 0 ? -1 : 0;
}

static void say_end(int status, char text[FACT_TEXT])
{
	if (WIFSIGNALED(status))
		snprintf(text, FACT_TEXT, "its process was killed by signal "
			 "%d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, FACT_TEXT, "its process has ended by itself, "
			 "with %d", WEXITSTATUS(status));
}

/* What is known without the worker. */
static struct message make_facts(const struct preflight *preflight,
				 const struct facts *clock)
{
	struct message message = preflight_message(preflight, MESSAGE_FACTS);

	message.facts = *clock;
	message.facts.gpus_given = facts_count_given();
	return message;
}

/* It should not have ended yet: tell that in its place. */
static int tell_end(const struct preflight *preflight, struct worker *worker,
		    int server, const struct facts *clock)
{
	struct message message;
	int status = 0;

	close(worker->fd);
	worker->fd = -1;
	waitpid(worker->pid, &status, 0);
	if (worker->told && worker->last.stage == STAGE_DONE)
		return 0;
	if (worker->told) {
		message = preflight_message(preflight, MESSAGE_MOVED);
		message.moved = worker->last;
		say_end(status, message.moved.error);
	} else {
		message = make_facts(preflight, clock);
		say_end(status, message.facts.gpu_error);
	}
	worker->told = true;
	return preflight_send(server, &message, sizeof(message));
}

static int pass_on(const struct preflight *preflight, struct worker *worker,
		   int server, const struct facts *clock)
{
	struct message message;

	if (preflight_receive(worker->fd, &message, sizeof(message)) < 0)
		return tell_end(preflight, worker, server, clock);
	if (message.header.kind == MESSAGE_FACTS) {
		worker->told = true;
		message.facts.clock_s = clock->clock_s;
		message.facts.clock_error_s = clock->clock_error_s;
	} else {
		worker->last = message.moved;
	}
	return preflight_send(server, &message, sizeof(message));
}

/* For a worker that hangs. */
static int tell_hang(const struct preflight *preflight, struct worker *worker,
		     int server, const struct facts *clock)
{
	struct message message = make_facts(preflight, clock);

	snprintf(message.facts.gpu_error, FACT_TEXT, "%s",
		 message.facts.gpus_given > 0 ? "CUDA or NCCL has not answered "
		 "in time; look for 'Xid' in dmesg, or " TRY_LONGER :
		 "a library has not answered in time; look at the node's "
		 "filesystems, or " TRY_LONGER);
	worker->told = true;
	return preflight_send(server, &message, sizeof(message));
}

static void end_worker(struct worker *worker, int status)
{
	int64_t deadline = ddp_clock_ms() + (status == 0 ? CLOSE_MS : 0);
	bool killed = false;

	if (worker->fd < 0)
		return;
	shutdown(worker->fd, SHUT_WR);
	while (waitpid(worker->pid, NULL, WNOHANG) == 0) {
		if (ddp_clock_ms() >= deadline) {
			if (killed)
				return;
			kill(worker->pid, SIGKILL);
			killed = true;
			deadline = ddp_clock_ms() + KILL_MS;
		}
		poll(NULL, 0, NAP_MS);
	}
}

/* ---- between the two */

static int answer(const struct preflight *preflight, struct worker *worker,
		  int server, const struct facts *clock, bool *ended,
		  int *status)
{
	const struct message here = preflight_message(preflight, MESSAGE_HERE);
	struct word word;

	if (preflight_receive(server, &word, sizeof(word)) < 0)
		return -1;
	switch ((enum word_kind)word.kind) {
	case WORD_ASK:
		return preflight_send(server, &here, sizeof(here));
	case WORD_GO:
		/* One that has ended has been told. */
		preflight_send(worker->fd, &word, sizeof(word));
		return 0;
	case WORD_TELL:
		return worker->told ? 0 :
			tell_hang(preflight, worker, server, clock);
	case WORD_END:
		*status = (int)word.value;
		*ended = true;
		return 0;
	case WORD_CLOCK:
		break;
	}
	return -1;
}

static int mediate(const struct preflight *preflight, struct worker *worker,
		   int server, const struct facts *clock)
{
	bool ended = false;
	int status = 1, rc = 0;

	while (rc == 0 && !ended) {
		struct pollfd fds[] = {
			{ server, POLLIN, 0 }, { worker->fd, POLLIN, 0 }
		};

		poll(fds, 2, -1);
		if (fds[0].revents)
			rc = answer(preflight, worker, server, clock, &ended,
				    &status);
		if (rc == 0 && !ended && fds[1].revents)
			rc = pass_on(preflight, worker, server, clock);
	}
	end_worker(worker, status);
	if (rc == 0)
		return preflight->rank == 0 ? status : 0;
	/* Whoever ends the step has told why; leave time for that. */
	if (preflight->rank == 0)
		say(preflight, "the process that judges has ended by itself");
	else
		poll(NULL, 0, LOST_MS);
	return 1;
}

/* For on_alarm, which may call write(2) only. */
static char late_text[2 * FACT_TEXT + DDP_HOSTNAME_MAX];

static void on_alarm(int number)
{
	(void)number;
	if (write(STDERR_FILENO, late_text, strlen(late_text)) > 0)
		sleep(2);
	_exit(1);
}

/* A resolver has no limit of its own that could be set. */
static void set_alarm(const struct preflight *preflight, int64_t limit_ms)
{
	snprintf(late_text, sizeof(late_text), "ddp-bench: %s: cannot resolve "
		 "the master's address %.*s in time; look at the node's DNS "
		 "servers\n", preflight->host, DDP_HOSTNAME_MAX,
		 preflight->master);
	signal(SIGALRM, on_alarm);
	alarm((unsigned int)limit_ms / 1000);
}

/*
 * The judge can only tell that this rank did not come: so tell the cause before
 * it does. But rank 0 may just be slow: try on as long as it has patience, and
 * then leave it time to speak. Returns the connection, or -1.
 */
static int meet(const struct preflight *preflight, struct facts *clock)
{
	const struct options *options = preflight->options;
	int64_t limit = preflight_limit_ms(options, false);
	int64_t patience = limit + preflight_patience_ms(options, false);
	int64_t begin_ms = ddp_clock_ms() - EARLY_MS;
	char why[FACT_TEXT] = "";
	int fd;

	set_alarm(preflight, limit);
	fd = preflight_meet(preflight, begin_ms + limit, clock, why);
	if (fd < 0) {
		say(preflight, why);
		set_alarm(preflight, patience);
		fd = preflight_meet(preflight, begin_ms + patience, clock, why);
	}
	alarm(0);
	return fd;
}

static int start_judge(const struct preflight *preflight)
{
	char why[FACT_TEXT];
	int fd = preflight_listen(preflight, why);

	if (fd < 0) {
		say(preflight, why);
		return -1;
	}
	if (start_child() == 0)
		_exit(preflight_serve(preflight, fd));
	close(fd);
	return 0;
}

int preflight_run(const struct options *options)
{
	struct preflight preflight;
	struct facts clock = { .clock_error_s = -1 };
	struct ddp_error error = { 0 };
	struct worker worker;
	int server;

	if (begin(&preflight, options, &error) < 0) {
		if (tool_promise_is_first())
			tool_print_error("ddp-bench", &error);
		return 2;
	}
	if (preflight.rank == 0 && start_judge(&preflight) < 0)
		return 1;
	if (start_worker(&preflight, &worker) < 0)
		return 1;
	server = meet(&preflight, &clock);
	return server < 0 ? 1 : mediate(&preflight, &worker, server, &clock);
}
