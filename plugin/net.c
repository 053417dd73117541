/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net.h"

static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *in4 = (const void *)address;
	const struct sockaddr_in6 *in6 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

int ddp_net_resolve(const char *name, struct ddp_address *address,
		    struct ddp_error *error)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM }, *list, *item;
	char text[NI_MAXHOST] = "loopback";
	int rc = getaddrinfo(name, NULL, &hints, &list);

	if (rc)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "does not resolve (%s)",
				     rc == EAI_SYSTEM ? strerror(errno) :
				     gai_strerror(rc));
	for (item = list; item; item = item->ai_next)
		if (!is_loopback(item->ai_addr))
			break;
	if (item) {
		memcpy(&address->storage, item->ai_addr, item->ai_addrlen);
		address->length = item->ai_addrlen;
	} else {
		getnameinfo(list->ai_addr, list->ai_addrlen, text,
			    sizeof(text), NULL, 0, NI_NUMERICHOST);
	}
	freeaddrinfo(list);
	return item ? 0 : ddp_error_set(error, DDP_ERROR_SYSTEM,
					"resolves to loopback (%s)", text);
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b)
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

/* To connect a datagram socket sends nothing; it asks the routing table. */
static bool source_find(const struct ddp_address *to,
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

	if (!source_find(to, &source) || getifaddrs(&list) < 0)
		return false;
	for (item = list; item; item = item->ifa_next)
		if (same_host(item->ifa_addr,
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

	return source_find(address, &source) &&
	       same_host((const struct sockaddr *)&address->storage,
			 (const struct sockaddr *)&source.storage);
}

/* 0 if the port can be bound, or if there is no such family here. */
static int bind_try(int family, uint16_t port)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(port) };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, rc;

	if (fd < 0)
		return 0;
	/* Without it, what a last step left in TIME_WAIT looks occupied. */
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
	int why = bind_try(AF_INET, port);

	if (!why)
		why = bind_try(AF_INET6, port);
	if (!why)
		return 0;
	if (why == EADDRINUSE)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "another process holds port %u", port);
	return ddp_error_set(error, DDP_ERROR_SYSTEM,
			     "port %u cannot be used (%s)", port,
			     strerror(why));
}
