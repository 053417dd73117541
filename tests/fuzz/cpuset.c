/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes CPU lists and the arithmetic of sets. The input is a line for each of
 * two lists.
 */
#include "fuzz.h"
#include "place/machine.h"

static int parse(const char *text, struct ddp_cpuset *set)
{
	struct ddp_error error = { 0 };

	ddp_cpuset_clear(set);
	if (ddp_cpuset_parse(text, set, &error) == 0)
		return 0;
	fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	CHECK(ddp_cpuset_empty(set));
	return -1;
}

/* A set's text fits exactly where there is room for it, and reads back. */
static void check_text(const struct ddp_cpuset *set)
{
	static char text[DDP_CPUSET_TEXT_SIZE];
	struct ddp_cpuset again;
	size_t length;
	char *tight;

	CHECK(!ddp_cpuset_empty(set));
	CHECK(ddp_cpuset_format(set, text, sizeof(text)) == 0);
	CHECK(ddp_cpuset_parse(text, &again, NULL) == 0);
	CHECK(ddp_cpuset_equal(set, &again));
	length = strlen(text);
	tight = malloc(length + 1);
	CHECK(tight);
	CHECK(ddp_cpuset_format(set, tight, length) < 0);
	CHECK(ddp_cpuset_format(set, tight, length + 1) == 0);
	CHECK(strcmp(tight, text) == 0);
	free(tight);
}

static void check_two(const struct ddp_cpuset *a, const struct ddp_cpuset *b)
{
	struct ddp_cpuset both, any, rest;
	uint32_t cpu, count = 0;

	ddp_cpuset_and(&both, a, b);
	ddp_cpuset_or(&any, a, b);
	ddp_cpuset_andnot(&rest, a, b);
	CHECK(ddp_cpuset_meet(a, b) == !ddp_cpuset_empty(&both));
	CHECK(!ddp_cpuset_meet(&rest, b));
	CHECK(ddp_cpuset_count(a) + ddp_cpuset_count(b) ==
	      ddp_cpuset_count(&any) + ddp_cpuset_count(&both));
	CHECK(ddp_cpuset_count(a) ==
	      ddp_cpuset_count(&rest) + ddp_cpuset_count(&both));
	for (cpu = ddp_cpuset_next(&any, 0); cpu < DDP_CPU_MAX;
	     cpu = ddp_cpuset_next(&any, cpu + 1), count++)
		CHECK(ddp_cpuset_has(a, cpu) || ddp_cpuset_has(b, cpu));
	CHECK(count == ddp_cpuset_count(&any));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	struct ddp_cpuset a, b;

	if (parse(fuzz_next_line(&rest), &a) == 0) {
		check_text(&a);
		if (parse(fuzz_next_line(&rest), &b) == 0)
			check_two(&a, &b);
	}
	free(text);
	return 0;
}
