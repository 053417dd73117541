/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Examines an installation: asks Slurm's programs and, by steps, the nodes of
 * the job, and prints what check*.c finds in their words.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "info.h"
#include "layout/hostlist.h"
#include "options/site.h"
#include "tool/tool.h"
#include "util/clock.h"
#include "util/program.h"

enum {
	KILL_MS = 3000, STEP_MS = 60000, ASK_MS = 20000,
	SPECIAL_STEP = -6	/* as 32 bits: from here on a step is a batch
				   script or a shell of salloc's */
};

/* This machine first, unless it is a node of the job; then the job's nodes. */
struct nodes {
	const char *config, *here;	/* here: the name of this machine */
	struct ddp_hostlist *hosts;	/* NULL: there is no job */
	struct check_node *list;
	struct ddp_text *facts;		/* of each */
	size_t count, first;		/* first: of the job's */
	char problem[512];		/* of nodes that do not answer */
};

/* ---- programs */

struct program {
	char *out, *err;	/* all that it printed; NULL: nothing */
	bool failed;		/* it could not run, or its status is not 0 */
	bool late;		/* it was ended after the time */
	struct pollfd pipes[2];	/* stdout, stderr */
	struct ddp_text texts[2];
	struct nodes *nodes;	/* NULL: it is no step on them */
	size_t given;		/* of stdout, to nodes */
};

/* Seconds of the date. */
double doctor_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* "ddp-doctor NODE FACT": what else a task prints is not doctor's. */
static void read_fact(struct nodes *nodes, const char *line, double when)
{
	size_t length, i;

	if (strncmp(line, DOCTOR_PREFIX, strlen(DOCTOR_PREFIX)) != 0)
		return;
	line += strlen(DOCTOR_PREFIX);
	length = strcspn(line, " ");
	for (i = 0; i < nodes->count; i++)
		if (!nodes->list[i].here &&
		    strlen(nodes->list[i].name) == length &&
		    strncmp(nodes->list[i].name, line, length) == 0)
			break;
	if (i == nodes->count || !line[length])
		return;
	line += length + 1;
	ddp_text_add(&nodes->facts[i], "%s\n", line);
	if (strncmp(line, "clock ", 6) == 0)
		nodes->list[i].before = when;
}

/* Give the nodes the lines that have come whole. */
static void give_lines(struct program *program)
{
	const struct ddp_text *text = &program->texts[0];
	char *line, *end;

	while (program->nodes && !text->failed && text->data) {
		line = text->data + program->given;
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		read_fact(program->nodes, line, doctor_now());
		*end = '\n';
		program->given = (size_t)(end + 1 - text->data);
	}
}

static void read_pipe(struct program *program, int which)
{
	char buffer[4096];
	ssize_t count = read(program->pipes[which].fd, buffer, sizeof(buffer));

	if (count > 0) {
		ddp_text_add(&program->texts[which], "%.*s", (int)count,
			     buffer);
		give_lines(program);
	} else if (count == 0 || errno != EINTR) {
		close(program->pipes[which].fd);
		program->pipes[which].fd = -1;
	}
}

/* Returns whether both pipes have ended by then. */
static bool read_all(struct program *program, int64_t deadline)
{
	int64_t left;
	int i;

	while (program->pipes[0].fd >= 0 || program->pipes[1].fd >= 0) {
		left = deadline - ddp_clock_ms();
		if (left <= 0)
			return false;
		if (poll(program->pipes, 2, (int)left) <= 0)
			continue;
		for (i = 0; i < 2; i++)
			if (program->pipes[i].fd >= 0 &&
			    program->pipes[i].revents)
				read_pipe(program, i);
	}
	return true;
}

