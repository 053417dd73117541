/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares what a case printed with what it must print. TAP on stdout. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

static unsigned int count, failures;

/*
 * Returns whether a run printed an entry; with "-" in front, whether it did not.
 * A "*" at the end stands for any end of the value.
 */
static bool entry_fits(const struct outcome *outcome, const char *entry)
{
	size_t length = strlen(entry);
	char name[256];
	const char *value;

	if (entry[0] == '-')
		return !outcome_get(outcome, entry + 1);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
	value = outcome_get(outcome, name);
	entry += strlen(name) + 1;
	length -= strlen(name) + 1;
	return value && (length > 0 && entry[length - 1] == '*' ?
			 strncmp(value, entry, length - 1) == 0 :
			 strcmp(value, entry) == 0);
}

static bool entries_fit(const struct outcome *outcome, char **entries,
			const char **missing)
{
	for (; *entries; entries++) {
		*missing = *entries;
		if (!entry_fits(outcome, *entries))
			return false;
	}
	return true;
}

/*
 * Count the lines of an environment, without the lines with # that the fakes
 * print.
 */
static size_t entries_count(const struct outcome *outcome)
{
	const char *line;
	size_t lines = 0;

	for (line = outcome->out; *line; line = strchr(line, '\n') + 1)
		lines += *line != '#';
	return lines;
}

/* Whether nothing ran: there was no task, or every task ended with 1. */
static bool nothing_ran(const struct outcome *outcome)
{
	const char *line, *end;

	for (line = outcome->out; (end = strchr(line, '\n')); line = end + 1) {
		if (strncmp(line, "#naps=", 6) == 0)
			continue;
		line += strspn(line, "0123456789");
		if (strncmp(line, ":#status=1\n", 11) != 0 &&
		    strncmp(line, ":#status=137\n", 13) != 0)
			return false;
	}
	return true;
}

static bool output_fits(const struct spank_case *test,
			const struct outcome *outcome, char *why, size_t size)
{
	bool same = test->want && strcmp(test->want, "same") == 0;
	const char *missing = "";
	char *entries[WORDS_MAX];
	size_t n = 0;
	bool fits;

	if (same)
		env_make(test->env, entries);
	else
		words_split(test->want, "|", entries);
	fits = entries_fit(outcome, entries, &missing);
	snprintf(why, size, "not in the output: %s", missing);
	while (entries[n])
		n++;
	if (same && fits && (entries_count(outcome) != n ||
			     !entry_fits(outcome, "#items=0"))) {
		fits = false;
		snprintf(why, size, "the environment has changed");
	}
	words_free(entries);
	return fits;
}

/*
 * A text of others, such as a variable, must not reach a terminal raw. The unit
 * tests of text.c tell which UTF-8 is safe.
 */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text != '\n' && iscntrl((unsigned char)*text))
			return false;
	return true;
}

static bool is_one_line(const char *text)
{
	const char *end = strchr(text, '\n');

	return end && end > text && end[1] == '\0';
}

/* Whether texts are equal, apart from the lengths of runs of spaces. */
static bool same_words(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a += *a == ' ' ? strspn(a, " ") : 1;
		b += *b == ' ' ? strspn(b, " ") : 1;
	}
	return *a == *b;
}

static bool errors_fit(const struct spank_case *test,
		       const struct outcome *outcome)
{
	if (test->refusal)
		return nothing_ran(outcome) && is_one_line(outcome->err) &&
		       strstr(outcome->err, "slurm-ddp: ") &&
		       strstr(outcome->err, test->refusal);
	return same_words(outcome->err, test->err ? test->err : "") &&
	       (!test->writes || outcome->writes == test->writes);
}

static void report(bool good, const char *name, const char *late,
		   const char *why)
{
	printf("%sok %u - %s%s\n", good ? "" : "not ", ++count, name, late);
	if (!good)
		printf("# %s\n", why);
	failures += !good;
}

void case_report(bool good, const char *name, const char *why)
{
	report(good, name, "", why);
}

void case_report_timed(bool good, const struct outcome *outcome,
		       const char *name, const char *why)
{
	bool late = outcome->took_ms >= TOOK_MAX_MS;

	report(good && !late, name, good && late ? " # LATE" : "", why);
}

static void comment(const char *title, const char *text)
{
	printf("# %s\n", title);
	for (; *text; text += strspn(text, "\n")) {
		printf("#   %.*s\n", (int)strcspn(text, "\n"), text);
		text += strcspn(text, "\n");
	}
}

void case_run(const struct spank_case *test)
{
	const struct outcome *outcome = case_try(test);
	int status = test->refusal ? 1 : test->status;
	char why[256], missing[sizeof(why)];
	bool good;

	snprintf(why, sizeof(why), "exit status %d, not %d; %u writes; %u ms",
		 outcome->status, status, outcome->writes,
		 (unsigned int)outcome->took_ms);
	good = outcome->status == status && errors_fit(test, outcome) &&
	       is_printable(outcome->err);
	if (good && !output_fits(test, outcome, missing, sizeof(missing))) {
		good = false;
		strcpy(why, missing);
	}
	/*
	 * No task may wait for a sibling that has said why it does not come.
	 */
	case_report_timed(good, outcome, test->name, why);
	if (!good) {
		comment("stdout:", outcome->out);
		comment("stderr:", outcome->err);
	}
}

void cases_run(const struct spank_case *tests, unsigned int n)
{
	while (n--)
		case_run(tests++);
}

int cases_end(void)
{
	printf("1..%u\n", count);
	return failures ? 1 : 0;
}
