/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each task does at a time when none makes progress. What /proc tells is
 * read at once. A helper process runs the programs that know stacks, which may
 * take long; it is killed when its time is over.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "proc/stack_text.h"
#include "util/file.h"

enum {
	STACKS_MAX = 8,		/* of a node */
	STACKS_MS = 3000,	/* for all of them */
	PRINTED_SIZE = 16384,	/* what is read of a program */
	DEPTH = 8		/* of processes that only wait for another */
};

/* What a process waits in, and how deep its stack is. */
static uint32_t read_place(pid_t pid, char place[DDP_KERNEL_PLACE_SIZE])
{
	char *wchan = ddp_file_read_of(pid, "wchan");
	char *call = ddp_file_read_of(pid, "syscall");
	char *stat = ddp_file_read_of(pid, "stat");
	uint32_t depth = ddp_kernel_read_depth(stat, call);

	ddp_kernel_read_place(wchan, call, place);
	free(wchan);
	free(call);
	free(stat);
	return depth;
}

static bool waits_for_child(pid_t pid)
{
	char place[DDP_KERNEL_PLACE_SIZE], call[DDP_KERNEL_PLACE_SIZE];

	read_place(pid, place);
	snprintf(call, sizeof(call), "system call %d", SYS_wait4);
	return strcmp(place, "do_wait") == 0 || strcmp(place, call) == 0;
}

/* Returns true if the child is in a container, and its parent is outside. */
static bool has_contained(pid_t parent, pid_t child)
{
	char path[64];
	struct stat outside, inside;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)parent);
	if (stat(path, &outside) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child);
	return stat(path, &inside) == 0 && outside.st_ino != inside.st_ino;
}

/* The only child of a process; NULL if it has none, or several. */
static const struct ddp_process *find_child(const struct ddp_processes *all,
					    pid_t pid)
{
	const struct ddp_process *child = NULL;
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->data[i].parent != pid)
			continue;
		if (child)
			return NULL;
		child = &all->data[i];
	}
	return child;
}

/*
 * Returns true if the process is the first of a container that podman has started:
 * its parent is no task's, and is outside.
 */
static bool is_adopted(const struct ddp_processes *all,
		       const struct ddp_process *process)
{
	size_t i;

	for (i = 0; process->apart && i < all->count; i++)
		if (all->data[i].pid == process->parent)
			return has_contained(process->parent, process->pid);
	return false;
}

/*
 * The task's process; the command's where that is a shell that waits, or has put
 * the command into a container, or had it put there.
 */
static const struct ddp_process *find_main(const struct ddp_processes *all,
					   const struct ddp_slot *slot)
{
	const struct ddp_process *process = NULL, *child;
	int depth;
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->data[i].pid == slot->pid)
			process = &all->data[i];
	for (i = 0; i < all->count; i++)
		if (all->data[i].rank == slot->rank &&
		    is_adopted(all, &all->data[i]))
			process = &all->data[i];
	for (depth = 0; process && depth < DEPTH; depth++) {
		child = find_child(all, process->pid);
		if (!child || process->state != 'S' ||
		    (!waits_for_child(process->pid) &&
		     !has_contained(process->pid, child->pid)))
			break;
		process = child;
	}
	return process;
}

/* What polls is now here, now there: that tells nothing. */
static void describe(struct ddp_agent *agent, uint32_t task,
		     const struct ddp_processes *all, struct ddp_wire *detail)
{
	const struct ddp_slot *slot = &agent->node->slots[task];
	const struct ddp_rank_progress *rank = &agent->progress.ranks[task];
	const struct ddp_process *process = find_main(all, slot);
	char place[DDP_KERNEL_PLACE_SIZE] = "";

	detail->kind = DDP_WIRE_DETAIL;
	detail->rank = slot->rank;
	detail->idle_ms = rank->idle_ms;
	detail->beats = rank->beats;
	detail->status = process ? (uint32_t)process->state : '?';
	detail->pid = process ? (uint32_t)process->pid : 0;
	if (process && rank->works && !strchr("TtD", process->state))
		detail->status = 'R';
	else if (process)
		detail->depth = read_place(process->pid, place);
	detail->behind = ddp_ras_find_behind(agent, task, all);
	memcpy(detail->message, place, sizeof(place));
}

/* Whether a program of this name is on the tasks' PATH, and where. */
static bool find_program(const struct ddp_agent *agent, const char *name,
			 char path[PATH_MAX])
{
	const char *folders = agent->path;

	while (ddp_path_next(&folders, name, path))
		if (*path == '/' && access(path, X_OK) == 0)
			return true;
	return false;
}

static bool is_python(pid_t pid)
{
	char link[64], path[PATH_MAX] = "", *name;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		return false;
	name = strrchr(path, '/');
	return name && strncmp(name, "/python", strlen("/python")) == 0;
}

/* Returns true if the process finds another file at this path than we do. */
static bool is_other_file(pid_t pid, const char *path)
{
	char there[PATH_MAX + 32];
	struct stat theirs, ours;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path);
	return stat(there, &theirs) == 0 &&
	       (stat(path, &ours) < 0 || theirs.st_ino != ours.st_ino ||
		theirs.st_dev != ours.st_dev);
}

/*
 * Returns true if code of the process is known to be of files that only its
 * container has: eu-stack would read ours instead, and name wrong functions.
 */
static bool has_other_files(pid_t pid)
{
	char *text = ddp_file_read_of(pid, "maps"), *line, *save, *path;
	bool other = false;

	line = text ? strtok_r(text, "\n", &save) : NULL;
	for (; line && !other; line = strtok_r(NULL, "\n", &save)) {
		path = strchr(line, '/');
		other = path && strstr(line, " r-xp ") &&
			is_other_file(pid, path);
	}
	free(text);
	return other;
}

