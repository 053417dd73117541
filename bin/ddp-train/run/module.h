/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of a run: --device, and the module that computes on GPUs. The
 * module is a file of its own, so that one ddp-train serves nodes with GPUs and
 * without, and links nothing of CUDA.
 */
#ifndef DDP_TRAIN_MODULE_H
#define DDP_TRAIN_MODULE_H

#include <stddef.h>

struct ddp_error;
struct device_table;
struct options;

/*
 * Set options->device where it was left open: cuda where the driver sees a GPU.
 * Before the ranks meet, as they meet in another way with GPUs. Returns 0; or
 * -1, with the device set as well and error set, if there is no GPU for
 * --device cuda, or if --backend does not go with the device.
 */
int module_choose_device(struct options *options, struct ddp_error *error);

/*
 * The model of the GPU that the thread has chosen, or else of the first one;
 * "unknown" if the driver does not say. Call it with --device cuda alone.
 */
void module_name_gpu(char *name, size_t size);

/*
 * The table of the chosen device. The module is ddp_cuda.so in the folder that
 * DDP_MODULE_DIR names, or in that of the installation. Returns NULL with
 * error set if it is missing, cannot be loaded, or is another version's.
 */
const struct device_table *module_find_device(const struct options *options,
					      struct ddp_error *error);

/*
 * The table of a --plan, which opens no device: for --gpu one that has sizes
 * alone, and needs no module; else that of the chosen device.
 */
const struct device_table *module_find_planned(const struct options *options,
					       struct ddp_error *error);

#endif
