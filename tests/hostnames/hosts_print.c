/* SPDX-License-Identifier: BSD-3-Clause */
/* Compresses the node list on standard input as the plugin does in srun. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugin/srun/cli.h"

int main(void)
{
	char *list = NULL, *text;
	size_t size = 0;

	if (getline(&list, &size, stdin) < 0)
		return 1;
	list[strcspn(list, "\n")] = '\0';
	text = ddp_hosts_compress(list, true);
	puts(text ? text : "");
	free(text);
	free(list);
	return !text;
}
