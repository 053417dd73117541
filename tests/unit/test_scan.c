/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: which is found, and which is named as the one that was meant. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdio.h>
#include <string.h>

#include "util/scan.h"

struct near_row {
	char text[40];
	char near[16];		/* "": none */
};

/* The words are interface, port-range, env, mpi and on. */
ParameterizedTestParameters(scan, names_what_was_meant)
{
	static struct near_row table[] = {
		{ "interfce", "interface" }, { "Interface", "interface" },
		{ "nterfacee", "interface" }, { "interaface", "interface" },
		{ "interfaces_", "interface" }, { "interfaces__", "" },
		{ "port_range", "port-range" }, { "portrange", "port-range" },
		{ "enx", "env" }, { "ev", "env" }, { "mip", "mpi" },
		{ "", "" }, { "o", "" }, { "no", "" }, { "speed", "" },
		{ "a-text-that-is-longer-than-any-word", "" },
	};

	return cr_make_param_array(struct near_row, table,
				   sizeof(table) / sizeof(table[0]));
}

ParameterizedTest(struct near_row *row, scan, names_what_was_meant)
{
	static const char *const words[] = {
		"interface", "port-range", "env", "mpi", "on", NULL,
	};
	struct ddp_error error = { 0 };
	char want[160];

	cr_expect_eq(ddp_scan_word("key", row->text, words, &error), -1);
	snprintf(want, sizeof(want), "key '%s' is not one of interface, "
		 "port-range, env, mpi, on%s%s", row->text,
		 *row->near ? "; did you mean " : "", row->near);
	cr_expect_str_eq(error.text, want);
}

Test(scan, finds_a_word)
{
	static const char *const words[] = { "all", "own", NULL };
	struct ddp_error error = { 0 };

	cr_expect_eq(ddp_scan_word("key", "own", words, &error), 1);
	cr_expect_eq(error.code, DDP_ERROR_NONE);
}

/* "bet" is one letter from both, and the first is taken. */
Test(scan, the_nearest_counts)
{
	struct ddp_scan_nearest nearest = { 0 };

	ddp_scan_compare(&nearest, "--bets", 5, "beetle");
	cr_expect_null(nearest.name);
	ddp_scan_compare(&nearest, "bet=1", 3, "be");
	ddp_scan_compare(&nearest, "bet=1", 3, "best");
	cr_expect_str_eq(nearest.name, "be");
	ddp_scan_compare(&nearest, "bet=1", 3, "bet");
	cr_expect_str_eq(nearest.name, "bet");
	/* Two letters that are swapped are one mistake. */
	nearest = (struct ddp_scan_nearest){ 0 };
	ddp_scan_compare(&nearest, "hepl", 4, "eps");
	ddp_scan_compare(&nearest, "hepl", 4, "help");
	cr_expect_str_eq(nearest.name, "help");
	cr_expect_eq(nearest.distance, 1);
}
