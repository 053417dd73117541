/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --ddp-check: whether the step's nodes are fit for its command, and which ones
 * it gets if not.
 */
#define _GNU_SOURCE
#include "srun/preflight.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "srun/cli.h"
#include "srun/rerun.h"
#include "srun/findings.h"
#include "srun/preflight_step.h"

static void refuse_what_cannot_be(void)
{
	if (ddp_srun.expected > 1)
		ddp_srun_refuse("--ddp-check: cannot check a heterogeneous "
				"step; leave it out");
	if (ddp_cli_isset("pty") || ddp_cli_isset("multi-prog"))
		ddp_srun_refuse("--ddp-check: starts another command first, "
				"and --%s does not fit it; leave it out, or "
				"run srun --ddp ddp-bench --preflight before",
				ddp_cli_isset("pty") ? "pty" : "multi-prog");
	if (!ddp_cli_get("jobid") && !getenv("SLURM_JOB_ID"))
		ddp_srun_refuse("--ddp-check: this srun makes a job of its "
				"own, and the check would be another one, on "
				"other nodes; use it in salloc or sbatch");
}

static bool is_used(const struct ddp_restart *restart, const char *node)
{
	uint32_t i;

	for (i = 0; i < restart->count; i++)
		if (strcmp(restart->names[i], node) == 0)
			return true;
	return false;
}

/* A node of the step: a spare takes its place. */
static void replace(struct ddp_restart *restart, const char *node,
		    struct ddp_text *how)
{
	const char *spare;

	if (!is_used(restart, node))
		ddp_srun_refuse("--ddp-check: did not pass, and names %.64s, "
				"which is none of the step's nodes, and so the "
				"command was not started", node);
	spare = ddp_restart_replace(restart, node);
	if (!spare)
		ddp_srun_refuse("--ddp-check: did not pass, and no spare node "
				"is left for %s, and so the command was not "
				"started", node);
	ddp_text_add(how, "%s%s in place of %s, which is not fit",
		     how->length ? ", " : "", spare, node);
}

/* The spares among them first: they can take nobody's place. */
static void leave_out(struct ddp_restart *restart,
		      const struct ddp_hostlist *hosts, struct ddp_text *unfit)
{
	size_t count = ddp_hostlist_count(hosts), i;
	bool *dropped = calloc(count, sizeof(*dropped));
	struct ddp_text how = { 0 };
	FILE *out = ddp_output_open();
	char *text;

	for (i = 0; dropped && i < count; i++) {
		const char *node = ddp_hostlist_get(hosts, i);

		dropped[i] = ddp_restart_drop(restart, node);
		if (dropped[i])
			ddp_text_add(&how, "%sspare %s left out, which is not "
				     "fit", how.length ? ", " : "", node);
		ddp_text_add(unfit, "%s%s", unfit->length ? "," : "", node);
	}
	for (i = 0; dropped && i < count; i++)
		if (!dropped[i])
			replace(restart, ddp_hostlist_get(hosts, i), &how);
	if (restart->spares == 0)
		ddp_text_add(&how, "; no spare is left");
	text = ddp_text_finish(&how);
	if (!text || unfit->failed || !out)
		ddp_srun_refuse("out of memory");
	fprintf(out, "slurm-ddp: --ddp-check: %s\n", text);
	fclose(out);
	free(dropped);
	free(text);
}

/*
 * Checks the nodes once. Returns true if those that are fit must be checked
 * again.
 */
static bool check(char *program, struct ddp_restart *restart,
		  struct ddp_text *unfit)
{
	int status = -1, number = 0;
	char *text = ddp_preflight_run(program, restart, &status, &number);
	struct ddp_hostlist *hosts = ddp_findings_unfit(text);
	bool says = ddp_findings_passed(text);
	bool holds = ddp_findings_may_hold(text);
	bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* A node may be lost after it has said so. */
	bool passed = says && ended;

	ddp_findings_print(text, passed);
	free(text);
	/* The other srun may have ended just before it. */
	if (number > 0)
		ddp_srun_refuse("--ddp-check: signal %d (%s) came meanwhile, "
				"and so the command was not started", number,
				strsignal(number));
	if (!passed && restart && hosts) {
		restart->overlap |= holds;
		leave_out(restart, hosts, unfit);
		ddp_hostlist_destroy(hosts);
		return true;
	}
	if (!says)
		ddp_srun_refuse("--ddp-check: did not pass, and so the command "
				"was not started");
	if (!ended)
		ddp_srun_refuse("--ddp-check: its step failed, and so the "
				"command was not started; to see why, run srun "
				"--ddp ddp-bench --preflight");
	return false;
}

void ddp_preflight(struct ddp_restart *restart, struct ddp_text *unfit)
{
	char program[PATH_MAX];

	refuse_what_cannot_be();
	if (!ddp_preflight_find(program))
		ddp_srun_refuse("--ddp-check: finds no ddp-bench on PATH; "
				"install it, on the nodes too, and add its "
				"folder to PATH");
	while (check(program, restart, unfit))
		;
}
