/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "layout/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

const char *const ddp_interface_variables[] = {
	"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", NULL
};

bool ddp_interface_is_other(const char *variable, const char *list,
			    const char *name)
{
	bool nccl = strcmp(variable, "NCCL_SOCKET_IFNAME") == 0;
	bool excluded = nccl && *list == '^', exact, found = false;
	size_t length;

	list += excluded;
	exact = !nccl || *list == '=';
	list += nccl && exact;
	for (; *list; list += *list == ',') {
		length = strcspn(list, ",:");
		found |= length > 0 && strncmp(list, name, length) == 0 &&
			 (!exact || name[length] == '\0');
		list += strcspn(list, ",");
	}
	return found == excluded;
}

bool ddp_interface_lacks(const char *variable, const char *list)
{
	struct ifaddrs *own, *item;

	if (!list || !*list || getifaddrs(&own) < 0)
		return false;
	for (item = own; item; item = item->ifa_next)
		if (item->ifa_addr && (item->ifa_addr->sa_family == AF_INET ||
				       item->ifa_addr->sa_family == AF_INET6) &&
		    !ddp_interface_is_other(variable, list, item->ifa_name))
			break;
	freeifaddrs(own);
	return !item;
}
