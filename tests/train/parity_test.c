/* SPDX-License-Identifier: BSD-3-Clause */
/* The device and the model of parity.c, its input and its output. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ddp_error.h"
#include "load_table.h"
#include "parity_test.h"
#include "step/sum_tree.h"

void die(const char *text, const char *what)
{
	fprintf(stderr, "parity: %s: %s\n", text, what);
	exit(2);
}

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory)
		die("memory", "there is too little");
	return memory;
}

/* An allocation of its own: a checked device sees what goes beyond it. */
static void *place(struct test *test, size_t bytes)
{
	struct ddp_error error;
	void *at = test->device.table->alloc(&test->device, bytes, &error);

	if (!at)
		die("alloc", error.text);
	return at;
}

static void get(struct test *test, void *to, size_t bytes)
{
	if (fread(to, 1, bytes, test->in) != bytes)
		die("the input ends early", "see parity.py");
}

void fetch(struct test *test, void *to, const void *from, size_t bytes)
{
	struct device *device = &test->device;
	struct ddp_error error;

	device->table->copy(device, QUEUE_COMPUTE, to, from, bytes);
	if (device->table->check(device, &error) < 0)
		die("the device", error.text);
}

bool are_same(struct test *test, const void *one, const void *other,
	      size_t count)
{
	size_t bytes = count * device_type_bytes(test->device.type);

	fetch(test, test->values, one, bytes);
	fetch(test, test->more, other, bytes);
	return memcmp(test->values, test->more, bytes) == 0;
}

void put_double(struct test *test, double value)
{
	if (fwrite(&value, sizeof(value), 1, test->out) != 1)
		die("the output", "cannot be written");
}

/* To test->values */
static void fetch_values(struct test *test, enum device_type type,
			 const void *from, size_t count)
{
	fetch(test, test->more, from, count * device_type_bytes(type));
	half_widen(type, test->more, test->values, count);
}

double measure_difference(struct test *test, const void *one,
			  const void *other, size_t count)
{
	enum device_type type = test->device.type;
	double square = 0, norm = 0;

	fetch_values(test, type, one, count);
	fetch(test, test->more, other, count * device_type_bytes(type));
	for (size_t i = 0; i < count; i++) {
		double wanted = (double)test->values[i];
		float value;

		half_widen(type, value_at(type, test->more, i), &value, 1);
		square += pow((double)value - wanted, 2);
		norm += wanted * wanted;
	}
	return sqrt(square / norm);
}

void put_values(struct test *test, enum device_type type, const void *from,
		size_t count, double scale)
{
	fetch_values(test, type, from, count);
	for (size_t i = 0; i < count; i++)
		put_double(test, (double)test->values[i] * scale);
}

void put_tensors(struct test *test, double scale)
{
	for (int i = 0; i < test->header.tensors; i++) {
		const struct tensor *tensor =
			&test->model->tensors[test->order[i]];
		const float *values = test->values + tensor->offset;

		for (size_t j = 0; j < tensor->count; j++)
			put_double(test, (double)values[j] * scale);
	}
}

void put_device_tensors(struct test *test, enum device_type type,
			const void *from, double scale)
{
	fetch_values(test, type, from, test->model->param_count);
	put_tensors(test, scale);
}

struct model *create_model(struct test *test, bool recompute)
{
	const struct header *header = &test->header;
	struct model_shape shape = {
		(uint64_t)header->layers, (uint64_t)header->heads,
		(uint64_t)header->width, (uint64_t)header->context,
		(uint64_t)header->vocab
	};
	struct ddp_error error;
	struct model *model;

	if (gpt_complete_shape(&shape, "tiny", &error) < 0)
		die("gpt_complete_shape", error.text);
	model = gpt_create(&shape, header->sequences, &test->device,
			   test->device.type, recompute, &error);
	if (!model)
		die("gpt_create", error.text);
	if (model->bytes[SPACE_HOST] > 0 || model->bytes[SPACE_STAGING] > 0)
		die("the model", "needs memory of the host");
	model->memory[SPACE_DEVICE] = place(test, model->bytes[SPACE_DEVICE]);
	return model;
}

