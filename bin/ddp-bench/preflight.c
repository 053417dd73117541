/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a preflight: its start, and the way to rank 0's judge, which leads
 * to the master's address.
 */
#define _GNU_SOURCE
#include "preflight.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "layout/hostlist.h"
#include "layout/vars.h"
#include "tool/ranks.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/scan.h"
#include "util/text.h"

enum {
	LIMIT_MS = 7000, PATIENCE_MS = 30000, GPUS_LIMIT_MS = 60000,
	EARLY_MS = 1000,	/* before the judge's own limit */
	LOST_MS = 1000,		/* in which the judge can tell why */
	QUESTIONS_MS = 6000,	/* the judge asks twice, 3 s each */
	QUESTIONS = 8, AGAIN_MS = 50, TRY_MS = 2000
};

/* ---- what both ends of the connections share */

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

double preflight_date(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
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

/*
 * ---- the way to the master's address, and how far the clock is off
 *
 * Rank 0 answers a question with its date. The answer was written between
 * question and answer; the middle of the two is at most half the time between
 * them off. Of several questions the one with the shortest time counts.
 */

static int wait_for(int fd, short what, int64_t deadline)
{
	struct pollfd poller = { fd, what, 0 };
	int64_t left = deadline - ddp_clock_ms();
	int result = poll(&poller, 1, left > 0 ? (int)left : 0);

	if (result == 0)
		errno = ETIMEDOUT;
	return result > 0 ? 0 : -1;
}

/* One question. Returns 0, or -1 with errno set. */
static int ask(const struct preflight *preflight, int fd, int64_t deadline,
	       struct facts *clock)
{
	const struct message question = preflight_message(preflight,
							   MESSAGE_CLOCK);
	double date = preflight_date(), took = ddp_clock_seconds();
	struct word answer;

	if (preflight_send(fd, &question, sizeof(question)) < 0 ||
	    wait_for(fd, POLLIN, deadline) < 0)
		return -1;
	errno = EPROTO;
	if (preflight_receive(fd, &answer, sizeof(answer)) < 0 ||
	    memcmp(answer.tag, preflight->tag, sizeof(answer.tag)) != 0 ||
	    answer.kind != WORD_CLOCK)
		return -1;
	took = ddp_clock_seconds() - took;
	if (clock->clock_error_s < 0 || took / 2 < clock->clock_error_s) {
		clock->clock_error_s = took / 2;
		clock->clock_s = answer.clock_s - date - took / 2;
	}
	return 0;
}

static int try_connect(const struct addrinfo *address, int64_t deadline)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK |
			SOCK_CLOEXEC, 0), result;
	socklen_t size = sizeof(result);

	if (fd < 0)
		return -1;
	result = connect(fd, address->ai_addr, address->ai_addrlen);
	if (result < 0 && errno == EINPROGRESS &&
	    wait_for(fd, POLLOUT, deadline) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size) == 0)
		errno = result;
	if (result == 0)
		return fd;
	result = errno;
	close(fd);
	errno = result;
	return -1;
}

static int greet(const struct preflight *preflight, int fd, int64_t deadline,
		 struct facts *clock)
{
	struct message hello = preflight_message(preflight, MESSAGE_HELLO);
	int i, result;

	preflight_count_gpus(&hello.facts);
	result = preflight_send(fd, &hello, sizeof(hello));
	clock->clock_error_s = -1;
	for (i = 0; result == 0 && i < QUESTIONS; i++)
		result = ask(preflight, fd, deadline, clock);
	return result;
}

static void write_why(const struct preflight *preflight,
		      const struct addrinfo *address, char why[WHY_TEXT])
{
	char name[64] = "?";
	int number = errno;

	getnameinfo(address->ai_addr, address->ai_addrlen, name, sizeof(name),
		    NULL, 0, NI_NUMERICHOST);
	snprintf(why, WHY_TEXT, number == EPROTO ? "at the master's address, "
		 "%.40s:%.5s (%s), another program answers: let the name lead "
		 "to rank 0's node" : number == ECONNREFUSED ? "nobody listens "
		 "at the master's address, %.40s:%.5s (%s): rank 0 hangs, or "
		 "the name leads elsewhere" : "cannot reach the master at "
		 "%.40s:%.5s (%s): %.60s; let routes and the firewall pass it",
		 preflight->master, preflight->port, name, strerror(number));
}

/* Each address of the master, once. */
static int try_all(const struct preflight *preflight,
		   const struct addrinfo *at, int64_t deadline,
		   struct facts *clock, char why[WHY_TEXT])
{
	int64_t end = ddp_clock_ms() + TRY_MS;
	int fd = -1;

	end = end < deadline ? end : deadline;
	for (; at && fd < 0; at = at->ai_next) {
		fd = try_connect(at, end);
		if (fd >= 0 && greet(preflight, fd, deadline, clock) == 0)
			return fd;
		write_why(preflight, at, why);
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	return -1;
}

/*
 * Resolve and reach the master by a deadline of ddp_clock_ms, say hello, and
 * measure its clock. Returns the connection, or -1 with why. Again and again:
 * rank 0 may begin later, and a name may come late.
 */
static int meet(const struct preflight *preflight, int64_t deadline,
		struct facts *clock, char why[WHY_TEXT])
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *addresses;
	int result, fd = -1;

	do {
		result = getaddrinfo(preflight->master, preflight->port,
				     &hints, &addresses);
		if (result != 0) {
			snprintf(why, WHY_TEXT, "cannot resolve the master's "
				 "address %.40s: %s; add it to DNS or "
				 "/etc/hosts", preflight->master,
				 gai_strerror(result));
		} else {
			fd = try_all(preflight, addresses, deadline, clock,
				     why);
			freeaddrinfo(addresses);
		}
		if (fd < 0)
			poll(NULL, 0, AGAIN_MS);
	} while (fd < 0 && ddp_clock_ms() < deadline);
	ddp_text_quote(why);
	return fd;
}

