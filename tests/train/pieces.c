/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether an operator on values gives each of them the same bits in one call
 * and piece by piece, whatever the pieces are: --zero relies on it. Prints TAP.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "step/sum_tree.h"
#include "util/error.h"

enum { COUNT = 3 * DEVICE_BLOCK + 37, ROUNDS = 40 };

struct values {
	float param[COUNT], m[COUNT], v[COUNT];
	char copy[COUNT * sizeof(float)];
};

struct play {
	struct device device;
	enum device_type type;		/* of the gradient, and of copy */
	float grad[COUNT];
	char rounded[COUNT * sizeof(float)];	/* grad */
	struct step_state state;
	struct values first, whole, pieces;
};

typedef void body(struct play *play, struct values *values, size_t begin,
		  size_t count);

static int tests, failures;

static uint64_t draw(void)
{
	static uint64_t state;
	uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Of many sizes, so that what is rounded differs. */
static float draw_value(void)
{
	float value = (float)(draw() % 1000003) / 1000003 + 1e-6f;

	value *= (float)(1 << draw() % 12) / 256;
	return draw() % 2 ? value : -value;
}

static void *at(enum device_type type, void *x, size_t i)
{
	return (char *)x + i * device_type_bytes(type);
}

static void *copy_of(struct play *play, struct values *values, size_t begin)
{
	return play->type == DEVICE_FP32 ? NULL :
	       at(play->type, values->copy, begin);
}

static void adamw(struct play *play, struct values *values, size_t begin,
		  size_t count)
{
	play->device.table->adamw(&play->device, &(struct op_adamw){
		.count = count, .param = values->param + begin,
		.copy = copy_of(play, values, begin),
		.grad_type = play->type,
		.grad = at(play->type, play->rounded, begin),
		.m = values->m + begin, .v = values->v + begin,
		.rounding = { true, 7, begin }, .lr = 1e-3,
		.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1,
		.state = &play->state });
}

static void run_sgd(struct play *play, struct values *values, size_t begin,
		    size_t count, double momentum)
{
	play->device.table->sgd(&play->device, &(struct op_sgd){
		.count = count, .param = values->param + begin,
		.copy = copy_of(play, values, begin),
		.grad_type = play->type,
		.grad = at(play->type, play->rounded, begin),
		.v = momentum > 0 ? values->v + begin : NULL, .lr = 0.1,
		.momentum = momentum, .decay = 0.01, .state = &play->state });
}

static void sgd(struct play *play, struct values *values, size_t begin,
		size_t count)
{
	run_sgd(play, values, begin, count, 0);
}

static void momentum(struct play *play, struct values *values, size_t begin,
		     size_t count)
{
	run_sgd(play, values, begin, count, 0.9);
}

static void cast(struct play *play, struct values *values, size_t begin,
		 size_t count)
{
	play->device.table->cast(&play->device, play->type,
				 at(play->type, values->copy, begin),
				 DEVICE_FP32, values->param + begin, count);
}

static void round_values(struct play *play, struct values *values,
			 size_t begin, size_t count)
{
	play->device.table->round(&play->device, &(struct op_round){
		count, values->param + begin,
		at(play->type, values->copy, begin), &play->state,
		{ true, 7, begin } });
}

static void add(struct play *play, struct values *values, size_t begin,
		size_t count)
{
	play->device.table->add(&play->device, values->param + begin,
				play->type,
				at(play->type, play->rounded, begin), count);
}

static void start(struct play *play, enum device_type type)
{
	struct values *first = &play->first;

	memset(first, 0, sizeof(*first));
	play->type = type;
	for (size_t i = 0; i < COUNT; i++) {
		first->param[i] = draw_value();
		first->m[i] = draw_value();
		first->v[i] = draw_value() * first->m[i];
		first->v[i] *= first->v[i];
		play->grad[i] = draw_value();
	}
	half_round(type, play->grad, play->rounded, COUNT);
	play->state = (struct step_state){
		.factor = 0.7, .correction1 = 0.19, .correction2 = 0.0975
	};
}

static bool is_same(struct play *play, body *run)
{
	play->whole = play->first;
	run(play, &play->whole, 0, COUNT);
	for (int round = 0; round < ROUNDS; round++) {
		size_t most = (size_t)1 << draw() % 13, count;

		play->pieces = play->first;
		for (size_t begin = 0; begin < COUNT; begin += count) {
			count = 1 + draw() % most;
			if (count > COUNT - begin)
				count = COUNT - begin;
			run(play, &play->pieces, begin, count);
		}
		if (memcmp(&play->pieces, &play->whole,
			   sizeof(play->whole)) != 0)
			return false;
	}
	return memcmp(&play->first, &play->whole, sizeof(play->whole)) != 0;
}

int main(void)
{
	static const struct {
		const char *name;
		body *run;
	} rows[] = {
		{ "adamw", adamw }, { "sgd", sgd },
		{ "sgd with momentum", momentum }, { "cast", cast },
		{ "round", round_values }, { "add", add }
	};
	static const char *const types[] = { "fp32", "bf16", "fp16" };
	static const size_t bytes[SPACES];
	struct play *play = calloc(1, sizeof(*play));
	struct ddp_error error;

	if (!play)
		return 2;
	play->device.table = &device_cpu;
	for (int type = DEVICE_FP32; type <= DEVICE_FP16; type++) {
		if (device_cpu.open(&play->device, (enum device_type)type,
				    bytes, 1, &error) < 0)
			return 2;
		for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
			bool same;

			start(play, (enum device_type)type);
			same = is_same(play, rows[i].run);
			failures += !same;
			printf("%sok %d - %s in %s, in one and in pieces\n",
			       same ? "" : "not ", ++tests, rows[i].name,
			       types[type]);
		}
		device_cpu.close(&play->device);
	}
	printf("1..%d\n", tests);
	free(play);
	return failures != 0;
}
