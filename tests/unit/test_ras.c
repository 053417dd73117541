/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of NCCL's RAS, written by hand from the formats in its source:
 * JSON, as versions 2.28.7 and 2.30.7 have it alike, and what 2.24.3 says to
 * the question for that.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proc/ras.h"
#include "util/text.h"

static const char head[] =
	"SERVER PROTOCOL 2\nOK\nOK\n"
	"{\n  \"nccl_version\": \"2.28.7\",\n"
	"  \"cuda_runtime_version\": 13000,\n"
	"  \"cuda_driver_version\": 13000,\n"
	"  \"timestamp\": \"2025-10-20 12:00:00\",\n"
	"  \"communicators_count\": 1,\n  \"communicators\": [\n";
static const char tail[] =
	"\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.002,\n"
	"    \"timeouts_count\": 0\n  }\n}\n";

static void add_communicator(struct ddp_text *text, const char *hash,
			     const char *more)
{
	ddp_text_add(text, "%s    {\n      \"hash\": \"%s\",\n"
		     "      \"secondary_hash\": \"0x7:0x%s\",\n"
		     "      \"size\": 4,\n      \"ranks_count\": 4,\n"
		     "      \"missing_ranks_count\": 0,\n"
		     "      \"ranks\": [\n",
		     text->length > sizeof(head) ? ",\n" : "", hash, more);
}

/* Counts as "AllReduce Broadcast" of them; all others are 1. */
static void add_rank(struct ddp_text *text, bool first, int rank, int pid,
		     unsigned long reduced, unsigned long sent)
{
	ddp_text_add(text, "%s        {\n          \"rank\": %d,\n"
		     "          \"host\": \"10.0.0.%d\",\n"
		     "          \"pid\": %d,\n          \"cuda_dev\": 7,\n"
		     "          \"nvml_dev\": 7,\n          \"status\": {\n"
		     "            \"init_state\": 0,\n"
		     "            \"async_error\": 0,\n"
		     "            \"finalize_called\": false,\n"
		     "            \"destroy_flag\": false,\n"
		     "            \"abort_flag\": false\n          },\n"
		     "          \"collective_counts\": {\n"
		     "            \"Broadcast\": %lu,\n"
		     "            \"Reduce\": 1,\n"
		     "            \"AllGather\": 1,\n"
		     "            \"ReduceScatter\": 1,\n"
		     "            \"AllReduce\": %lu\n"
		     "          }\n        }", first ? "" : ",\n", rank,
		     rank / 2 + 1, pid, sent, reduced);
}

static void add_missing(struct ddp_text *text, bool first, int rank, int pid,
			const char *unresponsive)
{
	ddp_text_add(text, "%s        {\n          \"rank\": %d,\n"
		     "          \"host\": \"10.0.0.2\",\n"
		     "          \"pid\": %d,\n          \"cuda_dev\": 1,\n"
		     "          \"nvml_dev\": 1,\n          \"status\": {\n"
		     "            \"unresponsive\": %s,\n"
		     "            \"considered_dead\": false\n          }\n"
		     "        }", first ? "" : ",\n", rank, pid, unresponsive);
}

static void end_ranks(struct ddp_text *text)
{
	ddp_text_add(text, "\n      ],\n      \"missing_ranks\": [\n");
}

static void end_communicator(struct ddp_text *text)
{
	ddp_text_add(text, "\n      ]\n    }");
}

static struct ddp_ras read_text(struct ddp_text *text)
{
	struct ddp_ras ras;
	char *answer;

	ddp_text_add(text, "%s", tail);
	answer = ddp_text_finish(text);
	cr_assert_eq(ddp_ras_read(answer, &ras), 0);
	free(answer);
	return ras;
}

/* One communicator of four ranks with these counts. */
static struct ddp_ras read_four(const unsigned long reduced[4],
				const unsigned long sent[4])
{
	struct ddp_text text = { 0 };
	int i;

	ddp_text_add(&text, "%s", head);
	add_communicator(&text, "0xa", "b");
	for (i = 0; i < 4; i++)
		add_rank(&text, i == 0, i, 100 + i, reduced[i], sent[i]);
	end_ranks(&text);
	end_communicator(&text);
	return read_text(&text);
}

#define FOUR(a, b, c, d) (const unsigned long[]){ a, b, c, d }
#define ALIKE FOUR(5, 5, 5, 5)

