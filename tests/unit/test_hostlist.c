/* SPDX-License-Identifier: BSD-3-Clause */
/* Node lists: what they expand to, and what is refused. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layout/hostlist.h"
#include "hooks.h"

struct expansion {
	char text[64];
	char names[128];	/* as a comma list */
};

ParameterizedTestParameters(hostlist, expands)
{
	static struct expansion table[] = {
		{ "n1", "n1" },
		{ "gpu", "gpu" },
		{ "n2,n1,n2", "n2,n1,n2" },
		{ "n[1-3,7]", "n1,n2,n3,n7" },
		{ "n[7,1-3]", "n7,n1,n2,n3" },
		{ "n[5]", "n5" },
		{ "n[5-5]", "n5" },
		{ "n[0-1]", "n0,n1" },
		{ "n[1-2,1-2]", "n1,n2,n1,n2" },
		{ "n[09-11]", "n09,n10,n11" },
		{ "n[099-101]", "n099,n100,n101" },
		{ "n[9-11]", "n9,n10,n11" },
		{ "n[9-011]", "n9,n10,n11" },
		{ "n[1,01,001]", "n1,n01,n001" },
		{ "n[000-001]", "n000,n001" },
		{ "n1[2-3]", "n12,n13" },
		{ "n[0001-0002]-int", "n0001-int,n0002-int" },
		{ "n[1-2]-x[3-4].lan",
		  "n1-x3.lan,n1-x4.lan,n2-x3.lan,n2-x4.lan" },
		{ "rack[1-2]n[3-4]", "rack1n3,rack1n4,rack2n3,rack2n4" },
		{ "rack[1,3]n[08-10]",
		  "rack1n08,rack1n09,rack1n10,rack3n08,rack3n09,rack3n10" },
		{ "a[1-2]b[1-2]c[1-2]", "a1b1c1,a1b1c2,a2b1c1,a2b1c2,"
		  "a1b2c1,a1b2c2,a2b2c1,a2b2c2" },
		{ "[1-3]", "1,2,3" },
		{ "[1-2][3-4]", "13,14,23,24" },
		{ "[01-02]n", "01n,02n" },
		{ "n[1-2],login,gpu[1,3]-a", "n1,n2,login,gpu1-a,gpu3-a" },
		{ "n99999999999999999999", "n99999999999999999999" },
		{ "n[999999999999999998-999999999999999999]",
		  "n999999999999999998,n999999999999999999" },
		{ "n[000000000000000001]", "n000000000000000001" },
	};

	return cr_make_param_array(struct expansion, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct expansion *row, hostlist, expands)
{
	struct ddp_error error = { 0 };
	struct ddp_hostlist *hosts = ddp_hostlist_create(row->text, &error);
	char names[256] = "";
	size_t i;

	cr_assert_not_null(hosts, "%s: %s", row->text, error.text);
	for (i = 0; i < ddp_hostlist_count(hosts); i++) {
		if (i > 0)
			strcat(names, ",");
		strcat(names, ddp_hostlist_get(hosts, i));
	}
	cr_expect_str_eq(names, row->names, "%s: %s", row->text, names);
	cr_expect_null(ddp_hostlist_get(hosts, i));
	cr_expect_null(ddp_hostlist_get(hosts, (size_t)-1));
	cr_expect_eq(error.code, DDP_ERROR_NONE);
	ddp_hostlist_destroy(hosts);
}

struct refusal {
	char text[64];
	int byte;		/* where the error is */
	char expected[48];	/* what it says is expected there */
};

ParameterizedTestParameters(hostlist, refuses)
{
	static struct refusal table[] = {
		{ "", 1, "a host name" },
		{ ",", 1, "a host name" },
		{ "n1,", 4, "a host name" },
		{ "n1,,n2", 4, "a host name" },
		{ " n1", 1, "a letter" },
		{ "n1 ,n2", 3, "a letter" },
		{ "n1, n2", 4, "a letter" },
		{ "n1\tn2", 3, "a letter" },
		{ "n1\n", 3, "a letter" },
		{ "n\x7f", 2, "a letter" },
		{ "n\xc3\xa4", 2, "a letter" },
		{ "n]", 2, "a letter" },
		{ "n[1-2]]", 7, "a letter" },
		{ "n[", 3, "a number" },
		{ "n[]", 3, "a number" },
		{ "n[1", 4, "'-', ',' or ']'" },
		{ "n[1-2", 6, "'-', ',' or ']'" },
		{ "n[1-2,", 7, "a number" },
		{ "n[1,]", 5, "a number" },
		{ "n[,1]", 3, "a number" },
		{ "n[1-]", 5, "a number" },
		{ "n[-1]", 3, "a number" },
		{ "n[1--2]", 5, "a number" },
		{ "n[1-2-3]", 6, "'-', ',' or ']'" },
		{ "n[ 1]", 3, "a number" },
		{ "n[+1]", 3, "a number" },
		{ "n[0x1]", 4, "'-', ',' or ']'" },
		{ "n[a-b]", 3, "a number" },
		{ "n[[1]]", 3, "a number" },
		{ "n[3-1]", 5, "not below" },
		{ "n[1-3],n[3-1]", 12, "not below" },
		{ "n[0000000000000000001]", 3, "18 digits" },
		{ "n[99999999999999999999]", 3, "18 digits" },
		{ "n[0-99999999999]", 3, "1048576 hosts" },
		{ "n[0-1048576]", 3, "1048576 hosts" },
		{ "n[0-999999,0-999999]", 3, "1048576 hosts" },
		{ "a[0-1023]b[0-1024]", 12, "1048576 hosts" },
		{ "a[0-1048575]b[0-1048575]c[0-1048575]", 15,
		  "1048576 hosts" },
		{ "n[0-999999],m[0-999999]", 13, "1048576 hosts" },
		{ "n[0-1048575],m", 14, "1048576 hosts" },
	};

	return cr_make_param_array(struct refusal, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct refusal *row, hostlist, refuses)
{
	struct ddp_error error = { 0 };
	char byte[32];

	snprintf(byte, sizeof(byte), ", byte %d: ", row->byte);
	cr_expect_null(ddp_hostlist_create(row->text, &error));
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_not_null(strstr(error.text, byte), "%s", error.text);
	cr_expect_not_null(strstr(error.text, row->expected), "%s",
			   error.text);
	cr_expect_null(ddp_hostlist_create(row->text, NULL));
}

Test(hostlist, null_is_an_error)
{
	cr_expect_null(ddp_hostlist_create(NULL, NULL));
	ddp_hostlist_destroy(NULL);
}

Test(hostlist, error_quotes_the_text)
{
	struct ddp_error error;

	cr_assert_null(ddp_hostlist_create("n[3-1],m\x1b", &error));
	cr_expect_str_eq(error.text,
			 "node list 'n[3-1],m?', byte 5: expected a number of "
			 "at most 18 digits that is not below the range's "
			 "first");
}

Test(hostlist, error_shortens_a_long_text)
{
	struct ddp_error error;
	char text[2001];

	memset(text, 'n', sizeof(text));
	for (size_t i = 9; i < sizeof(text); i += 10)
		text[i] = ',';
	text[1000] = '[';
	text[2000] = '\0';
	cr_assert_null(ddp_hostlist_create(text, &error));
	cr_expect_not_null(strstr(error.text, "'...nnnnn"));
	cr_expect_not_null(strstr(error.text, "...', byte 1002: "));
	cr_expect_lt(strlen(error.text), 200);
}

/* A list of one name of length bytes, which ends with end. */
static const char *long_name(size_t length, const char *end)
{
	static char text[512];

	memset(text, 'n', length);
	strcpy(text + length, end);
	return text;
}

Test(hostlist, names_have_a_limit)
{
	struct ddp_hostlist *hosts;

	hosts = ddp_hostlist_create(long_name(255, ""), NULL);
	cr_assert_not_null(hosts);
	cr_expect_eq(strlen(ddp_hostlist_get(hosts, 0)), 255);
	ddp_hostlist_destroy(hosts);
	hosts = ddp_hostlist_create(long_name(253, "[9-10]"), NULL);
	cr_assert_not_null(hosts);
	cr_expect_eq(strlen(ddp_hostlist_get(hosts, 1)), 255);
	ddp_hostlist_destroy(hosts);
	cr_expect_null(ddp_hostlist_create(long_name(256, ""), NULL));
	cr_expect_null(ddp_hostlist_create(long_name(254, "[9-10]"), NULL));
	cr_expect_null(ddp_hostlist_create(long_name(255, "[1]"), NULL));
}

Test(hostlist, brackets_have_no_other_limit)
{
	char text[1024] = "";
	struct ddp_hostlist *hosts;
	int i;

	for (i = 0; i < 255; i++)
		strcat(text, "[0]");
	hosts = ddp_hostlist_create(text, NULL);
	cr_assert_not_null(hosts);
	cr_expect_eq(ddp_hostlist_count(hosts), 1);
	cr_expect_eq(strlen(ddp_hostlist_get(hosts, 0)), 255);
	ddp_hostlist_destroy(hosts);
	strcat(text, "[0]");
	cr_expect_null(ddp_hostlist_create(text, NULL));
}

Test(hostlist, takes_as_many_hosts_as_allowed)
{
	struct ddp_hostlist *hosts;

	hosts = ddp_hostlist_create("a[0-1023]b[0-1023]", NULL);
	cr_assert_not_null(hosts);
	cr_expect_eq(ddp_hostlist_count(hosts), DDP_HOSTLIST_MAX);
	cr_expect_str_eq(ddp_hostlist_get(hosts, 0), "a0b0");
	cr_expect_str_eq(ddp_hostlist_get(hosts, 1024), "a1b0");
	cr_expect_str_eq(ddp_hostlist_get(hosts, DDP_HOSTLIST_MAX - 1),
			 "a1023b1023");
	ddp_hostlist_destroy(hosts);
}

/* It takes milliseconds; the limit leaves time for a slow, busy machine. */
Test(hostlist, is_quick)
{
	struct ddp_hostlist *hosts;
	clock_t begin = clock();

	hosts = ddp_hostlist_create("node[000001-100000]-int", NULL);
	begin = clock() - begin;
	cr_assert_not_null(hosts);
	cr_expect_eq(ddp_hostlist_count(hosts), 100000);
	cr_expect_str_eq(ddp_hostlist_get(hosts, 99999), "node100000-int");
	cr_expect_lt((double)begin / CLOCKS_PER_SEC, 0.1);
	ddp_hostlist_destroy(hosts);
}

Test(hostlist, survives_a_lack_of_memory)
{
	struct ddp_error error = { 0 };

	hook_limit_memory(8 << 20);
	cr_expect_null(ddp_hostlist_create("n[0-1048575]", &error));
	cr_expect_eq(error.code, DDP_ERROR_SYSTEM);
	cr_expect_not_null(strstr(error.text, "1048576 hosts"));
}
