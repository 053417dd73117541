/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that makes communicators, for tests, through libddp's public face and
 * compiled without NCCL's headers. Its arguments are done in order, by all
 * ranks; after "@2,5:" by these alone, after "!2,5:" by all but these:
 *
 *   share roots=N timeout=MS plain     options of the calls that follow
 *   ctas=N magic      a config with so many CTAs; with no magic
 *   create=GROUPS     an OR of enum ddp_group
 *   split=N           colors: rank modulo N; the ranks in reverse order
 *   join=N            the ranks below N alone
 *   sum               what an all-reduce of the first communicator returns
 *   wait=MS abort destroy=MS    for all of the latest communicators
 *   threads=N         as many threads, which create and destroy
 *   library           which NCCL
 *   group             what ncclGroupEnd says
 *   barrier sleep=MS exit=CODE kill set=NAME=VALUE
 *
 * A call that makes communicators says "RANK ARGUMENT: rank/size ...", "-" for
 * none, and which fails "RANK ARGUMENT: CODE NATIVE after SECONDS: TEXT"; then
 * the next argument follows.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "argument.h"
#include "nccl/nccl.h"

static struct ddp_job *job;
static struct ddp_nccl_options options;
static ncclConfig_t *config;
static ncclComm_t comms[3];

static int call_comm(const char *name, ncclComm_t comm)
{
	const char *path = ddp_nccl_library(NULL, NULL);
	void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *symbol;
	int (*function)(ncclComm_t comm, int *value), value = -1;

	if (handle == NULL)
		handle = dlopen(NULL, RTLD_NOW);
	symbol = dlsym(handle, name);
	memcpy(&function, &symbol, sizeof(symbol));
	if (function == NULL || function(comm, &value) != 0)
		return -1;
	return value;
}

static void *find_call(const char *name)
{
	void *handle = dlopen(ddp_nccl_library(NULL, NULL),
			      RTLD_NOW | RTLD_NOLOAD);

	return dlsym(handle, name);
}

static int call_group_end(void)
{
	void *symbol = find_call("ncclGroupEnd");
	int (*function)(void);

	memcpy(&function, &symbol, sizeof(symbol));
	return function();
}

/* Sums a few floats of the host, as the fake driver has no other memory. */
static int call_all_reduce(ncclComm_t comm)
{
	static float values[4];
	void *symbol = find_call("ncclAllReduce");
	int (*function)(const void *, void *, size_t, int, int, ncclComm_t,
			void *);

	memcpy(&function, &symbol, sizeof(symbol));
	return function(values, values, 4, DDP_NCCL_FLOAT, DDP_NCCL_SUM, comm,
			NULL);
}

static void show(const char *argument, unsigned int count)
{
	char line[256];
	size_t used;
	unsigned int i;

	snprintf(line, sizeof(line), "%u %s:", ddp_job_rank(job), argument);
	for (i = 0; i < count; i++) {
		used = strlen(line);
		if (comms[i] == NULL)
			snprintf(line + used, sizeof(line) - used, " -");
		else
			snprintf(line + used, sizeof(line) - used, " %d/%d",
				 call_comm("ncclCommUserRank", comms[i]),
				 call_comm("ncclCommCount", comms[i]));
	}
	printf("%s\n", line);
}

/* With the field behind cgaClusterSize set, minCTAs, and two more. */
static void config_set(int ctas)
{
	const int none = -2147483647 - 1;
	int fields[4] = { 0, none, ctas, none };

	free(config);
	config = calloc(1, 64);
	config->size = 40;
	config->magic = 0xcafebeef;
	config->version = 21800;
	memcpy(&config->blocking, fields, sizeof(fields));
	config->blocking = 1;
	options.config = config;
}

static int create(const char *argument, unsigned int groups,
		  struct ddp_error *error)
{
	struct ddp_nccl_comms made = { 0 };

	if (ddp_nccl_create(job, groups, &options, &made, error) != 0)
		return -1;
	comms[0] = made.world;
	comms[1] = made.node;
	comms[2] = made.cross;
	show(argument, 3);
	return 0;
}

static int split(const char *argument, uint32_t color, struct ddp_error *error)
{
	uint32_t key = ddp_job_size(job) - ddp_job_rank(job);
	ncclComm_t made = NULL;

	if (ddp_nccl_split(job, color, key, &options, &made, error) != 0)
		return -1;
	memset(comms, 0, sizeof(comms));
	comms[0] = made;
	show(argument, 1);
	return 0;
}

enum what { WAIT, ABORT, DESTROY };

static int each(enum what what, int ms, struct ddp_error *error)
{
	int i, result = 0;

	for (i = 0; i < 3; i++) {
		if (what == WAIT && comms[i] != NULL)
			result |= ddp_nccl_wait(comms[i], NULL, ms, error);
		else if (what == ABORT)
			result |= ddp_nccl_abort(comms[i], error);
		else if (what == DESTROY)
			result |= ddp_nccl_destroy(comms[i], ms, error);
		if (what != WAIT)
			comms[i] = NULL;
	}
	if (what == WAIT && comms[0] == NULL)
		result = ddp_nccl_wait(NULL, NULL, ms, error);
	return result;
}

