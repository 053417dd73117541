/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch over a step: what the user asks of it, which nodes the step gets by
 * --ddp-restarts and --ddp-spares, and the start of the supervisor. Nodes are
 * given to srun as options after the user's own, of which the last one holds.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options/options.h"
#include "request/shell_words.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "supervisor/report.h"
#include "supervisor/supervisor.h"
#include "util/program.h"

/* ---- what the user asks of it */

/*
 * Returns true if a failure ends the step. If --ddp has filled
 * --kill-on-bad-exit in, the user left it open.
 */
static bool ends_step(void)
{
	const char *kill = ddp_cli_get("kill-on-bad-exit");

	return !kill || strcmp(kill, "0") != 0 ||
	       ddp_rerun_added("SLURM_KILL_BAD_EXIT");
}

bool ddp_supervise_alone(void)
{
	return ddp_plugin.grace_s || ddp_plugin.notice.number;
}

/* Returns the option that leaves the supervisor out, or NULL: --async waits for
 * no step. */
static const char *find_without(void)
{
	return ddp_plugin.unsupervised ? "--ddp-supervise=off" :
		ddp_cli_isset("async") ? "--async" : NULL;
}

/*
 * Options that need a supervisor, or that another takes the sense from. A dry
 * run writes no report, but is there to tell what cannot be.
 */
static void check_options(void)
{
	bool kill_given = ddp_cli_get("kill-on-bad-exit") &&
			  !ddp_rerun_added("SLURM_KILL_BAD_EXIT");
	const char *needs = ddp_options_need(), *without = find_without();
	struct ddp_error error;

	if (without && needs)
		ddp_srun_refuse("%s: needs the supervisor; leave out %s",
				needs, without);
	if (ddp_plugin.grace_s && kill_given)
		ddp_srun_refuse("--ddp-grace: is given with "
				"--kill-on-bad-exit, or SLURM_KILL_BAD_EXIT, "
				"by which Slurm ends all at once, or nobody "
				"does; leave out one of them");
	if (ddp_plugin.dry_run && ddp_plugin.report &&
	    ddp_report_check(ddp_plugin.report, &error) < 0)
		ddp_srun_refuse("%s", error.text);
}

/* ---- restarts and spares */

/*
 * Returns the user's option that names the nodes, too, and so would contradict
 * a list of ours; NULL: there is none.
 */
static const char *find_rival(void)
{
	struct ddp_request request;

	ddp_asked_read(&request);
	if (request.arbitrary)
		return "--distribution=arbitrary";
	if (ddp_cli_isset("relative"))
		return "--relative";
	return ddp_cli_isset("nodefile") ? "--nodefile" : NULL;
}

static void check_spares(void)
{
	const char *rival = find_rival();

	if (!ddp_plugin.restarts)
		ddp_srun_refuse("--ddp-spares: keeps nodes back for a restart; "
				"give --ddp-restarts=N, too");
	if (rival)
		ddp_srun_refuse("--ddp-spares: chooses the nodes of the step, "
				"as %s does; leave out one of them", rival);
	/* An --exclusive from the environment gives way to --overlap. */
	if (ddp_cli_isset("exclusive") && !getenv("SLURM_EXCLUSIVE"))
		ddp_srun_refuse("--ddp-spares: a restart without a lost node "
				"needs --overlap, which srun refuses beside "
				"--exclusive; leave out one of them");
	if (getenv("SLURM_HET_SIZE"))
		ddp_srun_refuse("--ddp-spares: is not for heterogeneous jobs; "
				"leave it out");
}

