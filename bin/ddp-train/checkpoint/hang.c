/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends all ranks where a save hangs: the thread that writes cannot be ended. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/hang.h"
#include "checkpoint/writer.h"
#include "collective.h"
#include "util/clock.h"
#include "util/text.h"

/* Seconds that count between two looks: after more, a step or a stop. */
static const double most = 10;

static void end_ranks(const struct hang *hang, struct writer *writer,
		      struct collective *collective)
{
	struct ddp_text text = { 0 };
	char host[256] = "", *file = writer_format_file(writer), *sentence;

	gethostname(host, sizeof(host) - 1);
	ddp_text_add_quoted(&text, "rank %d on %s: --checkpoint: the save of "
			    "%s has made no progress for %.0f s; see whether "
			    "its file system answers, or choose a longer "
			    "--timeout", collective->rank, host,
			    file ? file : "a file", hang->waited);
	sentence = ddp_text_finish(&text);
	free(file);
	collective->table->abort(collective, sentence ? sentence :
				 "--checkpoint: a save hangs");
}

void hang_look(struct hang *hang, struct writer *writer, bool grown,
	       struct collective *collective)
{
	double now = ddp_clock_seconds();
	double passed = hang->clock > 0 ? now - hang->clock : 0;

	hang->clock = now;
	hang->waited += passed < most ? passed : most;
	if (grown || writer_is_idle(writer))
		hang->waited = 0;
	if (collective->timeout > 0 && hang->waited >= collective->timeout)
		end_ranks(hang, writer, collective);
}
