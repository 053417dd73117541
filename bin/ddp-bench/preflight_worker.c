/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker of a preflight, which gathers what this rank has, versions and
 * GPUs that work, and moves data (preflight_move.c); and the process between it
 * and the judge.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config.h"
#include "nccl/nccl.h"
#include "place/report.h"
#include "preflight.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/net.h"
#include "util/text.h"

enum {
	BLOCK = 1 << 20, COPIES = 64,
	CLOSE_MS = 5000,	/* MPI's and NCCL's end */
	KILL_MS = 1000,		/* a process that a driver holds stays */
	NAP_MS = 10
};

#define DRIVER_FILE "/sys/module/nvidia/version"
#define LIBDDP_FILE "libddp.so.0"

/* ---- what this rank has */

/* Returns how many GPUs a list such as "0,1" or "MIG-...,MIG-..." names. */
static uint32_t count_list(const char *list)
{
	uint32_t count = 0;

	if (!list || strcmp(list, "-1") == 0 || strcmp(list, "NoDevFiles") == 0)
		return 0;
	while (*list != '\0') {
		list += strspn(list, ",");
		count += *list != '\0';
		list += strcspn(list, ",");
	}
	return count;
}

#define CUDA_LIST "CUDA_VISIBLE_DEVICES"
#define ROCR_LIST "ROCR_VISIBLE_DEVICES"

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* Slurm may set both variables on a node with AMD's GPUs. */
static bool is_amd(void)
{
	return is_set(ROCR_LIST) &&
	       (!is_set(CUDA_LIST) ||
		(access("/sys/module/amdgpu", F_OK) == 0 &&
		 access("/sys/module/nvidia", F_OK) != 0));
}

/*
 * The plugin's own record comes first: a start-up file or a wrapper of one node
 * may have changed the variables since.
 */
void preflight_count_gpus(struct facts *facts)
{
	const char *record = getenv(DDP_PLACEMENT), *list;
	bool rocr = is_amd();
	struct ddp_row row = { 0 };
	uint32_t count = 0;

	if (record && ddp_row_parse(record, &row, NULL) == 0) {
		list = strchr(row.visible, '=');
		count = count_list(list ? list + 1 : NULL);
		if (list)
			rocr = strncmp(row.visible, ROCR_LIST "=",
				       strlen(ROCR_LIST "=")) == 0;
		if (count < row.gpu_count)
			count = row.gpu_count;
	}
	ddp_row_clear(&row);
	if (count == 0)
		count = count_list(getenv(rocr ? ROCR_LIST : CUDA_LIST));
	*(rocr ? &facts->gpus_untried : &facts->gpus_given) = count;
}

/* ddp-bench's own, and that of the library which other programs load. */
static void read_libddp(char *version, size_t size)
{
	void *library = dlopen(LIBDDP_FILE, RTLD_LAZY | RTLD_LOCAL);
	const char *(*get)(void) = NULL;

	if (library)
		*(void **)&get = dlsym(library, "ddp_version");
	if (get)
		snprintf(version, size, DDP_VERSION " (" LIBDDP_FILE " %s)",
			 get());
	else
		snprintf(version, size, DDP_VERSION " (" LIBDDP_FILE
			 " is not installed)");
	if (library)
		dlclose(library);
}

static void read_gpus(struct facts *facts)
{
	struct ddp_error error = { 0 };
	int cuda = 0, nccl = 0;

	ddp_file_read_line(DRIVER_FILE, facts->versions[DRIVER], FACT_VERSION);
	if (device_count(&facts->gpus_seen, &cuda, &error) == 0)
		snprintf(facts->versions[CUDA], FACT_VERSION, "%d.%d",
			 cuda / 1000, cuda % 1000 / 10);
	else
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
	if (ddp_nccl_library(&nccl, &error))
		snprintf(facts->versions[NCCL], FACT_VERSION, "%d.%d.%d",
			 nccl / 10000, nccl / 100 % 100, nccl % 100);
	else if (facts->gpu_error[0] == '\0')
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
}

/* A number at the beginning of a file; 0: there is none. */
static double read_number(const char *bus_id, const char *name)
{
	char path[128], line[64];
	double number;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bus_id,
		 name);
	ddp_file_read_line(path, line, sizeof(line));
	number = strtod(line, NULL);
	return number > 0 && number < 1e4 ? number : 0;
}

