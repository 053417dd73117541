/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attention as graphs of cuDNN's backend API: the patterns "Fused Flash
 * Attention fprop" and "bprop" of its developer guide, node by node as NVIDIA's
 * cudnn-frontend 1.32 (scaled_dot_product_flash_attention.h) makes them, the
 * backward pass that of its deterministic algorithm: a gradient of q is the
 * product of a whole row of scores, not a sum of atomic additions.
 */
#include <stdlib.h>

#include "cuda/dnn.h"

/* Tensors that are never in memory */
enum {
	SCORE = DNN_IN_MEMORY, SCALED, ROW, COLUMN, SEEN, LESS, MASKED, TOP,
	SHIFTED, POWER, SUM, LOG_SUM, SHARE, SHARE_TURNED, PRODUCT, DOT,
	DSHARE, DSHARE_LESS, DMASKED, DSCORE, DSCORE_TURNED, K, TENSORS
};

/* Sequences, heads, and then a matrix */
enum layout {
	NO_LAYOUT,
	OF_QKV,				/* context x size, in rows of qkv */
	OF_QKV_TURNED,			/* size x context */
	OF_OUT,				/* context x size, in rows of out */
	OF_SCORES, OF_SCORES_TURNED,	/* context x context */
	OF_LSE,				/* context x 1 */
	OF_NUMBER			/* 1 x 1 of 1 head of 1 sequence */
};

/* The type; the device's is OWN. */
enum kind { SINGLE, OWN, WHOLE, TRUTH };

static const struct {
	enum layout layout;
	enum kind kind;
} tensors[TENSORS] = {
	[DNN_Q] = { OF_QKV, OWN },
	[DNN_K_TURNED] = { OF_QKV_TURNED, OWN }, [K] = { OF_QKV, OWN },
	[DNN_V] = { OF_QKV, OWN }, [DNN_V_TURNED] = { OF_QKV_TURNED, OWN },
	[DNN_OUT] = { OF_OUT, OWN }, [DNN_DOUT] = { OF_OUT, OWN },
	[DNN_DQ] = { OF_QKV, OWN }, [DNN_DK] = { OF_QKV, OWN },
	[DNN_DV] = { OF_QKV, OWN }, [DNN_LSE] = { OF_LSE, SINGLE },
	[DNN_DELTA] = { OF_LSE, SINGLE }, [DNN_SCALE] = { OF_NUMBER, SINGLE },
	[DNN_ONE] = { OF_NUMBER, SINGLE }, [DNN_HIDDEN] = { OF_NUMBER, SINGLE },
	[SCORE] = { OF_SCORES, SINGLE }, [SCALED] = { OF_SCORES, SINGLE },
	[ROW] = { OF_SCORES, WHOLE }, [COLUMN] = { OF_SCORES, WHOLE },
	[SEEN] = { OF_SCORES, TRUTH }, [LESS] = { OF_SCORES, SINGLE },
	[MASKED] = { OF_SCORES, SINGLE }, [TOP] = { OF_LSE, SINGLE },
	[SHIFTED] = { OF_SCORES, SINGLE }, [POWER] = { OF_SCORES, SINGLE },
	[SUM] = { OF_LSE, SINGLE }, [LOG_SUM] = { OF_LSE, SINGLE },
	[SHARE] = { OF_SCORES, OWN },
	[SHARE_TURNED] = { OF_SCORES_TURNED, OWN },
	[PRODUCT] = { OF_OUT, SINGLE }, [DOT] = { OF_LSE, SINGLE },
	[DSHARE] = { OF_SCORES, SINGLE }, [DSHARE_LESS] = { OF_SCORES, SINGLE },
	[DMASKED] = { OF_SCORES, SINGLE }, [DSCORE] = { OF_SCORES, SINGLE },
	[DSCORE_TURNED] = { OF_SCORES_TURNED, OWN }
};

/* y = x b (a product), x op b, t ? x : b, the number of x's rows, ... */
enum node_kind { MULTIPLY, BY_VALUE, NUMBER, REDUCE, TURN };

struct node {
	enum node_kind kind;
	int y, x, b, t;
	int mode;			/* cudnnPointwiseMode_t, or the axis of
					   NUMBER, or cudnnReduceTensorOp_t */
};

#define POINTWISE(mode) CUDNN_POINTWISE_##mode

