/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes text as the trained model would. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/rng.h"
#include "ddp.h"
#include "model.h"
#include "step/fold.h"
#include "step/trainer.h"

/* Draw from softmax(logits) by a uniform number u in [0, 1). */
static int draw_token(const float *logits, int count, double u)
{
	double max = logits[0], sum = 0;

	for (int i = 1; i < count; i++)
		max = logits[i] > max ? logits[i] : max;
	for (int i = 0; i < count; i++)
		sum += exp(logits[i] - max);
	u *= sum;
	for (int i = 0; i < count; i++) {
		u -= exp(logits[i] - max);
		if (u < 0)
			return i;
	}
	return count - 1;
}

/* The token after `length` of trainer->read_tokens; or -1 with error set. */
static int generate_token(struct trainer *trainer, uint64_t length,
			  uint64_t index, struct ddp_error *error)
{
	struct device *device = &trainer->device;
	const struct model *model = trainer->model;
	uint64_t context = model->shape.context, vocab = model->shape.vocab;
	size_t bytes = device_type_bytes(device->type);
	float *row = trainer->piece + vocab;	/* at most half of it */
	struct batch batch = { .sequences = 1, .tokens = trainer->tokens };
	uint64_t bits = rng_draw_bits(trainer->options->seed, RNG_SAMPLE,
				      index);

	/* Attention is masked: what follows the last token has no effect. */
	device->table->copy(device, QUEUE_COMPUTE, trainer->tokens,
			    trainer->read_tokens, context * sizeof(int32_t));
	model->logits(model, device, trainer->param, &batch, trainer->logits);
	device_fetch(device, row, (char *)trainer->logits +
		     (length - 1) * vocab * bytes, vocab * bytes);
	if (device->table->check(device, error) < 0)
		return -1;
	half_widen(device->type, row, trainer->piece, vocab);
	return draw_token(trainer->piece, (int)vocab,
			  (double)(bits >> 11) * 0x1p-53);
}

int trainer_print_sample(struct trainer *trainer, uint64_t count,
			 struct ddp_error *error)
{
	uint64_t context = trainer->model->shape.context, length = 1;
	int32_t *text = trainer->read_tokens;
	int byte = 0;

	text[0] = '\n';
	for (uint64_t i = 0; i < count && !ferror(stdout); i++) {
		byte = generate_token(trainer, length, i, error);
		if (byte < 0)
			break;
		if (length == context)
			memmove(text, text + 1, --length * sizeof(*text));
		text[length++] = byte;
		putchar(isprint(byte) || byte == '\n' || byte == '\t' ||
			byte >= 0x80 ? byte : '.');
		fflush(stdout);
		ddp_heartbeat();
	}
	putchar('\n');
	return byte < 0 ? -1 : 0;
}
