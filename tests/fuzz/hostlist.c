/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes node lists. The input is the list. */
#include "fuzz.h"
#include "layout/hostlist.h"

enum { LOOK_AT_MAX = 1000 };	/* hosts that are looked at */

/* Hosts of the bracket that begins at *at, which moves to its end. */
static double count_bracket(const char **at)
{
	unsigned long long low, high;
	double hosts = 0;

	do {
		(*at)++;
		if (sscanf(*at, "%18llu-%18llu", &low, &high) == 2 &&
		    high >= low)
			hosts += (double)(high - low);
		hosts++;
		*at += strcspn(*at, ",]");
	} while (**at == ',');
	return hosts;
}

/*
 * Whether the list is one that would be expanded, but has so many hosts that
 * this is slow: fewer inputs would be tried. The count is a rough one.
 */
static int is_slow(const char *text)
{
	double all = 0, hosts = 1;
	const char *at;

	for (at = text + strcspn(text, "[,"); *at != '\0';
	     at += strcspn(at, "[,")) {
		if (*at == '[') {
			hosts *= count_bracket(&at);
		} else {
			all += hosts;
			hosts = 1;
			at++;
		}
	}
	all += hosts;
	return all > 10 * LOOK_AT_MAX && all <= DDP_HOSTLIST_MAX;
}

/* The names with commas between them are a list of the same hosts. */
static void check_joined(const struct ddp_hostlist *hosts)
{
	size_t count = ddp_hostlist_count(hosts), used = 0, i;
	char *text = malloc(count * (DDP_HOSTNAME_MAX + 1));
	struct ddp_hostlist *again;

	CHECK(text);
	for (i = 0; i < count; i++)
		used += (size_t)sprintf(text + used, "%s%s", i > 0 ? "," : "",
					ddp_hostlist_get(hosts, i));
	again = ddp_hostlist_create(text, NULL);
	CHECK(again && ddp_hostlist_count(again) == count);
	for (i = 0; i < count; i++)
		CHECK(strcmp(ddp_hostlist_get(hosts, i),
			     ddp_hostlist_get(again, i)) == 0);
	ddp_hostlist_destroy(again);
	free(text);
}

/* Of "PREFIX[LOW-HIGH]SUFFIX" the names are what printf makes of it. */
static void check_range(const char *text, const struct ddp_hostlist *hosts)
{
	char name[2 * DDP_HOSTNAME_MAX];
	unsigned long long low, high;
	const char *open = strchr(text, '['), *at;
	int width = 0, rest = 0;
	size_t i;

	if (!open || strpbrk(text, ",") || strchr(open + 1, '[') ||
	    sscanf(open, "[%llu%n-%llu]%n", &low, &width, &high, &rest) != 2 ||
	    rest == 0)
		return;
	at = open + rest;
	CHECK(ddp_hostlist_count(hosts) == high - low + 1);
	for (i = 0; i < ddp_hostlist_count(hosts) && i < LOOK_AT_MAX; i++) {
		snprintf(name, sizeof(name), "%.*s%0*llu%s",
			 (int)(open - text), text, width - 1, low + i, at);
		CHECK(strcmp(name, ddp_hostlist_get(hosts, i)) == 0);
	}
}

static void check_hosts(const struct ddp_hostlist *hosts)
{
	size_t count = ddp_hostlist_count(hosts), length, i;

	CHECK(count >= 1 && count <= DDP_HOSTLIST_MAX);
	for (i = 0; i < count && i < LOOK_AT_MAX; i++) {
		length = strlen(ddp_hostlist_get(hosts, i));
		CHECK(length >= 1 && length <= DDP_HOSTNAME_MAX);
		CHECK(strcspn(ddp_hostlist_get(hosts, i), "[], ") == length);
		fuzz_check_line(ddp_hostlist_get(hosts, i));
	}
	CHECK(!ddp_hostlist_get(hosts, count));
	if (count <= LOOK_AT_MAX)
		check_joined(hosts);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_error error = { 0 };
	char *text = fuzz_text(data, size);
	struct ddp_hostlist *hosts = NULL;

	if (is_slow(text)) {
		free(text);
		return 0;
	}
	hosts = ddp_hostlist_create(text, &error);
	if (hosts) {
		check_hosts(hosts);
		check_range(text, hosts);
	} else {
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	}
	ddp_hostlist_destroy(hosts);
	free(text);
	return 0;
}
