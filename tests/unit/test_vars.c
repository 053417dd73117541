/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of a task, and the record of what was set. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "layout/vars.h"

static const struct ddp_vars vars = {
	.rank = { .rank = 5, .local_rank = 1, .local_world_size = 3,
		  .node_rank = 2, .host_index = 7, .host = "n8" },
	.world_size = UINT32_MAX, .node_count = 4, .ranks_per_node = 3,
	.cpus = 16,
	.master_addr = "n1", .master_port = 23456, .second_port = 23457,
	.positions = "0,2", .tf_config = "{}", .interface = "eth0",
	.nccl_interface = "=eth0", .visible = "CUDA_VISIBLE_DEVICES=1,0",
	.no_device = true,
	.error_file = "/tmp/a.5", .restarts = 0, .restarts_max = 4,
	.heartbeat_file = "/tmp/a.5.beats", .ras_port = 23458,
	.placement = "5\t2",
	.record = "job=12.3 RANK=5",
};

static const struct {
	const char *name, *value;
	enum ddp_var_rule rule;
} table[] = {
	{ "RANK", "5", DDP_VAR_OURS },
	{ "LOCAL_RANK", "1", DDP_VAR_OURS },
	{ "WORLD_SIZE", "4294967295", DDP_VAR_OURS },
	{ "LOCAL_WORLD_SIZE", "3", DDP_VAR_OURS },
	{ "NODE_RANK", "2", DDP_VAR_OURS },
	{ "GROUP_RANK", "2", DDP_VAR_OURS },
	{ "GROUP_WORLD_SIZE", "4", DDP_VAR_OURS },
	{ "ROLE_RANK", "5", DDP_VAR_OURS },
	{ "ROLE_WORLD_SIZE", "4294967295", DDP_VAR_OURS },
	{ "SLURM_NTASKS_PER_NODE", "3", DDP_VAR_USERS },
	{ "MASTER_ADDR", "n1", DDP_VAR_USERS },
	{ "MASTER_PORT", "23456", DDP_VAR_USERS },
	{ "JAX_COORDINATOR_ADDRESS", "n1:23457", DDP_VAR_USERS },
	{ "JAX_LOCAL_DEVICE_IDS", "0,2", DDP_VAR_USERS },
	{ "TF_CONFIG", "{}", DDP_VAR_USERS },
	{ "OMP_NUM_THREADS", "16", DDP_VAR_USERS },
	{ "GLOO_SOCKET_IFNAME", "eth0", DDP_VAR_USERS },
	{ "NCCL_SOCKET_IFNAME", "=eth0", DDP_VAR_USERS },
	{ "CUDA_DEVICE_ORDER", "PCI_BUS_ID", DDP_VAR_OURS },
	{ "CUDA_VISIBLE_DEVICES", "1,0", DDP_VAR_SLURMS },
	{ "ROCR_VISIBLE_DEVICES", NULL, DDP_VAR_SLURMS },
	{ "ACCELERATE_USE_CPU", "true", DDP_VAR_USERS },
	{ "PET_NNODES", "torchrun-needs-srun---ddp=torchrun", DDP_VAR_USERS },
	{ "PET_NODE_RANK", NULL, DDP_VAR_USERS },
	{ "PET_NPROC_PER_NODE", NULL, DDP_VAR_USERS },
	{ "PET_MASTER_ADDR", NULL, DDP_VAR_USERS },
	{ "PET_MASTER_PORT", NULL, DDP_VAR_USERS },
	{ "PET_RDZV_ENDPOINT", NULL, DDP_VAR_USERS },
	{ "PET_RDZV_ID", NULL, DDP_VAR_USERS },
	{ "TORCHELASTIC_ERROR_FILE", "/tmp/a.5", DDP_VAR_USERS },
	{ "RESTART_COUNT", "0", DDP_VAR_OURS },
	{ "TORCHELASTIC_RESTART_COUNT", "0", DDP_VAR_OURS },
	{ "TORCHELASTIC_MAX_RESTARTS", "4", DDP_VAR_OURS },
	{ "DDP_HEARTBEAT_FILE", "/tmp/a.5.beats", DDP_VAR_OURS },
	{ "NCCL_RAS_ADDR", "localhost:23458", DDP_VAR_USERS },
	{ "DDP_PLACEMENT", "5\t2", DDP_VAR_HANDED },
	{ "DDP_SET", "job=12.3 RANK=5", DDP_VAR_HANDED },
};

