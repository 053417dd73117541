/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's own lines in what srun prints. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "supervisor/sieve.h"

/* What passes of a text that comes in pieces of so many bytes. */
static char *pass(struct ddp_sieve *sieve, const char *text, size_t piece)
{
	struct ddp_text out = { 0 };
	size_t length = strlen(text), at;

	for (at = 0; at < length; at += piece)
		ddp_sieve_add(sieve, text + at, length - at < piece ?
			      length - at : piece, &out);
	return ddp_text_finish(&out);
}

static char *release(struct ddp_sieve *sieve)
{
	struct ddp_text out = { 0 };

	ddp_sieve_release(sieve, &out);
	return ddp_text_finish(&out);
}

#define RULER "-------------------------------------" \
	"-------------------------------------\n"
#define GONE "An MPI communication peer process has unexpectedly " \
	"disconnected.  This\nusually indicates a failure.\n\n" \
	"  Peer host:  n2\n"
#define CONNECT "WARNING: Open MPI failed to TCP connect to a peer MPI " \
	"process.  This\nshould not happen.\n"
#define ABORT "MPI_ABORT was invoked on rank 2\n"

static const struct {
	const char *text, *passes, *kept;
} cases[] = {
	{ "a\nsrun: b\nc\n", "a\nc\n", "srun: b\n" },
	{ "srun: a\nslurmstepd: b\nslurmstepd-n1: c\n", "",
	  "srun: a\nslurmstepd: b\nslurmstepd-n1: c\n" },
	{ "srun:a\nsrun\n srun: b\nsrunx: c\n", "srun:a\nsrun\n srun: b\n"
	  "srunx: c\n", "" },
	{ "\n\nsrun: \n\n", "\n\n\n", "srun: \n" },
	{ "a\nsru", "a\n", "sru" },
	{ "srun: a", "", "srun: a" },
	{ "s\ns\n", "s\ns\n", "" },
	/* What Open MPI says of a peer, and not what it says of itself. */
	{ "a\n" RULER GONE RULER "b\n", "a\nb\n", RULER GONE RULER },
	{ RULER CONNECT RULER RULER GONE RULER "srun: a\nb\n", "b\n",
	  RULER CONNECT RULER RULER GONE RULER "srun: a\n" },
	{ RULER CONNECT "srun: a\n" RULER "b\n", "b\n",
	  RULER CONNECT "srun: a\n" RULER },
	{ RULER ABORT RULER "b\n", RULER ABORT RULER "b\n", "" },
	{ RULER ABORT RULER RULER CONNECT RULER, RULER ABORT RULER,
	  RULER CONNECT RULER },
	{ RULER ABORT RULER "srun: a\n", RULER ABORT RULER, "srun: a\n" },
	{ RULER, "", RULER },
	{ RULER "b\n", RULER "b\n", "" },
	{ "-" RULER GONE, "-" RULER GONE, "" },
};

Test(sieve, holds_lines_of_slurms)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve;
	char *passes, *kept;
	size_t i, piece;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (piece = 1; piece < 12; piece++) {
			sieve = (struct ddp_sieve){
				.said = &said, .holds = true,
			};
			passes = pass(&sieve, cases[i].text, piece);
			cr_expect_eq(ddp_sieve_keeps(&sieve),
				     *cases[i].kept != '\0');
			kept = release(&sieve);
			cr_expect_str_eq(passes, cases[i].passes);
			cr_expect_str_eq(kept, cases[i].kept);
			free(passes);
			free(kept);
		}
}

/* The rest of a line that has begun to pass passes, too. */
Test(sieve, begins_with_a_line)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = { .said = &said, .now_ns = 5 };
	char *text = pass(&sieve, "srun: a", 3);

	cr_expect_str_eq(text, "srun: a");
	free(text);
	sieve.holds = true;
	text = pass(&sieve, " b\nsrun: c\n", 3);
	cr_expect_str_eq(text, " b\n");
	free(text);
	text = release(&sieve);
	cr_expect_str_eq(text, "srun: c\n");
	free(text);
	text = pass(&sieve, "srun: d\n", 3);
	cr_expect_str_eq(text, "srun: d\n");
	free(text);
}

