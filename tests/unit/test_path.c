/* SPDX-License-Identifier: BSD-3-Clause */
/* The folders of a PATH. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "util/path.h"

/* The names that a file "a" has, with a blank behind each. */
static const struct {
	const char *path, *wanted;
} table[] = {
	{ NULL, "" },
	{ "", "" },
	{ ":", "" },
	{ "/bin", "/bin/a " },
	{ "/usr/bin:/bin", "/usr/bin/a /bin/a " },
	{ ":/bin::b:", "/bin/a b/a " },
	{ "/:.", "//a ./a " },
};

Test(path, folders)
{
	char file[PATH_MAX], found[256];
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		found[0] = '\0';
		for (at = table[i].path; ddp_path_next(&at, "a", file);)
			strcat(strcat(found, file), " ");
		cr_expect_str_eq(found, table[i].wanted, "%zu: %s", i, found);
	}
}

/* With the '/', the 'a' and the NUL there is room for PATH_MAX - 3. */
Test(path, too_long)
{
	char path[2 * PATH_MAX], file[PATH_MAX];
	const char *at = path;

	memset(path, 'f', sizeof(path));
	strcpy(path + PATH_MAX - 3, ":/bin");
	cr_expect(ddp_path_next(&at, "a", file));
	cr_expect_eq(strlen(file), PATH_MAX - 1);
	cr_expect(ddp_path_next(&at, "a", file));
	cr_expect_str_eq(file, "/bin/a");
	at = path;
	cr_expect(ddp_path_next(&at, "aa", file));
	cr_expect_str_eq(file, "/bin/aa");
	cr_expect_not(ddp_path_next(&at, "aa", file));
}
