/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake libcudnn.so.9, for tests on machines without a GPU: as much of the
 * backend API as attention takes. Where the real one knows patterns of graphs,
 * this one computes any graph, operation by operation in fp32, as work of a
 * stream of the emulated CUDA; each tensor is rounded to its type. What is not
 * an attribute of cudnn_graph.h, of another type, or missing is refused with a
 * line on stderr.
 *
 *   FAKE_CUDNN=WHAT      "old": it says that it is 9.7.1; "broken": it does not
 *                        start; "forward": it supports no backward graph;
 *                        "atomic": its engines are not deterministic; "wrong":
 *                        numbers are 5 % larger; "loose": what is computed
 *                        again has other bits
 */
#include <cudnn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_stream.h"
#include "half_bits.h"

enum { VERSION = 91900, ATTRIBUTES = 16, TENSORS = 64, WORKSPACE = 1 << 12 };

struct attribute {
	int name, type;
	int64_t count;
	void *values;
};

struct cudnnContext {
	cudaStream_t stream;
};

/* cudnn.h has it as void. */
struct descriptor {
	int type;
	bool finished;
	int count;
	struct attribute list[ATTRIBUTES];
};

static bool is_fake(const char *what)
{
	const char *text = getenv("FAKE_CUDNN");

	return text && strcmp(text, what) == 0;
}

static cudnnStatus_t refuse(const char *why, int number)
{
	fprintf(stderr, "fake cuDNN: %s (%d)\n", why, number);
	return CUDNN_STATUS_BAD_PARAM;
}

/* ---- attributes: which descriptor has which, and whether it must */

static const struct row {
	int of, name, type;
	bool needed;
} rows[] = {
#define ROW(of, name, type, needed) \
	{ CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, \
	  CUDNN_TYPE_##type, needed }
	ROW(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, true),
	ROW(TENSOR, TENSOR_DIMENSIONS, INT64, true),
	ROW(TENSOR, TENSOR_STRIDES, INT64, true),
	ROW(TENSOR, TENSOR_UNIQUE_ID, INT64, true),
	ROW(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, true),
	ROW(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, false),
	ROW(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, false),
	ROW(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, true),
	ROW(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, true),
	ROW(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, true),
	ROW(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, true),
	ROW(POINTWISE, POINTWISE_AXIS, INT64, false),
	ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR,
	    BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC,
	    BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC,
	    BACKEND_DESCRIPTOR, false),
	ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC,
	    BACKEND_DESCRIPTOR, false),
	ROW(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC,
	    BACKEND_DESCRIPTOR, true),
	ROW(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, true),
	ROW(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, true),
	ROW(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR,
	    true),
	ROW(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC,
	    BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC,
	    BACKEND_DESCRIPTOR, true),
	ROW(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR,
	    true),
	ROW(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR,
	    true),
	ROW(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, true),
	ROW(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, true),
	ROW(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, true),
	ROW(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, true),
	ROW(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR,
	    true),
	ROW(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, true),
	ROW(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, true),
	ROW(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, true),
	ROW(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, true)
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static size_t size_of(int type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
	default: return 4;
	}
}

static const struct attribute *find(const struct descriptor *d, int name)
{
	for (int i = 0; i < d->count; i++)
		if (d->list[i].name == name)
			return &d->list[i];
	return NULL;
}

/* Its first value, where it is a descriptor or a number; NULL or 0: none. */
static struct descriptor *part_of(const struct descriptor *d, int name)
{
	const struct attribute *a = find(d, name);

	return a ? *(struct descriptor **)a->values : NULL;
}

static int64_t number_of(const struct descriptor *d, int name)
{
	const struct attribute *a = find(d, name);

	if (!a)
		return 0;
	return size_of(a->type) == 8 ? *(int64_t *)a->values :
	       size_of(a->type) == 4 ? *(int *)a->values : *(bool *)a->values;
}

