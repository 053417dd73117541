/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces gather.c where PMIx was not found. */
#include "info.h"

int gather_print(const struct ddp_row *row, struct ddp_error *error)
{
	(void)row;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "this ddp-info was "
			     "built without PMIx and cannot gather");
}

void doctor_meet(void)
{
	doctor_print_fact("meet_unknown this ddp-info was built without PMIx, "
			  "so ranks could not be told to meet");
}
