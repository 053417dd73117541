/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What moves the data: a table of functions. Every rank calls the same ones in
 * the same order, from one thread, except those called local. Where there is
 * no error to fill in, a failure ends the whole world, with a sentence.
 */
#ifndef DDP_BENCH_BACKEND_H
#define DDP_BENCH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "layout/error.h"
#include "shape.h"

/*
 * One collective. In place, send is receive: the larger of the two buffers. A
 * rank's own part of it, for all-gather to send and for reduce-scatter to
 * write, is then at rank * count.
 */
struct call {
	enum collective collective;
	enum type type;
	enum redop redop;
	int root;
	size_t count;		/* of struct shape */
	void *send, *receive;
};

struct backend {
	const char *name;

	/* MPI writes that of reduce-scatter to the beginning instead. */
	bool scatters_to_start;

	/* Elements that one call can be told. */
	size_t count_max;

	/* Meet the other ranks, and no more. Once, first. */
	int (*open)(int *rank, int *size, struct ddp_error *error);

	/* Local: choose a device and name it. */
	int (*prepare)(int local_rank, int local_size, bool share,
		       char *device, size_t size, struct ddp_error *error);

	/* What the calls from run to exchange need, once all are prepared. */
	int (*connect)(struct ddp_error *error);

	/* Rank r's size bytes of mine to all + r * size; by other means than
	 * those that are measured, where there are any. */
	void (*gather)(const void *mine, void *all, size_t size);
	void (*barrier)(void);

	/* Local: memory of the device; once. put and get wait. */
	void *(*reserve)(size_t size, struct ddp_error *error);
	void (*release)(void *buffer);
	void (*put)(void *buffer, const void *from, size_t size);
	void (*get)(void *to, const void *buffer, size_t size);

	/* Begin a collective; begin an exchange with one rank, which calls it
	 * too; wait for all that has begun. */
	void (*run)(const struct call *call);
	void (*exchange)(int peer, const void *send, void *receive,
			 size_t size);
	void (*wait)(void);

	/* Local: describe the library, as "Open MPI 4.1.4". */
	void (*describe)(char *text, size_t size);

	/* Once, last, by every rank that has opened it. */
	void (*close)(void);

	/* Local: end every rank, with this sentence; does not return. */
	void (*abort)(const char *sentence);
};

/* Of a build that lacks it, open says so and the rest is NULL. */
extern const struct backend backend_mpi, backend_nccl;

#endif
