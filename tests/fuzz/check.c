/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what ddp-info --doctor makes of Slurm's and the nodes' words. The
 * input is the configuration, the list of nodes, and the facts of each of two
 * nodes, with a line "--" between them; each line is one of plugstack.conf too.
 */
#include "fuzz.h"

#include "check.h"

/* Cuts the text at the next line "--"; returns what follows. */
static char *cut(char *text)
{
	char *end = strstr(text, "\n--\n");

	if (!end)
		return text + strlen(text);
	end[1] = '\0';
	return end + 4;
}

static void check_lines(struct check *out)
{
	char *text = ddp_text_finish(&out->text), *at;
	unsigned lines = 0, i;

	CHECK(text);
	for (at = text; *at; at++) {
		CHECK(*at == '\n' || ((unsigned char)*at >= ' ' && *at != '\177'));
		lines += *at == '\n';
	}
	for (i = 0; i < CHECK_LEVELS; i++)
		lines -= out->counts[i];
	CHECK(lines == 1);
	free(text);
}

static void read_stack(const char *text)
{
	char path[CHECK_VALUE_SIZE];
	bool required;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *line = text;

		if (check_stack_line(&line, path, &required) !=
		    CHECK_STACK_OTHER)
			CHECK(*path && !strchr(path, '\n'));
		CHECK(line >= text && line <= text + strlen(text));
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *config = fuzz_text(data, size), *nodes, *first, *second;
	struct check_node list[] = {
		{ .name = "login", .here = true },
		{ .name = "n1", .after = 1, .before = 2 },
		{ .name = "n2", .after = 1, .before = 2 },
		{ .name = "n3", .problem = "none" },
	};
	struct check_world world = {
		.config = config, .partitions = config, .version = "0.1.0",
		.nodes = list, .count = 4
	};
	struct check out = { .counts = { 0 } };

	read_stack(config);
	nodes = cut(config);
	first = cut(nodes);
	second = cut(first);
	list[0].facts = list[1].facts = first;
	list[2].facts = second;
	check_config(&out, config, nodes);
	check_nodes(&out, &world);
	check_end(&out);
	check_lines(&out);
	free(config);
	return 0;
}
