/* SPDX-License-Identifier: BSD-3-Clause */
/* The switches and blocks of a cluster as a tree, and a walk through its leaves. */
#define _GNU_SOURCE
#include "layout/network.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NONE UINT32_MAX

/* A switch or a block. */
struct group {
	const char *name;
	const char *below;		/* Switches= */
	struct ddp_hostlist *nodes;	/* Nodes=; NULL: none */
	struct ddp_hostlist *switches;	/* the list of below */
	uint32_t parent;		/* NONE: nothing is above it */
	uint32_t rank;			/* among those of its parent */
	uint32_t depth;
};

/* A name, and the group that it is on or names. */
struct entry {
	const char *name;
	uint32_t group;
};

struct ddp_network {
	char *text;			/* whose names the groups have */
	struct group *groups;
	uint32_t count;
	struct entry *nodes;		/* by name */
	size_t node_count;
};

/* ---- names */

static int compare_entries(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;
	int order = strcmp(a->name, b->name);

	return order ? order : a->group < b->group ? -1 : 1;
}

static int compare_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct entry *)entry)->name);
}

/* Returns the first group of this name; NONE: there is none. */
static uint32_t find(const struct entry *entries, size_t count,
		     const char *name)
{
	const struct entry *found = !count ? NULL :
		bsearch(name, entries, count, sizeof(*entries), compare_name);

	while (found && found > entries && strcmp(found[-1].name, name) == 0)
		found--;
	return found ? found->group : NONE;
}

static uint32_t find_leaf(const struct ddp_network *network, const char *node)
{
	return find(network->nodes, network->node_count, node);
}

/* ---- reading */

/* Returns the value of "KEY=value" if the word is of this key; else NULL. */
static const char *get_value(const char *word, const char *key)
{
	size_t length = strlen(key);

	return strncasecmp(word, key, length) == 0 && word[length] == '=' ?
		word + length + 1 : NULL;
}

static int read_line(struct ddp_network *network, char *line,
		     struct ddp_error *error)
{
	struct group group = { .parent = NONE }, *more;
	const char *value, *nodes = NULL;
	char *word, *save;

	line[strcspn(line, "#")] = '\0';
	for (word = strtok_r(line, " \t\r", &save); word;
	     word = strtok_r(NULL, " \t\r", &save)) {
		if ((value = get_value(word, "SwitchName")) ||
		    (value = get_value(word, "BlockName")))
			group.name = value;
		else if ((value = get_value(word, "Switches")))
			group.below = value;
		else if ((value = get_value(word, "Nodes")))
			nodes = value;
	}
	if (!group.name)
		return 0;
	more = realloc(network->groups, (network->count + 1) * sizeof(*more));
	if (!more)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	network->groups = more;
	group.rank = network->count;
	more[network->count++] = group;
	/* scontrol lists the nodes of a switch again for each switch above it. */
	if (!nodes || group.below)
		return 0;
	more[network->count - 1].nodes = ddp_hostlist_create(nodes, error);
	return more[network->count - 1].nodes ? 0 : -1;
}

static int read_lines(struct ddp_network *network, struct ddp_error *error)
{
	char *line, *save, *at = network->text;

	/* A line may go on on the next one. */
	while ((at = strstr(at, "\\\n")))
		memset(at, ' ', 2);
	for (line = strtok_r(network->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (read_line(network, line, error) < 0)
			return -1;
	if (network->count)
		return 0;
	return ddp_error_set(error, DDP_ERROR_ARGUMENT, "the topology has no "
			     "SwitchName= and no BlockName=");
}

/* ---- the tree */

static int adopt(struct ddp_network *network, const struct entry *names,
		 uint32_t parent, struct ddp_error *error)
{
	struct group *group = &network->groups[parent];
	uint32_t i, child;

	group->switches = ddp_hostlist_create(group->below, error);
	if (!group->switches)
		return -1;
	for (i = 0; i < ddp_hostlist_count(group->switches); i++) {
		child = find(names, network->count,
			     ddp_hostlist_get(group->switches, i));
		if (child == NONE)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "the topology has no switch "
					     "%.64s, which is below %.64s",
					     ddp_hostlist_get(group->switches,
							      i), group->name);
		/* A switch has one way up here, the first. */
		if (network->groups[child].parent != NONE)
			continue;
		network->groups[child].parent = parent;
		network->groups[child].rank = i;
	}
	return 0;
}

static int set_depth(struct ddp_network *network, struct group *group,
		     struct ddp_error *error)
{
	uint32_t at = group->parent;

	for (; at != NONE; at = network->groups[at].parent)
		if (++group->depth > DDP_NETWORK_LEVELS)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					     "the topology has a switch %.64s "
					     "that is below itself, or below "
					     "more than %d others",
					     group->name, DDP_NETWORK_LEVELS);
	return 0;
}

