/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sampler, for tests/train/sampler.sh.
 *
 * sampler given: for each case on stdin, "samples replicas drop_last" and a
 * permutation, a line with the samples of each replica.
 * sampler bijection | differs | uniform: check our own permutation. Exits with
 * 1 and a line about it if it is not one to one, too much like another epoch's,
 * or not uniform.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/rng.h"

static void *zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		exit(2);
	return memory;
}

static void print_replicas(const struct sampler *sampler)
{
	uint64_t length = sampler_count(sampler);

	for (uint64_t r = 0; r < sampler->replicas; r++) {
		for (uint64_t i = 0; i < length; i++)
			printf("%s%" PRIu64, i ? " " : "",
			       sampler_find_sample(sampler, 0, r, i));
		putchar('\n');
	}
}

static int given(void)
{
	uint64_t samples, replicas;
	int drop_last;

	while (scanf("%" SCNu64 "%" SCNu64 "%d", &samples, &replicas,
		     &drop_last) == 3) {
		uint64_t *permutation = zeroed(samples, sizeof(*permutation));
		struct sampler sampler = {
			.samples = samples, .replicas = replicas,
			.drop_last = drop_last, .permutation = permutation
		};

		for (uint64_t i = 0; i < samples; i++)
			if (scanf("%" SCNu64, &permutation[i]) != 1)
				return 2;
		print_replicas(&sampler);
		free(permutation);
	}
	return 0;
}

static int check_bijection(uint64_t count, uint64_t seed, uint64_t epoch)
{
	char *seen = zeroed(count, 1);
	struct sampler own = { .samples = count, .replicas = 1, .seed = seed };
	int bad = 0;

	for (uint64_t i = 0; i < count && !bad; i++) {
		uint64_t place = sampler_permute(i, count, seed, epoch);

		bad = place >= count || seen[place]++ ||
		      sampler_find_sample(&own, epoch, 0, i) != place;
		if (bad)
			printf("count %" PRIu64 ", epoch %" PRIu64 ": %" PRIu64
			       " goes to %" PRIu64 "\n", count, epoch, i,
			       place);
	}
	free(seen);
	return bad;
}

/*
 * All small counts; powers of two and of four, and their neighbours, where the
 * number of bits changes; a large one; and some places of one that is too large
 * to check them all.
 */
static int bijection(void)
{
	static const uint64_t large[] = {
		1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537,
		1000003
	};
	uint64_t huge = UINT64_C(1) << 40;
	int bad = 0;

	for (uint64_t count = 1; count <= 300; count++)
		for (uint64_t epoch = 0; epoch < 5; epoch++)
			bad |= check_bijection(count, count, epoch);
	for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++)
		bad |= check_bijection(large[i], UINT64_MAX, i);
	for (uint64_t i = 0; i < 1000; i++)
		bad |= sampler_permute(huge - i, huge + 1, 1, 0) > huge;
	return bad;
}

/*
 * How many of 1,000 samples have the same place in two permutations: 1 on
 * average where they are independent, and above 12 less than once in 10^9
 * times.
 */
static int coincide(uint64_t seed, uint64_t epoch, uint64_t other_seed,
		    uint64_t other_epoch)
{
	int same = 0;

	for (uint64_t i = 0; i < 1000; i++)
		same += sampler_permute(i, 1000, seed, epoch) ==
			sampler_permute(i, 1000, other_seed, other_epoch);
	printf("seed %" PRIu64 " epoch %" PRIu64 ", seed %" PRIu64 " epoch %"
	       PRIu64 ": %d alike\n", seed, epoch, other_seed, other_epoch,
	       same);
	return same > 12;
}

static int differs(void)
{
	return coincide(1, 0, 1, 1) | coincide(1, 0, 2, 0) |
	       coincide(1, 2, 2, 1) | coincide(0, 0, 0, 1) |
	       coincide(0, 0, UINT64_C(1) << 63, 0);
}

/*
 * Whether the cells have the mean `mean`. Their sum of squares is chi-square
 * times `scale` with so many degrees of freedom f. By Laurent and Massart 2000
 * it exceeds f + 2 sqrt(f t) + 2 t with probability below exp(-t); t is 14.
 */
static int check_chi_square(const char *name, uint64_t count,
			    const uint32_t *cells, size_t cell_count,
			    double mean, double scale, double freedom)
{
	double sum = 0, most = freedom + 2 * sqrt(14 * freedom) + 28;

	for (size_t i = 0; i < cell_count; i++)
		sum += (cells[i] - mean) * (cells[i] - mean) / mean;
	sum *= scale;
	printf("%s of %" PRIu64 ": chi-square %.1f, at most %.1f\n", name,
	       count, sum, most);
	return !(sum <= most);
}

/*
 * Which sample comes to which place, over many epochs. Rows and columns of
 * this table all have the same sum, so it has (n - 1)^2 degrees of freedom,
 * and a cell's variance is (n - 1) / n of its mean.
 */
static int check_places(uint64_t n)
{
	enum { EPOCHS = 20000 };
	uint32_t *cells = zeroed(n * n, sizeof(*cells));
	double freedom = ((double)n - 1) * ((double)n - 1);
	int bad;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		for (uint64_t i = 0; i < n; i++)
			cells[i * n + sampler_permute(i, n, 7, epoch)]++;
	bad = check_chi_square("places", n, cells, n * n, EPOCHS / (double)n,
			       ((double)n - 1) / (double)n, freedom);
	free(cells);
	return bad;
}

/* Where the last two samples go, n (n - 1) equally likely pairs. */
static int check_pairs(uint64_t n)
{
	enum { EPOCHS = 200000 };
	uint32_t *table = zeroed(n * n, sizeof(*table));
	uint32_t *cells = zeroed(n * n, sizeof(*cells));
	size_t pairs = 0;
	int bad;

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		table[sampler_permute(n - 2, n, 7, epoch) * n +
		      sampler_permute(n - 1, n, 7, epoch)]++;
	for (uint64_t i = 0; i < n * n; i++)
		if (i / n != i % n)
			cells[pairs++] = table[i];
	bad = check_chi_square("pairs", n, cells, pairs,
			       EPOCHS / (double)pairs, 1, (double)pairs - 1);
	free(table);
	free(cells);
	return bad;
}

/* One large epoch: the distances of former neighbours, in 64 classes. */
static int check_distances(uint64_t n)
{
	uint32_t cells[64] = { 0 };
	uint64_t before = sampler_permute(n - 1, n, 7, 0);

	for (uint64_t i = 0; i < n; i++) {
		uint64_t place = sampler_permute(i, n, 7, 0);
		uint64_t distance = (place + n - before) % n;

		cells[distance * 64 / n]++;
		before = place;
	}
	return check_chi_square("distances", n, cells, 64, (double)n / 64, 1,
				63);
}

static int uniform(void)
{
	static const uint64_t counts[] = { 2, 3, 4, 5, 7, 16, 17, 64, 100 };
	int bad = 0;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		bad |= check_places(counts[i]);
	for (uint64_t n = 3; n <= 9; n++)
		bad |= check_pairs(n);
	return bad | check_distances(1000003) | check_distances(1 << 20);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (strcmp(what, "given") == 0)
		return given();
	if (strcmp(what, "bijection") == 0)
		return bijection();
	if (strcmp(what, "differs") == 0)
		return differs();
	if (strcmp(what, "uniform") == 0)
		return uniform();
	return 2;
}
