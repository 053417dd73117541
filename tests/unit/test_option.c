/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <string.h>

#include "tool/option.h"

struct options {
	enum tool_help help;
	bool version, flag, on;
	unsigned word;
	const char *text;
	struct tool_list list;
	uint64_t whole, size, bytes;
	double real, share;
};

#define AT(field) offsetof(struct options, field)

static const struct tool_option rows[] = {
	{ "text", TOOL_TEXT, AT(text), .value = "X" },
	{ "list", TOOL_LIST, AT(list), .own = true },
	{ "flag", TOOL_FLAG, AT(flag), .letter = 'f' },
	{ "flags", TOOL_FLAG, AT(flag), .own = true },
	{ "switch", TOOL_SWITCH, AT(on), .value = "X" },
	{ "choice", TOOL_CHOICE, AT(word), .words = TOOL_WORDS("a", "bc") },
	{ "whole", TOOL_WHOLE, AT(whole), .min = 1, .max = UINT64_MAX,
	  .letter = 'w' },
	{ "size", TOOL_SIZE, AT(size), .value = "X" },
	{ "real", TOOL_REAL, AT(real), .value = "X" },
	{ "mebibytes", TOOL_MIB, AT(bytes), .value = "X" },
	{ "help", TOOL_HELP, AT(help), .letter = 'h', .own = true },
	{ "version", TOOL_ASK, AT(version), .own = true },
	{ "stop", TOOL_FLAG, AT(flag), .own = true },
	{ "fraction", TOOL_FRACTION, AT(share), .own = true, .value = "X" },
};

static const struct tool_options table = {
	.program = "prog", .rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]), .stray = "try again"
};

/* Split words at blanks; "''" is an empty one. */
static int parse(const char *words, struct options *options, uint64_t *given,
		 struct ddp_error *error)
{
	static char copy[256], empty[1];
	char *argv[16] = { empty };
	int argc = 1;

	strcpy(copy, words);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") == 0 ? empty : word;
	*options = (struct options){ .text = NULL };
	return tool_options_parse(&table, argc, argv, options, given, error);
}

struct reading {
	char words[64], described[192];
};

ParameterizedTestParameters(option, reads)
{
	static struct reading readings[] = {
#define REST(text, flag, on, word) "--text " text "\n--flag " flag \
	"\n--switch " on "\n--choice " word "\n"
		{ "", REST("-", "off", "off", "a")
		  "--whole -\n--size 0\n--real 0\n--mebibytes 0\n" },
		{ "--text x --flag --switch on --choice bc --", REST("x", "on",
		  "on", "bc")
		  "--whole -\n--size 0\n--real 0\n--mebibytes 0\n" },
		{ "--te=x=y --sw=on --switch off -f", REST("x=y", "on", "off",
		  "a")
		  "--whole -\n--size 0\n--real 0\n--mebibytes 0\n" },
		{ "-w 7 --si 3k --rea .1 --m 0.25", REST("-", "off", "off", "a")
		  "--whole 7\n--size 3072\n--real 0.1\n--mebibytes 0.25\n" },
		{ "-w18446744073709551615 --size=1024G --real 1e-1", REST("-",
		  "off", "off", "a") "--whole 18446744073709551615\n"
		  "--size 1099511627776\n--real 0.1\n--mebibytes 0\n" },
		/* 1048.576 bytes are 1049: 1049 / 2^20 is not less again. */
		{ "--m 0.001", REST("-", "off", "off", "a") "--whole -\n"
		  "--size 0\n--real 0\n--mebibytes 0.0010004043579101562\n" },
		{ "--m 0.0010004043579101562", REST("-", "off", "off", "a")
		  "--whole -\n--size 0\n--real 0\n"
		  "--mebibytes 0.0010004043579101562\n" },
		{ "--help --bogus", REST("-", "off", "off", "a")
		  "--whole -\n--size 0\n--real 0\n--mebibytes 0\n" },
#undef REST
	};

	return cr_make_param_array(struct reading, readings,
				   sizeof(readings) / sizeof(readings[0]));
}

