/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Problems: each is told once a place in the code, counted, and turns the
 * program's exit code into 99, so that no program can hide one.
 */
#include <execinfo.h>
#include <dlfcn.h>
#include <link.h>
#include <map>
#include <set>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <ucontext.h>
#include <unistd.h>
#include "emu.h"

enum { EXIT_CODE = 99, MOST_LINES = 40 };

bool emu_hooked;
static int problems, lines;
static struct sigaction before[2];	/* of SIGSEGV and SIGBUS */

extern "C" int emu_problems(void) { return problems; }

/* ---- where in the source */

/* Is this line of what kernels are written in, rather than of a kernel? */
static bool is_language(const char *line)
{
	return strstr(line, "cuda_on_cpu.h:") || strstr(line, "functions.h:") ||
		strstr(line, "/gpu.h:") || strstr(line, "/tuple:") ||
		strncmp(line, "gpu.h:", 6) == 0;
}

/* What addr2line says of a place: a name and a line for each inlined function,
 * the innermost first. The first line that is a kernel's is what is wanted. */
static void ask_addr2line(const char *file, size_t offset, char *text,
			  char *function, size_t room)
{
	char command[PATH_MAX + 64], name[512], line[512];
	FILE *pipe;

	snprintf(command, sizeof(command), "addr2line -Cisfe '%s' %zx "
		 "2>/dev/null", file, offset);
	pipe = popen(command, "r");
	if (!pipe)
		return;
	while (fgets(name, sizeof(name), pipe) &&
	       fgets(line, sizeof(line), pipe)) {
		line[strcspn(line, "\n ")] = '\0';
		if (line[0] == '?' || (text[0] && !is_language(text)))
			continue;
		snprintf(text, room, "%s", line);
		snprintf(function, room, "%.*s", (int)strcspn(name, "(\n"),
			 name);
	}
	pclose(pipe);
}

void emu_locate(const void *pc, char *text, char *function, size_t room)
{
	Dl_info info;
	size_t offset;
	char self[PATH_MAX] = "";

	text[0] = function[0] = '\0';
	if (!pc || !dladdr(pc, &info) || !info.dli_fname)
		return;
	offset = (size_t)((const char *)pc - 1 - (char *)info.dli_fbase);
	if (((const ElfW(Ehdr) *)info.dli_fbase)->e_type == ET_EXEC)
		offset = (size_t)pc - 1;
	if (access(info.dli_fname, R_OK) != 0 && readlink("/proc/self/exe",
			self, sizeof(self) - 1) > 0)
		info.dli_fname = self;
	if (!strchr(info.dli_fname, '\''))
		ask_addr2line(info.dli_fname, offset, text, function, room);
	if (!text[0] && info.dli_sname)
		snprintf(text, room, "%s", info.dli_sname);
}

/* Asked for only where there is something to report: it takes milliseconds. */
const char *emu_kernel_name(const void *kernel)
{
	static std::map<const void *, std::string> known;
	std::string &name = known[kernel];
	char line[400], function[400];

	if (!name.empty())
		return name.c_str();
	emu_locate((const char *)kernel + 1, line, function, sizeof(line));
	name = function[0] ? function : line[0] ? line : "a kernel";
	if (name.compare(0, 5, "void ") == 0)	/* of a template */
		name.erase(0, 5);
	return name.c_str();
}

/* ---- reports */

/* Once a place in the code, or where none is known, once a kind of operation */
static bool is_new(const void *pc, const char *format)
{
	static std::set<std::pair<const void *, const void *>> seen;

	return seen.insert({ pc ? pc : emu_op_kind(emu_op), format }).second;
}

static void print_place(void)
{
	if (emu_op == 0) {
		fprintf(stderr, " [the host]\n");
		return;
	}
	fprintf(stderr, " [%s", emu_op_name(emu_op));
	if (emu_self)
		fprintf(stderr, ", block %u, thread %d", emu_block,
			emu_thread);
	fprintf(stderr, "]\n");
}

void emu_report(const void *pc, const char *format, ...)
{
	char line[400], function[400], text[500];
	va_list list;

	problems++;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (!is_new(pc, format) || lines >= MOST_LINES)
		return;
	lines++;
	emu_locate(pc, line, function, sizeof(line));
	fprintf(stderr, "cuda_on_cpu: %s%s%s", text, line[0] ? ", at " : "",
		line);
	print_place();
	if (lines == MOST_LINES)
		fprintf(stderr, "cuda_on_cpu: more are only counted\n");
}

/* ---- faults */

static void print_callers(void)
{
	void *frames[16];
	int count = backtrace(frames, 16);
	char line[400], function[400];

	for (int i = 3, shown = 0; i < count && shown < 4; i++) {
		emu_locate(frames[i], line, function, sizeof(line));
		if (!line[0])
			continue;
		fprintf(stderr, "cuda_on_cpu:   in %s, %s\n", function, line);
		shown++;
	}
}

[[noreturn]] static void end(void)
{
	fprintf(stderr, "cuda_on_cpu: %d problem%s\n", problems,
		problems == 1 ? "" : "s");
	fflush(NULL);
	_exit(EXIT_CODE);
}

static bool is_write(void *context)
{
#if defined(__x86_64__) && defined(REG_ERR)
	return ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
	return context == NULL;
#endif
}

static void fault(int number, siginfo_t *info, void *context)
{
	uintptr_t a = (uintptr_t)info->si_addr;
	const char *verb = is_write(context) ? "writes" : "reads";

	if (emu_self)
		emu_report(NULL, "a fault: a thread %s at %#zx", verb,
			   (size_t)a);
	else if (emu_is_device(a))
		emu_report(NULL, "the host %s the device's memory: %s", verb,
			   emu_describe(a));
	else {
		sigaction(number, &before[number == SIGBUS], NULL);
		return;			/* comes again */
	}
	print_callers();
	end();
}

void emu_watch_faults(void)
{
	static char room[128 << 10];
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_sp = room;
	stack.ss_size = sizeof(room);
	sigaltstack(&stack, NULL);
	action.sa_sigaction = fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigaction(SIGSEGV, &action, &before[0]);
	sigaction(SIGBUS, &action, &before[1]);
}

__attribute__((destructor)) static void at_end(void)
{
	unsigned long rows, conflicts, waits, defaults;

	emu_get_banks(&rows, &conflicts);
	emu_get_waits(&waits, &defaults);
	if (getenv("EMU_BANKS"))
		fprintf(stderr, "cuda_on_cpu: ldmatrix read %lu rows, %lu in "
			"a bank that was busy\n", rows, conflicts);
	if (getenv("EMU_WAITS"))
		fprintf(stderr, "cuda_on_cpu: the host waited for streams %lu "
			"times; allocations: %u; operations in the default "
			"one: %lu\n", waits, emu_count_allocations(), defaults);
	if (problems > 0)
		end();
}