/* A ruler that was printed after a while has ended: a line of srun's follows. */
Test(sieve, begins_anew_after_a_ruler)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = {
		.said = &said, .now_ns = 5, .holds = true,
	};
	char *text = pass(&sieve, RULER, 9);

	free(text);
	text = release(&sieve);
	cr_expect_str_eq(text, RULER);
	free(text);
	sieve.holds = true;
	free(pass(&sieve, "srun: error: n1: task 3: Killed\n", 9));
	text = release(&sieve);
	cr_expect_str_eq(text, "srun: error: n1: task 3: Killed\n");
	free(text);
	free(said.failed.data);
}

Test(sieve, passes_every_byte)
{
	const char bytes[] = "a\0b\n\0srun: \377\n";
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = {
		.said = &said, .now_ns = 5, .holds = true,
	};
	struct ddp_text out = { 0 };

	ddp_sieve_add(&sieve, bytes, sizeof(bytes), &out);
	ddp_sieve_release(&sieve, &out);
	cr_assert_eq(out.length, sizeof(bytes));
	cr_expect_eq(memcmp(out.data, bytes, sizeof(bytes)), 0);
	free(out.data);
}

Test(sieve, knows_what_slurm_says_of_an_end)
{
	static const struct {
		const char *text;
		bool cancelled, aborted;
	} lines[] = {
		{ "slurmstepd-n1: error: *** STEP 71.2 ON n1 CANCELLED AT "
		  "2026-11-23T08:57:39 ***\n", true, false },
		{ "slurmstepd: error: *** STEP 71.2+1 ON n1 CANCELLED AT 2026 "
		  "DUE TO TIME LIMIT ***\n", true, false },
		{ "slurmstepd: error: *** STEP 71.2 ON n1 CANCELLED AT 2026 "
		  "DUE TO PREEMPTION ***\n", true, false },
		{ "[2026-11-23T08:57:39.878] error: *** STEP 71.2 ON n1 "
		  "CANCELLED AT 2026-11-23T08:57:39 ***\n", true, false },
		{ "[2026-11-23T08:57:39.878] error: *** STEP 71.2 ON n1 "
		  "CANCELLED AT 2026-11-23T08:57:39 DUE TO TASK FAILURE ***\n",
		  false, false },
		{ "slurmstepd-n1: error: *** STEP 71.3 ON n1 CANCELLED AT "
		  "2026-11-23T08:57:39 ***\n", false, false },
		{ "slurmstepd-n1: error: *** STEP 71.20 ON n1 CANCELLED AT "
		  "2026-11-23T08:57:39 ***\n", false, false },
		{ " 0: slurmstepd-n1: error: *** STEP 71.2 ON n1 CANCELLED AT "
		  "2026-11-23T08:57:39 ***\n", true, false },
		{ "0: slurmstepd-n1: error: *** STEP 71.3 ON n1 CANCELLED AT "
		  "2026-11-23T08:57:39 ***\n", false, false },
		{ "0: srun: Job step aborted: says a rank\n", false, false },
		{ "srun: Job step aborted: Waiting up to 7 seconds for job "
		  "step to finish.\n", false, true },
		{ "srun: error: n1: task 0: Killed\n", false, false },
		{ "my *** STEP 71.2 ON n1 was CANCELLED AT noon\n", false,
		  false },
	};
	size_t i;
	char *out;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct ddp_said said = { 0 };
		struct ddp_sieve sieve = {
			.said = &said, .now_ns = 5, .job_id = 71, .step_id = 2,
		};

		out = pass(&sieve, lines[i].text, 7);
		cr_expect_str_eq(out, lines[i].text);
		cr_expect_eq(said.cancelled_ns, lines[i].cancelled ? 5 : 0);
		cr_expect_eq(said.aborted_ns, lines[i].aborted ? 5 : 0);
		free(out);
	}
}

static const char task[] = "srun: error: n1: task 3: Killed\n";
static const char own[] =
	"srun: launch/slurm: _step_signal: Terminating StepId=71.2\n";
