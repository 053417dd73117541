/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libnccl.so.2, for tests on machines without a GPU. Its communicators
 * meet as NCCL's do, and check who meets; fake_nccl_data.c moves data in them,
 * between ranks of one machine, in streams of the emulated CUDA too.
 *
 * A unique id names a folder below $FAKE_NCCL_DIR, which all ranks share.
 * Each rank of a communicator leaves a file there, once; when all are there,
 * each rank checks that they came with the same ids, none used before, that
 * there are as many as they said, and that each id was made by the first rank
 * of the block that NCCL has meet at it. What is done to communicators is
 * logged to $FAKE_NCCL_DIR/log, at its end how often each call moved data. Such
 * a call is in progress once.
 *
 *   FAKE_NCCL_VERSION=N       [22809]; a thread that moved data crashes if it
 *                             uses or makes another communicator before it has
 *                             asked that one for its error, or below 22600 for
 *                             more
 *   FAKE_NCCL_ID=fail|crash   ncclGetUniqueId
 *   FAKE_NCCL_INIT=WHAT       the start of a communicator: "cuda": fails as
 *                             where cudaGetDevice does, inside an open group;
 *                             "error": fails; "third": the third does; or
 *                             "second"; "async": fails later; "never" ends;
 *                             "crash"
 *   FAKE_NCCL_ASYNC=MS        an error of a peer so long after the start
 *   FAKE_NCCL_BUSY=MS         calls are in progress so long after the start
 *   FAKE_NCCL_FINALIZE=never  ends
 *   FAKE_NCCL_ABORT=never|fail
 *   FAKE_NCCL_WRONG=RANK      on which the first byte of each result is wrong
 *
 * With -DFAKE_OLD, no ncclCommInitRankScalable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fake_nccl.h"
#include "fake_stream.h"

/* As nccl.h of 2.18 has it, and the first member of all later ones. */
typedef struct {
	size_t size;
	unsigned int magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
} ncclConfig_t;

