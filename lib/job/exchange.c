/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange of records, the collectives that are one exchange each, and who
 * did not come to one.
 */
#define _GNU_SOURCE
#include "job/job.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job/job_struct.h"
#include "job/wait.h"
#include "layout/vars.h"
#include "util/clock.h"
#include "util/file.h"

enum {
	ASK_MS = 1000,		/* to find out who has not come */
	ASK_ALL_MAX = 1024,	/* in a larger job only rank 0 asks for all */
	NAMED_MAX = 8,		/* runs of ranks in an error's text */
	FIRST_MS = 300		/* for who was first to be told */
};

/* ---- the first exchange, which may be too early */

/* The age of this process; 0 where /proc does not say it. */
static int64_t find_age_ms(void)
{
	long hertz = sysconf(_SC_CLK_TCK);
	unsigned long long start = 0;
	struct timespec now;
	char line[1024], *after;

	ddp_file_read_line("/proc/self/stat", line, sizeof(line));
	after = strrchr(line, ')');
	/* Behind the name, which may have anything in it: field 22 */
	if (!after || hertz <= 0 ||
	    sscanf(after + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1 ||
	    clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return 0;
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
	       (int64_t)(start * 1000 / (unsigned long long)hertz);
}

/*
 * While a node's slurmstepd starts its tasks it acts as the user, in all its
 * threads. Then it takes the credential of another node's slurmstepd, which is
 * for root, for a wrong one ("Munge decode failed: Unauthorized credential"),
 * and closes the connection; what was sent is lost, and all ranks wait for
 * ever. Slurm 22.05 does so, and the source of 26.05 still has it. MPI begins
 * too late for that, but a rank in C can be quicker than the start of others
 * on another node.
 */
void ddp_early_wait(int64_t deadline)
{
	const char *name = getenv("PMIX_NAMESPACE");
	int64_t ms = DDP_EARLY_MS - find_age_ms();

	if (name && strncmp(name, "slurm.", 6) == 0)
		ddp_clock_sleep(ms < DDP_EARLY_MS ? ms : DDP_EARLY_MS,
				deadline);
}

/* ---- ranks that did not come, as far as PMIx knows */

/* The id of a rank's record of the present exchange. */
static struct ddp_record_id get_id(const struct ddp_job *job, uint32_t rank)
{
	return (struct ddp_record_id){ job->session, job->round, rank };
}

static bool is_on_this_node(const struct ddp_job *job, uint32_t rank)
{
	return ddp_job_node_of(job, rank) == job->self.node_rank;
}

/* Ask the server for a rank's value; as ddp_client_begin_get. */
static struct ddp_wait *begin_get(const struct ddp_job *job, uint32_t rank,
				  const char *key)
{
	return ddp_client_begin_get(job->client, rank, key,
				    is_on_this_node(job, rank) ?
				    DDP_CLIENT_NODE : DDP_CLIENT_REMOTE);
}

/* Ask for a key of all ranks at once, or of those on other nodes alone. */
static void ask_all(const struct ddp_job *job, const uint32_t *ranks,
		    uint32_t count, bool all, const char *key,
		    struct ddp_wait **answers)
{
	int64_t deadline = ddp_clock_ms() + ASK_MS / 2;
	uint32_t i;

	for (i = 0; i < count; i++)
		answers[i] = all || !is_on_this_node(job, ranks[i]) ?
			begin_get(job, ranks[i], key) : NULL;
	for (i = 0; i < count; i++)
		if (answers[i])
			ddp_wait_until(answers[i], deadline);
}

/* Returns true if a rank's record of this exchange is there. */
static bool take_answer(const struct ddp_job *job, uint32_t rank,
			struct ddp_wait *answer)
{
	struct ddp_record_id id = get_id(job, rank);
	size_t length, size;
	void *slot = ddp_client_end_get(answer, &length, 0, NULL);
	bool is_here = slot &&
		       ddp_record_open(slot, length, &id, &size, NULL) == 0;

	free(slot);
	return is_here;
}

/*
 * Find out which ranks have published their record: ask their servers. A server
 * that has older values of a remote rank answers with those; only when it is
 * asked for a key that it does not know, it fetches all of the rank's values
 * again. So first ask for a key that no rank has. Not for the ranks of this
 * node, whose values it has itself: since PMIx 5 it would keep that question,
 * and all others about the rank, until the rank publishes again.
 */
static void call_roll(const struct ddp_job *job, const uint32_t *ranks,
		      uint32_t count, bool *here)
{
	struct ddp_wait **answers = calloc(count, sizeof(*answers));
	struct ddp_record_id id = get_id(job, job->self.rank);
	char key[32];
	uint32_t i;

	if (!answers)
		return;
	ask_all(job, ranks, count, false, "ddp.none", answers);
	for (i = 0; i < count; i++)
		if (answers[i])
			ddp_wait_drop(answers[i]);
	ddp_record_key(&id, 0, key);
	ask_all(job, ranks, count, true, key, answers);
	for (i = 0; i < count; i++)
		here[ranks[i]] = take_answer(job, ranks[i], answers[i]);
	free(answers);
}

/* List the ranks to ask for: all others, or those of this node. Returns how
 * many. */
static uint32_t list_roll(const struct ddp_job *job, bool all, uint32_t *ranks)
{
	uint32_t rank, count = 0;

	for (rank = 0; rank < job->size; rank++)
		if (rank != job->self.rank &&
		    (all || is_on_this_node(job, rank)))
			ranks[count++] = rank;
	return count;
}

void ddp_absent_format(const struct ddp_job *job, const bool *here,
		       uint32_t most, struct ddp_text *text)
{
	uint32_t absent = 0, runs = 0, named = 0, first, last;

	for (first = 0; first < job->size; first = last + 1) {
		last = first;
		if (here[first])
			continue;
		while (last + 1 < job->size && !here[last + 1] &&
		       ddp_job_node_of(job, last + 1) ==
		       ddp_job_node_of(job, first))
			last++;
		absent += last - first + 1;
		if (runs++ >= most)
			continue;
		named = absent;
		ddp_text_add(text, "%s%s %u", runs > 1 ? ", " : "",
			     last > first ? "ranks" : "rank", first);
		if (last > first)
			ddp_text_add(text, "-%u", last);
		ddp_text_add(text, " on %s", ddp_job_host(job, first));
	}
	if (absent > named)
		ddp_text_add(text, " and %u more", absent - named);
}

/* The ranks that have not come, as text; "" if all have. NULL: no memory. */
static char *find_absent(const struct ddp_job *job, bool all)
{
	uint32_t *ranks = calloc(job->size, sizeof(*ranks)), count, i;
	bool *here = malloc(job->size * sizeof(*here));
	struct ddp_text text = { 0 };

	if (!ranks || !here) {
		free(ranks);
		free(here);
		return NULL;
	}
	count = list_roll(job, all, ranks);
	/* A rank that is not asked is not called absent. */
	memset(here, true, job->size * sizeof(*here));
	for (i = 0; i < count; i++)
		here[ranks[i]] = false;
	call_roll(job, ranks, count, here);
	ddp_absent_format(job, here, NAMED_MAX, &text);
	free(ranks);
	free(here);
	return ddp_text_finish(&text);
}

/*
 * Set why, after a fence that did not end in time, to a sentence that names the
 * ranks that did not come.
 */
static void explain_absent(const struct ddp_job *job, int64_t waited_ms,
			   struct ddp_error *why)
{
	bool all = job->size <= ASK_ALL_MAX || job->self.rank == 0;
	char *absent = find_absent(job, all);
	double s = (double)waited_ms / 1000;
	int digits = s < 100 && waited_ms % 1000 != 0;

	if (absent && absent[0] != '\0')
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s for %s",
			      digits, s, absent);
	else if (all)
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s, although "
			      "every rank has published its record: one of "
			      "them, or PMIx, has stalled after that, and PMIx "
			      "does not say which", digits, s);
	else
		ddp_error_set(why, DDP_ERROR_TIMEOUT, "waited %.*f s for a "
			      "rank on another node than %s; rank 0 names it",
			      digits, s, job->self.host);
	free(absent);
}

