/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the variables of a task, and DDP_SET, which records what was set. The
 * input is a line with a record that somebody else wrote, then one each for
 * MASTER_ADDR, the two interfaces and the positions of GPUs.
 */
#include "fuzz.h"
#include "layout/vars.h"

/* What was recorded is found, and nothing else is, by name or by value. */
static void check_record(const struct ddp_vars *vars, char *record)
{
	char buffer[DDP_VARS_BUFFER_SIZE], before[DDP_VARS_RECORD_SIZE];
	char other[DDP_VARS_RECORD_SIZE + 1];
	const struct ddp_var *var;
	const char *value;
	size_t i;

	CHECK(ddp_vars_record_begin(record, DDP_VARS_RECORD_SIZE, 12, 3) == 0);
	for (i = 0; (var = ddp_vars_get(i)); i++) {
		value = ddp_vars_value(i, vars, buffer);
		if (var->rule != DDP_VAR_USERS || !value)
			continue;
		strcpy(before, record);
		CHECK(!ddp_vars_recorded(record, var->name, value));
		if (ddp_vars_record_add(record, DDP_VARS_RECORD_SIZE,
					var->name, value)) {
			CHECK(strcmp(record, before) == 0);
			CHECK(strchr(value, ' ') ||
			      strlen(record) + strlen(value) >
			      DDP_VARS_RECORD_SIZE - 32);
			continue;
		}
		CHECK(strncmp(record, before, strlen(before)) == 0);
		CHECK(ddp_vars_recorded(record, var->name, value));
		snprintf(other, sizeof(other), "%sx", value);
		CHECK(!ddp_vars_recorded(record, var->name, other));
		CHECK(!ddp_vars_recorded(record, "DDP_OTHER", value));
	}
}

/* A value is not empty, and one that was made fits into the buffer. */
static void check_value(size_t index, const struct ddp_vars *vars)
{
	char buffer[DDP_VARS_BUFFER_SIZE];
	const char *value = ddp_vars_value(index, vars, buffer);

	CHECK(!value || *value != '\0');
	CHECK(value != buffer || strlen(value) < sizeof(buffer));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text, *record;
	struct ddp_vars vars = { .world_size = 4, .node_count = 2 };
	char ours[DDP_VARS_RECORD_SIZE];
	size_t i;

	record = fuzz_next_line(&rest);
	vars.rank.rank = (uint32_t)size;
	vars.cpus = (uint32_t)size % 3;
	vars.master_port = (uint16_t)(size * 4099);
	vars.master_addr = fuzz_next_line(&rest);
	vars.interface = fuzz_next_line(&rest);
	vars.nccl_interface = *rest != '\0' ? fuzz_next_line(&rest) : NULL;
	vars.visible = record;
	vars.positions = *rest != '\0' ? fuzz_next_line(&rest) : NULL;
	vars.second_port = (uint16_t)(size * 4097);
	for (i = 0; ddp_vars_get(i); i++)
		check_value(i, &vars);
	check_value(i, &vars);
	check_record(&vars, ours);
	/* A record that says so of a value has that value in it. */
	if (ddp_vars_recorded(record, "MASTER_ADDR", vars.master_addr))
		CHECK(strstr(record, vars.master_addr));
	free(text);
	return 0;
}
