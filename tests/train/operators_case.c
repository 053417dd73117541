/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of the operators: their tensors, what they are compared with, TAP. */
#include "operators.h"
#include "step/sum_tree.h"

#include <setjmp.h>
#include <stdarg.h>

#define STEP 1e-5

enum {
	POOL = 1 << 21, GUARD = 128, MOST_GUARDS = 64, DIRECTIONS = 50,
	MOST_TOKENS = 1024
};

struct device device;
bool apart;
static double pool[POOL];
static float staging[POOL];
static float rounded[POOL];	/* or 16-bit values */
static struct {
	size_t pool_used, device_used;
	char *guards[MOST_GUARDS];
	int guard_count;
	uint64_t random, hash;
	bool moved, failed;
} now;
static int test_count, failure_count;
static jmp_buf lost;		/* to where a case goes on without the device */
static bool in_case;
double worst[2], rounding;

void result(bool good, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("%sok %d - ", good ? "" : "not ", ++test_count);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
	failure_count += !good;
}

void fail(const char *what, const char *why, double number)
{
	now.failed = true;
	printf("# %s: %s %g\n", what, why, number);
}

static void bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

void open_device(enum device_type type)
{
	struct ddp_error error;

	if (device.table->open(&device, type,
			       (size_t[SPACES]){ ARENA, ARENA, ARENA }, 1,
			       &error) == 0)
		return;
	printf("Bail out! the device does not open: %s\n", error.text);
	exit(1);
}

/* Does not return. An error stays with the device until that is closed. */
static void lose_device(const char *why)
{
	if (!in_case)
		bail_out(why);
	printf("# %s\n", why);
	longjmp(lost, 1);
}

double uniform(void)
{
	now.random = now.random * UINT64_C(6364136223846793005) +
		     UINT64_C(1442695040888963407);
	return (double)(now.random >> 11) * 0x1p-53;
}

double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum - 6;
}

double *host_doubles(size_t count)
{
	double *values = pool + now.pool_used;

	now.pool_used += count;
	if (now.pool_used > POOL)
		bail_out("a case does not fit the pool");
	memset(values, 0, count * sizeof(*values));
	return values;
}

void copy(void *to, const void *from, size_t bytes)
{
	struct ddp_error error;

	device.table->copy(&device, QUEUE_COMPUTE, to, from, bytes);
	if (device.table->check(&device, &error) < 0)
		lose_device(error.text);
}

/*
 * What is there before: NaN; and where a case runs again the largest numbers,
 * as some functions ignore NaN.
 */
static void spoil(void *at, size_t bytes)
{
	memset(at, now.moved ? 0x7f : 0xff, bytes);
}

/* Signalling NaNs: a result computed from one has other bits. */
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

/*
 * An allocation of its own, of no byte more, so that who checks each access
 * notices one that is beside the tensor and changes nothing.
 */
static void *place_apart(size_t bytes)
{
	size_t gap = now.moved ? (now.device_used % 5 + 1) * DEVICE_ALIGN : 0;
	struct ddp_error error;
	char *at = device.table->alloc(&device, gap + bytes + !bytes,
				       &error);

	if (!at || bytes > sizeof(staging))
		bail_out(at ? "a case does not fit" : error.text);
	now.device_used++;
	spoil(staging, bytes);
	copy(at + gap, staging, bytes);
	return at + gap;
}

static void *place_between_guards(size_t bytes)
{
	size_t step = now.moved ? (size_t)(now.guard_count % 5 + 1) : 0;
	size_t begin = now.device_used + (step + 2) * DEVICE_ALIGN;
	char *at = device.arena[SPACE_DEVICE] + begin;

	now.device_used = (begin + bytes + GUARD + DEVICE_ALIGN - 1) /
			  DEVICE_ALIGN * DEVICE_ALIGN;
	if (now.device_used > ARENA || bytes > sizeof(staging) ||
	    now.guard_count + 2 > MOST_GUARDS)
		bail_out("a case does not fit the arena");
	spoil(staging, bytes);
	copy(at, staging, bytes);
	guard(at - GUARD);
	guard(at + bytes);
	return at;
}