static const struct node forward[] = {
	{ MULTIPLY, SCORE, DNN_Q, DNN_K_TURNED, 0, 0 },
	{ BY_VALUE, SCALED, SCORE, DNN_SCALE, 0, POINTWISE(MUL) },
	{ NUMBER, ROW, SCALED, 0, 0, 2 },
	{ NUMBER, COLUMN, SCALED, 0, 0, 3 },
	{ BY_VALUE, SEEN, ROW, COLUMN, 0, POINTWISE(CMP_GE) },
	{ BY_VALUE, MASKED, SCALED, DNN_HIDDEN, SEEN,
	  POINTWISE(BINARY_SELECT) },
	{ REDUCE, TOP, MASKED, 0, 0, CUDNN_REDUCE_TENSOR_MAX },
	{ BY_VALUE, SHIFTED, MASKED, TOP, 0, POINTWISE(SUB) },
	{ BY_VALUE, POWER, SHIFTED, 0, 0, POINTWISE(EXP) },
	{ REDUCE, SUM, POWER, 0, 0, CUDNN_REDUCE_TENSOR_ADD },
	{ BY_VALUE, LOG_SUM, SUM, 0, 0, POINTWISE(LOG) },
	{ BY_VALUE, DNN_LSE, TOP, LOG_SUM, 0, POINTWISE(ADD) },
	{ BY_VALUE, SHARE, POWER, SUM, 0, POINTWISE(DIV) },
	{ MULTIPLY, DNN_OUT, SHARE, DNN_V, 0, 0 }
};

static const struct node backward[] = {
	{ BY_VALUE, PRODUCT, DNN_DOUT, DNN_OUT, 0, POINTWISE(MUL) },
	{ REDUCE, DOT, PRODUCT, 0, 0, CUDNN_REDUCE_TENSOR_ADD },
	{ BY_VALUE, DNN_DELTA, DOT, DNN_ONE, 0, POINTWISE(MUL) },
	{ MULTIPLY, SCORE, DNN_Q, DNN_K_TURNED, 0, 0 },
	{ BY_VALUE, SCALED, SCORE, DNN_SCALE, 0, POINTWISE(MUL) },
	{ BY_VALUE, LESS, SCALED, DNN_LSE, 0, POINTWISE(SUB) },
	{ NUMBER, ROW, LESS, 0, 0, 2 },
	{ NUMBER, COLUMN, LESS, 0, 0, 3 },
	{ BY_VALUE, SEEN, ROW, COLUMN, 0, POINTWISE(CMP_GE) },
	{ BY_VALUE, MASKED, LESS, DNN_HIDDEN, SEEN, POINTWISE(BINARY_SELECT) },
	{ BY_VALUE, POWER, MASKED, 0, 0, POINTWISE(EXP) },
	{ TURN, SHARE_TURNED, POWER, 0, 0, 0 },
	{ MULTIPLY, DNN_DV, SHARE_TURNED, DNN_DOUT, 0, 0 },
	{ MULTIPLY, DSHARE, DNN_DOUT, DNN_V_TURNED, 0, 0 },
	{ BY_VALUE, DSHARE_LESS, DSHARE, DNN_DELTA, 0, POINTWISE(SUB) },
	{ BY_VALUE, DMASKED, DSHARE_LESS, POWER, 0, POINTWISE(MUL) },
	{ BY_VALUE, DSCORE, DMASKED, DNN_SCALE, 0, POINTWISE(MUL) },
	{ TURN, DSCORE_TURNED, DSCORE, 0, 0, 0 },
	{ MULTIPLY, DNN_DK, DSCORE_TURNED, DNN_Q, 0, 0 },
	{ TURN, K, DNN_K_TURNED, 0, 0, 0 },
	{ MULTIPLY, DNN_DQ, DSCORE, K, 0, 0 }
};

/* A plan while it is made. */
struct draft {
	const struct dnn_target *target;
	struct dnn_plan *plan;
	cudnnBackendDescriptor_t tensors[TENSORS];
	cudnnStatus_t status;		/* the first that is no success */
};

