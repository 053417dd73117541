/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators in the making: unique ids, kept as the cards bring them, and a
 * job of one rank over a fake NCCL.
 */
#include <criterion/criterion.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/comm.h"
#include "nccl/setup.h"

TestSuite(setup, .timeout = 60);

/* A card with three ids of group 1, for these roots, of bytes 11, 12, 13. */
static struct ddp_card card(uint32_t a, uint32_t b, uint32_t c)
{
	struct ddp_card made = { .id_count = 3 };
	const uint32_t roots[] = { a, b, c };
	int i;

	for (i = 0; i < 3; i++) {
		made.ids[i].group = 1;
		made.ids[i].root = roots[i];
		memset(made.ids[i].bytes, 11 + i, DDP_ID_SIZE);
	}
	return made;
}

/* Of group 1 rank 4 is the root of blocks 0 and 1, rank 5 of block 2. */
Test(setup, counts_an_id_once)
{
	uint32_t roots[] = { 4, 4, 5 };
	ncclUniqueId ids[4] = { 0 };
	struct ddp_setup setup = { .team_count = 1 };
	struct ddp_team *team = &setup.teams[0];
	struct ddp_card other;

	team->group = 1;
	team->roster.root_count = 3;
	team->roster.roots = roots;
	team->ids = ids;
	other = card(0, 0, 0);
	ddp_ids_keep(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	cr_expect_eq(ids[0].internal[127], 11);
	ddp_ids_keep(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	/* ids for another's block, and for blocks that do not exist */
	other = card(2, 3, UINT32_MAX);
	ddp_ids_keep(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	/* an id of another group, and an id of zeros */
	other = card(1, 1, 0);
	other.ids[0].group = 2;
	memset(other.ids[1].bytes, 0, DDP_ID_SIZE);
	ddp_ids_keep(&setup, 4, &other);
	cr_expect_eq(team->id_count, 1);
	other = card(2, 1, 2);
	ddp_ids_keep(&setup, 5, &other);
	ddp_ids_keep(&setup, 4, &other);
	cr_expect_eq(team->id_count, 3);
	cr_expect_eq(ids[2].internal[0], 11);
	cr_expect_eq(ids[1].internal[0], 12);
	cr_expect_eq(ids[3].internal[0], 0);
}

/* ---- a job of one rank, and an NCCL that counts */

static int ids_made, comms_made, comms_aborted;
static int init_result, async_result;
static char comm;

static int get_unique_id(ncclUniqueId *id)
{
	memset(id, 7, sizeof(*id));
	ids_made++;
	return DDP_NCCL_SUCCESS;
}

static int init_rank(ncclComm_t *made, int size, ncclUniqueId id, int rank,
		     ncclConfig_t *config)
{
	(void)config;
	cr_expect(size == 1 && rank == 0 && id.internal[0] == 7);
	comms_made++;
	*made = (ncclComm_t)&comm;
	return init_result;
}

static int get_async_error(ncclComm_t of, int *result)
{
	(void)of;
	*result = async_result;
	return DDP_NCCL_SUCCESS;
}

static int abort_comm(ncclComm_t of)
{
	comms_aborted += of == (ncclComm_t)&comm;
	return DDP_NCCL_SUCCESS;
}

static const char *get_error_string(int result)
{
	(void)result;
	return "system error";
}

static const char *get_last_error(ncclComm_t of)
{
	(void)of;
	return "";
}

static const struct ddp_nccl nccl = {
	.version = 22809, .get_unique_id = get_unique_id,
	.init_rank = init_rank, .get_async_error = get_async_error,
	.abort = abort_comm, .get_error_string = get_error_string,
	.get_last_error = get_last_error,
};

static struct ddp_job *make_job(void)
{
	struct ddp_job_options options = {
		.size = sizeof(options), .launch = DDP_LAUNCH_SINGLE,
	};
	struct ddp_job *job = ddp_job_create(&options, NULL);

	cr_assert_not_null(job);
	return job;
}

/* Begin a call for world and node, whose colors and keys are all 0. */
static void begin(struct ddp_setup *setup, struct ddp_job *job)
{
	const struct ddp_nccl_options options = {
		.size = sizeof(options), .timeout_ms = 50,
	};
	const uint32_t zero = 0;

	cr_assert_eq(ddp_setup_begin(setup, job, &options, NULL), 0);
	setup->nccl = &nccl;
	setup->mine.nccl = 22809;
	ddp_setup_add(setup, DDP_GROUP_WORLD, "world", NULL, NULL);
	ddp_setup_add(setup, DDP_GROUP_NODE, "node", &zero, &zero);
	cr_assert_eq(setup->team_count, 2);
}

Test(setup, makes_an_id_and_a_communicator_for_each_group)
{
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	struct ddp_setup setup;

	begin(&setup, job);
	cr_assert_eq(ddp_setup_finish(&setup, &error), 0, "%s", error.text);
	cr_expect_eq(ids_made, 2);
	cr_expect_eq(comms_made, 2);
	cr_expect_eq(comms_aborted, 0);
	cr_expect_not_null(setup.teams[1].comm);
	ddp_setup_end(&setup);
	ddp_job_destroy(job);
}

/* An id opens a listener, which nobody would close. */
Test(setup, a_rank_that_has_failed_makes_no_ids)
{
	struct ddp_job *job = make_job();
	struct ddp_error why = { 0 }, error = { 0 };
	struct ddp_setup setup;

	begin(&setup, job);
	ddp_error_set(&why, DDP_ERROR_CUDA, "no GPU: it is gone");
	ddp_setup_fail(&setup, &why);
	ddp_error_set(&why, DDP_ERROR_SYSTEM, "a later error");
	ddp_setup_fail(&setup, &why);
	cr_expect_eq(ddp_setup_finish(&setup, &error), -1);
	cr_expect_eq(ids_made, 0);
	cr_expect_eq(comms_made, 0);
	cr_expect_eq(error.code, DDP_ERROR_CUDA, "the first error counts");
	cr_expect(strstr(error.text, ": no GPU: it is gone"), "%s", error.text);
	ddp_setup_end(&setup);
	/* The job goes on: the next call works. */
	begin(&setup, job);
	cr_expect_eq(ddp_setup_finish(&setup, &error), 0, "%s", error.text);
	ddp_setup_end(&setup);
	ddp_job_destroy(job);
}

/* Ids of a call that was refused serve the next, as nobody has used them. */
Test(setup, ids_that_nobody_used_are_used_again)
{
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	struct ddp_setup setup;

	begin(&setup, job);
	/* No card has such a kind of GPU, so that the call is refused. */
	setup.mine.gpu.kind = (enum ddp_gpu_id_kind)99;
	cr_expect_eq(ddp_setup_finish(&setup, &error), -1);
	cr_expect_eq(ids_made, 2);
	cr_expect_eq(comms_made, 0);
	ddp_setup_end(&setup);
	begin(&setup, job);
	cr_expect_eq(ddp_setup_finish(&setup, &error), 0, "%s", error.text);
	cr_expect_eq(ids_made, 2);
	cr_expect_eq(comms_made, 2);
	ddp_setup_end(&setup);
	ddp_job_destroy(job);
}

/* Both are ended: the one that failed, and the one that was there before. */
Test(setup, an_initialisation_that_does_not_end_is_aborted)
{
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	struct ddp_setup setup;

	begin(&setup, job);
	init_result = async_result = DDP_NCCL_IN_PROGRESS;
	cr_expect_eq(ddp_setup_finish(&setup, &error), -1);
	cr_expect_eq(error.code, DDP_ERROR_TIMEOUT);
	cr_expect_str_eq(error.text, "the initialisation of the world "
			 "communicator of 1 rank was not done in time: a rank "
			 "does not take part, or cannot be reached");
	cr_expect_eq(comms_made, 1, "the node's is not begun");
	cr_expect_eq(comms_aborted, 1);
	cr_expect_null(setup.teams[0].comm);
	ddp_setup_end(&setup);
	ddp_job_destroy(job);
}

Test(setup, an_initialisation_that_fails_is_told_in_the_words_of_nccl)
{
	struct ddp_job *job = make_job();
	struct ddp_error error = { 0 };
	struct ddp_setup setup;

	begin(&setup, job);
	init_result = DDP_NCCL_IN_PROGRESS;
	async_result = 2;
	cr_expect_eq(ddp_setup_finish(&setup, &error), -1);
	cr_expect_eq(error.code, DDP_ERROR_NCCL);
	cr_expect_str_eq(error.text, "NCCL 2.28.9, in the initialisation of "
			 "the world communicator of 1 rank: system error");
	cr_expect_eq(comms_aborted, 1);
	ddp_setup_end(&setup);
	ddp_job_destroy(job);
}

Test(setup, communicators_of_no_or_unknown_groups_are_refused)
{
	static const unsigned int groups[] = { 0, 8, 15, 1u << 31 };
	struct ddp_job *job = make_job();
	struct ddp_nccl_comms comms = { .world = (ncclComm_t)&comm };
	struct ddp_error error;
	char text[32];
	size_t i;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		error = (struct ddp_error){ 0 };
		snprintf(text, sizeof(text), "groups is 0x%x: set it",
			 groups[i]);
		cr_expect_eq(ddp_nccl_create(job, groups[i], NULL, &comms,
					     &error), -1);
		cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
		cr_expect(strstr(error.text, text), "%s", error.text);
	}
	cr_expect_eq(comms.world, (ncclComm_t)&comm, "it is as it was");
	ddp_job_destroy(job);
}

/* ---- the config */

Test(setup, a_config_is_passed_on_without_blocking)
{
	struct {
		ncclConfig_t config;
		char behind[100];
	} given = {
		.config = {
			.size = sizeof(given), .magic = DDP_NCCL_CONFIG_MAGIC,
			.version = 22809, .blocking = 1, .minCTAs = 3,
		},
	};
	ncclConfig_t *copy;

	memset(given.behind, 'b', sizeof(given.behind));
	copy = ddp_init_copy_config(&given.config, NULL);
	cr_assert_not_null(copy);
	cr_expect_eq(copy->blocking, 0, "or no deadline could hold");
	given.config.blocking = 0;
	cr_expect_eq(memcmp(copy, &given, sizeof(given)), 0);
	free(copy);
	copy = ddp_init_copy_config(NULL, NULL);
	cr_assert_not_null(copy);
	cr_expect_eq(copy->magic, DDP_NCCL_CONFIG_MAGIC);
	cr_expect_eq(copy->blocking, 0);
	free(copy);
}

/* One that was not set to NCCL_CONFIG_INITIALIZER may have any size. */
Test(setup, what_is_no_config_is_refused)
{
	static union {
		ncclConfig_t config;
		char bytes[70000];
	} given;
	const ncclConfig_t right = {
		.size = sizeof(right), .magic = DDP_NCCL_CONFIG_MAGIC,
		.version = 22809,
	};
	struct ddp_error error = { 0 };

	given.config = right;
	given.config.size = sizeof(given);
	cr_expect_null(ddp_init_copy_config(&given.config, &error));
	cr_expect(strstr(error.text, "NCCL_CONFIG_INITIALIZER"), "%s",
		  error.text);
	given.config.size = offsetof(ncclConfig_t, blocking);
	cr_expect_null(ddp_init_copy_config(&given.config, NULL));
	given.config = right;
	given.config.magic++;
	cr_expect_null(ddp_init_copy_config(&given.config, NULL));
	given.config = right;
	given.config.version = 21300;
	cr_expect_null(ddp_init_copy_config(&given.config, NULL));
}
