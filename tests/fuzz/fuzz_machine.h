/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine on which the targets place ranks. */
#ifndef DDP_FUZZ_FUZZ_MACHINE_H
#define DDP_FUZZ_FUZZ_MACHINE_H

#include "fuzz.h"
#include "place/machine.h"

enum { FUZZ_CPUS = 8, FUZZ_GPUS = 4 };

/* Four cores of two threads, two cores and two GPUs at each package. */
__attribute__((unused)) static struct ddp_machine *fuzz_machine(void)
{
	struct ddp_machine *machine = ddp_machine_create(FUZZ_CPUS, FUZZ_GPUS,
							 0);
	uint16_t i;

	CHECK(machine);
	for (i = 0; i < FUZZ_CPUS; i++)
		machine->cpus[i] = (struct ddp_cpu){ .cpu = i, .core = i / 2,
			.numa = i / 4, .package = i / 4 };
	for (i = 0; i < FUZZ_GPUS; i++) {
		snprintf(machine->gpus[i].uuid, DDP_UUID_SIZE, "GPU-%u", i);
		machine->gpus[i].cpus.words[0] = i < 2 ? 0x0f : 0xf0;
	}
	return machine;
}

#endif
