/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allreduce BACKEND ORDER NODES ROUNDS SEED [TIMEOUT]: drives a collective,
 * which waits no longer than TIMEOUT seconds, with random ranges, operations,
 * types, delays and late events, and compares every value with what each rank
 * works out alone from all ranks' inputs, which are functions of seed, rank,
 * round and position. Silent and 0 if all is right.
 *
 * BACKEND is self or mpi, ORDER plain or deterministic. NODES has a digit for
 * each rank, the node that this rank takes for its own (by a fake
 * MPI_Comm_split_type()); with "real" MPI finds the nodes.
 *
 * allreduce room BYTES: only allocates; prints the error and exits with 3.
 */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "ddp_error.h"
#include "step/sum_tree.h"

enum { TOTAL = 1 << 23, MOST = 3000000, MOST_RANKS = 16, MOST_RANGES = 40 };

struct range {
	enum collective_op op;
	size_t offset, count;		/* of floats */
	enum device_type type;		/* of the values that lie there */
	uint64_t ticket;
};

struct test {
	struct collective collective;
	const struct collective_table *table;
	struct device device;
	float *buffer;
	bool nested;			/* sums within nodes come first */
	int node[MOST_RANKS];
	uint64_t seed, shared, own;	/* random: of all ranks, of this one */
	uint64_t tickets;
	int round, ranges;
	struct range range[MOST_RANGES];
};

static const char *fake_nodes;		/* NULL: the real ones */
static bool come[DEVICE_EVENTS];

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info,
			MPI_Comm *part)
{
	int rank;

	if (!fake_nodes)
		return PMPI_Comm_split_type(comm, type, key, info, part);
	PMPI_Comm_rank(comm, &rank);
	return PMPI_Comm_split(comm, fake_nodes[rank] - '0', key, part);
}

static int query(struct device *device, int event)
{
	(void)device;
	return come[event];
}

/* The buffer of one process; it lasts until the end. */
static void *alloc(struct device *device, size_t bytes, struct ddp_error *error)
{
	void *buffer = aligned_alloc(DEVICE_ALIGN, bytes);

	(void)device;
	(void)error;
	return buffer ? memset(buffer, 0, bytes) : NULL;
}

