/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators of the CPU, by file; contracts are in device.h. */
#ifndef DDP_TRAIN_CPU_H
#define DDP_TRAIN_CPU_H

#include "cpu/matmul.h"
#include "device.h"
#include "kernel.h"

struct ddp_error;

/* The state behind a device. */
struct cpu {
	size_t bytes[SPACES];		/* how much of each arena to unmap */
	struct more *more;		/* what alloc() gave */
	struct matmul_engine *engine;
	double recorded[DEVICE_EVENTS];	/* when each event was */
};

/* A product of values of the device's type. */
static inline void cpu_multiply(struct device *device,
				const struct matmul *product)
{
	matmul(((struct cpu *)device->state)->engine, product);
}

/* linear.c */
void cpu_matmul(struct device *device, const struct op_matmul *op);
void cpu_matmul_backward(struct device *device,
			 const struct op_matmul_backward *op);
void cpu_gelu(struct device *device, const void *pre, void *y, size_t count);

/* attention.c */
size_t cpu_count_attention_work(const struct device_shape *shape);
void cpu_attention(struct device *device, const struct op_attention *op);
void cpu_attention_backward(struct device *device,
			    const struct op_attention_backward *op);

/* vocabulary.c */
size_t cpu_count_classifier_work(const struct device_shape *shape);
void cpu_classifier(struct device *device, const struct op_classifier *op);
void cpu_embed(struct device *device, const struct op_embed *op);
void cpu_embed_backward(struct device *device,
			const struct op_embed_backward *op);

/* norm.c */
size_t cpu_count_norm_work(const struct device_shape *shape);
void cpu_norm(struct device *device, const struct op_norm *op);
void cpu_norm_backward(struct device *device,
		       const struct op_norm_backward *op);

/* update.c */
void cpu_sum_squares(struct device *device, const struct op_sum_squares *op);
void cpu_step(struct device *device, const struct op_step *op);
void cpu_adamw(struct device *device, const struct op_adamw *op);
void cpu_sgd(struct device *device, const struct op_sgd *op);
void cpu_round(struct device *device, const struct op_round *op);
void cpu_add(struct device *device, float *x, enum device_type type,
	     const void *y, size_t count);
void cpu_cast(struct device *device, enum device_type to_type, void *to,
	      enum device_type from_type, const void *from, size_t count);

#endif
