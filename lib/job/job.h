/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/job implements ddp.h: the job of many processes that PMIx connects. job.c
 * joins a job; client.c and client_get.c alone call PMIx, with deadlines that
 * hold; all collectives are made of exchange.c; absent.c finds out who did not
 * come to one. It stands on lib/util and lib/layout. Read this header first.
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
#include "util/clock.h"
#include "util/error.h"

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

#endif
