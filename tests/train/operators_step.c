/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operator `step`, by hand, as torch.nn.utils.clip_grad_norm_ and
 * torch.amp.GradScaler do it; and what an update leaves when a step is skipped.
 */
#include "operators.h"

enum { COUNT = 1003 };

static const double beta1 = 0.9, beta2 = 0.95;

static void expect(const char *what, bool good, double had)
{
	if (!good)
		fail(what, "is", had);
}

static bool is_near(double had, double wanted)
{
	return fabs(had - wanted) <= 1e-15 * fabs(wanted);
}

/*
 * 1 - beta^n, for powers from 1/2 to 1, whose unit in the last place is 2^-53.
 * CUDA's pow() of doubles is up to 2 of these from the power as rounded (CUDA
 * C++ Programming Guide, Mathematical Functions); the difference is exact.
 */
static bool is_correction(double had, double wanted)
{
	return fabs(had - wanted) <= 2 * 0x1p-53;
}

/* Two blocks' sums of squares, and what the state was. */
static struct step_state step(double first, double second, double clip,
			      bool dynamic, struct step_state state)
{
	struct op_step op = {
		.count = 2,
		.blocks = put((double[]){ first, second }, 2 * sizeof(double)),
		.clip = clip, .beta1 = beta1, .beta2 = beta2,
		.dynamic = dynamic, .state = put(&state, sizeof(state))
	};

	device.table->step(&device, &op);
	read_back(&state, op.state, sizeof(state));
	return state;
}

static struct step_state first_state(double scale)
{
	return (struct step_state){ .loss_scale = scale };
}

/* 3^2 + 4^2 is 5^2; what is scaled by 65536 has squares of 2^32. */
static void clip_body(const void *arguments)
{
	struct step_state had = step(9, 16, 0, false, first_state(1));

	(void)arguments;
	expect("norm", had.norm == 5, had.norm);
	expect("factor", had.factor == 1 && !had.skip, had.factor);
	expect("updates", had.updates == 1 && had.good == 1,
	       (double)had.updates);
	expect("correction1", is_correction(had.correction1, 1 - beta1),
	       had.correction1);
	expect("correction2", is_correction(had.correction2, 1 - beta2),
	       had.correction2);
	had = step(9, 16, 2, false, first_state(1));
	expect("clipped", is_near(had.factor, 2 / (5 + 1e-6)), had.factor);
	had = step(9, 16, 5, false, first_state(1));
	expect("the norm itself", is_near(had.factor, 5 / (5 + 1e-6)),
	       had.factor);
	had = step(9, 16, 5.1, false, first_state(1));
	expect("not clipped", had.factor == 1, had.factor);
	had = step(9 * 0x1p32, 16 * 0x1p32, 0, true, first_state(65536));
	expect("unscaled norm", had.norm == 5, had.norm);
	expect("unscaling", had.factor == 0x1p-16, had.factor);
	had = step(9 * 0x1p32, 16 * 0x1p32, 2, true, first_state(65536));
	expect("both", is_near(had.factor, 2 / (5 + 1e-6) / 65536), had.factor);
	had = step(0, 0, 1, false, first_state(1));
	expect("norm of 0", had.norm == 0 && had.factor == 1 && !had.skip,
	       had.norm);
}

/* Steps of which some overflow: what the scale and the counts become. */
static void skip_body(const void *arguments)
{
	static const double bad[] = { INFINITY, NAN, 1e308 };
	struct step_state state = first_state(65536);

	(void)arguments;
	state = step(1, 1, 1, true, state);
	for (int i = 0; i < 3; i++) {
		state = step(bad[i], 1e308, 1, true, state);
		expect("skip", state.skip == 1, (double)state.skip);
		expect("halved", state.loss_scale == ldexp(1, 15 - i),
		       state.loss_scale);
		expect("updates and good", state.updates == 1 &&
		       state.good == 0, (double)state.good);
	}
	state = step(0x1p26, 0, 0, true, state);
	expect("the next", state.skip == 0 && state.norm == 1 &&
	       state.updates == 2 && state.good == 1, state.norm);
	expect("correction1",
	       is_correction(state.correction1, 1 - beta1 * beta1),
	       state.correction1);
	/* Without a dynamic scale nothing changes but the skip. */
	state = step(NAN, 1, 1, false, first_state(1));
	expect("no scale", state.skip == 1 && state.loss_scale == 1 &&
	       state.updates == 0, state.loss_scale);
	state.good = 2500;
	state = step(1, 1, 1, false, state);
	expect("no scale", state.skip == 0 && state.loss_scale == 1 &&
	       state.updates == 1, state.loss_scale);
}

/* 2000 good steps in a row double it, for the step after these. */
static void grow_body(const void *arguments)
{
	struct step_state state = first_state(65536);

	(void)arguments;
	state.good = 1998;
	state.updates = 5000;
	state = step(0x1p32, 0, 0, true, state);
	expect("after 1999", state.loss_scale == 65536 && state.good == 1999,
	       state.loss_scale);
	state = step(0x1p32, 0, 0, true, state);
	expect("after 2000", state.loss_scale == 131072 && state.good == 0,
	       state.loss_scale);
	expect("this step's factor", state.factor == 0x1p-16, state.factor);
	expect("updates", state.updates == 5002, (double)state.updates);
	state = step(0x1p34, 0, 0, true, state);
	expect("the next norm", state.norm == 1 && state.good == 1, state.norm);
	state.good = 1999;
	state = step(INFINITY, 0, 0, true, state);
	expect("an overflow before", state.loss_scale == 65536 &&
	       state.good == 0, state.loss_scale);
}

