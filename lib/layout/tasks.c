/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads how many tasks each node has. */
#include "layout/tasks.h"

#include "util/scan.h"

#define WHAT "tasks per node"

/* Read "N" or "N(xCOUNT)", COUNT from 1 to nodes. */
static int parse_entry(const char *text, const char **at, size_t nodes,
		       uint64_t *tasks, uint64_t *count,
		       struct ddp_error *error)
{
	*count = 1;
	if (ddp_scan_number(at, 0, DDP_RANK_MAX, tasks))
		return ddp_scan_error(error, WHAT, text, *at,
				      "a number of tasks from 0 to %d",
				      DDP_RANK_MAX);
	if (**at != '(')
		return 0;
	if (*++*at != 'x')
		return ddp_scan_error(error, WHAT, text, *at, "'x'");
	++*at;
	if (ddp_scan_number(at, 1, nodes, count))
		return ddp_scan_error(error, WHAT, text, *at,
				      "a number of nodes from 1 to %zu, as "
				      "many as are left", nodes);
	if (**at != ')')
		return ddp_scan_error(error, WHAT, text, *at, "')'");
	++*at;
	return 0;
}

int ddp_tasks_parse(const char *text, size_t node_count, uint32_t *tasks,
		    struct ddp_error *error)
{
	const char *at, *entry;
	uint64_t value, count, sum = 0;
	size_t filled = 0;

	if (!text)
		text = "";
	if (node_count == 0)
		return ddp_scan_error(error, WHAT, text, text, "some nodes");
	for (at = text;; at++) {
		entry = at;
		if (parse_entry(text, &at, node_count - filled, &value, &count,
				error))
			return -1;
		sum += value * count;
		if (sum > DDP_RANK_MAX)
			return ddp_scan_error(error, WHAT, text, entry,
					      "at most %d tasks in all",
					      DDP_RANK_MAX);
		while (count-- > 0)
			tasks[filled++] = (uint32_t)value;
		if (filled == node_count)
			break;
		if (*at != ',')
			return ddp_scan_error(error, WHAT, text, at,
					      "',' and the tasks of %zu more "
					      "nodes", node_count - filled);
	}
	if (*at != '\0')
		return ddp_scan_error(error, WHAT, text, at,
				      "the end after %zu nodes", node_count);
	if (sum == 0)
		return ddp_scan_error(error, WHAT, text, text,
				      "at least one task");
	return 0;
}
