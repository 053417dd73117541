/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that both ends of a preflight's connections share. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "config.h"
#include "preflight.h"

enum { LIMIT_MS = 7000, PATIENCE_MS = 30000, GPUS_LIMIT_MS = 60000 };

int64_t preflight_limit_ms(const struct options *options, bool gpus)
{
	if (options->limit > 0)
		return (int64_t)options->limit * 1000;
	return gpus ? GPUS_LIMIT_MS : LIMIT_MS;
}

int64_t preflight_patience_ms(const struct options *options, bool gpus)
{
	int64_t limit = preflight_limit_ms(options, gpus);

	return options->limit > 0 || limit > PATIENCE_MS ? limit : PATIENCE_MS;
}

double preflight_date(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct message preflight_message(const struct preflight *preflight,
				 enum message_kind kind)
{
	struct message message;

	memset(&message, 0, sizeof(message));
	message.header = (struct header){
		.size = sizeof(message), .kind = kind,
		.rank = (uint32_t)preflight->rank,
		.world_size = (uint32_t)preflight->size,
		.version = DDP_VERSION
	};
	memcpy(message.header.tag, preflight->tag, PREFLIGHT_TAG_SIZE);
	memcpy(message.header.host, preflight->host, FACT_HOST);
	return message;
}

int preflight_send(int fd, const void *data, size_t size)
{
	struct pollfd poller = { fd, POLLOUT, 0 };
	const char *at = data;
	ssize_t count;

	while (size > 0) {
		count = send(fd, at, size, MSG_NOSIGNAL);
		if (count < 0 && errno == EAGAIN)
			poll(&poller, 1, -1);
		else if (count < 0 && errno != EINTR)
			return -1;
		if (count > 0) {
			at += count;
			size -= (size_t)count;
		}
	}
	return 0;
}

int preflight_receive(int fd, void *data, size_t size)
{
	struct pollfd poller = { fd, POLLIN, 0 };
	char *at = data;
	ssize_t count;

	while (size > 0) {
		count = recv(fd, at, size, 0);
		if (count < 0 && errno == EAGAIN)
			poll(&poller, 1, -1);
		else if (count == 0 || (count < 0 && errno != EINTR))
			return -1;
		if (count > 0) {
			at += count;
			size -= (size_t)count;
		}
	}
	return 0;
}
