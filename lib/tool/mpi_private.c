/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder for Open MPI's shared memory that nobody else can guess or enter. */
#define _GNU_SOURCE
#include "tool/mpi_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/file.h"
#include "util/scan.h"

enum {
	FILE_BYTES = 4 << 20,		/* that Open MPI's files have */
	PATH = DDP_PRIVATE_SIZE,
	NAMES = 8,			/* Open MPI makes one file a rank */
	WAITS = 1000,			/* of a millisecond */
	YOUNG_S = 60,			/* whoever made it locks it by then */
	READ_MS = 1000			/* for whoever reads the last sentence */
};

#define VADER "OMPI_MCA_btl_vader_backing_directory"	/* Open MPI 4 */
#define SM "OMPI_MCA_btl_sm_backing_directory"		/* Open MPI 5 */

static struct folder {
	char path[PATH];
	bool exists;			/* what has this path is ours */
	int lock;			/* it, locked; -1 or 0: not */
	bool hidden;			/* the names were removed once */
	char names[NAMES][NAME_MAX + 1];
	int count;			/* of the names that were removed */
	char (*others)[PATH];		/* [ranks]: of this node */
	int ranks;
} folder;

/* Nobody would look for the full name if there is no Slurm. */
static void begin_name(char name[DDP_PRIVATE_SIZE])
{
	uint64_t job, step, rank;

	if (ddp_scan_variable("SLURM_JOB_ID", 0, UINT32_MAX, &job) == 0 &&
	    ddp_scan_variable("SLURM_STEP_ID", 0, UINT32_MAX, &step) == 0 &&
	    ddp_scan_variable("SLURM_PROCID", 0, UINT32_MAX, &rank) == 0)
		ddp_private_format((uint32_t)job, (uint32_t)step,
				   (uint32_t)rank, name);
	else
		strcpy(name, "slurm-ddp.");
}

/* Tell others that it is in use, until we end. */
static void lock_folder(void)
{
	folder.lock = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder.lock >= 0)
		flock(folder.lock, LOCK_SH | LOCK_NB);
}

/* Returns true if a folder is one of ours that has been there for a while. */
static bool is_old(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
	       (status.st_mode & 0777) == 0700 &&
	       time(NULL) - status.st_mtime > YOUNG_S;
}

/*
 * A rank that was killed can have left its folder, and its agent, if it had one,
 * may have been killed, too. Nobody has that locked. Only Open MPI's files are
 * removed: a folder with others in it stays.
 */
static void remove_left(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (directory && is_old(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		while ((entry = readdir(directory)) != NULL)
			if (strncmp(entry->d_name, "vader_segment.", 14) == 0 ||
			    strncmp(entry->d_name, "sm_segment.", 11) == 0)
				unlinkat(fd, entry->d_name, 0);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
}

static void remove_all_left(const char *parent)
{
	DIR *directory = opendir(parent);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)) != NULL)
		if (strncmp(entry->d_name, "slurm-ddp.", 10) == 0)
			remove_left(dirfd(directory), entry->d_name);
	if (directory)
		closedir(directory);
}

static int make_folder(struct ddp_error *error)
{
	const char *const *parent = ddp_private_parents;
	char name[DDP_PRIVATE_SIZE];

	begin_name(name);
	for (; *parent; parent++) {
		remove_all_left(*parent);
		if (snprintf(folder.path, PATH, "%s/%sXXXXXX", *parent, name) >=
		    PATH)
			continue;
		folder.exists = mkdtemp(folder.path) != NULL;
		if (folder.exists) {
			lock_folder();
			return 0;
		}
	}
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot make a folder "
			     "for MPI's shared memory in /dev/shm or /tmp: %s; "
			     "name one with " VADER " (Open MPI 4) or " SM
			     " (Open MPI 5)", strerror(errno));
}

/*
 * Remove the folder and what is in it; keep the names of the files. From then
 * on the path may be somebody else's.
 */
