/* SPDX-License-Identifier: BSD-3-Clause */
/* NaN and infinities, which must show; and logits of 10^4, which must work. */
#include "operators.h"

static struct tensor from(const double *values, size_t count)
{
	struct tensor tensor = blank(count);

	memcpy(tensor.value, values, count * sizeof(*values));
	store(&tensor);
	return tensor;
}

static void expect(const char *what, bool good, double had)
{
	if (!good)
		fail(what, "is", had);
}

/*
 * With x = 1 the logits are the weight: 1e4, 0, -1e4, 0. At 1e4, and at 0
 * against itself, by hand: exp(-1e4) is 0.
 */
static void large_logits(const void *arguments)
{
	struct tensor x = from((double[]){ 1, 1, 1 }, 3), dx = blank(3);
	struct tensor weight = blank_table(4, 1), dweight = blank_table(4, 1);
	int32_t targets[] = { 0, 1, 2 };
	double loss;
	struct op_classifier op = {
		3, 1, 4, x.at, weight.at, put(targets, sizeof(targets)), 0.5f,
		NULL, place(sizeof(loss)), dx.at, dweight.at, false,
		place_work(&(struct device_shape){ .rows = 3, .context = 1,
			.heads = 1, .width = 1, .vocab = 4 })
	};

	(void)arguments;
	memcpy(weight.value, (double[]){ 1e4, 0, -1e4, 0 }, 4 * sizeof(double));
	store(&weight);
	device.table->classifier(&device, &op);
	read_back(&loss, op.loss, sizeof(loss));
	expect("loss", loss == 0.5 * (0 + 1e4 + 2e4), loss);
	/* scale * (softmax - onehot) is 0; 0.5, -0.5, 0, 0; 0.5, 0, -0.5, 0 */
	compare("dx", &dx, (double[]){ 0, 0.5e4, 0.5e4 + 0.5e4 }, FORWARD);
	compare("dweight", &dweight, (double[]){ 1, -0.5, -0.5, 0 }, FORWARD);
}

/*
 * One head of 16: q is 4, 0, ... and k is -1e4, 0 or 1e4, 0, ..., so that each
 * row's score with itself is larger by 1e4 than that with the row before. With
 * small whole numbers in v and dout all results are exact.
 */
static void large_scores(const void *arguments)
{
	enum { WIDTH = 16, ROWS = 3 };
	double qkv[ROWS * 3 * WIDTH] = { 0 };
	double wanted[ROWS * WIDTH], whole[ROWS * WIDTH];
	struct tensor in, out = blank(ROWS * WIDTH), lse = blank(ROWS);
	struct tensor dout, dqkv = blank(ROWS * 3 * WIDTH);
	void *work = place_work(&(struct device_shape){
		.rows = ROWS, .context = ROWS, .heads = 1, .width = WIDTH,
		.vocab = 1 });

	(void)arguments;
	for (int i = 0; i < ROWS * WIDTH; i++) {
		double *row = qkv + i / WIDTH * 3 * WIDTH;

		row[0] = 4;
		row[WIDTH] = (i / WIDTH - 1) * 1e4;
		wanted[i] = floor(9 * uniform()) - 4;
		row[2 * WIDTH + i % WIDTH] = wanted[i];
		whole[i] = floor(9 * uniform()) - 4;
	}
	in = from(qkv, ROWS * 3 * WIDTH);
	dout = from(whole, ROWS * WIDTH);
	device.table->attention(&device, &(struct op_attention){
		1, ROWS, 1, WIDTH, in.at, out.at, lse.at, work });
	compare("out", &out, wanted, FORWARD);
	compare("lse", &lse, (double[]){ -1e4, 0, 1e4 }, FORWARD);
	device.table->attention_backward(&device,
					 &(struct op_attention_backward){
		1, ROWS, 1, WIDTH, in.at, out.at, lse.at, dout.at, dqkv.at,
		work });
	/* Each row is its own v: v's gradient is dout's, q's and k's is 0. */
	for (int i = 0; i < ROWS * 3 * WIDTH; i++)
		qkv[i] = i / WIDTH % 3 < 2 ? 0 :
			 dout.value[i / WIDTH / 3 * WIDTH + i % WIDTH];
	compare("dqkv", &dqkv, qkv, 0);
}

