/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP ports of a step: read, or derived from job and step. */
#include "layout/port.h"

#include "util/scan.h"

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

/*
 * Returns a number's place on a circle of 2^32: 0, 1/2, 1/4, 3/4, 1/8, 5/8, ...
 */
static uint32_t spread(uint32_t number)
{
	uint32_t place = 0;
	int bit;

	for (bit = 0; bit < 32; bit++)
		place |= (number >> bit & 1) << (31 - bit);
	return place;
}

uint16_t ddp_port_derive(uint32_t job_id, uint32_t step_id, uint32_t number,
			 uint16_t first, uint16_t last)
{
	/* 2^32 divided by the golden ratio puts neighbours furthest apart. */
	const uint32_t golden = 2654435769u;
	uint64_t range = (uint64_t)last - first + 1;
	uint64_t slot = (uint64_t)(job_id * golden) * range >> 32;
	uint64_t offset = spread(number) * range >> 32;

	return (uint16_t)(first + (slot + step_id + offset) % range);
}

/* Read "12000" or "12005-12007" at *at, and move *at behind it. */
static int scan_ports(const char *text, const char **at, uint64_t *first,
		      uint64_t *last, struct ddp_error *error)
{
	static const char what[] = "reserved ports";

	if (ddp_scan_number(at, 1, UINT16_MAX, first))
		return ddp_scan_error(error, what, text, *at,
				      "a port from 1 to 65535");
	*last = *first;
	if (**at != '-')
		return 0;
	++*at;
	return ddp_scan_number(at, *first, UINT16_MAX, last) == 0 ? 0 :
		ddp_scan_error(error, what, text, *at, "a port from %u to "
			       "65535", (unsigned int)*first);
}

int ddp_port_reserved(const char *text, uint32_t number, uint16_t *port,
		      struct ddp_error *error)
{
	uint64_t first, last, before = 0, found = 0;
	const char *at = text ? text : "";

	for (;; at++) {
		if (scan_ports(text ? text : "", &at, &first, &last, error) < 0)
			return -1;
		if (number >= before && number - before <= last - first)
			found = first + number - before;
		before += last - first + 1;
		if (*at != ',')
			break;
	}
	if (*at != '\0')
		return ddp_scan_error(error, "reserved ports", text, at,
				      "',' or the end");
	if (found == 0)
		return 1;
	*port = (uint16_t)found;
	return 0;
}
