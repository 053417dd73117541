/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/job implements ddp.h: the job of many processes that PMIx connects. job.c
 * joins a job; client.c alone calls PMIx, with deadlines that hold; all
 * collectives are made of exchange.c. It stands on lib/util and lib/layout.
 * Read this header first.
 *
 * Here: what the rest of libddp and the tools need of a job beyond ddp.h. A
 * collective is ddp_job_begin, any number of exchanges, and ddp_job_end.
 */
#ifndef DDP_JOB_JOB_H
#define DDP_JOB_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

/*
 * Read a struct of options that begins with its size (a size_t) and may come
 * from another version of libddp. options, of size bytes, gets what is given,
 * and zeros behind it; or zeros alone where given is NULL. A size that cannot
 * be one, and any byte from known on that is not 0, are an error. name is that
 * of the struct. Returns 0, or -1.
 */
int ddp_job_read_options(const void *given, const char *name, void *options,
			 size_t size, size_t known, struct ddp_error *error);

/*
 * The deadline, on ddp_clock_ms, of a call that begins now. timeout_ms is as in
 * the public structs: 0: the job's own (job NULL: the default of 300,000);
 * below 0: DDP_CLOCK_NEVER.
 */
int64_t ddp_job_deadline(const struct ddp_job *job, int32_t timeout_ms);

/*
 * Begin a collective. There is one at a time in a process; others wait until
 * their deadline. If the job has ended, fails with the error that ended it.
 * Returns 0, and ddp_job_end must follow; or -1, and it must not.
 */
int ddp_job_begin(struct ddp_job *job, int64_t deadline,
		  struct ddp_error *error);
void ddp_job_end(struct ddp_job *job);

/* ---- the exchange, of which all collectives are made */

/*
 * Each rank puts one record, which is one PMIx fence with data, and then gets
 * the records that it wants. All ranks must put equally often; each may get
 * what it likes.
 *
 * Collective, between ddp_job_begin and ddp_job_end: publish size bytes (0 to
 * DDP_RECORD_MAX; ranks may differ) and wait until every rank has done so. A
 * failure ends the job, except for DDP_ERROR_ARGUMENT and DDP_ERROR_SYSTEM:
 * then nothing was published. Returns 0, or -1.
 */
int ddp_exchange_put(struct ddp_job *job, const void *record, size_t size,
		     int64_t deadline, struct ddp_error *error);

/*
 * Local, after ddp_exchange_put and before the next one: copy the record of a
 * rank, also of this one, into room bytes at buffer, and set *size to its
 * length. A record that does not fit, or is not that rank's of this exchange,
 * is an error (DDP_ERROR_PEER, DDP_ERROR_PMIX) that does not end the job; a
 * deadline that has passed does. Returns 0, or -1. Costs 10 to 60 us with PMIx
 * 4, and 80 to 300 us with PMIx 5, which asks the node's server.
 */
int ddp_exchange_get(struct ddp_job *job, uint32_t rank, void *buffer,
		     size_t room, size_t *size, int64_t deadline,
		     struct ddp_error *error);

/*
 * Add the ranks that are not here[job size], as "rank 3 on n1, ranks 5-7 on n2
 * and 4 more": `most` runs of ranks are named.
 */
void ddp_absent_format(const struct ddp_job *job, const bool *here,
		       uint32_t most, struct ddp_text *text);

enum { DDP_EARLY_MS = 300 };	/* ranks of MPI are older by then */

/*
 * Under Slurm, wait until this process is DDP_EARLY_MS old, but not beyond a
 * deadline of ddp_clock_ms. A program that has asked CUDA for its GPUs is.
 */
void ddp_early_wait(int64_t deadline);

#endif
