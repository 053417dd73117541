/* SPDX-License-Identifier: BSD-3-Clause */
/* The PCIe link of a GPU, as the kernel sees it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "preflight.h"
#include "util/file.h"

/* A number at the beginning of a file; 0: there is none. */
static double read_number(const char *bus_id, const char *name)
{
	char path[128], line[64];
	double number;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bus_id,
		 name);
	ddp_file_read_line(path, line, sizeof(line));
	number = strtod(line, NULL);
	return number > 0 && number < 1e4 ? number : 0;
}

void link_read(struct facts *facts)
{
	char bus_id[sizeof(facts->bus_id)];
	size_t i;

	/* The kernel writes "0000:1b:00.0", in lower case. */
	for (i = 0; facts->bus_id[i] != '\0'; i++)
		bus_id[i] = (char)tolower((unsigned char)facts->bus_id[i]);
	bus_id[i] = '\0';
	facts->link = (struct link){
		(uint32_t)(0.5 + 10 * read_number(bus_id,
						  "current_link_speed")),
		(uint32_t)read_number(bus_id, "current_link_width")
	};
	facts->most = (struct link){
		(uint32_t)(0.5 + 10 * read_number(bus_id, "max_link_speed")),
		(uint32_t)read_number(bus_id, "max_link_width")
	};
}
