/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs when the step exists and nothing of it runs yet. Finds out where its ranks
 * are, tells the tasks and the supervisor, and prints what was chosen, and why.
 * Each node prints what differs from node to node, before its tasks start.
 */
#define _GNU_SOURCE
#include "srun/srun.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/hostlist.h"
#include "layout/port_range.h"
#include "layout/tasks.h"
#include "options/options.h"
#include "slurm/scontrol.h"
#include "srun/cli.h"
#include "srun/rerun.h"
#include "supervisor/child.h"
#include "util/file.h"
#include "util/program.h"
#include "util/scan.h"

/* ---- where the ranks are */

#define NONE UINT32_MAX

enum { READ_MS = 2000 };	/* for a supervisor on a busy machine */

/*
 * The step's node list tells only for some distributions, and from Slurm 26.05
 * on the cluster's topology counts, too. sattach prints what the controller has
 * decided.
 */
struct order {
	char *master;		/* the node of rank 0; NULL: not known */
	char *mapping;		/* of all ranks, as layout/tasks.h has it */
};

struct places {
	uint32_t ranks, nodes;		/* of the whole step */
	uint32_t placed;		/* ranks so far */
	uint32_t *hosts;		/* of each rank: a node's index; NONE */
	char master[DDP_HOSTNAME_MAX + 1];
};

/* "4 tasks, 2 nodes (n[1-2])" */
static bool parse_head(const char *line, struct places *places)
{
	uint32_t i;

	if (!line || sscanf(line, " %u tasks, %u nodes", &places->ranks,
			    &places->nodes) != 2 ||
	    !places->ranks || places->ranks > DDP_RANK_MAX)
		return false;
	places->hosts = malloc(places->ranks * sizeof(*places->hosts));
	for (i = 0; places->hosts && i < places->ranks; i++)
		places->hosts[i] = NONE;
	return places->hosts;
}

/* "Node 0 (n1), 2 task(s): 0 1 " */
static bool parse_node(const char *line, uint32_t index, struct places *places)
{
	char name[DDP_HOSTNAME_MAX + 1];
	uint32_t number, count;
	uint64_t rank;
	int end = 0;

	sscanf(line, " Node %u (%255[^)]), %u task(s):%n", &number, name,
	       &count, &end);
	if (!end || number != index)
		return false;
	for (line += end; count; count--, places->placed++) {
		line += strspn(line, " ");
		if (ddp_scan_number(&line, 0, places->ranks - 1, &rank) < 0 ||
		    places->hosts[rank] != NONE)
			return false;
		places->hosts[rank] = index;
		if (rank == 0)
			strcpy(places->master, name);
	}
	return !line[strspn(line, " ")];
}

static bool parse_answer(char *text, struct places *places)
{
	uint32_t index = 0;
	char *save, *line = strtok_r(text, "\n", &save);

	if (!line || !parse_head(strtok_r(NULL, "\n", &save), places))
		return false;
	while ((line = strtok_r(NULL, "\n", &save)))
		if (!parse_node(line, index++, places))
			return false;
	return index == places->nodes && places->placed == places->ranks;
}

/* Leaves both NULL if Slurm does not tell. */
static void ask_order(uint32_t job_id, uint32_t step_id, struct order *order)
{
	char id[32];
	/* Quiet: an error of its own is none of the user's. */
	const char *argv[] = { "sattach", "-QQ", "--layout", id, NULL };
	struct places places = { .hosts = NULL };
	char *text;

	snprintf(id, sizeof(id), "%u.%u", job_id, step_id);
	text = ddp_program_read(argv, STDERR_FILENO);
	if (text && parse_answer(text, &places)) {
		order->mapping = ddp_mapping_format(places.hosts,
						    places.ranks);
		order->master = order->mapping ? strdup(places.master) : NULL;
	}
	free(text);
	free(places.hosts);
}

/* ---- what was chosen */

enum { EXPORTED_MAX = 128 };	/* bytes of an exported value that are shown */

