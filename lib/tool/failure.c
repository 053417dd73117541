/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes PyTorch's error file: see util/failure.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tool/tool.h"
#include "util/text.h"

void tool_record_failure(const char *message)
{
	const char *path = getenv("TORCHELASTIC_ERROR_FILE");
	struct ddp_text text = { 0 };
	char *all;
	int fd;

	if (!path || !*path)
		return;
	ddp_text_add(&text, "{\"message\": ");
	ddp_text_add_json(&text, message);
	ddp_text_add(&text, ", \"timestamp\": %lld}\n",
		     (long long)time(NULL));
	all = ddp_text_finish(&text);
	fd = all ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
			O_NONBLOCK | O_CLOEXEC, 0600) : -1;
	if (fd >= 0) {
		dprintf(fd, "%s", all);
		close(fd);
	}
	free(all);
}
