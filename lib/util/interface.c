/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME as those libraries do, and
 * compares them with this machine's interfaces.
 */
#define _GNU_SOURCE
#include "util/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
