/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a stream of the emulated CUDA (tests/cuda_on_cpu) begins with, so that
 * a fake library that gets no more than the stream can put its work in order.
 * No symbol is shared: the emulator is inside a module that nobody links.
 */
#ifndef DDP_TESTS_FAKE_STREAM_H
#define DDP_TESTS_FAKE_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_STREAM_MAGIC 0x6d61657274737564u

enum { FAKE_STREAM_READ, FAKE_STREAM_WRITE, FAKE_STREAM_LOOK };

struct fake_stream {
	uint64_t magic;

	/*
	 * Have run(arg) called when the stream is there: again and again until
	 * it returns 1. It must not wait for anything, and returns 0 instead;
	 * other streams go on meanwhile. name is kept.
	 */
	void (*enqueue)(void *stream, const char *name, int (*run)(void *arg),
			void *arg);

	/*
	 * Called in run() before it reads or writes n bytes, for races to be
	 * seen; -1 if they are not of one allocation of the device. With
	 * FAKE_STREAM_LOOK, at any time, only that is told.
	 */
	int (*touch)(const void *p, size_t n, int how, const char *who);

	/* Whether all its work is done: 1 or 0; -1 if the GPU has failed. */
	int (*query)(void *stream);

	/*
	 * The GPU fails from now on with this error of CUDA. The runtime whose
	 * stream it is has not said so yet: another one's call has met it.
	 */
	void (*fail)(int error);
};

/* NULL: it is no stream of the emulated CUDA. */
static inline struct fake_stream *fake_stream_of(void *stream)
{
	struct fake_stream *fake = (struct fake_stream *)stream;

	return fake && fake->magic == FAKE_STREAM_MAGIC ? fake : NULL;
}

#endif