/* There the GELU is x or 0, and its slope 1 or 0; in the middle 0 and 1/2. */
static void large_gelu(const void *arguments)
{
	enum { ROWS = 7 };
	struct tensor x = from((double[]){ -1e6, -100, -12, 0, 12, 100, 1e6 },
			       ROWS);
	struct tensor one = from((double[]){ 1 }, 1), dweight = blank(1);
	struct tensor pre = blank(ROWS), y = blank(ROWS), dy = draw(ROWS, 1, 0);
	struct tensor dx = blank(ROWS);

	(void)arguments;
	device.table->matmul(&device, &(struct op_matmul){
		ROWS, 1, 1, x.at, one.at, NULL, pre.at, y.at, false });
	device.table->matmul_backward(&device, &(struct op_matmul_backward){
		ROWS, 1, 1, y.at, one.at, pre.at, dy.at, dx.at, dweight.at,
		NULL, false });
	fetch(&y);
	fetch(&dx);
	for (int i = 0; i < ROWS; i++) {
		double wanted = i > 3 ? x.value[i] : 0;
		double slope = i == 3 ? 0.5 : i > 3;

		expect("y", fabs(y.value[i] - wanted) <= FORWARD * (1 + wanted),
		       y.value[i]);
		expect("slope", fabs(dx.value[i] - slope) <= FORWARD,
		       dx.value[i]);
	}
}

static void classify(double number)
{
	struct tensor x = draw(5 * 8, 0, 1), weight = draw_table(7, 8, 0, 1);
	struct tensor dx = blank(5 * 8), dweight = blank_table(7, 8);
	struct op_classifier op = { 5, 8, 7, .scale = 1 };
	double loss;

	draw_tokens(5, 7, &op.targets);
	x.value[20] = number;
	store(&x);
	op.x = x.at;
	op.weight = weight.at;
	op.loss = place(sizeof(loss));
	op.dx = dx.at;
	op.dweight = dweight.at;
	op.work = place_work(&(struct device_shape){ 5, 1, 1, 8, 7, 0, 0 });
	device.table->classifier(&device, &op);
	copy(&loss, op.loss, sizeof(loss));
	expect("loss", !isfinite(loss), loss);
	fetch(&dx);
	expect("dx of that row", !isfinite(dx.value[16]), dx.value[16]);
	expect("dx of another", isfinite(dx.value[0]), dx.value[0]);
	op.dx = NULL;
	op.dweight = NULL;
	device.table->classifier(&device, &op);
	copy(&loss, op.loss, sizeof(loss));
	expect("the loss alone", !isfinite(loss), loss);
}

static void classify_nan(const void *arguments)
{
	classify(*(const double *)arguments);
}

/* One bad number among three rows of ten. */
static void norm_bad(const void *arguments)
{
	struct tensor x = draw(30, 0, 1), gain = draw(10, 1, 1);
	struct tensor bias = draw(10, 0, 1), out = blank(30);
	struct tensor mean = blank_floats(3), rstd = blank_floats(3);

	x.value[13] = *(const double *)arguments;
	store(&x);
	device.table->norm(&device, &(struct op_norm){
		3, 10, 1e-5f, x.at, NULL, gain.at, bias.at, NULL, out.at,
		mean.at, rstd.at });
	fetch(&out);
	for (int i = 0; i < 30; i++)
		expect("out", i / 10 == 1 ? isnan(out.value[i]) :
		       isfinite(out.value[i]), out.value[i]);
}

/* A GELU of -inf may be its limit, 0, or PyTorch's NaN. */
static void matmul_bad(const void *arguments)
{
	double bad = *(const double *)arguments;
	struct tensor x = draw(3 * 8, 0, 1), weight = draw(5 * 8, 0, 1);
	struct tensor pre = blank(3 * 5), y = blank(3 * 5);

	x.value[9] = bad;
	store(&x);
	device.table->matmul(&device, &(struct op_matmul){
		3, 8, 5, x.at, weight.at, NULL, pre.at, y.at, false });
	fetch(&pre);
	fetch(&y);
	for (int i = 0; i < 15; i++) {
		expect("pre", (i / 5 == 1) == !isfinite(pre.value[i]),
		       pre.value[i]);
		if (i / 5 != 1)
			expect("y", isfinite(y.value[i]), y.value[i]);
		else if (isnan(bad) || pre.value[i] > 0)
			expect("y", !isfinite(y.value[i]), y.value[i]);
	}
}

