/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_HOSTS_H
#define DDP_SRUN_HOSTS_H

/*
 * A list of host names, sorted and as short as Slurm writes it, n[1-3] for
 * n2,n3,n1: execve takes no argument of more than 128 KiB. The list as it is
 * where srun does not export what this takes. The caller frees it; NULL: out of
 * memory.
 */
char *ddp_hosts_compress(const char *list);

#endif