static const int64_t *numbers_of(const struct descriptor *d, int name)
{
	return find(d, name)->values;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
					   cudnnBackendDescriptor_t *to)
{
	struct descriptor *d = calloc(1, sizeof(*d));

	d->type = (int)type;
	*to = d;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t from)
{
	struct descriptor *d = from;

	for (int i = 0; i < d->count; i++)
		free(d->list[i].values);
	free(d);
	return CUDNN_STATUS_SUCCESS;
}

static void put_attribute(struct descriptor *d, int name, int type,
			  int64_t count, const void *values)
{
	size_t bytes = size_of(type) * (size_t)count;
	void *copy = malloc(bytes);

	memcpy(copy, values, bytes);
	d->list[d->count++] = (struct attribute){ name, type, count, copy };
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t to,
				       cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type,
				       int64_t count, const void *values)
{
	struct descriptor *d = to;
	int row = 0;

	while (row < ROWS && (rows[row].of != d->type ||
			      rows[row].name != (int)name))
		row++;
	if (row == ROWS)
		return refuse("a descriptor has no such attribute", (int)name);
	if (rows[row].type != (int)type)
		return refuse("an attribute is of another type", (int)name);
	if (d->finished || d->count == ATTRIBUTES || find(d, (int)name))
		return refuse("an attribute comes too late or twice",
			      (int)name);
	for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < count;
	     i++)
		if (!((struct descriptor *const *)values)[i]->finished)
			return refuse("an attribute is not finished",
				      (int)name);
	put_attribute(d, (int)name, (int)type, count, values);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- finishing */

