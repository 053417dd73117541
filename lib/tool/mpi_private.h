/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Begins and ends MPI so that no other user of the machine can read or block
 * the messages between the ranks of a node. Open MPI puts them into files under
 * /dev/shm whose names can be guessed, and uses a file of that name that
 * somebody else has made. Here they lie in a folder of a random name that only
 * the user may enter. Once all ranks of a node have opened the files, these
 * have no name any more: a rank that is killed leaves none.
 *
 * A rank that is killed while MPI starts or ends, or that MPI ends while it
 * starts, can leave the folder. The agent of a --ddp step removes it
 * (util/file.h), or the next program of the same user that starts MPI: a
 * folder in use is locked.
 */
#ifndef DDP_TOOL_MPI_PRIVATE_H
#define DDP_TOOL_MPI_PRIVATE_H

struct ddp_error;

/*
 * MPI_Init_thread() with MPI_THREAD_FUNNELED. Where the user has set the
 * folder (OMPI_MCA_btl_vader_backing_directory of Open MPI 4,
 * OMPI_MCA_btl_sm_backing_directory of Open MPI 5), it is left alone. Returns
 * 0, or -1 with error set and MPI not begun.
 */
int tool_mpi_open(struct ddp_error *error);

/*
 * Remove the names of the files. Collective over MPI_COMM_WORLD; does nothing
 * the second time.
 */
void tool_mpi_hide(void);

/* MPI_Finalize(). */
void tool_mpi_close(void);

/*
 * Print "PROGRAM: sentence" and end every rank with exit status 1. Whoever reads
 * the sentence from a pipe has 1 s for it, as it can be ended with the ranks.
 */
_Noreturn void tool_mpi_abort(const char *program, const char *sentence);

#endif
