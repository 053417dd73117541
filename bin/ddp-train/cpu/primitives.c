/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix products of bf16 by oneDNN. A primitive is for one shape and takes
 * long to create: the last ones are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "cpu/matmul.h"

#ifdef HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

/*
 * More than a step of training needs: attention 6 for each of its EXTENTS, the
 * rest of a model about 40.
 */
enum { KEPT = 256 };

enum { A, B, C, BIAS, OPERANDS };		/* a bias is not always there */

/* All that a primitive depends on. */
struct key {
	int transpose_a, transpose_b, add, rounded, bias;
	int m, n, k, lda, ldb, ldc;
};

struct product {
	struct key key;
	dnnl_primitive_t primitive;	/* NULL: an unused place */
	dnnl_memory_t memory[OPERANDS];
};

struct primitives {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct product products[KEPT];
	int next, oldest;		/* where to search first; to replace */
	dnnl_status_t worst;
};

/* These functions differ between releases 2 and 3 of oneDNN. */
#ifdef HAVE_ONEDNN_DESC
static dnnl_status_t create_layout(dnnl_memory_desc_t *layout,
				   const dnnl_dims_t dims,
				   dnnl_data_type_t type,
				   const dnnl_dims_t strides)
{
	return dnnl_memory_desc_init_by_strides(layout, 2, dims, type, strides);
}

static void destroy_layout(dnnl_memory_desc_t *layout)
{
	(void)layout;
}

static dnnl_status_t create_memory(dnnl_memory_t *memory,
				   const dnnl_memory_desc_t *layout,
				   dnnl_engine_t engine)
{
	return dnnl_memory_create(memory, layout, engine, NULL);
}

static dnnl_status_t append_sum(dnnl_post_ops_t after)
{
	return dnnl_post_ops_append_sum(after, 1);
}

static dnnl_status_t describe(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
			      const dnnl_memory_desc_t *layouts, bool bias,
			      dnnl_primitive_attr_t attr)
{
	dnnl_matmul_desc_t matmul;
	dnnl_status_t status = dnnl_matmul_desc_init(
		&matmul, &layouts[A], &layouts[B],
		bias ? &layouts[BIAS] : NULL, &layouts[C]);

	return status != dnnl_success ? status :
	       dnnl_primitive_desc_create(desc, &matmul, attr, engine, NULL);
}
#else
static dnnl_status_t create_layout(dnnl_memory_desc_t *layout,
				   const dnnl_dims_t dims,
				   dnnl_data_type_t type,
				   const dnnl_dims_t strides)
{
	return dnnl_memory_desc_create_with_strides(layout, 2, dims, type,
						    strides);
}

static void destroy_layout(dnnl_memory_desc_t *layout)
{
	dnnl_memory_desc_destroy(*layout);
}

static dnnl_status_t create_memory(dnnl_memory_t *memory,
				   const dnnl_memory_desc_t *layout,
				   dnnl_engine_t engine)
{
	return dnnl_memory_create(memory, *layout, engine, NULL);
}

