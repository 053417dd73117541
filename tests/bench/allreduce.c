/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allreduce [BYTES [ROUNDS]], run by two MPI ranks, measures in turn the
 * all-reduce of ddp-train, MPI_Allreduce in place and, if the ranks are on two
 * nodes, a TCP connection that moves as many bytes both ways. It prints medians
 * over the rounds: of the slower rank's times, in ms, and of the ratios of
 * these times in a round; and the fastest times, which other work on the
 * machine disturbs least. Each rank must be bound to a CPU of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collective.h"
#include "ddp_error.h"

enum { OURS, THEIRS, TCP, WAYS };
enum { PIECE = 1 << 20, MOST_ROUNDS = 10000 };

struct bench {
	struct collective collective;
	struct device device;
	size_t count;
	float *ours, *theirs;
	char *received;		/* count floats */
	int socket;		/* -1 if the ranks are on one node */
};

struct place {
	char host[256];
	char boot[64];		/* the same for nodes of one machine */
	int cpu;		/* -1 if there are more */
	int port;
};

static void die(struct bench *bench, const char *text)
{
	fprintf(stderr, "allreduce: %s\n", text);
	bench->collective.table->abort(&bench->collective, "no measurement");
}

static int query(struct device *device, int event)
{
	(void)device;
	(void)event;
	return true;
}

static const struct device_table table = {
	.abi = DEVICE_ABI, .name = "nothing", .query = query
};

static void find_place(struct place *place)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
	cpu_set_t cpus;

	memset(place, 0, sizeof(*place));
	place->cpu = -1;
	gethostname(place->host, sizeof(place->host) - 1);
	if (file) {
		if (!fgets(place->boot, sizeof(place->boot), file))
			place->boot[0] = '\0';
		fclose(file);
	}
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
	    CPU_COUNT(&cpus) == 1)
		place->cpu = sched_getcpu();
}

static int listen_any(int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 ||
	    bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		return -1;
	*port = ntohs(address.sin_port);
	return listener;
}

