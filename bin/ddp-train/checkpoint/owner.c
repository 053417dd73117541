/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the folder of checkpoints, the same for all ranks, and lets one run at
 * a time save there. Rank 0 holds a lock of the file DIR/.ddp-train-owner,
 * which says who that is. The lock ends with the process, however that ends;
 * where a file system has none between nodes, a run still learns before it
 * commits that another one has taken the folder.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "collective.h"
#include "data/path_code.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#define NAME ".ddp-train-owner"

enum { RECORD = 512 };

/* The contents of the file, a name and a value in each line. */
struct owner {
	char id[CHECKPOINT_ID];
	char host[65];
	long process;
	char job[97];			/* "12 of CLUSTER", or empty */
	unsigned int attempt[2];	/* of the job, and of its step there */
	char since[33];
};

static unsigned int count_restarts(const char *variable)
{
	const char *text = getenv(variable);

	return text ? (unsigned int)strtoul(text, NULL, 10) : 0;
}

static void describe(struct owner *owner, const char *id)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *cluster = getenv("SLURM_CLUSTER_NAME");
	time_t now = time(NULL);
	struct tm parts;

	*owner = (struct owner){
		.process = getpid(),
		.attempt = { count_restarts("SLURM_RESTART_COUNT"),
			     count_restarts("RESTART_COUNT") }
	};
	memcpy(owner->id, id, CHECKPOINT_ID);
	gethostname(owner->host, sizeof(owner->host) - 1);
	if (job)
		snprintf(owner->job, sizeof(owner->job), "%s%s%s", job,
			 cluster ? " of " : "", cluster ? cluster : "");
	if (gmtime_r(&now, &parts))
		strftime(owner->since, sizeof(owner->since), "%F %T UTC",
			 &parts);
}

/* Returns whether it could be written; errno says why not. */
static bool write_owner(int fd, const struct owner *owner)
{
	char text[RECORD];
	int length = snprintf(text, sizeof(text), "run %s\nhost %s\n"
			      "process %ld\nattempt %u.%u\nsince %s\n",
			      owner->id, owner->host, owner->process,
			      owner->attempt[0], owner->attempt[1],
			      owner->since);

	if (owner->job[0])
		length += snprintf(text + length, sizeof(text) -
				   (size_t)length, "job %s\n", owner->job);
	errno = EIO;
	return pwrite(fd, text, (size_t)length, 0) == length &&
	       ftruncate(fd, length) == 0 && fsync(fd) == 0;
}

/* Reads the file. Missing lines stay empty: the owner may be writing them. */
static void read_owner(int fd, struct owner *owner)
{
	char text[RECORD] = "", *rest = text, *line;

	*owner = (struct owner){ 0 };
	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		sscanf(line, "run %16[0-9a-f]", owner->id);
		sscanf(line, "host %64[^\n]", owner->host);
		sscanf(line, "process %ld", &owner->process);
		sscanf(line, "attempt %u.%u", &owner->attempt[0],
		       &owner->attempt[1]);
		sscanf(line, "since %32[^\n]", owner->since);
		sscanf(line, "job %96[^\n]", owner->job);
	}
}

static char *format_path(const char *dir)
{
	struct ddp_text text = { 0 };

	ddp_text_add(&text, "%s/" NAME, dir);
	return ddp_text_finish(&text);
}

static int open_owner(const char *dir, int flags)
{
	char *path = format_path(dir);
	int fd = path ? open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			     0600) : -1;

	free(path);
	return fd;
}

/*
 * A user who can read the file can lock it, too, and so keep runs out. If the
 * group may write to the folder, it may open the file. The file of another user
 * of the group stays as it is.
 */
static void set_mode(const char *dir, int fd)
{
	struct stat folder, file;
	mode_t mode = 0600;

	if (stat(dir, &folder) < 0 || fstat(fd, &file) < 0)
		return;
	if ((folder.st_mode & S_IWGRP) &&
	    (file.st_gid == folder.st_gid ||
	     fchown(fd, (uid_t)-1, folder.st_gid) == 0))
		mode = 0660;
	fchmod(fd, mode);
}

/* Slurm starts an attempt after it has ended the one before. */
static bool is_later_attempt(const struct owner *mine,
			     const struct owner *other)
{
	if (!mine->job[0] || strcmp(mine->job, other->job) != 0)
		return false;
	if (mine->attempt[0] != other->attempt[0])
		return mine->attempt[0] > other->attempt[0];
	return mine->attempt[1] > other->attempt[1];
}

