/* SPDX-License-Identifier: BSD-3-Clause */
/* srun as a child: its start, its signals, its end. */
#define _GNU_SOURCE
#include "supervisor/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/threads.h"
#include "util/clock.h"
#include "util/file.h"
#include "verdict/times.h"

enum {
	TWICE_MS = 1500,	/* srun counts interrupts in one second */
	SETTLE_MS = 20		/* whoever gets a signal has it by then */
};

static void fill_signals(sigset_t *set)
{
	static const int signals[] = {
		SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2,
	};
	size_t i;

	sigemptyset(set);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(set, signals[i]);
	/* srun's own, with a number of the step that it launches */
	sigaddset(set, SIGRTMIN);
}

/* What a supervisor does with signals, until its srun is over. */
static const struct {
	int signal;
	void (*handler)(int);
} handled[DDP_CHILD_HANDLED] = {
	/* The terminal stops the child, whose stop then is ours. */
	{ SIGTSTP, SIG_IGN },
	{ SIGTTIN, SIG_IGN },
	{ SIGTTOU, SIG_IGN },
	{ SIGPIPE, SIG_IGN },
	/* Where it is ignored, no child has a status. */
	{ SIGCHLD, SIG_DFL },
};

static void handle_signals(struct ddp_child *child)
{
	struct sigaction ours = { .sa_flags = 0 };
	size_t i;

	for (i = 0; i < DDP_CHILD_HANDLED; i++) {
		ours.sa_handler = handled[i].handler;
		sigaction(handled[i].signal, &ours, &child->before[i]);
	}
}

static void restore_signals(const struct ddp_child *child)
{
	size_t i;

	for (i = 0; i < DDP_CHILD_HANDLED; i++)
		sigaction(handled[i].signal, &child->before[i], NULL);
}

/*
 * A supervisor that dies takes srun with it, which then ends the step, and
 * where it has none yet, takes its request back.
 */
static void become_child(pid_t parent, const int pipes[2],
			 const struct ddp_child *child)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	restore_signals(child);
	if (getppid() != parent)
		_exit(1);
	if (pipes[1] >= 0)
		dup2(pipes[1], STDERR_FILENO);
}

/*
 * A process of our group, too, that only sleeps: it has what is sent to the
 * whole group, and nothing that is sent to us alone. Signals stay blocked.
 */
static pid_t start_mirror(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid > 0 ? pid : 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "ddp-mirror");
	ddp_close_from(0);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static void end_mirror(pid_t mirror)
{
	if (mirror > 0 && kill(mirror, SIGKILL) == 0)
		waitpid(mirror, NULL, 0);
}

/*
 * The signals that a process has, but has not taken, as a mask; 0 also where
 * that cannot be known.
 */
static uint64_t read_pending(pid_t pid)
{
	uint64_t mask = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (pid > 0)
		ddp_threads_read(path, "\nShdPnd:", &mask);
	return mask;
}

int ddp_child_block(struct ddp_error *error)
{
	sigset_t set;

	fill_signals(&set);
	return ddp_threads_block(&set, error);
}

int ddp_child_start(struct ddp_child *child, int *piped)
{
	pid_t parent = getpid();
	int pipes[2] = { -1, -1 };
	sigset_t set;

	fill_signals(&set);
	if (piped && pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	sigprocmask(SIG_SETMASK, &set, NULL);
	*child = (struct ddp_child){
		.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.answer = -1,
	};
	handle_signals(child);
	child->pid = child->signals < 0 ? -1 : fork();
	if (child->pid < 0)
		return -1;
	if (child->pid == 0) {
		become_child(parent, pipes, child);
		return 0;
	}
	prctl(PR_SET_NAME, "ddp-supervisor");
	child->mirror = start_mirror();
	if (piped) {
		close(pipes[1]);
		fcntl(pipes[0], F_SETFL, O_NONBLOCK);
		*piped = pipes[0];
	}
	return 1;
}

/*
 * Whoever continues us may have continued srun, too, as a shell's fg does, if
 * perhaps a moment later. A second SIGCONT srun would report once more.
 */
static void continue_child(const struct ddp_child *child)
{
	siginfo_t info = { .si_pid = 0 };

	usleep(1000 * SETTLE_MS);
	if (waitid(P_PID, (id_t)child->pid, &info, WCONTINUED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		kill(child->pid, SIGCONT);
}

/*
 * Wait for the next one of which there is something to tell; 0: there is none.
 * Before a leader is waited for, nobody else can have its number: what it has
 * started, and left behind, is ended then.
 */
static pid_t wait_for_next(const struct ddp_child *child, int *status)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG |
		   WNOWAIT) < 0 || info.si_pid == 0)
		return 0;
	if (info.si_pid == child->asker && info.si_code != CLD_STOPPED)
		kill(-info.si_pid, SIGKILL);
	return waitpid(info.si_pid, status, WNOHANG | WUNTRACED);
}