static void wait_for(struct program *program, pid_t pid, int timeout_ms)
{
	int status = 0;

	program->late = !read_all(program, ddp_clock_ms() + timeout_ms);
	if (program->late) {
		kill(pid, SIGTERM);
		if (!read_all(program, ddp_clock_ms() + KILL_MS))
			kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	program->failed = program->late || !WIFEXITED(status) ||
			  WEXITSTATUS(status) != 0;
}

/* Run a program, for so long at most. */
static void run_program(struct program *program, const char *const argv[],
			int timeout_ms, struct nodes *nodes)
{
	int out = -1, err[2], i;
	pid_t pid;

	*program = (struct program){ .failed = true, .nodes = nodes };
	if (pipe2(err, O_CLOEXEC))
		return;
	pid = ddp_program_start(argv[0], argv, NULL, err[1], &out);
	close(err[1]);
	program->pipes[0] = (struct pollfd){ out, POLLIN, 0 };
	program->pipes[1] = (struct pollfd){ err[0], POLLIN, 0 };
	if (pid >= 0)
		wait_for(program, pid, timeout_ms);
	else
		ddp_text_add(&program->texts[1], "%s: %s\n", argv[0],
			     strerror(errno));
	for (i = 0; i < 2; i++)
		if (program->pipes[i].fd >= 0)
			close(program->pipes[i].fd);
	program->out = ddp_text_finish(&program->texts[0]);
	program->err = ddp_text_finish(&program->texts[1]);
}

static void clear_program(struct program *program)
{
	free(program->out);
	free(program->err);
}

/* The first line with a text in it, or NULL. */
static const char *find_line(const char *lines, const char *text)
{
	const char *at = lines ? strstr(lines, text) : NULL;

	while (at && at > lines && at[-1] != '\n')
		at--;
	return at;
}

/* The line of stderr that tells most, into text[size]. */
static void find_why(const struct program *program, char *text, size_t size)
{
	/* The cause can come after what it led to. */
	static const char *const telling[] = {
		"slurm-ddp: ", "execve()", "slurmstepd", "error: ", ""
	};
	const char *line = NULL;
	size_t i;

	for (i = 0; i < sizeof(telling) / sizeof(telling[0]) && !line; i++)
		line = find_line(program->err, telling[i]);
	if (line && *line)
		snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
	else
		snprintf(text, size, "%s", program->late ?
			 "it did not end in time" : "it says nothing");
}

/* ---- the nodes of a job, asked by two steps with a task on each */

/* Tell tasks, by the variable, what they need of the configuration. */
static int set_variable(const struct nodes *nodes, const char *what)
{
	static const char *const names[] = {
		"PlugStackConfig", "SLURM_CONF", "PluginDir", "SlurmdSpoolDir",
		"TmpFS",
	};
	char value[CHECK_VALUE_SIZE], *text;
	struct ddp_text all = { 0 };
	size_t i;
	int rc;

	ddp_text_add(&all, "Doctor = %s\nHost = %s\n", what,
		     nodes->here);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (check_get(nodes->config, names[i], value, sizeof(value)))
			ddp_text_add(&all, "%s = %s\n", names[i], value);
	text = ddp_text_finish(&all);
	rc = text ? setenv(DOCTOR_VARIABLE, text, 1) : -1;
	free(text);
	return rc;
}

static void run_step(struct nodes *nodes, struct program *program,
		     bool with_ddp)
{
	char number[32], tasks[32], path[PATH_MAX];
	size_t count = nodes->count - nodes->first, last = 8;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *argv[] = {
		"srun", number, tasks, "--ntasks-per-node=1", "--overlap",
		with_ddp ? "--kill-on-bad-exit=1" : "--kill-on-bad-exit=0",
		"--input=none",
		with_ddp ? "--mpi=pmix" : "--mpi=none",
		NULL, NULL, NULL, NULL, NULL
	};

	path[length > 0 ? length : 0] = '\0';
	snprintf(number, sizeof(number), "--nodes=%zu", count);
	snprintf(tasks, sizeof(tasks), "--ntasks=%zu", count);
	if (with_ddp) {
		/* A supervisor's report would look like a refusal. */
		argv[last++] = "--ddp";
		argv[last++] = "--ddp-supervise=off";
	}
	argv[last++] = path;
	argv[last] = "--doctor";
	run_program(program, argv, STEP_MS, nodes);
}

static int ask_facts(struct nodes *nodes)
{
	struct program program;
	double after = doctor_now();
	size_t i;

	if (set_variable(nodes, "facts"))
		return -1;
	run_step(nodes, &program, false);
	find_why(&program, nodes->problem, sizeof(nodes->problem));
	clear_program(&program);
	for (i = nodes->first; i < nodes->count; i++) {
		nodes->list[i].after = after;
		nodes->list[i].problem = nodes->problem;
	}
	return 0;
}

/* Never the first, which is the clock. */
static bool has_fact(const struct nodes *nodes, size_t i, const char *line)
{
	return nodes->facts[i].length > 0 &&
	       strstr(nodes->facts[i].data, line);
}

static int ask_meeting(struct nodes *nodes)
{
	struct program program;
	char why[512];
	const char *fact = "refused";
	size_t i;

	if (set_variable(nodes, "meet"))
		return -1;
	run_step(nodes, &program, true);
	find_why(&program, why, sizeof(why));
	clear_program(&program);
	/* A refusal by allow= or deny= is the site's own wish. */
	if (strstr(why, DDP_SITE_FORBIDS))
		fact = "meet_unknown";
	else if (!strstr(why, "slurm-ddp: "))
		fact = "meet_flaw";
	for (i = nodes->first; i < nodes->count; i++)
		if (has_fact(nodes, i, "\nrank "))
			fact = "meet_flaw";
	for (i = nodes->first; i < nodes->count; i++)
		if (nodes->facts[i].length > 0 &&
		    !has_fact(nodes, i, "\nmet ") &&
		    !has_fact(nodes, i, "\nmeet_"))
			ddp_text_add(&nodes->facts[i], "%s %s\n", fact, why);
	return 0;
}

static int list_nodes(struct nodes *nodes)
{
	const struct ddp_hostlist *hosts = nodes->hosts;
	size_t count = hosts ? ddp_hostlist_count(hosts) : 0, i;
	bool is_node = false;

	for (i = 0; i < count; i++)
		is_node |= strcmp(ddp_hostlist_get(hosts, i), nodes->here) == 0;
	nodes->list = calloc(count + 1, sizeof(*nodes->list));
	nodes->facts = calloc(count + 1, sizeof(*nodes->facts));
	if (!nodes->list || !nodes->facts)
		return -1;
	if (!is_node)
		nodes->list[nodes->count++] = (struct check_node){
			.name = nodes->here, .here = true };
	nodes->first = nodes->count;
	for (i = 0; i < count; i++)
		nodes->list[nodes->count++].name = ddp_hostlist_get(hosts, i);
	return 0;
}

/*
 * Ask the nodes of this job; with_ddp: srun here knows --ddp. Returns 0, or -1
 * with error set. Clear them in either case.
 */
static int ask_nodes(struct nodes *nodes, bool with_ddp,
		     struct ddp_error *error)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	size_t i;

	if (list) {
		nodes->hosts = ddp_hostlist_create(list, error);
		if (!nodes->hosts)
			return -1;
	}
	if (list_nodes(nodes))
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	if (nodes->first > 0)
		doctor_facts(&nodes->facts[0], nodes->config, false);
	if (nodes->hosts &&
	    (ask_facts(nodes) || (with_ddp && ask_meeting(nodes))))
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < nodes->count; i++)
		nodes->list[i].facts = nodes->facts[i].failed ? NULL :
			nodes->facts[i].data;
	return 0;
}

