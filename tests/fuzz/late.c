/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes where the slurmds of a step's nodes listen, and when one is lost. The
 * input is a line whose bytes say which connections are accepted, and an answer.
 */
#include <errno.h>

#include "fuzz.h"
#include "supervisor/late.h"

enum { ROUNDS = 40, AT_ONCE = 3 };

static void take(struct ddp_late *late, size_t chosen, unsigned char how)
{
	static const int causes[] = { 0, ECONNREFUSED, ETIMEDOUT, EMFILE };

	CHECK(chosen < late->count);
	ddp_late_take(late, &late->all[chosen], how & 1, causes[how >> 1 & 3]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *answer = text;
	const char *how = fuzz_next_line(&answer);
	size_t chosen[AT_ONCE], count, i, hows = strlen(how), round;
	struct ddp_late late = { 0 };
	int64_t now_ns = 0;

	CHECK(ddp_late_read(&late, answer) == late.count);
	for (i = 0; i < late.count; i++)
		CHECK(late.all[i].fd == -1 && late.all[i].length > 0 &&
		      late.all[i].length <= sizeof(late.all[i].address));
	for (round = 0; round < ROUNDS && hows > 0; round++) {
		count = ddp_late_choose(&late, now_ns, AT_ONCE, chosen);
		CHECK(count <= AT_ONCE);
		for (i = 0; i < count; i++)
			take(&late, chosen[i], (unsigned char)how[round % hows]);
		CHECK(ddp_late_choose(&late, now_ns, AT_ONCE, chosen) == 0);
		now_ns += (int64_t)DDP_LATE_ROUND_MS * 1000000;
	}
	for (i = 0; i < late.count; i++)
		CHECK(!ddp_late_is_lost(&late, &late.all[i]) ||
		      late.all[i].failed >= DDP_LATE_FAILED);
	ddp_late_clear(&late);
	free(text);
	return 0;
}
