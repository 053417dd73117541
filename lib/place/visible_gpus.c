/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds which GPUs a task sees, by its variables, and which all tasks see. */
#include "place/visible_gpus.h"

#include <stdio.h>
#include <string.h>

#include "util/scan.h"

/* ---- the view of a task */

enum { POSITION_MAX = 65535 };

/* The GPUs that a variable counts: those of its vendor, by bus id. */
struct counted {
	uint32_t all[DDP_GPU_MAX], all_count;
	uint32_t reach[DDP_GPU_MAX], reach_count;
};

const char *ddp_gpus_variable(const struct ddp_view *view)
{
	return view->rocr ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

static bool is_name(const char *token)
{
	return *token < '0' || *token > '9';
}

/* A UUID may be cut short, so one that begins with the other is the same. */
static bool is_same_name(const char *a, const char *b)
{
	size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	if (strncmp(a, "GPU-", 4) != 0)
		return strcmp(a, b) == 0;
	return strncmp(a, b, length) == 0;
}

/* Numbers are compared only where neither is a name. */
static bool is_same(const struct ddp_gpu_ref *a, const struct ddp_gpu_ref *b)
{
	if (is_name(a->token) || is_name(b->token))
		return is_same_name(a->token, b->token);
	return a->number == b->number;
}

static bool is_set(const char *text)
{
	return text && *text != '\0';
}

static uint32_t count_vendor(const struct ddp_machine *machine,
			     enum ddp_vendor vendor)
{
	uint32_t count = 0, i;

	for (i = 0; i < machine->gpu_count; i++)
		count += machine->gpus[i].vendor == vendor;
	return count;
}

static void find_counted(const struct ddp_machine *machine, bool rocr,
			 struct counted *counted)
{
	enum ddp_vendor vendor = DDP_VENDOR_AMD;
	uint32_t i;

	if (!rocr && count_vendor(machine, DDP_VENDOR_NVIDIA) > 0)
		vendor = DDP_VENDOR_NVIDIA;
	memset(counted, 0, sizeof(*counted));
	for (i = 0; i < machine->gpu_count && i < DDP_GPU_MAX; i++) {
		if (machine->gpus[i].vendor != vendor)
			continue;
		counted->all[counted->all_count++] = i;
		if (machine->gpus[i].reachable)
			counted->reach[counted->reach_count++] = i;
	}
}

/* The number of a GPU among those that are counted. */
static uint32_t find_number(const struct counted *counted, uint32_t gpu)
{
	uint32_t i;

	for (i = 0; i < counted->all_count; i++)
		if (counted->all[i] == gpu)
			return i;
	return DDP_GPU_NONE;
}

/* Read the next token of a list at *at, and move behind it and its comma. */
static int next_token(const char *what, const char *text, const char **at,
		      char *token, struct ddp_error *error)
{
	static const char allowed[] =
		"0123456789abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ-/_.:";
	size_t length = strspn(*at, allowed);

	if (length == 0 || length >= DDP_GPU_TOKEN_SIZE ||
	    ((*at)[length] != ',' && (*at)[length] != '\0'))
		return ddp_scan_error(error, what, text, *at + length,
				      "a comma list of GPU numbers or UUIDs");
	memcpy(token, *at, length);
	token[length] = '\0';
	*at += length;
	if (**at == ',' && *++*at == '\0')
		return ddp_scan_error(error, what, text, *at, "another GPU");
	return 0;
}

/* Read SLURM_STEP_GPUS; false unless it lists exactly count numbers. */
static bool read_positions(const char *text, uint32_t count,
			   uint32_t *positions)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; is_set(text) && i < count; i++) {
		if (ddp_scan_number(&text, 0, POSITION_MAX, &value) ||
		    *text != (i + 1 < count ? ',' : '\0'))
			return false;
		text += *text == ',';
		positions[i] = (uint32_t)value;
	}
	return count > 0 && i == count;
}

/*
 * Find the one GPU whose UUID begins with these bytes; DDP_GPU_NONE if there is
 * none, or several. *known: whether any UUID is known.
 */