/* In a process of its own: the first of these programs that can be used. */
__attribute__((noreturn)) static void run_program(const struct ddp_agent *agent,
						  pid_t pid)
{
	char path[PATH_MAX], digits[16], *variable;
	char *const environment[] = {
		asprintf(&variable, "PATH=%s", agent->path) < 0 ? NULL :
			variable, NULL,
	};

	snprintf(digits, sizeof(digits), "%d", (int)pid);
	if (is_python(pid) && find_program(agent, "py-spy", path))
		execle(path, "py-spy", "dump", "--nonblocking", "--pid",
		       digits, NULL, environment);
	if (has_other_files(pid)) {
		printf("    (no stack: its files are those of a container)\n");
		fflush(stdout);
		_exit(0);
	}
	if (find_program(agent, "eu-stack", path))
		execle(path, "eu-stack", "-1", "-n", "32", "-p", digits, NULL,
		       environment);
	if (find_program(agent, "gdb", path))
		execle(path, "gdb", "-nx", "-batch", "-iex",
		       "set print frame-arguments none", "-p", digits, "-ex",
		       "bt 32", NULL, environment);
	_exit(127);
}

/* Returns where what it prints can be read; -1. */
static int start_program(const struct ddp_agent *agent, pid_t pid)
{
	int ends[2];
	sigset_t none;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		sigemptyset(&none);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(DDP_AGENT_NULL, STDIN_FILENO);
		dup2(DDP_AGENT_NULL, STDERR_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		ddp_close_from(STDERR_FILENO + 1);
		sigprocmask(SIG_SETMASK, &none, NULL);
		run_program(agent, pid);
	}
	close(ends[1]);
	if (child > 0)
		return ends[0];
	close(ends[0]);
	return -1;
}

/*
 * Read until each has closed its end. A slow one must not cost the others their
 * stacks, so that each is understood as it ends.
 */
static void read_programs(struct pollfd *fds, struct ddp_wire **of,
			  uint32_t count)
{
	static char printed[STACKS_MAX][PRINTED_SIZE];
	size_t lengths[STACKS_MAX] = { 0 };
	uint32_t i, open = 0;
	ssize_t got;

	for (i = 0; i < count; i++)
		open += fds[i].fd >= 0;
	while (open > 0 && poll(fds, count, -1) >= 0) {
		open = 0;
		for (i = 0; i < count; i++) {
			if (fds[i].fd >= 0 && fds[i].revents) {
				got = read(fds[i].fd, printed[i] + lengths[i],
					   PRINTED_SIZE - 1 - lengths[i]);
				lengths[i] += got > 0 ? (size_t)got : 0;
				if (got <= 0) {
					fds[i].fd = -1;
					ddp_stack_read(printed[i], of[i]->tail);
				}
			}
			open += fds[i].fd >= 0;
		}
	}
}

/* The helper. What it writes of a detail is a text at any time. */
__attribute__((noreturn)) static void find_stacks(struct ddp_agent *agent)
{
	struct ddp_wire *details = agent->progress.details;
	struct ddp_wire *of[STACKS_MAX];
	struct pollfd fds[STACKS_MAX];
	uint32_t i, count = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < agent->count && count < STACKS_MAX; i++) {
		if (!details[i].pid)
			continue;
		of[count] = &details[i];
		fds[count] = (struct pollfd){
			.fd = start_program(agent, (pid_t)details[i].pid),
			.events = POLLIN,
		};
		count++;
	}
	read_programs(fds, of, count);
	_exit(0);
}

static size_t get_size(const struct ddp_agent *agent)
{
	return agent->count * sizeof(struct ddp_wire);
}

void ddp_explain_begin(struct ddp_agent *agent)
{
	struct ddp_progress *progress = &agent->progress;
	struct ddp_processes all = { 0 };
	struct ddp_wire *details;
	uint32_t i;

	if (progress->details || !progress->ranks)
		return;
	details = mmap(NULL, get_size(agent), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (details == MAP_FAILED)
		return;
	ddp_step_find(agent, &all);
	for (i = 0; i < agent->count; i++)
		if (!agent->tasks[i].ended && !agent->tasks[i].gone_ns)
			describe(agent, i, &all, &details[i]);
	free(all.data);
	progress->details = details;
	progress->until_ms = ddp_clock_ms() + STACKS_MS;
	progress->helper = fork();
	if (progress->helper == 0)
		find_stacks(agent);
	if (progress->helper < 0)
		progress->helper = 0;
}

/* A program that is killed as it attaches can leave its rank stopped. */
static void resume(const struct ddp_wire *detail)
{
	struct ddp_kernel_process process = { .state = '?' };
	char *text;

	if (!detail->pid || detail->status == 'T' || detail->status == 't')
		return;
	text = ddp_file_read_of((pid_t)detail->pid, "stat");
	if (text && ddp_kernel_read_process(text, &process) == 0 &&
	    process.state == 'T')
		kill((pid_t)detail->pid, SIGCONT);
	free(text);
}

void ddp_explain_serve(struct ddp_agent *agent)
{
	struct ddp_progress *progress = &agent->progress;
	bool late = ddp_clock_ms() >= progress->until_ms;
	uint32_t i;

	if (!progress->details)
		return;
	if (progress->helper && late)
		kill(progress->helper, SIGKILL);
	if (progress->helper &&
	    waitpid(progress->helper, NULL, late ? 0 : WNOHANG) == 0)
		return;
	progress->helper = 0;
	for (i = 0; i < agent->count; i++) {
		if (!progress->details[i].kind)
			continue;
		if (late)
			resume(&progress->details[i]);
		ddp_talk_send(agent, &progress->details[i]);
	}
	munmap(progress->details, get_size(agent));
	progress->details = NULL;
}
