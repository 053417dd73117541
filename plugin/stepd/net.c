/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, routes and ports, as the node of this task sees them. */
#define _GNU_SOURCE
#include "stepd/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The hosts that can reach an address; lower is better. */
enum reach {
	REACH_ALL,
	REACH_NODE,		/* this node alone */
	REACH_NONE
};

/* An IPv4 address that is written as an IPv6 one becomes an IPv4 one. */
static void copy_address(struct ddp_address *address,
			 const struct addrinfo *from)
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
static enum reach find_reach(const struct ddp_address *address,
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

int ddp_net_resolve(const char *name, struct ddp_address *address,
		    struct ddp_error *error)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *list, *item;
	int rc = getaddrinfo(name, NULL, &hints, &list);
	enum reach reach, best = REACH_NONE;
	struct ddp_address one;
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
static bool find_source(const struct ddp_address *to,
			struct ddp_address *source)
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

bool ddp_net_interface(const struct ddp_address *to, char name[IF_NAMESIZE])
{
	struct ddp_address source;
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

bool ddp_net_is_local(const struct ddp_address *address)
{
	struct ddp_address source;

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

int ddp_net_port_free(uint16_t port, struct ddp_error *error)
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