static void place_all(struct test *test)
{
	const struct header *header = &test->header;
	size_t each = device_type_bytes(test->device.type);
	size_t count = test->model->param_count + test->model->spare;
	size_t rows = (size_t)header->sequences * (size_t)header->context;
	size_t all = rows * (size_t)header->batches;
	size_t logits = rows * (size_t)header->vocab;
	size_t most = logits > count ? logits : count;

	test->param = place(test, count * each);
	test->grad = place(test, count * each);
	test->other = place(test, count * each);
	test->logits = place(test, logits * each);
	test->start = place(test, count * sizeof(float));
	test->master = test->device.type == DEVICE_FP32 ? test->param :
		       place(test, count * sizeof(float));
	test->sum = place(test, count * sizeof(float));
	test->m = place(test, count * sizeof(float));
	test->v = place(test, count * sizeof(float));
	test->tokens = place(test, rows * sizeof(int32_t));
	test->targets = place(test, rows * sizeof(int32_t));
	test->rows = place(test, rows * sizeof(int32_t));
	test->loss = place(test, sizeof(double));
	test->blocks = place(test, (count / DEVICE_BLOCK + 1) *
			     sizeof(double));
	test->state = place(test, sizeof(*test->state));
	test->all_tokens = allocate(all, sizeof(int32_t));
	test->all_targets = allocate(all, sizeof(int32_t));
	test->sorted = allocate(2 * rows, sizeof(int32_t));
	test->values = allocate(most, sizeof(float));
	test->more = allocate(most, sizeof(float));
}

static int find(const struct test *test, const char *name, size_t count)
{
	for (int i = 0; i < test->model->tensor_count; i++) {
		const struct tensor *tensor = &test->model->tensors[i];

		if (strcmp(tensor->name, name) == 0 && tensor->count == count)
			return i;
	}
	die("the model has no such tensor", name);
}

static void read_input(struct test *test)
{
	const struct device_table *table = test->device.table;
	const struct model *model = test->model;
	size_t tokens = (size_t)test->header.batches *
			(size_t)test->header.sequences *
			(size_t)test->header.context;

	if (test->header.tensors != model->tensor_count ||
	    model->tensor_count > MOST_TENSORS)
		die("the model", "has another number of tensors");
	for (int i = 0; i < test->header.tensors; i++) {
		char name[32];
		int32_t count;

		get(test, name, sizeof(name));
		get(test, &count, sizeof(count));
		test->order[i] = find(test, name, (size_t)count);
		get(test, test->values + model->tensors[test->order[i]].offset,
		    (size_t)count * sizeof(float));
	}
	table->copy(&test->device, QUEUE_COMPUTE, test->start, test->values,
		    model->param_count * sizeof(float));
	get(test, test->all_tokens, tokens * sizeof(int32_t));
	get(test, test->all_targets, tokens * sizeof(int32_t));
}

void open_test(struct test *test, char **files, const char *module,
	       enum device_type type)
{
	const size_t bytes[SPACES] = { DEVICE_ALIGN, DEVICE_ALIGN,
				       DEVICE_ALIGN };
	struct ddp_error error;
	const char *why;

	test->in = fopen(files[0], "rb");
	test->out = fopen(files[1], "wb");
	if (!test->in || !test->out)
		die("INPUT or OUTPUT", "cannot be opened");
	get(test, &test->header, sizeof(test->header));
	test->device.table = load_table(module, &why);
	if (!test->device.table)
		die(module, why);
	if (test->device.table->open(&test->device, type, bytes, 1, &error) < 0)
		die("open", error.text);
	test->loss_scale = type == DEVICE_FP16 ? 1024 : 1;
	/* As a trainer does: a CPU keeps less, a GPU computes less. */
	test->model = create_model(test, test->device.table == &device_cpu);
	place_all(test);
	read_input(test);
}

void close_test(struct test *test)
{
	fclose(test->in);
	if (fclose(test->out) != 0)
		die("the output", "cannot be written");
	test->device.table->close(&test->device);
	free(test->model);
	free(test->all_tokens);
	free(test->all_targets);
	free(test->sorted);
	free(test->values);
	free(test->more);
}
