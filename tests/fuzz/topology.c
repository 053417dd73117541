/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes topology files, as lib/topo reads them through hwloc. The input is
 * the file. hwloc is not ours and may crash: lib/topo tries each file in a
 * child process first, and what is checked here is that such a file is refused
 * and that all others make a machine that placement can rely on.
 */
#define _GNU_SOURCE
#include <hwloc.h>
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fuzz.h"
#include "topo/topo.h"

enum { VALUE_MAX = 64 };

/* Of libFuzzer: change data in place; returns the new size. */
size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size,
			       size_t max_size, unsigned int seed);

static unsigned long read_files, refused_files, crashing_files;

/*
 * What lib/topo calls here in place of setrlimit: the sanitizer's own memory,
 * which is terabytes of addresses, counts as data, so the child's bound on data
 * is that much higher.
 */
int fuzz_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int fuzz_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	unsigned long pages = 0;
	struct rlimit more = *limit;
	FILE *file = NULL;

	if (resource == RLIMIT_DATA)
		file = fopen("/proc/self/statm", "re");
	if (file) {
		CHECK(fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1);
		fclose(file);
	}
	more.rlim_cur += pages * (rlim_t)sysconf(_SC_PAGESIZE);
	more.rlim_max += pages * (rlim_t)sysconf(_SC_PAGESIZE);
	return prlimit(0, resource, &more, NULL);
}

/* Of the leak sanitizer: hwloc leaks some of what it has read. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:hwloc\nleak:libxml2\n";
}

/* A crash in the child of a trial is its end, and not a find of libFuzzer. */
static void forget_fuzzer(void)
{
	static const int numbers[] = {
		SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE
	};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		signal(numbers[i], SIG_DFL);
	__sanitizer_set_death_callback(NULL);
}

static void print_counts(void)
{
	fprintf(stderr, "topologies: %lu read, %lu refused, %lu of them "
		"because hwloc crashed\n", read_files, refused_files,
		crashing_files);
}

/*
 * A topology that stays keeps hwloc's plugins loaded. So each input need not
 * load them, and the leak sanitizer can tell which memory is theirs.
 */
static void begin(void)
{
	static hwloc_topology_t topology;

	CHECK(hwloc_topology_init(&topology) == 0);
	pthread_atfork(NULL, NULL, forget_fuzzer);
	atexit(print_counts);
}

static void check_gpus(const struct ddp_machine *machine,
		       const struct ddp_cpuset *all)
{
	const struct ddp_gpu *gpu;
	struct ddp_cpuset rest;
	uint32_t i;

	CHECK(machine->gpu_count <= DDP_GPU_MAX);
	for (i = 0; i < machine->gpu_count; i++) {
		gpu = &machine->gpus[i];
		fuzz_check_line(gpu->bus_id);
		CHECK(ddp_machine_find_gpu(machine, gpu->bus_id) == gpu);
		CHECK(!ddp_cpuset_empty(&gpu->cpus));
		ddp_cpuset_andnot(&rest, &gpu->cpus, all);
		CHECK(ddp_cpuset_empty(&rest));
		if (gpu->model[0] != '\0')
			fuzz_check_line(gpu->model);
		if (gpu->uuid[0] != '\0')
			fuzz_check_line(gpu->uuid);
		if (gpu->interface[0] != '\0')
			fuzz_check_line(gpu->interface);
	}
	for (i = 0; i < machine->part_count; i++)
		CHECK(machine->parts[i].gpu < machine->gpu_count);
}

static void check_machine(const struct ddp_machine *machine)
{
	struct ddp_cpuset all, some;
	uint32_t i;

	CHECK(machine->cpu_count >= 1 && machine->cpu_count <= DDP_CPU_MAX);
	for (i = 0; i < machine->cpu_count; i++)
		CHECK(machine->cpus[i].cpu < DDP_CPU_MAX &&
		      machine->cpus[i].numa < DDP_CPU_MAX &&
		      machine->cpus[i].package < DDP_CPU_MAX);
	ddp_machine_cpus(machine, &all);
	CHECK(ddp_cpuset_count(&all) == machine->cpu_count);
	ddp_machine_packages(machine, &all, &some);
	CHECK(ddp_cpuset_equal(&all, &some));
	ddp_machine_numas(machine, &all, &some);
	CHECK(!ddp_cpuset_empty(&some));
	check_gpus(machine, &all);
}

static void check_topo(const struct ddp_topo *topo)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = ddp_topo_machine(topo, &error);

	if (machine)
		check_machine(machine);
	else
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
	ddp_machine_destroy(machine);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct ddp_error error = { 0 };
	static int fd = -1;
	struct ddp_topo *topo;
	char path[32];

	if (fd < 0) {
		fd = memfd_create("topology", MFD_CLOEXEC);
		begin();
	}
	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	topo = ddp_topo_create(path, &error);
	if (topo) {
		read_files++;
		check_topo(topo);
	} else {
		refused_files++;
		fuzz_check_error(&error, DDP_ERROR_ARGUMENT);
		if (strstr(error.text, "does not survive"))
			crashing_files++;
	}
	ddp_topo_destroy(topo);
	return 0;
}

/* The n-th byte c of data, or NULL; n counts around. */
static unsigned char *find_byte(unsigned char *data, size_t size, int c,
				unsigned int n)
{
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < size; i++)
		count += data[i] == c;
	if (count == 0)
		return NULL;
	for (n %= count; n > 0 || *data != c; data++)
		n -= *data == c;
	return data;
}

/* Another value of an attribute; half of them are numbers that stand out. */
static size_t mutate_value(unsigned char *value, size_t length,
			   unsigned int seed)
{
	static const char *const numbers[] = {
		"0", "1", "2", "8191", "8192", "60000", "65536", "4294967295",
		"-1", "0x0", "0x3", "0xf...f",
	};
	const char *number;

	if (seed % 2 == 0)
		return LLVMFuzzerMutate(value, length, VALUE_MAX);
	number = numbers[seed / 2 % (sizeof(numbers) / sizeof(numbers[0]))];
	memcpy(value, number, strlen(number));
	return strlen(number);
}

/*
 * Most inputs stay XML: only the value of one attribute is changed. The
 * others are changed anywhere.
 */
size_t LLVMFuzzerCustomMutator(unsigned char *data, size_t size,
			       size_t max_size, unsigned int seed)
{
	unsigned char value[VALUE_MAX], *from, *to;
	size_t length, rest;

	from = find_byte(data, size, '"', seed / 256);
	to = from ? memchr(from + 1, '"', (size_t)(data + size - from - 1)) :
		NULL;
	if (seed % 8 == 0 || !to || to - from > VALUE_MAX)
		return LLVMFuzzerMutate(data, size, max_size);
	length = (size_t)(to - from - 1);
	rest = (size_t)(data + size - to);
	memcpy(value, from + 1, length);
	length = mutate_value(value, length, seed / 8);
	if ((size_t)(from - data) + 1 + length + rest > max_size)
		return size;
	memmove(from + 1 + length, to, rest);
	memcpy(from + 1, value, length);
	return (size_t)(from - data) + 1 + length + rest;
}