void ddp_again_check(void)
{
	const char *name = ddp_plugin.restarts ? "--ddp-restarts" :
			   "--ddp-spares";

	/* A job's spares are for its restarts, and these were taken back. */
	if (ddp_options_typed("--ddp-restarts=0"))
		ddp_plugin.spares = 0;
	if (!ddp_plugin.restarts && !ddp_plugin.spares)
		return;
	if (ddp_plugin.unsupervised)
		ddp_srun_refuse("%s: needs the supervisor; leave out "
				"--ddp-supervise=off, or add --ddp-restarts=0",
				name);
	if (!ddp_cli_available())
		ddp_srun_refuse("%s: this srun does not show its options to "
				"plugins; leave it out", name);
	if (ddp_srun.component > 0 || ddp_srun.expected > 1)
		ddp_srun_refuse("%s: is not for heterogeneous steps; leave it "
				"out", name);
	if (!ends_step())
		ddp_srun_refuse("%s: a step that a failure does not end, by "
				"--kill-on-bad-exit=0, cannot be started "
				"again; leave that out, or add "
				"--ddp-restarts=0", name);
	if (!ddp_cli_get("jobid"))
		ddp_srun_refuse("%s: srun gives its nodes back when a step "
				"fails, so this works within a job only; use "
				"sbatch or salloc", name);
	if (ddp_plugin.spares)
		check_spares();
}

/* squeue lists the nodes that the job has now: those that it has lost are out. */
static void choose(struct ddp_restart *restart, uint32_t count)
{
	const char *job_id = ddp_cli_get("jobid");
	char *nodes = ddp_squeue_show(job_id, "-o", "%A %N");
	const struct ddp_restart_job job = {
		.nodes = nodes,
		.wanted = ddp_cli_get("nodelist"),
		.excluded = ddp_cli_get("exclude"),
		.count = count,
		.spares = ddp_plugin.spares,
	};
	struct ddp_error error;

	if (!nodes || !*nodes)
		ddp_srun_refuse("--ddp-spares: squeue does not tell the "
				"nodes of job %.64s", job_id);
	if (ddp_restart_choose(restart, &job, &error) < 0)
		ddp_srun_refuse("%s", error.text);
	/* The first spare is taken where Slurm tells of no network. */
	if (ddp_plugin.spares > 1)
		restart->network = ddp_order_read(NULL);
	free(nodes);
}

static char *make_argument(const char *name, const char *value)
{
	char *argument;

	if (!value || asprintf(&argument, "--%s=%s", name, value) < 0)
		ddp_srun_refuse("out of memory");
	return argument;
}

/* Takes the argument, and gives it to srun's next run. */
static void insert(char *argument)
{
	ddp_rerun_insert(argument);
	free(argument);
}

static char *name_nodes(const struct ddp_restart *restart)
{
	char *list = ddp_restart_format(restart);
	char *text = list ? ddp_hosts_compress(list, true) : NULL;
	char *argument = make_argument("nodelist", text);

	free(text);
	free(list);
	return argument;
}

static char *count_nodes(const struct ddp_restart *restart)
{
	char count[16];

	snprintf(count, sizeof(count), "%u", restart->count);
	return make_argument("nodes", count);
}

static void insert_nodes(const struct ddp_restart *restart)
{
	insert(count_nodes(restart));
	insert(name_nodes(restart));
}

/*
 * A number that is for so many nodes, as "8" or "a100:8", for others; who has
 * said it is named where it is not the same for each of them.
 */
static void scale_number(const char *who, const char *value, uint32_t of,
			 uint32_t nodes, char text[64])
{
	const char *digits = strrchr(value, ':');
	unsigned long number;

	digits = digits ? digits + 1 : value;
	number = strtoul(digits, NULL, 10);
	if (number % of != 0 || strchr(value, ','))
		ddp_srun_refuse("--ddp-spares: %s=%.64s is not the same for "
				"each of %u nodes; ask for tasks and GPUs by "
				"node", who, value, of);
	snprintf(text, 64, "%.*s%lu", (int)(digits - value), value,
		 number / of * nodes);
}

static uint32_t count_job_nodes(void)
{
	const char *size = getenv("SLURM_JOB_NUM_NODES");

	return size ? (uint32_t)atol(size) : 0;
}

/*
 * Returns true if an option has the job's number, which Slurm repeats for each
 * step of the job.
 */
static bool is_jobs(const char *option, const char *name)
{
	const char *value = getenv(name), *used = ddp_cli_get(option);

	return value && used && strcmp(value, used) == 0 &&
	       count_job_nodes() > 0;
}

/* The step's part of such a number. */
static void scale(const char *option, const char *name, uint32_t nodes)
{
	char text[64];

	if (!is_jobs(option, name))
		return;
	scale_number(name, getenv(name), count_job_nodes(), nodes, text);
	setenv(name, text, 1);
}