static const struct {
	const char *name;
	unsigned long reduced[4], sent[4];
	uint32_t behind[4];
} table[] = {
	{ "all alike", { 9, 9, 9, 9 }, { 5, 5, 5, 5 }, { 0, 0, 0, 0 } },
	{ "one behind", { 9, 9, 7, 9 }, { 5, 5, 5, 5 }, { 0, 0, 2, 0 } },
	{ "one has none yet", { 9, 0, 9, 9 }, { 5, 0, 5, 5 }, { 0, 9, 0, 0 } },
	{ "one ahead", { 9, 10, 9, 9 }, { 5, 5, 5, 5 }, { 0, 0, 0, 0 } },
	{ "another function", { 9, 9, 9, 10 }, { 5, 5, 5, 4 },
	  { 0, 0, 0, 1 } },
	{ "half of them", { 9, 9, 8, 8 }, { 5, 5, 5, 5 }, { 0, 0, 0, 0 } },
	{ "far behind", { 1UL << 40, 1UL << 40, 1, 1UL << 40 }, { 5, 5, 5, 5 },
	  { 0, 0, INT32_MAX, 0 } },
};

Test(ras, who_is_behind)
{
	struct ddp_ras ras;
	size_t row;
	uint32_t i;

	for (row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
		ras = read_four(table[row].reduced, table[row].sent);
		cr_assert_eq(ras.count, 4);
		for (i = 0; i < 4; i++) {
			cr_expect_eq(ras.ranks[i].behind, table[row].behind[i],
				     "%s: %u: %u", table[row].name, i,
				     ras.ranks[i].behind);
			cr_expect_eq(ras.ranks[i].number, i);
			cr_expect_eq(ras.ranks[i].pid, 100 + i);
			cr_expect_str_eq(ras.ranks[i].host,
					 i < 2 ? "10.0.0.1" : "10.0.0.2");
		}
		free(ras.ranks);
	}
}

Test(ras, communicators_are_apart)
{
	struct ddp_text text = { 0 };
	struct ddp_ras ras;
	size_t i;

	/* Rank 1 is behind in one of three, of which two share a hash. */
	ddp_text_add(&text, "%s", head);
	add_communicator(&text, "0xffffffffffffffff", "2");
	add_rank(&text, true, 0, 100, 9, 0);
	add_rank(&text, false, 1, 101, 9, 0);
	add_rank(&text, false, 2, 102, 9, 0);
	end_ranks(&text);
	end_communicator(&text);
	add_communicator(&text, "0xffffffffffffffff", "3");
	add_rank(&text, true, 0, 100, 4, 0);
	add_rank(&text, false, 1, 101, 4, 0);
	end_ranks(&text);
	end_communicator(&text);
	add_communicator(&text, "0x1", "2");
	add_rank(&text, true, 0, 100, 7, 0);
	add_rank(&text, false, 1, 101, 6, 0);
	add_rank(&text, false, 2, 102, 7, 0);
	end_ranks(&text);
	end_communicator(&text);
	ras = read_text(&text);
	cr_assert_eq(ras.count, 8);
	cr_expect_eq(ras.ranks[1].pid, 101, "sorted: 0x1 is the first");
	for (i = 0; i < ras.count; i++)
		cr_expect_eq(ras.ranks[i].behind, i == 1, "%zu", i);
	free(ras.ranks);
}

Test(ras, who_does_not_answer)
{
	struct ddp_text text = { 0 };
	struct ddp_ras ras;

	ddp_text_add(&text, "%s", head);
	add_communicator(&text, "0xa", "b");
	add_rank(&text, true, 0, 100, 9, 0);
	add_rank(&text, false, 1, 101, 9, 0);
	end_ranks(&text);
	add_missing(&text, true, 2, 102, "true");
	add_missing(&text, false, 3, 103, "false");
	end_communicator(&text);
	ras = read_text(&text);
	cr_assert_eq(ras.count, 4);
	cr_expect_eq(ras.ranks[1].behind, 0);
	cr_expect_eq(ras.ranks[2].behind, DDP_RAS_MISSING);
	cr_expect_eq(ras.ranks[2].pid, 102);
	cr_expect_eq(ras.ranks[3].behind, 0, "it only left the communicator");
	free(ras.ranks);
}

