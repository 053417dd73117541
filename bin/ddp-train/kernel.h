/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_TRAIN_KERNEL_H
#define DDP_TRAIN_KERNEL_H

/*
 * Kernels are compiled for several levels of the machine's instructions; the
 * program chooses the best one when it starts. This is for static functions
 * only, and each needs a name that no other kernel of the program has, as the
 * functions that choose are not static with clang. Not with sanitizers, which
 * have not started when the choice is made.
 */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define KERNEL
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	!defined(__x86_64__) || !defined(__gnu_linux__)
#undef KERNEL
#define KERNEL
#endif
#ifndef KERNEL
#define KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

#endif
