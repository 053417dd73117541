/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker of a preflight, and the process between it and the judge. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preflight.h"
#include "util/clock.h"

enum {
	CLOSE_MS = 5000,	/* MPI's and NCCL's end */
	KILL_MS = 1000,		/* a process that a driver holds stays */
	NAP_MS = 10
};

pid_t preflight_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

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

int worker_start(const struct preflight *preflight, struct worker *worker)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*worker = (struct worker){ preflight_fork(), pair[0], false, { 0 } };
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

/* Returns the facts that are known without the worker. */
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

/* Tell facts in place of a worker that hangs. */
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

int worker_mediate(const struct preflight *preflight, struct worker *worker,
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
	if (rc < 0)
		return -1;
	return preflight->rank == 0 ? status : 0;
}
