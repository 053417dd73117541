/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's stderr, and what the supervisor prints there. */
#define _GNU_SOURCE
#include "supervisor/relay.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "util/clock.h"
#include "verdict/times.h"

enum {
	OUT_MAX = 1 << 16,
	DELAY_MS = 200
};

bool ddp_relay_reads(const struct ddp_relay *relay)
{
	return relay->in >= 0 && relay->out.length < OUT_MAX;
}

static void close_in(struct ddp_relay *relay)
{
	close(relay->in);
	relay->in = -1;
}

void ddp_relay_read(struct ddp_relay *relay)
{
	char bytes[OUT_MAX];
	ssize_t got = 1;

	relay->sieve.now_ns = ddp_clock_ns();
	while (got > 0 && ddp_relay_reads(relay)) {
		got = read(relay->in, bytes, sizeof(bytes));
		if (got > 0)
			ddp_sieve_add(&relay->sieve, bytes, (size_t)got,
				      &relay->out);
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			close_in(relay);
	}
	ddp_relay_flush(relay);
}

/*
 * Where nobody reads any more, srun must notice as if it wrote itself. Our
 * stderr cannot be made non-blocking, as others share it.
 */
void ddp_relay_flush(struct ddp_relay *relay)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct ddp_text *out = &relay->out;
	size_t part, done = 0;
	ssize_t put;

	while (!out->failed && done < out->length && poll(&fd, 1, 0) > 0) {
		part = out->length - done;
		put = write(STDERR_FILENO, out->data + done,
			    part < PIPE_BUF ? part : PIPE_BUF);
		if (put > 0) {
			done += (size_t)put;
		} else if (errno != EINTR && errno != EAGAIN) {
			if (relay->in >= 0)
				close_in(relay);
			done = out->length;
		}
	}
	if (done > 0) {
		relay->last = out->data[done - 1];
		memmove(out->data, out->data + done, out->length - done);
	}
	out->length -= done;
}

void ddp_relay_delay(struct ddp_relay *relay, int64_t now_ns)
{
	if (!ddp_sieve_keeps(&relay->sieve))
		relay->kept_ns = 0;
	else if (!relay->kept_ns)
		relay->kept_ns = now_ns;
	else if (now_ns - relay->kept_ns >= ms(DELAY_MS))
		ddp_relay_release(relay);
	relay->sieve.holds = true;
}

void ddp_relay_release(struct ddp_relay *relay)
{
	ddp_sieve_release(&relay->sieve, &relay->out);
	relay->kept_ns = 0;
	ddp_relay_flush(relay);
}

/* With --pty the terminal may be raw: then a new line begins at column 1 only
 * after a carriage return. */
static bool is_raw(void)
{
	struct termios terminal;

	return tcgetattr(STDERR_FILENO, &terminal) == 0 &&
	       !(terminal.c_oflag & OPOST);
}

void ddp_relay_say(struct ddp_relay *relay, struct ddp_text *text)
{
	const char *end = is_raw() ? "\r\n" : "\n";
	char *all = ddp_text_finish(text), *line, *save;
	const struct ddp_text *out = &relay->out;
	char last = out->length ? out->data[out->length - 1] : relay->last;

	/* A progress bar may stand there. */
	if (all && *all && last && last != '\n')
		ddp_text_add_fixed(&relay->out, end);
	for (line = all ? strtok_r(all, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		ddp_text_add_fixed(&relay->out, line);
		ddp_text_add_fixed(&relay->out, end);
	}
	free(all);
	ddp_relay_flush(relay);
}

void ddp_relay_finish(struct ddp_relay *relay)
{
	struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (relay->in >= 0)
		ddp_relay_read(relay);
	ddp_relay_release(relay);
	while (relay->out.length > 0 && !relay->out.failed) {
		poll(&fd, 1, -1);
		ddp_relay_flush(relay);
		if (relay->in >= 0)
			ddp_relay_read(relay);
	}
}

void ddp_relay_clear(struct ddp_relay *relay)
{
	if (relay->in >= 0)
		close_in(relay);
	free(relay->out.data);
}
