/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes how Slurm's own lines are told from the tasks', of srun's stderr. The
 * first byte of the input says whether lines are held, and how much is read at a
 * time.
 */
#include "fuzz.h"
#include "supervisor/sieve.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = { .said = &said, .now_ns = 5, .job_id = 7 };
	struct ddp_text out = { 0 };
	size_t step, part, at;
	bool holds;

	if (size == 0)
		return 0;
	holds = sieve.holds = data[0] & 1;
	step = 1 + (data[0] >> 1);
	data++;
	size--;
	for (at = 0; at < size; at += part) {
		part = size - at < step ? size - at : step;
		ddp_sieve_add(&sieve, (const char *)data + at, part, &out);
		/* A sieve that holds nothing passes all bytes at once. */
		CHECK(holds || (out.length == at + part &&
				!ddp_sieve_keeps(&sieve)));
	}
	ddp_sieve_release(&sieve, &out);
	CHECK(!ddp_sieve_keeps(&sieve));
	CHECK(out.length == size);
	CHECK(holds || size == 0 || memcmp(out.data, data, size) == 0);
	free(out.data);
	free(said.unlaunched.data);
	free(said.failed.data);
	return 0;
}
