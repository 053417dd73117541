/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the CUDA driver about this process's GPUs. libcuda.so.1 is looked up
 * when it is asked, as a node can be without. The module that computes on a GPU
 * need not be there.
 */
#ifndef DDP_TRAIN_DRIVER_H
#define DDP_TRAIN_DRIVER_H

#include <stddef.h>

struct ddp_error;

/*
 * How many GPUs this process sees. 0 if there is no driver or no GPU, -1 if the
 * driver cannot be used, with why (unless NULL) set to the reason.
 */
int driver_count_gpus(struct ddp_error *why);

/*
 * The model of the GPU that the thread has chosen, or else of the first one;
 * "unknown" if the driver does not say. The driver must have been asked before.
 */
void driver_name_gpu(char *name, size_t size);

#endif
