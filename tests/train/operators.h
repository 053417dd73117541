/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the operators share.  A case runs twice: first it is
 * checked; then its tensors lie elsewhere, and the results must have the same
 * bits.  Around each tensor lie guards: NaN to whoever reads them, and seen
 * when written.
 *
 * The tolerances are of the relative L2 distance of a tensor.  fp32 rounds by
 * up to 2^-24 = 6e-8, and a sum of n terms errs by about sqrt(n) of that if it
 * is formed one by one: 1e-6 at the 300 terms that are most here.  Backward,
 * two or three such sums follow each other.  A central difference of fp64 errs
 * by about 1e-9: rounding gives 1e-16 * 1e2 / 1e-5, the step's square 1e-10.
 * What is to be seen is larger: a GELU by erf moves y by 1e-4.
 */
#ifndef DDP_TEST_OPERATORS_H
#define DDP_TEST_OPERATORS_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp_error.h"
#include "device.h"
#include "fold.h"

#define FORWARD 2e-6
#define BACKWARD 5e-6
#define STEP 1e-5

enum { ARENA = 64 << 20, POOL = 1 << 21, GUARD = 128, MOST_GUARDS = 64,
       DIRECTIONS = 50, MOST_TOKENS = 1024 };

struct tensor {
	size_t count;
	double *value;		/* what was put there or has been read; or 0 */
	float *at;		/* on the device */
};

typedef double objective(const void *operands);

static struct device device;
static double pool[POOL];
static float staging[POOL];
static struct {
	size_t pool_used, device_used;
	char *guards[MOST_GUARDS];
	int guard_count;
	uint64_t random, hash;
	bool moved, failed;
} now;
static int test_count, failure_count;
static double worst[2];

__attribute__((format(printf, 2, 3)))
static void result(bool good, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("%sok %d - ", good ? "" : "not ", ++test_count);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
	failure_count += !good;
}

static void fail(const char *what, const char *why, double number)
{
	now.failed = true;
	printf("# %s: %s %g\n", what, why, number);
}

static void bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

/* Uniform below 1. */
static double uniform(void)
{
	now.random = now.random * UINT64_C(6364136223846793005) +
		     UINT64_C(1442695040888963407);
	return (double)(now.random >> 11) * 0x1p-53;
}

/* Nearly normal: mean 0, deviation 1. */
static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum - 6;
}

static double *host_doubles(size_t count)
{
	double *values = pool + now.pool_used;

	now.pool_used += count;
	if (now.pool_used > POOL)
		bail_out("a case does not fit the pool");
	memset(values, 0, count * sizeof(*values));
	return values;
}

static void copy(void *to, const void *from, size_t bytes)
{
	device.table->copy(&device, QUEUE_COMPUTE, to, from, bytes);
	if (device.table->check(&device, NULL) < 0)
		bail_out("work on the device failed");
}

/* Signalling NaNs: what is computed from one has other bits. */
static unsigned char guard_byte(int i)
{
	return i % 4 == 2 ? 0xbf : 0xff;
}

static void guard(char *at)
{
	unsigned char bytes[GUARD];

	for (int i = 0; i < GUARD; i++)
		bytes[i] = guard_byte(i);
	copy(at, bytes, sizeof(bytes));
	now.guards[now.guard_count++] = at;
}

/* bytes of the device's memory, all 0xff, between guards. */
static void *place(size_t bytes)
{
	size_t step = now.moved ? (size_t)(now.guard_count % 5 + 1) : 0;
	size_t begin = now.device_used + (step + 2) * DEVICE_ALIGN;
	char *at = device.arena[SPACE_DEVICE] + begin;

	now.device_used = (begin + bytes + GUARD + DEVICE_ALIGN - 1) /
			  DEVICE_ALIGN * DEVICE_ALIGN;
	if (now.device_used > ARENA || bytes > sizeof(staging) ||
	    now.guard_count + 2 > MOST_GUARDS)
		bail_out("a case does not fit the arena");
	memset(staging, 0xff, bytes);
	copy(at, staging, bytes);
	guard(at - GUARD);
	guard(at + bytes);
	return at;
}

static void check_guards(void)
{
	for (int i = 0; i < now.guard_count; i++) {
		unsigned char bytes[GUARD];
		int changed = 0;

		copy(bytes, now.guards[i], GUARD);
		for (int j = 0; j < GUARD; j++)
			changed += bytes[j] != guard_byte(j);
		if (changed)
			fail("memory beside a tensor", "changed bytes:",
			     changed);
	}
}

static void *place_work(const struct device_shape *shape)
{
	return place(device.table->work_bytes(shape));
}

static void *put(const void *from, size_t bytes)
{
	void *at = place(bytes);

	copy(at, from, bytes);
	return at;
}