/* Print one line. Others wrote host names and exported values in it. */
static void say(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		line = NULL;
	va_end(args);
	if (line)
		fprintf(stderr, "slurm-ddp: %s\n", ddp_text_quote(line));
	free(line);
}

/* Returns true if the plugin filled this variable in for some component. */
static bool was_added(const char *name)
{
	char variable[96];
	int i;

	for (i = 0; i < 128; i++) {
		snprintf(variable, sizeof(variable), "%s_HET_GROUP_%d", name,
			 i);
		if (ddp_rerun_added(variable))
			return true;
	}
	return ddp_rerun_added(name);
}

/* A variable that the user has exported; NULL if it is not set, or empty. */
static const char *exported(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/*
 * Slurm shows srun only one component of a heterogeneous step, and it can be
 * any of them.
 */
static void explain_tasks(spank_t spank, bool heterogeneous)
{
	const char *why = "Slurm's default";
	uint32_t tasks, nodes;

	if (heterogeneous) {
		say("tasks of several components: the nodes' tables show "
		    "them");
		return;
	}
	if (spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) ||
	    spank_get_item(spank, S_JOB_NNODES, &nodes))
		return;
	if (ddp_srun.launcher && was_added("SLURM_NTASKS_PER_NODE"))
		why = "one a node, whose ranks its command starts; filled in";
	else if (was_added("SLURM_NTASKS") && was_added("SLURM_NTASKS_PER_NODE"))
		why = "one a GPU, filled in";
	else if (was_added("SLURM_NTASKS"))
		why = ddp_cli_get("ntasks-per-node") ||
		      ddp_cli_get("ntasks-per-gpu") ?
			"as asked for" : "filled in";
	else if (ddp_cli_get("ntasks") || ddp_cli_get("ntasks-per-gpu"))
		why = "as asked for";
	else if (was_added("SLURM_NTASKS_PER_NODE"))
		why = "one a GPU, filled in";
	else if (ddp_cli_get("ntasks-per-node"))
		why = "as asked for";
	say("tasks %u on %u node%s: %s", tasks, nodes, nodes == 1 ? "" : "s",
	    why);
}

static void explain_order(void)
{
	if (!ddp_srun.measured)
		return;
	if (ddp_srun.ordered)
		say("order along the network: a ring through the nodes leaves "
		    "a switch %u times, and by their names %u times",
		    ddp_srun.up, ddp_srun.up_before);
	else
		say("order of Slurm: a ring through the nodes leaves a switch "
		    "%u times by their names, and no other order less often",
		    ddp_srun.up);
}

static void explain_mpi(void)
{
	const char *mpi = ddp_cli_get_default("mpi"), *why = "as asked for";

	if (ddp_rerun_added("SLURM_MPI_TYPE"))
		why = "filled in";
	else if (!ddp_srun.mpi_given)
		why = "this site's default";
	if (!mpi)	/* what srun tells its tasks */
		mpi = getenv("SLURM_MPI_TYPE");
	say("MPI type %s: %s", mpi ? mpi : "unknown", why);
}

/* master: NULL where it is not known. */
static void explain_master(const char *step, const char *master)
{
	const char *users = exported("MASTER_ADDR"), *nodes, *first = NULL;
	struct ddp_hostlist *hosts = NULL;
	char *list;
	int length;

	nodes = ddp_scontrol_find_word(step, "NodeList", &length);
	list = strndup(nodes, (size_t)length);
	if (list && *list)
		hosts = ddp_hostlist_create(list, NULL);
	if (hosts)
		first = ddp_hostlist_get(hosts, 0);
	if (users)
		say("master %.*s: MASTER_ADDR was exported", EXPORTED_MAX,
		    users);
	else if (master && first)
		say("master %s: rank 0's node,%s of %s", master,
		    strcmp(master, first) == 0 ? " the first" : "", list);
	else
		say("master: rank 0's node%s", ddp_plugin.explain ?
		    ", which says so below" : "");
	ddp_hostlist_destroy(hosts);
	free(list);
}

