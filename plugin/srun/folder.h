/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_SRUN_FOLDER_H
#define DDP_SRUN_FOLDER_H

/*
 * Say so where the folder in which --ddp-logs=DIR is made is missing here. That
 * is no error: the nodes may share a file system that this host does not have,
 * and they refuse it if they have none either.
 */
void ddp_folder_check_logs(void);

#endif
