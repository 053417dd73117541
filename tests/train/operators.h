/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the operators share. A case runs twice: first it is
 * checked; then its tensors lie elsewhere, and the results must have the same
 * bits. Around each tensor lie guards: NaN to whoever reads them, and a write
 * to them is found.
 *
 * The tolerances are of the relative L2 distance of a tensor. fp32 rounds by
 * up to 2^-24 = 6e-8, and a sum of n terms errs by about sqrt(n) of that if it
 * is formed one by one: 1e-6 at the 300 terms that are most here. In the
 * backward pass two or three such sums follow each other. A central difference
 * of fp64 errs by about 1e-9: rounding gives 1e-16 * 1e2 / 1e-5, the step's
 * square 1e-10. The errors to be found are larger: a GELU by erf moves y by
 * 1e-4.
 *
 * In 16 bit the references have the rounded inputs, and an operator may err by
 * twice what PyTorch's of bf16 does, in fp16 by an eighth of that.
 */
#ifndef DDP_TEST_OPERATORS_H
#define DDP_TEST_OPERATORS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp_error.h"
#include "device.h"

#define FORWARD 2e-6
#define BACKWARD 5e-6

enum { ARENA = 64 << 20 };

struct tensor {
	size_t count;
	double *value;		/* what was written there or read; or 0 */
	void *at;		/* on the device */
	enum device_type type;
};

/*
 * The relative L2 distance, in 2^-8, of PyTorch's operators of bf16 from their
 * own in fp64: no more than the least of output and gradients, and of PyTorch
 * 1.13 and 2.x. operators.py measures them. Rounding alone errs by 0.42.
 */
#define TORCH_LINEAR 0.41
#define TORCH_GELU 0.61
#define TORCH_NORM 0.42
#define TORCH_ATTENTION 0.9
#define TORCH_CLASSIFIER 0.6
#define TORCH_EMBED 0.29

typedef double objective(const void *operands);

extern struct device device;

/* Each tensor is an allocation of its own, without guards. */
extern bool apart;

/* The largest relative L2 distance in 16 bit, in 2^-8 for bf16. */
extern double rounding;

/* The device's type as a suffix of a case's name: none for fp32. */
const char *type_name(void);

/* The largest relative distances that passed in fp32: forward and backward. */
extern double worst[2];

/* One line of TAP. */
void result(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What is wrong with the case that runs. */
void fail(const char *what, const char *why, double number);

/* Print the plan; returns the exit code. */
int finish(void);

/* With arenas of ARENA bytes each; ends the program where it does not open. */
void open_device(enum device_type type);

/* Begin with the first random number again. */
void restart_random(void);

/* Uniform below 1. */
double uniform(void);

/* Nearly normal: mean 0, deviation 1. */
double normal(void);

/* Zeros that last as long as the case. */
double *host_doubles(size_t count);

/* Within or between the host and the device; waits for it. */
void copy(void *to, const void *from, size_t bytes);

/* bytes of the device's memory, all 0xff or 0x7f, between guards. */
void *place(size_t bytes);

/* Room for what an operator needs itself, in the device's type. */
void *place_work(const struct device_shape *shape);

/* A copy on the device, between guards. */
void *put(const void *from, size_t bytes);

/* The device's bytes; they count among the results of the case. */
void read_back(void *to, const void *at, size_t bytes);

/*
 * Of the device's type, and NaN everywhere on the device, or the largest
 * numbers where a case runs again; the values on the host are 0.
 */
struct tensor blank(size_t count);

/* A table with room behind it, which is 0: see struct op_classifier. */
struct tensor blank_table(int vocab, int width);

/* The same of fp32. */
struct tensor blank_floats(size_t count);

/* The values are rounded to the tensor's type. */
void store(const struct tensor *tensor);

/* Read the values from the device. */
void fetch(const struct tensor *tensor);

/* Normal random numbers, on the device too. */
struct tensor draw(size_t count, double mean, double deviation);
struct tensor draw_table(int vocab, int width, double mean, double deviation);
struct tensor draw_floats(size_t count, double mean, double deviation);

/* The device's bytes of this many values of its type. */
size_t count_bytes(size_t count);

/* At most MOST_TOKENS; the next call overwrites them. */
const int32_t *draw_tokens(int count, int vocab, const int32_t **at);

/* A copy of the values. */
double *twin(const struct tensor *tensor);

/* The tolerance of fp32, or what it is in a tensor's type if that is more. */
double widen_tolerance(double tolerance, const struct tensor *tensor);

/* Compare a relative distance with its tolerance; *most keeps the largest. */
void judge(const char *what, double square, double norm,
	   double tolerance, double *most);

/* The tensor on the device against what it should be. */
void compare(const char *what, const struct tensor *had,
	     const double *wanted, double tolerance);

/*
 * What dx on the device now has more than its values, against differences of
 * f: along each axis, or where the axes are too many for the work of an f,
 * along random diagonals, in which an error of any element shows.
 */
void gradient(const char *what, objective *f, const void *operands,
	      double work, const struct tensor *x,
	      const struct tensor *dx);

/* Run a case twice. */
void test_case(const char *name, void (*body)(const void *),
	       const void *arguments);

/* Each in a file of its own. */
void test_embed(void);
void test_norm(void);
void test_matmul(void);
void test_attention(void);
void test_classifier(void);
void test_updates(void);
void test_rounding(void);
void test_step(void);
void test_casts(void);
void test_special(void);
void test_fold(void);

#endif
