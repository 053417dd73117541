/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds where the ranks meet: the master's address and port, on which rank 0
 * must be able to listen, and the interface that leads there.
 */
#define _GNU_SOURCE
#include "stepd/rendezvous.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "layout/port.h"
#include "layout/tf.h"
#include "options/plugin.h"
#include "request/launcher.h"
#include "stepd/net.h"
#include "stepd/tell.h"
#include "util/interface.h"

/* A port that the user has exported. */
static int read_port(const struct ddp_task *task, const char *name,
		     uint16_t *port, struct ddp_error *error)
{
	uint32_t number;

	if (ddp_task_getenv_number(task, name, &number, NULL) < 0 ||
	    number == 0 || number > UINT16_MAX)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "%s=%.64s is not a port; export one from "
				     "1 to 65535, or none", name,
				     ddp_task_getenv(task, name));
	*port = (uint16_t)number;
	return 0;
}

/* The step's port of a number; where it is not reserved, *derived is true. */
static int find_port(const struct ddp_task *task, uint32_t number,
		     uint16_t *port, bool *derived, struct ddp_error *error)
{
	const char *reserved = ddp_task_getenv(task, "SLURM_STEP_RESV_PORTS");
	int rc = reserved && !*derived ?
		ddp_port_reserved(reserved, number, port, error) : 1;

	*derived = rc > 0;
	if (rc <= 0)
		return rc;
	*port = ddp_port_derive(task->job_id, task->step_id, number,
				ddp_plugin.port_first, ddp_plugin.port_last);
	return 0;
}

static int choose_port(struct ddp_task *task, struct ddp_error *error)
{
	uint16_t *port = &task->vars.master_port;
	bool derived = false;

	if (ddp_plugin.port) {
		*port = ddp_plugin.port;
		task->port_why = "--ddp-port";
		return 0;
	}
	task->port_why = "MASTER_PORT was exported";
	if (ddp_task_users(task, "MASTER_PORT"))
		return read_port(task, "MASTER_PORT", port, error);
	/* All components of a heterogeneous step get one merged list. */
	if (find_port(task, 0, port, &derived, error) < 0)
		return -1;
	task->port_why = derived ? "from the job's and the step's number" :
		"reserved by Slurm for this step";
	return 0;
}

/*
 * A port beside the master's, by its number. Where that is the user's
 * MASTER_PORT, the step's own one is free.
 */
static int find_other_port(const struct ddp_task *task, uint32_t number,
			   uint16_t *port, struct ddp_error *error)
{
	uint32_t range = ddp_plugin.port_last - ddp_plugin.port_first + 1;
	bool derived = false;

	if (find_port(task, number, port, &derived, error) < 0)
		return -1;
	if (derived && number >= range / 2)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT, "port-range=%u-"
				     "%u has no port for each rank of a node; "
				     "make it twice as large as the ranks are "
				     "many, or let Slurm reserve ports",
				     ddp_plugin.port_first,
				     ddp_plugin.port_last);
	return *port != task->vars.master_port ? 0 :
		find_port(task, 0, port, &derived, error);
}

static int choose_second_port(struct ddp_task *task, struct ddp_error *error)
{
	uint16_t *port = &task->vars.second_port;

	return ddp_task_users(task, "JAX_COORDINATOR_PORT") ?
		read_port(task, "JAX_COORDINATOR_PORT", port, error) :
		find_other_port(task, 1, port, error);
}

/* TensorFlow does not use MASTER_PORT: the first rank of each node can. */
static int find_worker_port(void *context, uint32_t number, uint16_t *port,
			    struct ddp_error *error)
{
	const struct ddp_task *task = context;

	if (number > 0)
		return find_other_port(task, number, port, error);
	*port = task->vars.master_port;
	return 0;
}

/* Derives it from a number that no other port of the step has. */
static uint16_t find_ras_port(const struct ddp_task *task)
{
	uint32_t range = ddp_plugin.port_last - ddp_plugin.port_first + 1;

	return ddp_port_derive(task->job_id, task->step_id, range / 2 - 1,
			       ddp_plugin.port_first, ddp_plugin.port_last);
}

static int list_workers(struct ddp_task *task, struct ddp_error *error)
{
	if (!ddp_plugin.tf || ddp_task_users(task, "TF_CONFIG"))
		return 0;
	task->tf_config = ddp_tf_config(task->layout, task->rank,
					find_worker_port, task, error);
	task->vars.tf_config = task->tf_config;
	return task->tf_config ? 0 : -1;
}

