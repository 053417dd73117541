/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what is known of a step, and the verdict, by what agents may say in any
 * order. The input is actions of 6 bytes: what happens, on which node, to which
 * rank, a number, and how many ms after the one before.
 */
#include "fuzz.h"
#include "verdict/facts.h"
#include "verdict/hang.h"
#include "verdict/restart.h"
#include "verdict/verdict.h"

enum { NODES = 4, WORLD = 6, ACTION = 6 };

static const char *const texts[] = {
	"", "ValueError: x", "a\nb\n",
	"  time      : 2026-11-28_17:00:04\n  rank      : 3 (local_rank: 1)\n",
	"\033[1m\xff", DDP_WIRE_NO_MEMORY,
};

static void copy(char *to, unsigned char number)
{
	strcpy(to, texts[number % (sizeof(texts) / sizeof(texts[0]))]);
}

/* A frame, as an agent may send it. */
static void fill(struct ddp_wire *wire, const unsigned char *action,
		 int64_t now_ns)
{
	memset(wire, 0, sizeof(*wire));
	snprintf(wire->node, sizeof(wire->node), "n%u", action[1] % NODES);
	wire->job_id = 7;
	wire->world_size = WORLD;
	wire->count = action[2] % 3;
	wire->rank = action[2] % (WORLD + 1);
	wire->status = action[0] & 64 ? action[3] % 65u : action[3] << 8;
	wire->at_ns = (uint64_t)now_ns - action[3] * UINT64_C(1000000);
	wire->ping_ns = (uint64_t)now_ns - action[4] * UINT64_C(1000000);
	wire->idle_ms = action[3] * 100u;
	wire->depth = wire->behind = action[4];
	copy(wire->message, action[3]);
	copy(wire->cause, action[4]);
	copy(wire->tail, action[5]);
}

static void lose(struct ddp_step *step, uint32_t node, unsigned char how,
		 int64_t now_ns)
{
	step->failed = true;
	step->nodes[node].lost = how & 1;
	step->nodes[node].orphaned = how & 2;
	step->nodes[node].left = how & 4;
	step->nodes[node].left_ns = step->nodes[node].lost_ns = now_ns;
}

static void hear(struct ddp_step *step, uint32_t node,
		 const struct ddp_wire *wire, const unsigned char *action,
		 int64_t now_ns)
{
	switch (action[0] % 10) {
	case 0: case 1:
		ddp_step_add_rank(step, node, wire);
		break;
	case 2: case 3:
		ddp_step_add_end(step, node, wire, now_ns);
		break;
	case 4:
		ddp_step_add_pong(step, node, wire, now_ns);
		break;
	case 5:
		ddp_step_add_error(step, node, wire);
		break;
	case 6:
		ddp_hang_add_pulse(step, node, wire);
		break;
	case 7:
		ddp_hang_add_detail(step, node, wire);
		break;
	case 8:
		lose(step, node, action[3], now_ns);
		break;
	case 9:
		if (step->hang && action[3] & 1)
			ddp_hang_judge(step, now_ns);
		else if (!step->hang)
			CHECK(ddp_hang_begin(step, 60) == 0);
		break;
	}
}

static void check_verdict(const struct ddp_verdict *verdict,
			  const struct ddp_step *step)
{
	CHECK(step->known <= step->world_size && step->ended <= step->known);
	CHECK(verdict->after_ns >= 0);
	if (verdict->kind == DDP_VERDICT_RANK) {
		CHECK(verdict->rank < step->world_size);
		CHECK(step->ranks[verdict->rank].ended);
		CHECK(verdict->node == step->ranks[verdict->rank].node);
		CHECK(verdict->together <= step->world_size);
		CHECK(ddp_verdict_code(verdict, step) != 0);
	}
	if (verdict->kind == DDP_VERDICT_NODE)
		CHECK(verdict->node < step->node_count);
}

/* Each line that is said is ours: the text of others begins none. */
static void check_lines(struct ddp_text *text)
{
	static const char begin[] = "slurm-ddp: ";
	char *all, *at, *line;

	ddp_text_add(text, "%s", "");
	all = at = ddp_text_finish(text);
	CHECK(all);
	while (*at) {
		line = fuzz_next_line(&at);
		CHECK(strncmp(line, begin, strlen(begin)) == 0);
		fuzz_check_line(line);
	}
	free(all);
}

static void check_json(const struct ddp_verdict *verdict,
		       const struct ddp_step *step)
{
	const struct ddp_facts facts = { .verdict = *verdict, .step = *step };
	struct ddp_text text = { 0 };
	const char *at;
	char *json;

	ddp_facts_add_json(&text, &facts, "s", "e", "{}");
	json = ddp_text_finish(&text);
	CHECK(json);
	for (at = json; *at; at++)
		CHECK(*at == '\n' || (unsigned char)*at >= ' ');
	free(json);
}

static void say(const struct ddp_verdict *verdict, const struct ddp_step *step,
		unsigned char gone)
{
	const struct ddp_restart_job job = { .nodes = "n[0-4]", .spares = 1 };
	struct ddp_restart restart = { .max = 1, .lists = true };
	struct ddp_text text = { 0 };

	CHECK(ddp_restart_choose(&restart, &job, NULL) == 0);
	ddp_verdict_add(&text, verdict, step);
	ddp_verdict_add_others(&text, verdict, step);
	ddp_verdict_add_unknown(&text, step);
	ddp_verdict_add_early(&text, step);
	ddp_verdict_add_gone(&text, step);
	ddp_restart_next(&restart, verdict, step, gone & 1, &text);
	CHECK(restart.done <= restart.max);
	ddp_restart_clear(&restart);
	check_lines(&text);
	check_json(verdict, step);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_step step = { .launcher = NULL };
	int64_t now_ns = INT64_C(1000000000);
	struct ddp_verdict verdict;
	struct ddp_wire wire;
	uint32_t i;
	int node;

	for (; size >= ACTION; data += ACTION, size -= ACTION) {
		now_ns += data[5] * INT64_C(1000000);
		fill(&wire, data, now_ns);
		step.saves = data[0] & 128;
		step.launcher = data[0] & 32 ? "torchrun" : NULL;
		node = ddp_step_find_node(&step, wire.node);
		if (node < 0)
			node = ddp_step_add_node(&step, &wire, now_ns);
		CHECK(node >= 0 && (uint32_t)node < step.node_count);
		hear(&step, (uint32_t)node, &wire, data, now_ns);
		verdict = ddp_verdict_find(&step);
		check_verdict(&verdict, &step);
	}
	if (step.world_size > 0) {
		ddp_hang_idle_ms(&step, now_ns);
		verdict = ddp_verdict_find(&step);
		for (i = 0; i < step.node_count; i++)
			step.nodes[i].told = size && data[0] & 2;
		say(&verdict, &step, size ? data[0] : 0);
	}
	ddp_step_clear(&step);
	return 0;
}
