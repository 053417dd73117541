/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether tasks make progress: what each has printed, its heartbeats, what it
 * has read and written of files, and the CPU time of it and its children, where
 * that is no waiting in disguise. slurm-ddp(7) has these rules for users.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state.h"
#include "layout/vars.h"
#include "options/plugin.h"
#include "util/file.h"

enum {
	SAMPLE_MS = 1000,
	SAMPLE_MAX_MS = 2000	/* what one sample counts at most: the rest was
				 * spent frozen */
};

enum {
	STORED_MIN = 1 << 20,	/* bytes in a second: a log is less */
	CPU_PERCENT = 10,	/* what only looks whether there is news uses
				 * less */
	RAN_PER_MILLE = 2,	/* at least, where there are too few CPUs */
	SOON_MS = 100
};

static uint64_t read_beats(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
		      O_CLOEXEC);
	struct ddp_heartbeat heartbeat;
	struct stat status;
	uint64_t beats = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_uid == geteuid() &&
	    pread(fd, &heartbeat, sizeof(heartbeat), 0) == sizeof(heartbeat))
		beats = heartbeat.beats;
	close(fd);
	return beats;
}

/* Bytes that a process has moved to and from disks and file systems. */
static uint64_t read_stored(pid_t pid)
{
	char *text = ddp_file_read_of(pid, "io");
	uint64_t stored = ddp_kernel_read_io(text, "read_bytes") +
			  ddp_kernel_read_io(text, "write_bytes");

	free(text);
	return stored;
}

static void add_threads(pid_t pid, struct ddp_kernel_threads *threads)
{
	char path[64], *text;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat",
			 (int)pid, entry->d_name);
		text = ddp_file_read(path);
		ddp_kernel_add_thread(threads, (pid_t)atol(entry->d_name),
				      text);
		free(text);
	}
	if (dir)
		closedir(dir);
}

static bool does_poll(pid_t pid)
{
	char *text = ddp_file_read_of(pid, "maps");
	bool does = text && ddp_kernel_polls(text);

	free(text);
	return does;
}

static struct ddp_rank_progress look(struct ddp_agent *agent, uint32_t task,
				     const struct ddp_processes *all)
{
	const struct ddp_slot *slot = &agent->node->slots[task];
	struct ddp_rank_progress now = {
		.beats = read_beats(slot->heartbeat_file),
		.printed = ddp_tee_printed(agent->tee, task),
	};
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->data[i].rank != slot->rank)
			continue;
		now.cpu += all->data[i].cpu;
		if (agent->progress.ranks[task].idle_ms > 0)
			add_threads(all->data[i].pid, &now.threads);
		now.stored += read_stored(all->data[i].pid);
	}
	return now;
}

/* Once a process polls, it stays so. */
static bool polls(const struct ddp_agent *agent, uint32_t task,
		  const struct ddp_processes *all)
{
	size_t i;

	if (agent->progress.ranks[task].polls)
		return true;
	for (i = 0; i < all->count; i++)
		if (all->data[i].rank == agent->node->slots[task].rank &&
		    does_poll(all->data[i].pid))
			return true;
	return false;
}

/* What ends takes its share with it, so that sums can become less. */
static bool is_more(uint64_t now, uint64_t before, uint64_t by)
{
	return now > before && now - before >= by;
}

/* By the time that a rank and its children have run. */
static bool has_run(const struct ddp_rank_progress *now,
		    const struct ddp_rank_progress *before, int64_t passed_ms)
{
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK) * (uint64_t)passed_ms *
			 CPU_PERCENT / 100000;

	return is_more(now->cpu, before->cpu, ticks > 0 ? ticks : 1);
}

/* Whether it would have, but had to wait for a CPU. */
static bool is_starved(const struct ddp_rank_progress *now,
		       const struct ddp_rank_progress *before,
		       int64_t passed_ms)
{
	struct ddp_kernel_share share =
		ddp_kernel_find_share(&before->threads, &now->threads);
	uint64_t passed_ns = (uint64_t)passed_ms * 1000000;

	return share.ran_ns > passed_ns / 1000 * RAN_PER_MILLE &&
	       share.ran_ns + share.waited_ns > passed_ns / 100 * CPU_PERCENT;
}

static void look_again(struct ddp_agent *agent, uint32_t task,
		       const struct ddp_processes *all, int64_t passed_ms)
{
	struct ddp_rank_progress *rank = &agent->progress.ranks[task];
	struct ddp_rank_progress now = look(agent, task, all);
	bool moved;

	now.works = has_run(&now, rank, passed_ms) ||
		    is_starved(&now, rank, passed_ms);
	moved = now.beats != rank->beats || now.printed != rank->printed ||
		is_more(now.stored, rank->stored, STORED_MIN);
	now.polls = rank->polls;
	if (!moved && now.works && !now.beats) {
		now.polls = polls(agent, task, all);
		moved = !now.polls;
	}
	if (passed_ms > SAMPLE_MAX_MS)
		passed_ms = SAMPLE_MAX_MS;
	now.idle_ms = moved ? 0 : rank->idle_ms + (uint32_t)passed_ms;
	free(rank->threads.data);
	*rank = now;
}

static bool runs(const struct ddp_agent *agent, uint32_t task)
{
	return !agent->tasks[task].ended && !agent->tasks[task].gone_ns;
}

static void sample(struct ddp_agent *agent, int64_t now_ms)
{
	struct ddp_progress *progress = &agent->progress;
	struct ddp_wire pulse = {
		.kind = DDP_WIRE_PULSE, .idle_ms = UINT32_MAX,
	};
	int64_t passed_ms = now_ms - progress->sampled_ms;
	struct ddp_processes all = { 0 };
	uint32_t i;

	ddp_step_find(agent, &all);
	for (i = 0; i < agent->count; i++) {
		if (!runs(agent, i))
			continue;
		look_again(agent, i, &all, passed_ms);
		if (progress->ranks[i].idle_ms < pulse.idle_ms)
			pulse.idle_ms = progress->ranks[i].idle_ms;
	}
	free(all.data);
	progress->sampled_ms = now_ms;
	progress->next_ms = ddp_clock_ms() + SAMPLE_MS;
	ddp_talk_send(agent, &pulse);
	ddp_ras_begin(agent, pulse.idle_ms);
}

static bool is_on(const struct ddp_agent *agent)
{
	return ddp_plugin.watchdog_s && agent->talk.state == DDP_TALK_ON &&
	       agent->left > 0 && agent->kill_ms == DDP_CLOCK_NEVER;
}

int64_t ddp_progress_deadline(const struct ddp_agent *agent)
{
	int64_t soon_ms;

	if (!is_on(agent))
		return DDP_CLOCK_NEVER;
	soon_ms = ddp_clock_ms() + SOON_MS;
	return (agent->progress.details || agent->progress.ras.fd > 0) &&
	       soon_ms < agent->progress.next_ms ?
		soon_ms : agent->progress.next_ms;
}

void ddp_progress_serve(struct ddp_agent *agent)
{
	struct ddp_progress *progress = &agent->progress;
	int64_t now_ms = ddp_clock_ms();

	if (!is_on(agent))
		return;
	if (!progress->ranks) {
		progress->ranks = calloc(agent->count,
					 sizeof(*progress->ranks));
		progress->sampled_ms = now_ms;
	}
	ddp_ras_serve(agent);
	if (progress->ranks && now_ms >= progress->next_ms)
		sample(agent, now_ms);
	ddp_explain_serve(agent);
}
