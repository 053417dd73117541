/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spank.h does not tell which options srun, sbatch and salloc were given. Their
 * own accessors do. These are looked up at run time, because a build of Slurm
 * may not export them; their declarations are the same from Slurm 21.08 to
 * 26.05.
 */
#define _GNU_SOURCE
#include "srun/cli.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef char *(*get_fn)(void *opt, const char *name);
typedef bool (*isset_fn)(void *opt, const char *name);
typedef bool (*typed_fn)(void *opt, int letter);

static struct {
	bool looked;
	void *opt;
	get_fn get;
	isset_fn isset;
	typed_fn typed;		/* NULL: this Slurm has none */
} cli;

bool ddp_cli_available(void)
{
	if (!cli.looked) {
		cli.opt = dlsym(RTLD_DEFAULT, "opt");
		*(void **)&cli.get = dlsym(RTLD_DEFAULT, "slurm_option_get");
		*(void **)&cli.isset = dlsym(RTLD_DEFAULT,
					     "slurm_option_isset");
		*(void **)&cli.typed = dlsym(RTLD_DEFAULT,
					     "slurm_option_set_by_cli");
		cli.looked = true;
	}
	return cli.opt && cli.get && cli.isset;
}

const char *ddp_cli_get_default(const char *option)
{
	/*
	 * Never freed: the text belongs to Slurm's allocator, and srun is
	 * short.
	 */
	return ddp_cli_available() ? cli.get(cli.opt, option) : NULL;
}

bool ddp_cli_isset(const char *option)
{
	return ddp_cli_available() && cli.isset(cli.opt, option);
}

bool ddp_cli_typed(char letter)
{
	return ddp_cli_available() && cli.typed && cli.typed(cli.opt, letter);
}

const char *ddp_cli_get(const char *option)
{
	return ddp_cli_isset(option) ? ddp_cli_get_default(option) : NULL;
}

/*
 * Returns true if the folder of the object that holds address has mpi_TYPE.so.
 */
static bool has_mpi_beside(void *address, const char *type)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!address || !dladdr(address, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return slash &&
	       snprintf(path, sizeof(path), "%.*s/mpi_%s.so",
			(int)(slash - info.dli_fname), info.dli_fname,
			type) < (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

/* Slurm keeps its plugins, this one included, beside its library. */
bool ddp_cli_has_mpi(const char *type)
{
	return (ddp_cli_available() &&
		has_mpi_beside(*(void **)&cli.get, type)) ||
	       has_mpi_beside(&cli, type);
}
