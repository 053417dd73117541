/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake Slurm for the real plugin; see host.h. As the test program it gets the
 * directory that tests/spank/run has prepared.
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
	if (argc != 2) {
		fprintf(stderr, "usage: spank_host DIRECTORY\n");
		return 2;
	}
	cases_dir = argv[1];
	test_srun();
	test_job();
	test_supervise();
	test_preflight();
	test_launcher();
	test_task();
	test_rank();
	test_siblings();
	test_views();
	test_meeting();
	test_explain();
	test_site();
	test_foreign();
	test_failures();
	test_agent();
	test_signal();
	return cases_end();
}
