/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors: a code and one printable sentence. */
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/text.h"

int ddp_error_set(struct ddp_error *error, enum ddp_error_code code,
		  const char *format, ...)
{
	va_list args;

	if (!error)
		return -1;
	error->code = code;
	error->native = 0;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	ddp_text_quote(error->text);
	return -1;
}

int ddp_error_set_native(struct ddp_error *error, int native)
{
	if (error)
		error->native = native;
	return -1;
}