/*
 * Slurm's id of a heterogeneous job can be that of any component; the variable
 * is the first's.
 */
static void explain_port(uint32_t job_id, uint32_t step_id, const char *step,
			 bool heterogeneous)
{
	const char *users = exported("MASTER_PORT"), *ports;
	const char *leader = getenv("SLURM_JOB_ID");
	char range[64];
	uint16_t port;
	int length;

	ports = ddp_scontrol_find_word(step, "ResvPorts", &length);
	snprintf(range, sizeof(range), "%.*s", length, ports);
	if (ddp_plugin.port)
		say("port %u: --ddp-port", ddp_plugin.port);
	else if (users)
		say("port %.*s: MASTER_PORT was exported", EXPORTED_MAX,
		    users);
	else if (ddp_port_reserved(range, 0, &port, NULL) == 0 && heterogeneous)
		say("port: reserved by Slurm; rank 0's node says which below");
	else if (ddp_port_reserved(range, 0, &port, NULL) == 0)
		say("port %u: reserved by Slurm for this step", port);
	else
		say("port %u: from the job's and the step's number",
		    ddp_port_derive(leader ? (uint32_t)atol(leader) : job_id,
				    step_id, 0, ddp_plugin.port_first,
				    ddp_plugin.port_last));
}

/* Prints which defaults the site has set, in the words of plugstack.conf. */
static void explain_site(void)
{
	const char *text, *more;
	char option[64];
	size_t i;

	for (i = 0; (text = ddp_options_site(i)); i++) {
		snprintf(option, sizeof(option), "--%.*s",
			 (int)strcspn(text, "="), text);
		more = "";
		if (strcmp(text, "ddp=explain") == 0) {
			strcpy(option, "--ddp=explain");
			more = "; --ddp=on goes without";
		} else if (strcmp(option, "--env") == 0) {
			more = ", unless you export another";
		}
		if (*text && !ddp_options_typed(option))
			say("%s: this site's default%s", text, more);
	}
}

/* Options that a dry run has no use for. */
static void explain_unused(void)
{
	const struct { bool given; const char *name; } unused[] = {
		{ ddp_plugin.check, "--ddp-check" },
		{ ddp_plugin.grace_s, "--ddp-grace" },
		{ ddp_plugin.logs, "--ddp-logs" },
		{ ddp_plugin.report, "--ddp-report" },
		{ ddp_plugin.restarts, "--ddp-restarts" },
		{ ddp_plugin.show, "--ddp-show" },
		{ ddp_plugin.notice.number, "--ddp-signal" },
		{ ddp_plugin.watchdog_s, "--ddp-watchdog" },
	};
	struct ddp_text names = { 0 };
	char *list;
	size_t i;

	for (i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
		if (unused[i].given && ddp_options_typed(unused[i].name))
			ddp_text_add(&names, "%s%s", names.length ? ", " : "",
				     unused[i].name);
	list = names.length ? ddp_text_finish(&names) : NULL;
	if (list)
		say("%s: checked only; a dry run writes no report and no logs, "
		    "and watches over nothing", list);
	free(list);
}

static void explain(spank_t spank, bool heterogeneous, const char *master)
{
	uint32_t job_id, step_id;
	char *step;

	explain_tasks(spank, heterogeneous);
	explain_order();
	explain_mpi();
	if (spank_get_item(spank, S_JOB_ID, &job_id) ||
	    spank_get_item(spank, S_JOB_STEPID, &step_id)) {
		slurm_error("slurm-ddp: Slurm does not tell srun of the step");
		return;
	}
	step = ddp_scontrol_show_step(job_id, step_id);
	explain_master(step, master);
	explain_port(job_id, step_id, step, heterogeneous);
	free(step);
	say("a rank that fails ends the step: %s",
	    ddp_rerun_added("SLURM_KILL_BAD_EXIT") ? "filled in" :
	    "unless --kill-on-bad-exit says otherwise");
	explain_site();
	if (ddp_plugin.dry_run)
		explain_unused();
}

/* ---- the step */

enum { MAPPING_MAX = 100 << 10 };	/* execve takes 128 KiB in one string */

/*
 * Tells the tasks what srun has made of --cpu-bind. A variable cannot be taken
 * out any more here, but "verbose" alone, which binds nothing, can be taken
 * back.
 */
static void correct_bind(void)
{
	const char *before = ddp_srun.bind_before;
	const char *bind = getenv("SLURM_CPU_BIND");
	const char *type = getenv("SLURM_CPU_BIND_TYPE");

	if (before && bind && strcmp(bind, before) != 0)
		ddp_rerun_add(DDP_TELL_CPU_BIND, "1");
	else if (type && !*type)
		ddp_rerun_add(DDP_TELL_CPU_BIND, "0");
}

/* mpi/pmix tells tasks itself. NULL: what an outer step has told is wrong. */
static void tell_mapping(const char *mapping)
{
	if (mapping && strlen(mapping) < MAPPING_MAX)
		ddp_rerun_add(DDP_TELL_MAPPING, mapping);
	else if (getenv(DDP_TELL_MAPPING))
		ddp_rerun_add(DDP_TELL_MAPPING, "");
}

/*
 * Find out where the ranks of the step are, and tell the tasks. Of a
 * heterogeneous step Slurm shows one component only.
 */
static void read_order(spank_t spank, struct order *order)
{
	bool explains = ddp_plugin.explain || ddp_plugin.dry_run;
	uint32_t job_id, step_id, nodes;

	if (ddp_srun.component == 1 && (explains || !ddp_mpi_is_pmix()) &&
	    spank_get_item(spank, S_JOB_NNODES, &nodes) == ESPANK_SUCCESS &&
	    (explains || nodes > 1) &&
	    spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &step_id) == ESPANK_SUCCESS)
		ask_order(job_id, step_id, order);
	tell_mapping(order->mapping);
}

