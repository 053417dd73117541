/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How supervisor and agent know each other. The proofs that are wanted are
 * those of another implementation, Python's:
 *
 *	import hmac
 *	secret, nonce = bytes(range(32)), bytes(range(64, 96))
 *	hmac.new(secret, b"agent\0" + b"n1\0" + nonce, "sha256").hexdigest()
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "wire/proof.h"

static struct ddp_secret secret;
static unsigned char nonce[DDP_WIRE_NONCE];

static void set_up(void)
{
	unsigned char i;

	for (i = 0; i < DDP_WIRE_NONCE; i++) {
		secret.bytes[i] = i;
		nonce[i] = (unsigned char)(64 + i);
	}
}

TestSuite(proof, .init = set_up);

static const char *make(const char *who, const char *node)
{
	static char text[DDP_PROOF_TEXT_SIZE];
	unsigned char proof[DDP_WIRE_NONCE];
	size_t i;

	cr_assert_eq(ddp_proof_make(&secret, who, node, nonce, proof), 0);
	for (i = 0; i < sizeof(proof); i++)
		sprintf(text + 2 * i, "%02x", proof[i]);
	return text;
}

Test(proof, as_another_makes_it)
{
	cr_expect_str_eq(make("agent", "n1"), "e390b0384f50e4277b01a2a92ea0e8b4"
			 "8e369a89a7280838e638b25d617d5b89");
	cr_expect_str_eq(make("supervisor", "n1"),
			 "b4dc051ff90e35abb83ee955df781663"
			 "ce39eb46d66e131170b5e7c63183f893");
	cr_expect_str_eq(make("agent", "n12"), "28b3b422db6ab67dba2a2680af06e039"
			 "f151c6192829d9f2a28f0434bc505b26");
}

Test(proof, check)
{
	unsigned char proof[DDP_WIRE_NONCE];
	struct ddp_secret other = secret;
	int i;

	cr_assert_eq(ddp_proof_make(&secret, "agent", "n1", nonce, proof), 0);
	cr_expect(ddp_proof_check(&secret, "agent", "n1", nonce, proof));
	cr_expect(!ddp_proof_check(&secret, "supervisor", "n1", nonce, proof));
	cr_expect(!ddp_proof_check(&secret, "agent", "n2", nonce, proof));
	other.bytes[31] ^= 1;
	cr_expect(!ddp_proof_check(&other, "agent", "n1", nonce, proof));
	nonce[0] ^= 1;
	cr_expect(!ddp_proof_check(&secret, "agent", "n1", nonce, proof));
	nonce[0] ^= 1;
	for (i = 0; i < 8 * DDP_WIRE_NONCE; i++) {
		proof[i / 8] ^= (unsigned char)(1 << i % 8);
		cr_expect(!ddp_proof_check(&secret, "agent", "n1", nonce,
					   proof), "bit %d", i);
		proof[i / 8] ^= (unsigned char)(1 << i % 8);
	}
}

Test(proof, text)
{
	static const char digits[] = "000102030405060708090a0b0c0d0e0f"
				     "101112131415161718191a1b1c1d1e1f";
	char text[DDP_PROOF_TEXT_SIZE], bad[80];
	struct ddp_secret got;

	ddp_proof_format(&secret, text);
	cr_expect_str_eq(text, digits);
	cr_expect_eq(ddp_proof_parse(digits, &got), 0);
	cr_expect(memcmp(&got, &secret, sizeof(got)) == 0);
	cr_expect_eq(ddp_proof_parse("", &got), -1);
	cr_expect_eq(ddp_proof_parse(digits + 1, &got), -1);
	snprintf(bad, sizeof(bad), "%s0", digits);
	cr_expect_eq(ddp_proof_parse(bad, &got), -1);
	snprintf(bad, sizeof(bad), "%sg", digits + 1);
	cr_expect_eq(ddp_proof_parse(bad, &got), -1);
	snprintf(bad, sizeof(bad), "%s ", digits + 1);
	cr_expect_eq(ddp_proof_parse(bad, &got), -1);
}

Test(proof, random)
{
	unsigned char a[DDP_WIRE_NONCE] = { 0 }, b[DDP_WIRE_NONCE] = { 0 };

	cr_expect_eq(ddp_proof_random(a), 0);
	cr_expect_eq(ddp_proof_random(b), 0);
	cr_expect(memcmp(a, b, sizeof(a)) != 0);
}
