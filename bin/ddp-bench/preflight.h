/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ddp-bench --preflight: is every node fit for a job, and which is not? The
 * ranks meet by libddp and tell each other what they have (preflight_facts.c),
 * what they met (preflight_master.c, preflight_link.c) and what they moved
 * (preflight_move.c); facts.h has the records. verdict.c and verdict_probes.c
 * judge them, and preflight_print.c prints. Whatever can hang runs in a thread
 * with a deadline, and a rank that does not answer is named.
 */
#ifndef DDP_BENCH_PREFLIGHT_H
#define DDP_BENCH_PREFLIGHT_H

#include <stdint.h>

#include "bench_options.h"
#include "bench_world.h"
#include "facts.h"
#include "verdict.h"

/* Run it on this rank, and print the verdict. Returns the exit status. */
int preflight_run(const struct options *options);

/* ---- what this rank has */

void facts_gather(struct facts *facts, const struct backend *mpi);

/* ---- the master's port */

struct ddp_error;

/*
 * Answer everybody who comes to the port with the nonce and this clock, until
 * the process ends. Returns 0, or -1 with error set.
 */
int master_listen(const char *port, uint64_t nonce, struct ddp_error *error);

/* Resolve and reach the master, and measure its clock, until a deadline of
 * ddp_clock_ms. */
void master_probe(const char *host, const char *port, uint64_t nonce,
		  int64_t deadline, struct probe *probe);

/* ---- the GPU's PCIe link */

/* Read the links of the PCI device probe->bus_id; they stay 0 where the kernel
 * does not tell them. */
void link_read(struct probe *probe);

/* ---- moving data */

struct mover;

/*
 * One rank's part in moving data. The functions below run in a thread and
 * return 0; or -1 once the deadline has passed: the thread is then left alone,
 * and so must the mover be. NULL: no memory.
 */
struct mover *mover_create(struct world *world, const struct options *options);

/* Choose the device and make it work: sets probe->gpu_error or the link. */
int mover_prepare(struct mover *mover, struct probe *probe, int64_t deadline);

/* Connect the ranks, the first time, and play ROUNDS rounds of matches. */
int mover_play(struct mover *mover, struct moved *moved, int64_t deadline);

/* One all-reduce. */
int mover_sum(struct mover *mover, struct moved *moved, int64_t deadline);

int mover_close(struct mover *mover, int64_t deadline);

/* ---- the verdict in words */

struct preflight_summary {
	const struct world *world;
	const struct facts *facts;	/* of all ranks, as the next */
	const struct probe *probes;
	const char *why_not_moved;	/* NULL: data was moved */
	double seconds;
};

void preflight_print(const struct preflight_summary *summary,
		     const struct verdict *verdict, bool json);

#endif