/* ---- the exchange */

/* The number of jobs of this process that had an exchange. Those that had none
 * do not count, or two jobs that follow each other could use the same keys. */
static atomic_uint sessions;

/* Write this rank's record of the next round. */
static int write_own(struct ddp_job *job, const void *record, size_t size,
		     struct ddp_error *error)
{
	struct ddp_record_id id;
	size_t room;
	void *own;

	if (size > DDP_RECORD_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "a record of "
				     "%zu bytes is too long: give at most %d",
				     size, DDP_RECORD_MAX);
	room = DDP_RECORD_SLOT + ddp_record_get_copy_size(size);
	if (room > job->own_room) {
		own = realloc(job->own, room);
		if (!own)
			return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of "
					     "memory for a record");
		job->own = own;
		job->own_room = room;
	}
	if (job->round++ == 0 && job->client)
		job->session = ++sessions;
	id = get_id(job, job->self.rank);
	ddp_record_write(job->own, &id, record, size);
	job->own_copy = room - DDP_RECORD_SLOT;
	return 0;
}

static int put_own(struct ddp_job *job, int64_t deadline,
		   struct ddp_error *error)
{
	struct ddp_record_id id = get_id(job, job->self.rank);
	size_t sizes[2] = { DDP_RECORD_SLOT, job->own_copy };
	char keys[2][32];

