/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for other ranks, and finds out which of them is missing. */
#define _GNU_SOURCE
#include "mpi/watch.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "collective.h"
#include "tool/mpi_private.h"
#include "util/clock.h"
#include "util/text.h"

enum {
	SPINS = 300,			/* some 10 us, before other ranks get
					   the CPU */
	SELDOM = 64,			/* rounds between looks at the clock in
					   a short wait */
	QUESTIONS = 16384,		/* twice as many tags has every MPI */
	NAMED_MAX = 8			/* ranks in a sentence */
};

/* Seconds */
static const double short_wait = 0.01;	/* and between looks for questions */
static const double stopped = 1;	/* a round that takes longer: this
					   process was stopped itself */
static const double stagger = 0.2;	/* between ranks 0, 1, 2-3, 4-7, ... */
static const double answer_time = 2;
static const double silence = 5;	/* for those that a lower rank asks */

void watch_open(struct watch *watch, struct collective *collective)
{
	size_t size = (size_t)collective->size;
	char host[WATCH_HOST] = "";

	*watch = (struct watch){
		.rank = collective->rank, .size = collective->size,
		.timeout = collective->timeout,
		.hosts = calloc(size, sizeof(*watch->hosts)),
		.here = calloc(size, sizeof(*watch->here))
	};
	if (!watch->hosts || !watch->here)
		collective->table->abort(collective, "no memory for the "
					 "ranks' names");
	gethostname(host, sizeof(host) - 1);
	ddp_text_quote(host);
	MPI_Comm_dup(MPI_COMM_WORLD, &watch->comm);
	MPI_Allgather(host, sizeof(host), MPI_CHAR, watch->hosts, sizeof(host),
		      MPI_CHAR, watch->comm);
}

/* A question has an even tag, its answer the next one. */
static void send_tag(const struct watch *watch, int rank, int tag)
{
	MPI_Request request;

	MPI_Isend(NULL, 0, MPI_BYTE, rank, tag, watch->comm, &request);
	MPI_Request_free(&request);
}

static void take_message(struct watch *watch, struct wait *wait, int from,
			 int tag)
{
	MPI_Recv(NULL, 0, MPI_BYTE, from, tag, watch->comm, MPI_STATUS_IGNORE);
	if (tag % 2) {
		if (tag / 2 == watch->question)
			watch->here[from] = true;
		return;
	}
	send_tag(watch, from, tag + 1);
	if (from < watch->rank) {
		wait->silent = wait->waited + silence;
		wait->asked = 0;
	}
}

static void take_messages(struct watch *watch, struct wait *wait)
{
	MPI_Status status;
	int any = 1;

	while (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, watch->comm, &any,
			  &status), any)
		take_message(watch, wait, status.MPI_SOURCE, status.MPI_TAG);
}

static void ask(struct watch *watch, struct wait *wait)
{
	wait->asked = wait->waited;
	watch->question = (watch->question + 1) % QUESTIONS;
	for (int rank = 0; rank < watch->size; rank++) {
		watch->here[rank] = rank == watch->rank;
		if (rank != watch->rank)
			send_tag(watch, rank, watch->question * 2);
	}
}

/* "rank 3 on n2, rank 5 on n3 and 4 more"; returns how many. */
static int list_missing(const struct watch *watch, struct ddp_text *text)
{
	int missing = 0;

	for (int rank = 0; rank < watch->size; rank++) {
		if (watch->here[rank] || missing++ >= NAMED_MAX)
			continue;
		ddp_text_add(text, "%srank %d on %s", missing > 1 ? ", " : "",
			     rank, watch->hosts[rank]);
	}
	if (missing > NAMED_MAX)
		ddp_text_add(text, " and %d more", missing - NAMED_MAX);
	return missing;
}

static void end_world(const struct watch *watch, const struct wait *wait)
{
	struct ddp_text text = { 0 };
	int missing;
	char *sentence;

	ddp_text_add(&text, "rank %d on %s: waited %.0f s for ", watch->rank,
		     watch->hosts[watch->rank], wait->waited);
	missing = list_missing(watch, &text);
	if (missing == 0)
		ddp_text_add(&text, "other ranks, although all of them answer: "
			     "messages between them are lost or slow; test the "
			     "network with ddp-bench");
	else
		ddp_text_add(&text, ", which did not answer: %s stopped, cut "
			     "off from the network, or busy; look there",
			     missing > 1 ? "they are" : "it is");
	ddp_text_add(&text, ", or choose a longer --timeout");
	sentence = ddp_text_finish(&text);
	tool_mpi_abort("ddp-train", sentence ? sentence : "a rank is missing");
}

/* Returns the time at which this rank would ask. */
static double find_time(const struct watch *watch, const struct wait *wait)
{
	double time = watch->timeout;

	for (int rank = watch->rank; rank > 0; rank /= 2)
		time += stagger;
	return time > wait->silent ? time : wait->silent;
}

static void look(struct watch *watch, struct wait *wait)
{
	double now = ddp_clock_seconds();
	double passed = wait->clock > 0 ? now - wait->clock : 0;

	wait->clock = now;
	wait->waited += passed < stopped ? passed : stopped;
	if (wait->waited < wait->looked + short_wait)
		return;
	wait->looked = wait->waited;
	take_messages(watch, wait);
	if (watch->timeout <= 0)
		return;
	if (wait->asked > 0 && wait->waited >= wait->asked + answer_time)
		end_world(watch, wait);
	if (wait->asked <= 0 && wait->waited >= find_time(watch, wait))
		ask(watch, wait);
}

void watch_wait(struct watch *watch, struct wait *wait)
{
	wait->rounds++;
	if (wait->rounds < SPINS) {
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
		return;
	}
	sched_yield();
	if (wait->waited >= short_wait || wait->rounds % SELDOM == 0)
		look(watch, wait);
}

void watch_finish(struct watch *watch, MPI_Request *request)
{
	struct wait wait = { 0 };
	int done;

	while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done)
		watch_wait(watch, &wait);
}

void watch_close(struct watch *watch)
{
	MPI_Comm_free(&watch->comm);
	free(watch->hosts);
	free(watch->here);
}
