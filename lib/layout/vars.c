/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the variables that every task gets, and the record of them. */
#define _GNU_SOURCE
#include "layout/vars.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum field {
	FIELD_RANK,
	FIELD_LOCAL_RANK,
	FIELD_WORLD_SIZE,
	FIELD_LOCAL_WORLD_SIZE,
	FIELD_NODE_RANK,
	FIELD_NODE_COUNT,
	FIELD_MASTER_ADDR,
	FIELD_MASTER_PORT,
	FIELD_CPUS,
	FIELD_INTERFACE,
	FIELD_NCCL_INTERFACE
};

static const struct {
	const char *name;
	enum field field;
	bool user_wins;
} rows[] = {
	{ "RANK", FIELD_RANK, false },
	{ "LOCAL_RANK", FIELD_LOCAL_RANK, false },
	{ "WORLD_SIZE", FIELD_WORLD_SIZE, false },
	{ "LOCAL_WORLD_SIZE", FIELD_LOCAL_WORLD_SIZE, false },
	{ "NODE_RANK", FIELD_NODE_RANK, false },
	{ "GROUP_RANK", FIELD_NODE_RANK, false },
	{ "GROUP_WORLD_SIZE", FIELD_NODE_COUNT, false },
	{ "ROLE_RANK", FIELD_RANK, false },
	{ "ROLE_WORLD_SIZE", FIELD_WORLD_SIZE, false },
	{ "MASTER_ADDR", FIELD_MASTER_ADDR, true },
	{ "MASTER_PORT", FIELD_MASTER_PORT, true },
	{ "OMP_NUM_THREADS", FIELD_CPUS, true },
	{ "GLOO_SOCKET_IFNAME", FIELD_INTERFACE, true },
	{ "NCCL_SOCKET_IFNAME", FIELD_NCCL_INTERFACE, true },
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

size_t ddp_vars_count(void)
{
	return ROW_COUNT;
}

const char *ddp_vars_name(size_t index)
{
	return index < ROW_COUNT ? rows[index].name : NULL;
}

bool ddp_vars_user_wins(size_t index)
{
	return index < ROW_COUNT && rows[index].user_wins;
}

/* Print to out[size]; -1 if it does not fit. */
static int print(char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int print(char *out, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(out, size, format, args);
	va_end(args);
	return length < 0 || (size_t)length >= size ? -1 : 0;
}

static int format_number(uint32_t number, char *value, size_t size)
{
	return print(value, size, "%u", number) ? -1 : 1;
}

static int format_text(const char *text, char *value, size_t size)
{
	if (print(value, size, "%s", text ? text : ""))
		return -1;
	return value[0] != '\0';
}

int ddp_vars_format(size_t index, const struct ddp_vars *vars, char *value,
		    size_t size)
{
	if (index >= ROW_COUNT)
		return -1;
	switch (rows[index].field) {
	case FIELD_RANK:
		return format_number(vars->rank.rank, value, size);
	case FIELD_LOCAL_RANK:
		return format_number(vars->rank.local_rank, value, size);
	case FIELD_WORLD_SIZE:
		return format_number(vars->world_size, value, size);
	case FIELD_LOCAL_WORLD_SIZE:
		return format_number(vars->rank.local_world_size, value, size);
	case FIELD_NODE_RANK:
		return format_number(vars->rank.node_rank, value, size);
	case FIELD_NODE_COUNT:
		return format_number(vars->node_count, value, size);
	case FIELD_MASTER_ADDR:
		return format_text(vars->master_addr, value, size);
	case FIELD_MASTER_PORT:
		if (vars->master_port == 0)
			return format_text(NULL, value, size);
		return format_number(vars->master_port, value, size);
	case FIELD_CPUS:
		if (vars->cpus == 0)
			return format_text(NULL, value, size);
		return format_number(vars->cpus, value, size);
	case FIELD_INTERFACE:
		return format_text(vars->interface, value, size);
	case FIELD_NCCL_INTERFACE:
		return format_text(vars->nccl_interface, value, size);
	}
	return -1;
}

int ddp_vars_record_begin(char *record, size_t size, uint32_t job_id,
			  uint32_t step_id)
{
	return print(record, size, "job=%u.%u", job_id, step_id);
}

int ddp_vars_record_add(char *record, size_t size, const char *name,
			const char *value)
{
	size_t used = strlen(record);

	if (strchr(value, ' '))
		return -1;
	if (print(record + used, size - used, " %s=%s", name, value)) {
		record[used] = '\0';
		return -1;
	}
	return 0;
}

bool ddp_vars_recorded(const char *record, const char *name,
		       const char *value)
{
	size_t name_length = strlen(name), value_length = strlen(value);
	const char *at = record, *end;

	if (!record)
		return false;
	for (;; at = end + 1) {
		end = strchrnul(at, ' ');
		if ((size_t)(end - at) == name_length + 1 + value_length &&
		    strncmp(at, name, name_length) == 0 &&
		    at[name_length] == '=' &&
		    strncmp(at + name_length + 1, value, value_length) == 0)
			return true;
		if (*end == '\0')
			return false;
	}
}
