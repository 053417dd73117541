/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx: joining, leaving, publishing and the fence. */
#define _GNU_SOURCE
#include "job/client_struct.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/thread.h"
#include "job/wait.h"
#include "util/clock.h"

enum { SERVER_MS = 5000 };	/* for what the local server alone has to do */

/* Stays open until the process exits; client.h says why. */
static struct ddp_client *opened;

/* A join timed out. It may still succeed, but nothing waits for it any more. */
static bool given_up;

/* A call that has no form with a callback: it runs in a thread. */
struct call {
	pmix_status_t status;
	pmix_proc_t self;
	int code;
	char text[1024];
};

/* A record to publish: a slot, and perhaps a copy behind it. */
struct publish {
	pmix_status_t status;
	char keys[2][32];
	size_t sizes[2];
	char bytes[];
};

int ddp_client_set_error(struct ddp_error *error, pmix_status_t status,
			 const char *what)
{
	ddp_error_set(error, DDP_ERROR_PMIX, "%s: PMIx says %s", what,
		      PMIx_Error_string(status));
	return ddp_error_set_native(error, status);
}

int ddp_client_set_memory_error(struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "out of memory for a call of PMIx");
}

static void run_init(void *state)
{
	struct call *call = state;

	call->status = PMIx_Init(&call->self, NULL, 0);
}

static void run_finalize(void *state)
{
	struct call *call = state;

	call->status = PMIx_Finalize(NULL, 0);
}

static void run_abort(void *state)
{
	struct call *call = state;

	call->status = PMIx_Abort(call->code, call->text, NULL, 0);
}

bool ddp_client_is_offered(void)
{
	return getenv("PMIX_NAMESPACE") != NULL && getenv("PMIX_RANK") != NULL;
}

/* Returns who this process is, for the caller to free; NULL on error. */
static struct call *join_server(int64_t deadline, struct ddp_error *error)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call) {
		ddp_client_set_memory_error(error);
	} else if (ddp_thread_run(run_init, call, deadline)) {
		ddp_error_set(error, DDP_ERROR_TIMEOUT, "the launcher's PMIx "
			      "server does not answer: look at the launcher's "
			      "log on this node");
		given_up = true;
		call = NULL;
	} else if (call->status != PMIX_SUCCESS) {
		ddp_client_set_error(error, call->status, "cannot join the job "
				     "that PMIX_NAMESPACE names (unset it if "
				     "it is left from an earlier launch)");
		free(call);
		call = NULL;
	}
	return call;
}

/* The answer itself is enough: nobody looks at what was found. */
static void end_lookup(pmix_status_t status, pmix_pdata_t *found, size_t count,
		       void *data)
{
	(void)found;
	(void)count;
	ddp_wait_end(data, status, PMIX_UNDEF, NULL, 0);
}

/*
 * Wait until the launcher itself has answered something: it has no value of
 * that name. PMIx_Finalize() waits 2 s for it, no longer. A launcher may come
 * to its messages later, as mpirun does while it writes output to a busy disk.
 * It then holds that the rank ended without PMIx_Finalize(), and fails the job.
 */
static void wait_for_launcher(void)
{
	struct ddp_wait *wait = ddp_wait_create();
	char name[] = "slurm-ddp.no-such-value", *names[] = { name, NULL };
	pmix_data_range_t here = PMIX_RANGE_LOCAL;
	pmix_info_t range;
	pmix_status_t status;

	if (!wait)
		return;
	PMIX_INFO_LOAD(&range, PMIX_RANGE, &here, PMIX_DATA_RANGE);
	status = PMIx_Lookup_nb(names, &range, 1, end_lookup, wait);
	if (status != PMIX_SUCCESS)
		end_lookup(status, NULL, 0, wait);
	ddp_wait_until(wait, ddp_clock_ms() + SERVER_MS);
	ddp_wait_drop(wait);
}

/* Leave PMIx. A child of fork runs this as well, but did not join. */
static void leave_server(void)
{
	struct call *call;

	if (!opened || opened->process != getpid())
		return;
	wait_for_launcher();
	call = calloc(1, sizeof(*call));
	if (call && !ddp_thread_run(run_finalize, call,
				    ddp_clock_ms() + SERVER_MS))
		free(call);
}

