/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of spank.h fails once. A step may be refused, by one line and
 * exit status 1; or do without the call, and come out the same; or, where not
 * even --ddp could be registered on a node, leave the task what tells it so.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "host.h"

#define POISON "slurm-ddp-plugin-missing-on-this-node"
#define TASK "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=4|SLURM_PROCID=0|" \
	"SLURM_LOCALID=0|SLURM_STEP_NODELIST=n[1-2]|SLURMD_NODENAME=n1|" \
	"SLURM_STEP_TASKS_PER_NODE=2(x2)|RANK=" POISON "|LOCAL_RANK=" POISON \
	"|WORLD_SIZE=" POISON "|SLURM_X=1|SLURM_DDP_ADDED=SLURM_X"

static bool is_refused(const struct outcome *outcome)
{
	const char *end = strchr(outcome->err, '\n');

	return outcome->status == 1 && !*outcome->out && end && !end[1] &&
	       strstr(outcome->err, "slurm-ddp: ");
}

/* srun and sbatch know no --ddp that is not registered. */
static bool is_unknown(const struct outcome *outcome)
{
	return outcome->status == 1 && !*outcome->out &&
	       strstr(outcome->err, "unrecognized option '--ddp'\n");
}

static bool is_poisoned(const struct outcome *outcome)
{
	static const char *const names[] = {
		"RANK", "LOCAL_RANK", "WORLD_SIZE",
	};
	const char *value;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		value = outcome_get(outcome, names[i]);
		if (!value || strcmp(value, POISON) != 0)
			return false;
	}
	return outcome->status == 0 && !outcome_get(outcome, "MASTER_ADDR");
}

/* The same environment; the lines with # count calls, and may differ. */
static bool is_same(const struct outcome *outcome, const char *good)
{
	size_t length = strcspn(good, "#");

	return outcome->status == 0 && length &&
	       strcspn(outcome->out, "#") == length &&
	       strncmp(outcome->out, good, length) == 0;
}

static void fail_each(const char *part, const char *before, const char *after,
		      const char *env)
{
	static char good[sizeof(((struct outcome *)NULL)->out)];
	const struct outcome *outcome;
	char text[128], name[128];
	struct spank_case test = { .command = text, .env = env };
	unsigned int calls = 0, fail;

	snprintf(text, sizeof(text), "%s0 %s", before, after);
	outcome = case_try(&test);
	snprintf(good, sizeof(good), "%s", outcome->out);
	if (outcome_get(outcome, "#calls"))
		sscanf(outcome_get(outcome, "#calls"), "%u", &calls);
	snprintf(name, sizeof(name), "%s asks Slurm", part);
	case_report(outcome->status == 0 && calls > 2, name, outcome->err);
	for (fail = 1; fail <= calls; fail++) {
		snprintf(text, sizeof(text), "%s%u %s", before, fail, after);
		outcome = case_try(&test);
		snprintf(name, sizeof(name), "%s, call %u of %u fails", part,
			 fail, calls);
		case_report(is_refused(outcome) || is_same(outcome, good) ||
			    is_unknown(outcome) || is_poisoned(outcome), name,
			    outcome->err);
	}
}

void test_failures(void)
{
	fail_each("srun", "srun --fail=", "--ddp --nodes=2 --gres=gpu:2 a",
		  "A=b");
	fail_each("sbatch", "sbatch --fail=", "--ddp --exclusive a", "A=b");
	fail_each("a task", "slurmstepd ", "0 2 4 --ddp train", TASK);
}
