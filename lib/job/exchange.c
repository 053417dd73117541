/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of records, and the collectives that are one exchange each. */
#include "job/exchange.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "job/absent.h"
#include "job/early.h"
#include "job/job_struct.h"
#include "layout/vars.h"

enum { FIRST_MS = 300 };

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
	id = ddp_job_record_id(job, job->self.rank);
	ddp_record_write(job->own, &id, record, size);
	job->own_copy = room - DDP_RECORD_SLOT;
	return 0;
}

static int put_own(struct ddp_job *job, int64_t deadline,
		   struct ddp_error *error)
{
	struct ddp_record_id id = ddp_job_record_id(job, job->self.rank);
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
			ddp_absent_explain(job, ddp_clock_ms() - begin, &why);
		else
			leave_to_agent(deadline);
	}
	return ddp_job_fail(job, &why, error);
}

/* A rank's slot (copy 0), or its copy of that size; the caller frees it. */
static void *get_value(struct ddp_job *job, uint32_t rank, size_t copy,
		       size_t *size, int64_t deadline, struct ddp_error *error)
{
	struct ddp_record_id id = ddp_job_record_id(job, rank);
	struct ddp_wait *wait;
	struct ddp_error why;
	char key[32];
	void *bytes;

	ddp_record_key(&id, copy, key);
	wait = ddp_job_begin_get(job, rank, key);
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
	struct ddp_record_id id = ddp_job_record_id(job, job->self.rank);
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
	struct ddp_record_id id = ddp_job_record_id(job, rank);
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
	struct ddp_record_id id = ddp_job_record_id(job, rank);
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
