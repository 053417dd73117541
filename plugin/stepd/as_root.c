/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that runs as root, in slurmstepd itself: memory is mapped that the tasks
 * share, there is a pause when a task has failed, and the node's agent is told
 * how tasks end, and waited for. Where that was killed, a process that becomes
 * the user tidies up. The only other code of the plugin that runs as root is the
 * parsing of its options and arguments, in options.c, values.c and
 * site.c. None of it reads an environment or, since Linux 5.3, a file (see
 * pidfd.h); of what tasks write it reads two pids, whether the agent has ended
 * by itself, whether it ends them, and whether there are files to tidy up.
 */
#define _GNU_SOURCE
#include "stepd/stepd.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "node/node.h"
#include "node/pidfd.h"
#include "options/options.h"
#include "options/plugin.h"
#include "request/launcher.h"
#include "util/clock.h"

enum {
	SPECIAL_STEPS = 0xfffffffa,	/* batch, interactive, extern, ... */
	PAUSE_NS = 200000000,
	TOLD_MS = 3000,			/* beyond the pause */
	QUIET_MS = 60000,		/* as long as slurmstepd itself waits for
					 * what is left of tasks' output */
	AGENT_MS = 1000,		/* as long as Slurm would sleep */
	TIDY_MS = 10000,		/* a busy node needs more than 1 s */
	KILL_MS = 100,
	NOTE_ROOM = 2048		/* bytes of a note in the kernel */
};

struct ddp_stepd ddp_stepd = {
	.notes = { -1, -1 },
	.error = {
		.code = DDP_ERROR_SYSTEM,
		.text = "Slurm did not tell slurmstepd of this node's tasks",
	},
};

int ddp_step_error(const char *item, spank_err_t why, struct ddp_error *error)
{
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "Slurm does not tell %s (%s)", item,
			     spank_strerror(why));
}

int ddp_step_is_users(spank_t spank, struct ddp_error *error)
{
	uint32_t step_id;
	char **argv = NULL;
	int argc = 0;
	spank_err_t why;

	why = spank_get_item(spank, S_JOB_STEPID, &step_id);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the step id", why, error);
	if (step_id >= SPECIAL_STEPS)
		return 0;
	why = spank_get_item(spank, S_JOB_ARGV, &argc, &argv);
	if (why != ESPANK_SUCCESS)
		return ddp_step_error("the command", why, error);
	return argc < 1 || !ddp_launcher_is_helper(argv[0]);
}

/*
 * Memory for the tasks to share. It has no name, so that nobody else can reach
 * it. Only what is touched of it takes memory, and it is gone with the
 * processes.
 */
static struct ddp_siblings *map_siblings(uint32_t tasks,
					 struct ddp_error *error)
{
	size_t size = sizeof(struct ddp_siblings) + ddp_node_size(tasks);
	struct ddp_siblings *siblings;
	int i;

	if (tasks > DDP_PLACEMENT_MAX) {
		ddp_error_set(error, DDP_ERROR_ARGUMENT,
			      "%u tasks on this node are more than the %d that "
			      "can be placed; start fewer, or use "
			      "--ddp-gpus=off --ddp-cpus=off", tasks,
			      DDP_PLACEMENT_MAX);
		return NULL;
	}
	siblings = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (siblings == MAP_FAILED) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "no memory for %u tasks "
			      "to share: %s", tasks, strerror(errno));
		return NULL;
	}
	siblings->count = tasks;
	for (i = 0; i < DDP_GATE_COUNT; i++)
		sem_init(&siblings->gates[i], 1, 0);
	return siblings;
}

/*
 * Sockets, so that each note stays whole and can have files with it. Tasks'
 * programs do not get them, so that they cannot write to the agent. Nobody waits
 * for room: the agent reads nothing before the program of the task that made it
 * runs, so there is enough for all, beyond net.core.wmem_max if root may have that.
 */
static void open_notes(uint32_t tasks)
{
	int room = (int)tasks * NOTE_ROOM;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, ddp_stepd.notes) == 0 &&
	    setsockopt(ddp_stepd.notes[1], SOL_SOCKET, SO_SNDBUFFORCE, &room,
		       sizeof(room)) < 0)
		setsockopt(ddp_stepd.notes[1], SOL_SOCKET, SO_SNDBUF, &room,
			   sizeof(room));
}