#define COUNT (sizeof(table) / sizeof(table[0]))

/* The value of a variable by name; "none" where it has none. */
static const char *get(const struct ddp_vars *from, const char *name)
{
	static char buffer[DDP_VARS_BUFFER_SIZE];
	const struct ddp_var *var;
	const char *value;
	size_t i;

	for (i = 0; (var = ddp_vars_get(i)); i++)
		if (strcmp(var->name, name) == 0)
			break;
	value = ddp_vars_value(i, from, buffer);
	return value ? value : "none";
}

Test(vars, are_those_of_the_table)
{
	const struct ddp_var *var;
	size_t i;

	for (i = 0; i < COUNT; i++) {
		var = ddp_vars_get(i);
		cr_assert(var);
		cr_expect_str_eq(var->name, table[i].name);
		cr_expect_eq(var->rule, table[i].rule, "%s", var->name);
		cr_expect_str_eq(get(&vars, var->name), table[i].value ?
				 table[i].value : "none", "%s", var->name);
	}
	cr_expect_null(ddp_vars_get(COUNT));
	cr_expect_null(ddp_vars_value(COUNT, &vars, NULL));
}

Test(vars, leaves_out_what_is_not_known)
{
	struct ddp_vars none = { .world_size = 1 };
	size_t i;

	for (i = 0; i < COUNT; i++) {
		const char *value = get(&none, table[i].name);

		if ((table[i].rule == DDP_VAR_OURS && i < 9) ||
		    strcmp(table[i].name, "PET_NNODES") == 0)
			cr_expect_str_neq(value, "none", "%s", table[i].name);
		else
			cr_expect_str_eq(value, "none", "%s", table[i].name);
	}
	none.master_addr = none.interface = none.visible = "";
	cr_expect_str_eq(get(&none, "MASTER_ADDR"), "none");
	cr_expect_str_eq(get(&none, "GLOO_SOCKET_IFNAME"), "none");
	cr_expect_str_eq(get(&none, "CUDA_VISIBLE_DEVICES"), "none");
}

Test(vars, coordinate_jax)
{
	struct ddp_vars jax = { .second_port = 65535, .positions = "12" };
	char name[DDP_HOSTNAME_MAX + 2], wanted[DDP_HOSTNAME_MAX + 16];

	cr_expect_str_eq(get(&jax, "JAX_COORDINATOR_ADDRESS"), "none");
	jax.master_addr = "fd00::9";
	cr_expect_str_eq(get(&jax, "JAX_COORDINATOR_ADDRESS"),
			 "[fd00::9]:65535");
	memset(name, 'x', sizeof(name));
	name[1] = ':';
	name[DDP_HOSTNAME_MAX] = '\0';
	jax.master_addr = name;
	snprintf(wanted, sizeof(wanted), "[%s]:65535", name);
	cr_expect_str_eq(get(&jax, "JAX_COORDINATOR_ADDRESS"), wanted);
	name[DDP_HOSTNAME_MAX] = 'x';
	name[DDP_HOSTNAME_MAX + 1] = '\0';
	cr_expect_str_eq(get(&jax, "JAX_COORDINATOR_ADDRESS"), "none");

	cr_expect_str_eq(get(&jax, "JAX_LOCAL_DEVICE_IDS"), "12");
	jax.rank.local_rank = 1;
	cr_expect_str_eq(get(&jax, "JAX_LOCAL_DEVICE_IDS"), "12");
	jax.rank.local_rank = 12;
	cr_expect_str_eq(get(&jax, "JAX_LOCAL_DEVICE_IDS"), "none");
	jax.positions = "";
	cr_expect_str_eq(get(&jax, "JAX_LOCAL_DEVICE_IDS"), "none");
}

Test(vars, order_the_gpus_by_one_variable)
{
	struct ddp_vars amd = { .visible = "ROCR_VISIBLE_DEVICES=1,0" };

	cr_expect_str_eq(get(&amd, "ROCR_VISIBLE_DEVICES"), "1,0");
	cr_expect_str_eq(get(&amd, "CUDA_VISIBLE_DEVICES"), "none");
	cr_expect_str_eq(get(&amd, "CUDA_DEVICE_ORDER"), "none");
}