void *place(size_t bytes)
{
	return apart ? place_apart(bytes) : place_between_guards(bytes);
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

void *place_work(const struct device_shape *shape)
{
	struct device_shape typed = *shape;

	typed.type = device.type;
	return place(device.table->work_bytes(&typed));
}

void *put(const void *from, size_t bytes)
{
	void *at = place(bytes);

	copy(at, from, bytes);
	return at;
}

void read_back(void *to, const void *at, size_t bytes)
{
	const unsigned char *read = to;

	copy(to, at, bytes);
	for (size_t i = 0; i < bytes; i++)
		now.hash = (now.hash ^ read[i]) * UINT64_C(0x100000001b3);
}

static struct tensor blank_typed(size_t count, enum device_type type)
{
	return (struct tensor){ count, host_doubles(count),
				place(count * device_type_bytes(type)), type };
}

struct tensor blank(size_t count)
{
	return blank_typed(count, device.type);
}

struct tensor blank_table(int vocab, int width)
{
	size_t count = (size_t)vocab * (size_t)width;
	size_t room = (size_t)device_pad_rows(vocab) * (size_t)width;
	struct tensor table = {
		count, host_doubles(count), place(count_bytes(room)),
		device.type
	};

	if (room > count)
		device.table->zero(&device, value_at(device.type, table.at,
						     count),
				   count_bytes(room - count));
	return table;
}

struct tensor blank_floats(size_t count)
{
	return blank_typed(count, DEVICE_FP32);
}

size_t count_bytes(size_t count)
{
	return count * device_type_bytes(device.type);
}

static size_t count_tensor_bytes(const struct tensor *tensor)
{
	return tensor->count * device_type_bytes(tensor->type);
}

void store(const struct tensor *tensor)
{
	for (size_t i = 0; i < tensor->count; i++)
		staging[i] = (float)tensor->value[i];
	half_round(tensor->type, staging, rounded, tensor->count);
	copy(tensor->at, rounded, count_tensor_bytes(tensor));
	half_widen(tensor->type, rounded, staging, tensor->count);
	for (size_t i = 0; i < tensor->count; i++)
		tensor->value[i] = staging[i];
}

void fetch(const struct tensor *tensor)
{
	read_back(rounded, tensor->at, count_tensor_bytes(tensor));
	half_widen(tensor->type, rounded, staging, tensor->count);
	for (size_t i = 0; i < tensor->count; i++)
		tensor->value[i] = staging[i];
}

static struct tensor fill_normal(struct tensor tensor, double mean,
				 double deviation)
{
	for (size_t i = 0; i < tensor.count; i++)
		tensor.value[i] = mean + deviation * normal();
	store(&tensor);
	return tensor;
}

struct tensor draw(size_t count, double mean, double deviation)
{
	return fill_normal(blank(count), mean, deviation);
}

struct tensor draw_table(int vocab, int width, double mean, double deviation)
{
	return fill_normal(blank_table(vocab, width), mean, deviation);
}

struct tensor draw_floats(size_t count, double mean, double deviation)
{
	return fill_normal(blank_floats(count), mean, deviation);
}

const int32_t *draw_tokens(int count, int vocab, const int32_t **at)
{
	static int32_t tokens[MOST_TOKENS];

	for (int i = 0; i < count; i++)
		tokens[i] = (int32_t)(uniform() * vocab);
	*at = put(tokens, (size_t)count * sizeof(*tokens));
	return tokens;
}

double *twin(const struct tensor *tensor)
{
	double *values = host_doubles(tensor->count);

	return memcpy(values, tensor->value, tensor->count * sizeof(*values));
}

double widen_tolerance(double tolerance, const struct tensor *tensor)
{
	static const double unit[] = {
		[DEVICE_BF16] = 1.0 / 256, [DEVICE_FP16] = 1.0 / 2048
	};

	return fmax(tolerance, tensor->type == DEVICE_FP32 ? 0 :
			       rounding * unit[tensor->type]);
}

void judge(const char *what, double square, double norm,
	   double tolerance, double *most)
{
	double distance = sqrt(square);

	if (!(distance <= tolerance * sqrt(norm)))
		fail(what, "relative L2", distance / sqrt(norm));
	else if (device.type == DEVICE_FP32 && norm > 0 &&
		 distance / sqrt(norm) > *most)
		*most = distance / sqrt(norm);
}

void compare(const char *what, const struct tensor *had,
	     const double *wanted, double tolerance)
{
	double square = 0, norm = 0;

	fetch(had);
	for (size_t i = 0; i < had->count; i++) {
		square += pow(had->value[i] - wanted[i], 2);
		norm += wanted[i] * wanted[i];
	}
	judge(what, square, norm, widen_tolerance(tolerance, had),
	      &worst[0]);
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

void gradient(const char *what, objective *f, const void *operands,
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
	judge(what, square, norm, widen_tolerance(BACKWARD, dx), &worst[1]);
}

static bool run_case(void (*body)(const void *), const void *arguments)
{
	uint64_t first = 0;
	bool failed = false;

	for (int moved = 0; moved < 2; moved++) {
		restart_random();
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
	return !failed;
}

void test_case(const char *name, void (*body)(const void *),
	       const void *arguments)
{
	in_case = true;
	if (setjmp(lost) == 0) {
		result(run_case(body, arguments), "%s%s", name, type_name());
	} else {
		result(false, "%s%s", name, type_name());
		device.table->close(&device);
		open_device(device.type);
	}
	in_case = false;
}

const char *type_name(void)
{
	return device.type == DEVICE_BF16 ? ", bf16" :
	       device.type == DEVICE_FP16 ? ", fp16" : "";
}

/* OPERATORS_SEED chooses other values. */
void restart_random(void)
{
	const char *seed = getenv("OPERATORS_SEED");

	memset(&now, 0, sizeof(now));
	now.random = seed ? strtoull(seed, NULL, 10) : 0;
}

int finish(void)
{
	printf("1..%d\n# worst relative L2 in fp32: forward %.2g, backward "
	       "%.2g\n", test_count, worst[0], worst[1]);
	return failure_count > 0;
}
