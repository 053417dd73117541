/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what is read of /proc and /dev/kmsg, which have names that users give
 * to programs and mounts. The input is a line with a path, then a text that is
 * taken for each of the files.
 */
#include "fuzz.h"
#include "proc/kernel.h"
#include "proc/stack_text.h"

static void check_path(const char *path)
{
	CHECK(memchr(path, '\0', DDP_CGROUP_SIZE) != NULL);
	CHECK(strchr(path, '\n') == NULL);
}

static void check_cgroup(const char *path, const char *text,
			 const char *controller)
{
	char found[DDP_CGROUP_SIZE], step[DDP_CGROUP_SIZE];

	if (ddp_cgroup_find(text, controller, found) == 0)
		check_path(found);
	if (ddp_cgroup_find_step(text, controller, step) == 0) {
		check_path(step);
		CHECK(strncmp(found, step, strlen(step)) == 0);
		CHECK(strstr(step, "/step_") != NULL);
	}
	if (ddp_cgroup_find_folder(text, controller, path, found) == 0)
		check_path(found);
	ddp_cgroup_count(text, "oom_kill");
}

static void check_stack(const char *text)
{
	char stack[DDP_WIRE_TAIL_SIZE], name[DDP_STACK_NAME_SIZE];

	memset(stack, 0xa5, sizeof(stack));
	ddp_stack_read(text, stack);
	CHECK(memchr(stack, '\0', sizeof(stack)) != NULL);
	ddp_stack_find(stack, name);
	CHECK(memchr(name, '\0', sizeof(name)) != NULL);
}

static void check_kernel(const char *text)
{
	struct ddp_kernel_process process;
	struct ddp_kernel_record record;

	char place[DDP_KERNEL_PLACE_SIZE];

	ddp_kernel_read_process(text, &process);
	ddp_kernel_read_depth(text, text);
	ddp_kernel_read_io(text, "read_bytes");
	ddp_kernel_read_place(text, text, place);
	CHECK(memchr(place, '\0', sizeof(place)) != NULL);
	ddp_kernel_read_place(NULL, text, place);
	CHECK(memchr(place, '\0', sizeof(place)) != NULL);
	check_stack(text);
	memset(&record, 0xa5, sizeof(record));
	ddp_kernel_read_record(text, &record);
	CHECK(memchr(record.bus, '\0', sizeof(record.bus)) != NULL);
	CHECK(memchr(record.words, '\0', sizeof(record.words)) != NULL);
	if (record.words[0] != '\0') {
		CHECK(record.what == DDP_KERNEL_XID);
		fuzz_check_line(record.words);
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	const char *path = fuzz_next_line(&rest);

	check_cgroup(path, rest, "");
	check_cgroup(path, rest, "memory");
	check_kernel(rest);
	free(text);
	return 0;
}
