/* SPDX-License-Identifier: BSD-3-Clause */
/* The rates of GPUs, and bytes and FLOP of each operator of a GPT's step. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <strings.h>

#include "run/predict.h"

/* A laptop's GPU, or a part of one (MIG), has another model, and is unknown. */
static const struct rates known[] = {
	{ "A100", "A100-SXM4-80GB",
	  312e12, 19.5e12, 2.039e12, 81920, 80 },
	{ "A100-40GB", "A100-SXM4-40GB",
	  312e12, 19.5e12, 1.555e12, 40960, 80 },
	{ "A100-PCIe", "A100 80GB PCIe",
	  312e12, 19.5e12, 1.935e12, 81920, 80 },
	{ "A100-PCIe-40GB", "A100-PCIE-40GB",
	  312e12, 19.5e12, 1.555e12, 40960, 80 },
	{ "H100", "H100 80GB HBM3",
	  989.4e12, 66.9e12, 3.35e12, 81559, 90 },
	{ "H100-PCIe", "H100 PCIe",
	  756e12, 51.2e12, 2.0e12, 81559, 90 },
	{ "H100-NVL", "H100 NVL",
	  835e12, 60e12, 3.9e12, 95830, 90 },
	{ "H200", "H200",
	  989.4e12, 66.9e12, 4.8e12, 143771, 90 },
	{ "B200", "B200",
	  2250e12, 75e12, 7.7e12, 183359, 100 },
	{ "L40S", "L40S",
	  362e12, 91.6e12, 0.864e12, 46068, 89 },
	{ "RTX4090", "RTX 4090",
	  165.2e12, 82.6e12, 1.008e12, 24564, 89 }
};

enum { COUNT = sizeof(known) / sizeof(*known) };

static const char *skip_word(const char *name, const char *word)
{
	size_t length = strlen(word);

	return strncmp(name, word, length) == 0 ? name + length : name;
}

const struct rates *rates_find(const char *name)
{
	const char *model = skip_word(skip_word(name, "NVIDIA "), "GeForce ");

	for (int i = 0; i < COUNT; i++)
		if (strcasecmp(name, known[i].name) == 0 ||
		    strcmp(model, known[i].model) == 0)
			return &known[i];
	return NULL;
}

const char *rates_names(void)
{
	static char names[16 * COUNT];

	if (!*names)
		for (int i = 0; i < COUNT; i++) {
			if (i > 0)
				strcat(names, ", ");
			strcat(names, known[i].name);
		}
	return names;
}

double rates_count_model_flops(const struct model_shape *shape,
			       uint64_t tokens)
{
	double layers = (double)shape->layers, width = (double)shape->width;
	double context = (double)shape->context;
	/* Weights and biases of a block, the last norm, the tokens' table. */
	double parameters = layers * (12 * width * width + 13 * width) +
			    2 * width + (double)shape->vocab * width;

	return (double)tokens * (6 * parameters + 6 * layers * width * context);
}

/* ---- a step, operator by operator */

struct table {
	const struct rates *rates;
	const struct predict_run *run;
	double tokens;			/* at once */
	double width, size;		/* bytes of an activation's value */
	struct predict_row *rows;
	int count;
};

/* FLOP/s; the attention of fp32 is no product of tensor cores. */
static double product_rate(const struct table *table)
{
	return PREDICT_MATMUL * rates_flops(table->rates, table->run->type,
					    table->run->tf32);
}

double predict_attention_share(const struct rates *rates,
			       const struct predict_run *run)
{
	uint64_t head = run->shape->width / run->shape->heads;
	bool quick = head == 16 || head == 32 || head == 64 || head == 128;

	if (run->type == DEVICE_FP32 || !quick)
		return 0.05 * rates->single / rates_flops(rates, run->type, false);
	return rates->capability < 90 ? 0.40 : 0.28;
}

static double attention_rate(const struct table *table)
{
	return predict_attention_share(table->rates, table->run) *
	       rates_flops(table->rates, table->run->type, false);
}

static void add_row(struct table *table, struct predict_row row, double rate)
{
	double flops = row.flops / rate;
	double bytes = row.bytes / (table->rates->bandwidth * PREDICT_MEMORY);

	row.seconds = fmax(flops, bytes);
	table->rows[table->count++] = row;
}

/* Limited by memory: so many values of an activation [tokens][width]. */
static void add_passes(struct table *table, const char *name, double times,
		       double passes)
{
	add_row(table, (struct predict_row){
		.name = name, .times = times * table->run->chunks,
		.bytes = passes * table->tokens * table->width * table->size
	}, 1);
}

