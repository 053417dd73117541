/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx: joining, leaving, publishing, the fence, and values of other ranks. */
#define _GNU_SOURCE
#include "job/client.h"

#include <pmix.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/wait.h"
#include "util/clock.h"

enum { SERVER_MS = 5000 };	/* for what the local server alone has to do */

struct ddp_client {
	pmix_proc_t self, all;
	pmix_info_t collect;		/* of the fence: carry the data */
	pid_t process;
	struct ddp_worker *worker;	/* for calls that wait for the server */
};

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

static int set_pmix_error(struct ddp_error *error, pmix_status_t status,
			  const char *what)
{
	ddp_error_set(error, DDP_ERROR_PMIX, "%s: PMIx says %s", what,
		      PMIx_Error_string(status));
	return ddp_error_set_native(error, status);
}

static int set_memory_error(struct ddp_error *error)
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
		set_memory_error(error);
	} else if (ddp_thread_run(run_init, call, deadline)) {
		ddp_error_set(error, DDP_ERROR_TIMEOUT, "the launcher's PMIx "
			      "server does not answer: look at the launcher's "
			      "log on this node");
		given_up = true;
		call = NULL;
	} else if (call->status != PMIX_SUCCESS) {
		set_pmix_error(error, call->status, "cannot join the job that "
			       "PMIX_NAMESPACE names (unset it if it is left "
			       "from an earlier launch)");
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
		set_memory_error(error);
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
		return set_memory_error(error);
	memcpy(publish->keys, keys, sizeof(publish->keys));
	memcpy(publish->sizes, sizes, sizeof(publish->sizes));
	memcpy(publish->bytes, bytes, sizes[0] + sizes[1]);
	if (ddp_worker_run(client->worker, run_publish, publish, deadline))
		return ddp_error_set(error, DDP_ERROR_PMIX, "this node's PMIx "
				     "server did not take the record in time");
	rc = publish->status == PMIX_SUCCESS ? 0 :
		set_pmix_error(error, publish->status,
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
		return set_memory_error(error);
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
		rc = set_pmix_error(error, wait->status,
				    "the fence of all ranks failed");
	ddp_wait_drop(wait);
	return rc;
}

/* ---- values that the launcher or other ranks have published */

/* Called by PMIx, which frees the value when this returns. */
static void end_get(pmix_status_t status, pmix_value_t *value, void *data)
{
	pmix_status_t is_number;
	uint32_t number = 0;

	if (status != PMIX_SUCCESS || !value) {
		ddp_wait_end(data, status, PMIX_UNDEF, NULL, 0);
	} else if (value->type == PMIX_BYTE_OBJECT) {
		ddp_wait_end(data, status, value->type, value->data.bo.bytes,
			     value->data.bo.size);
	} else if (value->type == PMIX_STRING && value->data.string) {
		ddp_wait_end(data, status, value->type, value->data.string,
			     strlen(value->data.string) + 1);
	} else {
		PMIX_VALUE_GET_NUMBER(is_number, value, number, uint32_t);
		ddp_wait_end(data, is_number, PMIX_UINT32, &number,
			     sizeof(number));
	}
}

/* PMIx reads these after PMIx_Get_nb has returned, so they must stay. */
struct question {
	pmix_proc_t proc;
	char key[64];
	pmix_info_t info[2];	/* PMIX_OPTIONAL, and then perhaps the scope */
	size_t scopes;		/* 0 or 1 */
};

/*
 * Get a value that this process has already, as after a fence: PMIX_OPTIONAL
 * asks no server. PMIx_Get_nb is only for the others, because PMIx 4.2 leaks
 * its answer for a value that is at hand. Returns whether it was there; if so,
 * wait has ended.
 */
static bool get_local(const struct question *question, struct ddp_wait *wait)
{
	pmix_value_t *value;

	if (PMIx_Get(&question->proc, question->key, question->info,
		     1 + question->scopes, &value) != PMIX_SUCCESS)
		return false;
	end_get(PMIX_SUCCESS, value, wait);
	PMIX_VALUE_RELEASE(value);
	return true;
}

/* scope: in which to look; PMIX_SCOPE_UNDEF: in all. */
static struct ddp_wait *begin_get(struct ddp_client *client, uint32_t rank,
				  const char *key, pmix_scope_t scope,
				  bool ask)
{
	struct ddp_wait *wait = ddp_wait_create();
	struct question *question;
	pmix_status_t status;
	bool yes = true;

	if (!wait)
		return NULL;
	wait->question = question = calloc(1, sizeof(*question));
	if (!question) {
		end_get(PMIX_ERR_NOMEM, NULL, wait);
		return wait;
	}
	question->proc = client->self;
	question->proc.rank = rank;
	strncpy(question->key, key, sizeof(question->key) - 1);
	PMIX_INFO_LOAD(&question->info[0], PMIX_OPTIONAL, &yes, PMIX_BOOL);
	PMIX_INFO_LOAD(&question->info[1], PMIX_DATA_SCOPE, &scope,
		       PMIX_SCOPE);
	question->scopes = scope != PMIX_SCOPE_UNDEF;
	if (get_local(question, wait))
		return wait;
	status = PMIX_ERR_NOT_FOUND;
	if (ask)
		status = PMIx_Get_nb(&question->proc, question->key,
				     &question->info[1], question->scopes,
				     end_get, wait);
	if (status != PMIX_SUCCESS)
		end_get(status, NULL, wait);
	return wait;
}

/*
 * Since PMIx 5 (and before, with gds=hash) a process keeps what its server has
 * answered, and never asks for the same key again. But it keeps that apart from
 * the scopes in which values are put, so it does ask for a value of a scope.
 */
struct ddp_wait *ddp_client_begin_get(struct ddp_client *client, uint32_t rank,
				      const char *key,
				      enum ddp_client_source source)
{
	static const pmix_scope_t scopes[] = {
		[DDP_CLIENT_HERE] = PMIX_SCOPE_UNDEF,
		[DDP_CLIENT_NODE] = PMIX_LOCAL,
		[DDP_CLIENT_REMOTE] = PMIX_REMOTE
	};

	return begin_get(client, rank, key, scopes[source],
			 source != DDP_CLIENT_HERE);
}

/*
 * Wait for a value of that type, and free wait. Returns 0; 1, without an error,
 * if nobody knows the value; or -1. The caller frees the bytes.
 */
static int take_value(struct ddp_wait *wait, const char *what, int type,
		      void **bytes, size_t *size, int64_t deadline,
		      struct ddp_error *error)
{
	int rc = 0;

	if (!wait)
		return set_memory_error(error);
	if (!ddp_wait_until(wait, deadline)) {
		rc = ddp_error_set(error, DDP_ERROR_TIMEOUT, "PMIx did "
				   "not return %s in time", what);
	} else if (wait->status == PMIX_ERR_NOT_FOUND ||
		   wait->status == PMIX_ERR_PROC_ENTRY_NOT_FOUND) {
		rc = 1;
	} else if (wait->status != PMIX_SUCCESS || wait->type != type) {
		rc = set_pmix_error(error, wait->status, what);
	} else if (!wait->bytes) {
		rc = set_memory_error(error);
	} else {
		*bytes = wait->bytes;
		*size = wait->size;
		wait->bytes = NULL;
	}
	ddp_wait_drop(wait);
	return rc;
}

/* Get a value that the launcher gave this process when it joined. */
static int get_fact(struct ddp_client *client, uint32_t rank, const char *key,
		    int type, void **bytes, int64_t deadline,
		    struct ddp_error *error)
{
	struct ddp_wait *wait = begin_get(client, rank, key, PMIX_SCOPE_UNDEF,
					  true);
	size_t size;

	return take_value(wait, key, type, bytes, &size, deadline, error);
}

/* Get a text of the job or of a rank; *text is NULL if nobody knows it. */
static int get_text(struct ddp_client *client, uint32_t rank, const char *key,
		    int64_t deadline, char **text, struct ddp_error *error)
{
	void *bytes = NULL;
	int rc = get_fact(client, rank, key, PMIX_STRING, &bytes, deadline,
			  error);

	*text = bytes;
	return rc < 0 ? -1 : 0;
}

static int get_number(struct ddp_client *client, uint32_t rank, const char *key,
		      int64_t deadline, uint32_t *number,
		      struct ddp_error *error)
{
	void *bytes = NULL;
	int rc = get_fact(client, rank, key, PMIX_UINT32, &bytes, deadline,
			  error);

	*number = rc == 0 ? *(uint32_t *)bytes : UINT32_MAX;
	free(bytes);
	return rc < 0 ? -1 : 0;
}

int ddp_client_get_facts(struct ddp_client *client, int64_t deadline,
			 struct ddp_client_facts *facts,
			 struct ddp_error *error)
{
	uint32_t self = client->self.rank, all = PMIX_RANK_WILDCARD;

	*facts = (struct ddp_client_facts){ .rank = self };
	if (get_number(client, all, PMIX_JOB_SIZE, deadline, &facts->size,
		       error) ||
	    get_number(client, all, PMIX_LOCAL_SIZE, deadline,
		       &facts->local_size, error) ||
	    get_number(client, self, PMIX_LOCAL_RANK, deadline,
		       &facts->local_rank, error) ||
	    get_text(client, all, PMIX_NODE_LIST, deadline, &facts->node_list,
		     error) ||
	    get_text(client, all, PMIX_ANL_MAP, deadline, &facts->mapping,
		     error)) {
		free(facts->node_list);
		return -1;
	}
	return 0;
}

char *ddp_client_get_host(struct ddp_client *client, uint32_t rank,
			  int64_t deadline, struct ddp_error *error)
{
	char *host;

	if (!get_text(client, rank, PMIX_HOSTNAME, deadline, &host, error) &&
	    !host)
		ddp_error_set(error, DDP_ERROR_PMIX, "the launcher's PMIx "
			      "does not say on which host rank %u is", rank);
	return host;
}

void *ddp_client_end_get(struct ddp_wait *wait, size_t *size, int64_t deadline,
			 struct ddp_error *error)
{
	void *bytes = NULL;

	if (take_value(wait, "a rank's record", PMIX_BYTE_OBJECT, &bytes, size,
		       deadline, error) > 0)
		ddp_error_set(error, DDP_ERROR_PEER, "a rank wrote nothing "
			      "for this exchange");
	return bytes;
}
