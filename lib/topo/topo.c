/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads a topology, from a file only after a trial in a child process. */
#define _GNU_SOURCE
#include "topo/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/file.h"

enum {
	DEPTH_MAX = 128,	/* of elements: hwloc calls itself as deep */
	TRIAL_SECONDS = 5,
	TRIAL_BYTES_MAX = 1 << 30
};

/*
 * hwloc's files have no entities and few levels. Either would make it use up
 * memory or stack. Levels are counted roughly: a '>' in a value ends its tag.
 */
static int check_xml(const char *file, const char *text, size_t size,
		     struct ddp_error *error)
{
	const char *at, *end;
	int depth = 0;

	if (strlen(text) + 1 != size)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "the topology file %s is not text", file);
	if (strstr(text, "<!ENTITY"))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "the topology file %s declares entities",
				     file);
	for (at = strchr(text, '<'); at; at = strchr(end, '<')) {
		end = strchr(at, '>');
		if (!end)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the topology file %s ends within a tag",
				file);
		if (at[1] == '/')
			depth--;
		else if (at[1] != '?' && at[1] != '!' && end[-1] != '/')
			depth++;
		if (depth > DEPTH_MAX)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"the topology file %s nests more than %d "
				"elements", file, DEPTH_MAX);
	}
	return 0;
}

/*
 * The parts of hwloc that are left out: the vendors' back ends; and "x86",
 * which runs on each CPU in turn, waiting where it is busy, and adds nothing
 * that is needed here.
 */
static const char *const left_out[] = {
	"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86",
};

/* text NULL: this machine; then lean: no more of it than ddp_topo_find says. */
static int load(struct ddp_topo *topo, const char *text, size_t size,
		bool lean)
{
	size_t i;

	/* hwloc would print its own messages; we return an error. */
	setenv("HWLOC_HIDE_ERRORS", "2", 0);
	if (hwloc_topology_init(&topo->hwloc) < 0)
		return -1;
	if (text &&
	    hwloc_topology_set_xmlbuffer(topo->hwloc, text, (int)size) < 0)
		return -1;
	for (i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		hwloc_topology_set_components(topo->hwloc,
			HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, left_out[i]);
	hwloc_topology_set_flags(topo->hwloc,
				 HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (!lean || ddp_topo_has_gpu(""))
		hwloc_topology_set_io_types_filter(topo->hwloc,
				HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
	if (lean) {
		hwloc_topology_set_cache_types_filter(topo->hwloc,
				HWLOC_TYPE_FILTER_KEEP_NONE);
		hwloc_topology_set_icache_types_filter(topo->hwloc,
				HWLOC_TYPE_FILTER_KEEP_NONE);
	}
	hwloc_topology_set_type_filter(topo->hwloc, HWLOC_OBJ_MISC,
				       HWLOC_TYPE_FILTER_KEEP_ALL);
	return hwloc_topology_load(topo->hwloc);
}

/* The child loads and converts the topology, and writes how that went. */
__attribute__((noreturn)) static void run_trial(const char *text, size_t size,
						int answer)
{
	struct rlimit none = { 0, 0 };
	struct rlimit memory = { TRIAL_BYTES_MAX, TRIAL_BYTES_MAX };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct ddp_topo topo = { NULL };
	bool loads;
	sigset_t set;

	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	signal(SIGALRM, SIG_DFL);
	alarm(TRIAL_SECONDS);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_DATA, &memory);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	loads = load(&topo, text, size, false) == 0;
	if (loads)
		ddp_machine_destroy(ddp_topo_machine(&topo, NULL));
	_exit(write(answer, loads ? "y" : "n", 1) != 1);
}

/*
 * hwloc may crash on XML that lacks an attribute (2.9 does), so that a child
 * loads it first.
 */
static int try_file(const char *file, const char *text, size_t size,
		 struct ddp_error *error)
{
	char answer = '\0';
	int ends[2];
	pid_t child;
	ssize_t got;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "no pipe to try "
				     "the topology file %s: %s", file,
				     strerror(errno));
	child = fork();
	if (child == 0)
		run_trial(text, size, ends[1]);
	close(ends[1]);
	do
		got = read(ends[0], &answer, 1);
	while (got < 0 && errno == EINTR);
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (answer == 'y')
		return 0;
	if (child < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "cannot fork to "
				     "try the topology file %s", file);
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "hwloc %s the topology "
			     "file %s: it is no topology, damaged, or of a "
			     "newer hwloc; write it again by this node's "
			     "lstopo", answer == 'n' ? "cannot read" :
			     "does not survive", file);
}

static int load_file(struct ddp_topo *topo, const char *file,
		     struct ddp_error *error)
{
	size_t size = 0;
	char *text = ddp_file_read_regular("the topology file", file,
					   DDP_TOPO_FILE_MAX, &size, error);
	int rc = -1;

	if (!text)
		return -1;
	size++;		/* hwloc wants the NUL, too */
	if (check_xml(file, text, size, error) == 0 &&
	    try_file(file, text, size, error) == 0) {
		rc = load(topo, text, size, false);
		if (rc < 0)
			ddp_error_set(error, DDP_ERROR_SYSTEM,
				      "hwloc has no memory for the topology "
				      "file %s", file);
	}
	free(text);
	return rc;
}

static struct ddp_topo *create(const char *file, bool lean,
			       struct ddp_error *error)
{
	struct ddp_topo *topo = calloc(1, sizeof(*topo));
	int rc;

	if (!topo) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	if (hwloc_get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
		rc = ddp_error_set(error, DDP_ERROR_SYSTEM, "this was built "
				   "for hwloc's interface %x and finds %x: "
				   "build it with the hwloc that Slurm uses",
				   HWLOC_API_VERSION, hwloc_get_api_version());
	else if (file)
		rc = load_file(topo, file, error);
	else if (load(topo, NULL, 0, lean) == 0)
		rc = 0;
	else
		rc = ddp_error_set(error, DDP_ERROR_SYSTEM, "hwloc cannot read "
				   "this machine's topology");
	if (rc == 0)
		return topo;
	ddp_topo_destroy(topo);
	return NULL;
}

struct ddp_topo *ddp_topo_create(const char *file, struct ddp_error *error)
{
	return create(file, false, error);
}

struct ddp_topo *ddp_topo_find(struct ddp_error *error)
{
	return create(NULL, true, error);
}

void ddp_topo_destroy(struct ddp_topo *topo)
{
	if (!topo)
		return;
	if (topo->hwloc)
		hwloc_topology_destroy(topo->hwloc);
	free(topo);
}
