/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the files of a checkpoint in a thread of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/writer.h"
#include "util/text.h"

enum { PIECE_BYTES = 1 << 22, BEHIND_BYTES = 1 << 26 };

struct writer {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool busy, ending;
	struct writer_job job;
	uint64_t progress;		/* pieces written, shards seen, ... */
	uint64_t seen;			/* of it, by has_grown() */
	struct crc *crc;
	uint32_t sum;			/* of the last job */
	struct ddp_error error;		/* likewise */
};

/*
 * Start writing each piece to the disk, and wait for the one 64 MiB before it:
 * then fsync() has little left to do. Returns 0, or -1 with errno set: the
 * kernel tells an error once, so that fsync() would not tell it again.
 */
static int start_disk(int fd, size_t done, size_t count)
{
	int result = sync_file_range(fd, (off_t)done, (off_t)count,
				     SYNC_FILE_RANGE_WRITE);

	if (result == 0 && done >= BEHIND_BYTES)
		result = sync_file_range(fd, (off_t)(done - BEHIND_BYTES),
					 PIECE_BYTES,
					 SYNC_FILE_RANGE_WAIT_BEFORE |
					 SYNC_FILE_RANGE_WRITE |
					 SYNC_FILE_RANGE_WAIT_AFTER);
	/* Some file systems cannot do this; fsync() then waits for longer. */
	if (result < 0 && (errno == ENOSYS || errno == EINVAL ||
			   errno == ESPIPE || errno == EOPNOTSUPP))
		return 0;
	return result;
}

/* Counts a piece of progress for writer_has_grown(). */
static void note_progress(void *context)
{
	struct writer *writer = context;

	pthread_mutex_lock(&writer->mutex);
	writer->progress++;
	pthread_mutex_unlock(&writer->mutex);
}

/* The sum and the file, piece by piece; -1 with errno set. */
static int write_pieces(struct writer *writer, int fd)
{
	const struct writer_job *job = &writer->job;
	const char *bytes = job->bytes;
	size_t done = 0;

	while (done < job->count) {
		size_t left = job->count - done;
		size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;
		ssize_t count = write(fd, bytes + done, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		if (start_disk(fd, done, (size_t)count) < 0)
			return -1;
		crc_add(writer->crc, bytes + done, (size_t)count);
		done += (size_t)count;
		note_progress(writer);
	}
	return fsync(fd);
}

/* Writes a file of an open folder under the name `beside`, then renames it. */
static int write_file(struct writer *writer, int folder, const char *beside)
{
	int fd = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL |
			O_NOFOLLOW | O_CLOEXEC, 0666);
	int result, cause;

	if (fd < 0)
		return -1;
	result = write_pieces(writer, fd);
	cause = errno;
	if (close(fd) < 0 && result == 0) {
		result = -1;
		cause = errno;
	}
	if (result == 0 &&
	    renameat(folder, beside, folder, writer->job.name) < 0) {
		result = -1;
		cause = errno;
	}
	if (result < 0)
		unlinkat(folder, beside, 0);
	errno = cause;
	return result;
}

/* Returns 0, or -1 with errno set. */
static int write_synced(struct writer *writer, int folder)
{
	const struct writer_job *job = &writer->job;
	struct ddp_text text = { 0 };
	int result = -1;
	char *beside;

	ddp_text_add(&text, "%s.%s.part", job->name, job->id);
	beside = ddp_text_finish(&text);
	errno = ENOMEM;
	if (beside && write_file(writer, folder, beside) == 0)
		result = folder_sync_open(folder);
	if (result == 0 && job->commits)
		result = folder_sync(job->dir);
	free(beside);
	return result;
}

/* errno says why a file could not be written. */
static int refuse_write(struct writer *writer)
{
	const struct writer_job *job = &writer->job;
	const char *fix = "make it writable, or name another folder";

	if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)
		fix = "make room there";
	if (errno == ENOTDIR || errno == ELOOP)
		fix = "remove what is there by this name";
	if (errno == ENOENT)
		fix = "bring the folder back, or name another one";
	return ddp_error_set(&writer->error, DDP_ERROR_SYSTEM,
			     "--checkpoint %s: cannot write step-%" PRIu64
			     "/%s: %s; %s", job->dir, job->step, job->name,
			     strerror(errno), fix);
}

