/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the findings of ddp-info --doctor from what Slurm and the nodes say.
 * The files check*.c are pure: text in, findings out. The texts are Slurm's own
 * words ("scontrol show config"), and facts of a node, which are lines "NAME
 * value" that facts.c writes. doctor.c gets the texts and prints the findings.
 */
#ifndef DDP_INFO_CHECK_H
#define DDP_INFO_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "util/text.h"

/*
 * WRONG: jobs fail, hang or compute something else. ADVICE: they run, but
 * could do so safer or faster. UNKNOWN: it could not be examined.
 */
enum check_level {
	CHECK_OK, CHECK_ADVICE, CHECK_UNKNOWN, CHECK_WRONG, CHECK_LEVELS
};

/* Begin with { 0 }. */
struct check {
	struct ddp_text text;		/* a line for each finding */
	unsigned counts[CHECK_LEVELS];
	bool colour;
};

enum { CHECK_VALUE_SIZE = 4096 };

/* Add a line about a thing. What others wrote in it is made printable. */
void check_add(struct check *out, enum check_level level, const char *what,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Add the last line: how many findings there are of each level. */
void check_end(struct check *out);

/*
 * Copy what stands behind "NAME   = " in a line of a text such as that of
 * scontrol show config, without the blanks at its end. Returns false, and
 * value is empty, where it is not there, "(null)", or too long.
 */
bool check_get(const char *config, const char *name, char *value, size_t size);

/* The same behind "NAME=" in a line of words, such as scontrol -o show node. */
bool check_word(const char *line, const char *name, char *value, size_t size);

/* The next line of a text; NULL: there is none. */
const char *check_next_line(const char *text);

/* a below b: <0; the numbers between dots of both are compared. */
int check_compare_versions(const char *a, const char *b);

/*
 * The configuration. config is what scontrol show config says, nodes what
 * scontrol -o show nodes does, a node a line (NULL: nothing).
 */
void check_config(struct check *out, const char *config, const char *nodes);

/* ---- a line of plugstack.conf */

enum check_stack { CHECK_STACK_OTHER, CHECK_STACK_INCLUDE, CHECK_STACK_PLUGIN };

/*
 * Returns what a line is. An include sets path to its pattern; one of
 * spank_ddp.so sets path to that of the plugin, and *required. path has
 * CHECK_VALUE_SIZE bytes. *line moves past it, to the plugin's arguments.
 */
enum check_stack check_stack_line(const char **line, char *path,
				  bool *required);

/* Copy the next argument; returns false behind the last. */
bool check_stack_argument(const char **line, char *word, size_t size);

/* ---- nodes */

struct check_node {
	const char *name;
	bool here;		/* where ddp-info runs; false: a compute node */
	const char *facts;	/* NULL: none came */
	const char *problem;	/* why not, or NULL */
	/* Facts were written between these, in seconds of the date here; 0:
	   the clock need not be compared. */
	double after, before;
};

/* The value of a fact of a node, into value. Returns false where it is not. */
bool check_fact(const struct check_node *node, const char *name, char *value,
		size_t size);

struct check_world {
	const char *config;		/* as in check_config */
	const char *partitions;		/* of scontrol -o show partition, or
					   NULL */
	const char *version;		/* of this ddp-info */
	const struct check_node *nodes;
	size_t count;
};

/* Judge the nodes, and the plugin on them. */
void check_nodes(struct check *out, const struct check_world *world);
void check_plugin(struct check *out, const struct check_world *world);

/*
 * The verdict on one node. A judge leaves text empty if there is nothing to
 * say.
 */
struct check_verdict {
	const struct check_world *world;
	enum check_level level;
	char text[1024];
};
typedef void check_judge(const struct check_node *node,
			 struct check_verdict *verdict);

/* Add a line for each verdict, with the names of all nodes that have it. */
void check_each(struct check *out, const struct check_world *world,
		const char *what, check_judge *judge);

/* Fill in a verdict. */
void check_say(struct check_verdict *verdict, enum check_level level,
	       const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Names of nodes, for a finding: "n1, n2, n3, n4 and 60 more". Begin with
 * { 0 }.
 */
struct check_group {
	char names[1200];
	size_t count;
};
void check_group_add(struct check_group *group, const char *name);
const char *check_group_names(struct check_group *group);

#endif