/* Calls of several threads take turns, but in an order of their own: so all
 * ask for the same. */
static void *thread_main(void *data)
{
	struct ddp_nccl_comms made = { 0 };
	struct ddp_error error = { 0 };

	(void)data;
	if (ddp_nccl_create(job, DDP_GROUP_WORLD | DDP_GROUP_NODE, &options,
			    &made, &error) != 0 ||
	    ddp_nccl_destroy(made.world, 5000, &error) != 0 ||
	    ddp_nccl_destroy(made.node, 5000, &error) != 0)
		printf("%u thread: %s\n", ddp_job_rank(job), error.text);
	return NULL;
}

static void threads(int count)
{
	pthread_t thread[64];
	int i;

	for (i = 0; i < count; i++)
		pthread_create(&thread[i], NULL, thread_main, NULL);
	for (i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	printf("%u threads ended\n", ddp_job_rank(job));
}

static int show_library(struct ddp_error *error)
{
	int version;
	const char *path = ddp_nccl_library(&version, error);

	if (path == NULL)
		return -1;
	printf("%u %d %s\n", ddp_job_rank(job), version, path);
	return 0;
}

static int set_option(const char *verb, const char *value)
{
	if (strcmp(verb, "share") == 0)
		options.share_gpu = 1;
	else if (strcmp(verb, "roots") == 0)
		options.ranks_per_root = (uint32_t)atoi(value);
	else if (strcmp(verb, "ctas") == 0)
		config_set(atoi(value));
	else if (strcmp(verb, "magic") == 0)
		config->magic = 0;
	else if (strcmp(verb, "timeout") == 0)
		options.timeout_ms = atoi(value);
	else if (strcmp(verb, "plain") == 0)
		options = (struct ddp_nccl_options){ .size = sizeof(options) };
	else
		return 0;
	return 1;
}

static int act(const char *argument, const char *verb, char *value,
	       struct ddp_error *error)
{
	uint32_t rank = ddp_job_rank(job);
	uint32_t number = (uint32_t)atoi(value);
	char *equals;

	if (set_option(verb, value))
		return 0;
	if (strcmp(verb, "create") == 0)
		return create(argument, number, error);
	if (strcmp(verb, "split") == 0)
		return split(argument, rank % number, error);
	if (strcmp(verb, "join") == 0)
		return split(argument, rank < number ? 0 : DDP_COLOR_NONE,
			     error);
	if (strcmp(verb, "wait") == 0)
		return each(WAIT, atoi(value), error);
	if (strcmp(verb, "abort") == 0)
		return each(ABORT, 0, error);
	if (strcmp(verb, "destroy") == 0)
		return each(DESTROY, atoi(value), error);
	if (strcmp(verb, "library") == 0)
		return show_library(error);
	if (strcmp(verb, "barrier") == 0)
		return ddp_job_barrier(job, error);
	if (strcmp(verb, "sum") == 0)
		printf("%u sum: %d\n", rank, call_all_reduce(comms[0]));
	else if (strcmp(verb, "threads") == 0)
		threads(atoi(value));
	else if (strcmp(verb, "group") == 0)
		printf("%u group: %d\n", rank, call_group_end());
	else if (strcmp(verb, "sleep") == 0)
		usleep((useconds_t)number * 1000);
	else if (strcmp(verb, "kill") == 0)
		raise(SIGKILL);
	else if (strcmp(verb, "exit") == 0)
		exit(atoi(value));
	else if (strcmp(verb, "set") == 0 &&
		 (equals = strchr(value, '=')) != NULL) {
		*equals = '\0';
		setenv(value, equals + 1, 1);
	} else {
		fprintf(stderr, "comms: what is '%s'?\n", argument);
		exit(2);
	}
	return 0;
}

static void perform(const char *argument)
{
	char text[256], *value;
	struct ddp_error error = { 0 };
	time_t begin = time(NULL);

	argument = skip_ranks(argument, ddp_job_rank(job));
	if (argument == NULL)
		return;
	snprintf(text, sizeof(text), "%s", argument);
	value = strchr(text, '=');
	if (value != NULL)
		*value++ = '\0';
	if (act(argument, text, value != NULL ? value : text + strlen(text),
		&error) != 0)
		printf("%u %s: %s %d after %ld: %s\n", ddp_job_rank(job),
		       argument, error_codes[error.code], error.native,
		       (long)(time(NULL) - begin), error.text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct ddp_error error;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options.size = sizeof(options);
	job = ddp_job_create(NULL, &error);
	if (job == NULL) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (i = 1; i < argc; i++)
		perform(argv[i]);
	free(config);
	ddp_job_destroy(job);
	return 0;
}
