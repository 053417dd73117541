/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the frames of supervisor and agents. The input is what a connection
 * brings: frame after frame.
 */
#include "fuzz.h"
#include "wire/wire.h"

static void check_text(const char *text, size_t size)
{
	CHECK(memchr(text, '\0', size) != NULL);
}

/* What was read is written as it came, and a byte less is no frame yet. */
static void check_frame(const unsigned char *data, size_t length,
			const struct ddp_wire *wire)
{
	unsigned char frame[DDP_WIRE_FRAME_MAX];
	struct ddp_wire part;

	CHECK(wire->kind > 0 && wire->kind < DDP_WIRE_KINDS);
	check_text(wire->node, sizeof(wire->node));
	check_text(wire->gpus, sizeof(wire->gpus));
	check_text(wire->message, sizeof(wire->message));
	check_text(wire->cause, sizeof(wire->cause));
	check_text(wire->tail, sizeof(wire->tail));
	CHECK(ddp_wire_encode(wire, frame) == length);
	CHECK(memcmp(frame, data, length) == 0);
	CHECK(ddp_wire_decode(data, length - 1, &part) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_wire wire;
	int length;

	for (;; data += length, size -= (size_t)length) {
		memset(&wire, 0xa5, sizeof(wire));
		length = ddp_wire_decode(data, size, &wire);
		if (length <= 0)
			return 0;
		CHECK((size_t)length <= size);
		check_frame(data, (size_t)length, &wire);
	}
}