static const struct device_table device = {
	.abi = DEVICE_ABI, .name = "fake", .query = query, .alloc = alloc
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static size_t pick(uint64_t *state, size_t below)
{
	*state += 0x9e3779b97f4a7c15;
	return mix(*state) % below;
}

/*
 * x in a type, from the definition of these: `digits` binary ones, the last
 * never smaller than 2^least; what is nearer to 2^past than to the largest
 * number is infinite.
 */
static float round_to(enum device_type type, float x)
{
	int digits = type == DEVICE_BF16 ? 8 : 11;
	int least = type == DEVICE_BF16 ? -133 : -24;
	int past = type == DEVICE_BF16 ? 128 : 16, exponent;
	double rounded, last;

	if (type == DEVICE_FP32 || !isfinite(x) || x == 0.0f)
		return x;
	frexp((double)x, &exponent);
	last = ldexp(1, exponent - digits > least ? exponent - digits : least);
	rounded = rint((double)x / last) * last;
	if (fabs(rounded) >= ldexp(1, past))
		return copysignf(INFINITY, x);
	return (float)rounded;
}

/* A rank's input: of any size, so that the order of a sum shows. */
static float input(const struct test *test, int rank, size_t i)
{
	static const float odd[] = {
		NAN, INFINITY, -INFINITY, FLT_TRUE_MIN, -FLT_TRUE_MIN,
		FLT_MIN / 3, FLT_MAX, 0.0f, -0.0f, -0.0f
	};
	uint64_t x = mix(mix(test->seed * 1000 + (uint64_t)test->round) +
			 mix((uint64_t)rank + 1) + i * 0x9e3779b97f4a7c15);
	size_t kind = x >> 56;

	if (kind < 10)
		return odd[kind];
	/* All ranks have -0 at some places, or subnormals at others. */
	if (i % 97 == 5)
		return -0.0f;
	if (i % 97 == 7)
		return FLT_TRUE_MIN * (float)(x % 1000);
	return ldexpf((float)(x % 16777216) - 8388608, (int)(x >> 32) % 24);
}

/*
 * Position i of a tree over n values, at the level where it adds the positions
 * that are multiples of stride away from it.
 */
static float tree(const float *values, int n, int i, int stride)
{
	float sum;

	if (stride >= n)
		return values[i];
	sum = tree(values, n, i, stride * 2);
	return i + stride < n ?
		sum + tree(values, n, i + stride, stride * 2) : sum;
}

static float exact_sum(const struct test *test, enum device_type type, size_t i)
{
	float all[MOST_RANKS], part[MOST_RANKS], nodes[MOST_RANKS];
	int size = test->collective.size;

	for (int rank = 0; rank < size; rank++)
		all[rank] = round_to(type, input(test, rank, i));
	if (!test->nested)
		return round_to(type, tree(all, size, 0, 1));
	for (int node = 0; node < test->collective.nodes; node++) {
		int n = 0;

		for (int rank = 0; rank < size; rank++)
			if (test->node[rank] == node)
				part[n++] = all[rank];
		nodes[node] = round_to(type, tree(part, n, 0, 1));
	}
	return round_to(type, tree(nodes, test->collective.nodes, 0, 1));
}

/* In values of its type; 16-bit ones begin in the middle of a float. */
static size_t first_value(const struct range *range)
{
	return range->type == DEVICE_FP32 ? range->offset :
					    2 * range->offset + 1;
}

/* The value that stands for position i of a range. */
static void *find_value(const struct test *test, const struct range *range,
			size_t i)
{
	return (char *)test->buffer + (first_value(range) + i -
		range->offset) * device_type_bytes(range->type);
}

static int owner(const struct test *test, const struct range *range, size_t i)
{
	size_t size = (size_t)test->collective.size;
	size_t length = (range->count + size - 1) / size;

	length = (length + 4095) / 4096 * 4096;
	return (int)((i - range->offset) / length);
}

/* Whether value i is right; all NaNs count as equal. */
static bool is_right(const struct test *test, const struct range *range,
		     size_t i)
{
	int whose = owner(test, range, i);
	float had, want;

	half_widen(range->type, find_value(test, range, i), &had, 1);
	if (range->op == REDUCE_SCATTER && whose != test->collective.rank)
		return true;
	if (range->op == BROADCAST)
		want = round_to(range->type, input(test, 0, i));
	else if (range->op == ALL_GATHER)
		want = round_to(range->type, input(test, whose, i));
	else
		want = exact_sum(test, range->type, i);
	if (isnan(want) ? isnan(had) : memcmp(&had, &want, 4) == 0)
		return true;
	printf("round %d, ticket %lu, operation %d over %zu of type %d from "
	       "%zu, value %zu: rank %d has %a, not %a\n", test->round,
	       (unsigned long)range->ticket, range->op, range->count,
	       range->type, range->offset, i, test->collective.rank,
	       (double)had, (double)want);
	return false;
}

static void fail(struct test *test, const char *text)
{
	fflush(stdout);
	test->table->abort(&test->collective, text);
}

static void fill(const struct test *test, const struct range *range,
		 bool garbage)
{
	for (size_t i = range->offset; i < range->offset + range->count; i++) {
		float value = garbage ? 12345.0f :
			input(test, test->collective.rank, i);

		half_round(range->type, &value, find_value(test, range, i), 1);
	}
}

static void dawdle(struct test *test)
{
	for (size_t i = pick(&test->own, 4); i > 0; i--) {
		test->table->poll(&test->collective);
		if (pick(&test->own, 8) == 0)
			usleep((useconds_t)pick(&test->own, 2000));
	}
}

/* Ranges with gaps between them, whose values must not change. */
static void choose_ranges(struct test *test)
{
	static const size_t counts[] = {
		0, 1, 2, 15, 16, 17, 31, 33, 1000, 4099, 65537, 262144, 600011
	};
	size_t end = 0;

	test->ranges = 1 + (int)pick(&test->shared,
				     pick(&test->shared, 4) ? 6 : MOST_RANGES);
	for (int i = 0; i < test->ranges; i++) {
		struct range *range = &test->range[i];

		range->op = (enum collective_op)
			(pick(&test->shared, 7) % (BROADCAST + 1));
		range->type = (enum device_type)pick(&test->shared, 3);
		range->count = counts[pick(&test->shared, test->ranges > 6 ?
					   11 : 13)];
		if (i == 0 && test->round % 8 == 1)
			range->count = MOST;
		range->offset = end + 1 + pick(&test->shared, 40);
		end = range->offset + range->count;
	}
	if (end > TOTAL)
		fail(test, "the test's ranges do not fit");
}

static void start(struct test *test, struct range *range, int event)
{
	bool soon = pick(&test->own, 3) > 0;

	fill(test, range, !soon);
	come[event] = soon;
	range->ticket = test->table->start(&test->collective, range->op,
					   first_value(range), range->count,
					   range->type, event);
	if (range->ticket != ++test->tickets)
		fail(test, "tickets are not numbered in order");
	dawdle(test);
	if (!soon)
		fill(test, range, false);
	come[event] = true;
}

/* The halves of floats at both ends of a range of 16-bit values. */
static void check_neighbours(struct test *test, const struct range *range)
{
	const uint16_t *halves = (const uint16_t *)test->buffer;
	size_t first = first_value(range), last = first + range->count;
	const float kept = 777.0f;
	uint16_t want[2];

	if (range->type == DEVICE_FP32 || range->count == 0)
		return;
	memcpy(want, &kept, sizeof(kept));
	if (halves[first - 1] != want[0] || halves[last] != want[last % 2])
		fail(test, "half a float beside a range has changed");
}

/* After the wait, the caller may write the range. */
static void finish(struct test *test, struct range *range)
{
	dawdle(test);
	test->table->wait(&test->collective, range->ticket, QUEUE_COMPUTE);
	for (size_t i = range->offset; i < range->offset + range->count; i++)
		if (!is_right(test, range, i))
			fail(test, "a value is wrong");
	fill(test, range, true);
	check_neighbours(test, range);
}

static void check_gaps(struct test *test)
{
	size_t i = 0;

	for (int r = 0; r <= test->ranges; r++) {
		size_t end = r < test->ranges ? test->range[r].offset : i + 40;

		for (; i < end; i++)
			if (test->buffer[i] != 777.0f)
				fail(test, "a value outside has changed");
		if (r < test->ranges)
			i += test->range[r].count;
	}
}

static void check_agree(struct test *test)
{
	static unsigned char mine[999], all[MOST_RANKS][999];
	size_t bytes = 1 + pick(&test->shared, sizeof(mine));

	memset(mine, test->round + 3 * test->collective.rank, bytes);
	test->table->agree(&test->collective, mine, all, bytes);
	for (int rank = 0; rank < test->collective.size; rank++)
		for (size_t i = 0; i < bytes; i++)
			if (((unsigned char *)all)[(size_t)rank * bytes + i] !=
			    (unsigned char)(test->round + 3 * rank))
				fail(test, "agree has mixed the ranks up");
}

/* Rank 0 starts and polls before the others have started: it must not wait. */
static void check_poll(struct test *test)
{
	struct range range = { ALL_REDUCE, 64, 4096, DEVICE_FP32, 0 };

	if (test->collective.rank > 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	start(test, &range, 0);
	for (int i = 0; i < 100; i++)
		test->table->poll(&test->collective);
	for (int rank = 1; rank < test->collective.size &&
	     test->collective.rank == 0; rank++)
		MPI_Send(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
	finish(test, &range);
}

static void run_round(struct test *test)
{
	bool backwards = pick(&test->own, 2);

	choose_ranges(test);
	for (size_t i = 0; i < TOTAL; i++)
		test->buffer[i] = 777.0f;
	for (int i = 0; i < test->ranges; i++)
		start(test, &test->range[i], i);
	if (pick(&test->shared, 2))
		check_agree(test);
	for (int i = 0; i < test->ranges; i++)
		finish(test, &test->range[backwards ? test->ranges - 1 - i :
					  i]);
	check_gaps(test);
}

/* Number the nodes by lowest rank; are they all of one size? */
static void find_nodes(struct test *test, bool deterministic)
{
	static char mine[256], names[MOST_RANKS][256];
	int size = test->collective.size, nodes = 0, most = 0;
	int count[MOST_RANKS] = { 0 };

	if (fake_nodes)
		mine[0] = fake_nodes[test->collective.rank];
	else
		gethostname(mine, sizeof(mine) - 1);
	test->table->agree(&test->collective, mine, names, sizeof(mine));
	for (int rank = 0; rank < size; rank++) {
		int first = 0;

		while (strcmp(names[first], names[rank]) != 0)
			first++;
		test->node[rank] = first < rank ? test->node[first] : nodes++;
		count[test->node[rank]]++;
		if (count[test->node[rank]] > most)
			most = count[test->node[rank]];
	}
	test->nested = !deterministic && nodes > 1;
	for (int node = 1; node < nodes; node++)
		test->nested = test->nested && count[node] == count[0];
	if (test->collective.nodes != nodes || test->collective.most != most)
		fail(test, "nodes are counted wrong");
}

static int allocate(struct test *test, size_t bytes, bool deterministic)
{
	struct collective_plan plan = { .bytes = bytes,
					.largest = MOST * sizeof(float),
					.own = 10 << 20,
					.deterministic = deterministic };
	struct ddp_error error = { 0 };

	test->device.table = &device;
	test->buffer = test->table->alloc(&test->collective, &test->device,
					  &plan, &error);
	if (test->buffer)
		return 0;
	printf("%s\n", error.text);
	return 3;
}

int main(int argc, char **argv)
{
	struct test test = { .table = &collective_mpi };
	volatile float least = FLT_TRUE_MIN;
	bool room = argc == 3;
	int status;

	if (argc != 6 && argc != 7 && !room)
		return 2;
	if (strcmp(argv[1], "self") == 0)
		test.table = &collective_self;
	if (!room && strcmp(argv[3], "real") != 0)
		fake_nodes = argv[3];
	test.collective = (struct collective){
		.table = test.table, .size = 1, .nodes = 1, .most = 1,
		.timeout = argc == 7 ? atof(argv[6]) : 0
	};
	test.table->open(&test.collective, NULL);
	if (least + least == 0.0f)
		fail(&test, "subnormal numbers count as zero");
	status = allocate(&test, room ? strtoul(argv[2], NULL, 10) :
			  TOTAL * sizeof(float),
			  strcmp(argv[2], "deterministic") == 0);
	if (status == 0 && !room) {
		find_nodes(&test, strcmp(argv[2], "deterministic") == 0);
		test.seed = test.shared = strtoul(argv[5], NULL, 10);
		test.own = mix((uint64_t)test.collective.rank + test.seed);
		if (test.table == &collective_mpi)
			check_poll(&test);
		for (int round = 1; round <= atoi(argv[4]); round++) {
			test.round = round;
			run_round(&test);
		}
	}
	test.table->close(&test.collective);
	return status;
}
