/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An error, as a code and one sentence.
 *
 * Every function that can fail takes a struct ddp_error as its last argument.
 * NULL means that the caller does not want it. On success it does not change.
 * On failure only it changes, unless the function says otherwise.
 */
#ifndef DDP_ERROR_H
#define DDP_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_error_code {
	DDP_ERROR_NONE = 0,
	DDP_ERROR_ARGUMENT,	/* the input is wrong; the text says where */
	DDP_ERROR_SYSTEM,	/* the machine refused, such as memory */
	DDP_ERROR_TIMEOUT,	/* a deadline has passed */
	DDP_ERROR_PEER,		/* another rank did or reported something that
				 * does not fit this one */
	DDP_ERROR_PMIX,		/* native is a pmix_status_t */
	DDP_ERROR_NCCL,		/* native is an ncclResult_t */
	DDP_ERROR_CUDA		/* native is a CUresult, or a hipError_t */
};

struct ddp_error {
	enum ddp_error_code code;
	int native;		/* 0 if there is none */
	char text[512];		/* one printable line, in UTF-8 */
};

#ifdef __cplusplus
}
#endif
#endif