	ddp_record_key(&id, 0, keys[0]);
	ddp_record_key(&id, job->own_copy, keys[1]);
	return ddp_client_publish(job->client, keys, job->own, sizes, deadline,
				  error);
}

/*
 * A rank that dies can make the exchanges of others fail within milliseconds.
 * If they end then, too, Slurm kills the step, and with it perhaps the agent
 * that has yet to tell who was first: under srun --ddp give that a moment.
 */
static void leave_to_agent(int64_t deadline)
{
	if (getenv(DDP_VARS_RECORD))
		ddp_clock_sleep(FIRST_MS, deadline);
}

int ddp_exchange_put(struct ddp_job *job, const void *record, size_t size,
		     int64_t deadline, struct ddp_error *error)
{
	int64_t begin = ddp_clock_ms();
	struct ddp_error why;

	if (write_own(job, record, size, error))
		return -1;
	if (!job->client)
		return 0;
	if (put_own(job, deadline, &why) == 0) {
		if (job->session == 1 && job->round == 1 &&
		    ddp_layout_node_count(job->layout) > 1)
			ddp_early_wait(deadline);
		if (ddp_client_fence(job->client, deadline, &why) == 0)
			return 0;
		if (why.code == DDP_ERROR_TIMEOUT)
			explain_absent(job, ddp_clock_ms() - begin, &why);
		else
			leave_to_agent(deadline);
	}
	return ddp_job_fail(job, &why, error);
}

/* A rank's slot (copy 0), or its copy of that size; the caller frees it. */
static void *get_value(struct ddp_job *job, uint32_t rank, size_t copy,
		       size_t *size, int64_t deadline, struct ddp_error *error)
{
	struct ddp_record_id id = get_id(job, rank);
	struct ddp_wait *wait;
	struct ddp_error why;
	char key[32];
	void *bytes;

	ddp_record_key(&id, copy, key);
	wait = begin_get(job, rank, key);
	bytes = ddp_client_end_get(wait, size, deadline, &why);
	if (bytes)
		return bytes;
	if (why.code == DDP_ERROR_TIMEOUT)
		ddp_job_fail(job, &why, NULL);
	else if (why.code == DDP_ERROR_PEER)
		ddp_error_set(&why, DDP_ERROR_PEER, "rank %u on %s did not "
			      "take part in this collective: it has died, or "
			      "has made fewer collective calls or jobs",
			      rank, ddp_job_host(job, rank));
	if (error)
		*error = why;
	return NULL;
}

static int check_room(uint32_t rank, size_t size, size_t room,
		      struct ddp_error *error)
{
	return size <= room ? 0 :
		ddp_error_set(error, DDP_ERROR_PEER, "rank %u has given %zu "
			      "bytes where at most %zu are expected", rank,
			      size, room);
}

static int get_own(struct ddp_job *job, void *buffer, size_t room, size_t *size,
		   struct ddp_error *error)
{
	struct ddp_record_id id = get_id(job, job->self.rank);
	size_t length = job->own_copy;
	char *own = job->own;

	if (length > 0)
		own += DDP_RECORD_SLOT;
	else
		length = DDP_RECORD_SLOT;
	if (ddp_record_open(own, length, &id, size, error) ||
	    check_room(id.rank, *size, room, error))
		return -1;
	return ddp_record_read(own, length, buffer, error);
}

/* A record whose size is known and that has a copy can be read from the copy
 * alone, if this process has it. Returns whether that was so. */
