/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "model.h"

size_t model_lay_out(struct tensor *tensors, int count)
{
	uint64_t end = 0;

	for (int i = 0; i < count; i++) {
		struct tensor *tensor = &tensors[i];

		tensor->offset = (size_t)end;
		tensor->count = (size_t)tensor->rows * (size_t)tensor->columns;
		end += model_pad(tensor->count);
	}
	return (size_t)end;
}

void model_destroy(struct model *model)
{
	free(model);
}
