/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backward pass of causal attention of 16-bit values, as by Dao 2023
 * (FlashAttention-2), but without atomics. With p the probabilities,
 * delta = rowsum(dout * out) and ds = p * (dout v^T - delta):
 *
 *	dv = p^T dout, dk = ds^T q * scale, dq = ds k * scale
 *
 * One launch sums up delta. A second one has a block for each tile of keys,
 * which goes over the queries. A third one has a block for each tile of
 * queries, which goes over the keys. Scores are computed twice, 7 products of
 * tiles instead of 5. In return each sum is formed in one order, and nothing of
 * fp32 is written and read again but delta.
 *
 * In the last two a block has its own rows, of two tensors, for as long as it
 * lives: k and v, or q and dout. The others pass by in steps, in two rooms of
 * shared memory, of which one is filled while the other is worked on.
 */
#include "cuda/attention.h"

enum { THREADS = 128, WARPS = THREADS / 32 };

/* A warp has 16 M of its block's OWN rows; STEP rows pass by at a time. */
template <int D> struct backward_tile {
	enum { M = D > 64 ? 1 : 2, OWN = 16 * M * WARPS, STEP = 32,
	       OWN_ROOM = 2 * OWN * ROW<D>,
	       SHARED = OWN_ROOM + 4 * STEP * ROW<D>,
	       BLOCKS = D > 32 ? 2 : 3 };
};

/* The terms of a query: its lse in powers of 2, and its delta. */
struct alignas(ATTENTION_TERM_BYTES) query_terms {
	float lse, delta;
};
static_assert(sizeof(query_terms) == ATTENTION_TERM_BYTES, "as planned");

/* Returns where the terms of a head begin. */
__device__ inline query_terms *find_terms(const op_attention_backward &op,
					  const attention_task &task)
{
	return (query_terms *)op.work +
	       (size_t)task.head * ATTENTION_TERMS(op.context);
}

/* The terms of all queries: D / 8 threads a row, 8 values each. */
template <class T, int D>
__global__ void __launch_bounds__(THREADS)
terms_kernel(op_attention_backward op)
{
	int i = (int)blockIdx.x * THREADS + threadIdx.x;
	int row = i / (D / 8), lane = i % (D / 8);
	attention_task task = find_task<D>(op.context, op.heads);
	size_t at = (task.begin + row) * op.width + task.column + 8 * lane;
	query_terms terms = { 0, 0 };

	if (row < op.context) {
		pack<T, 8> x = load_pack<8>((const T *)op.out + at);
		pack<T, 8> y = load_pack<8>((const T *)op.dout + at);

#pragma unroll
		for (int j = 0; j < 8; j++)
			terms.delta += widen(x.at[j]) * widen(y.at[j]);
		terms.lse = LOG2E *
			op.lse[(size_t)task.head * op.context + row];
	}
#pragma unroll
	for (int offset = D / 16; offset > 0; offset >>= 1)
		terms.delta += __shfl_xor_sync(~0u, terms.delta, offset);
	if (lane == 0 && row < ATTENTION_TERMS(op.context))
		find_terms(op, task)[row] = terms;
}

/* The places where a head's values, terms and dq begin. */
template <class T> struct backward_head {
	const T *q, *k, *v, *dout;
	const query_terms *terms;
	T *dq;
	size_t stride;

	__device__ backward_head(const op_attention_backward &op,
				 const attention_task &task)
	{
		size_t at = task.begin * 3 * op.width + task.column;

		stride = 3 * (size_t)op.width;
		q = (const T *)op.qkv + at;
		k = q + op.width;
		v = k + op.width;
		dq = (T *)op.dqkv + at;
		dout = (const T *)op.dout + task.begin * op.width +
		       task.column;
		terms = find_terms(op, task);
	}
};

/* Begin to copy the block's own rows of two tensors. */
template <class T, int D>
__device__ inline void fetch_own(const T *a, const T *b, size_t a_stride,
				 size_t b_stride, int first, int end)
{
	constexpr int OWN = backward_tile<D>::OWN;
	T *to = (T *)dynamic_shared();

	fetch_rows<D, OWN, THREADS>(to, a, a_stride, first, end);
	fetch_rows<D, OWN, THREADS>(to + OWN * ROW<D>, b, b_stride, first,
				    end);
}

/* store_rows() with one factor for all rows */
template <int D, int M, class T>
__device__ inline void store_scaled(T *own, const float (&c)[M][D / 8][4],
				    float scale, T *to, size_t stride,
				    int first, int end)
{
	float factor[M][2];

#pragma unroll
	for (int i = 0; i < 2 * M; i++)
		factor[i / 2][i % 2] = scale;
	store_rows<D, M>(own, c, factor, to, stride, first, end);
}

