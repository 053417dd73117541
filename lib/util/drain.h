/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helps a program that prints why it ends and then has all ranks killed, as
 * MPI_Abort and PMIx_Abort do. Those who read what it prints are killed with
 * them, and what they have not read by then is lost.
 */
#ifndef DDP_UTIL_DRAIN_H
#define DDP_UTIL_DRAIN_H

/*
 * Wait until all that was written to the pipe fd has been read, for so many
 * milliseconds at most. Returns at once if fd is no pipe, or nobody reads it.
 */
void ddp_drain_wait(int fd, int timeout_ms);

#endif