static int join(struct ddp_network *network, struct ddp_error *error)
{
	struct entry *names = calloc(network->count, sizeof(*names));
	uint32_t i;
	int rc = 0;

	if (!names)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (i = 0; i < network->count; i++)
		names[i] = (struct entry){ network->groups[i].name, i };
	qsort(names, network->count, sizeof(*names), compare_entries);
	for (i = 0; i < network->count && rc == 0; i++)
		if (network->groups[i].below)
			rc = adopt(network, names, i, error);
	for (i = 0; i < network->count && rc == 0; i++)
		rc = set_depth(network, &network->groups[i], error);
	free(names);
	return rc;
}

static int list_nodes(struct ddp_network *network, struct ddp_error *error)
{
	size_t count = 0, i;
	uint32_t group;

	for (group = 0; group < network->count; group++)
		if (network->groups[group].nodes)
			count += ddp_hostlist_count(
					network->groups[group].nodes);
	network->nodes = calloc(count + 1, sizeof(*network->nodes));
	if (!network->nodes)
		return ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	for (group = 0; group < network->count; group++) {
		const struct ddp_hostlist *hosts = network->groups[group].nodes;

		for (i = 0; hosts && i < ddp_hostlist_count(hosts); i++)
			network->nodes[network->node_count++] = (struct entry){
				ddp_hostlist_get(hosts, i), group };
	}
	qsort(network->nodes, count, sizeof(*network->nodes), compare_entries);
	return 0;
}

struct ddp_network *ddp_network_create(const char *text,
				       struct ddp_error *error)
{
	struct ddp_network *network = calloc(1, sizeof(*network));

	if (network)
		network->text = strdup(text);
	if (!network || !network->text)
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
	else if (read_lines(network, error) == 0 &&
		 join(network, error) == 0 && list_nodes(network, error) == 0)
		return network;
	ddp_network_destroy(network);
	return NULL;
}

void ddp_network_destroy(struct ddp_network *network)
{
	uint32_t i;

	if (!network)
		return;
	for (i = 0; i < network->count; i++) {
		ddp_hostlist_destroy(network->groups[i].nodes);
		ddp_hostlist_destroy(network->groups[i].switches);
	}
	free(network->groups);
	free(network->nodes);
	free(network->text);
	free(network);
}

/* ---- distance and order */

/* Whatever has no parent is one level below a root that the text does not have. */
static uint32_t get_depth(const struct ddp_network *network, uint32_t group)
{
	return group == NONE ? 0 : network->groups[group].depth + 1;
}

static uint32_t climb(const struct ddp_network *network, uint32_t group,
		      uint32_t depth)
{
	while (get_depth(network, group) > depth)
		group = network->groups[group].parent;
	return group;
}

/*
 * Moves both up, to equal depth and then until they are on one switch. Returns
 * that; NONE: nothing in the text is above both.
 */
static uint32_t meet(const struct ddp_network *network, uint32_t *one,
		     uint32_t *other)
{
	const struct group *groups = network->groups;
	uint32_t depth = get_depth(network, *one);

	if (depth > get_depth(network, *other))
		depth = get_depth(network, *other);
	*one = climb(network, *one, depth);
	*other = climb(network, *other, depth);
	if (*one == *other)
		return *one;
	while (groups[*one].parent != groups[*other].parent) {
		*one = groups[*one].parent;
		*other = groups[*other].parent;
	}
	return groups[*one].parent;
}

