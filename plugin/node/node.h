/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin/node is what the tasks of a node, as plugin/stepd prepares them, and
 * their agent share: memory, gates in it, and notes. pidfd.h has descriptors that
 * stand for processes.
 */
#ifndef DDP_NODE_H
#define DDP_NODE_H

#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "place/visible_gpus.h"
#include "place/machine.h"
#include "place/placement.h"
#include "util/error.h"
#include "util/failure.h"
#include "util/file.h"

/* ---- gates */

/*
 * The tasks wait for each other before their programs run, in memory that
 * stepd/as_root.c maps before slurmstepd forks them. Of that,
 * slurmstepd itself reads agent, tee, agent_done and agent_kills alone. A gate is
 * closed until one task opens it; each of the others waits there at most once,
 * and not for ever.
 */

enum { DDP_SIBLINGS_WAIT_S = 10 };

enum ddp_gate {
	DDP_GATE_MACHINE,	/* the node's hardware is known */
	DDP_GATE_SAID,		/* every task has said what it was given */
	DDP_GATE_PLACED,	/* every task's placement is chosen */
	DDP_GATE_COUNT
};

struct ddp_siblings {
	uint32_t count;			/* of tasks */
	atomic_uint arrived, said;	/* each task counts itself once */
	atomic_bool failed;		/* the others notice that soon */
	atomic_int agent;		/* its pid; not positive: there is
					 * none */
	atomic_int tee;			/* the same of the agent's tee */
	atomic_bool agent_done;		/* it has ended by itself, or what it
					 * left was removed */
	atomic_bool agent_kills;	/* it has begun to end all tasks */
	sem_t gates[DDP_GATE_COUNT];
	alignas(max_align_t) unsigned char memory[];	/* zeros to share, at
							 * one address in all */
};

/* Each task calls this once. Returns true for the last that has to. */
bool ddp_siblings_say(struct ddp_siblings *siblings);

void ddp_siblings_open(struct ddp_siblings *siblings, enum ddp_gate gate);

/*
 * Returns 0 if the gate is open, 1 if a sibling has failed, -1 after
 * DDP_SIBLINGS_WAIT_S seconds, not counting those in which this task was
 * stopped. what is not done then completes the error.
 */
int ddp_siblings_wait(struct ddp_siblings *siblings, enum ddp_gate gate,
		      const char *what, struct ddp_error *error);

/* ---- what the tasks and their agent alone read and write of it */

enum {
	DDP_GPUS_SIZE = 256,		/* holds a rank's GPUs, or is cut */
	DDP_VISIBLE_SIZE = 32 + DDP_VIEWS_TEXT_SIZE,
	DDP_RECORD_SIZE = 96 << 10	/* more than a record of 64 GPUs has */
};

enum { DDP_REFUSED = 1 };	/* exit code of a task that has a refusal */

/*
 * The slot of a task, by local rank, in shared memory: what it says, and its
 * answer.
 */
struct ddp_slot {
	uint32_t rank;
	pid_t pid;
	struct ddp_cpuset mask;
	struct ddp_view view;
	struct ddp_placement placement;
	char visible[DDP_VISIBLE_SIZE];	/* "VARIABLE=value" that orders what
					 * it sees; "": none */
	char record[DDP_RECORD_SIZE];	/* its row, as DDP_PLACEMENT has it */
	char gpus[DDP_GPUS_SIZE];	/* its own, on the node: "0,1"; "" */
	char buses[DDP_GPUS_SIZE];	/* and where: "0000:3b:00.0 ..."; "" */
	char error_file[DDP_PRIVATE_SIZE];	/* which the agent reads; "" */
	char error_folder[DDP_PRIVATE_SIZE];	/* a launcher's, for it; "" */
	char refusal[DDP_FAILURE_SIZE];	/* why its program does not start; "" */
	char warning[DDP_FAILURE_SIZE];	/* why ranks may not meet; "" */
	char heartbeat_file[DDP_PRIVATE_SIZE];	/* as error_file; "" */
};

/*
 * The memory that the tasks share. It has what the names of GPUs are resolved
 * by, and nothing else of the machine.
 */
struct ddp_node {
	uint32_t job_id, step_id;	/* by which ranks name folders; not
					 * the component's, as Slurm tells */
	uint32_t gpu_count, part_count;
	struct ddp_gpu gpus[DDP_GPU_MAX];
	struct ddp_gpu_part parts[DDP_GPU_MAX * DDP_GPU_MAX];
	struct ddp_slot slots[];
};

/* Its size for this many tasks. */
static inline size_t ddp_node_size(uint32_t tasks)
{
	return sizeof(struct ddp_node) + tasks * sizeof(struct ddp_slot);
}

/* ---- notes */

/*
 * Notes to the agent, on a socketpair (AF_UNIX, SOCK_SEQPACKET). slurmstepd
 * tells the agent that a task has ended. Each task tells it, before its program
 * starts, where its output goes; the agent passes this on to the tee. END needs no
 * more than the first three members; those of a message that are not sent are 0.
 */

enum {
	DDP_NOTE_FDS = 3,
	DDP_NOTE_LABEL_SIZE = 288	/* "[RANK NODE] " */
};

enum ddp_note_kind {
	DDP_NOTE_END = 1,	/* slurmstepd: task, status; the agent, to the
				 * tee: task */
	DDP_NOTE_OUTPUT,	/* a task: task, stream, way, label, and
				 * descriptors */
	DDP_NOTE_FINISH		/* the agent, to the tee: no task runs */
};

/* The way that a stream's bytes take. */
enum ddp_note_way {
	DDP_NOTE_COPY,		/* its bytes go to Slurm as they are */
	DDP_NOTE_LINES,		/* whole lines do, with the label in front */
	DDP_NOTE_DROP,		/* nothing does */
	DDP_NOTE_FILE		/* it is a file; only its end matters */
};

/*
 * Descriptors of OUTPUT: where the tee reads, where Slurm reads and, if there
 * is one, the log; for DDP_NOTE_FILE the file, to be read.
 */
struct ddp_note {
	uint32_t kind, task;	/* task: its local rank */
	int32_t status;		/* as of wait(2) */
	uint32_t stream;	/* STDOUT_FILENO or STDERR_FILENO */
	uint32_t way;
	char label[DDP_NOTE_LABEL_SIZE];
};

/*
 * Send a message and count descriptors, which stay open here. Waits for room,
 * unless the socket is SOCK_NONBLOCK. Returns 0, or -1 with errno.
 */
int ddp_note_send(int to, const struct ddp_note *note, const int *fds,
		  int count);

/*
 * Receive one, with the descriptors that came with it; -1 stands for those that
 * did not. Never waits. Returns 1; 0 at the end; -1 with errno.
 */
int ddp_note_receive(int from, struct ddp_note *note, int fds[DDP_NOTE_FDS]);

#endif