/* Read the link of the GPU facts->bus_id; 0 where the kernel does not tell. */
static void read_link(struct facts *facts)
{
	char bus_id[sizeof(facts->bus_id)];
	size_t i;

	/* The kernel writes "0000:1b:00.0", in lower case. */
	for (i = 0; facts->bus_id[i] != '\0'; i++)
		bus_id[i] = (char)tolower((unsigned char)facts->bus_id[i]);
	bus_id[i] = '\0';
	facts->link = (struct link){
		(uint32_t)(0.5 + 10 * read_number(bus_id,
						  "current_link_speed")),
		(uint32_t)read_number(bus_id, "current_link_width")
	};
	facts->most = (struct link){
		(uint32_t)(0.5 + 10 * read_number(bus_id, "max_link_speed")),
		(uint32_t)read_number(bus_id, "max_link_width")
	};
}

/* Check that what comes back from the GPU's memory is what went there. */
static int use_gpu(unsigned char *block, unsigned char *back,
		   struct ddp_error *error)
{
	void *memory = device_reserve(BLOCK, error);
	int rc = memory ? 0 : -1;

	for (size_t i = 0; i < BLOCK; i++)
		block[i] = (unsigned char)(i * 167 >> 4);
	for (int i = 0; i < COPIES && rc == 0; i++)
		rc = device_put(memory, block, BLOCK, error);
	if (rc == 0)
		rc = device_get(back, memory, BLOCK, error);
	if (rc == 0 && memcmp(block, back, BLOCK) != 0)
		rc = ddp_error_set(error, DDP_ERROR_CUDA, "what is read from "
				   "its memory is not what was written; look "
				   "for 'Xid' in dmesg");
	if (memory)
		device_release(memory);
	return rc;
}

/*
 * An idle GPU lowers the speed of its link, and raises it to copy: so copy for
 * a while, compare what came back, and then read the link.
 */
static void try_gpu(const struct preflight *preflight, struct facts *facts)
{
	struct ddp_error error = { 0 };
	unsigned char *blocks = malloc(2 * BLOCK);
	char device[48] = "";
	int rc = -1;

	if (!blocks)
		ddp_error_set(&error, DDP_ERROR_SYSTEM, "out of memory");
	else
		rc = device_open(preflight->local_rank,
				 preflight->options->share_gpu, device,
				 sizeof(device), &error);
	if (rc == 0) {
		sscanf(device, "%31s", facts->bus_id);
		rc = use_gpu(blocks, blocks + BLOCK, &error);
		read_link(facts);
		device_close();
	}
	if (rc < 0)
		snprintf(facts->gpu_error, FACT_TEXT, "%.150s", error.text);
	free(blocks);
}

static void gather_facts(const struct preflight *preflight,
			 struct facts *facts)
{
	*facts = (struct facts){ .gpus_given = 0 };
	preflight_count_gpus(facts);
	if (facts->gpus_given > 0)
		read_gpus(facts);
	if (facts->gpus_given > 0 && facts->gpus_seen >= facts->gpus_given &&
	    facts->gpu_error[0] == '\0')
		try_gpu(preflight, facts);
	ddp_interface_find_flaw(getenv("GLOO_SOCKET_IFNAME"),
				getenv("NCCL_SOCKET_IFNAME"),
				facts->interface);
	ddp_text_quote(facts->interface);
	read_libddp(facts->versions[LIBDDP], FACT_VERSION);
	if (backend_mpi.describe)
		backend_mpi.describe(facts->versions[MPI], FACT_VERSION);
}

/* ---- the worker */

pid_t preflight_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

static _Noreturn void work(const struct preflight *preflight, int fd)
{
	struct message message = preflight_message(preflight, MESSAGE_FACTS);
	struct word word;

	gather_facts(preflight, &message.facts);
	preflight_send(fd, &message, sizeof(message));
	if (preflight_receive(fd, &word, sizeof(word)) == 0 &&
	    word.kind == WORD_GO)
		preflight_move(preflight, word.value == GO_MPI ? &backend_mpi :
			       &backend_nccl, fd);
	_exit(0);
}

int worker_start(struct worker *worker, const struct preflight *preflight)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*worker = (struct worker){
		.preflight = preflight, .pid = preflight_fork(), .fd = pair[0]
	};
	if (worker->pid == 0) {
		close(pair[0]);
		work(preflight, pair[1]);
	}
	close(pair[1]);
	return worker->pid < 0 ? -1 : 0;
}

