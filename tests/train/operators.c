/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All operators of a device, in each type: forward against plain loops in fp64,
 * backward against central differences of these. Prints TAP.
 */
#include "operators.h"

static void test_spaces(void)
{
	unsigned char here[64], there[64];
	int wrong = 0;

	for (int space = 0; space < SPACES; space++) {
		char *arena = device.arena[space];

		wrong += (uintptr_t)arena % DEVICE_ALIGN != 0;
		copy(there, arena + ARENA - sizeof(there), sizeof(there));
		for (size_t i = 0; i < sizeof(there); i++)
			wrong += there[i] != 0;
	}
	result(wrong == 0, "arenas are aligned and zeroed");
	memset(here, 7, sizeof(here));
	for (int from = 0; from < SPACES; from++) {
		for (int to = 0; to < SPACES; to++) {
			here[0] = (unsigned char)(10 * from + to);
			copy(device.arena[from], here, sizeof(here));
			copy(device.arena[to] + 64, device.arena[from],
			     sizeof(here));
			copy(there, device.arena[to] + 64, sizeof(there));
			wrong += memcmp(here, there, sizeof(here)) != 0;
		}
	}
	result(wrong == 0, "copies go from each space to each");
}

static void test_events(void)
{
	const struct device_table *table = device.table;

	for (int event = 0; event < DEVICE_EVENTS; event++) {
		table->record(&device, event, QUEUE_COMPUTE);
		table->wait(&device, event, QUEUE_COMM);
	}
	result(table->check(&device, NULL) == 0 &&
	       table->query(&device, 0) == 1 &&
	       table->query(&device, DEVICE_EVENTS - 1) == 1,
	       "events are complete after check");
}

static void test_too_large(void)
{
	struct device large = { .table = device.table };
	struct ddp_error error = { 0 };

	result(large.table->open(&large, DEVICE_FP32,
				 (size_t[SPACES]){ 64, SIZE_MAX / 2, 0 }, 1,
				 &error) < 0 && error.code != DDP_ERROR_NONE &&
	       strlen(error.text) > 10, "an arena that is too large is an "
	       "error: %s", error.text);
}

static int open_device(enum device_type type)
{
	struct ddp_error error;

	if (device.table->open(&device, type,
			       (size_t[SPACES]){ ARENA, ARENA, ARENA }, 1,
			       &error) == 0)
		return 0;
	printf("Bail out! the device does not open: %s\n", error.text);
	return -1;
}

static void test_typed(void)
{
	test_embed();
	test_norm();
	test_matmul();
	test_attention();
	test_classifier();
	test_updates();
	test_step();
	test_special();
}

int main(void)
{
	device.table = &device_cpu;
	if (device.table->abi != DEVICE_ABI || open_device(DEVICE_FP32) < 0)
		return 1;
	test_spaces();
	test_events();
	test_too_large();
	test_typed();
	test_casts();
	test_fold();
	device.table->close(&device);
	for (int type = DEVICE_BF16; type <= DEVICE_FP16; type++) {
		if (open_device(type) < 0)
			return 1;
		test_typed();
		device.table->close(&device);
	}
	return finish();
}
