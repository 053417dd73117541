/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx: values that the launcher or other ranks have published. */
#define _GNU_SOURCE
#include "job/client_struct.h"

#include <stdlib.h>
#include <string.h>

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

/* Get a value that the launcher gave this process when it joined. */
static struct ddp_wait *begin_get_fact(struct ddp_client *client, uint32_t rank,
				       const char *key)
{
	return begin_get(client, rank, key, PMIX_SCOPE_UNDEF, true);
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
		return ddp_client_set_memory_error(error);
	if (!ddp_wait_until(wait, deadline)) {
		rc = ddp_error_set(error, DDP_ERROR_TIMEOUT, "PMIx did "
				   "not return %s in time", what);
	} else if (wait->status == PMIX_ERR_NOT_FOUND ||
		   wait->status == PMIX_ERR_PROC_ENTRY_NOT_FOUND) {
		rc = 1;
	} else if (wait->status != PMIX_SUCCESS || wait->type != type) {
		rc = ddp_client_set_error(error, wait->status, what);
	} else if (!wait->bytes) {
		rc = ddp_client_set_memory_error(error);
	} else {
		*bytes = wait->bytes;
		*size = wait->size;
		wait->bytes = NULL;
	}
	ddp_wait_drop(wait);
	return rc;
}

/* Get a text of the job or of a rank; *text is NULL if nobody knows it. */
static int get_text(struct ddp_client *client, uint32_t rank, const char *key,
		    int64_t deadline, char **text, struct ddp_error *error)
{
	void *bytes = NULL;
	size_t size;
	int rc = take_value(begin_get_fact(client, rank, key), key,
			    PMIX_STRING, &bytes, &size, deadline, error);

	*text = bytes;
	return rc < 0 ? -1 : 0;
}

static int get_number(struct ddp_client *client, uint32_t rank, const char *key,
		      int64_t deadline, uint32_t *number,
		      struct ddp_error *error)
{
	void *bytes = NULL;
	size_t size;
	int rc = take_value(begin_get_fact(client, rank, key), key,
			    PMIX_UINT32, &bytes, &size, deadline, error);

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
