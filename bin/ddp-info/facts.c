/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the facts of the machine that this runs on, for check*.c to judge, and
 * prints them in a task that --doctor starts on a node.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "config.h"
#include "info.h"
#include "layout/hostlist.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/net.h"
#include "util/program.h"

enum { NAMES_MS = 20000 };

static void add_fact(struct ddp_text *text, const char *name,
		     const char *value)
{
	ddp_text_add_quoted(text, "%s %s", name, value);
	ddp_text_add(text, "\n");
}

/* ---- versions */

/* The first word with a number in front: "OpenPMIx 4.2.2 (...)". */
static void add_number(struct ddp_text *text, const char *name,
		       const char *words)
{
	char value[64];

	while (*words && !isdigit((unsigned char)*words)) {
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(words, " ,\n"),
		 words);
	if (*value)
		add_fact(text, name, value);
}

static void *find_symbol(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	return handle ? dlsym(handle, name) : NULL;
}

/* The PMIx that this program was linked with, or else that of the loader. */
static void add_pmix(struct ddp_text *text)
{
	const char *(*get)(void);
	void *symbol = dlsym(RTLD_DEFAULT, "PMIx_Get_version");

	if (!symbol)
		symbol = find_symbol("libpmix.so.2", "PMIx_Get_version");
	memcpy(&get, &symbol, sizeof(get));
	if (get)
		add_number(text, "pmix", get());
}

/* As libddp, it takes RCCL first where there is no CUDA driver. */
static void add_nccl(struct ddp_text *text)
{
	const char *named = getenv("DDP_NCCL_LIBRARY");
	bool is_named = named && *named;
	void *symbol = NULL;
	int (*get)(int *version), version;

	if (!is_named && !find_symbol("libcuda.so.1", "cuInit"))
		symbol = find_symbol("librccl.so.1", "ncclGetVersion");
	if (!symbol)
		symbol = find_symbol(is_named ? named : "libnccl.so.2",
				     "ncclGetVersion");
	memcpy(&get, &symbol, sizeof(get));
	if (get && get(&version) == 0)
		ddp_text_add(text, "nccl %d.%d.%d\n", version / 10000,
			     version / 100 % 100, version % 100);
}

/* "munge-0.5.15 (2022-06-22)" */
static void add_munge(struct ddp_text *text)
{
	static const char *const argv[] = { "munge", "--version", NULL };
	char *words = ddp_program_read(argv, STDERR_FILENO);

	if (words)
		add_number(text, "munge", words + strcspn(words, "0123456789"));
	free(words);
}

static void add_versions(struct ddp_text *text)
{
	char line[256];

	add_fact(text, "ddp", DDP_VERSION);
	add_pmix(text);
	add_nccl(text);
	add_munge(text);
	ddp_file_read_line("/proc/driver/nvidia/version", line, sizeof(line));
	add_number(text, "driver", line);
	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0)
		add_fact(text, "cgroup", "v2");
	else if (access("/sys/fs/cgroup/cpuset", F_OK) == 0)
		add_fact(text, "cgroup", "v1");
}

/* ---- limits */

static void add_limit(struct ddp_text *text, const char *name, int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		add_fact(text, name, "unlimited");
	else
		ddp_text_add(text, "%s %llu\n", name,
			     (unsigned long long)limit.rlim_cur);
}

static void add_limits(struct ddp_text *text)
{
	struct statvfs shm;
	char line[64];
	unsigned first, last;
	glob_t found;

	add_limit(text, "nofile", RLIMIT_NOFILE);
	add_limit(text, "memlock", RLIMIT_MEMLOCK);
	if (glob("/sys/class/infiniband/*", 0, NULL, &found) == 0) {
		add_fact(text, "rdma", "yes");
		globfree(&found);
	}
	if (statvfs("/dev/shm", &shm) || access("/dev/shm", W_OK))
		add_fact(text, "shm_flaw", strerror(errno));
	else
		ddp_text_add(text, "shm %llu\nshm_free %llu\n",
			     (unsigned long long)shm.f_blocks * shm.f_frsize,
			     (unsigned long long)shm.f_bavail * shm.f_frsize);
	ddp_file_read_line("/proc/sys/net/ipv4/ip_local_port_range", line,
			   sizeof(line));
	if (sscanf(line, "%u %u", &first, &last) == 2)
		ddp_text_add(text, "ports %u-%u\n", first, last);
}

/* ---- names */

static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

struct names {
	struct ddp_text unresolved, loopback;
	unsigned count;
};

static void resolve(struct names *names, const char *name)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct ddp_text *list = NULL;

	names->count++;
	if (getaddrinfo(name, NULL, &hints, &found))
		list = &names->unresolved;
	else if (is_loopback(found->ai_addr))
		list = &names->loopback;
	if (list)
		ddp_text_add(list, "%s%s", list->length > 0 ? ", " : "", name);
	if (found)
		freeaddrinfo(found);
}

static void resolve_all(struct names *names, const struct ddp_hostlist *hosts,
			const char *own, const char *here,
			struct ddp_text *text)
{
	int64_t deadline = ddp_clock_ms() + NAMES_MS;
	size_t count = hosts ? ddp_hostlist_count(hosts) : 0, i;

	if (*here && strcmp(here, own) != 0)
		resolve(names, here);
	for (i = 0; i < count && ddp_clock_ms() < deadline; i++)
		if (strcmp(ddp_hostlist_get(hosts, i), own) != 0)
			resolve(names, ddp_hostlist_get(hosts, i));
	if (i < count)
		ddp_text_add(text, "names_flaw resolved only %zu of %zu names "
			     "in %d s\n", i, count, NAMES_MS / 1000);
}