/* Wait a little for a shard that another node has written. */
static int check_shard(struct writer *writer, int folder,
		       const struct manifest_shard *shard)
{
	const struct writer_job *job = &writer->job;
	size_t bytes = manifest_count_bytes(job->commits, shard);
	struct late late = { 0 };
	struct stat status;

	do {
		int fd = folder_open(job->dir, job->step);

		if (fd >= 0)		/* which asks an NFS server anew */
			close(fd);
		if (fstatat(folder, shard->file, &status,
			    AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(status.st_mode) &&
		    (size_t)status.st_size == bytes)
			return 0;
	} while (late_wait(&late));
	return ddp_error_set(&writer->error, DDP_ERROR_SYSTEM,
			     "--checkpoint %s: rank 0 does not see the %zu "
			     "bytes of step-%" PRIu64 "/%s that a rank has "
			     "written; name a folder that all nodes share",
			     job->dir, bytes, job->step, shard->file);
}

/* Checks the folder and all shards before the manifest is written. */
static int check_commit(struct writer *writer, int folder)
{
	const struct writer_job *job = &writer->job;
	const struct manifest *manifest = job->commits;

	if (owner_check(job->dir, job->id, &writer->error) < 0)
		return -1;
	for (int i = 0; i < manifest->shard_count; i++) {
		if (check_shard(writer, folder, &manifest->shards[i]) < 0)
			return -1;
		note_progress(writer);
	}
	return 0;
}

static void do_job(struct writer *writer)
{
	const struct writer_job *job = &writer->job;
	int folder = -1, result = 0;

	crc_reset(writer->crc);
	writer->error = (struct ddp_error){ 0 };
	if (job->count > 0)
		folder = folder_make(job->dir, job->step);
	if (job->count > 0 && folder < 0)
		result = refuse_write(writer);
	if (folder >= 0 && job->commits)
		result = check_commit(writer, folder);
	if (folder >= 0 && result == 0 && write_synced(writer, folder) < 0)
		result = refuse_write(writer);
	if (folder >= 0)
		close(folder);
	if (result < 0)
		return;
	writer->sum = crc_read(writer->crc);
	if (job->commits)
		folder_prune(&job->prune, note_progress, writer);
}

static void *run(void *context)
{
	struct writer *writer = context;

	pthread_mutex_lock(&writer->mutex);
	for (;;) {
		while (!writer->busy && !writer->ending)
			pthread_cond_wait(&writer->changed, &writer->mutex);
		if (!writer->busy)
			break;
		pthread_mutex_unlock(&writer->mutex);
		do_job(writer);
		pthread_mutex_lock(&writer->mutex);
		writer->busy = false;
		pthread_cond_broadcast(&writer->changed);
	}
	pthread_mutex_unlock(&writer->mutex);
	return NULL;
}

/* Signals are for the thread that trains. */
static int start(struct writer *writer)
{
	sigset_t all, before;
	int cause;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	cause = pthread_create(&writer->thread, NULL, run, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return cause;
}

struct writer *writer_create(struct ddp_error *error)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	struct crc *crc = crc_create(error);
	int cause = ENOMEM;

	if (!crc) {
		free(writer);
		return NULL;
	}
	if (writer) {
		writer->crc = crc;
		pthread_mutex_init(&writer->mutex, NULL);
		pthread_cond_init(&writer->changed, NULL);
		cause = start(writer);
	}
	if (!cause)
		return writer;
	ddp_error_set(error, DDP_ERROR_SYSTEM, "no thread to write "
		      "checkpoints: %s; allow more %s", strerror(cause),
		      cause == ENOMEM ? "memory" : "processes (ulimit -u)");
	crc_destroy(crc);
	free(writer);
	return NULL;
}

void writer_begin(struct writer *writer, const struct writer_job *job)
{
	pthread_mutex_lock(&writer->mutex);
	writer->job = *job;
	writer->busy = true;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->mutex);
}

bool writer_is_idle(struct writer *writer)
{
	bool idle;

	pthread_mutex_lock(&writer->mutex);
	idle = !writer->busy;
	pthread_mutex_unlock(&writer->mutex);
	return idle;
}

bool writer_wait(struct writer *writer)
{
	struct timespec until;
	int cause = 0;
	bool ended;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&writer->mutex);
	while (writer->busy && !cause)
		cause = pthread_cond_timedwait(&writer->changed, &writer->mutex,
					       &until);
	ended = !writer->busy;
	pthread_mutex_unlock(&writer->mutex);
	return ended;
}

bool writer_has_grown(struct writer *writer)
{
	bool grown;

	pthread_mutex_lock(&writer->mutex);
	grown = writer->progress != writer->seen;
	writer->seen = writer->progress;
	pthread_mutex_unlock(&writer->mutex);
	return grown;
}

char *writer_format_file(struct writer *writer)
{
	const struct writer_job *job = &writer->job;

	return folder_format(job->dir, job->step, job->name);
}

int writer_get_result(struct writer *writer, uint32_t *crc,
		      struct ddp_error *error)
{
	*crc = writer->sum;
	if (writer->error.code == DDP_ERROR_NONE)
		return 0;
	if (error)
		*error = writer->error;
	return -1;
}

void writer_destroy(struct writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->mutex);
	writer->ending = true;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->mutex);
	pthread_join(writer->thread, NULL);
	pthread_mutex_destroy(&writer->mutex);
	pthread_cond_destroy(&writer->changed);
	crc_destroy(writer->crc);
	free(writer);
}
