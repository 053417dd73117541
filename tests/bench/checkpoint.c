/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint DIR [MIB [ROUNDS]]: how long training stops for a checkpoint, as a
 * multiple of memcpy() of the same bytes; and how long the whole save takes, as
 * a multiple of a plain write and fsync of them. Both in turn, each round in
 * the opposite order; prints medians of times, in ms, and of ratios of a round,
 * and the fastest of each, which other work on the machine disturbs least.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "checkpoint/state.h"
#include "checkpoint/writer.h"
#include "collective.h"
#include "layout/clock.h"
#include "model.h"
#include "trainer.h"

enum { STOP, COPY, SAVE, PLAIN, WAYS, MOST_ROUNDS = 1000 };

struct bench {
	const char *dir;
	struct trainer trainer;
	struct model model;
	struct collective collective;
	struct options options;
	struct writer *writer;
	float *snapshot, *plain;
	size_t bytes;
	double times[WAYS][MOST_ROUNDS];
};

static void die(const char *what)
{
	fprintf(stderr, "checkpoint: %s\n", what);
	exit(1);
}

/* Memory that is there. */
static float *take(size_t bytes)
{
	float *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!memory)
		die("no memory");
	memset(memory, 1, bytes);
	return memory;
}

/* A trainer that has no more than parameters and moments. */
static void prepare(struct bench *bench, size_t bytes)
{
	struct trainer *trainer = &bench->trainer;
	size_t part = bytes / 3 / 64 * 64;

	bench->bytes = 3 * part;
	bench->model.param_count = part / sizeof(float);
	bench->collective.size = 1;
	bench->options.optimizer = OPTIMIZER_ADAMW;
	trainer->options = &bench->options;
	trainer->model = &bench->model;
	trainer->collective = &bench->collective;
	trainer->device.table = &device_cpu;
	if (device_cpu.open(&trainer->device, DEVICE_FP32,
			    (size_t[SPACES]){ 0 }, 1, NULL) < 0)
		die("no device");
	trainer->master = take(part);
	trainer->m = take(part);
	trainer->v = take(part);
	bench->snapshot = take(bench->bytes);
	bench->plain = take(bench->bytes);
	bench->writer = writer_create(NULL);
	if (!bench->writer)
		die("no writer");
}

static void stop_and_save(struct bench *bench, int round, uint64_t step)
{
	struct ddp_error error;
	uint32_t crc;
	double begin = ddp_clock_seconds();

	state_copy(&bench->trainer, bench->snapshot);
	writer_begin(bench->writer, &(struct writer_job){
		.dir = bench->dir, .step = step, .name = "shard", .id = "id",
		.bytes = bench->snapshot, .count = bench->bytes });
	bench->times[STOP][round] = ddp_clock_seconds() - begin;
	while (!writer_wait(bench->writer))
		continue;
	bench->times[SAVE][round] = ddp_clock_seconds() - begin;
	if (writer_get_result(bench->writer, &crc, &error) < 0)
		die(error.text);
}

static void copy_and_write(struct bench *bench, int round)
{
	double begin = ddp_clock_seconds();
	const char *bytes = (const char *)bench->plain;
	size_t done = 0, part = bench->bytes / 3;
	int fd;

	memcpy(bench->plain, bench->trainer.master, part);
	memcpy((char *)bench->plain + part, bench->trainer.m, part);
	memcpy((char *)bench->plain + 2 * part, bench->trainer.v, part);
	bench->times[COPY][round] = ddp_clock_seconds() - begin;
	begin = ddp_clock_seconds();
	fd = open("plain", O_WRONLY | O_CREAT | O_TRUNC, 0666);
	while (done < bench->bytes) {
		ssize_t count = write(fd, bytes + done, bench->bytes - done);

		if (count <= 0)
			die("cannot write");
		done += (size_t)count;
	}
	if (fsync(fd) < 0 || close(fd) < 0)
		die("cannot write");
	bench->times[PLAIN][round] = ddp_clock_seconds() - begin;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return first < second ? -1 : first > second;
}

static double find_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

static void print(struct bench *bench, const char *what, int rounds, int a,
		  int b, const char *names)
{
	double ratios[MOST_ROUNDS], first, second;

	for (int i = 0; i < rounds; i++)
		ratios[i] = bench->times[a][i] / bench->times[b][i];
	first = find_median(bench->times[a], rounds);
	second = find_median(bench->times[b], rounds);
	printf("%s: %.2f times %s (%.1f and %.1f ms); the fastest %.2f times "
	       "(%.1f and %.1f ms)\n", what, find_median(ratios, rounds),
	       names, 1e3 * first, 1e3 * second,
	       bench->times[a][0] / bench->times[b][0],
	       1e3 * bench->times[a][0], 1e3 * bench->times[b][0]);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 128;
	int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 9;

	if (argc < 2 || argc > 4 || !mib || rounds < 1 ||
	    rounds > MOST_ROUNDS || chdir(argv[1]) < 0)
		die("its arguments are DIR [MIB [ROUNDS]]");
	bench.dir = ".";
	prepare(&bench, mib << 20);
	/* One more, first, is not counted. */
	for (int i = 0; i <= rounds; i++) {
		int round = i > 0 ? i - 1 : 0;

		if (i % 2)
			copy_and_write(&bench, round);
		stop_and_save(&bench, round, (uint64_t)i + 1);
		if (i % 2 == 0)
			copy_and_write(&bench, round);
		folder_prune(&(struct folder_prune){
			.dir = bench.dir, .step = (uint64_t)i + 2, .keep = 1,
			.id = "none" });
		unlink("plain");
	}
	printf("%zu MiB of state, medians of %d rounds\n", bench.bytes >> 20,
	       rounds);
	print(&bench, "training stops", rounds, STOP, COPY, "memcpy");
	print(&bench, "a save takes", rounds, SAVE, PLAIN,
	      "a plain write and fsync");
	writer_destroy(bench.writer);
	device_cpu.close(&bench.trainer.device);
	return 0;
}
