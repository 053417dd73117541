/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_PROGRAM_H
#define DDP_SRUN_PROGRAM_H

/*
 * Run one of Slurm's programs, argv[0]: the one that was installed with this
 * srun, else the one on PATH. Returns all that it prints on stdout, the
 * caller's to free; NULL if it fails or prints nothing.
 */
char *ddp_program_read(const char *const argv[]);

#endif