ParameterizedTest(struct reading *row, option, reads)
{
	struct ddp_error error = { 0 };
	struct options options;
	char text[256];
	size_t length;

	cr_assert_eq(parse(row->words, &options, NULL, &error), 0, "%s: %s",
		     row->words, error.text);
	length = tool_options_describe(&table, &options, text, sizeof(text));
	cr_expect_eq(length, strlen(row->described));
	cr_expect_str_eq(text, row->described, "%s: %s", row->words, text);
	cr_expect_eq(tool_options_describe(&table, &options, text, 20), 20);
}

struct refusal {
	char words[64], error[112];
};

ParameterizedTestParameters(option, refuses)
{
	static struct refusal table_of[] = {
		{ "x", "'x' is not an option; try again" },
		{ "-", "'-' is not an option; try again" },
		{ "-- x", "'x' is not an option; try again" },
		{ "''", "'' is not an option; try again" },
		{ "--bogus", "--bogus is not an option of prog; see prog "
			     "--help" },
		{ "-x", "-x is not an option of prog; see prog --help" },
		{ "--wohle 3", "--wohle is not an option of prog; did you "
			       "mean --whole" },
		{ "--texts=3", "--texts is not an option of prog; did you "
			       "mean --text" },
		{ "--fla", "--fla is short for --flag and --flags; write "
			   "more of it" },
		{ "--s=1", "--s is short for --switch, --size and --stop; "
			   "write more of it" },
		{ "--hepl", "--hepl is not an option of prog; did you mean "
			    "--help" },
		{ "--text", "--text needs a value; see prog --help" },
		{ "-w", "-w needs a value; see prog --help" },
		{ "--text=", "--text needs a value that is not empty" },
		{ "--text=x\n--flag=on", "--text 'x?--flag=on' has a line break "
			"or another control character; choose one without" },
		{ "--flag=1", "--flag=1: --flag takes no value; leave it "
			      "out" },
		{ "-f1", "-f1: --flag takes no value; leave it out" },
		{ "--switch yes", "--switch 'yes' is not one of off, on" },
		{ "--choice b", "--choice 'b' is not one of a, bc" },
		{ "-w0", "--whole '0' is not a whole number from 1 to "
			 "18446744073709551615" },
		{ "-w 18446744073709551616", "--whole '18446744073709551616' "
			 "is not a whole number from 1 to "
			 "18446744073709551615" },
		{ "--size 1T", "--size '1T' is not a size from 1 to 1024G, "
			       "such as 8, 64K, 32M or 1G" },
		{ "--size 1025G", "--size '1025G' is not a size from 1 to "
				  "1024G, such as 8, 64K, 32M or 1G" },
		{ "--fraction 1", "--fraction '1' is not a number from 0 to "
				  "below 1" },
		{ "--real inf", "--real 'inf' is not a number from 0" },
		{ "--meb 1025", "--mebibytes '1025' is not a number from "
				"0.001 to 1024" },
		{ "--help help", "--help 'help' is not all, the only word "
				 "that it takes; leave it out" },
		{ "-ha", "--help 'a' is not all, the only word that it takes; "
			 "leave it out" },
		{ "--help=", "--help '' is not all, the only word that it "
			     "takes; leave it out" },
		{ "--version=1", "--version=1: --version takes no value; "
				 "leave it out" },
		{ "--bogus --text=", "--bogus is not an option of prog; see "
				     "prog --help" },
	};

	return cr_make_param_array(struct refusal, table_of,
				   sizeof(table_of) / sizeof(table_of[0]));
}

ParameterizedTest(struct refusal *row, option, refuses)
{
	struct ddp_error error = { 0 };
	struct options options;

	cr_expect_eq(parse(row->words, &options, NULL, &error), -1, "%s",
		     row->words);
	cr_expect_eq(error.code, DDP_ERROR_ARGUMENT);
	cr_expect_str_eq(error.text, row->error, "%s: %s", row->words,
			 error.text);
}