/*
 * No refusal: the step is there and would stay. An #SBATCH line is for all steps of
 * a job, small ones too. Of a heterogeneous step the tasks alone know the size.
 */
static void tell_left_out(spank_t spank)
{
	struct ddp_error error;
	uint32_t tasks;

	if (ddp_plugin.show && ddp_srun.component == 1 &&
	    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) ==
	    ESPANK_SUCCESS &&
	    ddp_ranks_check("--ddp-show", ddp_plugin.show, tasks, &error) < 0)
		slurm_info("slurm-ddp: %s", error.text);
}

/* The supervisor must know who should begin; it knows one component's nodes. */
static void tell_launch(spank_t spank)
{
	struct ddp_child_launch launch;

	if (ddp_srun.supervised && ddp_srun.component == 1 &&
	    spank_get_item(spank, S_JOB_ID, &launch.job_id) == ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_STEPID, &launch.step_id) ==
	    ESPANK_SUCCESS &&
	    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &launch.tasks) ==
	    ESPANK_SUCCESS)
		ddp_child_tell_launch(ddp_srun.supervised, &launch);
}

/* Slurm calls this once, for whichever component comes first. */
void ddp_srun_launch(spank_t spank)
{
	struct order order = { .master = NULL };
	uint32_t job_id;

	ddp_output_release();
	if (!ddp_srun.was_on)
		return;
	tell_left_out(spank);
	correct_bind();
	if (spank_get_item(spank, S_JOB_ID, &job_id) == ESPANK_SUCCESS)
		ddp_policy_launch(job_id, ddp_srun.component > 1);
	read_order(spank, &order);
	if (ddp_plugin.explain || ddp_plugin.dry_run)
		explain(spank, ddp_srun.component > 1, order.master);
	/* The way of what tasks print is shorter: it would come first where the
	 * supervisor has not read this. */
	if (ddp_srun.supervised)
		ddp_drain_wait(STDERR_FILENO, READ_MS);
	free(order.master);
	free(order.mapping);
	tell_launch(spank);
}
