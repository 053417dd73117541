/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times by which a step is watched over, in milliseconds: why each is what it
 * is, and what happens if it is too short (-) or too long (+). Those of a file
 * that only it needs, such as the sizes of its rounds, stay there.
 */
#ifndef DDP_VERDICT_TIMES_H
#define DDP_VERDICT_TIMES_H

#include <stdint.h>

/* The clock is ddp_clock_ns(), as on the wire. */
static inline int64_t ms(int64_t count)
{
	return count * 1000000;
}

enum {
	/* ---- who was first (verdict.c) */

	/* Ranks that meet the same mistake fail one after the other.
	 * - one is named where all failed alike; + the verdict is later. */
	DDP_ALIKE_MS = 250,
	/* Others may have sent a signal, or not have started, and slurmstepd
	 * tells of ends one by one. - a rank that Slurm has killed is named, or
	 * one where none could be executed; + later. */
	DDP_SENT_MS = 500,
	/* Slurm ends others 200 ms after a rank or later: stepd/as_root.c holds
	 * it up. - a step that was cancelled blames a rank; + a rank that is
	 * killed alone is taken for that. */
	DDP_TOGETHER_MS = 150,
	/* In which Slurm kills all of a node. - an agent that was killed with
	 * its ranks counts as watching; + one that ended by chance does not. */
	DDP_AT_ONCE_MS = 2,
	/* The same on a busy machine; and the kernel ends a rank for lack of
	 * memory. -, + as above, where a rank has ended well. */
	DDP_SOON_MS = 500,
	/* A rank has ended well without leaving MPI: PMIx tells Slurm of that a
	 * second later, and a busy slurmctld takes time to end the others. - one
	 * of these is named; + a rank that a user ends by SIGTERM is not. */
	DDP_MISSED_MS = 10000,
	/* torchrun checks its ranks, up to PyTorch 2.1 every 5 s, and tells whole
	 * seconds. - an order by chance; + none where one is known. */
	DDP_CHECKS_S = 6,
	/* Nodes are heard of once a second. - several lines; + those that were
	 * lost later are said to be lost with the first. */
	DDP_LOST_TOGETHER_MS = 1500,

	/* ---- waiting for better evidence (decide.c), from when the failure is
	 * heard of */

	/* The machine of an agent does not answer: the link's silence, and a
	 * little. - a rank is named that missed a lost node; + later. */
	DDP_NODE_MS = 10000,
	/* Python takes time to end after its error. - the peer that missed it is
	 * named; + later. */
	DDP_ERROR_MS = 1500,
	/* An agent answers a PING sent after the failure: all that it had to
	 * tell has come. One that has not by then is silent (DDP_SILENT_MS).
	 * - an earlier failure on a busy node is not known yet; + later. */
	DDP_FENCE_MS = 4000,
	/* srun ends when others have ended its step. - they are taken for a
	 * user; + later. */
	DDP_OTHERS_END_MS = 5000,
	/* slurmctld's answer, or a slow agent's; and the same when srun has
	 * ended. - a cancelled job's ranks are blamed; + later. */
	DDP_ANSWER_MS = 1500,
	DDP_LATE_ANSWER_MS = 5000,

	/* ---- for how long one thing explains another */

	/* Slurm has said that the step is cancelled: more than KillWait usually
	 * is. - a rank that takes its time to end is blamed; + a line of another
	 * step hides a failure. */
	DDP_SAID_MS = 40000,
	/* srun got a signal. -, + as above. */
	DDP_TOLD_MS = 10000,
	/* Slurm ends a step after MPI_Abort. - the abort is not named; + an
	 * abort of a step that a rank has started is. */
	DDP_ABORT_MS = 10000,
	/* Before that an agent that is killed with the step has left. */
	DDP_ABORT_BEFORE_MS = 1000,
	/* srun alone tells of a rank: an agent may yet come, or answer; one that
	 * has ended does not. - the step ends for a rank of another step; + it
	 * ends later. */
	DDP_UNWATCHED_MS = 3000,
	DDP_UNWATCHED_GONE_MS = 500,

	/* ---- ending a step (act.c) */

	/* Slurm's own lines come after ours. - before; + they are late. */
	DDP_HOLD_MS = 800,
	/* Agents kill, or say what cannot be killed. - scancel comes before
	 * them; + the end is later. */
	DDP_KILL_MS = 3000,
	/* srun ends after that, and after scancel; and where it misses ends of
	 * ranks. - it is killed although it would end, and its epilog with it;
	 * + the end is later. */
	DDP_SRUN_ENDS_MS = 2000,
	DDP_SRUN_MISSES_MS = 700,
	/* squeue is asked whether a step that is over still runs an epilog.
	 * - load for slurmctld; + an srun that hangs stays longer. */
	DDP_EPILOG_MS = 3000,
	/* srun has ended, and an agent has not: it kills its ranks then, and has
	 * as long for that. - a slow agent's last words are lost; + later. */
	DDP_LAST_MS = 1000,
	/* The same while scancel runs. */
	DDP_SCANCEL_MS = 3000,
	/* An agent has left, and the step has not ended. - it is said of agents
	 * that end with their step; + it is said late. */
	DDP_LEFT_MS = 2000,
	/* Ranks have ended well, and others run. - it is said of ranks that
	 * save; + the user waits longer for the hint. */
	DDP_EARLY_MS = 30000,
	/* How often it is looked whether a wait is over. */
	DDP_TICK_MS = 20,

	/* ---- agents (agents.c) */

	/* PING; and an agent that has not answered one is silent. - load, or a
	 * busy agent counts as stopped; + a stopped one is noticed late. */
	DDP_PING_MS = 1000,
	DDP_SILENT_MS = 3000,
	/* A machine that has acknowledged nothing: kernels ask each second. -, +
	 * the same for nodes. */
	DDP_UNREACHABLE_MS = 2500,
	/* Who connects proves itself. - a busy node is put out, and tries again;
	 * + strangers hold descriptors. */
	DDP_PROOF_MS = 10000
};

#endif