/* Begin to copy the terms of STEP queries, two at a time, to their room. */
template <int STEP>
__device__ inline void fetch_terms(query_terms *rooms, const query_terms *from,
				   int first, int end)
{
	int row = (int)threadIdx.x * 2;

	if (row < STEP)
		cp_async16(rooms + first / STEP % 2 * STEP + row,
			   from + first + row, first + row < end);
}

/* The terms of a lane's rows. */
template <int M>
__device__ inline void read_terms(query_terms (&terms)[M][2],
				  const query_terms *from, int query, int end)
{
	int row = query + (int)threadIdx.x % 32 / 4;

#pragma unroll
	for (int i = 0; i < 2 * M; i++, row += 8)
		terms[i / 2][i % 2] = row < end ? from[row] :
						  query_terms{ 0, 0 };
}

/* A score becomes a probability, and the probability's gradient the score's. */
__device__ inline void find_gradient(float &s, float &dp, float scale,
				     const query_terms &query)
{
	s = exp2_approx(s * scale - query.lse);
	dp = s * (dp - query.delta);
}

/*
 * Adds the part of STEP queries to the gradients of a warp's keys. The products
 * are transposed, so that rows are keys.
 */
template <class T, int D, int M, int STEP>
__device__ inline void add_queries(float (&dk)[M][D / 8][4],
				   float (&dv)[M][D / 8][4], const T *k,
				   const T *v, const T *q, const T *dout,
				   const query_terms *terms, int key,
				   int first)
{
	int lane = threadIdx.x % 32;
	float s[M][STEP / 8][4], ds[M][STEP / 8][4];
	uint32_t left[STEP / 16][M][4];

	multiply_tiles<D, M, STEP>(s, k, q);
	multiply_tiles<D, M, STEP>(ds, v, dout);
	if (key + 16 * M - 1 > first)
		hide_later<false>(s, key + lane / 4, first + lane % 4 * 2);
#pragma unroll
	for (int n = 0; n < STEP / 8; n++) {
		pack<query_terms, 2> pair =
			load_pack<2>(terms + 8 * n + lane % 4 * 2);

#pragma unroll
		for (int i = 0; i < 4 * M; i++)
			find_gradient(s[i / 4][n][i % 4], ds[i / 4][n][i % 4],
				      LOG2E / sqrtf((float)D), pair.at[i % 2]);
	}
	pack_left<M, STEP>(left, s, T());
	multiply_columns<D, M, STEP>(dv, left, dout);
	pack_left<M, STEP>(left, ds, T());
	multiply_columns<D, M, STEP>(dk, left, q);
}

template <class T, int D>
__global__ void __launch_bounds__(THREADS, backward_tile<D>::BLOCKS)
dkv_kernel(op_attention_backward op)
{
	typedef backward_tile<D> tile;
	typedef attention_stream<T, D, tile::STEP, THREADS> stream;
	constexpr int M = tile::M, OWN = tile::OWN, STEP = tile::STEP;
	attention_task task = find_task<D>(op.context, op.heads);
	backward_head<T> head(op, task);
	int begin = (int)blockIdx.x * OWN, own = find_warp() * 16 * M;
	T *k = (T *)dynamic_shared() + own * ROW<D>, *v = k + OWN * ROW<D>;
	stream queries = { (T *)dynamic_shared() + tile::OWN_ROOM, head.q,
			   head.dout, head.stride, (size_t)op.width,
			   op.context };
	query_terms *terms = (query_terms *)(queries.rooms + 2 * stream::ROOM);
	float dk[M][D / 8][4] = {}, dv[M][D / 8][4] = {};

	fetch_own<T, D>(head.k, head.v, head.stride, head.stride, begin,
			op.context);
	queries.fetch(begin);
	fetch_terms<STEP>(terms, head.terms, begin, op.context);
	cp_async_commit();
	for (int query = begin; query < op.context; query += STEP) {
		const T *q = queries.find_room(query);
		int next = query + STEP;

		cp_async_wait<0>();
		__syncthreads();
		if (next < op.context) {
			queries.fetch(next);
			fetch_terms<STEP>(terms, head.terms, next, op.context);
			cp_async_commit();
		}
		if (begin + own < next)
			add_queries<T, D, M, STEP>(dk, dv, k, v, q,
				q + stream::TILE, terms + query / STEP % 2 *
				STEP, begin + own, query);
	}
	store_scaled<D, M>(k, dk, 1 / sqrtf((float)D), head.dq + op.width,
			   head.stride, begin + own, op.context);
	store_scaled<D, M>(v, dv, 1, head.dq + 2 * op.width, head.stride,
			   begin + own, op.context);
}