size_t ddp_again_widen(const struct ddp_restart *restart,
		       char *arguments[DDP_AGAIN_WIDE])
{
	static const char *const numbers[][2] = {
		{ "ntasks", "SLURM_NTASKS" }, { "gpus", "SLURM_GPUS" }
	};
	struct ddp_restart all = *restart;
	size_t count = 0, i;
	char text[64];

	all.count += all.spares;
	arguments[count++] = count_nodes(&all);
	arguments[count++] = name_nodes(&all);
	arguments[count++] = make_argument("ddp-spares", "0");
	for (i = 0; i < 2; i++) {
		if (!ddp_cli_get(numbers[i][0]))
			continue;
		scale_number(numbers[i][0], ddp_cli_get(numbers[i][0]),
			     is_jobs(numbers[i][0], numbers[i][1]) ?
			     count_job_nodes() : restart->count, all.count,
			     text);
		arguments[count++] = make_argument(numbers[i][0], text);
	}
	return count;
}

bool ddp_again_choose(struct ddp_restart *restart)
{
	struct ddp_request request;

	if (!ddp_plugin.spares || ddp_srun.placed)
		return false;
	ddp_asked_read(&request);
	choose(restart, request.nodes_typed ? ddp_request_nodes(&request) : 0);
	return true;
}

/* Leaves nodes that are not fit out of all that srun is told. */
static void exclude(struct ddp_text *unfit, uint32_t spares)
{
	const char *excluded = ddp_cli_get("exclude");
	char text[16], *list, *names;

	if (excluded)
		ddp_text_add(unfit, ",%s", excluded);
	list = ddp_text_finish(unfit);
	names = list ? ddp_hosts_compress(list, true) : NULL;
	snprintf(text, sizeof(text), "%u", spares);
	insert(make_argument("exclude", names));
	insert(make_argument("ddp-spares", text));
	free(names);
	free(list);
}

void ddp_again_place(struct ddp_restart *restart, struct ddp_text *unfit)
{
	if (unfit->length > 0)
		exclude(unfit, restart->spares);
	insert_nodes(restart);
	if (restart->overlap)
		ddp_rerun_insert("--overlap");
	scale("ntasks", "SLURM_NTASKS", restart->count);
	scale("ntasks", "SLURM_NPROCS", restart->count);
	scale("gpus", "SLURM_GPUS", restart->count);
	ddp_restart_clear(restart);
	ddp_srun.placed = true;
}

/* Returns true if the job has a script and a line of it is about --no-kill. */
static bool has_line(const char *job_id)
{
	const char *argv[] = {
		"scontrol", "write", "batch_script", job_id, "-", NULL,
	};
	char *text = ddp_squeue_show(job_id, "-O", "JobID:20,BatchFlag:20");
	bool batch = text && atoi(text) > 0, kept;

	free(text);
	text = batch ? ddp_program_read(argv, STDERR_FILENO) : NULL;
	kept = text && (ddp_words_sbatch(text, "--no-kill") ||
			ddp_words_sbatch(text, "-k"));
	free(text);
	return kept;
}

/*
 * Slurm does not tell whether a job has --no-kill. sbatch and salloc do, if they
 * had --ddp, too.
 */
static void check_kill(const char *job_id)
{
	if (getenv(DDP_TELL_NO_KILL) || has_line(job_id))
		return;
	slurm_info("slurm-ddp: --ddp-spares: when Slurm gives a lost node up, "
		   "it ends job %s, unless that has --no-kill; give sbatch or "
		   "salloc that, with --ddp beside it, by which srun knows of "
		   "it", job_id);
}

/* Sets what the supervisor needs in zeros, which are no restarts. */
static void read_restart(struct ddp_restart *restart)
{
	restart->max = ddp_plugin.restarts;
	restart->lists = restart->max && !find_rival();
	if (!ddp_plugin.spares)
		return;
	choose(restart, 0);
	check_kill(ddp_cli_get("jobid"));
}

