/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of GPUs: "find NAME" prints the name that users say; "flops
 * LAYERS WIDTH CONTEXT VOCAB TOKENS" a model's FLOP; "step NAME TYPE" a row
 * for each operator of 124M, 32 sequences at once, times, FLOP, bytes, seconds;
 * TYPE is a number of device.h's or "tf32". "work SEQUENCES CONTEXT HEADS WIDTH
 * VOCAB TYPE own|cudnn" prints the bytes of a GPU's workspace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/sizes.h"
#include "run/predict.h"

static int print_step(const char *name, int type, bool tf32)
{
	const struct model_shape shape = { 12, 12, 768, 1024, 50257 };
	const struct predict_run run = {
		.shape = &shape, .type = (enum device_type)type,
		.grad_type = (enum device_type)type, .chunk = 32, .chunks = 2,
		.updated = 124439808, .adamw = true, .recompute = true,
		.tf32 = tf32
	};
	const struct rates *rates = rates_find(name);
	struct predict_row rows[PREDICT_ROWS];
	int count = rates ? predict_step(rates, &run, rows) : 0;

	for (int i = 0; i < count; i++)
		printf("%s: %.0f %.0f %.0f %.6e\n", rows[i].name, rows[i].times,
		       rows[i].flops, rows[i].bytes, rows[i].seconds);
	printf("all: %.6e\n", predict_seconds(rates, &run));
	return count == 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "find") == 0) {
		const struct rates *rates = rates_find(argv[2]);

		puts(rates ? rates->name : "unknown");
		return 0;
	}
	if (argc == 7 && strcmp(argv[1], "flops") == 0) {
		struct model_shape shape = {
			.layers = strtoull(argv[2], NULL, 10),
			.width = strtoull(argv[3], NULL, 10),
			.context = strtoull(argv[4], NULL, 10),
			.vocab = strtoull(argv[5], NULL, 10)
		};

		printf("%.0f\n", rates_count_model_flops(
			       &shape, strtoull(argv[6], NULL, 10)));
		return 0;
	}
	if (argc == 9 && strcmp(argv[1], "work") == 0) {
		const struct device_shape shape = {
			.rows = atoi(argv[2]) * atoi(argv[3]),
			.context = atoi(argv[3]), .heads = atoi(argv[4]),
			.width = atoi(argv[5]), .vocab = atoi(argv[6]),
			.type = (enum device_type)atoi(argv[7]),
			.attention = strcmp(argv[8], "cudnn") == 0 ?
				     ATTENTION_CUDNN : ATTENTION_OWN
		};

		printf("%zu\n", sizes_count_work(&shape));
		return 0;
	}
	if (argc != 4)
		return 2;
	return print_step(argv[2], atoi(argv[3]), strcmp(argv[3], "tf32") == 0);
}