/* A product and the two of its backward pass; in and out in widths. */
static void add_product(struct table *table, const char *name, double in,
			double out)
{
	double layers = (double)table->run->shape->layers;
	double m = table->tokens, k = in * table->width;
	double n = out * table->width;

	add_row(table, (struct predict_row){
		.name = name, .times = layers * table->run->chunks,
		.flops = 6 * m * n * k,
		.bytes = 3 * (m * k + k * n + m * n) * table->size
	}, product_rate(table));
}

/* Half of all pairs; five products backward where two are forward, and the
   scores once more, as no atomics are used. */
static void add_attention(struct table *table)
{
	const struct predict_run *run = table->run;
	double pairs = table->tokens * (double)run->shape->context / 2;
	double flops = 4 * pairs * table->width;
	double times = (double)run->shape->layers * run->chunks;
	double value = table->tokens * table->width * table->size;
	double rate = attention_rate(table);

	add_row(table, (struct predict_row){
		.name = "attention", .times = times, .flops = flops,
		.bytes = 4 * value }, rate);
	add_row(table, (struct predict_row){
		.name = "attention backward", .times = times,
		.flops = 3.5 * flops, .bytes = 11 * value }, rate);
}

/*
 * Logits are of fp32: written, and read, the second time from the GPU's cache;
 * the gradient is written and read by two products.
 */
static void add_classifier(struct table *table)
{
	double m = table->tokens, k = table->width;
	double n = (double)table->run->shape->vocab;
	double chunks = table->run->chunks;

	add_row(table, (struct predict_row){
		.name = "classifier", .times = chunks, .flops = 6 * m * n * k,
		.bytes = 3 * (m * k + k * n) * table->size +
			 m * n * (sizeof(float) + 2 * table->size)
	}, product_rate(table));
	add_row(table, (struct predict_row){
		.name = "cross entropy", .times = chunks,
		.bytes = m * n * (sizeof(float) + table->size) }, 1);
}

/* Adds the update: it reads the gradient twice, and rewrites the fp32 state. */
static void add_update(struct table *table)
{
	const struct predict_run *run = table->run;
	double grad = (double)device_type_bytes(run->grad_type);
	double copy = run->type == DEVICE_FP32 ? 0 : table->size;
	double state = sizeof(float) * 2 * (run->adamw ? 3 : 1);

	add_row(table, (struct predict_row){
		.name = "norm of the gradient", .times = 1,
		.bytes = run->updated * grad }, 1);
	add_row(table, (struct predict_row){
		.name = "optimizer", .times = 1,
		.bytes = run->updated * (grad + state + copy) }, 1);
}

static bool has_epilogues(const struct table *table)
{
	return table->rates->capability >= 90 &&
	       table->run->type != DEVICE_FP32;
}

/*
 * GELU reads what goes in and writes what comes out, its slope reads one more.
 * In an epilogue that is one value that the product writes or reads besides;
 * what is computed again is not in it. The gradients of a layer's four biases
 * are sums over 3, 1, 4 and 1 widths.
 */
static void add_surroundings(struct table *table)
{
	const struct predict_run *run = table->run;
	double layers = (double)run->shape->layers;
	bool fused = has_epilogues(table);

	add_passes(table, "GELU", layers,
		   4 * (run->recompute ? 4 : fused ? 1 : 2));
	add_passes(table, "slope of the GELU", layers, 4 * (fused ? 1 : 3));
	add_passes(table, "gradients of biases", layers, 3 + 1 + 4 + 1);
}

int predict_step(const struct rates *rates, const struct predict_run *run,
		 struct predict_row *rows)
{
	double layers = (double)run->shape->layers;
	struct table table = {
		.rates = rates, .run = run, .rows = rows,
		.tokens = (double)run->chunk * (double)run->shape->context,
		.width = (double)run->shape->width,
		.size = (double)device_type_bytes(run->type)
	};

	add_passes(&table, "embedding, both passes", 1, 7);
	add_passes(&table, "norm", 2 * layers + 1, 4);
	if (run->recompute)
		add_passes(&table, "norm again", 2 * layers, 2);
	add_passes(&table, "norm backward", 2 * layers + 1, 4);
	add_product(&table, "product qkv", 1, 3);
	add_product(&table, "product out", 1, 1);
	add_product(&table, "product up", 1, 4);
	add_product(&table, "product down", 4, 1);
	add_surroundings(&table);
	add_attention(&table);
	add_classifier(&table);
	add_update(&table);
	return table.count;
}

double predict_seconds(const struct rates *rates,
		       const struct predict_run *run)
{
	struct predict_row rows[PREDICT_ROWS];
	int count = predict_step(rates, run, rows);
	double seconds = 0;

	for (int i = 0; i < count; i++)
		seconds += rows[i].times * rows[i].seconds;
	return seconds;
}