/* Adds arguments for the srun of an attempt, and what its tasks are told. */
static void tell_restart(const struct ddp_restart *restart)
{
	char text[32];

	if (!restart->max)
		return;
	snprintf(text, sizeof(text), "%u:%u", restart->done, restart->max);
	ddp_rerun_add(DDP_TELL_RESTARTS, text);
	if (restart->done == 0)
		return;
	if (restart->count)
		insert_nodes(restart);
	if (restart->overlap)
		ddp_rerun_insert("--overlap");
	/* A file of output is begun once. */
	if (!ddp_cli_isset("open-mode"))
		insert(make_argument("open-mode", "append"));
}

/* ---- the supervisor */

enum { TELL_SIZE = 16 + DDP_PROOF_TEXT_SIZE };

/* SrunPortRange of slurm.conf: srun's own function, the same since 22.05. */
static void read_ports(struct ddp_supervisor *supervisor)
{
	uint16_t *(*get_range)(void), *range;

	*(void **)&get_range = dlsym(RTLD_DEFAULT, "slurm_get_srun_port_range");
	range = get_range ? get_range() : NULL;
	if (range && range[0] && range[0] <= range[1]) {
		supervisor->port_first = range[0];
		supervisor->port_last = range[1];
	}
}

static void tell_tasks(const struct ddp_supervisor *supervisor,
		       const struct ddp_secret *secret)
{
	char digits[DDP_PROOF_TEXT_SIZE], text[TELL_SIZE];

	ddp_proof_format(secret, digits);
	snprintf(text, sizeof(text), "%u:" DDP_WIRE_VERSION ":%s",
		 supervisor->port, digits);
	ddp_rerun_add(DDP_TELL_SUPERVISOR, text);
}

/*
 * Says that the step runs unwatched, or refuses it for an option that needs a
 * supervisor. The srun of a check needs none: it tells by itself what fails.
 */
static void go_without(struct ddp_error *error)
{
	const char *needs = ddp_options_need();

	if (ddp_srun.checks)
		return;
	if (needs)
		ddp_srun_refuse("%s: needs the supervisor, which cannot run "
				"here: %s", needs, error->text);
	/* The site's grace had left that to the supervisor. */
	if (ddp_rerun_added("SLURM_KILL_BAD_EXIT"))
		ddp_rerun_add("SLURM_KILL_BAD_EXIT", "1");
	slurm_info("slurm-ddp: nobody watches this step, as the supervisor "
		   "cannot run here: %s", ddp_text_quote(error->text));
}

bool ddp_supervise(void)
{
	struct ddp_supervisor supervisor = {
		.pty = ddp_cli_isset("pty"),
		.quiet = ddp_cli_isset("quiet"),
		.kill = ends_step(),
		.alone = ddp_rerun_added("SLURM_KILL_BAD_EXIT") &&
			 ddp_supervise_alone(),
		.own_job = !ddp_cli_get("jobid") && !getenv("SLURM_JOB_ID"),
		.grace_s = ddp_plugin.grace_s,
		.watchdog_s = ddp_plugin.watchdog_s,
		.launcher = ddp_srun.launcher,
		.report = ddp_plugin.report,
		.notice = ddp_plugin.notice,
	};
	struct ddp_secret secret;
	struct ddp_error error;
	int rc;

	check_options();
	if (find_without() || ddp_plugin.dry_run || ddp_srun.supervised)
		return false;
	/* These are for the command that comes after the check. */
	if (ddp_srun.checks) {
		supervisor.grace_s = 0;
		supervisor.watchdog_s = 0;
		supervisor.report = NULL;
		supervisor.notice.number = 0;
	}
	read_ports(&supervisor);
	rc = ddp_supervisor_open(&supervisor, &error);
	if (rc < 0)
		ddp_srun_refuse("%s", error.text);
	if (rc > 0) {
		go_without(&error);
		return false;
	}
	ddp_output_drop();
	if (!ddp_srun.checks)
		read_restart(&supervisor.restart);
	if (ddp_supervisor_run(&supervisor, &secret) < 0)
		ddp_srun_refuse("cannot start srun: %s", strerror(errno));
	tell_tasks(&supervisor, &secret);
	tell_restart(&supervisor.restart);
	ddp_srun.supervised = getppid();
	return true;
}