static int connect_to(const struct place *place)
{
	struct addrinfo hints = { .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char port[16];
	int connection;

	snprintf(port, sizeof(port), "%d", place->port);
	if (getaddrinfo(place->host, port, &hints, &list) != 0)
		return -1;
	connection = socket(AF_INET, SOCK_STREAM, 0);
	if (connection >= 0 &&
	    connect(connection, list->ai_addr, list->ai_addrlen) < 0)
		connection = -1;
	freeaddrinfo(list);
	return connection;
}

/* Find out where the ranks are; if on two nodes, connect them. */
static void meet(struct bench *bench)
{
	struct collective *collective = &bench->collective;
	struct place mine, all[2];
	int listener = -1;

	find_place(&mine);
	if (collective->rank == 0 && collective->nodes == 2) {
		listener = listen_any(&mine.port);
		if (listener < 0)
			die(bench, "cannot listen");
	}
	collective->table->agree(collective, &mine, all, sizeof(mine));
	if (all[0].cpu < 0 || all[1].cpu < 0 ||
	    (all[0].cpu == all[1].cpu && !strcmp(all[0].boot, all[1].boot)))
		die(bench, "bind each rank to a CPU of its own");
	bench->socket = -1;
	if (collective->nodes == 1)
		return;
	bench->socket = collective->rank == 0 ?
		accept4(listener, NULL, NULL, SOCK_NONBLOCK) :
		connect_to(&all[0]);
	if (bench->socket < 0 ||
	    fcntl(bench->socket, F_SETFL, O_NONBLOCK) < 0)
		die(bench, "cannot connect");
	close(listener);
}

static void prepare(struct bench *bench, size_t bytes)
{
	struct collective *collective = &bench->collective;
	struct collective_plan plan = { .bytes = (bytes + 63) / 64 * 64,
					.largest = bytes };
	struct ddp_error error;

	bench->count = bytes / sizeof(float);
	bench->device.table = &table;
	bench->ours = collective->table->alloc(collective, &bench->device,
					       &plan, &error);
	if (!bench->ours)
		die(bench, error.text);
	bench->theirs = malloc(plan.bytes);
	bench->received = malloc(plan.bytes);
	if (!bench->theirs || !bench->received)
		die(bench, "no memory");
	for (size_t i = 0; i < bench->count; i++) {
		bench->ours[i] = (float)(collective->rank + 1);
		bench->theirs[i] = bench->ours[i];
	}
}

static void reduce_ours(struct bench *bench)
{
	struct collective *collective = &bench->collective;
	uint64_t ticket = collective->table->start(collective, ALL_REDUCE, 0,
						   bench->count, DEVICE_FP32, 0);

	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
}

static void reduce_theirs(struct bench *bench)
{
	MPI_Allreduce(MPI_IN_PLACE, bench->theirs, (int)bench->count,
		      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Move a piece if that is possible now. Returns what is left. */
static size_t move(struct bench *bench, bool sends, size_t left)
{
	size_t piece = left < PIECE ? left : PIECE;
	size_t at = bench->count * sizeof(float) - left;
	ssize_t moved;

	if (left == 0)
		return 0;
	moved = sends ? send(bench->socket, (char *)bench->theirs + at, piece,
			     0) :
		recv(bench->socket, bench->received + at, piece, 0);
	if (moved == 0 || (moved < 0 && errno != EAGAIN))
		die(bench, "the connection broke");
	return moved < 0 ? left : left - (size_t)moved;
}

static void exchange_bytes(struct bench *bench)
{
	size_t out = bench->count * sizeof(float), in = out;

	while (out > 0 || in > 0) {
		struct pollfd fd = {
			.fd = bench->socket,
			.events = (short)((out ? POLLOUT : 0) |
					  (in ? POLLIN : 0))
		};

		if (poll(&fd, 1, -1) < 0)
			die(bench, "cannot poll");
		if (fd.revents & (POLLIN | POLLHUP | POLLERR))
			in = move(bench, false, in);
		if (fd.revents & POLLOUT)
			out = move(bench, true, out);
	}
}

static void (*const ways[WAYS])(struct bench *) = {
	reduce_ours, reduce_theirs, exchange_bytes
};

/* Returns the slower rank's time, in ms. */
static double measure(struct bench *bench, int way)
{
	double begin, took;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	ways[way](bench);
	took = (MPI_Wtime() - begin) * 1e3;
	MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX,
		      MPI_COMM_WORLD);
	return took;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double times[WAYS][MOST_ROUNDS];

/*
 * The median of a way's times, or with over of their ratios to its times; the
 * least of them is in *least.
 */
static double median(int way, int over, int rounds, double *least)
{
	static double sorted[MOST_ROUNDS];

	for (int round = 0; round < rounds; round++)
		sorted[round] = times[way][round] /
			(over < 0 ? 1 : times[over][round]);
	qsort(sorted, (size_t)rounds, sizeof(*sorted), compare);
	*least = sorted[0];
	return sorted[rounds / 2];
}

/* The first call is not measured, and only its result can be checked. */
static void run(struct bench *bench, int rounds)
{
	int ways_here = bench->socket < 0 ? TCP : WAYS;

	for (int way = 0; way < ways_here; way++)
		measure(bench, way);
	for (size_t i = 0; i < bench->count; i++)
		if (bench->ours[i] != 3.0f || bench->theirs[i] != 3.0f)
			die(bench, "a sum is wrong");
	for (int round = 0; round < rounds; round++)
		for (int way = 0; way < ways_here; way++)
			times[way][round] = measure(bench, way);
}

static void print(const struct bench *bench, int rounds)
{
	static const char *const names[WAYS] = {
		"ddp-train", "MPI_Allreduce", "TCP both ways"
	};
	double least[WAYS], ignored;

	printf("all-reduce of %zu bytes, 2 ranks on %d node%s, medians of %d "
	       "rounds, ms\n", bench->count * sizeof(float),
	       bench->collective.nodes, bench->socket < 0 ? "" : "s", rounds);
	for (int way = 0; way < (bench->socket < 0 ? TCP : WAYS); way++) {
		double took = median(way, -1, rounds, &least[way]);

		printf("  %s %.3f, the fastest %.3f", names[way], took,
		       least[way]);
		if (way != OURS)
			printf("; ddp-train %.3f times it, the fastest %.3f",
			       median(OURS, way, rounds, &ignored),
			       least[OURS] / least[way]);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct bench bench = { .collective.table = &collective_mpi };
	unsigned long bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 25 << 20;
	int rounds = argc > 2 ? atoi(argv[2]) : 41;

	bench.collective.table->open(&bench.collective, NULL);
	if (bench.collective.size != 2 || bytes < 4 || bytes > 1 << 30 ||
	    rounds < 1 || rounds > MOST_ROUNDS)
		die(&bench, "usage: allreduce [BYTES [ROUNDS]], by 2 ranks");
	meet(&bench);
	prepare(&bench, bytes);
	run(&bench, rounds);
	if (bench.collective.rank == 0)
		print(&bench, rounds);
	bench.collective.table->close(&bench.collective);
	free(bench.theirs);
	free(bench.received);
	return 0;
}
