/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds where the ranks meet: the master's address and port, on which rank 0
 * must be able to listen, and the interface that leads there.
 */
#define _GNU_SOURCE
#include "stepd/task.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layout/port_range.h"
#include "options/plugin.h"
#include "request/launcher.h"
#include "util/net.h"
#include "util/text.h"

/* ---- names, routes and ports, as this node sees them */

struct address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/* The hosts that can reach an address; lower is better. */
enum reach {
	REACH_ALL,
	REACH_NODE,		/* this node alone */
	REACH_NONE
};

/* An IPv4 address that is written as an IPv6 one becomes an IPv4 one. */
static void copy_address(struct address *address, const struct addrinfo *from)
{
	struct sockaddr_in *in4 = (void *)&address->storage;
	struct sockaddr_in6 in6;

	memset(address, 0, sizeof(*address));
	memcpy(&address->storage, from->ai_addr, from->ai_addrlen);
	address->length = from->ai_addrlen;
	if (from->ai_family != AF_INET6)
		return;
	memcpy(&in6, &address->storage, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return;
	memset(&address->storage, 0, sizeof(address->storage));
	in4->sin_family = AF_INET;
	memcpy(&in4->sin_addr, &in6.sin6_addr.s6_addr[12], 4);
	address->length = sizeof(*in4);
}

static enum reach find_reach4(uint32_t ip, const char **what)
{
	*what = "the wildcard address";
	if (ip == INADDR_ANY)
		return REACH_NODE;
	*what = "loopback";
	if (ip >> 24 == 127)
		return REACH_NODE;
	*what = "the broadcast address";
	if (ip == INADDR_BROADCAST)
		return REACH_NONE;
	*what = "a multicast address";
	if (IN_MULTICAST(ip))
		return REACH_NONE;
	*what = "an address of no host";
	return ip >> 24 == 0 ? REACH_NONE : REACH_ALL;
}

/* Sets what to a description of the address. */
static enum reach find_reach(const struct address *address,
			     const char **what)
{
	const struct sockaddr_in *in4 = (const void *)&address->storage;
	const struct sockaddr_in6 *in6 = (const void *)&address->storage;

	if (address->storage.ss_family == AF_INET)
		return find_reach4(ntohl(in4->sin_addr.s_addr), what);
	*what = "the wildcard address";
	if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		return REACH_NODE;
	*what = "loopback";
	if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
		return REACH_NODE;
	*what = "a multicast address";
	return IN6_IS_ADDR_MULTICAST(&in6->sin6_addr) ? REACH_NONE : REACH_ALL;
}

/*
 * Resolves a name to the first of its addresses that other nodes can reach.
 * Returns 0; 1 with the reason if it has none, but this node can reach one,
 * such as loopback; -1 with the reason if nobody can reach any, or if the name
 * does not resolve.
 */
static int resolve(const char *name, struct address *address,
		   struct ddp_error *error)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *list, *item;
	int rc = getaddrinfo(name, NULL, &hints, &list);
	enum reach reach, best = REACH_NONE;
	struct address one;
	char text[NI_MAXHOST];
	const char *what;

	if (rc)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "does not resolve (%s)",
				     rc == EAI_SYSTEM ? strerror(errno) :
				     gai_strerror(rc));
	for (item = list; item && best != REACH_ALL; item = item->ai_next) {
		copy_address(&one, item);
		reach = find_reach(&one, &what);
		if (item != list && reach >= best)
			continue;
		best = reach;
		*address = one;
		if (best != REACH_ALL &&
		    getnameinfo((struct sockaddr *)&one.storage, one.length,
				text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0)
			ddp_error_set(error, DDP_ERROR_SYSTEM,
				      "resolves to %s (%s)", what, text);
	}
	freeaddrinfo(list);
	if (best == REACH_ALL)
		return 0;
	return best == REACH_NODE ? 1 : -1;
}

static bool is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (!a || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)
			->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)
			->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)
				    (const void *)a)->sin6_addr,
				  &((const struct sockaddr_in6 *)
				    (const void *)b)->sin6_addr);
}