/*
 * Eight ones added to 2^53 one by one are lost; 2^53 added to eight is not. The
 * norms are two units in the last place apart.
 */
static void order_body(const void *arguments)
{
	enum { BLOCKS = 9 };
	const double blocks[BLOCKS] = { 0x1p53, 1, 1, 1, 1, 1, 1, 1, 1 };
	const uint32_t order[BLOCKS] = { 1, 2, 3, 4, 5, 6, 7, 8, 0 };
	struct step_state state = first_state(1);
	struct op_step op = {
		.count = BLOCKS, .blocks = put(blocks, sizeof(blocks)),
		.beta1 = beta1, .beta2 = beta2,
		.state = put(&state, sizeof(state))
	};

	(void)arguments;
	device.table->step(&device, &op);
	read_back(&state, op.state, sizeof(state));
	expect("in their order", state.norm == sqrt(0x1p53), state.norm);
	op.order = put(order, sizeof(order));
	device.table->step(&device, &op);
	read_back(&state, op.state, sizeof(state));
	expect("in another", state.norm == sqrt(0x1p53 + 8), state.norm);
}

/* More blocks than a device has at once; backwards, the sum has other bits. */
static void many_body(const void *arguments)
{
	enum { BLOCKS = 5000 };
	double *blocks = host_doubles(BLOCKS), sums[2] = { 0 };
	uint32_t *order = (uint32_t *)host_doubles(BLOCKS);
	struct step_state state = first_state(1);
	struct op_step op = { .count = BLOCKS, .beta1 = beta1, .beta2 = beta2 };

	(void)arguments;
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = exp(10 * uniform());
		order[i] = (uint32_t)(BLOCKS - 1 - i);
	}
	for (int i = 0; i < BLOCKS; i++) {
		sums[0] += blocks[i];
		sums[1] += blocks[order[i]];
	}
	expect("a sum that shows the order", sums[0] != sums[1], sums[0]);
	op.blocks = put(blocks, BLOCKS * sizeof(*blocks));
	op.state = put(&state, sizeof(state));
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			op.order = put(order, BLOCKS * sizeof(*order));
		device.table->step(&device, &op);
		read_back(&state, op.state, sizeof(state));
		expect("norm", state.norm == sqrt(sums[i]), state.norm);
	}
}

/* Bytes of a tensor before and after. */
static bool is_kept(const struct tensor *tensor, const void *before)
{
	size_t bytes = tensor->count * device_type_bytes(tensor->type);
	char *after = (char *)host_doubles(tensor->count);

	copy(after, tensor->at, bytes);
	return memcmp(before, after, bytes) == 0;
}

static void *keep(const struct tensor *tensor)
{
	void *before = host_doubles(tensor->count);

	copy(before, tensor->at,
	     tensor->count * device_type_bytes(tensor->type));
	return before;
}

/* With NaN in all that the update would use. */
static void kept_body(const void *arguments)
{
	struct tensor all[] = {
		draw_floats(COUNT, 0, 1), draw_floats(COUNT, 0, 1),
		draw_floats(COUNT, 1, 0.1), draw(COUNT, 0, 1)
	}, grad = draw(COUNT, 0, NAN);
	void *before[4];
	const struct step_state *state = put(&(struct step_state){
		.norm = NAN, .factor = NAN, .skip = 1, .loss_scale = NAN
		}, sizeof(*state));

	(void)arguments;
	for (int i = 0; i < 4; i++)
		before[i] = keep(&all[i]);
	device.table->adamw(&device, &(struct op_adamw){
		COUNT, all[0].at, all[3].at, grad.type, grad.at, all[1].at,
		all[2].at, 0.1, beta1, beta2, 1e-8, 0.1, state, { 0 } });
	device.table->sgd(&device, &(struct op_sgd){
		COUNT, all[0].at, all[3].at, grad.type, grad.at, all[1].at,
		0.1, 0.9, 0.1, state, { 0 } });
	device.table->sgd(&device, &(struct op_sgd){
		COUNT, all[0].at, all[3].at, grad.type, grad.at, NULL, 0.1, 0,
		0.1, state, { 0 } });
	for (int i = 0; i < 4; i++)
		if (!is_kept(&all[i], before[i]))
			fail("a skipped update", "changed tensor", i);
}

void test_step(void)
{
	test_case("a skipped update leaves every bit", kept_body, NULL);
	if (device.type != DEVICE_FP32)
		return;
	test_case("step: norm, clipping, loss scale", clip_body, NULL);
	test_case("step: the order of the blocks", order_body, NULL);
	test_case("step: many blocks", many_body, NULL);
	test_case("step: overflow", skip_body, NULL);
	test_case("step: a growing loss scale", grow_body, NULL);
}
