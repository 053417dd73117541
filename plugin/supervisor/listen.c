/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket to which the agents connect. */
#define _GNU_SOURCE
#include "supervisor/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/file.h"
#include "util/net.h"

static uint16_t get_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, &address.any, &size) < 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ?
		     address.v6.sin6_port : address.v4.sin_port);
}

/* Many sruns share the range: each begins somewhere else in it. */
static int listen_in(uint16_t first, uint16_t last)
{
	uint32_t count = (uint32_t)last - first + 1, start = 0, i;
	int fd = -1;

	if (ddp_random_fill(&start, sizeof(start)) < 0)
		start = (uint32_t)getpid();
	for (i = 0; i < count && fd < 0; i++) {
		fd = ddp_listen_at((uint16_t)(first + (start % count + i) %
					      count), false);
		if (fd < 0 && errno != EADDRINUSE && errno != EACCES)
			break;
	}
	return fd;
}

int ddp_listen(uint16_t first, uint16_t last, uint16_t *port,
	       struct ddp_error *error)
{
	int fd = first ? listen_in(first, last) : ddp_listen_at(0, false);

	if (fd < 0 && first)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no port from %u to %u (SrunPortRange) "
				     "for the nodes to connect to: %s; widen "
				     "the range, or use --ddp-supervise=off",
				     first, last, strerror(errno));
	if (fd < 0)
		return ddp_error_set(error, DDP_ERROR_SYSTEM,
				     "no port for the nodes to connect to: "
				     "%s; use --ddp-supervise=off",
				     strerror(errno));
	*port = get_port(fd);
	return fd;
}