/* What torchrun finds where it is started once on each node */
Test(vars, tell_torchrun_its_world)
{
	struct ddp_vars from = vars;

	from.world_size = from.node_count = 3;
	from.gpus = 4;
	from.job_id = 12;
	cr_expect_str_eq(get(&from, "PET_NNODES"), "3");
	cr_expect_str_eq(get(&from, "PET_NODE_RANK"), "2");
	cr_expect_str_eq(get(&from, "PET_NPROC_PER_NODE"), "4");
	cr_expect_str_eq(get(&from, "PET_MASTER_ADDR"), "n1");
	cr_expect_str_eq(get(&from, "PET_MASTER_PORT"), "23456");
	cr_expect_str_eq(get(&from, "PET_RDZV_ENDPOINT"), "n1:23456");
	cr_expect_str_eq(get(&from, "PET_RDZV_ID"), "12.0");
	from.master_addr = "fd00::1";
	from.gpus = 0;
	cr_expect_str_eq(get(&from, "PET_RDZV_ENDPOINT"), "[fd00::1]:23456");
	cr_expect_str_eq(get(&from, "PET_NPROC_PER_NODE"), "none");
}

Test(vars, count_gpus)
{
	cr_expect_eq(ddp_vars_count_gpus(NULL), 0);
	cr_expect_eq(ddp_vars_count_gpus(""), 0);
	cr_expect_eq(ddp_vars_count_gpus("NoDevFiles"), 0);
	cr_expect_eq(ddp_vars_count_gpus("0"), 1);
	cr_expect_eq(ddp_vars_count_gpus("3,1,2"), 3);
	cr_expect_eq(ddp_vars_count_gpus("GPU-0,MIG-1"), 2);
}

Test(vars, records)
{
	char record[DDP_VARS_RECORD_SIZE];

	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), 12, 3), 0);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_ADDR", "n1"), 0);
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_PORT", "23456"), 0);
	cr_expect_str_eq(record,
			 "job=12.3 MASTER_ADDR=n1 MASTER_PORT=23456");
	cr_expect(ddp_vars_recorded(record, "MASTER_ADDR", "n1"));
	cr_expect(ddp_vars_recorded(record, "MASTER_PORT", "23456"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", "n"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", "n12"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR", ""));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_PORT", "2345"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER", "n1"));
	cr_expect_not(ddp_vars_recorded(record, "ADDR", "n1"));
	cr_expect_not(ddp_vars_recorded(record, "OMP_NUM_THREADS", "1"));
	cr_expect_not(ddp_vars_recorded(record, "MASTER_ADDR",
					"n1 MASTER_PORT=23456"));
	cr_expect_not(ddp_vars_recorded("", "MASTER_ADDR", "n1"));
	cr_expect_not(ddp_vars_recorded(NULL, "MASTER_ADDR", "n1"));
}

Test(vars, record_does_not_overflow)
{
	char record[20];

	cr_expect_eq(ddp_vars_record_begin(record, 8, 12, 3), -1);
	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), 12, 3), 0);
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record),
					 "MASTER_ADDR", "n1"), -1);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record), "A", "n 1"),
		     -1);
	cr_expect_str_eq(record, "job=12.3");
	cr_expect_eq(ddp_vars_record_add(record, sizeof(record), "A",
					 "12345678"), 0);
	cr_expect_str_eq(record, "job=12.3 A=12345678");
}

/* A record has room for all values even if each is as long as it may be. */
Test(vars, record_holds_the_longest)
{
	char record[DDP_VARS_RECORD_SIZE], value[DDP_HOSTNAME_MAX + 1];
	const struct ddp_var *var;
	size_t i;

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	cr_expect_eq(ddp_vars_record_begin(record, sizeof(record), UINT32_MAX,
					   UINT32_MAX), 0);
	/* Those that are no user's are short words or numbers of 32 bits. */
	for (i = 0; (var = ddp_vars_get(i)); i++)
		if ((var->rule == DDP_VAR_OURS ||
		     var->rule == DDP_VAR_USERS) &&
		    strcmp(var->name, "TF_CONFIG") != 0)
			cr_expect_eq(ddp_vars_record_add(record,
					sizeof(record), var->name,
					var->rule == DDP_VAR_USERS ? value :
					"4294967295"), 0, "%s", var->name);
}
