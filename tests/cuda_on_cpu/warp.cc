/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the last lane of a warp instruction computes for all, and cp.async.
 */
#include "../fakes/half_bits.h"
#include "emu.h"

extern "C" void emu_shuffle(emu_lane *const *lanes, unsigned mask, int)
{
	for (int i = 0; i < 32; i++) {
		if (!(mask >> i & 1))
			continue;
		if (!(mask >> lanes[i]->source & 1))
			emu_report(NULL, "a shuffle from a lane that takes "
				   "no part");
		else
			lanes[i]->result = lanes[lanes[i]->source]->value;
	}
}

extern "C" void emu_ballot(emu_lane *const *lanes, unsigned mask, int)
{
	uint64_t vote = 0;

	for (int i = 0; i < 32; i++)
		if (mask >> i & 1)
			vote |= lanes[i]->value << i;
	for (int i = 0; i < 32; i++)
		if (mask >> i & 1)
			lanes[i]->result = vote;
}

/* ---- mma.m16n8k16, by PTX ISA's "Matrix Fragments for mma.m16n8k16" */

struct tile {
	float a[16][16], b[16][8], c[16][8];
};

static inline float half_of(uint32_t pair, int high, int fp16)
{
	uint16_t bits = (uint16_t)(high ? pair >> 16 : pair);

	return fp16 ? float_of_fp16(bits) : float_of_bf16(bits);
}

static void gather(tile *t, emu_lane *const *lanes, int fp16)
{
	for (int i = 0; i < 32; i++) {
		int g = i / 4, k = i % 4 * 2;
		const uint32_t *a = (const uint32_t *)lanes[i]->in[0];
		const uint32_t *b = (const uint32_t *)lanes[i]->in[1];
		const float *c = (const float *)lanes[i]->out;

		for (int h = 0; h < 2; h++) {
			t->a[g][k + h] = half_of(a[0], h, fp16);
			t->a[g + 8][k + h] = half_of(a[1], h, fp16);
			t->a[g][k + 8 + h] = half_of(a[2], h, fp16);
			t->a[g + 8][k + 8 + h] = half_of(a[3], h, fp16);
			t->b[k + h][g] = half_of(b[0], h, fp16);
			t->b[k + 8 + h][g] = half_of(b[1], h, fp16);
			t->c[g][k + h] = c[h];
			t->c[g + 8][k + h] = c[2 + h];
		}
	}
}

static void multiply(tile *t)
{
	for (int m = 0; m < 16; m++)
		for (int k = 0; k < 16; k++)
			for (int n = 0; n < 8; n++)
				t->c[m][n] += t->a[m][k] * t->b[k][n];
}

extern "C" void emu_mma(emu_lane *const *lanes, unsigned mask, int fp16)
{
	tile t;

	if (mask != ~0u) {
		emu_report(NULL, "mma of fewer than 32 lanes");
		return;
	}
	gather(&t, lanes, fp16);
	multiply(&t);
	for (int i = 0; i < 32; i++) {
		int g = i / 4, k = i % 4 * 2;
		float *c = (float *)lanes[i]->out;

		for (int h = 0; h < 2; h++) {
			c[h] = t.c[g][k + h];
			c[2 + h] = t.c[g + 8][k + h];
		}
	}
}

/* ---- ldmatrix.x4 */

static unsigned long ldmatrix_rows, ldmatrix_conflicts;

/* Eight rows of 16 bytes are read at once where all are in other banks. */
static void count_conflicts(const uint16_t *const *row)
{
	unsigned used = 0;

	for (int i = 0; i < 8; i++) {
		unsigned bank = 1u << (uintptr_t)row[i] / 16 % 8;

		ldmatrix_conflicts += (used & bank) != 0;
		used |= bank;
	}
	ldmatrix_rows += 8;
}

static void load_matrix(emu_lane *const *lanes, int matrix, int transpose)
{
	const uint16_t *row[8];

	for (int i = 0; i < 8; i++)
		row[i] = (const uint16_t *)lanes[8 * matrix + i]->in[0];
	count_conflicts(row);
	for (int i = 0; i < 32; i++) {
		int r = i / 4, c = i % 4 * 2;
		uint32_t low = transpose ? row[c][r] : row[r][c];
		uint32_t high = transpose ? row[c + 1][r] : row[r][c + 1];

		((uint32_t *)lanes[i]->out)[matrix] = low | high << 16;
	}
}

extern "C" void emu_ldmatrix(emu_lane *const *lanes, unsigned mask,
			     int transpose)
{
	if (mask != ~0u) {
		emu_report(NULL, "ldmatrix of fewer than 32 lanes");
		return;
	}
	for (int matrix = 0; matrix < 4; matrix++)
		load_matrix(lanes, matrix, transpose);
}

extern "C" __attribute__((noinline)) void emu_read_row(const void *row)
{
	const void *pc = __builtin_return_address(0);

	if ((uintptr_t)row % 16)
		emu_report(pc, "ldmatrix of a row not at 16 bytes");
	emu_access((uintptr_t)row, 16, EMU_READ, pc);
}

/* Bank conflicts for whoever asks: EMU_BANKS=1 prints them at the end. */
void emu_get_banks(unsigned long *rows, unsigned long *conflicts)
{
	*rows = ldmatrix_rows;
	*conflicts = ldmatrix_conflicts;
}

/* ---- cp.async: bytes arrive when they are waited for, and not before */

extern "C" __attribute__((noinline)) void emu_cp_async(void *to,
		const void *from, int bytes, int live)
{
	const void *pc = __builtin_return_address(0);
	emu_copies *mine = emu_my_copies();

	if ((uintptr_t)to % 16 || (live && (uintptr_t)from % 16))
		emu_report(pc, "cp.async not at 16 bytes");
	emu_access((uintptr_t)to, (size_t)bytes, EMU_ISSUE, pc);
	if (live)
		emu_access((uintptr_t)from, (size_t)bytes, EMU_READ, pc);
	mine->list.push_back({ to, from, bytes, mine->group, live != 0 });
}

extern "C" void emu_cp_commit(void)
{
	emu_my_copies()->group++;
}

extern "C" void emu_cp_wait(int left)
{
	emu_copies *mine = emu_my_copies();
	size_t kept = 0;

	for (emu_copy &c : mine->list) {
		if (c.group >= mine->group - left) {
			mine->list[kept++] = c;
			continue;
		}
		emu_access((uintptr_t)c.to, (size_t)c.bytes, EMU_LAND, NULL);
		if (c.live)
			memcpy(c.to, c.from, (size_t)c.bytes);
		else
			memset(c.to, 0, (size_t)c.bytes);
	}
	mine->list.resize(kept);
}

extern "C" __attribute__((noinline)) void emu_atomic(void *p, int bytes)
{
	emu_access((uintptr_t)p, (size_t)bytes, EMU_ATOMIC,
		   __builtin_return_address(0));
}
