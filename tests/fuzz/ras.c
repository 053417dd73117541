/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the answer of NCCL's RAS, and the text of /proc/net/tcp. */
#include <sys/types.h>

#include "fuzz.h"
#include "proc/ras.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct ddp_ras ras;
	uid_t owner;
	size_t i;

	if (ddp_ras_read(text, &ras) == 0) {
		for (i = 0; i < ras.count; i++)
			CHECK(memchr(ras.ranks[i].host, '\0',
				     DDP_RAS_HOST_SIZE));
		CHECK(!ddp_ras_rises(&ras, &ras));
		ddp_ras_mark(&ras, NULL);
	} else {
		CHECK(ras.count == 0);
	}
	free(ras.ranks);
	ddp_ras_find_owner(text, false, 28028, &owner);
	ddp_ras_find_owner(text, true, 28028, &owner);
	free(text);
	return 0;
}