static void add_names(struct ddp_text *text, const char *config,
		      const char *own)
{
	struct names names = { .count = 0 };
	struct ddp_hostlist *hosts;
	char here[256], *list;

	check_get(config, "Host", here, sizeof(here));
	hosts = ddp_hostlist_create(getenv("SLURM_JOB_NODELIST"), NULL);
	resolve_all(&names, hosts, own, here, text);
	ddp_hostlist_destroy(hosts);
	list = ddp_text_finish(&names.unresolved);
	if (list && *list)
		add_fact(text, "unresolved", list);
	free(list);
	list = ddp_text_finish(&names.loopback);
	if (list && *list)
		add_fact(text, "loopback", list);
	free(list);
	if (names.count > 0)
		ddp_text_add(text, "names %u\n", names.count);
}

/* ---- folders */

/* "%n" is the name of the node, "%h" that of its host. */
static void expand(const char *path, char *out, size_t size)
{
	const char *node = getenv("SLURMD_NODENAME");
	char host[256] = "";
	size_t used = 0;

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	for (; *path && used + sizeof(host) < size; path++)
		if (path[0] == '%' && (path[1] == 'n' || path[1] == 'h')) {
			used += (size_t)snprintf(out + used, sizeof(host),
						 "%s", path[1] == 'n' && node ?
						 node : host);
			path++;
		} else {
			out[used++] = *path;
		}
	out[used] = '\0';
}

static bool is_remote(const char *path)
{
	/* NFS, SMB 1 and 2, Ceph, Lustre, GPFS, BeeGFS: see statfs(2). */
	static const unsigned long types[] = {
		0x6969, 0x517b, 0xfe534d42, 0x00c36400, 0x0bd00bd0, 0x47504653,
		0x19830326,
	};
	struct statfs fs;
	size_t i;

	if (statfs(path, &fs))
		return false;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (((unsigned long)fs.f_type & 0xffffffff) == types[i])
			return true;
	return false;
}

/* Two nodes with the same text have the same folder. */
static void add_folder(struct ddp_text *text, const char *config,
		       const char *key, const char *fact)
{
	char value[CHECK_VALUE_SIZE], path[CHECK_VALUE_SIZE], boot[64];
	struct stat file;

	if (!check_get(config, key, value, sizeof(value)))
		return;
	expand(value, path, sizeof(path));
	if (stat(path, &file)) {
		ddp_text_add_quoted(text, "%s_flaw %s: %s", fact, path,
				    strerror(errno));
		ddp_text_add(text, "\n");
		return;
	}
	ddp_file_read_line("/proc/sys/kernel/random/boot_id", boot,
			   sizeof(boot));
	if (is_remote(path))
		ddp_text_add(text, "%s remote-%llx\n", fact,
			     (unsigned long long)file.st_ino);
	else
		ddp_text_add(text, "%s %s-%llx-%llx\n", fact, boot,
			     (unsigned long long)file.st_dev,
			     (unsigned long long)file.st_ino);
}

void doctor_facts(struct ddp_text *text, const char *config, bool is_node)
{
	const char *node = getenv("SLURMD_NODENAME");
	char host[256] = "", flaw[DDP_INTERFACE_FLAW_SIZE];

	gethostname(host, sizeof(host) - 1);
	ddp_text_add(text, "clock %.3f\n", doctor_now());
	doctor_stack(text, config, is_node);
	add_versions(text);
	add_limits(text);
	add_names(text, config, is_node && node ? node : host);
	if (!is_node)
		return;
	ddp_interface_find_flaw(getenv("GLOO_SOCKET_IFNAME"),
				getenv("NCCL_SOCKET_IFNAME"), flaw);
	if (*flaw)
		add_fact(text, "interface_flaw", flaw);
	add_folder(text, config, "SlurmdSpoolDir", "spool");
	add_folder(text, config, "TmpFS", "tmp");
}

/* ---- a task */

void doctor_print_fact(const char *format, ...)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct ddp_text text = { 0 };
	va_list arguments;
	char *line = NULL;

	va_start(arguments, format);
	if (vasprintf(&line, format, arguments) < 0)
		line = NULL;
	va_end(arguments);
	ddp_text_add_quoted(&text, "%s%s %s", DOCTOR_PREFIX,
			    node ? node : "-", line ? line : "");
	ddp_text_add(&text, "\n");
	free(line);
	tool_print_text(ddp_text_finish(&text), NULL);
	fflush(stdout);
}

static int print_facts(const char *config, struct ddp_error *error)
{
	struct ddp_text text = { 0 };
	char *facts, *line, *save;

	doctor_facts(&text, config, true);
	facts = ddp_text_finish(&text);
	if (!facts)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (line = strtok_r(facts, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		doctor_print_fact("%s", line);
	free(facts);
	return 0;
}

static void print_variable(const char *fact, const char *variable)
{
	const char *value = getenv(variable);

	if (value)
		doctor_print_fact("%s %s", fact, value);
}

int doctor_task(const char *config, struct ddp_error *error)
{
	char what[16];

	check_get(config, "Doctor", what, sizeof(what));
	if (strcmp(what, "meet") != 0)
		return print_facts(config, error);
	print_variable("rank", "RANK");
	/* The plugin sets this one only where an agent runs. */
	if (getenv(DDP_PLACEMENT) && !getenv("TORCHELASTIC_ERROR_FILE"))
		doctor_print_fact("unwatched yes");
	print_variable("pmix_server", "PMIX_VERSION");
	print_variable("pmix_security", "PMIX_SECURITY_MODE");
	doctor_meet();
	return 0;
}