/*
 * Each task later finds in ddp_stepd.error what goes wrong here. Only the tasks
 * know the partition, on which it can depend whether they place at all.
 */
void ddp_root_post_opt(spank_t spank)
{
	if (!ddp_plugin.on || ddp_options_error() ||
	    ddp_step_is_users(spank, NULL) <= 0 ||
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &ddp_stepd.tasks) !=
	    ESPANK_SUCCESS)
		return;
	ddp_stepd.siblings = map_siblings(ddp_stepd.tasks, &ddp_stepd.error);
	if (ddp_stepd.siblings)
		open_notes(ddp_stepd.tasks);
}

/* Returns 0, or -1 if the agent does not get to know. */
static int tell_agent(spank_t spank, int status)
{
	struct ddp_note note = { .kind = DDP_NOTE_END, .status = status };
	int task;

	if (ddp_stepd.notes[1] < 0 ||
	    spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS)
		return -1;
	note.task = (uint32_t)task;
	return send(ddp_stepd.notes[1], &note, sizeof(note),
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/*
 * srun drops what is on its way from the tasks once a step is being killed: the
 * last words of the task that failed, the agent's, or the sentence of a
 * refusal. The pause gives them a head start over the news of the failure.
 * slurmstepd itself does so where other tasks still run on the node.
 *
 * When agents end the tasks, the supervisor has waited for longer than that
 * already. An agent that has lost the supervisor ends them without such a wait,
 * and what tasks said last may be dropped: mostly srun is lost, too.
 */
static void pause_for_words(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const struct ddp_siblings *siblings = ddp_stepd.siblings;

	if (!(siblings && atomic_load(&siblings->agent_kills)))
		nanosleep(&pause, NULL);
}

/*
 * An agent that is slow, on a busy machine, must have told the supervisor of the
 * failure before srun has the step killed for it: the agent may be killed with
 * it, and what slurmstepd then says is the same as for scancel. It answers once
 * it has, or if it has nobody to tell.
 */
static void wait_for_answer(void)
{
	pid_t pid = ddp_stepd.siblings ?
		    atomic_load(&ddp_stepd.siblings->agent) : 0;
	struct pollfd fds[] = {
		{ .fd = ddp_stepd.notes[1], .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
	};

	if (pid > 0)
		fds[1].fd = ddp_pidfd_open(pid);
	if (fds[1].fd < 0)
		return;
	ddp_pidfd_poll(fds, 1, 1, ddp_clock_ms() + TOLD_MS);
	close(fds[1].fd);
}

/*
 * Wait until a process has ended. Returns true if that is of no use any more:
 * nobody has the other end of the socket, or nothing came for a minute.
 */
static bool wait_for_end(pid_t pid)
{
	struct pollfd fds[] = {
		{ .fd = ddp_stepd.notes[1], .events = POLLIN },
		{ .fd = ddp_pidfd_open(pid), .events = POLLIN },
	};
	bool over = false, ended = fds[1].fd < 0;
	char byte;
	int rc;

	while (!over && !ended) {
		rc = ddp_pidfd_poll(fds, 1, 1, ddp_clock_ms() + QUIET_MS);
		if (rc < 0 && errno == EINTR)
			continue;
		over = rc <= 0 || fds[0].revents & POLLHUP;
		ended = fds[1].revents != 0;
		if (!over && fds[0].revents)
			recv(fds[0].fd, &byte, 1, MSG_DONTWAIT);
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return over;
}

/*
 * The agent and the tee end after the last task, and slurmstepd would kill them
 * at once, and with them what srun has not taken yet. Both have the other end of
 * this socket, and nobody else: tasks' programs never get it, and the user cannot
 * trace these two. The tee writes a byte when srun has taken something. If srun
 * takes nothing for a minute, slurmstepd itself would give up, too. Who kills the
 * step kills them. What an agent that was killed has not read holds files that
 * tasks write to, whose end slurmstepd awaits: it goes with the last of the two.
 *
 * With Slurm's contain_spank this is a copy of slurmstepd with the same memory and
 * descriptors of its own, and slurmstepd keeps the agent's end open.
 */
static void wait_for_output(void)
{
	close(ddp_stepd.notes[0]);
	ddp_stepd.notes[0] = -1;
	shutdown(ddp_stepd.notes[1], SHUT_WR);
	if (!wait_for_end(atomic_load(&ddp_stepd.siblings->agent)))
		wait_for_end(atomic_load(&ddp_stepd.siblings->tee));
	close(ddp_stepd.notes[1]);
	ddp_stepd.notes[1] = -1;
}

/*
 * If slurmstepd still finds the agent, which has closed all its files, it sleeps
 * for a whole second. The pid is whatever the user's processes have written; it
 * decides about no more than this wait.
 */
static void wait_for_agent(void)
{
	pid_t pid = atomic_load(&ddp_stepd.siblings->agent);
	struct pollfd agent = { .events = POLLIN };

	agent.fd = ddp_pidfd_open(pid);
	if (agent.fd < 0)
		return;
	ddp_pidfd_poll(&agent, 0, 1, ddp_clock_ms() + AGENT_MS);
	close(agent.fd);
}

static int become_user(uid_t uid, gid_t gid)
{
	return uid == 0 || (setgroups(0, NULL) == 0 &&
			    setresgid(gid, gid, gid) == 0 &&
			    setresuid(uid, uid, uid) == 0) ? 0 : -1;
}

/*
 * Slurm can kill a step with SIGKILL, as scancel has it do, and mpi/pmix for
 * MPI_Abort, up to Slurm 25.11. The agent is then killed, too, and what tasks
 * leave would stay.
 */
static void tidy(spank_t spank, int limit_ms)
{
	struct pollfd done = { .events = POLLIN };
	uid_t uid;
	gid_t gid;
	pid_t pid;

	if (spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS)
		return;
	pid = fork();
	if (pid == 0) {
		if (become_user(uid, gid) == 0) {
			ddp_agent_tidy(ddp_stepd.siblings);
			atomic_store(&ddp_stepd.siblings->agent_done, true);
		}
		_exit(0);
	}
	done.fd = pid < 0 ? -1 : ddp_pidfd_open(pid);
	if (done.fd < 0)
		return;
	if (ddp_pidfd_poll(&done, 0, 1, ddp_clock_ms() + limit_ms) == 0) {
		kill(pid, SIGKILL);
		ddp_pidfd_poll(&done, 0, 1, ddp_clock_ms() + KILL_MS);
	}
	/* One that a file system holds in the kernel stays behind. */
	waitpid(pid, NULL, WNOHANG);
	close(done.fd);
}

static bool had_agent(void)
{
	return ddp_stepd.siblings && atomic_load(&ddp_stepd.siblings->agent) > 0;
}

/* A task makes the files of all before it starts the agent, and may be killed. */
static bool has_files(const struct ddp_siblings *siblings)
{
	const struct ddp_node *node = (const void *)siblings->memory;

	return siblings->count > 0 && node->slots[0].error_file[0] != '\0';
}

static bool agent_left_files(void)
{
	const struct ddp_siblings *siblings = ddp_stepd.siblings;

	return siblings && !atomic_load(&siblings->agent_done) &&
	       (had_agent() || has_files(siblings));
}

void ddp_root_exit(spank_t spank)
{
	if (agent_left_files())
		tidy(spank, TIDY_MS);
}

void ddp_root_task_exit(spank_t spank)
{
	int status, told;

	if (!ddp_plugin.on || ddp_step_is_users(spank, NULL) <= 0 ||
	    spank_get_item(spank, S_TASK_EXIT_STATUS, &status) !=
	    ESPANK_SUCCESS)
		return;
	told = tell_agent(spank, status);
	if (status != 0 && !ddp_stepd.paused) {
		pause_for_words();
		wait_for_answer();
		ddp_stepd.paused = true;
	}
	if (--ddp_stepd.tasks > 0)
		return;
	if (told == 0 && had_agent()) {
		wait_for_output();
		wait_for_agent();
	}
	/*
	 * srun waits for this. ddp_root_exit() does the rest, of which srun waits
	 * for nothing before Slurm 26.05. All cannot be left to it: slurmstepd first
	 * tries for seconds to tell an srun that is gone.
	 */
	if (agent_left_files())
		tidy(spank, AGENT_MS);
}