static void attention_bad(const void *arguments)
{
	struct tensor qkv = draw(4 * 24, 0, 1), out = blank(4 * 8);
	struct tensor lse = blank_floats(4);

	qkv.value[2 * 24 + 3] = *(const double *)arguments;
	store(&qkv);
	device.table->attention(&device, &(struct op_attention){
		1, 4, 1, 8, qkv.at, out.at, lse.at,
		place_work(&(struct device_shape){ .rows = 4, .context = 4,
			.heads = 1, .width = 8, .vocab = 1 }) });
	fetch(&out);
	for (int i = 0; i < 32; i++)
		expect("out", i / 8 == 2 ? isnan(out.value[i]) :
		       isfinite(out.value[i]), out.value[i]);
}

/* A bad gradient spoils its parameter and no other. */
static void update_bad(const void *arguments)
{
	double bad = *(const double *)arguments, sums[2];
	struct tensor param = draw_floats(40, 0, 1), grad = draw(40, 0, 1);
	struct tensor m = draw_floats(40, 0, 1), v = draw_floats(40, 1, 0);
	struct tensor sum = draw_floats(40, 0, 1);
	const struct step_state *state = put(&(struct step_state){
		.factor = 1, .correction1 = 0.1, .correction2 = 0.1 },
		sizeof(*state));
	double *at = place(sizeof(sums));
	size_t count = DEVICE_BLOCK + 40;
	struct tensor many = draw(count, 0, 1);

	grad.value[21] = bad;
	store(&grad);
	device.table->adamw(&device, &(struct op_adamw){
		40, param.at, NULL, device.type, grad.at, m.at, v.at, 0.1, 0.9,
		0.9, 1e-8, 0.1, state, { 0 } });
	device.table->sgd(&device, &(struct op_sgd){
		40, m.at, NULL, device.type, grad.at, NULL, 0.1, 0, 0, state,
		{ 0 } });
	device.table->add(&device, sum.at, device.type, grad.at, 40);
	fetch(&param);
	fetch(&m);
	fetch(&sum);
	for (int i = 0; i < 40; i++) {
		expect("AdamW", (i == 21) == isnan(param.value[i]),
		       param.value[i]);
		expect("SGD", (i == 21) == !isfinite(m.value[i]), m.value[i]);
		expect("sum", (i == 21) == !isfinite(sum.value[i]),
		       sum.value[i]);
	}
	many.value[DEVICE_BLOCK + 7] = bad;
	store(&many);
	device.table->sum_squares(&device, &(struct op_sum_squares){
		count, device.type, many.at, at });
	copy(sums, at, sizeof(sums));
	expect("first sum of squares", isfinite(sums[0]), sums[0]);
	expect("second", isnan(bad) ? isnan(sums[1]) : isinf(sums[1]),
	       sums[1]);
}

/*
 * 300 * 300 is 90000, above fp16's 65504; of bf16, which has steps of 512
 * there, 90112 is the nearest. What was no NaN must not become one.
 */
static void too_large(const void *arguments)
{
	static const double products[] = {
		[DEVICE_FP32] = 90000, [DEVICE_BF16] = 90112,
		[DEVICE_FP16] = INFINITY
	};
	struct tensor x = from((double[]){ 300, -300, 1 }, 3);
	struct tensor one = from((double[]){ 300 }, 1), y = blank(3);
	double wanted = products[device.type];

	(void)arguments;
	device.table->matmul(&device, &(struct op_matmul){
		3, 1, 1, x.at, one.at, NULL, NULL, y.at, false });
	fetch(&y);
	expect("300 * 300", y.value[0] == wanted, y.value[0]);
	expect("-300 * 300", y.value[1] == -wanted, y.value[1]);
	expect("300", y.value[2] == 300, y.value[2]);
}

void test_special(void)
{
	static const double bad[] = { NAN, INFINITY, -INFINITY };
	static const char *const names[] = { "NaN", "inf", "-inf" };
	static const struct {
		const char *name;
		void (*body)(const void *arguments);
	} cases[] = {
		{ "norm", norm_bad }, { "matmul", matmul_bad },
		{ "attention", attention_bad }, { "classifier", classify_nan },
		{ "optimisers and sums of squares", update_bad }
	};

	for (int i = 0; i < 15; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s: %s shows, and only there",
			 cases[i / 3].name, names[i % 3]);
		test_case(name, cases[i / 3].body, &bad[i % 3]);
	}
	test_case("matmul: a product above fp16's largest", too_large, NULL);
	if (device.type != DEVICE_FP32)
		return;
	test_case("classifier: logits of 10000", large_logits, NULL);
	test_case("attention: scores of 10000", large_scores, NULL);
	test_case("matmul: GELU far from 0", large_gelu, NULL);
}