static uint32_t find_uuid(const struct ddp_machine *machine, const char *uuid,
			  size_t length, bool *known)
{
	uint32_t found = DDP_GPU_NONE, matches = 0, i;

	*known = false;
	for (i = 0; i < machine->gpu_count; i++) {
		*known = *known || machine->gpus[i].uuid[0] != '\0';
		if (strncmp(machine->gpus[i].uuid, uuid, length) == 0) {
			found = i;
			matches++;
		}
	}
	return matches == 1 ? found : DDP_GPU_NONE;
}

static uint32_t find_part(const struct ddp_machine *machine,
			  const struct counted *counted, const char *token)
{
	uint32_t i;
	bool known;

	if (strncmp(token, "MIG-GPU-", 8) == 0)
		return find_uuid(machine, token + 4, strcspn(token + 4, "/"),
				 &known);
	for (i = 0; i < machine->part_count; i++)
		if (strcmp(machine->parts[i].uuid, token) == 0)
			return machine->parts[i].gpu;
	if (counted->reach_count == 1)
		return counted->reach[0];
	return counted->all_count == 1 ? counted->all[0] : DDP_GPU_NONE;
}

bool ddp_gpus_is_instance(const struct ddp_gpu_ref *ref)
{
	return strncmp(ref->token, "MIG-", 4) == 0;
}

/* position is that in SLURM_STEP_GPUS; DDP_GPU_NONE if it tells nothing. */
static int resolve_name(const struct ddp_machine *machine,
			const struct counted *counted, uint32_t position,
			struct ddp_gpu_ref *ref, struct ddp_error *error)
{
	bool known;

	if (ddp_gpus_is_instance(ref)) {
		ref->gpu = find_part(machine, counted, ref->token);
	} else {
		ref->gpu = find_uuid(machine, ref->token, strlen(ref->token),
				     &known);
		if (ref->gpu == DDP_GPU_NONE && known)
			return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				"no GPU of this node, or not one alone, has "
				"the UUID %s", ref->token);
		if (ref->gpu == DDP_GPU_NONE && position < counted->all_count)
			ref->gpu = counted->all[position];
	}
	ref->number = find_number(counted, ref->gpu);
	return 0;
}

static int resolve_number(const struct counted *counted, uint32_t position,
			  struct ddp_gpu_ref *ref, struct ddp_error *error)
{
	const char *at = ref->token;
	uint64_t number;

	if (ddp_scan_number(&at, 0, POSITION_MAX, &number) || *at != '\0')
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "'%s' is neither a GPU's number nor its "
				     "UUID", ref->token);
	if (number < counted->reach_count) {
		ref->gpu = counted->reach[number];
		ref->number = find_number(counted, ref->gpu);
		return 0;
	}
	ref->number = position != DDP_GPU_NONE ? position : (uint32_t)number;
	if (counted->all_count == 0)
		return 0;
	if (ref->number >= counted->all_count)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "GPU %u is given and this node has %u, "
				     "counted from 0; does gres.conf list what "
				     "is there?", ref->number,
				     counted->all_count);
	ref->gpu = counted->all[ref->number];
	return 0;
}

/*
 * Returns true if every number is below the number of GPUs that can be reached.
 */
static bool reach_explains(const struct ddp_view *view,
			   const struct counted *counted)
{
	const char *at;
	uint64_t number;
	uint32_t i;

	for (i = 0; i < view->count; i++) {
		at = view->gpus[i].token;
		if (ddp_scan_number(&at, 0, POSITION_MAX, &number) == 0 &&
		    number >= counted->reach_count)
			return false;
	}
	return true;
}

/* Read the tokens only. */
static int read_view(const char *text, struct ddp_view *view,
		     struct ddp_error *error)
{
	const char *what = ddp_gpus_variable(view), *at = text;

	view->count = 0;
	if (strcmp(text, "-1") == 0 || strcmp(text, "NoDevFiles") == 0)
		return 0;
	while (*at != '\0') {
		if (view->count == DDP_GPU_MAX)
			return ddp_scan_error(error, what, text, at,
					      "at most %d GPUs", DDP_GPU_MAX);
		if (next_token(what, text, &at,
			       view->gpus[view->count].token, error))
			return -1;
		view->gpus[view->count].gpu = DDP_GPU_NONE;
		view->gpus[view->count++].number = DDP_GPU_NONE;
	}
	return 0;
}