static struct ddp_client *open_client(int64_t deadline, struct ddp_error *error)
{
	struct ddp_client *client = calloc(1, sizeof(*client));
	struct ddp_worker *worker = ddp_worker_create();
	struct call *call = NULL;
	bool yes = true;

	if (!client || !worker)
		ddp_client_set_memory_error(error);
	else
		call = join_server(deadline, error);
	if (!call) {
		ddp_worker_destroy(worker);
		free(client);
		return NULL;
	}
	client->worker = worker;
	client->self = client->all = call->self;
	client->all.rank = PMIX_RANK_WILDCARD;
	client->process = getpid();
	PMIX_INFO_LOAD(&client->collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
	free(call);
	return client;
}

struct ddp_client *ddp_client_open(int64_t deadline, struct ddp_error *error)
{
	if (given_up) {
		ddp_error_set(error, DDP_ERROR_PMIX, "the launcher's PMIx "
			      "server did not answer an earlier "
			      "ddp_job_create: start the program again");
	} else if (!opened) {
		opened = open_client(deadline, error);
		if (opened)
			atexit(leave_server);
	} else if (opened->process != getpid()) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT, "this process is a "
			      "child of a rank that has joined the job: use "
			      "the job in that rank alone");
		return NULL;
	}
	return opened;
}

void ddp_client_abort(int code, const char *text)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return;
	call->code = code;
	strncpy(call->text, text, sizeof(call->text) - 1);
	if (!ddp_thread_run(run_abort, call, ddp_clock_ms() + SERVER_MS))
		free(call);
}

static void end_op(pmix_status_t status, void *data)
{
	ddp_wait_end(data, status, PMIX_UNDEF, NULL, 0);
}

static void run_publish(void *state)
{
	struct publish *publish = state;
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	char *at = publish->bytes;
	int i;

	publish->status = PMIX_SUCCESS;
	for (i = 0; i < 2 && publish->status == PMIX_SUCCESS; i++) {
		value.data.bo.bytes = at;
		value.data.bo.size = publish->sizes[i];
		at += publish->sizes[i];
		if (publish->sizes[i] > 0)
			publish->status = PMIx_Put(PMIX_GLOBAL,
						   publish->keys[i], &value);
	}
	if (publish->status == PMIX_SUCCESS)
		publish->status = PMIx_Commit();
}

/* PMIx_Commit waits for the server, so it runs in another thread. */
int ddp_client_publish(struct ddp_client *client, const char keys[2][32],
		       const void *bytes, const size_t sizes[2],
		       int64_t deadline, struct ddp_error *error)
{
	struct publish *publish = malloc(sizeof(*publish) + sizes[0] +
					 sizes[1]);
	int rc;

	if (!publish)
		return ddp_client_set_memory_error(error);
	memcpy(publish->keys, keys, sizeof(publish->keys));
	memcpy(publish->sizes, sizes, sizeof(publish->sizes));
	memcpy(publish->bytes, bytes, sizes[0] + sizes[1]);
	if (ddp_worker_run(client->worker, run_publish, publish, deadline))
		return ddp_error_set(error, DDP_ERROR_PMIX, "this node's PMIx "
				     "server did not take the record in time");
	rc = publish->status == PMIX_SUCCESS ? 0 :
		ddp_client_set_error(error, publish->status,
				     "cannot publish a record");
	free(publish);
	return rc;
}

int ddp_client_fence(struct ddp_client *client, int64_t deadline,
		     struct ddp_error *error)
{
	struct ddp_wait *wait = ddp_wait_create();
	pmix_status_t status;
	int rc = 0;

	if (!wait)
		return ddp_client_set_memory_error(error);
	status = PMIx_Fence_nb(&client->all, 1, &client->collect, 1, end_op,
			       wait);
	if (status == PMIX_OPERATION_SUCCEEDED)
		end_op(PMIX_SUCCESS, wait);
	else if (status != PMIX_SUCCESS)
		end_op(status, wait);
	if (!ddp_wait_until(wait, deadline))
		rc = ddp_error_set(error, DDP_ERROR_TIMEOUT,
				   "not all ranks came in time");
	else if (wait->status != PMIX_SUCCESS)
		rc = ddp_client_set_error(error, wait->status,
					  "the fence of all ranks failed");
	ddp_wait_drop(wait);
	return rc;
}
