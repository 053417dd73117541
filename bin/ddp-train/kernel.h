/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DDP_TRAIN_KERNEL_H
#define DDP_TRAIN_KERNEL_H

/*
 * Kernels are compiled for several levels of the machine's instructions, and
 * the best is chosen when the program starts.  For static functions only, each
 * with a name of its own in the program: clang's choosers are not static, and
 * what other files would call has another name.  Not with sanitizers, which
 * are not up yet when the choice is made.
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