/* Counts the links between two leaves. A node on no switch is one level below the
 * root. */
static uint32_t count_links(const struct ddp_network *network, uint32_t one,
			    uint32_t two)
{
	uint32_t links = get_depth(network, one) + get_depth(network, two);

	if (one == NONE || two == NONE)
		return links + (one == NONE) + (two == NONE);
	return links - 2 * get_depth(network, meet(network, &one, &two));
}

bool ddp_network_has(const struct ddp_network *network, const char *node)
{
	return find_leaf(network, node) != NONE;
}

uint32_t ddp_network_distance(const struct ddp_network *network,
			      const char *node, const char *other)
{
	return strcmp(node, other) == 0 ? 0 :
		count_links(network, find_leaf(network, node),
			    find_leaf(network, other));
}

/* A host, to be sorted. */
struct host {
	const struct ddp_network *network;
	uint32_t leaf, index;
};

static int compare_hosts(const void *one, const void *other)
{
	const struct host *a = one, *b = other;
	const struct group *groups = a->network->groups;
	uint32_t x = a->leaf, y = b->leaf;

	if (x == y)
		return a->index < b->index ? -1 : 1;
	if (x == NONE || y == NONE)
		return x == NONE ? 1 : -1;
	meet(a->network, &x, &y);
	return groups[x].rank < groups[y].rank ? -1 : 1;
}

static struct host *sort(const struct ddp_network *network,
			 const struct ddp_hostlist *list,
			 struct ddp_error *error)
{
	uint32_t count = (uint32_t)ddp_hostlist_count(list), i;
	struct host *hosts = calloc(count, sizeof(*hosts));

	if (!hosts) {
		ddp_error_set(error, DDP_ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	for (i = 0; i < count; i++)
		hosts[i] = (struct host){
			network, find_leaf(network, ddp_hostlist_get(list, i)),
			i
		};
	qsort(hosts, count, sizeof(*hosts), compare_hosts);
	return hosts;
}

int ddp_network_order(const struct ddp_network *network,
		      const struct ddp_hostlist *hosts, uint32_t *order,
		      struct ddp_error *error)
{
	struct host *sorted = sort(network, hosts, error);
	size_t i;

	if (!sorted)
		return -1;
	for (i = 0; i < ddp_hostlist_count(hosts); i++)
		order[i] = sorted[i].index;
	free(sorted);
	return 0;
}

uint64_t ddp_network_crossings(const struct ddp_network *network,
			       const struct ddp_hostlist *hosts,
			       const uint32_t *order)
{
	size_t count = ddp_hostlist_count(hosts), i;
	uint32_t leaf = 0, last = find_leaf(network, ddp_hostlist_get(hosts,
					order ? order[count - 1] : count - 1));
	uint64_t links = 0;

	for (i = 0; i < count && count > 1; i++, last = leaf) {
		leaf = find_leaf(network, ddp_hostlist_get(hosts,
						order ? order[i] : i));
		links += count_links(network, last, leaf);
	}
	/* A ring goes down as often as it goes up. */
	return links / 2;
}

int64_t ddp_network_used(const struct ddp_network *network,
			 const struct ddp_hostlist *hosts, uint32_t *cut)
{
	struct host *sorted = sort(network, hosts, NULL);
	size_t count = ddp_hostlist_count(hosts), i, first;
	const struct group *group;
	int64_t used = 0;

	if (!sorted)
		return -1;
	*cut = 0;
	for (i = first = 0; i < count; i++) {
		if (i + 1 < count && sorted[i].leaf != NONE &&
		    sorted[i + 1].leaf == sorted[i].leaf)
			continue;
		used++;
		group = sorted[i].leaf == NONE ? NULL :
			&network->groups[sorted[i].leaf];
		*cut += group && ddp_hostlist_count(group->nodes) >
				 i + 1 - first;
		first = i + 1;
	}
	free(sorted);
	return used;
}