/*
 * The child has stopped. We ignore the signals of a terminal, and so stop after it
 * does, and continue it when somebody continues us. Whoever sends SIGSTOP sends
 * SIGCONT, too, to each process that got it: so we wait for the child, unless a
 * signal tells it to end.
 */
static void stop(const struct ddp_child *child, int signal)
{
	siginfo_t info = { .si_pid = 0 };

	if (signal != SIGSTOP) {
		raise(SIGSTOP);
		continue_child(child);
		return;
	}
	while (!ddp_child_was_told(child) &&
	       waitid(P_PID, (id_t)child->pid, &info,
		      WCONTINUED | WEXITED | WNOWAIT | WNOHANG) == 0 &&
	       info.si_pid == 0)
		usleep(1000 * SETTLE_MS);
	if (info.si_pid == 0)
		continue_child(child);
}

/* SIGCHLD may have been for several. */
static void wait_for_all(struct ddp_child *child)
{
	int status;
	pid_t pid;

	while ((pid = wait_for_next(child, &status)) > 0) {
		if (pid == child->pid && WIFSTOPPED(status)) {
			stop(child, WSTOPSIG(status));
		} else if (pid == child->pid) {
			child->ended = true;
			child->status = status;
		} else if (pid == child->mirror && !WIFSTOPPED(status)) {
			child->mirror = 0;
		} else if (pid == child->asker && !WIFSTOPPED(status)) {
			child->asker = 0;
		} else if (pid == child->helper && !WIFSTOPPED(status)) {
			child->helper = 0;
			child->answer = WIFEXITED(status) ?
				WEXITSTATUS(status) : 255;
		}
	}
}

/* Whether this signal makes srun end the step. */
static bool is_end(struct ddp_child *child, uint32_t signal)
{
	int64_t before_ns = child->interrupted_ns;

	if (signal != SIGINT)
		return signal == SIGTERM || signal == SIGHUP ||
		       signal == SIGQUIT;
	child->interrupted_ns = ddp_clock_ns();
	return before_ns && child->interrupted_ns - before_ns < ms(TWICE_MS);
}

static void take_signal(struct ddp_child *child,
			const struct signalfd_siginfo *info)
{
	uint64_t mask = UINT64_C(1) << (info->ssi_signo - 1);

	if (is_end(child, info->ssi_signo))
		child->told_ms = ddp_clock_ms();
	if (!child->waits)
		child->waits_ms = ddp_clock_ms();
	child->waits = true;
	/* What the kernel sends, a terminal has sent to both. */
	if (info->ssi_code > 0)
		return;
	child->again |= child->taken & mask;
	child->taken |= mask;
}

void ddp_child_tell_launch(pid_t supervisor,
			   const struct ddp_child_launch *launch)
{
	const uint32_t numbers[] = {
		launch->job_id, launch->step_id, launch->tasks,
	};
	union sigval value;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		value.sival_int = (int)numbers[i];
		/* Whose child we are after its end must not get one. */
		if (getppid() != supervisor ||
		    sigqueue(supervisor, SIGRTMIN, value) < 0)
			return;
	}
}

