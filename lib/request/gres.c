/* SPDX-License-Identifier: BSD-3-Clause */
/* A parser of what Slurm's options and scontrol say of GPUs. */
#define _GNU_SOURCE
#include "request/gres.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/scan.h"

#define DIGITS "0123456789"

enum { TYPES_MAX = 64 };

/* GPUs of one type that an item asks for. */
struct request {
	const char *type;	/* of type_length bytes; none: any type */
	size_t type_length;
	uint64_t count;
};

struct parser {
	const char *what;
	const char *text;
	bool named;		/* items begin with a name, such as "gpu" */
	struct ddp_error *error;
	struct request requests[TYPES_MAX];
	size_t request_count;
};

static int fail(const struct parser *parser, const char *at,
		const char *expected)
{
	return ddp_scan_error(parser->error, parser->what, parser->text, at,
			      "%s", expected);
}

/*
 * Returns the factor of k, kib, kb and so on, as in Slurm; 0 for other words.
 */
static uint64_t get_suffix_factor(const char *suffix, size_t length)
{
	static const char powers[] = "kmgtp";
	const char *power = strchr(powers, *suffix | 0x20);
	uint64_t base = length == 2 ? 1000 : 1024, factor = 1;

	if (!power || length > 3 ||
	    (length == 2 && strncasecmp(suffix + 1, "b", 1) != 0) ||
	    (length == 3 && strncasecmp(suffix + 1, "ib", 2) != 0))
		return 0;
	for (; power >= powers; power--)
		factor *= base;
	return factor;
}

/*
 * Read what Slurm takes for a number, "2" or "1k", from exactly length bytes.
 * Numbers too large to hold come out as UINT64_MAX.
 */
static bool parse_number(const char *text, size_t length, uint64_t *value)
{
	const char *suffix = text;
	uint64_t number, factor = 1;
	size_t digits;

	if (ddp_scan_number(&suffix, 0, UINT64_MAX, &number))
		return false;
	digits = (size_t)(suffix - text);
	if (digits < length)
		factor = get_suffix_factor(suffix, length - digits);
	if (factor == 0)
		return false;
	*value = number > UINT64_MAX / factor ? UINT64_MAX : number * factor;
	return true;
}

/* A type is a word that nobody can have meant as a number. */
static bool is_valid_type(const char *type, size_t length)
{
	return strspn(type, DIGITS) < length &&
	       strcspn(type, ":= \t\n") >= length &&
	       *type != '-' && *type != '+';
}

/* Read "COUNT", "TYPE" or "TYPE:COUNT" from text up to end. */
static int parse_request(const struct parser *parser, const char *text,
			 const char *end, struct request *request)
{
	size_t length = (size_t)(end - text);
	size_t first = strcspn(text, ":=");
	const char *count = text;

	request->type = text;
	request->type_length = 0;
	request->count = 1;
	if (first < length) {
		count = text + first + 1;
		request->type_length = first;
		if (!is_valid_type(text, first))
			return fail(parser, text, "a type of GPU");
		if (!parse_number(count, (size_t)(end - count),
				  &request->count))
			return fail(parser, count, "a number of GPUs");
	} else if (!parse_number(text, length, &request->count)) {
		request->type_length = length;
		if (!is_valid_type(text, length))
			return fail(parser, text, "a number or type of GPUs");
	}
	if (request->count > DDP_GRES_MAX)
		return fail(parser, count, "at most 65535 GPUs");
	return 0;
}

/* Keep a request. Each type may come once: Slurm does not add them up. */
static int add_request(struct parser *parser, const char *at,
		       const struct request *request)
{
	const struct request *other;
	size_t i;

	for (i = 0; i < parser->request_count; i++) {
		other = &parser->requests[i];
		if ((other->type_length == 0) != (request->type_length == 0))
			return fail(parser, at,
				    "a type for all GPUs or for none");
		if (other->type_length == request->type_length &&
		    memcmp(other->type, request->type,
			   request->type_length) == 0)
			return fail(parser, at, "each type of GPU once");
	}
	if (parser->request_count == TYPES_MAX)
		return fail(parser, at, "at most 64 types of GPUs");
	parser->requests[parser->request_count++] = *request;
	return 0;
}

/* Read the item from at up to end; skips items of other names. */
static int parse_item(struct parser *parser, const char *at, const char *end)
{
	struct request request = { at, 0, 1 };
	const char *body;

	if (parser->named) {
		if (strncmp(at, "gres:", 5) == 0 ||
		    strncmp(at, "gres/", 5) == 0)
			at += 5;
		if (strcspn(at, ":=(,") != 3 || strncmp(at, "gpu", 3) != 0)
			return 0;
		at += 3;
	}
	body = at + strcspn(at, "(,");
	if (*body == '(' && end[-1] != ')')
		return fail(parser, body, "')' at the end of the item");
	if (!parser->named) {
		if (parse_request(parser, at, body, &request))
			return -1;
	} else if (at < body) {
		if (parse_request(parser, at + 1, body, &request))
			return -1;
	}
	return request.count > 0 ? add_request(parser, at, &request) : 0;
}

/* Find the ',' or NUL that ends an item; commas in parentheses do not. */
static const char *find_item_end(const char *at)
{
	const char *close;

	for (;;) {
		at += strcspn(at, "(,");
		if (*at != '(')
			return at;
		close = strchr(at, ')');
		at = close ? close : at + 1;
	}
}

static int count_list(struct parser *parser, uint32_t *gpus)
{
	const char *at = parser->text, *end;
	uint64_t sum = 0;
	size_t i;

	for (;; at = end + 1) {
		end = find_item_end(at);
		if (end > at && parse_item(parser, at, end))
			return -1;
		if (*end == '\0')
			break;
	}
	for (i = 0; i < parser->request_count; i++)
		sum += parser->requests[i].count;
	if (sum > DDP_GRES_MAX)
		return fail(parser, parser->text, "at most 65535 GPUs");
	*gpus = (uint32_t)sum;
	return 0;
}

int ddp_gres_count_gpus(const char *text, uint32_t *gpus,
			struct ddp_error *error)
{
	struct parser parser = { .what = "gres", .named = true,
				 .text = text ? text : "",
				 .error = error };

	return count_list(&parser, gpus);
}

int ddp_gpus_count(const char *text, uint32_t *gpus, struct ddp_error *error)
{
	struct parser parser = { .what = "number of GPUs", .named = false,
				 .text = text ? text : "",
				 .error = error };

	return count_list(&parser, gpus);
}

int ddp_gpus_divide(const char *text, uint32_t nodes, char *share, size_t size,
		    struct ddp_error *error)
{
	struct parser parser = { .what = "number of GPUs", .named = false,
				 .text = text ? text : "",
				 .error = error };
	const struct request *request = parser.requests, *end;
	size_t used = 0;
	uint32_t total;

	*share = '\0';
	if (count_list(&parser, &total))
		return -1;
	end = request + parser.request_count;
	for (; request < end && request->count % nodes == 0; request++)
		if (used < size)
			used += (size_t)snprintf(share + used, size - used,
						 "%s%.*s%s%" PRIu64,
						 used > 0 ? "," : "",
						 (int)request->type_length,
						 request->type,
						 request->type_length > 0 ?
						 ":" : "",
						 request->count / nodes);
	if (request == end && used < size)
		return 0;
	*share = '\0';
	return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			     "--gpus=%.64s does not divide evenly over %u "
			     "nodes; ask for GPUs by --gpus-per-node, or give "
			     "the number of tasks with -n", text, nodes);
}
