/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listens; and compares GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME, read as
 * those libraries do, with this machine's interfaces.
 */
#define _GNU_SOURCE
#include "util/net.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * All ranks of a large job may connect at once. SOMAXCONN is 128 in glibc before
 * 2.31, and Linux drops what is beyond; it cuts a number that is too high.
 */
enum { BACKLOG = 4096 };

/* Returns a socket for IPv6, which takes IPv4 too; or for IPv4 alone. */
static int open_socket(sa_family_t *family)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(AF_INET6, type, 0), no = 0;

	*family = AF_INET6;
	if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no,
				  sizeof(no)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	*family = AF_INET;
	return socket(AF_INET, type, 0);
}

int ddp_listen_at(uint16_t port, bool reuse)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons(port)
	};
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = htons(port)
	};
	sa_family_t family;
	int fd = open_socket(&family), yes = reuse, rc;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	rc = family == AF_INET6 ?
	     bind(fd, (struct sockaddr *)&six, sizeof(six)) :
	     bind(fd, (struct sockaddr *)&four, sizeof(four));
	if (rc == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = errno;
	close(fd);
	errno = rc;
	return -1;
}

/* ---- network interfaces */

#define GLOO "GLOO_SOCKET_IFNAME"
#define NCCL "NCCL_SOCKET_IFNAME"

bool ddp_interface_is_other(const char *variable, const char *list,
			    const char *name)
{
	bool nccl = strcmp(variable, GLOO) != 0;
	bool excluded = nccl && *list == '^', exact, found = false;
	size_t length;

	list += excluded;
	exact = !nccl || *list == '=';
	list += nccl && exact;
	for (; *list; list += *list == ',') {
		length = strcspn(list, nccl ? ",:" : ",");
		found |= length > 0 && strncmp(list, name, length) == 0 &&
			 (!exact || name[length] == '\0');
		list += strcspn(list, ",");
	}
	return found == excluded;
}

static bool has_one(const struct ifaddrs *item, const char *variable,
		    const char *list)
{
	for (; item; item = item->ifa_next)
		if (item->ifa_addr && (item->ifa_addr->sa_family == AF_INET ||
				       item->ifa_addr->sa_family == AF_INET6) &&
		    !ddp_interface_is_other(variable, list, item->ifa_name))
			return true;
	return false;
}

bool ddp_interface_lacks(const char *variable, const char *list)
{
	bool each = strcmp(variable, GLOO) == 0, lacks;
	struct ifaddrs *own;
	char name[64];
	size_t length;

	if (!list || !*list || getifaddrs(&own) < 0)
		return false;
	lacks = !each && !has_one(own, variable, list);
	for (; each && *list; list += *list == ',') {
		length = strcspn(list, ",");
		snprintf(name, sizeof(name), "%.*s", (int)length, list);
		lacks |= length > 0 && !has_one(own, variable, name);
		list += length;
	}
	freeifaddrs(own);
	return lacks;
}

void ddp_interface_find_flaw(const char *gloo, const char *nccl,
			     char text[DDP_INTERFACE_FLAW_SIZE])
{
	size_t used = 0;

	text[0] = '\0';
	if (ddp_interface_lacks(GLOO, gloo))
		used = (size_t)snprintf(text, DDP_INTERFACE_FLAW_SIZE,
					GLOO "=%.48s", gloo);
	if (ddp_interface_lacks(NCCL, nccl))
		snprintf(text + used, DDP_INTERFACE_FLAW_SIZE - used,
			 "%s" NCCL "=%.48s", used ? " and " : "", nccl);
}