static void clear_nodes(struct nodes *nodes)
{
	size_t i;

	for (i = 0; nodes->facts && i < nodes->count; i++)
		free(nodes->facts[i].data);
	free(nodes->facts);
	free(nodes->list);
	ddp_hostlist_destroy(nodes->hosts);
}

/* ---- findings */

/* Returns what scontrol says; NULL: why tells the cause. */
static char *ask(const char *const argv[], char *why, size_t size)
{
	struct program program;
	char *text = NULL;

	run_program(&program, argv, ASK_MS, NULL);
	if (program.failed) {
		find_why(&program, why, size);
	} else {
		text = program.out;
		program.out = NULL;
	}
	clear_program(&program);
	return text;
}

/* Returns whether srun has the option --ddp here. */
static bool check_srun(struct check *out)
{
	static const char *const argv[] = { "srun", "--help", NULL };
	struct program program;
	char why[512];
	bool has;

	run_program(&program, argv, ASK_MS, NULL);
	has = program.out && strstr(program.out, " --ddp");
	find_why(&program, why, sizeof(why));
	if (has)
		check_add(out, CHECK_OK, "srun", "has --ddp on this machine");
	else
		check_add(out, CHECK_WRONG, "srun", "has no --ddp on this "
			  "machine (%s); name a spank_ddp.so that is built for "
			  "this Slurm in plugstack.conf", why);
	clear_program(&program);
	return has;
}