/* Queued signals of one number arrive in order. */
static void take_launch(struct ddp_child *child,
			const struct signalfd_siginfo *info)
{
	uint32_t *numbers[] = {
		&child->launch.job_id, &child->launch.step_id,
		&child->launch.tasks,
	};
	const int count = sizeof(numbers) / sizeof(numbers[0]);

	if (info->ssi_pid != (uint32_t)child->pid ||
	    child->launch_told == count)
		return;
	*numbers[child->launch_told++] = (uint32_t)info->ssi_int;
	if (child->launch_told == count)
		child->launched_ms = ddp_clock_ms();
}

/* Returns whether there was any of others. */
static bool take_signals(struct ddp_child *child)
{
	struct signalfd_siginfo info;
	bool any = false;

	while (read(child->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (info.ssi_signo == (uint32_t)SIGRTMIN) {
			take_launch(child, &info);
			continue;
		}
		take_signal(child, &info);
		any = true;
	}
	return any;
}

static void pass(const struct ddp_child *child, uint64_t passes)
{
	int signal;

	for (signal = 1; passes && !child->ended; signal++, passes >>= 1)
		if (passes & 1)
			kill(child->pid, signal);
}

/*
 * What the mirror has, too, srun has got by itself. The next mirror is there
 * before this one goes, so that nothing comes between the two; what comes while
 * both are there only this one can tell, later. One that was sent twice to us
 * alone srun gets twice.
 */
static void settle(struct ddp_child *child)
{
	pid_t next = start_mirror();
	uint64_t passes;

	child->waits_ms = ddp_clock_ms();
	if (take_signals(child) || read_pending(next)) {
		end_mirror(next);
		return;
	}
	passes = child->taken & ~read_pending(child->mirror);
	end_mirror(child->mirror);
	child->mirror = next;
	pass(child, passes);
	child->taken = passes & child->again;
	child->again = 0;
	child->waits = child->taken != 0;
}

void ddp_child_read(struct ddp_child *child)
{
	take_signals(child);
	wait_for_all(child);
}

void ddp_child_pass(struct ddp_child *child)
{
	if (!child->waits || ddp_clock_ms() - child->waits_ms < SETTLE_MS)
		return;
	/* One more would be lost in the one that srun has not taken yet. */
	if (child->taken & read_pending(child->pid))
		return;
	settle(child);
	/* It takes SIGCHLD, too. */
	wait_for_all(child);
}

/*
 * Starts a process that leads a group of its own, ends with the supervisor, and
 * writes there. Returns 0 if there can be none.
 */
static pid_t start_group(int (*run)(const void *), const void *argument, int out)
{
	pid_t parent = getpid(), pid = fork();

	/* Whoever is first: from now on the group can be ended. */
	if (pid >= 0)
		setpgid(pid, pid);
	if (pid != 0)
		return pid > 0 ? pid : 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	/* A connection must not outlive the supervisor. */
	ddp_close_from(STDERR_FILENO + 1);
	_exit(getppid() == parent ? run(argument) : 1);
}

void ddp_child_help(struct ddp_child *child, int (*run)(const void *),
		    const void *argument)
{
	ddp_child_end(&child->helper);
	child->answer = -1;
	child->helper = start_group(run, argument, STDOUT_FILENO);
}

int ddp_child_ask(struct ddp_child *child, int (*run)(const void *),
		  const void *argument)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	child->asker = start_group(run, argument, pipes[1]);
	close(pipes[1]);
	if (child->asker == 0) {
		close(pipes[0]);
		return -1;
	}
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	return pipes[0];
}

void ddp_child_end(pid_t *leader)
{
	if (*leader > 0)
		kill(-*leader, SIGKILL);
	*leader = 0;
}

bool ddp_child_was_told(const struct ddp_child *child)
{
	sigset_t pending;

	sigpending(&pending);
	return child->told_ms || sigismember(&pending, SIGINT) ||
	       sigismember(&pending, SIGTERM) ||
	       sigismember(&pending, SIGHUP) || sigismember(&pending, SIGQUIT);
}

void ddp_child_clear(struct ddp_child *child)
{
	end_mirror(child->mirror);
	restore_signals(child);
	close(child->signals);
}