/* NULL where something has failed, which all that follows accepts. */
static cudnnBackendDescriptor_t create(struct draft *draft,
				       cudnnBackendDescriptorType_t type)
{
	struct dnn_plan *plan = draft->plan;
	cudnnBackendDescriptor_t part = NULL;

	if (draft->status == CUDNN_STATUS_SUCCESS &&
	    plan->part_count == DNN_PARTS)
		draft->status = CUDNN_STATUS_INTERNAL_ERROR;
	if (draft->status != CUDNN_STATUS_SUCCESS)
		return NULL;
	draft->status = draft->target->library->cudnnBackendCreateDescriptor(
		type, &part);
	if (draft->status == CUDNN_STATUS_SUCCESS)
		plan->parts[plan->part_count++] = part;
	return part;
}

static void set(struct draft *draft, cudnnBackendDescriptor_t part,
		cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t count,
		const void *values)
{
	if (draft->status == CUDNN_STATUS_SUCCESS)
		draft->status = draft->target->library->
			cudnnBackendSetAttribute(part, name, type, count,
						 values);
}

static void set_part(struct draft *draft, cudnnBackendDescriptor_t part,
		     cudnnBackendAttributeName_t name,
		     cudnnBackendDescriptor_t value)
{
	set(draft, part, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(struct draft *draft, cudnnBackendDescriptor_t part,
		     cudnnBackendAttributeName_t name, cudnnDataType_t type)
{
	set(draft, part, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void finish(struct draft *draft, cudnnBackendDescriptor_t part)
{
	if (draft->status == CUDNN_STATUS_SUCCESS)
		draft->status =
			draft->target->library->cudnnBackendFinalize(part);
}

/* ---- tensors */

static cudnnDataType_t find_type(enum kind kind, int type)
{
	switch (kind) {
	case OWN: return type == DEVICE_BF16 ? CUDNN_DATA_BFLOAT16 :
					       CUDNN_DATA_HALF;
	case WHOLE: return CUDNN_DATA_INT32;
	case TRUTH: return CUDNN_DATA_BOOLEAN;
	default: return CUDNN_DATA_FLOAT;
	}
}

static void put(int64_t *to, int64_t a, int64_t b, int64_t c, int64_t d)
{
	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
}

static void lay_out(enum layout layout, const struct dnn_key *key,
		    int64_t counts[4], int64_t strides[4])
{
	int64_t sequences = key->sequences, heads = key->heads;
	int64_t context = key->context, scores = context * context;
	int64_t width = key->width, size = width / heads;

	put(counts, sequences, heads, context, context);
	switch (layout) {
	case OF_QKV:
		counts[3] = size;
		put(strides, context * 3 * width, size, 3 * width, 1);
		break;
	case OF_QKV_TURNED:
		counts[2] = size;
		put(strides, context * 3 * width, size, 1, 3 * width);
		break;
	case OF_OUT:
		counts[3] = size;
		put(strides, context * width, size, width, 1);
		break;
	case OF_SCORES:
		put(strides, heads * scores, scores, context, 1);
		break;
	case OF_SCORES_TURNED:
		put(strides, heads * scores, scores, 1, context);
		break;
	case OF_LSE:
		counts[3] = 1;
		put(strides, heads * context, context, 1, 1);
		break;
	default:
		put(counts, 1, 1, 1, 1);
		put(strides, 1, 1, 1, 1);
	}
}

static cudnnBackendDescriptor_t find_tensor(struct draft *draft, int tensor)
{
	const struct dnn_key *key = &draft->plan->key;
	enum layout layout = tensors[tensor].layout;
	int64_t number = tensor, counts[4], strides[4], alignment = 16;
	bool yes = true;
	cudnnBackendDescriptor_t *part = &draft->tensors[tensor];

	if (*part)
		return *part;
	lay_out(layout, key, counts, strides);
	*part = create(draft, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	set_type(draft, *part, CUDNN_ATTR_TENSOR_DATA_TYPE,
		 find_type(tensors[tensor].kind, key->type));
	set(draft, *part, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4,
	    counts);
	set(draft, *part, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4,
	    strides);
	set(draft, *part, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
	    &number);
	set(draft, *part, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
	    1, &alignment);
	if (tensor >= DNN_IN_MEMORY)
		set(draft, *part, CUDNN_ATTR_TENSOR_IS_VIRTUAL,
		    CUDNN_TYPE_BOOLEAN, 1, &yes);
	if (layout == OF_NUMBER)
		set(draft, *part, CUDNN_ATTR_TENSOR_IS_BY_VALUE,
		    CUDNN_TYPE_BOOLEAN, 1, &yes);
	finish(draft, *part);
	return *part;
}

/* ---- operations */

static void set_tensor(struct draft *draft, cudnnBackendDescriptor_t part,
		       cudnnBackendAttributeName_t name, int tensor)
{
	if (tensor)
		set_part(draft, part, name, find_tensor(draft, tensor));
}

static cudnnBackendDescriptor_t multiply(struct draft *draft,
					 const struct node *node)
{
	cudnnBackendDescriptor_t how, part;

	how = create(draft, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	set_type(draft, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
	finish(draft, how);
	part = create(draft, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_MATMUL_ADESC, node->x);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_MATMUL_BDESC, node->b);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_MATMUL_CDESC, node->y);
	set_part(draft, part, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
	finish(draft, part);
	return part;
}

static cudnnBackendDescriptor_t map(struct draft *draft,
				    const struct node *node)
{
	bool numbers = node->kind == NUMBER;
	cudnnPointwiseMode_t mode = numbers ? CUDNN_POINTWISE_GEN_INDEX :
				    (cudnnPointwiseMode_t)node->mode;
	int64_t axis = node->mode;
	cudnnBackendDescriptor_t how, part;

	how = create(draft, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	set(draft, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
	    1, &mode);
	set_type(draft, how, CUDNN_ATTR_POINTWISE_MATH_PREC,
		 mode == POINTWISE(CMP_GE) ? CUDNN_DATA_BOOLEAN :
		 numbers ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT);
	if (numbers)
		set(draft, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1,
		    &axis);
	finish(draft, how);
	part = create(draft, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	set_part(draft, part, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
		 how);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, node->x);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, node->b);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, node->t);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, node->y);
	finish(draft, part);
	return part;
}

static cudnnBackendDescriptor_t reduce(struct draft *draft,
				       const struct node *node)
{
	cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)node->mode;
	cudnnBackendDescriptor_t how, part;

	how = create(draft, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	set_type(draft, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
	set(draft, how, CUDNN_ATTR_REDUCTION_OPERATOR,
	    CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
	finish(draft, how);
	part = create(draft, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	set_part(draft, part, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, node->x);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, node->y);
	finish(draft, part);
	return part;
}

static cudnnBackendDescriptor_t turn(struct draft *draft,
				     const struct node *node)
{
	cudnnBackendDescriptor_t part = create(
		draft, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

	set_tensor(draft, part, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, node->x);
	set_tensor(draft, part, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, node->y);
	finish(draft, part);
	return part;
}

static cudnnBackendDescriptor_t create_operation(struct draft *draft,
						 const struct node *node)
{
	switch (node->kind) {
	case MULTIPLY: return multiply(draft, node);
	case REDUCE: return reduce(draft, node);
	case TURN: return turn(draft, node);
	default: return map(draft, node);
	}
}

static cudnnBackendDescriptor_t create_graph(struct draft *draft)
{
	enum { MOST = sizeof(backward) / sizeof(*backward) };
	bool back = draft->plan->key.backward;
	const struct node *nodes = back ? backward : forward;
	int count = back ? MOST : sizeof(forward) / sizeof(*forward);
	cudnnBackendDescriptor_t operations[MOST], graph;

	for (int i = 0; i < count; i++)
		operations[i] = create_operation(draft, &nodes[i]);
	graph = create(draft, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(draft, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
	    CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
	if (draft->target->handle)
		set(draft, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
		    CUDNN_TYPE_HANDLE, 1, &draft->target->handle);
	finish(draft, graph);
	return graph;
}

/* ---- plans */

static int64_t get(struct draft *draft, cudnnBackendDescriptor_t part,
		   cudnnBackendAttributeName_t name,
		   cudnnBackendAttributeType_t type, int64_t room, void *values)
{
	int64_t count = 0;

	if (draft->status == CUDNN_STATUS_SUCCESS)
		draft->status = draft->target->library->
			cudnnBackendGetAttribute(part, name, type, room,
						 &count, values);
	return draft->status == CUDNN_STATUS_SUCCESS ? count : 0;
}

/*
 * Returns true if a configuration's engine does not say that it is
 * nondeterministic. cuDNN 9.19 does not say so of atomic additions to a
 * gradient of q. The graph ensures that there are none.
 */
static bool is_deterministic(struct draft *draft,
			     cudnnBackendDescriptor_t config)
{
	enum { ROOM = 64 };
	cudnnBackendNumericalNote_t notes[ROOM];
	cudnnBackendDescriptor_t engine = create(
		draft, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t count;

	get(draft, config, CUDNN_ATTR_ENGINECFG_ENGINE,
	    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
	count = get(draft, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
		    CUDNN_TYPE_NUMERICAL_NOTE, ROOM, notes);
	for (int64_t i = 0; i < count && i < ROOM; i++)
		if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
			return false;
	return draft->status == CUDNN_STATUS_SUCCESS;
}

/* Sets plan->plan if the configuration is supported. */
static void try_config(struct draft *draft, cudnnBackendDescriptor_t config)
{
	const struct dnn_target *target = draft->target;
	cudnnBackendDescriptor_t part;
	int64_t bytes = 0;

	draft->status = CUDNN_STATUS_SUCCESS;
	if (!is_deterministic(draft, config)) {
		if (draft->status == CUDNN_STATUS_SUCCESS)
			draft->status = CUDNN_STATUS_NOT_SUPPORTED;
		return;
	}
	part = create(draft, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set_part(draft, part, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	if (target->handle)
		set(draft, part, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
		    CUDNN_TYPE_HANDLE, 1, &target->handle);
	else
		set_part(draft, part, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
			 target->gpu);
	finish(draft, part);
	get(draft, part, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
	    CUDNN_TYPE_INT64, 1, &bytes);
	if (draft->status != CUDNN_STATUS_SUCCESS)
		return;
	draft->plan->workspace = (size_t)bytes;
	draft->plan->plan = part;
}

static void choose(struct draft *draft, cudnnBackendDescriptor_t graph)
{
	enum { CONFIGS = 8 };
	cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	cudnnBackendDescriptor_t part, configs[CONFIGS];
	int64_t count;

	part = create(draft, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	set_part(draft, part, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	set(draft, part, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
	    &mode);
	if (!draft->target->handle)
		set_part(draft, part, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
			 draft->target->gpu);
	finish(draft, part);
	for (int i = 0; i < CONFIGS; i++)
		configs[i] = create(draft, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	count = get(draft, part, CUDNN_ATTR_ENGINEHEUR_RESULTS,
		    CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, configs);
	if (count == 0 && draft->status == CUDNN_STATUS_SUCCESS)
		draft->status = CUDNN_STATUS_NOT_SUPPORTED;
	for (int64_t i = 0; i < count && i < CONFIGS && !draft->plan->plan; i++)
		try_config(draft, configs[i]);
}

struct dnn_plan *dnn_create_plan(const struct dnn_target *target,
				 const struct dnn_key *key,
				 cudnnStatus_t *status)
{
	struct dnn_plan *plan = calloc(1, sizeof(*plan));
	struct draft draft = { .target = target, .plan = plan };

	*status = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	if (!plan)
		return NULL;
	plan->key = *key;
	choose(&draft, create_graph(&draft));
	*status = draft.status;
	if (plan->plan)
		return plan;
	dnn_destroy_plan(target, plan);
	return NULL;
}

void dnn_destroy_plan(const struct dnn_target *target, struct dnn_plan *plan)
{
	while (plan->part_count > 0)
		target->library->cudnnBackendDestroyDescriptor(
			plan->parts[--plan->part_count]);
	free(plan);
}

cudnnStatus_t dnn_run_plan(const struct dnn_target *target,
			   const struct dnn_plan *plan, void *const *memory,
			   void *workspace)
{
	struct dnn_plan run = { .key = plan->key };
	struct draft draft = { .target = target, .plan = &run };
	int64_t numbers[DNN_IN_MEMORY], count = 0;
	void *pointers[DNN_IN_MEMORY];
	cudnnBackendDescriptor_t pack;

	for (int i = 0; i < DNN_IN_MEMORY; i++)
		if (memory[i]) {
			numbers[count] = i;
			pointers[count++] = memory[i];
		}
	pack = create(&draft, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
	    count, numbers);
	set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	    CUDNN_TYPE_VOID_PTR, count, pointers);
	set(&draft, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
	    CUDNN_TYPE_VOID_PTR, 1, &workspace);
	finish(&draft, pack);
	if (draft.status == CUDNN_STATUS_SUCCESS)
		draft.status = target->library->cudnnBackendExecute(
			target->handle, plan->plan, pack);
	if (pack)
		target->library->cudnnBackendDestroyDescriptor(pack);
	return draft.status;
}