static void say(const struct preflight *preflight, const char *why)
{
	struct ddp_error error;

	ddp_error_set(&error, DDP_ERROR_SYSTEM, "%s: %s", preflight->host,
		      why);
	tool_print_error("ddp-bench", &error);
}

/* The text of on_alarm, which may print by write(2) only. */
static char late_text[2 * FACT_TEXT + DDP_HOSTNAME_MAX];

static void on_alarm(int number)
{
	(void)number;
	if (write(STDERR_FILENO, late_text, strlen(late_text)) > 0)
		sleep(2);
	_exit(1);
}

/*
 * A resolver has no limit of its own that could be set. end_ms is of
 * ddp_clock_ms.
 */
static void set_alarm(const struct preflight *preflight, int64_t end_ms)
{
	int64_t left_ms = end_ms - ddp_clock_ms();

	snprintf(late_text, sizeof(late_text), "ddp-bench: %s: cannot resolve "
		 "the master's address %.*s in time; look at the node's DNS "
		 "servers\n", preflight->host, DDP_HOSTNAME_MAX,
		 preflight->master);
	signal(SIGALRM, on_alarm);
	alarm(left_ms > 1000 ? (unsigned int)((left_ms + 999) / 1000) : 1);
}

/*
 * The judge can only tell that this rank did not come: so tell the cause before
 * it does. But rank 0 may just be slow: try on as long as it has patience, and
 * then leave it time to speak. Returns the connection, or -1.
 */
static int try_meet(const struct preflight *preflight, struct facts *clock)
{
	const struct options *options = preflight->options;
	int64_t limit = preflight_limit_ms(options, false);
	int64_t patience = limit + preflight_patience_ms(options, false);
	int64_t begin_ms = ddp_clock_ms();
	char why[WHY_TEXT] = "";
	int fd;

	set_alarm(preflight, begin_ms + limit);
	fd = meet(preflight, begin_ms + limit - EARLY_MS, clock, why);
	if (fd < 0) {
		char more[WHY_TEXT + 64];

		snprintf(more, sizeof(more), "%s; trying on for %d s", why,
			 (int)(patience - limit) / 1000);
		say(preflight, more);
		set_alarm(preflight, begin_ms + patience);
		fd = meet(preflight, begin_ms + patience - EARLY_MS,
			  clock, why);
	}
	alarm(0);
	return fd;
}

/* ---- the start */

/* The number in the first of two variables that is set; -1: there is none. */
static int read_either(const char *name, const char *other)
{
	uint64_t number;
	int rc = ddp_scan_variable(name, 0, INT_MAX, &number);

	if (rc > 0)
		rc = ddp_scan_variable(other, 0, INT_MAX, &number);
	return rc == 0 ? (int)number : -1;
}

/* Slurm says who the ranks are, if RANK and WORLD_SIZE do not. */
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
		.local_rank = read_either("LOCAL_RANK", "SLURM_LOCALID")
	};
	if (preflight->rank < 0 || preflight->size < 0) {
		preflight->rank = read_either("SLURM_PROCID", "RANK");
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

static int start_judge(const struct preflight *preflight)
{
	char why[WHY_TEXT];
	int fd = preflight_listen(preflight, why);

	if (fd < 0) {
		say(preflight, why);
		return -1;
	}
	if (preflight_fork() == 0)
		_exit(preflight_serve(preflight, fd));
	close(fd);
	return 0;
}

static bool lacks_plugin(void)
{
	const char *rank = getenv("RANK");

	return rank && strcmp(rank, DDP_POISON) == 0;
}

/*
 * A rank whose node lacks the plugin cannot meet the others. Its end would end
 * the step before the judge can leave its node out, so it waits for that: as
 * long as the judge does, and longer for its questions. Without rank 0 there is
 * no judge.
 */
static int tell_no_plugin(const struct options *options)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct ddp_error error = { 0 };

	ddp_error_set(&error, DDP_ERROR_SYSTEM, "%s: slurm-ddp's plugin is not "
		      "loaded there; install slurm-ddp of this Slurm there and "
		      "name it in plugstack.conf", node ? node : "a node");
	if (read_either("SLURM_LOCALID", "SLURM_PROCID") == 0)
		tool_print_error("ddp-bench", &error);
	if (!tool_promise_is_first())
		poll(NULL, 0, (int)(preflight_limit_ms(options, true) +
				    preflight_patience_ms(options, true)) +
				    QUESTIONS_MS);
	return 2;
}

int preflight_run(const struct options *options)
{
	struct preflight preflight;
	struct facts clock = { .clock_error_s = -1 };
	struct ddp_error error = { 0 };
	struct worker worker;
	int status;

	if (lacks_plugin())
		return tell_no_plugin(options);
	if (begin(&preflight, options, &error) < 0) {
		if (tool_promise_is_first())
			tool_print_error("ddp-bench", &error);
		return 2;
	}
	if (preflight.rank == 0 && start_judge(&preflight) < 0)
		return 1;
	if (worker_start(&worker, &preflight) < 0)
		return 1;
	worker.clock = &clock;
	worker.server = try_meet(&preflight, &clock);
	if (worker.server < 0)
		return 1;
	status = worker_mediate(&worker);
	if (status >= 0)
		return status;
	/* Whoever ends the step has told why; leave time for that. */
	if (preflight.rank == 0)
		say(&preflight, "the process that judges has ended by itself");
	else
		poll(NULL, 0, LOST_MS);
	return 1;
}
