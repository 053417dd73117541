/* SPDX-License-Identifier: BSD-3-Clause */
/* HMAC-SHA-256 by libgcrypt. */
#include "wire/proof.h"

#include <stdio.h>
#include <string.h>

#include <gcrypt.h>

#include "util/file.h"

/* libgcrypt must be asked for its version once before it is used. */
static bool is_ready(void)
{
	if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
		return true;
	if (!gcry_check_version(NULL))
		return false;
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
	return true;
}

/*
 * libgcrypt opens a file of /proc when it begins, and ends the program where no
 * descriptor is left. So it begins with the secret, before others can connect.
 */
int ddp_proof_random(unsigned char bytes[DDP_WIRE_NONCE])
{
	return is_ready() ? ddp_random_fill(bytes, DDP_WIRE_NONCE) : -1;
}

void ddp_proof_format(const struct ddp_secret *secret,
		      char text[DDP_PROOF_TEXT_SIZE])
{
	int i;

	for (i = 0; i < DDP_WIRE_NONCE; i++)
		snprintf(text + 2 * i, 3, "%02x", secret->bytes[i]);
}

int ddp_proof_parse(const char *text, struct ddp_secret *secret)
{
	unsigned int byte;
	int i;

	if (strlen(text) != DDP_PROOF_TEXT_SIZE - 1 ||
	    strspn(text, "0123456789abcdef") != DDP_PROOF_TEXT_SIZE - 1)
		return -1;
	for (i = 0; i < DDP_WIRE_NONCE; i++) {
		sscanf(text + 2 * i, "%2x", &byte);
		secret->bytes[i] = (unsigned char)byte;
	}
	return 0;
}

static gcry_buffer_t buffer_of(const void *data, size_t length)
{
	return (gcry_buffer_t){ .size = length, .len = length,
				.data = (void *)data };
}

int ddp_proof_make(const struct ddp_secret *secret, const char *who,
		   const char *node, const unsigned char nonce[DDP_WIRE_NONCE],
		   unsigned char proof[DDP_WIRE_NONCE])
{
	/* The first is the key. The NULs keep two texts apart. */
	const gcry_buffer_t buffers[] = {
		buffer_of(secret->bytes, sizeof(secret->bytes)),
		buffer_of(who, strlen(who) + 1),
		buffer_of(node, strlen(node) + 1),
		buffer_of(nonce, DDP_WIRE_NONCE),
	};

	if (!is_ready())
		return -1;
	return gcry_md_hash_buffers(GCRY_MD_SHA256, GCRY_MD_FLAG_HMAC, proof,
				    buffers, 4) == 0 ? 0 : -1;
}

bool ddp_proof_check(const struct ddp_secret *secret, const char *who,
		     const char *node,
		     const unsigned char nonce[DDP_WIRE_NONCE],
		     const unsigned char proof[DDP_WIRE_NONCE])
{
	unsigned char right[DDP_WIRE_NONCE], difference = 0;
	int i;

	if (ddp_proof_make(secret, who, node, nonce, right) < 0)
		return false;
	for (i = 0; i < DDP_WIRE_NONCE; i++)
		difference |= right[i] ^ proof[i];
	return difference == 0;
}