/* Adds the part of STEP keys to the gradient of a warp's queries. */
template <class T, int D, int M, int STEP>
__device__ inline void add_keys(float (&dq)[M][D / 8][4],
				const uint32_t (&q)[D / 16][M][4],
				const uint32_t (&dout)[D / 16][M][4],
				const T *k, const T *v,
				const query_terms (&terms)[M][2], int query,
				int first)
{
	int lane = threadIdx.x % 32;
	float s[M][STEP / 8][4], ds[M][STEP / 8][4];
	uint32_t left[STEP / 16][M][4];

	multiply_held<D, M, STEP>(s, q, k);
	multiply_held<D, M, STEP>(ds, dout, v);
	if (first + STEP - 1 > query)
		hide_later<true>(s, query + lane / 4, first + lane % 4 * 2);
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int i = 0; i < STEP / 2; i++)
			find_gradient(s[m][i / 4][i % 4], ds[m][i / 4][i % 4],
				      LOG2E / sqrtf((float)D),
				      terms[m][i % 4 / 2]);
	pack_left<M, STEP>(left, ds, T());
	multiply_columns<D, M, STEP>(dq, left, k);
}

template <class T, int D>
__global__ void __launch_bounds__(THREADS, backward_tile<D>::BLOCKS)
dq_kernel(op_attention_backward op)
{
	typedef backward_tile<D> tile;
	typedef attention_stream<T, D, tile::STEP, THREADS> stream;
	constexpr int M = tile::M, OWN = tile::OWN, STEP = tile::STEP;
	attention_task task = find_task<D>(op.context, op.heads);
	backward_head<T> head(op, task);
	int begin = (int)(gridDim.x - 1 - blockIdx.x) * OWN;
	int own = find_warp() * 16 * M, query = begin + own;
	int end = min(begin + OWN, op.context);
	T *q = (T *)dynamic_shared() + own * ROW<D>;
	stream keys = { (T *)dynamic_shared() + tile::OWN_ROOM, head.k, head.v,
			head.stride, head.stride, op.context };
	uint32_t left[2][D / 16][M][4];		/* q and dout */
	float dq[M][D / 8][4] = {};
	query_terms terms[M][2];

	fetch_own<T, D>(head.q, head.dout, head.stride, op.width, begin,
			op.context);
	keys.fetch(0);
	cp_async_commit();
	read_terms(terms, head.terms, query, op.context);
	cp_async_wait<0>();
	__syncthreads();
	load_rows<D, M>(left[0], q);
	load_rows<D, M>(left[1], q + OWN * ROW<D>);
	for (int key = 0; key < end; key += STEP) {
		const T *k = keys.find_room(key);

		cp_async_wait<0>();
		__syncthreads();
		if (key + STEP < end) {
			keys.fetch(key + STEP);
			cp_async_commit();
		}
		if (key < query + 16 * M)
			add_keys<T, D, M, STEP>(dq, left[0], left[1], k,
						k + stream::TILE, terms,
						query, key);
	}
	store_scaled<D, M>(q, dq, 1 / sqrtf((float)D), head.dq, head.stride,
			   query, op.context);
}

template <class T, int D>
static cudaError_t backward(cudaStream_t stream,
			    const op_attention_backward *op)
{
	typedef backward_tile<D> tile;
	int threads = ATTENTION_TERMS(op->context) * (D / 8);
	dim3 tiles((op->context + tile::OWN - 1) / tile::OWN, op->heads,
		   op->sequences);
	dim3 parts((threads + THREADS - 1) / THREADS, op->heads,
		   op->sequences);
	size_t shared = tile::SHARED * sizeof(T);
	size_t terms = 2 * tile::STEP * sizeof(query_terms);
	cudaError_t error = launch(stream, parts, THREADS, 0,
				   terms_kernel<T, D>, *op);

	if (!error)
		error = launch_attention(stream, dkv_kernel<T, D>, tiles,
					 THREADS, shared + terms, *op);
	if (!error)
		error = launch_attention(stream, dq_kernel<T, D>, tiles,
					 THREADS, shared, *op);
	return error;
}

template <class T>
static cudaError_t backward_of(cudaStream_t stream,
			       const op_attention_backward *op)
{
	switch (op->width / op->heads) {
	case 16: return backward<T, 16>(stream, op);
	case 32: return backward<T, 32>(stream, op);
	case 64: return backward<T, 64>(stream, op);
	default: return backward<T, 128>(stream, op);
	}
}

void cuda_attention_backward(struct device *device,
			     const struct op_attention_backward *op)
{
	cudaStream_t stream = cuda_stream(device, QUEUE_COMPUTE);
	cudaError_t error;

	if (!attention_is_fast(device->type, op->sequences, op->heads,
			       op->width))
		error = attention_backward_plain(stream, device->type, op);
	else if (device->type == DEVICE_BF16)
		error = backward_of<__nv_bfloat16>(stream, op);
	else
		error = backward_of<__half>(stream, op);
	cuda_check(device, error, "attention's backward pass");
}