/* Lines that describe options set those that they name, and no others. */
Test(option, recalls)
{
	char lines[] = "--text x\n--unknown 3\n--flags on\n--flag on\nwords\n"
		       "--whole -\n--size 3072\n";
	struct options options = { .size = 1 };
	struct ddp_error error = { 0 };
	uint64_t recalled = 0;

	cr_assert_eq(tool_options_recall(&table, lines, 0, &options, &recalled,
					 &error), 0, "%s", error.text);
	cr_expect_str_eq(options.text, "x");
	cr_expect(options.flag);
	cr_expect_eq(options.size, 3072);
	/* Rows 0, 2, 6 and 7: --text, --flag, --whole and --size */
	cr_expect_eq(recalled, 1 << 0 | 1 << 2 | 1 << 6 | 1 << 7);
}

Test(option, recalls_all_but_some)
{
	char lines[] = "--text x\n--size 3072\n", wrong[] = "--size 1T\n";
	struct options options = { .size = 1 };
	struct ddp_error error = { 0 };
	uint64_t recalled = 0;

	cr_assert_eq(tool_options_recall(&table, lines, 1 << 7, &options,
					 &recalled, &error), 0);
	cr_expect_eq(options.size, 1);
	cr_expect_eq(recalled, 1 << 0);
	cr_expect_eq(tool_options_recall(&table, wrong, 0, &options, &recalled,
					 &error), -1);
	cr_expect_eq(recalled, 1 << 0);
}

Test(option, asks_for_help)
{
	static const struct {
		const char *words;
		enum tool_help help;
	} table_of[] = {
		{ "--flag", TOOL_HELP_NONE },
		{ "--help", TOOL_HELP_USUAL },
		{ "-h --bogus", TOOL_HELP_USUAL },
		{ "--help all bogus", TOOL_HELP_ALL },
		{ "--he=all", TOOL_HELP_ALL },
		{ "-hall", TOOL_HELP_ALL },
		{ "--version bogus --help", TOOL_HELP_NONE }
	};
	struct ddp_error error = { 0 };
	struct options options;

	for (size_t i = 0; i < sizeof(table_of) / sizeof(table_of[0]); i++) {
		cr_expect_eq(parse(table_of[i].words, &options, NULL, &error),
			     0, "%s: %s", table_of[i].words, error.text);
		cr_expect_eq(options.help, table_of[i].help, "%s",
			     table_of[i].words);
	}
}

/* Ranks whose options are wrong still have to know where to meet. */
Test(option, reads_on_after_an_error)
{
	struct ddp_error error;
	struct options options;
	uint64_t given = 0;

	cr_expect_eq(parse("--whole x --choice bc --help --flag", &options,
			   &given, &error), -1);
	cr_expect_eq(options.word, 1);
	cr_expect(options.flag);
	cr_expect_eq(given, 1 << 5 | 1 << 10 | 1 << 2);
}

Test(option, lists_grow_to_their_limit)
{
	struct ddp_error error;
	struct options options;
	char *argv[TOOL_LIST_MAX + 2];
	static char name[] = "prog", option[] = "--list=";

	for (int i = 0; i < TOOL_LIST_MAX + 2; i++)
		argv[i] = i ? option : name;
	options = (struct options){ .text = NULL };
	cr_expect_eq(tool_options_parse(&table, TOOL_LIST_MAX + 1, argv,
					&options, NULL, &error), 0);
	cr_expect_eq(options.list.count, TOOL_LIST_MAX);
	cr_expect_str_eq(options.list.texts[63], "");
	options = (struct options){ .text = NULL };
	cr_expect_eq(tool_options_parse(&table, TOOL_LIST_MAX + 2, argv,
					&options, NULL, &error), -1);
	cr_expect_str_eq(error.text, "--list is given more than 64 times");
}
