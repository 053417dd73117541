/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the secret of a step, as tasks are told it, and the proofs by which
 * agents are known. The input is a line with the secret, then a proof.
 */
#include <strings.h>

#include "fuzz.h"
#include "wire/proof.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	const char *digits = fuzz_next_line(&rest);
	unsigned char proof[DDP_WIRE_NONCE], forged[DDP_WIRE_NONCE] = { 0 };
	const unsigned char nonce[DDP_WIRE_NONCE] = { 1 };
	char again[DDP_PROOF_TEXT_SIZE];
	struct ddp_secret secret;

	if (ddp_proof_parse(digits, &secret) == 0) {
		ddp_proof_format(&secret, again);
		CHECK(strcasecmp(digits, again) == 0);
		CHECK(ddp_proof_make(&secret, "agent", "n1", nonce, proof) == 0);
		CHECK(ddp_proof_check(&secret, "agent", "n1", nonce, proof));
		CHECK(!ddp_proof_check(&secret, "supervisor", "n1", nonce,
				       proof));
		CHECK(!ddp_proof_check(&secret, "agent", "n2", nonce, proof));
		strncpy((char *)forged, rest, sizeof(forged));
		CHECK(!ddp_proof_check(&secret, "agent", "n1", nonce, forged));
	}
	free(text);
	return 0;
}
