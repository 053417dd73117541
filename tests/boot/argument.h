/* SPDX-License-Identifier: BSD-3-Clause */
/* What job.c and comms.c share: the arguments of a rank of a test. */
#ifndef DDP_TESTS_BOOT_ARGUMENT_H
#define DDP_TESTS_BOOT_ARGUMENT_H

#include <stdint.h>
#include <stdlib.h>

static const char *const error_codes[] = {
	"NONE", "ARGUMENT", "SYSTEM", "TIMEOUT", "PEER", "PMIX", "NCCL", "CUDA"
};

/* Skip "@2,5:", which is for these ranks alone, or "!2,5:", which is for all
 * but these. NULL if the argument is not for this rank. */
static const char *skip_ranks(const char *argument, uint32_t rank)
{
	const char *at = argument + 1;
	int listed = 0;
	char *end;

	if (*argument != '@' && *argument != '!')
		return argument;
	do {
		listed |= strtoul(at, &end, 10) == rank;
		at = end + 1;
	} while (*end == ',');
	return listed == (*argument == '@') ? at : NULL;
}

#endif