/* Connecting a datagram socket sends nothing: it asks the routing table. */
static bool find_source(const struct address *to, struct address *source)
{
	struct sockaddr_storage peer = to->storage;
	int fd = socket(peer.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (peer.ss_family == AF_INET)
		((struct sockaddr_in *)&peer)->sin_port = htons(9);
	else
		((struct sockaddr_in6 *)&peer)->sin6_port = htons(9);
	source->length = sizeof(source->storage);
	found = fd >= 0 &&
		connect(fd, (struct sockaddr *)&peer, to->length) == 0 &&
		getsockname(fd, (struct sockaddr *)&source->storage,
			    &source->length) == 0;
	if (fd >= 0)
		close(fd);
	return found;
}

/*
 * Finds the interface through which this node reaches an address (which may be
 * its own). Returns false if there is none, as where no route leads there.
 */
static bool find_interface(const struct address *to, char name[IF_NAMESIZE])
{
	struct address source;
	struct ifaddrs *list, *item;

	if (!find_source(to, &source) || getifaddrs(&list) < 0)
		return false;
	for (item = list; item; item = item->ifa_next)
		if (is_same_host(item->ifa_addr,
			      (const struct sockaddr *)&source.storage))
			break;
	if (item)
		snprintf(name, IF_NAMESIZE, "%s", item->ifa_name);
	freeifaddrs(list);
	return item != NULL;
}

/* Returns true if an address is one of this node's own. */
static bool is_local(const struct address *address)
{
	struct address source;

	return find_source(address, &source) &&
	       is_same_host((const struct sockaddr *)&address->storage,
			 (const struct sockaddr *)&source.storage);
}

/* Returns 0 if the port can be bound or if there is no such family here. */
static int try_bind(int family, uint16_t port)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, rc;

	if (fd < 0)
		return 0;
	/* A port that the last step left in TIME_WAIT would look occupied. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		rc = bind(fd, (struct sockaddr *)&in6, sizeof(in6));
	} else {
		rc = bind(fd, (struct sockaddr *)&in4, sizeof(in4));
	}
	rc = rc < 0 && errno != EADDRNOTAVAIL ? errno : 0;
	close(fd);
	return rc;
}

/*
 * Returns 0 if this process could listen on the TCP port, on all addresses;
 * -1 if another process holds it, or if the user may not.
 */
static int check_free(uint16_t port, struct ddp_error *error)
{
	int why = try_bind(AF_INET, port);

	if (!why)
		why = try_bind(AF_INET6, port);
	if (!why)
		return 0;
	if (why == EADDRINUSE)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "another process holds port %u", port);
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "port %u cannot be used (%s)", port,
			     strerror(why));
}

/* ---- the master */

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
			    const struct address *master,
			    struct ddp_error *error)
{
	if (*ddp_plugin.interface)
		return take_interface(task, ddp_plugin.interface, error);
	if (master && find_interface(master, task->interface))
		task->vars.interface = task->interface;
	return 0;
}

/*
 * Check that rank 0 can listen, if this is rank 0 and, as far as can be told,
 * on the master.
 */
static int check_port(const struct ddp_task *task,
		      const struct address *master, const char *users,
		      struct ddp_error *error)
{
	struct ddp_error why;

	if (task->rank != 0 ||
	    (users && !(master && is_local(master))) ||
	    check_free(task->vars.master_port, &why) == 0)
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
	    check_free(DDP_LAUNCHER_PORT, &why) == 0)
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
			       const struct address *address)
{
	struct ddp_text text = { 0 };

	if (!users || task->rank != 0 || task->vars.pet != DDP_PET_ALL ||
	    (task->world_size == 1 && !task->launcher) ||
	    is_local(address))
		return;
	snprintf(task->warning, sizeof(task->warning), "MASTER_ADDR=%.56s, which "
		 "was exported, is no address of %.56s, where rank 0 runs: ranks "
		 "that look for rank 0 there wait in vain; unset MASTER_ADDR",
		 users, task->vars.rank.host);
	ddp_text_add_quoted(&text, "slurm-ddp: %s", task->warning);
	ddp_text_add(&text, "\n");
	ddp_task_say(ddp_text_finish(&text));
}

/* The name by which others find a node: the site can have one of its own. */
static char *name_master(const char *node)
{
	const char *pattern = ddp_plugin.master ? ddp_plugin.master : "%n", *at;
	char *name = NULL;

	at = strstr(pattern, "%n");
	return asprintf(&name, "%.*s%s%s", (int)(at - pattern), pattern, node,
			at + 2) < 0 ? NULL : name;
}

int ddp_task_find_master(struct ddp_task *task, struct ddp_error *error)
{
	const char *users = ddp_task_users(task, "MASTER_ADDR");
	const char *master = ddp_layout_master(task->layout);
	struct address address;
	struct ddp_error why;
	int reach;

	/* A copy: it is used when the environment has changed. */
	task->master = users ? strdup(users) : name_master(master);
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
	reach = resolve(task->vars.master_addr, &address, &why);
	if (reach != 0 &&
	    !(reach < 0 && ddp_task_getenv(task, DDP_TELL_CHECKS)) &&
	    (task->vars.node_count > 1 ||
	     ((users || ddp_plugin.master) && reach < 0)))
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "the master's name %.64s %s on %s; %s",
				     task->vars.master_addr, why.text,
				     task->vars.rank.host, users ?
				     "export another MASTER_ADDR, or none" :
				     ddp_plugin.master ?
				     "correct master= in plugstack.conf, or "
				     "export MASTER_ADDR" :
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