static const char newer[] = "srun: Terminating StepId=71.2\n";
static const char of_another[] = "srun: Terminating StepId=71.20\n";
static const char cancelled[] =
	"slurmstepd-n1: error: *** STEP 71.2 ON n1 CANCELLED AT 1 ***\n";
static const char aborted[] = "srun: Job step aborted: Waiting ...\n";

struct order {
	const char *lines[4];
	int ends;
	size_t reason;
};

static void check_orders(const struct order *orders, size_t count, bool quiet)
{
	size_t i, j;

	for (i = 0; i < count; i++) {
		struct ddp_said said = { 0 };
		struct ddp_sieve sieve = {
			.said = &said, .now_ns = 5, .job_id = 71, .step_id = 2,
			.quiet = quiet,
		};

		for (j = 0; j < 4 && orders[i].lines[j]; j++)
			free(pass(&sieve, orders[i].lines[j], 7));
		cr_expect_eq((int)said.ends, orders[i].ends, "case %zu", i);
		cr_expect_eq(said.reason, orders[i].reason, "case %zu", i);
		free(said.failed.data);
	}
}

/* An srun that ends the step for a rank says so before slurmstepd does. */
Test(sieve, knows_who_says_first_that_the_step_ends)
{
	static const struct order orders[] = {
		{ { task, own, cancelled }, DDP_SAID_SRUN, 2 },
		{ { task, newer, cancelled, task }, DDP_SAID_SRUN, 2 },
		{ { task, task, newer, aborted }, DDP_SAID_SRUN, 4 },
		{ { cancelled, task, own }, DDP_SAID_OTHERS, 0 },
		{ { task, cancelled, own }, DDP_SAID_OTHERS, 0 },
		{ { aborted, task, own }, DDP_SAID_OTHERS, 0 },
		{ { own, task, cancelled }, DDP_SAID_OTHERS, 0 },
		{ { task, of_another, cancelled }, DDP_SAID_OTHERS, 0 },
		{ { task, "Terminating StepId=71.2\n" }, DDP_SAID_NOTHING, 0 },
		{ { task }, DDP_SAID_NOTHING, 0 },
	};

	check_orders(orders, sizeof(orders) / sizeof(orders[0]), false);
}

/* Up to Slurm 24.11 srun -Q leaves that out, but not that a rank has failed. */
Test(sieve, knows_it_of_a_quiet_srun)
{
	static const struct order orders[] = {
		{ { task, cancelled, task }, DDP_SAID_SRUN, 2 },
		{ { task, newer, cancelled }, DDP_SAID_SRUN, 2 },
		{ { cancelled, task }, DDP_SAID_OTHERS, 0 },
		{ { aborted, task }, DDP_SAID_OTHERS, 0 },
		{ { task }, DDP_SAID_NOTHING, 0 },
	};

	check_orders(orders, sizeof(orders) / sizeof(orders[0]), true);
}

/* srun may have said all before an agent tells the step's number. */
Test(sieve, knows_that_of_a_step_without_a_number)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = { .said = &said, .now_ns = 5 };

	free(pass(&sieve, "srun: error: n1: task 3: Killed\n"
		  "srun: Terminating StepId=71.2\n", 7));
	cr_expect_eq(said.ends, DDP_SAID_SRUN);
	free(said.failed.data);
}

Test(sieve, knows_what_srun_says_of_its_ranks)
{
	static const char text[] =
		"srun: interrupt (one more within 1 sec to abort)\n"
		"srun: StepId=1.0 tasks 0-3: running\n"
		"srun: sending Ctrl-C to StepId=1.0\n"
		"n1: task 3: Killed, says a task\n";
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = { .said = &said, .now_ns = 5 };
	char *failed;

	free(pass(&sieve, text, 9));
	cr_expect_not(said.interrupted_ns, "that is another step");
	cr_expect_eq(said.failed.length, 0);
	sieve.job_id = 1;
	free(pass(&sieve, text, 9));
	cr_expect_eq(said.interrupted_ns, 5);
	free(pass(&sieve, "srun: error: n1: task 3: Killed\n", 9));
	free(pass(&sieve, "srun: error: n1: tasks 0-1,4: Exited with exit code "
		  "3\nsrun: error: no task 7\n", 9));
	free(pass(&sieve, "srun: error: task 5 launch failed: Unspecified error"
		  "\nsrun: error: task 6 launch\n", 9));
	failed = ddp_text_finish(&said.failed);
	cr_expect_str_eq(failed, "3,0-1,4,5,");
	free(failed);
}