static bool get_copy(struct ddp_job *job, uint32_t rank, size_t size,
		     void *buffer)
{
	struct ddp_record_id id = get_id(job, rank);
	size_t copy = ddp_record_get_copy_size(size), length, held;
	struct ddp_wait *wait;
	bool is_right;
	char key[32];
	void *value;

	if (copy == 0 || rank == job->self.rank)
		return false;
	ddp_record_key(&id, copy, key);
	wait = ddp_client_begin_get(job->client, rank, key,
				    DDP_CLIENT_HERE);
	value = ddp_client_end_get(wait, &length, 0, NULL);
	is_right = value &&
		ddp_record_open(value, length, &id, &held, NULL) == 0 &&
		held == size &&
		ddp_record_read(value, length, buffer, NULL) == 0;
	free(value);
	return is_right;
}

static int get_other(struct ddp_job *job, uint32_t rank, void *buffer,
		     size_t room, size_t *size, int64_t deadline,
		     struct ddp_error *error)
{
	struct ddp_record_id id = get_id(job, rank);
	size_t length, copy;
	void *value;
	int rc = -1;

	value = get_value(job, rank, 0, &length, deadline, error);
	if (!value || ddp_record_open(value, length, &id, size, error) ||
	    check_room(rank, *size, room, error))
		goto out;
	copy = ddp_record_get_copy_size(*size);
	if (copy > 0) {
		/* The server may have sent the copy together with the slot. */
		if (get_copy(job, rank, *size, buffer)) {
			rc = 0;
			goto out;
		}
		free(value);
		value = get_value(job, rank, copy, &length, deadline, error);
		if (!value || ddp_record_open(value, length, &id, size, error))
			goto out;
	}
	rc = ddp_record_read(value, length, buffer, error);
out:
	free(value);
	return rc;
}

int ddp_exchange_get(struct ddp_job *job, uint32_t rank, void *buffer,
		     size_t room, size_t *size, int64_t deadline,
		     struct ddp_error *error)
{
	if (rank >= job->size)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "there is no "
				     "rank %u in a job of %u", rank,
				     job->size);
	if (rank == job->self.rank)
		return get_own(job, buffer, room, size, error);
	return get_other(job, rank, buffer, room, size, deadline, error);
}

/* Read all ranks' records, which must be as long as this rank's. */
static int read_records(struct ddp_job *job, size_t size, char *all,
			int64_t deadline, struct ddp_error *error)
{
	size_t length;
	uint32_t rank;

	for (rank = 0; rank < job->size; rank++) {
		if (get_copy(job, rank, size, all + rank * size))
			continue;
		if (ddp_exchange_get(job, rank, all + rank * size, size,
				     &length, deadline, error))
			return -1;
		if (length != size)
			return ddp_error_set(error, DDP_ERROR_PEER, "rank %u "
					     "on %s has given %zu bytes, this "
					     "rank %zu: give as many on all "
					     "ranks",
					     rank, ddp_job_host(job, rank),
					     length, size);
	}
	return 0;
}

/* End a collective, rc being the result of its reads. Returns rc. */
static int end_reading(int rc, int64_t deadline)
{
	if (rc == 0)
		ddp_heartbeat();
	else
		leave_to_agent(deadline);
	return rc;
}

int ddp_job_allgather(struct ddp_job *job, const void *mine, size_t size,
		      void *all, struct ddp_error *error)
{
	int64_t deadline = ddp_job_deadline(job, 0);
	int rc;

	if (size == 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "there is nothing to gather: size is 0");
	if (ddp_job_begin(job, deadline, error))
		return -1;
	rc = ddp_exchange_put(job, mine, size, deadline, error);
	if (rc == 0)
		rc = end_reading(read_records(job, size, all, deadline, error),
				 deadline);
	ddp_job_end(job);
	return rc;
}

/*
 * A fence can succeed without a rank that has died (SLURM_PMIX_FENCE=ring).
 * Only that rank's record, which is empty, shows that it was there.
 */
int ddp_job_barrier(struct ddp_job *job, struct ddp_error *error)
{
	int64_t deadline = ddp_job_deadline(job, 0);
	size_t size;
	uint32_t rank;
	char none;
	int rc;

	if (ddp_job_begin(job, deadline, error))
		return -1;
	rc = ddp_exchange_put(job, NULL, 0, deadline, error);
	if (rc == 0) {
		for (rank = 0; rank < job->size && rc == 0; rank++)
			rc = ddp_exchange_get(job, rank, &none, 0, &size,
					      deadline, error);
		end_reading(rc, deadline);
	}
	ddp_job_end(job);
	return rc;
}
