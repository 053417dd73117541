/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP port on which rank 0 listens: read, or derived from job and step. */
#include "layout/port.h"

#include <string.h>

#include "layout/scan.h"

enum { PORT_UNPRIVILEGED = 1024 };

int ddp_port_range_parse(const char *text, uint16_t *first, uint16_t *last,
			 struct ddp_error *error)
{
	static const char what[] = "port range";
	const char *at;
	uint64_t low, high;

	if (!text)
		text = "";
	at = text;
	if (ddp_scan_number(&at, PORT_UNPRIVILEGED, UINT16_MAX, &low))
		return ddp_scan_error(error, what, text, at,
				      "a port from 1024 to 65535");
	if (*at != '-')
		return ddp_scan_error(error, what, text, at,
				      "'-' and the last port");
	at++;
	if (ddp_scan_number(&at, low + DDP_PORT_RANGE_MIN - 1, UINT16_MAX,
			    &high))
		return ddp_scan_error(error, what, text, at,
				      "a port up to 65535, at least %d above "
				      "the first", DDP_PORT_RANGE_MIN - 1);
	if (*at != '\0')
		return ddp_scan_error(error, what, text, at, "the end");
	*first = (uint16_t)low;
	*last = (uint16_t)high;
	return 0;
}

uint16_t ddp_port_derive(uint32_t job_id, uint32_t step_id, uint16_t first,
			 uint16_t last)
{
	/* 2^32 divided by the golden ratio puts neighbours furthest apart. */
	const uint32_t golden = 2654435769u;
	uint64_t range = (uint64_t)last - first + 1;
	uint64_t slot = (uint64_t)(job_id * golden) * range >> 32;

	return (uint16_t)(first + (slot + step_id) % range);
}

int ddp_port_reserved(const char *text, uint16_t *port,
		      struct ddp_error *error)
{
	const char *at;
	uint64_t value;

	if (!text)
		text = "";
	at = text;
	if (ddp_scan_number(&at, 1, UINT16_MAX, &value))
		return ddp_scan_error(error, "reserved ports", text, at,
				      "a port from 1 to 65535");
	at += strspn(at, "0123456789,-");
	if (*at != '\0')
		return ddp_scan_error(error, "reserved ports", text, at,
				      "a digit, '-' or ','");
	*port = (uint16_t)value;
	return 0;
}