/* A line that is too long does not tell which ranks it names. */
Test(sieve, leaves_a_long_list_of_ranks_out)
{
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = { .said = &said, .now_ns = 5 };
	struct ddp_text line = { 0 };
	size_t i;

	ddp_text_add(&line, "srun: error: n2: tasks 0");
	for (i = 2; i < 150; i += 2)
		ddp_text_add(&line, ",%zu", i);
	ddp_text_add(&line, ": Killed\nsrun: error: n1: task 1: Killed\n");
	free(pass(&sieve, line.data, 9));
	cr_expect_eq(said.failed.length, strlen("1,"));
	free(line.data);
	free(said.failed.data);
}

/* Open MPI 4 and 5 say it in the same words; srun --label puts some before. */
Test(sieve, knows_who_has_called_mpi_abort)
{
	static const struct {
		const char *text;
		uint32_t aborter;
	} says[] = {
		{ RULER "MPI_ABORT was invoked on rank 12 in communicator "
		  "MPI_COMM_WORLD\nwith errorcode 1.\n" RULER, 13 },
		{ "3: MPI_ABORT was invoked on rank 0 in communicator "
		  "MPI_COMM_WORLD\n3:   Proc: [[1,0],0]\n", 1 },
		{ "MPI_ABORT was invoked on rank 4 in communicator "
		  "MPI_COMM_WORLD\nMPI_ABORT was invoked on rank 2 in "
		  "communicator MPI_COMM_WORLD\n", 5 },
		{ "MPI_ABORT was invoked on rank 4 in communicator MPI "
		  "COMMUNICATOR 3 SPLIT FROM 0\n", 0 },
		{ "MPI_ABORT was invoked on rank in communicator "
		  "MPI_COMM_WORLD\n", 0 },
		{ "MPI_ABORT was invoked on rank 99999999999 in communicator "
		  "MPI_COMM_WORLD\n", 0 },
		/* What comes of the step's end. */
		{ "srun: Job step aborted: Waiting up to 7 seconds\n"
		  "MPI_ABORT was invoked on rank 4 in communicator "
		  "MPI_COMM_WORLD\n", 0 },
	};
	size_t i;
	char *out;

	for (i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		struct ddp_said said = { 0 };
		struct ddp_sieve sieve = { .said = &said, .now_ns = 5 };

		out = pass(&sieve, says[i].text, 7);
		cr_expect_str_eq(out, says[i].text);
		cr_expect_eq(said.aborter_ns ? said.aborter + 1 : 0,
			     says[i].aborter, "case %zu", i);
		free(out);
	}
}

Test(sieve, names_nodes_without_tasks)
{
	static const char text[] =
		"srun: error: Task launch for StepId=7.1 failed on node n2: "
		"Communication connection failure\n"
		"Task launch for StepId=7.1 failed on node n3: told by a rank\n"
		"srun: error: Task launch for StepId=7.2 failed on node n4: of "
		"another step\n"
		"srun: error: Task launch for StepId=7.1 failed on node n5: "
		"Socket timed out on send/recv operation\n"
		/* Slurm writes so of a heterogeneous step's component. */
		"srun: error: Task launch for StepId=7.1+12 failed on node n6: "
		"Communication connection failure\n"
		"srun: error: Task launch for StepId=7.1: n7 is down\n";
	struct ddp_said said = { 0 };
	struct ddp_sieve sieve = {
		.said = &said, .now_ns = 5, .job_id = 7, .step_id = 1,
	};
	char *passes = pass(&sieve, text, 7);
	char *names = ddp_text_finish(&said.unlaunched);

	cr_expect_str_eq(passes, text);
	cr_expect_str_eq(names, "7 1 n2\n7 2 n4\n7 1 n5\n7 1 n6\n");
	free(passes);
	free(names);
}