static cudnnStatus_t finish_tensor(const struct descriptor *d)
{
	const int64_t *counts = numbers_of(d, CUDNN_ATTR_TENSOR_DIMENSIONS);

	if (find(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->count != 4 ||
	    find(d, CUDNN_ATTR_TENSOR_STRIDES)->count != 4)
		return refuse("a tensor has not 4 dimensions", 0);
	for (int i = 0; i < 4; i++)
		if (counts[i] < 1)
			return refuse("a tensor is empty", i);
	if (number_of(d, CUDNN_ATTR_TENSOR_UNIQUE_ID) >= TENSORS)
		return refuse("a tensor's number is more than expected", 0);
	return CUDNN_STATUS_SUCCESS;
}

/* The real one has 8 values at least of a head's row, and 128 at most. */
static cudnnStatus_t finish_heuristic(const struct descriptor *d)
{
	const struct descriptor *graph =
		part_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	const struct attribute *operations =
		find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	const struct descriptor *last = ((struct descriptor **)
		operations->values)[operations->count - 1];
	int64_t size = numbers_of(part_of(last,
		CUDNN_ATTR_OPERATION_MATMUL_CDESC),
		CUDNN_ATTR_TENSOR_DIMENSIONS)[3];

	if (size % 8 || size > 128)
		return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
	if (operations->count > 14 && is_fake("forward"))
		return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of)
{
	struct descriptor *d = of;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	for (int i = 0; i < ROWS; i++)
		if (rows[i].of == d->type && rows[i].needed &&
		    !find(d, rows[i].name))
			return refuse("an attribute is missing", rows[i].name);
	if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
		status = finish_tensor(d);
	else if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
		status = finish_heuristic(d);
	d->finished = status == CUDNN_STATUS_SUCCESS;
	return status;
}

/* A configuration and an engine stand for their heuristic. */
static void stand_for(struct descriptor *d, const struct descriptor *of)
{
	put_attribute(d, 0, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of);
	d->finished = true;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t of,
				       cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type,
				       int64_t room, int64_t *count,
				       void *values)
{
	const struct descriptor *d = of;
	cudnnBackendNumericalNote_t note =
		CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;

	(void)type;
	*count = 1;
	if (room < 1)
		return refuse("no room for an attribute", (int)name);
	switch (name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
	case CUDNN_ATTR_ENGINECFG_ENGINE:
		stand_for(*(struct descriptor **)values, d);
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
		*count = is_fake("atomic");
		memcpy(values, &note, sizeof(note));
		return CUDNN_STATUS_SUCCESS;
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		*(int64_t *)values = WORKSPACE;
		return CUDNN_STATUS_SUCCESS;
	default:
		return refuse("this attribute is not told", (int)name);
	}
}

/* ---- computing */

/* A graph that is computed; values[number] of a tensor are dense. */
struct job {
	const struct descriptor *graph;
	void *memory[TENSORS];
	float numbers[TENSORS];		/* that were passed by value */
	float *values[TENSORS];
	void *workspace;
	int (*touch)(const void *p, size_t n, int how, const char *who);
	bool odd;
};

static const char who[] = "cudnnBackendExecute";

struct tensor {
	int number, type;
	const int64_t *counts, *strides;
	bool is_virtual, is_value;
};

static struct tensor tensor_of(const struct descriptor *d)
{
	return (struct tensor){
		(int)number_of(d, CUDNN_ATTR_TENSOR_UNIQUE_ID),
		(int)number_of(d, CUDNN_ATTR_TENSOR_DATA_TYPE),
		numbers_of(d, CUDNN_ATTR_TENSOR_DIMENSIONS),
		numbers_of(d, CUDNN_ATTR_TENSOR_STRIDES),
		number_of(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
		number_of(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)
	};
}

static size_t count_of(const struct tensor *t)
{
	return (size_t)(t->counts[0] * t->counts[1] * t->counts[2] *
			t->counts[3]);
}

/* Where value i of the dense order is. */
static size_t offset_of(const struct tensor *t, size_t i)
{
	size_t offset = 0;

	for (int j = 3; j >= 0; j--) {
		offset += i % (size_t)t->counts[j] * (size_t)t->strides[j];
		i /= (size_t)t->counts[j];
	}
	return offset;
}

static size_t width_of(const struct tensor *t)
{
	return t->type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static float round_to(int type, float x)
{
	switch (type) {
	case CUDNN_DATA_BFLOAT16: return float_of_bf16(bf16_of_float(x));
	case CUDNN_DATA_HALF: return float_of_fp16(fp16_of_float(x));
	default: return x;
	}
}

/* In pieces without a gap */
static void touch(const struct job *job, const struct tensor *t, int how)
{
	size_t size = width_of(t), count = count_of(t);
	size_t step = t->strides[3] == 1 ? (size_t)t->counts[3] : 1;
	const char *at = job->memory[t->number];

	for (size_t i = 0; i < count; i += step)
		job->touch(at + offset_of(t, i) * size, step * size, how, who);
}

static float *load(struct job *job, const struct tensor *t)
{
	size_t count = count_of(t);
	float *to = job->values[t->number];
	const void *from = job->memory[t->number];

	if (to || t->is_virtual)
		return to;
	to = job->values[t->number] = malloc(count * sizeof(*to));
	if (t->is_value) {
		*to = job->numbers[t->number];
		return to;
	}
	touch(job, t, FAKE_STREAM_READ);
	for (size_t i = 0; i < count; i++) {
		size_t at = offset_of(t, i);

		if (t->type == CUDNN_DATA_FLOAT)
			to[i] = ((const float *)from)[at];
		else
			to[i] = t->type == CUDNN_DATA_HALF ?
				float_of_fp16(((const uint16_t *)from)[at]) :
				float_of_bf16(((const uint16_t *)from)[at]);
	}
	return to;
}

/* Take values over as a tensor's. */
static void store(struct job *job, const struct tensor *t, float *values)
{
	size_t count = count_of(t);
	void *to = job->memory[t->number];

	job->values[t->number] = values;
	for (size_t i = 0; i < count; i++)
		values[i] = round_to(t->type, values[i]);
	if (t->is_virtual)
		return;
	touch(job, t, FAKE_STREAM_WRITE);
	for (size_t i = 0; i < count; i++) {
		size_t at = offset_of(t, i);
		float x = job->odd ? values[i] * 1.005f : values[i];

		if (t->type == CUDNN_DATA_FLOAT)
			((float *)to)[at] = x;
		else
			((uint16_t *)to)[at] = t->type == CUDNN_DATA_HALF ?
				fp16_of_float(x) : bf16_of_float(x);
	}
}

/* Which value of t belongs to value i of a tensor y, along which t repeats. */
static size_t repeat(const struct tensor *t, const struct tensor *y, size_t i)
{
	size_t index = 0, step = 1;

	for (int j = 3; j >= 0; j--) {
		size_t x = i % (size_t)y->counts[j];

		index += (t->counts[j] == 1 ? 0 : x) * step;
		step *= (size_t)t->counts[j];
		i /= (size_t)y->counts[j];
	}
	return index;
}

static float *multiply(const float *a, const float *b, const struct tensor *ta,
		       const struct tensor *ty)
{
	size_t m = (size_t)ty->counts[2], n = (size_t)ty->counts[3];
	size_t k = (size_t)ta->counts[3], count = count_of(ty);
	float *y = malloc(count * sizeof(*y));

	for (size_t i = 0; i < count; i++) {
		const float *row = a + i / n * k;
		const float *matrix = b + i / (m * n) * k * n;
		float sum = 0;

		for (size_t l = 0; l < k; l++)
			sum += row[l] * matrix[l * n + i % n];
		y[i] = sum;
	}
	return y;
}

static float map(int mode, float x, float b, float t)
{
	switch (mode) {
	case CUDNN_POINTWISE_ADD: return x + b;
	case CUDNN_POINTWISE_SUB: return x - b;
	case CUDNN_POINTWISE_MUL: return x * b;
	case CUDNN_POINTWISE_DIV: return x / b;
	case CUDNN_POINTWISE_EXP: return expf(x);
	case CUDNN_POINTWISE_LOG: return logf(x);
	case CUDNN_POINTWISE_CMP_GE: return x >= b;
	case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
	default:
		refuse("this operation is not known", mode);
		return NAN;
	}
}

static float number_at(const struct tensor *y, int64_t axis, size_t i)
{
	for (int j = 3; j > axis; j--)
		i /= (size_t)y->counts[j];
	return (float)(i % (size_t)y->counts[axis]);
}

static void run_pointwise(struct job *job, const struct descriptor *d)
{
	const struct descriptor *how =
		part_of(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	int mode = (int)number_of(how, CUDNN_ATTR_POINTWISE_MODE);
	int64_t axis = number_of(how, CUDNN_ATTR_POINTWISE_AXIS);
	const int names[] = { CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
			      CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
			      CUDNN_ATTR_OPERATION_POINTWISE_TDESC };
	struct tensor y = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)), in[3];
	float *values[3] = { NULL }, *to = malloc(count_of(&y) * sizeof(*to));

	for (int j = 0; j < 3; j++)
		if (part_of(d, names[j])) {
			in[j] = tensor_of(part_of(d, names[j]));
			values[j] = load(job, &in[j]);
		}
	for (size_t i = 0; i < count_of(&y); i++) {
		float at[3] = { 0 };

		for (int j = 0; j < 3; j++)
			if (values[j])
				at[j] = values[j][repeat(&in[j], &y, i)];
		to[i] = mode == CUDNN_POINTWISE_GEN_INDEX ?
			number_at(&y, axis, i) : map(mode, at[0], at[1], at[2]);
	}
	store(job, &y, to);
}

static void run_reduction(struct job *job, const struct descriptor *d)
{
	const struct descriptor *how =
		part_of(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
	bool most = number_of(how, CUDNN_ATTR_REDUCTION_OPERATOR) ==
		CUDNN_REDUCE_TENSOR_MAX;
	struct tensor x = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
	struct tensor y = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
	const float *from = load(job, &x);
	float *to = malloc(count_of(&y) * sizeof(*to));

	for (size_t i = 0; i < count_of(&y); i++)
		to[i] = most ? -INFINITY : 0;
	for (size_t i = 0; i < count_of(&x); i++) {
		float *at = to + repeat(&y, &x, i);

		*at = most ? fmaxf(*at, from[i]) : *at + from[i];
	}
	store(job, &y, to);
}

static void run_product(struct job *job, const struct descriptor *d)
{
	struct tensor a = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
	struct tensor b = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
	struct tensor y = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC));

	if (a.counts[3] != b.counts[2] || a.counts[2] != y.counts[2] ||
	    b.counts[3] != y.counts[3])
		refuse("factors of a product do not fit", y.number);
	store(job, &y, multiply(load(job, &a), load(job, &b), &a, &y));
}

/* Of reshapes those that turn the matrices: the same memory, read otherwise. */
static void run_reshape(struct job *job, const struct descriptor *d)
{
	struct tensor x = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
	struct tensor y = tensor_of(
		part_of(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
	size_t m = (size_t)y.counts[2], n = (size_t)y.counts[3];
	const float *from = load(job, &x);
	float *to = malloc(count_of(&y) * sizeof(*to));

	if (x.counts[2] != y.counts[3] || x.counts[3] != y.counts[2] ||
	    x.strides[2] != y.strides[3] || x.strides[3] != y.strides[2])
		refuse("this reshape does not turn a matrix", y.number);
	for (size_t i = 0; i < count_of(&y); i++)
		to[i] = from[i / (m * n) * m * n + i % n * m + i / n % m];
	store(job, &y, to);
}

static int run_job(void *arg)
{
	struct job *job = arg;
	const struct attribute *operations =
		find(job->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

	job->touch(job->workspace, WORKSPACE, FAKE_STREAM_WRITE, who);
	memset(job->workspace, 0xff, WORKSPACE);
	for (int64_t i = 0; i < operations->count; i++) {
		const struct descriptor *d =
			((struct descriptor **)operations->values)[i];

		if (d->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			run_product(job, d);
		else if (d->type ==
			 CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
			run_reduction(job, d);
		else if (d->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
			run_reshape(job, d);
		else
			run_pointwise(job, d);
	}
	for (int i = 0; i < TENSORS; i++)
		free(job->values[i]);
	free(job);
	return 1;
}

/* Numbers by value are read now, what is in memory later. */
static cudnnStatus_t fill_job(struct job *job, const struct descriptor *pack)
{
	const struct attribute *ids = find(
		pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	void **pointers = find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->
		values;

	job->workspace = part_of(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
	for (int64_t i = 0; i < ids->count; i++) {
		int64_t id = ((int64_t *)ids->values)[i];

		job->memory[id] = pointers[i];
		if (job->touch(pointers[i], 4, FAKE_STREAM_LOOK, who) == 0) {
			if ((uintptr_t)pointers[i] % 16)
				return refuse("a tensor is not at a multiple "
					      "of 16 bytes", (int)id);
			continue;
		}
		memcpy(&job->numbers[id], pointers[i], sizeof(float));
		if (is_fake("wrong"))
			job->numbers[id] *= 1.05f;
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
				  cudnnBackendDescriptor_t plan,
				  cudnnBackendDescriptor_t pack)
{
	static bool again;
	struct fake_stream *stream = fake_stream_of(handle->stream);
	struct job *job = calloc(1, sizeof(*job));

	if (!stream || !((struct descriptor *)plan)->finished ||
	    !((struct descriptor *)pack)->finished)
		return refuse("this cannot be executed", 0);
	job->graph = part_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	job->graph = part_of(part_of(job->graph, 0),
			     CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	job->touch = stream->touch;
	job->odd = is_fake("loose") && again;
	again = true;
	if (fill_job(job, pack) != CUDNN_STATUS_SUCCESS)
		return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
	stream->enqueue(stream, who, run_job, job);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- handles */

size_t cudnnGetVersion(void)
{
	return is_fake("old") ? 90701 : VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
	switch (status) {
	case CUDNN_STATUS_NOT_INITIALIZED:
		return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_NOT_SUPPORTED:
		return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_STATUS_NOT_SUPPORTED_SHAPE:
		return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
	case CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN:
		return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
	default:
		return "CUDNN_STATUS_FAKE";
	}
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	if (is_fake("broken"))
		return CUDNN_STATUS_NOT_INITIALIZED;
	*handle = calloc(1, sizeof(**handle));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	free(handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}
