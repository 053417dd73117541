/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what Slurm's controller answers, part of which users write. The input
 * takes the place of what scontrol and squeue print.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "slurm/scontrol.h"
#include "util/program.h"

static const char *printed;

/* It replaces the function of lib/util/program.c that runs the program. */
char *ddp_program_read(const char *const argv[], int err)
{
	(void)err;
	CHECK(strcmp(argv[0], "scontrol") == 0 ||
	      strcmp(argv[0], "squeue") == 0);
	return *printed ? strdup(printed) : NULL;
}

static void check_squeue(void)
{
	char *said = ddp_squeue_show("7", "-o", "%A %P");

	if (said)
		CHECK(strstr(printed, said) && !strchr(said, '\n') &&
		      *said != ' ');
	free(said);
}

static void check_words(void)
{
	const char *at;
	int length = -1;

	at = ddp_scontrol_find_word(printed, "NodeList", &length);
	CHECK(length >= 0 && (size_t)length <= strlen(at));
	CHECK(length == 0 || strncmp(at - 9, "NodeList=", 9) == 0);
	at = ddp_scontrol_find_setting(printed, "TaskProlog");
	CHECK(!at || (at > printed && at <= printed + strlen(printed)));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct ddp_error error;
	uint32_t gpus;

	printed = text;
	if (ddp_scontrol_count_gpus("7", &gpus, &error) < 0)
		fuzz_check_line(error.text);
	check_squeue();
	check_words();
	free(text);
	return 0;
}
