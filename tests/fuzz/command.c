/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the search for a launcher in a user's command. The input is the
 * command, a word in each line. It is also a script with options for sbatch, and
 * what the command reads by any name, as a script and as a configuration.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "request/launcher.h"
#include "request/shell_words.h"

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
		CHECK(launcher->kind != DDP_LAUNCHER_SSH ||
		      launcher->no_ssh);
		CHECK(!launcher->standalone);
	}
}

static const char *script;

static char *read_script(const char *name, bool shell)
{
	return shell || *name == '/' ? strdup(script) : NULL;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *whole = fuzz_text(data, size);
	char *rest = text, *words[WORDS + 1];
	struct ddp_launcher launcher;
	size_t count = 0;

	ddp_words_sbatch(text, "-k");
	script = whole;
	while (*rest != '\0' && count < WORDS)
		words[count++] = fuzz_next_line(&rest);
	words[count] = NULL;
	if (ddp_launcher_find(words, read_script, &launcher)) {
		ddp_launcher_read_config(&launcher, whole);
		check_launcher(&launcher);
	} else {
		CHECK(launcher.kind == DDP_LAUNCHER_NONE);
	}
	free(whole);
	free(text);
	return 0;
}