/* Returns true if the task has GPUs and no variable names them. */
static bool is_unnamed(const struct ddp_gpus_env *env)
{
	return env->on_node > 0 && !is_set(env->step_gpus) &&
	       !is_set(env->cuda) && !is_set(env->rocr);
}

/*
 * Returns true if the GPUs are Intel's. Slurm, untold whose they are, sets all the
 * variables, and a user may have set Intel's.
 */
static bool is_intel(const struct ddp_gpus_env *env,
		     const struct ddp_machine *machine)
{
	return is_set(env->ze) && !is_set(env->cuda) && !is_set(env->rocr) &&
	       (env->on_node > 0 || is_set(env->step_gpus)) &&
	       machine->gpu_count == 0;
}

/* How many GPUs the task can open; all, if no device file is known. */
static uint32_t count_in_sight(const struct ddp_machine *machine,
			       const struct counted *counted)
{
	uint32_t i;

	for (i = 0; i < counted->all_count; i++)
		if (machine->gpus[counted->all[i]].device[0] != '\0')
			return counted->reach_count;
	return counted->all_count;
}

/* Let the view be all that is in sight, if that is what the step has. */
static int name_all(const struct ddp_machine *machine,
		    const struct counted *counted, uint32_t on_node,
		    struct ddp_view *view, struct ddp_error *error)
{
	uint32_t count = count_in_sight(machine, counted), i;

	if (count != on_node || machine->part_count > 0)
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
			"--gpu-bind=none: Slurm does not name the step's GPUs "
			"here, and which they are cannot be told: it has %u, "
			"and %u are in sight%s; leave --gpu-bind out, or use "
			"--ddp-gpus=off", on_node, count,
			machine->part_count > 0 ? ", divided by MIG" : "");
	for (i = 0; i < count; i++)
		snprintf(view->gpus[i].token, sizeof(view->gpus[i].token),
			 "%u", i);
	view->count = count;
	return 0;
}

int ddp_gpus_resolve(const struct ddp_gpus_env *env,
		     const struct ddp_machine *machine, struct ddp_view *view,
		     struct ddp_error *error)
{
	bool amd = count_vendor(machine, DDP_VENDOR_AMD) > 0 &&
		   count_vendor(machine, DDP_VENDOR_NVIDIA) == 0;
	uint32_t positions[DDP_GPU_MAX], position, i, k;
	struct ddp_gpu_ref *ref;
	struct counted counted;
	const char *text;
	bool paired;

	if (is_intel(env, machine))
		return ddp_error_set(error, DDP_ERROR_ARGUMENT,
				     "ZE_AFFINITY_MASK=%.60s gives Intel's "
				     "GPUs, which --ddp cannot place; use "
				     "--ddp-gpus=off", env->ze);
	view->rocr = is_unnamed(env) ? amd :
		     is_set(env->rocr) && (amd || !is_set(env->cuda));
	text = view->rocr ? env->rocr : env->cuda;
	find_counted(machine, view->rocr, &counted);
	if (is_unnamed(env) ?
	    name_all(machine, &counted, env->on_node, view, error) :
	    read_view(is_set(text) ? text : "", view, error))
		return -1;
	if (!reach_explains(view, &counted))
		counted.reach_count = 0;
	paired = read_positions(env->step_gpus, view->count, positions);
	for (i = 0; i < view->count; i++) {
		ref = &view->gpus[i];
		position = paired ? positions[i] : DDP_GPU_NONE;
		if (is_name(ref->token) ?
		    resolve_name(machine, &counted, position, ref, error) :
		    resolve_number(&counted, position, ref, error))
			return -1;
		for (k = 0; k < i; k++)
			if (is_same(&view->gpus[k], ref) ||
			    strcmp(view->gpus[k].token, ref->token) == 0)
				return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					"%s names GPU %s twice",
					ddp_gpus_variable(view), ref->token);
	}
	return 0;
}