static void say_end(int status, char text[FACT_TEXT])
{
	if (WIFSIGNALED(status))
		snprintf(text, FACT_TEXT, "its process was killed by signal "
			 "%d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, FACT_TEXT, "its process has ended by itself, "
			 "with %d", WEXITSTATUS(status));
}

/* Returns the facts that are known without the worker. */
static struct message make_facts(const struct worker *worker)
{
	struct message message = preflight_message(worker->preflight,
						   MESSAGE_FACTS);

	message.facts = *worker->clock;
	preflight_count_gpus(&message.facts);
	return message;
}

/* It should not have ended yet: tell that in its place. */
static int tell_end(struct worker *worker)
{
	struct message message;
	int status = 0;

	close(worker->fd);
	worker->fd = -1;
	waitpid(worker->pid, &status, 0);
	if (worker->told && worker->last.stage == STAGE_DONE)
		return 0;
	if (worker->told) {
		message = preflight_message(worker->preflight, MESSAGE_MOVED);
		message.moved = worker->last;
		say_end(status, message.moved.error);
	} else {
		message = make_facts(worker);
		say_end(status, message.facts.gpu_error);
	}
	worker->told = true;
	return preflight_send(worker->server, &message, sizeof(message));
}

static int pass_on(struct worker *worker)
{
	struct message message;

	if (preflight_receive(worker->fd, &message, sizeof(message)) < 0)
		return tell_end(worker);
	if (message.header.kind == MESSAGE_FACTS) {
		worker->told = true;
		message.facts.clock_s = worker->clock->clock_s;
		message.facts.clock_error_s = worker->clock->clock_error_s;
	} else {
		worker->last = message.moved;
	}
	return preflight_send(worker->server, &message, sizeof(message));
}

/* Tell facts in place of a worker that hangs. */
static int tell_hang(struct worker *worker)
{
	struct message message = make_facts(worker);

	snprintf(message.facts.gpu_error, FACT_TEXT, "%s",
		 message.facts.gpus_given > 0 ? "CUDA or NCCL has not answered "
		 "in time; look for 'Xid' in dmesg, or " TRY_LONGER :
		 "a library has not answered in time; look at the node's "
		 "filesystems, or " TRY_LONGER);
	worker->told = true;
	return preflight_send(worker->server, &message, sizeof(message));
}

static void end_worker(struct worker *worker, int status)
{
	int64_t deadline = ddp_clock_ms() + (status == 0 ? CLOSE_MS : 0);
	bool killed = false;

	if (worker->fd < 0)
		return;
	shutdown(worker->fd, SHUT_WR);
	while (waitpid(worker->pid, NULL, WNOHANG) == 0) {
		if (ddp_clock_ms() >= deadline) {
			if (killed)
				return;
			kill(worker->pid, SIGKILL);
			killed = true;
			deadline = ddp_clock_ms() + KILL_MS;
		}
		poll(NULL, 0, NAP_MS);
	}
}

/* ---- between the two */

static int answer(struct worker *worker, bool *ended, int *status)
{
	const struct message here = preflight_message(worker->preflight,
						      MESSAGE_HERE);
	struct word word;

	if (preflight_receive(worker->server, &word, sizeof(word)) < 0)
		return -1;
	switch ((enum word_kind)word.kind) {
	case WORD_ASK:
		return preflight_send(worker->server, &here, sizeof(here));
	case WORD_GO:
		/* One that has ended has been told. */
		preflight_send(worker->fd, &word, sizeof(word));
		return 0;
	case WORD_TELL:
		return worker->told ? 0 : tell_hang(worker);
	case WORD_END:
		*status = (int)word.value;
		*ended = true;
		return 0;
	case WORD_CLOCK:
		break;
	}
	return -1;
}

int worker_mediate(struct worker *worker)
{
	bool ended = false;
	int status = 1, rc = 0;

	while (rc == 0 && !ended) {
		struct pollfd fds[] = {
			{ worker->server, POLLIN, 0 },
			{ worker->fd, POLLIN, 0 }
		};

		poll(fds, 2, -1);
		if (fds[0].revents)
			rc = answer(worker, &ended, &status);
		if (rc == 0 && !ended && fds[1].revents)
			rc = pass_on(worker);
	}
	end_worker(worker, status);
	if (rc < 0)
		return -1;
	return worker->preflight->rank == 0 ? status : 0;
}
