/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the search for a launcher in a user's command. The input is the
 * command, a word in each line. It is also a script with options for sbatch.
 */
#include "fuzz.h"
#include "layout/launcher.h"
#include "layout/words.h"

enum { WORDS = 32, NODES = 2 };

static void check_launcher(const struct ddp_launcher *launcher)
{
	struct ddp_error error = { 0 };

	CHECK(launcher->kind != DDP_LAUNCHER_NONE && launcher->name);
	CHECK(launcher->nodes_min <= launcher->nodes_max);
	CHECK(ddp_launcher_workers(launcher) <= launcher->processes);
	if (ddp_launcher_check(launcher, NODES, &error) < 0) {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	} else {
		CHECK(launcher->kind != DDP_LAUNCHER_DEEPSPEED);
		CHECK(!launcher->standalone);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text, *words[WORDS + 1];
	struct ddp_launcher launcher;
	size_t count = 0;

	ddp_words_sbatch(text, "-k");
	while (*rest != '\0' && count < WORDS)
		words[count++] = fuzz_next_line(&rest);
	words[count] = NULL;
	if (ddp_launcher_find(words, &launcher))
		check_launcher(&launcher);
	else
		CHECK(launcher.kind == DDP_LAUNCHER_NONE);
	free(text);
	return 0;
}
