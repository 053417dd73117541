/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of spank.h fails once. A step may then be refused, by one line and
 * exit status 1; or do without the call, and come out the same; or, if even
 * --ddp could not be registered on a node, leave the task the poison that says
 * so. With siblings a call fails in all of them, or in one: each of them then
 * comes out in one of the three ways, and all together print one line at most.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define POISON "slurm-ddp-plugin-missing-on-this-node"
#define NODE(tasks, all) "SLURM_JOB_ID=12|SLURM_STEP_NUM_TASKS=" all "|" \
	"SLURM_STEP_NODELIST=n[1-2]|SLURMD_NODENAME=n1|" \
	"SLURM_STEP_TASKS_PER_NODE=" tasks "(x2)|RANK=" POISON \
	"|LOCAL_RANK=" POISON "|WORLD_SIZE=" POISON "|SLURM_X=1|" \
	"SLURM_DDP_ADDED=SLURM_X|CUDA_VISIBLE_DEVICES=0,4"
#define TASK NODE("1", "2") "|SLURM_PROCID=0|SLURM_LOCALID=0"
#define CONF "optional spank_ddp.so topology=@/topo/server8.xml"

static bool is_refused(const struct outcome *outcome)
{
	const char *end = strchr(outcome->err, '\n');

	return outcome->status == 1 && !*outcome->out && end && !end[1] &&
	       strstr(outcome->err, "slurm-ddp: ");
}

/* srun and sbatch do not know a --ddp that was not registered. */
static bool is_unknown(const struct outcome *outcome)
{
	return outcome->status == 1 && !*outcome->out &&
	       strstr(outcome->err, "unrecognized option '--ddp");
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

/*
 * Whether the environment is the same. Lines with # count calls and may differ.
 */
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
	struct spank_case test = { .command = text, .env = env, .conf = CONF };
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

/* Get what one task printed, without the lines with #, and its exit status. */
static int sibling_get(const struct outcome *all, unsigned int local,
		       struct outcome *one)
{
	const char *line, *end;
	char status[16], *out = one->out;

	for (line = all->out; (end = strchr(line, '\n')); line = end + 1) {
		if ((unsigned int)(line[0] - '0') == local && line[1] == ':' &&
		    line[2] != '#') {
			memcpy(out, line + 2, (size_t)(end - line) - 1);
			out += end - line - 1;
		}
	}
	strcpy(out, "#");
	snprintf(status, sizeof(status), "%u:#status", local);
	one->status = outcome_get(all, status) ?
		atoi(outcome_get(all, status)) : -1;
	return one->status;
}

/* Whether there is a whole sentence, not only the words in front of it. */
static bool says_something(const char *err)
{
	const char *end = strchr(err, '\n');

	return end && !end[1] && end - err > 2 && end[-1] != ' ' &&
	       end[-1] != ':' && strstr(err, "slurm-ddp: ");
}

static bool siblings_fit(const struct outcome *outcome,
			 const struct outcome *good)
{
	static struct outcome one, wanted;
	bool refused = false, fit = true;
	unsigned int local;

	for (local = 0; local < 2; local++) {
		sibling_get(good, local, &wanted);
		sibling_get(outcome, local, &one);
		refused |= one.status == 1;
		fit &= (one.status == 1 && strcmp(one.out, "#") == 0) ||
		       is_same(&one, wanted.out) || is_poisoned(&one);
	}
	return fit && (refused ? says_something(outcome->err) :
		       !*outcome->err || says_something(outcome->err));
}

enum who { FIRST, SECOND, ALL };	/* tasks; ALL: and slurmstepd */

static const struct outcome *siblings_try(enum who who, unsigned int fail)
{
	char text[64], tasks[128];
	struct spank_case test = { .command = text, .tasks = tasks,
		.env = NODE("2", "4"), .conf = CONF };

	snprintf(text, sizeof(text), "slurmstepd %u 0 2 4 --ddp train",
		 who == ALL ? fail : 0);
	snprintf(tasks, sizeof(tasks),
		 "#cpus=0-71|#fail=%u;#cpus=0-71|#fail=%u",
		 who == SECOND ? 0 : fail, who == FIRST ? 0 : fail);
	return case_try(&test);
}

static void siblings_fail_each(const char *part, enum who who)
{
	static struct outcome good;
	const struct outcome *outcome;
	unsigned int calls = 0, fail;
	char name[128];

	good = *siblings_try(who, 0);
	if (outcome_get(&good, "1:#calls"))
		sscanf(outcome_get(&good, "1:#calls"), "%u", &calls);
	snprintf(name, sizeof(name), "%s asks Slurm", part);
	case_report(good.status == 0 && calls > 2, name, good.err);
	for (fail = 1; fail <= calls; fail++) {
		outcome = siblings_try(who, fail);
		snprintf(name, sizeof(name), "%s, call %u of %u fails", part,
			 fail, calls);
		case_report_timed(siblings_fit(outcome, &good), outcome, name,
				  outcome->err);
	}
}

void test_failures(void)
{
	fail_each("srun", "srun --fail=", "--ddp --nodes=2 --gres=gpu:2 a",
		  "A=b");
	fail_each("srun --ddp=explain", "srun --fail=",
		  "--ddp=explain --nodes=2 --gres=gpu:2 a", "A=b");
	fail_each("sbatch", "sbatch --fail=", "--ddp --exclusive a", "A=b");
	fail_each("a task", "slurmstepd ", "0 1 2 --ddp train", TASK);
	siblings_fail_each("two tasks", ALL);
	siblings_fail_each("the first of two", FIRST);
	siblings_fail_each("the second of two", SECOND);
}
