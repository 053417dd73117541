/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds slow nodes, and slow pairs of nodes, among the times of all pairs. */
#include "outliers.h"

#include <stdlib.h>
#include <string.h>

/*
 * The circle method: nodes a and b, both below last, meet in round a + b modulo
 * last. A node that would meet itself meets the last one, or rests.
 */
int pair_partner(int node, int round, int nodes)
{
	int last = nodes % 2 == 0 ? nodes - 1 : nodes;
	int partner;

	if (node == last)
		return round % 2 == 0 ? round / 2 : (round + last) / 2;
	partner = ((round - node) % last + last) % last;
	if (partner == node && nodes % 2 == 0)
		return last;
	return partner;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* work has room for count values. */
static struct bounds find_bounds(const double *values, size_t count,
				 double *work)
{
	struct bounds bounds;
	double by_deviation, by_ratio;

	memcpy(work, values, count * sizeof(*values));
	bounds.median = median(work, count);
	for (size_t i = 0; i < count; i++)
		work[i] = values[i] > bounds.median ?
			values[i] - bounds.median : bounds.median - values[i];
	bounds.mad = median(work, count);
	by_deviation = bounds.median + OUTLIER_DEVIATIONS * 1.4826 * bounds.mad;
	by_ratio = OUTLIER_RATIO * bounds.median;
	bounds.above = by_deviation > by_ratio ? by_deviation : by_ratio;
	return bounds;
}

static void find_node_times(struct outliers *slow, const double *times,
			    int nodes)
{
	for (int a = 0; a < nodes; a++) {
		slow->partners[a] = a == 0 ? 1 : 0;
		for (int b = 0; b < nodes; b++)
			if (b != a && times[pair_index(a, b)] <
			    times[pair_index(a, slow->partners[a])])
				slow->partners[a] = b;
		slow->node_times[a] =
			times[pair_index(a, slow->partners[a])];
	}
}

static void find_ratios(const struct outliers *slow, const double *times,
			int nodes, double *ratios)
{
	for (int b = 1; b < nodes; b++) {
		for (int a = 0; a < b; a++) {
			double x = slow->node_times[a], y = slow->node_times[b];
			size_t i = pair_index(a, b);

			ratios[i] = times[i] / (x > y ? x : y);
		}
	}
}

int outliers_find(struct outliers *slow, const double *times, int nodes)
{
	size_t n = (size_t)nodes, pairs = n * (n - 1) / 2;
	double *ratios = calloc(pairs, sizeof(*ratios));
	double *work = calloc(pairs + n, sizeof(*work));

	*slow = (struct outliers){
		.node_times = calloc(n, sizeof(double)),
		.partners = calloc(n, sizeof(int)),
		.nodes = calloc(n, sizeof(bool)),
		.pairs = calloc(pairs, sizeof(bool))
	};
	if (!ratios || !work || !slow->node_times || !slow->partners ||
	    !slow->nodes || !slow->pairs) {
		free(ratios);
		free(work);
		outliers_clear(slow);
		return -1;
	}
	find_node_times(slow, times, nodes);
	find_ratios(slow, times, nodes, ratios);
	slow->node_bounds = find_bounds(slow->node_times, n, work);
	slow->pair_bounds = find_bounds(ratios, pairs, work);
	for (size_t i = 0; i < n; i++)
		slow->node_count += slow->nodes[i] =
			slow->node_times[i] > slow->node_bounds.above;
	for (size_t i = 0; i < pairs; i++)
		slow->pair_count += slow->pairs[i] =
			ratios[i] > slow->pair_bounds.above;
	free(ratios);
	free(work);
	return 0;
}

void outliers_clear(struct outliers *slow)
{
	free(slow->node_times);
	free(slow->partners);
	free(slow->nodes);
	free(slow->pairs);
	*slow = (struct outliers){ 0 };
}
