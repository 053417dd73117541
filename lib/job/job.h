/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/job implements ddp.h: the job of many processes that PMIx connects. job.c
 * makes a job; client.c is the only code that calls PMIx, with deadlines that
 * hold; exchange.c is what every collective rests on; absent.c finds out who
 * did not come to one. It stands on lib/layout alone. Read this header first.
 *
 * Here: what the rest of libddp and the tools need of a job beyond ddp.h. A
 * collective is ddp_job_begin, any number of exchanges (exchange.h), and
 * ddp_job_end.
 */
#ifndef DDP_JOB_JOB_H
#define DDP_JOB_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "ddp.h"
#include "layout/clock.h"
#include "layout/error.h"

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
 * When a call that begins now must have ended, on that clock. timeout_ms is as
 * in the public structs: 0: the job's own; below 0: DDP_CLOCK_NEVER. job NULL:
 * 0 is the default of 300,000.
 */
int64_t ddp_job_deadline(const struct ddp_job *job, int32_t timeout_ms);

/*
 * Begin a collective: one at a time in a process; others wait until their
 * deadline. Fails, with the error that ended it, where the job has ended; and
 * then ddp_job_end must not be called. Returns 0, or -1.
 */
int ddp_job_begin(struct ddp_job *job, int64_t deadline,
		  struct ddp_error *error);
void ddp_job_end(struct ddp_job *job);

#endif
