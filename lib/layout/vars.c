/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the variables that every task gets, and the record of them. */
#define _GNU_SOURCE
#include "layout/vars.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

/* How a value is made of struct ddp_vars. */
enum kind {
	/* These are made of one member: */
	NUMBER,			/* uint32_t */
	COUNT,			/* uint32_t; 0: not set */
	PORT,			/* uint16_t; 0: not set */
	TEXT,			/* const char *; NULL: not set */
	/* These are made of several: */
	COORDINATOR,
	POSITIONS,
	DEVICE_ORDER,
	VISIBLE,
	NO_DEVICE,
	ENDPOINT,
	JOB,
	RESTARTS,
	RAS
};

#define RANK_MEANING "the task's rank in the step, from 0"
#define WORLD_MEANING "the number of ranks"
#define NODE_MEANING \
	"the number of the task's node, by lowest rank: rank 0 is on node 0"
#define ONE_A_NODE "with one rank a node"
#define WITH_RESTARTS "with --ddp-restarts"
#define RESTARTS_MEANING "how often the step was started again, from 0"
#define VISIBLE_MEANING "the GPUs that the task sees, in the chosen order"

#define AT(member) offsetof(struct ddp_vars, member)

static const struct row {
	struct ddp_var var;
	enum kind kind;
	size_t at;		/* the member, of those of one */
} rows[] = {
	{ { "RANK", DDP_VAR_OURS, "torch.distributed", NULL,
	    RANK_MEANING }, NUMBER, AT(rank.rank) },
	{ { "LOCAL_RANK", DDP_VAR_OURS, "torchrun", NULL,
	    "the task's rank on its node" }, NUMBER, AT(rank.local_rank) },
	{ { "WORLD_SIZE", DDP_VAR_OURS, "torch.distributed", NULL,
	    WORLD_MEANING }, NUMBER, AT(world_size) },
	{ { "LOCAL_WORLD_SIZE", DDP_VAR_OURS, "torchrun", NULL,
	    "the number of ranks on the task's node" },
	  NUMBER, AT(rank.local_world_size) },
	{ { "NODE_RANK", DDP_VAR_OURS, "Lightning", NULL,
	    NODE_MEANING }, NUMBER, AT(rank.node_rank) },
	{ { "GROUP_RANK", DDP_VAR_OURS, "torchrun", NULL,
	    NODE_MEANING }, NUMBER, AT(rank.node_rank) },
	{ { "GROUP_WORLD_SIZE", DDP_VAR_OURS, "torchrun", NULL,
	    "the number of nodes" }, NUMBER, AT(node_count) },
	{ { "ROLE_RANK", DDP_VAR_OURS, "torchrun", NULL,
	    RANK_MEANING }, NUMBER, AT(rank.rank) },
	{ { "ROLE_WORLD_SIZE", DDP_VAR_OURS, "torchrun", NULL,
	    WORLD_MEANING }, NUMBER, AT(world_size) },
	{ { "SLURM_NTASKS_PER_NODE", DDP_VAR_USERS, "Slurm, Lightning",
	    "where nodes have as many",
	    "the number of ranks on each node" }, COUNT, AT(ranks_per_node) },
	{ { "MASTER_ADDR", DDP_VAR_USERS, "torch.distributed", NULL,
	    "the node on which rank 0 runs" }, TEXT, AT(master_addr) },
	{ { "MASTER_PORT", DDP_VAR_USERS, "torch.distributed", NULL,
	    "a port on which rank 0 can listen" }, PORT, AT(master_port) },
	{ { "JAX_COORDINATOR_ADDRESS", DDP_VAR_USERS, "JAX", NULL,
	    "the master, with a port beside MASTER_PORT" }, COORDINATOR, 0 },
	{ { "JAX_LOCAL_DEVICE_IDS", DDP_VAR_USERS, "JAX",
	    "where it is not LOCAL_RANK",
	    "the task's own GPUs, by position among those that it sees" },
	  POSITIONS, 0 },
	{ { "TF_CONFIG", DDP_VAR_USERS, "TensorFlow", "with --ddp-env=tf",
	    "the ranks as workers, with a port for each" },
	  TEXT, AT(tf_config) },
	{ { "OMP_NUM_THREADS", DDP_VAR_USERS, "OpenMP",
	    "with a GPU or none a task",
	    "the number of CPUs that the task may use" }, COUNT, AT(cpus) },
	{ { "GLOO_SOCKET_IFNAME", DDP_VAR_USERS, "Gloo",
	    "where it is found",
	    "the network interface that leads to the master" },
	  TEXT, AT(interface) },
	{ { "NCCL_SOCKET_IFNAME", DDP_VAR_USERS, "NCCL",
	    "with interface= in plugstack.conf",
	    "the site's interface, in NCCL's exact form" },
	  TEXT, AT(nccl_interface) },
	{ { "CUDA_DEVICE_ORDER", DDP_VAR_OURS, "CUDA",
	    "with CUDA_VISIBLE_DEVICES",
	    "PCI_BUS_ID, by which GPUs are numbered" }, DEVICE_ORDER, 0 },
	{ { "CUDA_VISIBLE_DEVICES", DDP_VAR_SLURMS, "CUDA",
	    "where NVIDIA's GPUs are ordered", VISIBLE_MEANING }, VISIBLE, 0 },
	{ { "ROCR_VISIBLE_DEVICES", DDP_VAR_SLURMS, "ROCm",
	    "where AMD's GPUs are ordered", VISIBLE_MEANING }, VISIBLE, 0 },
	{ { "ACCELERATE_USE_CPU", DDP_VAR_USERS, "Accelerate",
	    "where no GPU is in sight",
	    "true, without which each task would be a world of one" },
	  NO_DEVICE, 0 },
	{ { "PET_NNODES", DDP_VAR_USERS, "torchrun", NULL,
	    "the number of nodes; no number where a node has several ranks" },
	  NUMBER, AT(node_count) },
	{ { "PET_NODE_RANK", DDP_VAR_USERS, "torchrun",
	    ONE_A_NODE ", rdzv static",
	    NODE_MEANING }, NUMBER, AT(rank.node_rank) },
	{ { "PET_NPROC_PER_NODE", DDP_VAR_USERS, "torchrun",
	    "with one rank a node, with GPUs",
	    "the number of GPUs that the task sees" }, COUNT, AT(gpus) },
	{ { "PET_MASTER_ADDR", DDP_VAR_USERS, "torchrun", ONE_A_NODE,
	    "as MASTER_ADDR" }, TEXT, AT(master_addr) },
	{ { "PET_MASTER_PORT", DDP_VAR_USERS, "torchrun", ONE_A_NODE,
	    "as MASTER_PORT" }, PORT, AT(master_port) },
	{ { "PET_RDZV_ENDPOINT", DDP_VAR_USERS, "torchrun", ONE_A_NODE,
	    "both, with a colon between" }, ENDPOINT, 0 },
	{ { "PET_RDZV_ID", DDP_VAR_USERS, "torchrun", ONE_A_NODE,
	    "the job's and the step's number" }, JOB, 0 },
	{ { "TORCHELASTIC_ERROR_FILE", DDP_VAR_USERS, "torchrun",
	    "where an agent watches",
	    "where PyTorch's @record writes the error that ends the task" },
	  TEXT, AT(error_file) },
	{ { "RESTART_COUNT", DDP_VAR_OURS, "slurm-ddp", WITH_RESTARTS,
	    RESTARTS_MEANING }, RESTARTS, 0 },
	{ { "TORCHELASTIC_RESTART_COUNT", DDP_VAR_OURS, "torchrun",
	    WITH_RESTARTS, RESTARTS_MEANING }, RESTARTS, 0 },
	{ { "TORCHELASTIC_MAX_RESTARTS", DDP_VAR_OURS, "torchrun",
	    WITH_RESTARTS, "how often it may be" }, COUNT, AT(restarts_max) },
	{ { DDP_HEARTBEAT_VARIABLE, DDP_VAR_OURS, "slurm-ddp",
	    "with --ddp-watchdog",
	    "where ddp_heartbeat counts" }, TEXT, AT(heartbeat_file) },
	{ { "NCCL_RAS_ADDR", DDP_VAR_USERS, "NCCL 2.24", "with --ddp-watchdog",
	    "where NCCL tells how it is, apart from other jobs' on the node" },
	  RAS, 0 },
	{ { "DDP_PLACEMENT", DDP_VAR_HANDED, "slurm-ddp",
	    "where GPUs or CPUs are placed",
	    "the task's placement, for ddp-info" }, TEXT, AT(placement) },
	/* The last one, as it records the others. */
	{ { DDP_VARS_RECORD, DDP_VAR_HANDED, "slurm-ddp", NULL,
	    "which of these variables were set, and to what" },
	  TEXT, AT(record) },
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

const struct ddp_var *ddp_vars_get(size_t index)
{
	return index < ROW_COUNT ? &rows[index].var : NULL;
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

static const char *format_number(uint32_t number, char *buffer)
{
	buffer[ddp_text_digits(number, buffer)] = '\0';
	return buffer;
}

/* The same for one that is not known where it is 0. */
static const char *format_count(uint32_t count, char *buffer)
{
	return count == 0 ? NULL : format_number(count, buffer);
}

/*
 * The master and a port; NULL where either is not known. An address of IPv6
 * must be in brackets before a port.
 */
static const char *format_endpoint(const struct ddp_vars *vars, uint16_t port,
				   char *buffer)
{
	bool bare = vars->master_addr && strchr(vars->master_addr, ':');

	if (!vars->master_addr || !*vars->master_addr ||
	    !port || print(buffer, DDP_VARS_BUFFER_SIZE, "%s%s%s:%u",
			   bare ? "[" : "", vars->master_addr, bare ? "]" : "",
			   port) < 0)
		return NULL;
	return buffer;
}

/* JAX itself takes the device whose number is the local rank. */
static const char *find_positions(const struct ddp_vars *vars, char *buffer)
{
	const char *positions = vars->positions;

	return !positions || strcmp(positions,
				    format_number(vars->rank.local_rank,
						  buffer)) == 0 ?
		NULL : positions;
}

/* The value of a variable of GPUs, if it is the one that orders them. */
static const char *find_visible(const struct ddp_vars *vars, const char *name)
{
	size_t length = strlen(name);

	if (!vars->visible || strncmp(vars->visible, name, length) != 0 ||
	    vars->visible[length] != '=')
		return NULL;
	return vars->visible + length + 1;
}

static const char *find_value(const struct row *row,
			      const struct ddp_vars *vars, char *buffer)
{
	const void *member = (const char *)vars + row->at;

	switch (row->kind) {
	case NUMBER:
		return format_number(*(const uint32_t *)member, buffer);
	case COUNT:
		return format_count(*(const uint32_t *)member, buffer);
	case PORT:
		return format_count(*(const uint16_t *)member, buffer);
	case TEXT:
		return *(const char *const *)member;
	case COORDINATOR:
		return format_endpoint(vars, vars->second_port, buffer);
	case POSITIONS:
		return find_positions(vars, buffer);
	case DEVICE_ORDER:
		return find_visible(vars, "CUDA_VISIBLE_DEVICES") ?
			"PCI_BUS_ID" : NULL;
	case VISIBLE:
		return find_visible(vars, row->var.name);
	case NO_DEVICE:
		return vars->no_device ? "true" : NULL;
	case ENDPOINT:
		return format_endpoint(vars, vars->master_port, buffer);
	case JOB:
		return vars->job_id == 0 ||
		       print(buffer, DDP_VARS_BUFFER_SIZE, "%u.%u",
			     vars->job_id, vars->step_id) < 0 ? NULL : buffer;
	case RESTARTS:
		return vars->restarts_max == 0 ? NULL :
			format_number(vars->restarts, buffer);
	case RAS:
		return vars->ras_port == 0 ||
		       print(buffer, DDP_VARS_BUFFER_SIZE, "localhost:%u",
			     vars->ras_port) < 0 ? NULL : buffer;
	}
	return NULL;
}

/* The rendezvous of torchrun, which is started once on each node. */
static const char *find_pet(const struct row *row, const struct ddp_vars *vars,
			    char *buffer)
{
	if (vars->pet == DDP_PET_NONE ||
	    (vars->pet == DDP_PET_NO_RANK &&
	     strcmp(row->var.name, "PET_NODE_RANK") == 0))
		return NULL;
	if (vars->world_size != vars->node_count)
		return strcmp(row->var.name, "PET_NNODES") == 0 ?
			DDP_VARS_SEVERAL : NULL;
	return find_value(row, vars, buffer);
}

uint32_t ddp_vars_count_gpus(const char *list)
{
	uint32_t count = 1;

	/* The second is Slurm's word for none. */
	if (!list || *list == '\0' || strcmp(list, "NoDevFiles") == 0)
		return 0;
	while ((list = strchr(list, ',')))
		count += *list++ == ',';
	return count;
}

const char *ddp_vars_value(size_t index, const struct ddp_vars *vars,
			   char *buffer)
{
	const struct row *row;
	const char *value;

	if (index >= ROW_COUNT)
		return NULL;
	row = &rows[index];
	value = strncmp(row->var.name, "PET_", 4) == 0 ?
		find_pet(row, vars, buffer) : find_value(row, vars, buffer);
	return value && *value != '\0' ? value : NULL;
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