/* ---- the views of a node */

static uint32_t find_ref(const struct ddp_view *view,
			 const struct ddp_gpu_ref *ref)
{
	uint32_t i;

	for (i = 0; i < view->count; i++)
		if (is_same(&view->gpus[i], ref))
			return i;
	return DDP_GPU_NONE;
}

/* Put ref behind all that have its number or a lower one. */
static void insert_ref(struct ddp_view *view, const struct ddp_gpu_ref *ref)
{
	uint32_t i = view->count++;

	for (; i > 0 && view->gpus[i - 1].number > ref->number; i--)
		view->gpus[i] = view->gpus[i - 1];
	view->gpus[i] = *ref;
}

int ddp_views_join(const struct ddp_view *views, uint32_t count,
		   struct ddp_view *all, uint32_t (*indexes)[DDP_GPU_MAX],
		   struct ddp_error *error)
{
	uint32_t i, k;

	all->count = 0;
	all->rocr = count > 0 && views[0].rocr;
	for (i = 0; i < count; i++)
		for (k = 0; k < views[i].count; k++) {
			if (find_ref(all, &views[i].gpus[k]) != DDP_GPU_NONE)
				continue;
			if (all->count == DDP_GPU_MAX)
				return ddp_error_set(error, DDP_ERROR_ARGUMENT,
					"the tasks of this node have more "
					"than %d GPUs", DDP_GPU_MAX);
			insert_ref(all, &views[i].gpus[k]);
		}
	for (i = 0; i < count; i++)
		for (k = 0; k < views[i].count; k++)
			indexes[i][k] = find_ref(all, &views[i].gpus[k]);
	return 0;
}

/* Returns true if a name or a device file tells which GPU it is. */
static bool is_certain(const struct ddp_machine *machine,
		       const struct ddp_gpu_ref *ref)
{
	return is_name(ref->token) ||
	       (ref->gpu != DDP_GPU_NONE &&
		machine->gpus[ref->gpu].device[0] != '\0');
}

static bool are_apart(const struct ddp_machine *machine, uint32_t on_node,
		      const struct ddp_view *views, uint32_t count,
		      uint32_t all_count)
{
	uint32_t seen = 0, i, k;

	for (i = 0; i < count; i++) {
		seen += views[i].count;
		for (k = 0; k < views[i].count; k++)
			if (is_certain(machine, &views[i].gpus[k]))
				return false;
	}
	return seen > all_count && seen <= on_node;
}

/* Let each task have GPUs of its own, of which nothing else is known. */
static void set_apart(struct ddp_view *views, uint32_t count)
{
	uint32_t i, k;

	for (i = 0; i < count; i++)
		for (k = 0; k < views[i].count; k++) {
			views[i].gpus[k].gpu = DDP_GPU_NONE;
			views[i].gpus[k].number = i * DDP_GPU_MAX + k;
		}
}

int ddp_views_join_node(const struct ddp_machine *machine, uint32_t on_node,
			struct ddp_view *views, uint32_t count,
			struct ddp_view *all,
			uint32_t (*indexes)[DDP_GPU_MAX], bool *apart,
			struct ddp_error *error)
{
	*apart = false;
	if (ddp_views_join(views, count, all, indexes, error) < 0)
		return -1;
	*apart = are_apart(machine, on_node, views, count, all->count);
	if (!*apart)
		return 0;
	set_apart(views, count);
	return ddp_views_join(views, count, all, indexes, error);
}

int ddp_views_format(const struct ddp_view *view, const struct ddp_view *all,
		     const uint32_t *visible, uint32_t count, char *out,
		     size_t size)
{
	size_t used = 0;
	uint32_t i, at;
	int length;

	out[0] = '\0';
	for (i = 0; i < count; i++) {
		at = find_ref(view, &all->gpus[visible[i]]);
		if (at == DDP_GPU_NONE)
			return -1;
		length = snprintf(out + used, size - used, "%s%s",
				  i > 0 ? "," : "", view->gpus[at].token);
		if (length < 0 || (size_t)length >= size - used)
			return -1;
		used += (size_t)length;
	}
	return 0;
}