/* Of ranks 0 to 3 two are at 10.0.0.1, and two at 10.0.0.2. */
Test(ras, who_is_here)
{
	struct sockaddr_in first = { .sin_family = AF_INET };
	struct sockaddr_in second = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct ifaddrs own[] = {
		{ .ifa_next = &own[1] },
		{ .ifa_next = &own[2],
		  .ifa_addr = (struct sockaddr *)&first },
		{ .ifa_next = &own[3], .ifa_addr = (struct sockaddr *)&six },
		{ .ifa_addr = (struct sockaddr *)&second },
	};
	struct ddp_ras ras = read_four(ALIKE, ALIKE);
	size_t i;

	cr_assert_eq(inet_pton(AF_INET, "127.0.0.1", &first.sin_addr), 1);
	cr_assert_eq(inet_pton(AF_INET, "10.0.0.2", &second.sin_addr), 1);
	cr_assert_eq(inet_pton(AF_INET6, "fe80::7", &six.sin6_addr), 1);
	strcpy(ras.ranks[3].host, "fe80::7");
	ddp_ras_mark(&ras, own);
	for (i = 0; i < 4; i++)
		cr_expect_eq(ras.ranks[i].here, i > 1, "%zu", i);
	ddp_ras_mark(&ras, NULL);
	for (i = 0; i < 4; i++)
		cr_expect_not(ras.ranks[i].here, "%zu", i);
	free(ras.ranks);
}

static bool rises(const unsigned long before[4], const unsigned long now[4])
{
	struct ddp_ras first = read_four(before, ALIKE);
	struct ddp_ras second = read_four(now, ALIKE);
	bool more = ddp_ras_rises(&first, &second);

	free(first.ranks);
	free(second.ranks);
	return more;
}

Test(ras, what_rises)
{
	struct ddp_ras none = { 0 }, four = read_four(ALIKE, ALIKE), gap;
	struct ddp_text text = { 0 };

	cr_expect(rises(ALIKE, FOUR(6, 6, 6, 6)));
	cr_expect(rises(ALIKE, FOUR(5, 5, 5, 6)));
	cr_expect_not(rises(ALIKE, ALIKE));
	cr_expect_not(rises(ALIKE, FOUR(4, 4, 4, 4)));
	cr_expect_not(ddp_ras_rises(&none, &four), "nothing was known");
	cr_expect_not(ddp_ras_rises(&four, &none));

	/* Ranks that come back after they did not answer have not moved. */
	ddp_text_add(&text, "%s", head);
	add_communicator(&text, "0xa", "b");
	add_rank(&text, true, 1, 101, 5, 5);
	end_ranks(&text);
	add_missing(&text, true, 2, 102, "true");
	end_communicator(&text);
	gap = read_text(&text);
	cr_expect_not(ddp_ras_rises(&gap, &four));
	cr_expect_not(ddp_ras_rises(&four, &gap));
	free(four.ranks);
	four = read_four(FOUR(5, 6, 5, 5), ALIKE);
	cr_expect(ddp_ras_rises(&gap, &four));
	free(four.ranks);
	free(gap.ranks);
}

static void expect_none(const char *answer)
{
	struct ddp_ras ras = { .count = 9 };

	cr_expect_eq(ddp_ras_read(answer, &ras), -1, "%.40s", answer);
	cr_expect_eq(ras.count, 0);
	cr_expect_null(ras.ranks);
}

Test(ras, what_is_no_answer)
{
	struct ddp_text text = { 0 };
	struct ddp_ras ras;
	char *answer;
	size_t i, whole;

	expect_none("");
	expect_none("\"");
	expect_none("\"timeouts_count");
	expect_none("SERVER PROTOCOL 2\nOK\n"
		    "ERROR: Unknown command SET FORMAT json\n"
		    "NCCL version 2.24.3 compiled with CUDA 12.8\n"
		    "CUDA runtime version 12080, driver version 12080\n\n"
		    "Job summary\n===========\n\n"
		    "Communicators... (0.00s)\n=============\n\n");

	/* Nobody is known in a job without communicators. */
	ddp_text_add(&text, "%s", head);
	ras = read_text(&text);
	cr_expect_eq(ras.count, 0);
	free(ras.ranks);

	/* An answer that is cut anywhere before its end. */
	memset(&text, 0, sizeof(text));
	ddp_text_add(&text, "%s", head);
	add_communicator(&text, "0xa", "b");
	add_rank(&text, true, 0, 100, 9, 0);
	end_ranks(&text);
	end_communicator(&text);
	answer = ddp_text_finish(&text);
	whole = strlen(answer);
	for (i = 0; i < whole; i++) {
		char *cut = strndup(answer, i);

		expect_none(cut);
		free(cut);
	}
	free(answer);

	/* Far more ranks than a step can have. */
	memset(&text, 0, sizeof(text));
	for (i = 0; i < 70000; i++)
		ddp_text_add(&text, "\"rank\":1,");
	ddp_text_add(&text, "%s", tail);
	answer = ddp_text_finish(&text);
	expect_none(answer);
	free(answer);
}

