/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the reader of error files, which users' programs write. The input is
 * the file.
 */
#include "fuzz.h"
#include "util/failure.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), message[DDP_FAILURE_SIZE];

	memset(message, '\n', sizeof(message));
	if (ddp_failure_parse(text, message) == 0) {
		CHECK(memchr(message, '\0', sizeof(message)) != NULL);
		fuzz_check_line(message);
	} else {
		CHECK(*message == '\n');
	}
	free(text);
	return 0;
}
