/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake of the network that the plugin sees, so that names mean the same on
 * every machine. nN is 192.0.2.N; loop is the address that Debian gives a
 * machine's own name; many has several addresses; numbers resolve, and no other
 * name does. This machine is 192.0.2.200 on eth7, and has lo, eth0, ib0 and ib1
 * as well, and dummy0 without an address. Sockets are real, unless a case has
 * "#no-inet6", for a kernel without IPv6, or "#inet6-off", for one on which it is
 * switched off.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "host.h"

#define OWN_ADDRESS "192.0.2.200"

static bool no_inet6, inet6_off;

bool fake_net_set(const char *word)
{
	no_inet6 |= strcmp(word, "#no-inet6") == 0;
	inet6_off |= strcmp(word, "#inet6-off") == 0;
	return no_inet6 || inet6_off;
}

int socket(int family, int type, int protocol)
{
	int (*real)(int, int, int);

	if (family == AF_INET6 && no_inet6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "socket");
	return real(family, type, protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int (*real)(int, const struct sockaddr *, socklen_t);

	if (address->sa_family == AF_INET6 && inet6_off) {
		errno = EADDRNOTAVAIL;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "bind");
	return real(fd, address, length);
}

static const char *address_find(const char *name, char *text, size_t size)
{
	unsigned int number;

	if (strcmp(name, "loop") == 0)
		return "127.0.1.1";
	if (strcmp(name, "elsewhere") == 0)
		return "192.0.2.99";
	if (strcmp(name, "here") == 0)
		return OWN_ADDRESS;
	if (sscanf(name, "n%u", &number) == 1)
		snprintf(text, size, "192.0.2.%u", number);
	else
		snprintf(text, size, "%s", name);
	return text;
}

/* With room for an address of either kind. */
struct answer {
	struct addrinfo item;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static bool answer_fill(struct answer *answer, const char *text)
{
	struct addrinfo *item = &answer->item;

	if (inet_aton(text, &answer->in4.sin_addr)) {
		item->ai_family = answer->in4.sin_family = AF_INET;
		item->ai_addr = (struct sockaddr *)&answer->in4;
		item->ai_addrlen = sizeof(answer->in4);
		return true;
	}
	item->ai_family = answer->in6.sin6_family = AF_INET6;
	item->ai_addr = (struct sockaddr *)&answer->in6;
	item->ai_addrlen = sizeof(answer->in6);
	return inet_pton(AF_INET6, text, &answer->in6.sin6_addr) == 1;
}

int getaddrinfo(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **list)
{
	static const char *const many[] = { "::1", "0.0.0.0", "192.0.2.7" };
	struct answer *answers = calloc(COUNT(many), sizeof(*answers));
	char text[64];
	size_t i;

	(void)service;
	(void)hints;
	*list = &answers[0].item;
	if (strcmp(node, "many") == 0) {
		for (i = 0; i < COUNT(many); i++) {
			answer_fill(&answers[i], many[i]);
			if (i > 0)
				answers[i - 1].item.ai_next = &answers[i].item;
		}
		return 0;
	}
	if (answer_fill(&answers[0], address_find(node, text, sizeof(text))))
		return 0;
	free(answers);
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd;
	(void)address;
	(void)length;
	return 0;
}

static void address_set(struct sockaddr_in *address, const char *text)
{
	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
		abort();
}

int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
	(void)fd;
	address_set((struct sockaddr_in *)(void *)address, OWN_ADDRESS);
	*length = sizeof(struct sockaddr_in);
	return 0;
}

int getifaddrs(struct ifaddrs **list)
{
	static const struct {
		const char *name, *address;
	} table[] = {
		{ "lo", "127.0.0.1" },
		{ "eth0", "198.51.100.1" },
		{ "eth7", OWN_ADDRESS },
		{ "ib0", "203.0.113.1" },
		{ "ib1", "203.0.113.2" },
	};
	static struct sockaddr_in addresses[COUNT(table)];
	static struct ifaddrs items[COUNT(table) + 1];
	size_t i;

	/* The first item has no address, like an interface that is down. */
	for (i = 0; i < COUNT(table); i++) {
		address_set(&addresses[i], table[i].address);
		items[i + 1].ifa_name = (char *)table[i].name;
		items[i + 1].ifa_addr = (struct sockaddr *)&addresses[i];
		items[i].ifa_next = &items[i + 1];
	}
	items[0].ifa_name = (char *)"dummy0";
	*list = items;
	return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}
