/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All operators of a device, in each type: forward against plain loops in fp64,
 * backward against central differences of these. Prints TAP.
 *
 * operators [--apart] [MODULE [THEME...]]: of the device that a module has,
 * such as ddp_cuda.so, or "cpu" (the default); only these themes of the list
 * below; --apart: each tensor is an allocation of its own.
 */
#include "load_table.h"
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

/* From the host by way of all spaces, with no wait but the last. */
static void test_order(void)
{
	const struct device_table *table = device.table;
	char *const *arena = device.arena;
	unsigned char here[64], there[64];

	memset(here, 5, sizeof(here));
	table->copy(&device, QUEUE_COMM, arena[SPACE_DEVICE], here, 64);
	table->copy(&device, QUEUE_COMM, arena[SPACE_STAGING],
		    arena[SPACE_DEVICE], 64);
	table->copy(&device, QUEUE_COMM, arena[SPACE_HOST],
		    arena[SPACE_STAGING], 64);
	copy(there, arena[SPACE_HOST], sizeof(there));
	result(memcmp(here, there, sizeof(here)) == 0, "a queue's copies are "
	       "in order, within the host too");
}

/* One of its own, or where the host computes none. */
static void test_streams(void)
{
	void *streams[QUEUES];
	int wrong = 0;

	for (int i = 0; i < QUEUES; i++) {
		streams[i] = device.table->stream(&device, i);
		wrong += (streams[i] != NULL) != (device.table->fold != NULL);
		for (int j = 0; j < i; j++)
			wrong += streams[i] && streams[i] == streams[j];
	}
	result(wrong == 0, "each queue is a stream");
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

/* What byte i of a source is in a round. */
static unsigned char pattern(size_t i, int round)
{
	return (unsigned char)(i * 7 + i / 251 + (size_t)round * 31);
}

static void fill_source(unsigned char *source, size_t bytes, int round)
{
	for (size_t i = 0; i < bytes; i++)
		source[i] = pattern(i, round);
}

/* Copies from one source, written again at once: more than are on their way. */
static int count_wrong_copies(unsigned char *source, size_t bytes)
{
	enum { ROUNDS = 40 };
	unsigned char *read = malloc(bytes);
	char *to = device.arena[SPACE_DEVICE] + 64;
	int wrong = 0;

	for (int round = 0; round < ROUNDS; round++) {
		fill_source(source, bytes, round);
		device.table->copy(&device, QUEUE_COMPUTE, to + round * bytes,
				   source, bytes);
	}
	fill_source(source, bytes, ROUNDS);
	for (int round = 0; round < ROUNDS; round++) {
		copy(read, to + round * bytes, bytes);
		for (size_t i = 0; i < bytes; i++)
			wrong += read[i] != pattern(i, round);
	}
	free(read);
	return wrong;
}

static void test_sources(void)
{
	enum { BYTES = 700001 };
	unsigned char *own = malloc(BYTES);

	result(count_wrong_copies(own, BYTES) == 0, "a source of the program's "
	       "own may be written again at once");
	result(count_wrong_copies((unsigned char *)device.arena[SPACE_HOST],
				  BYTES) == 0, "so may one in SPACE_HOST");
	result(count_wrong_copies((unsigned char *)device.arena[SPACE_STAGING],
				  BYTES) == 0, "so may one in SPACE_STAGING");
	free(own);
}

/* A result for the host, with an event rather than a wait for all. */
static void test_staging(void)
{
	const struct device_table *table = device.table;
	unsigned char *to = (unsigned char *)device.arena[SPACE_STAGING];
	unsigned char from[256];
	int wrong = 0;

	fill_source(from, sizeof(from), 3);
	table->copy(&device, QUEUE_COMPUTE, device.arena[SPACE_DEVICE], from,
		    sizeof(from));
	table->record(&device, 5, QUEUE_COMPUTE);
	table->wait(&device, 5, QUEUE_AGREE);
	table->copy(&device, QUEUE_AGREE, to, device.arena[SPACE_DEVICE],
		    sizeof(from));
	table->record(&device, 6, QUEUE_AGREE);
	while (table->query(&device, 6) == 0)
		;
	for (size_t i = 0; i < sizeof(from); i++)
		wrong += to[i] != pattern(i, 3);
	result(wrong == 0, "what was copied to SPACE_STAGING is there with the "
	       "event after it");
	result(table->elapsed(&device, 5, 6) >= 0 &&
	       table->elapsed(&device, 5, 6) < 60, "time passes from one event "
	       "to a later one");
}

static void test_memory(void)
{
	const struct device_table *table = device.table;
	unsigned char *there = malloc(100003);
	struct ddp_error error = { 0 };
	char *at = table->alloc(&device, 100003, &error);
	int wrong = 0;

	result(at && (uintptr_t)at % DEVICE_ALIGN == 0, "alloc gives aligned "
	       "memory%s%s", at ? "" : ": ", error.text);
	if (!at)
		return;
	table->copy(&device, QUEUE_COMM, there, at, 100003);
	table->check(&device, NULL);
	for (int i = 0; i < 100003; i++)
		wrong += there[i] != 0;
	result(wrong == 0, "which is zeroed, for each queue");
	memset(there, 9, 100003);
	copy(at, there, 100003);
	table->zero(&device, at + 3, 100);
	copy(there, at, 100003);
	for (int i = 0; i < 100003; i++)
		wrong += there[i] != (i < 3 || i >= 103 ? 9 : 0);
	result(wrong == 0, "zero writes its bytes and no others");
	free(there);
}

static void test_too_large(void)
{
	for (int space = 0; space < SPACES; space++) {
		struct device large = { .table = device.table };
		struct ddp_error error = { 0 };
		size_t bytes[SPACES] = { 64, 64, 64 };

		bytes[space] = SIZE_MAX / 2;
		result(large.table->open(&large, DEVICE_FP32, bytes, 1,
					 &error) < 0 &&
		       error.code != DDP_ERROR_NONE && strlen(error.text) > 10,
		       "an arena that is too large is an error: %s",
		       error.text);
	}
}

/* As where a run ends by an error. */
static void test_closing(void)
{
	struct device other = { .table = device.table };
	size_t bytes[SPACES] = { 4096, 4096, 4096 };
	struct ddp_error error = { 0 };
	int opened = other.table->open(&other, DEVICE_FP32, bytes, 1, &error);

	if (opened == 0) {
		other.table->zero(&other, other.arena[SPACE_DEVICE], 4096);
		other.table->copy(&other, QUEUE_COMPUTE,
				  other.arena[SPACE_STAGING],
				  other.arena[SPACE_DEVICE], 4096);
		other.table->close(&other);
	}
	result(opened == 0 && device.table->check(&device, &error) == 0,
	       "a device may be closed while it works%s%s",
	       error.text[0] ? ": " : "", error.text);
}

/* once: of fp32 alone, since the type does not matter. */
static const struct theme {
	const char *name;
	bool once;
	void (*run)(void);
} themes[] = {
	{ "spaces", true, test_spaces }, { "order", true, test_order },
	{ "streams", true, test_streams }, { "events", true, test_events },
	{ "sources", true, test_sources }, { "staging", true, test_staging },
	{ "memory", true, test_memory }, { "large", true, test_too_large },
	{ "closing", true, test_closing },
	{ "embed", false, test_embed }, { "norm", false, test_norm },
	{ "matmul", false, test_matmul },
	{ "attention", false, test_attention },
	{ "classifier", false, test_classifier },
	{ "updates", false, test_updates },
	{ "rounding", false, test_rounding }, { "step", false, test_step },
	{ "special", false, test_special }, { "casts", true, test_casts },
	{ "fold", true, test_fold }
};

static bool is_chosen(const struct theme *theme, char **names)
{
	bool chosen = !*names;

	for (; *names; names++)
		chosen = chosen || strcmp(*names, theme->name) == 0;
	return chosen;
}

/* Returns whether there is one. */
static bool has_theme(const char *name)
{
	for (size_t i = 0; i < sizeof(themes) / sizeof(*themes); i++)
		if (strcmp(themes[i].name, name) == 0)
			return true;
	printf("Bail out! there is no theme '%s'\n", name);
	return false;
}

int main(int argc, char **argv)
{
	const char *why;
	char **names;

	apart = argc > 1 && strcmp(argv[1], "--apart") == 0;
	argc -= apart;
	argv += apart;
	names = argv + (argc > 1 ? 2 : 1);
	for (char **name = names; *name; name++)
		if (!has_theme(*name))
			return 1;
	device.table = load_table(argc > 1 ? argv[1] : "cpu", &why);
	if (!device.table) {
		printf("Bail out! %s\n", why);
		return 1;
	}
	for (int type = DEVICE_FP32; type <= DEVICE_FP16; type++) {
		open_device(type);
		for (size_t i = 0; i < sizeof(themes) / sizeof(*themes); i++)
			if (is_chosen(&themes[i], names) &&
			    (type == DEVICE_FP32 || !themes[i].once))
				themes[i].run();
		device.table->close(&device);
	}
	return finish();
}