static dnnl_status_t append_sum(dnnl_post_ops_t after)
{
	return dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t describe(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
			      const dnnl_memory_desc_t *layouts, bool bias,
			      dnnl_primitive_attr_t attr)
{
	return dnnl_matmul_primitive_desc_create(
		desc, engine, layouts[A], layouts[B],
		bias ? layouts[BIAS] : NULL, layouts[C], attr);
}
#endif

/*
 * Intel's processors before AMX take as long for a bf16 product as for two of
 * fp32. In steps of preset 10M, oneDNN's products took 1.5 times the CPU time
 * of widened ones. ONEDNN_MAX_CPU_ISA overrules this: whoever names the
 * instructions gets them.
 */
static bool is_slower(int isa)
{
#ifdef __x86_64__
	return (isa & dnnl_cpu_isa_avx512_core_amx) !=
	       dnnl_cpu_isa_avx512_core_amx &&
	       __builtin_cpu_is("intel") && !getenv("ONEDNN_MAX_CPU_ISA");
#else
	(void)isa;
	return false;
#endif
}

enum primitives_answer primitives_ask(enum device_type type)
{
	int isa = (int)dnnl_get_effective_cpu_isa();

	if (type != DEVICE_BF16 || (isa & dnnl_cpu_isa_avx512_core_bf16) !=
				   dnnl_cpu_isa_avx512_core_bf16)
		return PRIMITIVES_CANNOT;
	return is_slower(isa) ? PRIMITIVES_SLOW : PRIMITIVES_FAST;
}

static dnnl_status_t create_layouts(const struct key *key,
				    dnnl_memory_desc_t *layouts)
{
	const struct {
		dnnl_dims_t dims, strides;
	} operands[OPERANDS] = {
		[A] = { { key->m, key->k },
			{ key->transpose_a ? 1 : key->lda,
			  key->transpose_a ? key->lda : 1 } },
		[B] = { { key->k, key->n },
			{ key->transpose_b ? 1 : key->ldb,
			  key->transpose_b ? key->ldb : 1 } },
		[C] = { { key->m, key->n }, { key->ldc, 1 } },
		[BIAS] = { { 1, key->n }, { key->n, 1 } }
	};
	dnnl_status_t status = dnnl_success;

	for (int i = 0; i < OPERANDS && status == dnnl_success; i++)
		status = create_layout(&layouts[i], operands[i].dims,
				       i == C && !key->rounded ? dnnl_f32 :
				       dnnl_bf16, operands[i].strides);
	return status;
}

/* The primitive, from its operands' layouts. */
static dnnl_status_t create_primitive(dnnl_engine_t engine,
				      const struct key *key,
				      const dnnl_memory_desc_t *layouts,
				      dnnl_primitive_t *primitive)
{
	dnnl_primitive_attr_t attr = NULL;
	dnnl_post_ops_t after = NULL;
	dnnl_primitive_desc_t desc = NULL;
	dnnl_status_t status = dnnl_primitive_attr_create(&attr);

	if (status == dnnl_success && key->add) {
		status = dnnl_post_ops_create(&after);
		if (status == dnnl_success)
			status = append_sum(after);
		if (status == dnnl_success)
			status = dnnl_primitive_attr_set_post_ops(attr, after);
		dnnl_post_ops_destroy(after);
	}
	if (status == dnnl_success)
		status = describe(&desc, engine, layouts, key->bias, attr);
	if (status == dnnl_success)
		status = dnnl_primitive_create(primitive, desc);
	dnnl_primitive_desc_destroy(desc);
	dnnl_primitive_attr_destroy(attr);
	return status;
}

static void destroy_product(struct product *product)
{
	for (int i = 0; i < OPERANDS; i++)
		dnnl_memory_destroy(product->memory[i]);
	dnnl_primitive_destroy(product->primitive);
	memset(product, 0, sizeof(*product));
}

static dnnl_status_t create_product(dnnl_engine_t engine, const struct key *key,
				    struct product *product)
{
	dnnl_memory_desc_t layouts[OPERANDS];
	dnnl_status_t status;

	memset(layouts, 0, sizeof(layouts));
	status = create_layouts(key, layouts);
	for (int i = 0; i < OPERANDS && status == dnnl_success; i++)
		status = create_memory(&product->memory[i], &layouts[i],
				       engine);
	if (status == dnnl_success)
		status = create_primitive(engine, key, layouts,
					  &product->primitive);
	for (int i = 0; i < OPERANDS; i++)
		destroy_layout(&layouts[i]);
	product->key = *key;
	if (status != dnnl_success)
		destroy_product(product);
	return status;
}

/*
 * A step's products come again in the same order: the search begins behind the
 * one that was found last.
 */
static struct product *find_product(struct primitives *primitives,
				    const struct key *key)
{
	struct product *product;
	dnnl_status_t status;

	for (int i = 0; i < KEPT; i++) {
		int place = (primitives->next + i) % KEPT;

		product = &primitives->products[place];
		if (product->primitive &&
		    memcmp(&product->key, key, sizeof(*key)) == 0) {
			primitives->next = (place + 1) % KEPT;
			return product;
		}
	}
	product = &primitives->products[primitives->oldest];
	primitives->oldest = (primitives->oldest + 1) % KEPT;
	destroy_product(product);
	status = create_product(primitives->engine, key, product);
	if (status == dnnl_success)
		return product;
	primitives->worst = status;
	return NULL;
}

void primitives_multiply(struct primitives *primitives,
			 const struct matmul *matmul)
{
	const struct key key = {
		matmul->transpose_a, matmul->transpose_b, matmul->add,
		matmul->rounded, matmul->bias != NULL, matmul->m, matmul->n,
		matmul->k, matmul->lda, matmul->ldb, matmul->ldc
	};
	struct product *product = find_product(primitives, &key);
	dnnl_status_t status = dnnl_success;
	const void *operands[OPERANDS] = {
		[A] = matmul->a, [B] = matmul->b, [C] = matmul->c,
		[BIAS] = matmul->bias
	};

	if (!product)
		return;
	/* Inputs are const here, but not in oneDNN's types. */
	for (int i = 0; i < OPERANDS; i++)
		dnnl_memory_set_data_handle(product->memory[i],
					    (void *)operands[i]);
	status = dnnl_primitive_execute(
		product->primitive, primitives->stream,
		matmul->bias ? OPERANDS : BIAS,
		(const dnnl_exec_arg_t[OPERANDS]){
			{ DNNL_ARG_SRC, product->memory[A] },
			{ DNNL_ARG_WEIGHTS, product->memory[B] },
			{ DNNL_ARG_DST, product->memory[C] },
			{ DNNL_ARG_BIAS, product->memory[BIAS] } });
	if (status != dnnl_success)
		primitives->worst = status;
}

struct primitives *primitives_create(void)
{
	struct primitives *primitives = calloc(1, sizeof(*primitives));

	if (primitives &&
	    dnnl_engine_create(&primitives->engine, dnnl_cpu, 0) ==
	    dnnl_success &&
	    dnnl_stream_create(&primitives->stream, primitives->engine,
			       dnnl_stream_default_flags) == dnnl_success)
		return primitives;
	primitives_destroy(primitives);
	return NULL;
}

void primitives_destroy(struct primitives *primitives)
{
	if (!primitives)
		return;
	for (int i = 0; i < KEPT; i++)
		destroy_product(&primitives->products[i]);
	dnnl_stream_destroy(primitives->stream);
	dnnl_engine_destroy(primitives->engine);
	free(primitives);
}

int primitives_check(const struct primitives *primitives)
{
	return primitives->worst;
}
#else
/* A CBLAS has no products of 16-bit values. */
enum primitives_answer primitives_ask(enum device_type type)
{
	(void)type;
	return PRIMITIVES_CANNOT;
}

struct primitives *primitives_create(void)
{
	return NULL;
}

void primitives_destroy(struct primitives *primitives)
{
	(void)primitives;
}

void primitives_multiply(struct primitives *primitives,
			 const struct matmul *matmul)
{
	(void)primitives;
	(void)matmul;
}

int primitives_check(const struct primitives *primitives)
{
	(void)primitives;
	return 0;
}
#endif
