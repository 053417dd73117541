/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of many nodes, by the rules of Slurm's host lists. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/names.h"

static void expect(const char *list, const char *wanted)
{
	char copy[256], *save, *line, *name;
	const char *names[64];
	struct ddp_text text = { 0 };
	uint32_t count = 0;

	snprintf(copy, sizeof(copy), "%s", list);
	for (name = strtok_r(copy, " ", &save); name;
	     name = strtok_r(NULL, " ", &save))
		names[count++] = name;
	ddp_nodes_add(&text, names, count);
	line = ddp_text_finish(&text);
	cr_expect_str_eq(line, wanted);
	free(line);
}

Test(nodes, are_named_in_short)
{
	expect("n1", "n1");
	expect("login", "login");
	expect("b a", "a,b");
	expect("n2 n1", "n[1-2]");
	expect("n1 n3", "n[1,3]");
	expect("n4 n1 n2 n7 n3 n9 n8", "n[1-4,7-9]");
	expect("n9 n10 n11", "n[9-11]");
	expect("n09 n10 n11", "n[09-11]");
	expect("a1 b1", "a1,b1");
	expect("a1 a2 b2 b1 c", "a[1-2],b[1-2],c");
	expect("rack1-n1 rack1-n2 rack2-n1", "rack1-n[1-2],rack2-n1");
	/* n1 and n01 are two nodes; one list has numbers of one width. */
	expect("n1 n02", "n02,n1");
	expect("12 13", "[12-13]");
}

Test(nodes, are_not_all_named_if_there_are_many)
{
	char names[256] = "";
	int i;

	for (i = 1; i < 40; i += 2)
		sprintf(names + strlen(names), "n%d ", i);
	expect(names, "n[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31] and 4 "
	       "more");
}