/* "process 12 on n1, of job 3, since ..." */
static int refuse_owner(const char *dir, const struct owner *owner,
			const char *what, const char *fix,
			struct ddp_error *error)
{
	const char *job = owner->job[0] ? ", of job " : "";

	if (!owner->since[0])
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "--checkpoint "
				     "%s %s another run; %s", dir, what, fix);
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--checkpoint %s %s "
			     "another run, process %ld on %s%s%s, since %s; "
			     "%s", dir, what, owner->process, owner->host, job,
			     owner->job, owner->since, fix);
}

static void warn(const char *dir, const char *what, const char *why)
{
	struct ddp_text text = { 0 };
	char *line;

	ddp_text_add_quoted(&text, "ddp-train: --checkpoint %s: %s%s", dir,
			    what, why);
	line = ddp_text_finish(&text);
	if (line)
		fprintf(stderr, "%s\n", line);
	free(line);
}

/* Says once that it waits, as nothing else is printed for so long. */
static void say_wait(const char *dir, int fd)
{
	struct ddp_text text = { 0 };
	struct owner other;
	char *who;

	read_owner(fd, &other);
	if (other.since[0])
		ddp_text_add(&text, ", process %ld on %s%s%s", other.process,
			     other.host, other.job[0] ? ", of job " : "",
			     other.job);
	who = ddp_text_finish(&text);
	warn(dir, "waiting 10 s at most for the end of another run "
	     "that saves there", who ? who : "");
	free(who);
}

/* Returns 0; 1: another one has it; -1: there are no locks, as errno says. */
static int lock_owner(const char *dir, int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct late late = { 0 };
	int result;

	do {
		result = fcntl(fd, F_OFD_SETLK, &lock);
		if (result == 0 || (errno != EAGAIN && errno != EACCES))
			return result;
		if (late.begun == 0)
			say_wait(dir, fd);
	} while (late_wait(&late));
	return 1;
}

static int refuse_write(const char *dir, struct ddp_error *error)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	return ddp_error_set(error, find_path_code(errno), "--checkpoint %s: "
			     "cannot be written: %s; %s", dir, strerror(errno),
			     full ? "make room there, or name another folder" :
				    "name a folder that you may write");
}

/* The descriptor stays open, or the lock would end. */
int owner_take(const char *dir, const char *id, struct ddp_error *error)
{
	int fd = open_owner(dir, O_RDWR | O_CREAT), locked;
	struct owner mine, other;

	if (fd < 0)
		return refuse_write(dir, error);
	set_mode(dir, fd);
	describe(&mine, id);
	locked = lock_owner(dir, fd);
	if (locked > 0) {
		read_owner(fd, &other);
		if (!is_later_attempt(&mine, &other)) {
			close(fd);
			return refuse_owner(dir, &other, "is in use by",
					    "wait for its end or name another "
					    "folder, or, if its node is lost, "
					    "remove " NAME " there", error);
		}
		warn(dir, "the lock of this job's attempt before is still "
		     "held; going on, as Slurm has ended that", "");
	} else if (locked < 0) {
		warn(dir, "another run that saves there is noticed late, as "
		     "locks do not work: ", strerror(errno));
	}
	if (!write_owner(fd, &mine)) {
		refuse_write(dir, error);
		close(fd);
		return -1;
	}
	if (locked == 0)
		folder_sweep(dir);
	return 0;
}

int owner_check(const char *dir, const char *id, struct ddp_error *error)
{
	struct owner owner = { 0 };
	int fd = open_owner(dir, O_RDONLY);

	if (fd < 0 && errno == ENOENT && access(dir, F_OK) == 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "--checkpoint %s "
				     "is no longer the folder of this run: it "
				     "has no " NAME "; bring that folder back, "
				     "or name another one", dir);
	if (fd < 0)
		return 0;
	read_owner(fd, &owner);
	close(fd);
	if (!owner.id[0] || strcmp(owner.id, id) == 0)
		return 0;
	return refuse_owner(dir, &owner, "was taken by", "this run saves no "
			    "more there", error);
}

/* Opening a folder asks an NFS server anew what is in it. */
static void refresh(const char *dir)
{
	char *copy = strdup(dir);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY |
			     O_CLOEXEC) : -1;

	if (fd >= 0)
		close(fd);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	free(copy);
}

/*
 * Checks on another rank that DIR is the folder that rank 0 has taken for `id`.
 * Waits some seconds for a file system that shows new files late.
 */
