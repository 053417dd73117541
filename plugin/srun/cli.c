/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spank.h does not tell which options srun, sbatch and salloc were given, nor
 * their arguments. The kernel has these, and their own accessors tell of those.
 * All functions of theirs are looked up at run time, because a build of Slurm may
 * not export them; their declarations are the same from Slurm 21.08 to 26.05, but
 * for the name of a node list's type.
 */
#define _GNU_SOURCE
#include "srun/cli.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "util/file.h"

/* ---- options */

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
	/* Never freed: it is of Slurm's allocator, and srun is short. */
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

/* ---- the command line */

char **ddp_arguments_read(void)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	size_t length, count = 0, i;
	char *text = fd < 0 ? NULL : ddp_file_read_fd(fd, SIZE_MAX, &length);
	char **argv, *p;

	if (fd >= 0)
		close(fd);
	if (!text)
		return NULL;
	for (i = 0; i < length; i++)
		count += text[i] == '\0';
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv) {
		free(text);
		return NULL;
	}
	for (i = 0, p = text; p < text + length; p += strlen(p) + 1)
		argv[i++] = p;
	return argv;
}

void ddp_arguments_free(char **argv)
{
	if (argv)
		free(argv[0]);
	free(argv);
}

/* srun reads each component from its ":" on, as if that were its own name. */
char **ddp_arguments_command(char **argv, uint32_t component)
{
	int i;

	for (; argv && component > 0 && *argv; component--)
		do
			argv++;
		while (*argv && strcmp(*argv, ":") != 0);
	for (i = 0; argv && i < optind && argv[i]; i++)
		;
	if (!argv || i == 0 || !argv[i] || strcmp(argv[i], ":") == 0)
		return NULL;
	argv += i;
	for (i = 0; argv[i] && strcmp(argv[i], ":") != 0; i++)
		;
	argv[i] = NULL;
	return argv;
}

uint32_t ddp_arguments_next(char **argv, uint32_t begin)
{
	uint32_t i, at = begin + (uint32_t)optind;

	for (i = 0; argv && i < at; i++)
		if (!argv[i])
			return 0;
	for (; argv && argv[at]; at++)
		if (strcmp(argv[at], ":") == 0)
			return at;
	return 0;
}

void ddp_arguments_find(char *const *argv, uint32_t begin, const char *name,
			char *value, size_t size)
{
	uint32_t i, end = begin + (uint32_t)optind;
	size_t length = strlen(name);

	for (i = 0; argv && i < end && argv[i]; i++) {
		if (i <= begin || strncmp(argv[i], name, length) != 0)
			continue;
		if (argv[i][length] == '=')
			snprintf(value, size, "%s", argv[i] + length + 1);
		else if (argv[i][length] == '\0' && argv[i + 1])
			snprintf(value, size, "%s", argv[i + 1]);
	}
}

/* ---- node lists */

typedef void *(*create_fn)(const char *list);
typedef ssize_t (*format_fn)(void *hosts, size_t size, char *buffer);
typedef void (*change_fn)(void *hosts);

char *ddp_hosts_compress(const char *list, bool sorted)
{
	/* A bracket can take more room than it saves: n[1,3] for n1,n3. */
	size_t size = 2 * strlen(list) + 1;
	char *text = malloc(size);
	void *hosts = NULL;
	change_fn sort, destroy;
	create_fn create;
	format_fn format;

	*(void **)&create = dlsym(RTLD_DEFAULT, "slurm_hostlist_create");
	*(void **)&sort = dlsym(RTLD_DEFAULT, "slurm_hostlist_uniq");
	*(void **)&format = dlsym(RTLD_DEFAULT, "slurm_hostlist_ranged_string");
	*(void **)&destroy = dlsym(RTLD_DEFAULT, "slurm_hostlist_destroy");
	if (text && create && sort && format && destroy)
		hosts = create(list);
	if (hosts && sorted)
		sort(hosts);
	if (text && (!hosts || format(hosts, size, text) < 0))
		strcpy(text, list);
	if (hosts)
		destroy(hosts);
	return text;
}
