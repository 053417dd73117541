/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint DIR [MIB [ROUNDS]]: how long training stops for a checkpoint, to
 * copy the state and to write the manifest's text, as a multiple of memcpy() of
 * the same bytes; how long the whole save takes, from the copy until its
 * manifest is there for good, as a multiple of a plain write and fsync of them;
 * and how long it takes with the removal of the checkpoint before, as a multiple
 * of a plain write, fsync and unlink of such a file. Both in turn, each round in
 * the opposite order; prints medians of times, in ms, and of ratios of a round,
 * and the fastest of each, which other work on the machine disturbs least.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest_text.h"
#include "checkpoint/recall.h"
#include "step/state.h"
#include "checkpoint/writer.h"
#include "collective.h"
#include "model.h"
#include "step/trainer.h"
#include "util/clock.h"

#define ID "0123456789abcdef"

enum {
	STOP, COPY, SAVE, PLAIN, ROTATION, REPLACEMENT, WAYS,
	MOST_ROUNDS = 1000, TEXT = 4096, LOOK_US = 100
};

struct bench {
	const char *dir;
	struct trainer trainer;
	struct collective collective;
	struct options options;
	struct writer *writer;
	struct state state;
	struct manifest manifest;	/* of the save under way */
	struct manifest_shard shard;
	struct range ranges[1];
	char *parameters, *text;
	char settings[TEXT];
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

/* The defaults of ddp-train, which the manifest lists. */
static void prepare_options(struct bench *bench)
{
	char *argv[] = { "checkpoint", "--preset", "10M", "--data", "-", NULL };
	struct options *options = &bench->options;
	struct ddp_error error;

	if (options_parse(options, 5, argv, &error) < 0 ||
	    options_complete(options, 1, &error) < 0)
		die(error.text);
	tool_options_describe(&train_options, options, bench->settings, TEXT);
}

/*
 * A trainer that has no more than parameters and moments. Whatever their
 * number is, the manifest lists the parameters of preset 10M.
 */
static void prepare_trainer(struct bench *bench, size_t part)
{
	struct trainer *trainer = &bench->trainer;
	struct ddp_error error;

	bench->collective.size = 1;
	trainer->options = &bench->options;
	trainer->collective = &bench->collective;
	trainer->device.table = &device_cpu;
	trainer->model = gpt_create(&bench->options.shape, 1,
				    &trainer->device, DEVICE_FP32, true, &error);
	if (!trainer->model ||
	    device_cpu.open(&trainer->device, DEVICE_FP32,
			    (size_t[SPACES]){ 0 }, 1, &error) < 0)
		die(error.text);
	trainer->model->param_count = part / sizeof(float);
	trainer->buckets.collective = &bench->collective;
	if (buckets_create(&trainer->buckets, trainer->model->param_count,
			   bench->options.bucket_bytes) < 0)
		die("no memory");
	trainer->master = take(part);
	trainer->m = take(part);
	trainer->v = take(part);
}

static void prepare(struct bench *bench, size_t bytes)
{
	size_t part = bytes / 3 / 64 * 64;
	struct ddp_error error;

	bench->bytes = 3 * part;
	prepare_options(bench);
	prepare_trainer(bench, part);
	state_list(&bench->trainer, &bench->state);
	bench->parameters = state_format_parameters(&bench->trainer);
	bench->snapshot = take(bench->bytes);
	bench->plain = take(bench->bytes);
	bench->writer = writer_create(&error);
	if (!bench->parameters || !bench->writer ||
	    owner_take(bench->dir, ID, &error) < 0)
		die(!bench->parameters ? "no memory" : error.text);
}

/* As save.c has it. */
static void begin_manifest(struct bench *bench, uint64_t step)
{
	const struct state *state = &bench->state;

	bench->manifest = (struct manifest){
		.step = step, .updates = step, .seconds = 1,
		.values = state->length, .state_count = state->count,
		.options = bench->settings, .parameters = bench->parameters,
		.shards = &bench->shard, .shard_count = 1,
		.ranges = bench->ranges
	};
	for (int i = 0; i < state->count; i++)
		bench->manifest.states[i] = state->names[i];
	bench->manifest.range_count = state_list_ranges(&bench->trainer, 0,
							bench->ranges);
	bench->shard = (struct manifest_shard){
		.file = "shard-0-of-1." ID,
		.count = bench->manifest.range_count
	};
}

static void begin_shard(struct bench *bench)
{
	writer_begin(bench->writer, &(struct writer_job){
		.dir = bench->dir, .step = bench->manifest.step,
		.name = bench->shard.file, .id = ID,
		.bytes = bench->snapshot, .count = bench->bytes });
}

static void commit(struct bench *bench)
{
	uint64_t step = bench->manifest.step;

	free(bench->text);
	bench->text = manifest_format(&bench->manifest);
	if (!bench->text)
		die("no memory");
	writer_begin(bench->writer, &(struct writer_job){
		.dir = bench->dir, .step = step, .name = FOLDER_MANIFEST,
		.id = ID, .bytes = bench->text,
		.count = strlen(bench->text), .commits = &bench->manifest,
		.prune = { .dir = bench->dir, .step = step,
			   .before = step - 1, .keep = 1, .id = ID,
			   .is_broken = recall_is_broken } });
}

/* Until the writer's job is done; its checksum. */
static uint32_t await(struct bench *bench)
{
	struct ddp_error error;
	uint32_t crc;

	while (!writer_wait(bench->writer))
		continue;
	if (writer_get_result(bench->writer, &crc, &error) < 0)
		die(error.text);
	return crc;
}

/*
 * When the checkpoint before loses its manifest: what the job does next when
 * the new one is synced. A job that has removed all is past that, too.
 */
static double await_commit(struct bench *bench)
{
	char *path = NULL;

	if (asprintf(&path, "step-%" PRIu64 "/" FOLDER_MANIFEST,
		     bench->manifest.step - 1) < 0)
		die("no memory");
	while (!writer_is_idle(bench->writer) && access(path, F_OK) == 0)
		usleep(LOOK_US);
	free(path);
	return ddp_clock_seconds();
}

static void stop_and_save(struct bench *bench, int round, uint64_t step)
{
	double begin = ddp_clock_seconds(), stop;
	struct ddp_error error;

	if (state_copy(&bench->trainer, &bench->state, bench->snapshot,
		       &error) < 0)
		die(error.text);
	begin_manifest(bench, step);
	begin_shard(bench);
	stop = ddp_clock_seconds() - begin;
	bench->shard.crc = await(bench);
	stop -= ddp_clock_seconds();
	commit(bench);
	stop += ddp_clock_seconds();
	bench->times[SAVE][round] = await_commit(bench) - begin;
	await(bench);
	bench->times[STOP][round] = stop;
	bench->times[ROTATION][round] = ddp_clock_seconds() - begin;
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
	unlink("plain");
	bench->times[REPLACEMENT][round] = ddp_clock_seconds() - begin;
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
	}
	printf("%zu MiB of state, medians of %d rounds\n", mib, rounds);
	print(&bench, "training stops", rounds, STOP, COPY, "memcpy");
	print(&bench, "a save takes", rounds, SAVE, PLAIN,
	      "a plain write and fsync");
	print(&bench, "and with the one before removed", rounds, ROTATION,
	      REPLACEMENT, "a plain write, fsync and unlink");
	writer_destroy(bench.writer);
	buckets_destroy(&bench.trainer.buckets);
	free(bench.text);
	free(bench.parameters);
	free(bench.trainer.model);
	device_cpu.close(&bench.trainer.device);
	return 0;
}