static void remove_folder(void)
{
	DIR *directory = folder.exists ? opendir(folder.path) : NULL;
	struct dirent *entry;

	if (!directory)
		return;
	while (folder.count < NAMES && (entry = readdir(directory)) != NULL)
		if (unlinkat(dirfd(directory), entry->d_name, 0) == 0)
			strcpy(folder.names[folder.count++], entry->d_name);
	closedir(directory);
	folder.exists = rmdir(folder.path) < 0;
	if (folder.exists)
		return;
	if (folder.lock > 0)
		close(folder.lock);
	folder.lock = -1;
}

static void restore_file(const char *name)
{
	char path[sizeof(folder.path) + NAME_MAX + 1];
	int file;

	snprintf(path, sizeof(path), "%s/%s", folder.path, name);
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file >= 0)
		close(file);
}

/*
 * MPI_Finalize() removes its files by name, and complains of one that is not
 * there. So let it find empty ones.
 */
static void restore_folder(void)
{
	if (folder.count == 0 || folder.exists)
		return;
	folder.exists = mkdir(folder.path, 0700) == 0;
	if (folder.exists)
		lock_folder();
	while (folder.exists && folder.count > 0)
		restore_file(folder.names[--folder.count]);
}

/* Returns false for what somebody else has made once the name was free. */
static bool is_there(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && status.st_uid == geteuid();
}

/*
 * A rank that ends with an error has the launcher kill the others: they are to
 * have removed their folders by then.
 */
static void wait_for_others(void)
{
	int rank = 0;

	for (int waits = 0; waits < WAITS && rank < folder.ranks; waits++) {
		while (rank < folder.ranks && !is_there(folder.others[rank]))
			rank++;
		if (rank < folder.ranks)
			usleep(1000);
	}
	free(folder.others);
	folder.others = NULL;
	folder.ranks = 0;
}

/*
 * Under a small limit on files Open MPI 4 does not fail: a rank waits for ever
 * for a daemon, which takes all memory.
 */
static int check_limit(struct ddp_error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= FILE_BYTES)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "files may not have more "
			     "than %llu bytes: MPI needs %d; raise the limit "
			     "(ulimit -f)", (unsigned long long)limit.rlim_cur,
			     FILE_BYTES);
}

int tool_mpi_open(struct ddp_error *error)
{
	int provided;

	if (check_limit(error) < 0)
		return -1;
	if (!getenv(VADER) && !getenv(SM)) {
		if (make_folder(error) < 0)
			return -1;
		setenv(VADER, folder.path, 1);
		setenv(SM, folder.path, 1);
		/* Remove it also if MPI itself ends the process. */
		atexit(remove_folder);
	}
	MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
	return 0;
}

void tool_mpi_hide(void)
{
	MPI_Comm node;
	int rank, size, none = 0;

	if (folder.hidden)
		return;
	folder.hidden = true;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
			   MPI_INFO_NULL, &node);
	MPI_Comm_rank(node, &rank);
	MPI_Comm_size(node, &size);
	/* A rank that has sent me a message has opened my file for it. */
	for (int away = 1; away < size; away++)
		MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + away) % size, 0, NULL,
			     0, MPI_BYTE, (rank + size - away) % size, 0, node,
			    MPI_STATUS_IGNORE);
	folder.others = calloc((size_t)size, PATH);
	MPI_Allreduce(folder.others ? &size : &none, &folder.ranks, 1, MPI_INT,
		     MPI_MIN, node);
	if (folder.ranks > 0)
		MPI_Allgather(folder.path, PATH, MPI_CHAR, folder.others, PATH,
			     MPI_CHAR, node);
	MPI_Comm_free(&node);
	remove_folder();
}

void tool_mpi_close(void)
{
	restore_folder();
	MPI_Finalize();
	remove_folder();
	wait_for_others();
}

_Noreturn void tool_mpi_abort(const char *program, const char *sentence)
{
	fprintf(stderr, "%s: %s\n", program, sentence);
	ddp_drain_wait(STDERR_FILENO, READ_MS);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}
