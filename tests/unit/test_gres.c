/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs in the texts of --gres, --gpus and scontrol. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <string.h>

#include "request/gres.h"

struct count_row {
	char text[64];
	uint32_t gpus;
};

ParameterizedTestParameters(gres, counts_gres)
{
	static struct count_row table[] = {
		{ "", 0 },
		{ "none", 0 },
		{ "NONE", 0 },
		{ "gpu", 1 },
		{ "gpu:2", 2 },
		{ "gpu:0", 0 },
		{ "gpu:a100", 1 },
		{ "gpu:a100:2", 2 },
		{ "gpu:1g.10gb:3", 3 },
		{ "gpu:1g.10gb", 1 },
		{ "gpu:2080ti", 1 },
		{ "gpu:nvidia_h100-sxm5_80gb:8", 8 },
		{ "gpu:a100:2,gpu:v100:1", 3 },
		{ "gpu:a100,gpu:v100", 2 },
		{ "gpu:a100:2,gpu:0", 2 },
		{ "gres:gpu", 1 },
		{ "gres:gpu:2", 2 },
		{ "gres/gpu:2", 2 },
		{ "gres/gpu=2", 2 },
		{ "gres/gpu:a100=2", 2 },
		{ "gres:gpu:a100:2,gres:gpu:v100:1", 3 },
		{ "gpu:2(S:0-1)", 2 },
		{ "gpu(S:0)", 1 },
		{ "gpu:a100(S:0)", 1 },
		{ "gpu:a100:2(IDX:0,2-3)", 2 },
		{ "gpu:a100:2(IDX:0,2-3),gpu:v100:1(IDX:1)", 3 },
		{ "gpu:a100:2(IDX:0,2-3),shard:4(IDX:1)", 2 },
		{ "shard:4,gpu:2", 2 },
		{ "gres:shard:4,gres:gpu:2", 2 },
		{ "shard", 0 },
		{ "mps:100", 0 },
		{ "nic:mlx5:2,gpu:1", 1 },
		{ "gpus:2", 0 },
		{ "xgpu:2", 0 },
		{ "cpu=4,mem=8G,node=1,billing=4,gres/gpu=2", 2 },
		{ "gpu:2,", 2 },
		{ ",gpu:2", 2 },
		{ ",,", 0 },
		{ "gpu:1k", 1024 },
		{ "gpu:1K", 1024 },
		{ "gpu:1KiB", 1024 },
		{ "gpu:a100:2kb", 2000 },
		{ "gpu:0m", 0 },
		{ "gpu:65535", 65535 },
		{ "gpu:007", 7 },
	};

	return cr_make_param_array(struct count_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct count_row *row, gres, counts_gres)
{
	struct ddp_error error = { 0 };
	uint32_t gpus = 99;

	cr_assert_eq(ddp_gres_count_gpus(row->text, &gpus, &error), 0, "%s",
		     error.text);
	cr_expect_eq(gpus, row->gpus, "%s: %u", row->text, gpus);
}

ParameterizedTestParameters(gres, counts_gpus)
{
	static struct count_row table[] = {
		{ "", 0 },
		{ "0", 0 },
		{ "2", 2 },
		{ "1k", 1024 },
		{ "a100", 1 },
		{ "a100:2", 2 },
		{ "a100=2", 2 },
		{ "a100:2,v100:1", 3 },
		{ "gpu", 1 },
		{ "gpu:2", 2 },
	};

	return cr_make_param_array(struct count_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct count_row *row, gres, counts_gpus)
{
	struct ddp_error error = { 0 };
	uint32_t gpus = 99;

	cr_assert_eq(ddp_gpus_count(row->text, &gpus, &error), 0, "%s",
		     error.text);
	cr_expect_eq(gpus, row->gpus, "%s: %u", row->text, gpus);
}

struct refusal {
	char text[64];
	int byte;
	char expected[48];
};

static void check(int (*count)(const char *, uint32_t *, struct ddp_error *),
		  const struct refusal *row)
{
	struct ddp_error error = { 0 };
	uint32_t gpus = 99;
	char byte[32];

	snprintf(byte, sizeof(byte), ", byte %d: ", row->byte);
	cr_expect_eq(count(row->text, &gpus, &error), -1, "%s: %u", row->text,
		     gpus);
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, byte), "%s", error.text);
	cr_expect_not_null(strstr(error.text, row->expected), "%s",
			   error.text);
	cr_expect_eq(gpus, 99);
}

