/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of GPUs, and the FLOP of a model. */
#define _GNU_SOURCE
#include <string.h>
#include <strings.h>

#include "run/rates.h"

/* A laptop's GPU, or a part of one (MIG), has another model, and is unknown. */
static const struct rates table[] = {
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

enum { COUNT = sizeof(table) / sizeof(*table) };

static const char *skip_word(const char *name, const char *word)
{
	size_t length = strlen(word);

	return strncmp(name, word, length) == 0 ? name + length : name;
}

const struct rates *rates_find(const char *name)
{
	const char *model = skip_word(skip_word(name, "NVIDIA "), "GeForce ");

	for (int i = 0; i < COUNT; i++)
		if (strcasecmp(name, table[i].name) == 0 ||
		    strcmp(model, table[i].model) == 0)
			return &table[i];
	return NULL;
}

const char *rates_names(void)
{
	static char names[16 * COUNT];

	if (!*names)
		for (int i = 0; i < COUNT; i++) {
			if (i > 0)
				strcat(names, ", ");
			strcat(names, table[i].name);
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
