/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake Slurm for the real plugin; see host.h. As the test program it gets the
 * directory that tests/spank/run has prepared, and the themes to run: all.
 */
#include <stdio.h>
#include <string.h>

#include "host.h"

/*
 * For the sanitizers, if this is built with them: the parts end abruptly, so
 * leaks are no errors.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static const struct {
	const char *name;
	void (*run)(void);
} themes[] = {
	{ "srun", test_srun }, { "job", test_job },
	{ "supervise", test_supervise }, { "preflight", test_preflight },
	{ "launcher", test_launcher }, { "task", test_task },
	{ "rank", test_rank }, { "siblings", test_siblings },
	{ "views", test_views }, { "meeting", test_meeting },
	{ "explain", test_explain }, { "site", test_site },
	{ "foreign", test_foreign }, { "failures", test_failures },
	{ "agent", test_agent }, { "signal", test_signal },
};

static bool is_named(char **names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	fake.program = slash ? slash + 1 : argv[0];
	fake_kernel_reset();
	if (strcmp(fake.program, "srun") == 0)
		return walk_launcher(argc, argv, S_CTX_LOCAL);
	if (strcmp(fake.program, "sbatch") == 0 ||
	    strcmp(fake.program, "salloc") == 0)
		return walk_launcher(argc, argv, S_CTX_ALLOCATOR);
	if (strcmp(fake.program, "slurmstepd") == 0)
		return walk_stepd(argc, argv);
	if (strcmp(fake.program, "slurmd") == 0)
		return walk_slurmd();
	if (argc < 2) {
		fprintf(stderr, "usage: spank_host DIRECTORY [THEME...]\n");
		return 2;
	}
	cases_dir = argv[1];
	for (size_t i = 0; i < COUNT(themes); i++)
		if (argc == 2 || is_named(argv + 2, themes[i].name))
			themes[i].run();
	return cases_end();
}
