/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device and a collective that were built for another interface: a FAKE
 * device_cpu and a FAKE collective_self, linked in place of the real ones, must
 * be refused before one of their functions is called. Prints TAP.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "data/data.h"
#include "device.h"
#include "run/train_options.h"
#include "run/world.h"
#include "step/trainer.h"
#include "util/error.h"

enum { BUILT = 77 };

static int tests, failures;

static void ok(bool passed, const char *name)
{
	tests++;
	failures += !passed;
	printf("%sok %d - %s\n", passed ? "" : "not ", tests, name);
}

static int open_device(struct device *device, enum device_type type,
		       const size_t *bytes, int threads,
		       struct ddp_error *error)
{
	(void)device, (void)type, (void)bytes, (void)threads;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the device was opened");
}

static int open_ranks(struct collective *collective, struct ddp_error *error)
{
	(void)collective;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "the ranks have met");
}

const struct device_table device_cpu = {
	.abi = BUILT, .name = "fake cpu", .open = open_device
};

const struct collective_table collective_self = {
	.abi = BUILT, .name = "fake self", .open = open_ranks
};

/* Whether an error names the part, its version and the one that is known. */
static bool is_refused(const struct ddp_error *error, const char *part,
		       uint32_t known)
{
	char wanted[160];

	snprintf(wanted, sizeof(wanted), "the part '%s' was built for version "
		 "%d of ddp-train's interface, not for %" PRIu32 ";", part,
		 BUILT, known);
	if (error->code == DDP_ERROR_SYSTEM &&
	    strncmp(error->text, wanted, strlen(wanted)) == 0)
		return true;
	printf("# %s\n", error->text);
	return false;
}

static void test_check(void)
{
	struct ddp_error error = { 0 };

	ok(world_check_abi("part", 7, 7, &error) == 0 &&
	   error.code == DDP_ERROR_NONE, "a part of the same interface");
	ok(world_check_abi("part", 6, BUILT, &error) < 0 &&
	   is_refused(&error, "part", 6), "one of another is refused");
}

static void test_tables(const struct options *options)
{
	static const struct data no_data;
	struct collective collective;
	struct ddp_error error = { 0 };
	bool quiet;

	ok(world_open(&collective, options, &quiet, &error) < 0 &&
	   !collective.table && is_refused(&error, "fake self",
					   COLLECTIVE_ABI),
	   "a collective of another interface is refused");
	collective = (struct collective){ .size = 1, .nodes = 1 };
	error = (struct ddp_error){ 0 };
	ok(!trainer_create(options, &collective, &no_data, &error) &&
	   is_refused(&error, "fake cpu", DEVICE_ABI),
	   "a device of another interface is refused");
}

int main(void)
{
	char *argv[] = { "abi", NULL };
	struct options options;
	struct ddp_error error;

	if (options_parse(&options, 1, argv, &error) < 0 ||
	    options_complete(&options, 1, &error) < 0)
		abort();
	test_check();
	test_tables(&options);
	printf("1..%d\n", tests);
	return failures != 0;
}
