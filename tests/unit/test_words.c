/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and words of shell scripts. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/words.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* What a shell would take for words, '|' between them, and for commands, '~'.
 * Commands without a word are left out. */
static const struct {
	const char *script, *wanted;
} table[] = {
	{ "", "" },
	{ "a", "a" },
	{ "  a\tb  ", "a|b" },
	{ "a; b & c && d || e | f", "a~b~c~d~e~f" },
	{ "a\nb # c d\n# e\nf", "a~b~f" },
	{ "a#b", "a#b" },
	{ "(a b) c", "a|b~c" },
	{ "a 2>&1 >b&c", "a|2>&1|>b~c" },
	{ "a &>b c", "a|&>b|c" },
	{ "a 'b  c' \"d e\"f", "a|b  c|d ef" },
	{ "a '' b", "a||b" },
	{ "a 'b;c' \"d&&e\"", "a|b;c|d&&e" },
	{ "a b\\ c \\; d", "a|b c|;|d" },
	{ "a \\\n b", "a|b" },
	{ "a '\"b\"' \"'c'\" \"\\\"d\"", "a|\"b\"|'c'|\"d" },
	{ "a $(b c; (d)) e", "a|$(b c; (d))|e" },
	{ "a \"x$(b \"c d\")y\" e", "a|x$(b \"c d\")y|e" },
	{ "a `b (; c` d", "a|`b (; c`|d" },
	{ "a $b ${c}", "a|$b|${c}" },
	/* Never closed */
	{ "a 'b c", "a|b c" },
	{ "a \"b c", "a|b c" },
	{ "a $(b c", "a|$(b c" },
	{ "a `b c", "a|`b c" },
	{ "a \\", "a|\\" },
	{ "a &", "a" },
};

Test(words, are_those_of_a_shell)
{
	char *words[8], *buffer, had[256];
	const char *at;
	size_t i, used;
	int count, k;

	for (i = 0; i < ROWS(table); i++) {
		at = table[i].script;
		buffer = malloc(strlen(at) + 1);
		cr_assert(buffer);
		had[0] = '\0';
		used = 0;
		while ((count = ddp_words_next(&at, buffer, words, 8)) >= 0)
			for (k = 0; k < count; k++)
				used += (size_t)snprintf(had + used,
					sizeof(had) - used, "%s%s", used == 0 ?
					"" : k == 0 ? "~" : "|", words[k]);
		cr_expect_str_eq(had, table[i].wanted, "%s: %s",
				 table[i].script, had);
		free(buffer);
	}
}

Test(words, beyond_the_last_are_left_out)
{
	const char *at = "a b c; d";
	char buffer[9], *words[2];

	cr_expect_eq(ddp_words_next(&at, buffer, words, 2), 2);
	cr_expect_str_eq(words[1], "b");
	cr_expect_eq(ddp_words_next(&at, buffer, words, 2), 1);
	cr_expect_str_eq(words[0], "d");
	cr_expect_eq(ddp_words_next(&at, buffer, words, 2), -1);
}

/* Scripts, and whether sbatch would take -k from them. */
static const struct {
	const char *script;
	bool wanted;
} sbatch[] = {
	{ "", false },
	{ "#!/bin/sh\n#SBATCH -k\n", true },
	{ "#!/bin/sh\n#SBATCH\t-N2 -k", true },
	{ "#!/bin/sh\n#SBATCH -C a&b -k # why", true },
	{ "#!/bin/sh\n\n \t# why\r\n \n#SBATCH -k\n", true },
	/* Not by itself */
	{ "#!/bin/sh\n#SBATCH -kx --k x-k\n", false },
	{ "#!/bin/sh\n#SBATCH -J \"a -k b\"\n", false },
	{ "#!/bin/sh\n#SBATCH -N2 # -k\n", false },
	{ "#!/bin/sh\n#SBATCH -J 'a\n# -k\n", false },
	/* Not for sbatch */
	{ "#!/bin/sh\n# SBATCH -k\n #SBATCH -k\n##SBATCH -k\n", false },
	{ "#!/bin/sh\ntrue\n#SBATCH -k\n", false },
	{ "#!/bin/sh\n  cat <<E\n#SBATCH -k\nE\n", false },
};

Test(words, of_sbatch_come_before_a_command)
{
	size_t i;

	for (i = 0; i < ROWS(sbatch); i++)
		cr_expect_eq(ddp_words_sbatch(sbatch[i].script, "-k"),
			     sbatch[i].wanted, "%s", sbatch[i].script);
}
