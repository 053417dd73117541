/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "util/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
	if (rc == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	rc = errno;
	close(fd);
	errno = rc;
	return -1;
}