/* srun of some releases prints the list on stderr. */
static void check_mpi(struct check *out)
{
	static const char *const argv[] = { "srun", "--mpi=list", NULL };
	struct program program;

	run_program(&program, argv, ASK_MS, NULL);
	if ((program.out && strstr(program.out, "pmix")) ||
	    (program.err && strstr(program.err, "\tpmix")))
		check_add(out, CHECK_OK, "srun --mpi=list", "has pmix");
	else
		check_add(out, CHECK_WRONG, "srun --mpi=list", "lacks pmix, "
			  "which srun --ddp needs; install PMIx and a Slurm "
			  "that was built with it, and restart slurmd");
	clear_program(&program);
}

static int check_machines(struct check *out, const char *config,
			  const char *partitions, struct ddp_error *error)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct check_world world = {
		.config = config, .partitions = partitions,
		.version = DDP_VERSION
	};
	char host[256] = "";
	struct nodes nodes = { .config = config, .here = node ? node : host };
	bool has_ddp = check_srun(out);
	int rc;

	gethostname(host, sizeof(host) - 1);
	check_mpi(out);
	rc = ask_nodes(&nodes, has_ddp, error);
	world.nodes = nodes.list;
	world.count = nodes.count;
	if (rc == 0)
		check_nodes(out, &world);
	if (rc == 0 && !nodes.hosts)
		check_add(out, CHECK_UNKNOWN, "compute nodes", "not examined "
			  "outside of a job: run salloc -N2 ddp-info "
			  "--doctor");
	if (rc == 0 && getenv("SLURM_HET_SIZE"))
		check_add(out, CHECK_UNKNOWN, "compute nodes", "only those of "
			  "this heterogeneous job's first component were "
			  "examined");
	if (rc == 0 && nodes.hosts && !has_ddp)
		check_add(out, CHECK_UNKNOWN, "PMIx", "ranks could not be told "
			  "to meet, as srun has no --ddp");
	clear_nodes(&nodes);
	return rc;
}

static int check_all(struct check *out, struct ddp_error *error)
{
	static const char *const show_config[] = { "scontrol", "show", "config",
						   NULL };
	static const char *const show_nodes[] = { "scontrol", "-o", "show",
						  "nodes", NULL };
	/* -a: hidden ones, too */
	static const char *const show_partitions[] = {
		"scontrol", "-a", "-o", "show", "partition", NULL
	};
	char why[512], *config = ask(show_config, why, sizeof(why)), *nodes;
	char *partitions;
	int rc;

	if (!config) {
		check_add(out, CHECK_WRONG, "Slurm", "scontrol show config "
			  "fails (%s), so nothing is examined; run this where "
			  "jobs are submitted, while slurmctld is up", why);
		return 0;
	}
	nodes = ask(show_nodes, why, sizeof(why));
	check_config(out, config, nodes);
	partitions = ask(show_partitions, why, sizeof(why));
	rc = check_machines(out, config, partitions, error);
	free(partitions);
	free(nodes);
	free(config);
	return rc;
}

/* A task of srun's, and neither a batch script nor a shell of salloc's. */
static bool is_in_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");

	return step && strtoul(step, NULL, 10) < (uint32_t)SPECIAL_STEP;
}

int doctor_print(bool *wrong, struct ddp_error *error)
{
	struct check out = { .colour = tool_has_colour(stdout) };
	const char *task = getenv(DOCTOR_VARIABLE);
	int rc;

	if (is_in_step() && task)
		return doctor_task(task, error);
	if (is_in_step())
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "--doctor "
				     "starts srun itself: run it without srun, "
				     "as in: salloc -N2 ddp-info --doctor");
	rc = check_all(&out, error);
	check_end(&out);
	*wrong = out.counts[CHECK_WRONG] > 0;
	if (rc) {
		free(ddp_text_finish(&out.text));
		return -1;
	}
	return tool_print_text(ddp_text_finish(&out.text), error);
}
