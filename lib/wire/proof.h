/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets supervisor and agent know each other: both have the secret of the step,
 * which is never sent, and answer the other's nonce with an HMAC-SHA-256 (RFC
 * 2104). The only code that knows libgcrypt.
 */
#ifndef DDP_WIRE_PROOF_H
#define DDP_WIRE_PROOF_H

#include <stdbool.h>

#include "wire/wire.h"

enum { DDP_PROOF_TEXT_SIZE = 2 * DDP_WIRE_NONCE + 1 };

struct ddp_secret {
	unsigned char bytes[DDP_WIRE_NONCE];
};

/* Bytes that nobody can guess: a nonce, or a secret. Returns 0, or -1. */
int ddp_proof_random(unsigned char bytes[DDP_WIRE_NONCE]);

/* A secret as hexadecimal digits, and back; -1 if the text is not one. */
void ddp_proof_format(const struct ddp_secret *secret,
		      char text[DDP_PROOF_TEXT_SIZE]);
int ddp_proof_parse(const char *text, struct ddp_secret *secret);

/*
 * The proof for a nonce. who is "agent" or "supervisor", so that neither can
 * send back what it got; node is the agent's. Returns 0; -1 if libgcrypt cannot
 * be used.
 */
int ddp_proof_make(const struct ddp_secret *secret, const char *who,
		   const char *node, const unsigned char nonce[DDP_WIRE_NONCE],
		   unsigned char proof[DDP_WIRE_NONCE]);

/* Returns true if a proof is right; takes as long for each that is wrong. */
bool ddp_proof_check(const struct ddp_secret *secret, const char *who,
		     const char *node,
		     const unsigned char nonce[DDP_WIRE_NONCE],
		     const unsigned char proof[DDP_WIRE_NONCE]);

#endif