/* The device's bytes; they count among the results of the case. */
static void read_back(void *to, const void *at, size_t bytes)
{
	const unsigned char *read = to;

	copy(to, at, bytes);
	for (size_t i = 0; i < bytes; i++)
		now.hash = (now.hash ^ read[i]) * UINT64_C(0x100000001b3);
}

/* On the device nothing but NaN, of which the values, 0, know nothing. */
static struct tensor blank(size_t count)
{
	return (struct tensor){ count, host_doubles(count),
				place(count * sizeof(float)) };
}

/* The values are rounded to fp32. */
static void store(const struct tensor *tensor)
{
	for (size_t i = 0; i < tensor->count; i++) {
		staging[i] = (float)tensor->value[i];
		tensor->value[i] = staging[i];
	}
	copy(tensor->at, staging, tensor->count * sizeof(float));
}

static void fetch(const struct tensor *tensor)
{
	read_back(staging, tensor->at, tensor->count * sizeof(float));
	for (size_t i = 0; i < tensor->count; i++)
		tensor->value[i] = staging[i];
}

static struct tensor draw(size_t count, double mean, double deviation)
{
	struct tensor tensor = blank(count);

	for (size_t i = 0; i < count; i++)
		tensor.value[i] = mean + deviation * normal();
	store(&tensor);
	return tensor;
}

/* At most MOST_TOKENS; the next call overwrites them. */
static const int32_t *draw_tokens(int count, int vocab, const int32_t **at)
{
	static int32_t tokens[MOST_TOKENS];

	for (int i = 0; i < count; i++)
		tokens[i] = (int32_t)(uniform() * vocab);
	*at = put(tokens, (size_t)count * sizeof(*tokens));
	return tokens;
}

/* A copy of the values. */
static double *twin(const struct tensor *tensor)
{
	double *values = host_doubles(tensor->count);

	return memcpy(values, tensor->value, tensor->count * sizeof(*values));
}

static void judge(const char *what, double square, double norm,
		  double tolerance, double *most)
{
	double distance = sqrt(square);

	if (!(distance <= tolerance * sqrt(norm)))
		fail(what, "relative L2", distance / sqrt(norm));
	else if (norm > 0 && distance / sqrt(norm) > *most)
		*most = distance / sqrt(norm);
}

/* The tensor on the device against what it should be. */
static void compare(const char *what, const struct tensor *had,
		    const double *wanted, double tolerance)
{
	double square = 0, norm = 0;

	fetch(had);
	for (size_t i = 0; i < had->count; i++) {
		square += pow(had->value[i] - wanted[i], 2);
		norm += wanted[i] * wanted[i];
	}
	judge(what, square, norm, tolerance, &worst[0]);
}

/* One direction in which a gradient is checked. */
struct probe {
	size_t count;
	double *x;
	const double *here;
	signed char *direction;
};

static double difference(objective *f, const void *operands,
			 const struct probe *probe)
{
	double value[2];

	for (int up = 0; up < 2; up++) {
		for (size_t i = 0; i < probe->count; i++)
			probe->x[i] = probe->here[i] + (up ? STEP : -STEP) *
				      probe->direction[i];
		value[up] = f(operands);
	}
	return (value[1] - value[0]) / (2 * STEP);
}

/*
 * What dx on the device now has more than its values, against differences of
 * f: along each axis, or where the axes are too many for the work of an f,
 * along random diagonals, in which an error of any element shows.
 */
static void gradient(const char *what, objective *f, const void *operands,
		     double work, const struct tensor *x,
		     const struct tensor *dx)
{
	size_t count = x->count;
	bool axes = (double)count * work < 2e7;
	double *here = twin(x), *before = twin(dx), square = 0, norm = 0;
	struct probe probe = { count, x->value, here,
			       (signed char *)host_doubles(count) };
	uint64_t random = now.random;

	fetch(dx);
	for (size_t i = 0; i < (axes ? count : DIRECTIONS) && !now.moved; i++) {
		double wanted, had = 0;

		for (size_t j = 0; j < count; j++) {
			probe.direction[j] = axes ? i == j :
					     uniform() < 0.5 ? -1 : 1;
			had += probe.direction[j] *
			       (dx->value[j] - before[j]);
		}
		wanted = difference(f, operands, &probe);
		square += pow(had - wanted, 2);
		norm += wanted * wanted;
	}
	memcpy(x->value, here, count * sizeof(*here));
	now.random = random;
	judge(what, square, norm, BACKWARD, &worst[1]);
}

static void test_case(const char *name, void (*body)(const void *),
		      const void *arguments)
{
	uint64_t first = 0;
	bool failed = false;

	for (int moved = 0; moved < 2; moved++) {
		memset(&now, 0, sizeof(now));
		now.moved = moved;
		body(arguments);
		check_guards();
		failed = failed || now.failed;
		if (moved && now.hash != first) {
			puts("# other bits at another address");
			failed = true;
		}
		first = now.hash;
	}
	result(!failed, "%s", name);
}

#endif