ParameterizedTestParameters(gres, refuses_gres)
{
	static struct refusal table[] = {
		{ "gpu:", 5, "a number or type" },
		{ "gpu:,gpu:1", 5, "a number or type" },
		{ "gpu:(S:0)", 5, "a number or type" },
		{ "gpu::1", 5, "a type" },
		{ "gpu:2:1", 5, "a type" },
		{ "gpu:a100:", 10, "a number" },
		{ "gpu:x:y:z", 7, "a number" },
		{ "gpu:x:1:2", 7, "a number" },
		{ "gpu:-1", 5, "a number or type" },
		{ "gpu:+1", 5, "a number or type" },
		{ "gpu:a100:-1", 10, "a number" },
		{ "gpu: 1", 5, "a number or type" },
		{ "gpu:a100:2 ", 10, "a number" },
		{ "gpu:65536", 5, "at most 65535" },
		{ "gpu:64k", 5, "at most 65535" },
		{ "gpu:1m", 5, "at most 65535" },
		{ "gpu:a100:16384p", 10, "at most 65535" },
		{ "gpu:999999999999999999p", 5, "at most 65535" },
		{ "gpu:99999999999999999999", 5, "a number or type" },
		{ "gpu:a:65535,gpu:b:1", 1, "at most 65535" },
		{ "gpu:2(S:0", 6, "')'" },
		{ "gpu:2(S:0)x", 6, "')'" },
		{ "gpu:1,gpu:2", 10, "each type of GPU once" },
		{ "gpu:a:1,gpu:a:2", 12, "each type of GPU once" },
		{ "gpu:2,gpu:a100:1", 10, "for all GPUs or for none" },
		{ "gpu:a100:1,gpu:2", 15, "for all GPUs or for none" },
		{ "gres/gpu=2,gres/gpu:a100=2", 20,
		  "for all GPUs or for none" },
	};

	return cr_make_param_array(struct refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct refusal *row, gres, refuses_gres)
{
	check(ddp_gres_count_gpus, row);
}

ParameterizedTestParameters(gres, refuses_gpus)
{
	static struct refusal table[] = {
		{ "-1", 1, "a number or type" },
		{ ":2", 1, "a type" },
		{ "a100:", 6, "a number" },
		{ "a100:b", 6, "a number" },
		{ "2:2", 1, "a type" },
		{ "65536", 1, "at most 65535" },
		{ "1,2", 3, "each type of GPU once" },
		{ "a100:1,2", 8, "for all GPUs or for none" },
	};

	return cr_make_param_array(struct refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct refusal *row, gres, refuses_gpus)
{
	check(ddp_gpus_count, row);
}

Test(gres, bounds_the_types)
{
	char text[1024] = "";
	uint32_t gpus = 0;
	size_t i;

	for (i = 0; i < 64; i++)
		snprintf(text + strlen(text), 16, "gpu:t%zu,", i);
	cr_expect_eq(ddp_gres_count_gpus(text, &gpus, NULL), 0);
	cr_expect_eq(gpus, 64);
	strcat(text, "gpu:t64");
	cr_expect_eq(ddp_gres_count_gpus(text, &gpus, NULL), -1);
}

Test(gres, null_is_none)
{
	uint32_t gpus = 99;

	cr_expect_eq(ddp_gres_count_gpus(NULL, &gpus, NULL), 0);
	cr_expect_eq(gpus, 0);
	gpus = 99;
	cr_expect_eq(ddp_gpus_count(NULL, &gpus, NULL), 0);
	cr_expect_eq(gpus, 0);
}

Test(gres, divides_what_each_node_gets)
{
	static const struct {
		const char *text;
		uint32_t nodes;
		const char *share;	/* NULL: refused */
	} table[] = {
		{ "4", 2, "2" },
		{ "4", 1, "4" },
		{ "a100:4,v100:2", 2, "a100:2,v100:1" },
		{ "a100", 1, "a100:1" },
		{ "1k", 4, "256" },
		{ "0", 2, "" },
		{ "3", 2, NULL },
		{ "a100:3,v100:1", 2, NULL },
		{ "a100", 2, NULL },
		{ "longest-of-all-types:2", 2, NULL },
		{ "-1", 1, NULL },
	};
	char share[16];
	size_t i;
	int rc;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		rc = ddp_gpus_divide(table[i].text, table[i].nodes, share,
				     sizeof(share), NULL);
		cr_expect_eq(rc, table[i].share ? 0 : -1, "%s", table[i].text);
		cr_expect_str_eq(share, table[i].share ? table[i].share : "",
				 "%s", table[i].text);
	}
}