/* Lines of /proc/net/tcp and tcp6 as a CPU with the low byte first has them;
 * ports are 53000 (CF08), 53001 and 53008 (CF10). */
#define LINE(local, port, state, user) \
	"   0: " local ":" port " 00000000:0000 " state \
	" 00000000:00000000 00:00000000 00000000 " user \
	"        0 27481 1 ffff8f3 100 0 0 10 0\n"
#define SIX(local, port, state, user) \
	"   0: " local ":" port " 00000000000000000000000000000000:0000 " state \
	" 00000000:00000000 00:00000000 00000000 " user \
	"        0 27482 1 ffff8f3 100 0 0 10 0\n"
#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr " \
	"tm->when retrnsmt   uid  timeout inode\n"
#define ZEROS "00000000000000000000000000000000"
#define ONE "00000000000000000000000001000000"
#define MAPPED "0000000000000000FFFF00000100007F"

static const struct {
	const char *name, *text;
	bool six;
	int owner;	/* -1: nobody */
} owners[] = {
	{ "127.0.0.1", HEAD LINE("0100007F", "CF08", "0A", " 1000"), false,
	  1000 },
	{ "0.0.0.0", HEAD LINE("00000000", "CF08", "0A", "    0"), false, 0 },
	{ "another port before", HEAD LINE("0100007F", "CF09", "0A", " 1001")
	  LINE("0100007F", "CF10", "0A", " 1001")
	  LINE("0100007F", "CF08", "0A", " 1000"), false, 1000 },
	{ "connections before, ours and theirs", HEAD
	  LINE("0100007F", "CF08", "01", " 1001")
	  LINE("0100007F", "CF08", "06", "    0")
	  LINE("0100007F", "CF08", "0A", " 1000"), false, 1000 },
	{ "another address before", HEAD
	  LINE("0200007F", "CF08", "0A", " 1001")
	  LINE("0200000A", "CF08", "0A", " 1001")
	  LINE("0100007F", "CF08", "0A", "65534"), false, 65534 },
	{ "connections only", HEAD LINE("0100007F", "CF08", "01", " 1000"),
	  false, -1 },
	{ "127.0.0.1 is not ::1", HEAD
	  LINE("0100007F", "CF08", "0A", " 1000"), true, -1 },
	{ "::1", HEAD SIX(ONE, "CF08", "0A", " 1000"), true, 1000 },
	{ "::1 is not 127.0.0.1", HEAD SIX(ONE, "CF08", "0A", " 1000"), false,
	  -1 },
	{ ":: by IPv6", HEAD SIX(ZEROS, "CF08", "0A", " 1000"), true, 1000 },
	{ ":: by IPv4", HEAD SIX(ZEROS, "CF08", "0A", " 1000"), false, 1000 },
	{ "::ffff:127.0.0.1", HEAD SIX(MAPPED, "CF08", "0A", " 1000"), false,
	  1000 },
	{ "::ffff:127.0.0.1 by IPv6", HEAD
	  SIX(MAPPED, "CF08", "0A", " 1000"), true, -1 },
	{ "a cut line", HEAD "   0: 0100007F:CF08 00000000:0000 0A", false,
	  -1 },
	{ "a head only", HEAD, false, -1 },
	{ "nothing", "", false, -1 },
	{ "no text", NULL, false, -1 },
};

Test(ras, who_listens)
{
	size_t i;
	uid_t owner;
	int found;

	if (*(const unsigned char *)&(const int){ 1 } != 1)
		cr_skip_test("the lines are of another byte order");
	for (i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		found = ddp_ras_find_owner(owners[i].text, owners[i].six,
					   53000, &owner) < 0 ?
			-1 : (int)owner;
		cr_expect_eq(found, owners[i].owner, "%s: %d", owners[i].name,
			     found);
	}
}
