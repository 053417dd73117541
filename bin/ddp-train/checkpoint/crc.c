/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32, by libgcrypt. */
#include <gcrypt.h>
#include <stdlib.h>

#include "checkpoint/crc.h"
#include "util/error.h"

struct crc {
	gcry_md_hd_t handle;
};

/*
 * libgcrypt must be asked for its version once before it is used. This is no
 * cryptography, so it may run where only approved kinds of that may.
 */
static void begin(void)
{
	if (gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
		return;
#if GCRYPT_VERSION_NUMBER >= 0x010a00
	gcry_control(GCRYCTL_NO_FIPS_MODE, 0);
#endif
	gcry_check_version(NULL);
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

struct crc *crc_create(struct ddp_error *error)
{
	struct crc *crc = malloc(sizeof(*crc));
	gcry_error_t cause = 0;

	begin();
	if (crc)
		cause = gcry_md_open(&crc->handle, GCRY_MD_CRC32, 0);
	if (crc && !cause)
		return crc;
	ddp_error_set(error, DDP_ERROR_SYSTEM, "no checksum for checkpoints: "
		      "%s; see whether libgcrypt has CRC32 here",
		      crc ? gcry_strerror(cause) : "no memory");
	free(crc);
	return NULL;
}

void crc_reset(struct crc *crc)
{
	gcry_md_reset(crc->handle);
}

void crc_add(struct crc *crc, const void *bytes, size_t count)
{
	gcry_md_write(crc->handle, bytes, count);
}

uint32_t crc_read(struct crc *crc)
{
	const unsigned char *sum = gcry_md_read(crc->handle, GCRY_MD_CRC32);
	uint32_t value = (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 |
			 (uint32_t)sum[2] << 8 | sum[3];

	crc_reset(crc);
	return value;
}

void crc_destroy(struct crc *crc)
{
	if (crc)
		gcry_md_close(crc->handle);
	free(crc);
}
