/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPUs in the views of a node's tasks: each once, and by what name each
 * task sees it.
 */
#include "place/views.h"

#include <stdio.h>

static uint32_t find_ref(const struct ddp_view *view,
			 const struct ddp_gpu_ref *ref)
{
	uint32_t i;

	for (i = 0; i < view->count; i++)
		if (ddp_gpus_same(&view->gpus[i], ref))
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
	return ref->token[0] < '0' || ref->token[0] > '9' ||
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