enum { MAGIC = 0x66616b65 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char last[256];
static _Thread_local int depth;		/* of groups */
static _Thread_local struct ncclComm *listed;	/* ncclGroupCommHead */

static const char *want(const char *variable)
{
	const char *value = getenv(variable);

	return value != NULL ? value : "";
}

static int is(const char *variable, const char *text)
{
	return strcmp(want(variable), text) == 0;
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void crash(void)
{
	raise(SIGKILL);
}

static int fail(int result, const char *text)
{
	snprintf(last, sizeof(last), "fake: %.200s", text);
	return result;
}

int fake_fail(const char *text)
{
	return fail(ARGUMENT, text);
}

int fake_depth(void)
{
	return depth;
}

void fake_differ(struct ncclComm *comm, const char *what)
{
	if (comm->state == SUCCESS)
		fprintf(stderr, "fake NCCL: rank %d of %d: others are not "
			"where it is: %s\n", comm->rank, comm->size, what);
	comm->state = fail(INTERNAL, what);
}

static void check(const struct ncclComm *comm, const char *call)
{
	if (comm->magic == MAGIC)
		return;
	fprintf(stderr, "fake NCCL: %s of what is no communicator\n", call);
	abort();
}

/* Who this process is, and so who made an id. */
static void who(char *text, size_t room)
{
	char host[64] = "";

	gethostname(host, sizeof(host) - 1);
	snprintf(text, room, "fake-%s-%d-", host, (int)getpid());
}

void fake_format_path(char path[PATH_MAX], const ncclUniqueId *id,
		      const char *name)
{
	snprintf(path, PATH_MAX, "%s/%.127s%s%s", want("FAKE_NCCL_DIR"),
		 id->internal, *name != '\0' ? "/" : "", name);
}

static void say(const char *what, const struct ncclComm *comm)
{
	char path[PATH_MAX], line[512];
	int fd, size;

	snprintf(path, sizeof(path), "%s/log", want("FAKE_NCCL_DIR"));
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	size = snprintf(line, sizeof(line), "%s %s %d/%d\n",
			want("SLURM_PROCID"), what, comm->rank, comm->size);
	if (fd < 0 || write(fd, line, (size_t)size) != size)
		abort();
	close(fd);
}

int ncclGetVersion(int *version)
{
	const char *value = getenv("FAKE_NCCL_VERSION");

	*version = value != NULL ? atoi(value) : 22809;
	return SUCCESS;
}

/* The list's end is no address. */
static void walk_list(const struct ncclComm *comm)
{
	if (listed == NULL || listed == comm)
		return;
	fprintf(stderr, "fake NCCL: the last call of this thread is listed\n");
	raise(SIGSEGV);
}

void fake_list(struct ncclComm *comm)
{
	walk_list(comm);
	if (!comm->blocking)
		listed = comm;
}

/* Forgets the call that comm waits for: NCCL has now told how it ended. */
static void unlist(const struct ncclComm *comm)
{
	if (listed == comm)
		listed = NULL;
}

int ncclGetUniqueId(ncclUniqueId *id)
{
	static int count;
	char name[100], path[PATH_MAX];
	int rc;

	if (is("FAKE_NCCL_ID", "fail"))
		return fail(SYSTEM, "no interface");
	if (is("FAKE_NCCL_ID", "crash"))
		crash();
	memset(id, 0, sizeof(*id));
	who(name, sizeof(name));
	/* A process of an earlier cluster may have had the same number. */
	pthread_mutex_lock(&lock);
	do {
		snprintf(id->internal, sizeof(id->internal), "%s%d", name,
			 count++);
		fake_format_path(path, id, "");
		rc = mkdir(path, 0777);
	} while (rc != 0 && errno == EEXIST);
	pthread_mutex_unlock(&lock);
	if (rc != 0 || chmod(path, 0777) != 0)
		return fail(SYSTEM, path);
	return SUCCESS;
}

/* ---- the meeting of a communicator's ranks */

/* "who size ids..." of a rank, in its file; 0 if that is not there yet. */
static int file_read(const struct ncclComm *comm, int rank, char *text,
		     size_t room)
{
	char name[32], path[PATH_MAX];
	ssize_t size;
	int fd;

	snprintf(name, sizeof(name), "rank.%d", rank);
	fake_format_path(path, &comm->ids[0], name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, room - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	return size > 0;
}

/* Written beside and linked, so that it is there whole or not at all. */
static int file_write(const struct ncclComm *comm, const char *text)
{
	char name[64], path[PATH_MAX], to[PATH_MAX];
	int fd, result;

	snprintf(name, sizeof(name), "new.%d.%d", comm->rank, (int)getpid());
	fake_format_path(path, &comm->ids[0], name);
	snprintf(name, sizeof(name), "rank.%d", comm->rank);
	fake_format_path(to, &comm->ids[0], name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	result = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	if (result == 0 || link(path, to) != 0)
		return -1;
	return 0;
}

static void ids_format(const struct ncclComm *comm, char *text, size_t room)
{
	size_t used;
	int i;

	snprintf(text, room, " %d", comm->size);
	for (i = 0; i < comm->id_count; i++) {
		used = strlen(text);
		snprintf(text + used, room - used, " %.127s",
			 comm->ids[i].internal);
	}
}

/* The block of a rank, dealt one by one: the blocks are filled in order, each
 * of the first size % roots has one more. */
static int block_of(int rank, int size, int roots)
{
	int block, left = size, length, first = 0;

	for (block = 0; block < roots; block++) {
		length = (left + roots - block - 1) / (roots - block);
		if (rank < first + length)
			return block;
		first += length;
		left -= length;
	}
	return -1;
}

/* Every rank's file, which must say the same; and the makers of the ids. */
static int meet(struct ncclComm *comm)
{
	char ids[8192], text[8192], maker[128];
	int rank, before = -1, block;

	ids_format(comm, ids, sizeof(ids));
	for (rank = 0; rank < comm->size; rank++)
		if (!file_read(comm, rank, text, sizeof(text)))
			return PROGRESS;
	for (rank = 0; rank < comm->size; rank++) {
		file_read(comm, rank, text, sizeof(text));
		if (strcmp(strchr(text, ' '), ids) != 0)
			return fail(INTERNAL, "ranks came with other ids");
		block = block_of(rank, comm->size, comm->id_count);
		if (block == before)
			continue;
		before = block;
		snprintf(maker, sizeof(maker), "%.*s",
			 (int)(strchr(text, ' ') - text), text);
		if (strncmp(maker, comm->ids[block].internal, strlen(maker)))
			return fail(INTERNAL, "an id has another maker");
	}
	return SUCCESS;
}

static int config_check(const ncclConfig_t *config, const struct ncclComm *comm)
{
	char text[80];

	if (config == NULL || config->magic != 0xcafebeef ||
	    config->version < 21400 || config->size < 20)
		return fail(ARGUMENT, "the config is none");
	if (config->blocking != comm->blocking)
		return fail(ARGUMENT, "the config is blocking");
	snprintf(text, sizeof(text), "config size %zu version %u CTAs %d",
		 config->size, config->version, config->size >= 32 &&
		 config->version >= 21700 ? config->minCTAs : -1);
	say(text, comm);
	return SUCCESS;
}

static int init(struct ncclComm **made, int size, int rank, int id_count,
		ncclUniqueId *ids, ncclConfig_t *config)
{
	static int count;
	char text[8192];
	struct ncclComm *comm;

	if (is("FAKE_NCCL_INIT", "crash"))
		crash();
	walk_list(NULL);
	count++;
	if (is("FAKE_NCCL_INIT", "second") && count == 2)
		return fail(SYSTEM, "the second fails");
	if (is("FAKE_NCCL_INIT", "third") && count == 3)
		return fail(SYSTEM, "the third fails");
	if (is("FAKE_NCCL_INIT", "cuda")) {
		depth++;
		return fail(CUDA, "cudaGetDevice");
	}
	if (is("FAKE_NCCL_INIT", "error"))
		return fail(SYSTEM, "asked to fail");
	if (depth != 0)
		return fail(USAGE, "inside a group");
	if (size < 1 || rank < 0 || rank >= size || id_count < 1 ||
	    id_count > size)
		return fail(ARGUMENT, "rank, size or ids");
	comm = calloc(1, sizeof(*comm));
	comm->magic = MAGIC;
	comm->size = size;
	comm->rank = rank;
	comm->id_count = id_count;
	comm->ids = malloc((size_t)id_count * sizeof(*ids));
	memcpy(comm->ids, ids, (size_t)id_count * sizeof(*ids));
	comm->start = now_ms();
	comm->state = config_check(config, comm);
	who(text, sizeof(text));
	ids_format(comm, text + strlen(text), sizeof(text) - strlen(text));
	if (comm->state != SUCCESS || file_write(comm, text) != 0) {
		free(comm->ids);
		free(comm);
		return fail(ARGUMENT, "the id was used before, by this rank");
	}
	say("init", comm);
	snprintf(text, sizeof(text), "ids %d hostid '%s'", id_count,
		 want("NCCL_HOSTID"));
	say(text, comm);
	*made = comm;
	return PROGRESS;
}

/*
 * This fake can only copy a communicator: all ranks, in their order, and
 * blocking. The copy's folder has the name of its parent's, and a number.
 */
int ncclCommSplit(struct ncclComm *parent, int color, int key,
		  struct ncclComm **made, ncclConfig_t *config)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));
	char text[8192], path[PATH_MAX];

	check(parent, "ncclCommSplit");
	unlist(parent);
	if (color != 0 || key != parent->rank || parent->state != SUCCESS)
		return fail(ARGUMENT, "a split that the fake lacks");
	*comm = (struct ncclComm){
		.magic = MAGIC, .size = parent->size, .rank = parent->rank,
		.id_count = 1, .ids = malloc(sizeof(*comm->ids)),
		.start = now_ms(), .blocking = 1
	};
	snprintf(comm->ids[0].internal, sizeof(comm->ids[0].internal),
		 "%.100s.%d", parent->ids[0].internal, parent->splits++);
	fake_format_path(path, &comm->ids[0], "");
	if (mkdir(path, 0777) == 0 && chmod(path, 0777) != 0)
		return fail(SYSTEM, path);
	who(text, sizeof(text));
	ids_format(comm, text + strlen(text), sizeof(text) - strlen(text));
	if (config_check(config, comm) != SUCCESS ||
	    file_write(comm, text) != 0)
		return fail(ARGUMENT, "the split was made before");
	say("split", comm);
	parent->made = made;
	parent->child = comm;
	return PROGRESS;
}

int ncclCommInitRankConfig(struct ncclComm **comm, int size, ncclUniqueId id,
			   int rank, ncclConfig_t *config)
{
	return init(comm, size, rank, 1, &id, config);
}

#ifndef FAKE_OLD
int ncclCommInitRankScalable(struct ncclComm **comm, int size, int rank,
			     int id_count, ncclUniqueId *ids,
			     ncclConfig_t *config)
{
	return init(comm, size, rank, id_count, ids, config);
}
#endif

/* ---- communicators */

/* Whether moves are left, which only a look at their stream makes go on. */
static int is_busy(struct ncclComm *comm)
{
	struct fake_stream *fake = fake_stream_of(comm->stream);

	if (comm->pending > 0 && fake)
		fake->query(comm->stream);
	return comm->pending > 0;
}

/* The state of one that all ranks have met in. */
static int state_met(struct ncclComm *comm)
{
	long age = now_ms() - comm->start;

	if (comm->child != NULL) {
		if (!comm->child->met && meet(comm->child) != SUCCESS)
			return PROGRESS;
		comm->child->met = 1;
		*comm->made = comm->child;
		comm->child = NULL;
	}
	if (comm->calls > 0) {
		comm->calls = 0;
		return PROGRESS;
	}
	if (comm->finalized != 0)
		return is("FAKE_NCCL_FINALIZE", "never") || is_busy(comm) ?
			PROGRESS : SUCCESS;
	if (*want("FAKE_NCCL_ASYNC") != '\0' &&
	    age >= atol(want("FAKE_NCCL_ASYNC")))
		return fail(REMOTE, "a peer is gone");
	return age < atol(want("FAKE_NCCL_BUSY")) ? PROGRESS : SUCCESS;
}

int ncclCommGetAsyncError(struct ncclComm *comm, int *result)
{
	int version;

	check(comm, "ncclCommGetAsyncError");
	if (comm->state != SUCCESS)
		*result = comm->state;
	else if (is("FAKE_NCCL_INIT", "never"))
		*result = PROGRESS;
	else if (is("FAKE_NCCL_INIT", "async"))
		*result = fail(INTERNAL, "asked to fail later");
	else if (comm->met)
		*result = state_met(comm);
	else if ((*result = meet(comm)) == SUCCESS)
		comm->met = 1;
	ncclGetVersion(&version);
	if (*result == SUCCESS && version >= 22600)
		unlist(comm);
	return SUCCESS;
}

int ncclCommFinalize(struct ncclComm *comm)
{
	check(comm, "ncclCommFinalize");
	unlist(comm);
	say("finalize", comm);
	comm->finalized = 1;
	return comm->blocking ? SUCCESS : PROGRESS;
}

/* How often each call was made, if any was. */
static void say_calls(const struct ncclComm *comm)
{
	char text[400];
	size_t used = (size_t)snprintf(text, sizeof(text), "%scalls",
				       comm->blocking ? "blocking " : "");
	size_t before = used;
	int kind;

	for (kind = 0; kind < KINDS; kind++)
		if (comm->asked[kind] > 0)
			used += (size_t)snprintf(text + used,
						 sizeof(text) - used, " %s %u",
						 fake_name(kind),
						 comm->asked[kind]);
	if (used > before)
		say(text, comm);
}

static int end(struct ncclComm *comm, const char *what)
{
	check(comm, what);
	unlist(comm);
	say_calls(comm);
	say(what, comm);
	comm->magic = 0;
	free(comm->ids);
	if (comm->pending > 0)
		return SUCCESS;	/* a stream still knows it */
	fake_unmap(comm);
	free(comm);
	return SUCCESS;
}

int ncclCommDestroy(struct ncclComm *comm)
{
	if (!comm->finalized)
		return fail(USAGE, "destroyed but not finalised");
	return end(comm, "destroy");
}

/* As what NCCL calls does, it waits for all that is on the GPU. */
int ncclCommAbort(struct ncclComm *comm)
{
	if (is("FAKE_NCCL_ABORT", "never"))
		for (;;)
			pause();
	fake_moves -= comm->pending;
	end(comm, "abort");
	while (fake_moves > 0)
		usleep(1000);
	return is("FAKE_NCCL_ABORT", "fail") ?
		fail(SYSTEM, "asked to fail in abort") : SUCCESS;
}

int ncclCommCount(struct ncclComm *comm, int *size)
{
	check(comm, "ncclCommCount");
	unlist(comm);
	*size = comm->size;
	return SUCCESS;
}

int ncclCommUserRank(struct ncclComm *comm, int *rank)
{
	check(comm, "ncclCommUserRank");
	unlist(comm);
	*rank = comm->rank;
	return SUCCESS;
}

int ncclGroupStart(void)
{
	depth++;
	return SUCCESS;
}

int ncclGroupEnd(void)
{
	if (depth == 0)
		return fail(USAGE, "not in a group");
	depth--;
	return depth > 0 ? SUCCESS : fake_end_group();
}

const char *ncclGetErrorString(int result)
{
	static const char *const texts[] = {
		"no error", "unhandled cuda error", "unhandled system error",
		"internal error", "invalid argument", "invalid usage",
		"remote process exited", "in progress",
	};

	return result >= 0 && result <= PROGRESS ? texts[result] : "unknown";
}

const char *ncclGetLastError(struct ncclComm *comm)
{
	(void)comm;
	return last;
}