/* The site's interface, which every node must have. */
static int take_interface(struct ddp_task *task, const char *name,
			  struct ddp_error *error)
{
	/*
	 * NCCL takes a name with "=" as exact; without, eth1 matches eth10,
	 * too.
	 */
	snprintf(task->nccl_interface, sizeof(task->nccl_interface), "=%s",
		 name);
	task->vars.nccl_interface = task->nccl_interface;
	task->vars.interface = name;
	if ((ddp_task_users(task, "GLOO_SOCKET_IFNAME") &&
	     ddp_task_users(task, "NCCL_SOCKET_IFNAME")) ||
	    !ddp_interface_lacks("GLOO_SOCKET_IFNAME", name))
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "interface=%s: %s has no such network interface "
			     "with an address; in plugstack.conf, give one "
			     "that it has (partition=NAME:interface=... where "
			     "nodes differ), or export GLOO_SOCKET_IFNAME and "
			     "NCCL_SOCKET_IFNAME", name,
			     task->vars.rank.host);
}

static int choose_interface(struct ddp_task *task,
			    const struct ddp_address *master,
			    struct ddp_error *error)
{
	if (*ddp_plugin.interface)
		return take_interface(task, ddp_plugin.interface, error);
	if (master && ddp_net_interface(master, task->interface))
		task->vars.interface = task->interface;
	return 0;
}

/*
 * Check that rank 0 can listen, if this is rank 0 and, as far as can be told,
 * on the master.
 */
static int check_port(const struct ddp_task *task,
		      const struct ddp_address *master, const char *users,
		      struct ddp_error *error)
{
	struct ddp_error why;

	if (task->rank != 0 ||
	    (users && !(master && ddp_net_is_local(master))) ||
	    ddp_net_port_free(task->vars.master_port, &why) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "%s on %s, where rank 0 is to listen; choose "
			     "another with --ddp-port or MASTER_PORT",
			     why.text, task->vars.rank.host);
}

static int check_launcher_port(const struct ddp_task *task,
			       struct ddp_error *error)
{
	const char *name = ddp_task_getenv(task, DDP_TELL_NEEDS_PORT);
	struct ddp_error why;

	if (!name || task->vars.node_count == 1 ||
	    ddp_net_port_free(DDP_LAUNCHER_PORT, &why) == 0)
		return 0;
	return ddp_error_set(error, DDP_ERROR_SYSTEM, "%s on %s, and %.64s "
			     "would wait there for ever; give it "
			     "--main_process_port 0", why.text,
			     task->vars.rank.host, name);
}

/*
 * The ranks wait for ever where they look for rank 0 on another node. An address
 * that floats, or a store elsewhere, may be meant: so this is no error. The
 * rendezvous of a launcher needs no rank 0.
 */
static void check_users_master(struct ddp_task *task, const char *users,
			       const struct ddp_address *address)
{
	if (!users || task->rank != 0 || task->vars.pet != DDP_PET_ALL ||
	    (task->world_size == 1 && !task->launcher) ||
	    ddp_net_is_local(address))
		return;
	snprintf(task->warning, sizeof(task->warning), "MASTER_ADDR=%.56s, which "
		 "was exported, is no address of %.56s, where rank 0 runs: ranks "
		 "that look for rank 0 there wait in vain; unset MASTER_ADDR",
		 users, task->vars.rank.host);
	ddp_tell_warning(task);
}

int ddp_task_find_master(struct ddp_task *task, struct ddp_error *error)
{
	const char *users = ddp_task_users(task, "MASTER_ADDR");
	const char *master = ddp_layout_master(task->layout);
	struct ddp_address address;
	struct ddp_error why;
	int reach;

	/* A copy: it is used when the environment has changed. */
	task->master = strdup(users ? users : master);
	if (!task->master)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	task->vars.master_addr = task->master;
	if (choose_port(task, error) < 0 ||
	    choose_second_port(task, error) < 0 ||
	    list_workers(task, error) < 0)
		return -1;
	if (ddp_plugin.watchdog_s)
		task->vars.ras_port = find_ras_port(task);
	/* The name that Slurm has for a lone node need not resolve. */
	reach = ddp_net_resolve(task->vars.master_addr, &address, &why);
	if (reach != 0 &&
	    !(reach < 0 && ddp_task_getenv(task, DDP_TELL_CHECKS)) &&
	    (task->vars.node_count > 1 || (users && reach < 0)))
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "the master's name %.64s %s on %s; %s",
				     task->vars.master_addr, why.text,
				     task->vars.rank.host, users ?
				     "export another MASTER_ADDR, or none" :
				     "fix name resolution there, or export "
				     "another MASTER_ADDR");
	if (choose_interface(task, reach == 0 ? &address : NULL, error) < 0)
		return -1;
	if (check_launcher_port(task, error) < 0)
		return -1;
	if (reach == 0)
		check_users_master(task, users, &address);
	return check_port(task, reach >= 0 ? &address : NULL, users, error);
}