static int see_owner(const char *dir, const char *id, struct ddp_error *error)
{
	struct late late = { 0 };
	struct owner owner;
	int cause;

	do {
		int fd = open_owner(dir, O_RDONLY);

		cause = fd < 0 ? errno : 0;
		owner.id[0] = '\0';
		if (fd >= 0) {
			read_owner(fd, &owner);
			close(fd);
		}
		if (strcmp(owner.id, id) == 0)
			return 0;
		refresh(dir);
	} while (late_wait(&late));
	if (cause && cause != ENOENT)
		return ddp_error_set(error, find_path_code(cause),
				     "--checkpoint %s: cannot be read: %s; "
				     "name a folder that all nodes can read",
				     dir, strerror(cause));
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint %s is "
			     "not the folder that rank 0 has by this name; "
			     "name one that all nodes share", dir);
}

/* ---- the ranks meet */

/* The record that each rank sends to all others. */
struct meeting {
	char id[CHECKPOINT_ID];		/* rank 0: its run's, if it has DIR */
	bool stop;			/* it got a signal */
};

static int draw_id(char id[CHECKPOINT_ID], struct ddp_error *error)
{
	uint64_t bits;

	if (ddp_random_fill(&bits, sizeof(bits)) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no random "
				     "number: %s", strerror(errno));
	snprintf(id, CHECKPOINT_ID, "%016" PRIx64, bits);
	return 0;
}

/*
 * Refuses a folder with checkpoints that this run would replace: those of an
 * earlier run if --resume was forgotten, and those saved since --resume looked.
 */
static int refuse_saved(const struct options *options, struct ddp_error *error)
{
	const struct manifest *from = options->from;
	uint64_t *steps, newest;
	int count = folder_list(options->checkpoint, &steps, error);

	newest = count > 0 ? steps[0] : 0;
	free(steps);
	if (count <= 0)
		return count;
	if (!options->resume)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--checkpoint "
				     "%s has a checkpoint of step %" PRIu64
				     " already; add --resume to go on from it, "
				     "or name another folder",
				     options->checkpoint, newest);
	if (from && newest <= from->newest)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "--resume: another run "
			     "has just saved %s/step-%" PRIu64 "; start again "
			     "to go on from it", options->checkpoint, newest);
}

/* Makes the folder, and syncs it as all that lies in it later. */
static int make_folder(const char *dir)
{
	struct ddp_text text = { 0 };
	char *parent;
	int result;

	if (mkdir(dir, 0777) < 0)
		return errno == EEXIST ? 0 : -1;
	ddp_text_add(&text, "%s/..", dir);
	parent = ddp_text_finish(&text);
	result = parent ? folder_sync(parent) : -1;
	free(parent);
	/* One may be allowed to write there, but not to read. */
	return result < 0 && errno == EACCES ? 0 : result;
}

/* Saved steps are looked at again once no other run can save. */
static int take_folder(const struct options *options, char id[CHECKPOINT_ID],
		       struct ddp_error *error)
{
	const char *dir = options->checkpoint;

	if (!options->resume && refuse_saved(options, error) < 0)
		return -1;
	if (draw_id(id, error) < 0)
		return -1;
	if (make_folder(dir) < 0)
		return ddp_error_set(error, find_path_code(errno),
				     "--checkpoint %s: cannot be written: %s; "
				     "%s", dir, strerror(errno),
				     errno == ENOENT ? "make the folder around "
				     "it first" :
				     "name a folder that you may write");
	if (owner_take(dir, id, error) < 0)
		return -1;
	return refuse_saved(options, error);
}

bool checkpoint_must_stop(struct collective *collective)
{
	char id[CHECKPOINT_ID];
	bool stop;

	checkpoint_meet(collective, &(struct options){ 0 }, id, &stop, NULL);
	return stop;
}

int checkpoint_meet(struct collective *collective,
		    const struct options *options, char id[CHECKPOINT_ID],
		    bool *stop, struct ddp_error *error)
{
	const char *dir = options->plan ? NULL : options->checkpoint;
	struct meeting mine = { .stop = signals_have_come() };
	struct meeting *all = calloc((size_t)collective->size, sizeof(*all));
	int result = 0;

	/* The others wait for this rank, so end them. */
	if (!all)
		collective->table->abort(collective, "no memory to meet");
	if (dir && collective->rank == 0)
		result = take_folder(options, mine.id, error);
	if (result < 0)
		mine.id[0] = '\0';
	collective->table->agree(collective, &mine, all, sizeof(mine));
	memcpy(id, all[0].id, CHECKPOINT_ID);
	*stop = false;
	for (int rank = 0; rank < collective->size; rank++)
		*stop = *stop || all[rank].stop;
	free(all);
	if (dir && id[0] && collective->rank > 0 && !*stop)
		result = see_owner(dir, id, error);
	return result;
}
