/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and words of shell scripts. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request/shell_words.h"

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
	{ "a $(sed 's/(.*//')\nb", "a|$(sed 's/(.*//')~b" },
	{ "a $(awk -F')' x) b", "a|$(awk -F')' x)|b" },
	{ "a \"$(b \"(\")\" c", "a|$(b \"(\")|c" },
	{ "a $(b it\\'s) c", "a|$(b it\\'s)|c" },
	{ "a ${b%%(*} ${c%'}'} d", "a|${b%%(*}|${c%'}'}|d" },
	{ "a \"${b:-it's}\" c", "a|${b:-it's}|c" },
	/* Never closed */
	{ "a 'b c", "a|b c" },
	{ "a \"b c", "a|b c" },
	{ "a $(b c", "a|$(b c" },
	{ "a `b c", "a|`b c" },
	{ "a \\", "a|\\" },
	{ "a &", "a" },
	/* Reserved words, and what is no command */
	{ "if a; then b; elif ! c; then d; else e; fi; f", "a~b~c~d~e~f" },
	{ "while a; do b; done; until c; do d; done", "a~b~c~d" },
	{ "echo if then fi", "echo|if|then|fi" },
	{ "{ a; }; b", "a~b" },
	{ "case $x in a) b ;; c|d) e;; (f) g; esac; h", "b~e~g~h" },
	{ "case $x\nin\na)\n b\n ;;\n*) c ;&\nd) e ;;&\nesac\nf",
	  "b~c~e~f" },
	{ "a() { b; }; c", "b~c" },
	{ "a () (b)\nc", "b~c" },
	{ "function a { b; }; function c() { d; }; e", "b~d~e" },
	{ "a <<E b\nc\nE\nd", "a|<<E|b~d" },
	{ "a << 'E' | b\nc\n E\nEE\nE\nd", "a|<<|E~b~d" },
	{ "a <<-E\n\tc\n\t\tE\nd", "a|<<-E~d" },
	{ "a <<E <<F\nE\nc\nF\nd", "a|<<E|<<F~d" },
	{ "a <<<E\nb", "a|<<<E~b" },
	{ "a <<E\nb", "a|<<E" },
	{ "a $((1<<2))\nb", "a|$((1<<2))~b" },
	{ "a $(b '(')\nc", "a|$(b '(')~c" },
	{ "a \"$(b \"(\\\")\" $(c ')'))\"\nd", "a|$(b \"(\\\")\" $(c ')'))~d" },
	{ "((a<<b))\nc", "c" },
};

Test(words, are_those_of_a_shell)
{
	char *words[8], *buffer, had[256];
	struct ddp_script script;
	size_t i, used;
	int count, k;

	for (i = 0; i < ROWS(table); i++) {
		script = (struct ddp_script){ .begin = table[i].script,
					      .at = table[i].script };
		buffer = malloc(strlen(script.at) + 1);
		cr_assert(buffer);
		had[0] = '\0';
		used = 0;
		while ((count = ddp_words_next(&script, buffer, words,
					       8)) >= 0)
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
	const char *text = "a b c; d";
	struct ddp_script script = { .begin = text, .at = text };
	char buffer[9], *words[2];

	cr_expect_eq(ddp_words_next(&script, buffer, words, 2), 2);
	cr_expect_str_eq(words[1], "b");
	cr_expect_eq(ddp_words_next(&script, buffer, words, 2), 1);
	cr_expect_str_eq(words[0], "d");
	cr_expect_eq(ddp_words_next(&script, buffer, words, 2), -1);
}

/*
 * Scripts, and for each command, by its first letter, its line and its choice, by
 * the first command of that; "=" where it is also in the branch of that command.
 */
static const struct {
	const char *script, *wanted;
} choices[] = {
	{ "a\nb \\\n c\nd", "a1 b2 d4" },
	{ "a <<E\nx\nE\nb", "a1 b4" },
	{ "if a\nthen b; c\nelse d\nfi\ne", "a1= b2a c2a d3a e5" },
	/* An if in another is of the other's choice. */
	{ "if a; then if b; then c; fi; fi; d", "a1= b1a c1a d1" },
	{ "case x in a) b; c;; d) e;; esac; f", "b1= c1= e1b f1" },
	/* All functions are one choice. */
	{ "a() { b; c; }; d() { e; }; f", "b1= c1= e1b f1" },
	{ "if a; then b; fi; if c; then d; fi", "a1= b1a c1= d1c" },
	{ "{ a; }; while b; do c; done", "a1 b1 c1" },
	{ "f() { { a; }; b; }; c", "a1= b1= c1" },
	{ "fi; a; esac; }; b", "a1 b1" },
	/* Behind a test; "c &&" alone is none. */
	{ "[ 1 ] && a || b; c && d", "[1 a1= b1a c1 d1" },
	{ "test 1 ||\na | b\nc", "t1 a2= b2= c3" },
	{ "[[ 1 && 2 ]] && { a; b; }; c", "[1 21= a1= b1= c1" },
	{ "[ 1 ] && { [ 2 ] && a; b; }; c", "[1 [1= a1= b1= c1" },
	{ "if [ 1 ] && a; then b; [ 2 ] || c; d; fi", "[1= a1= b1[ [1[ c1= d1[" },
};

Test(words, of_branches_are_known_by_them)
{
	struct { unsigned int choice, branch; char letter; } first[8];
	char *words[8], buffer[128], had[128];
	size_t i, k, known, used;
	struct ddp_script script;
	int count;

	for (i = 0; i < ROWS(choices); i++) {
		script = (struct ddp_script){ .begin = choices[i].script,
					      .at = choices[i].script };
		used = known = 0;
		had[0] = '\0';
		while ((count = ddp_words_next(&script, buffer, words, 8)) >=
		       0) {
			if (count == 0)
				continue;
			used += (size_t)snprintf(had + used, sizeof(had) - used,
				"%s%c%u", used ? " " : "", words[0][0],
				script.line);
			for (k = 0; k < known && first[k].choice !=
			     script.choice; k++)
				;
			if (script.choice && k == known) {
				first[k].choice = script.choice;
				first[k].branch = script.branch;
				first[known++].letter = words[0][0];
			}
			if (script.choice)
				used += (size_t)snprintf(had + used,
					sizeof(had) - used, "%c",
					first[k].branch == script.branch ?
					'=' : first[k].letter);
		}
		cr_expect_str_eq(had, choices[i].wanted, "%s: %s",
				 choices[i].script, had);
	}
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
