/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the kernel says: of processes (proc(5)), cgroups(7), in messages. */
#include "proc/kernel.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

/* ---- processes */

/* Fields of /proc/PID/stat: state, num_threads, startstack, exit_code */
enum { STATE_FIELD = 3, THREADS_FIELD = 20, STACK_FIELD = 28,
       STATUS_FIELD = 52 };

enum { LOOK_NS = 300000 };	/* at a time: a thread that waits runs for less */

/* A field by its number in proc(5), after the second; NULL: it is not there. */
static const char *find_field(const char *text, int number)
{
	/* The program's name before it can have parentheses, too. */
	const char *rest = strrchr(text, ')');

	for (; rest && number > 2; number--)
		rest = strchr(rest + 1, ' ');
	return rest ? rest + 1 : NULL;
}

int ddp_kernel_read_process(const char *text,
			    struct ddp_kernel_process *process)
{
	const char *state = find_field(text, STATE_FIELD);
	const char *threads = find_field(text, THREADS_FIELD);
	const char *status = find_field(text, STATUS_FIELD);
	uint64_t own = 0, in_kernel = 0, of_children = 0, theirs_in_kernel = 0;
	int parent, session;

	if (!state || sscanf(state, "%c %d %*d %d %*d %*d %*u %*u %*u %*u %*u "
			     "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			     &process->state, &parent, &session, &own,
			     &in_kernel, &of_children, &theirs_in_kernel) < 3)
		return -1;
	process->parent = parent;
	process->session = session;
	process->threads = threads ? atoi(threads) : 0;
	process->status = status ? atoi(status) : 0;
	process->cpu = own + in_kernel + of_children + theirs_in_kernel;
	return 0;
}

void ddp_kernel_read_place(const char *wchan, const char *syscall,
			   char place[DDP_KERNEL_PLACE_SIZE])
{
	size_t length = wchan ? strcspn(wchan, "\n") : 0;
	long number;
	char *end;

	place[0] = '\0';
	if (length > 0 && !(length == 1 && wchan[0] == '0')) {
		snprintf(place, DDP_KERNEL_PLACE_SIZE, "%.*s", (int)length,
			 wchan);
		ddp_text_quote(place);
		return;
	}
	number = syscall ? strtol(syscall, &end, 10) : -1;
	if (number >= 0 && end != syscall)
		snprintf(place, DDP_KERNEL_PLACE_SIZE, "system call %ld",
			 number);
}

uint32_t ddp_kernel_read_depth(const char *stat, const char *syscall)
{
	const char *field = stat ? find_field(stat, STACK_FIELD) : NULL;
	uint64_t begin = field ? strtoull(field, NULL, 10) : 0, now = 0;

	/* The call's number and six arguments, then the stack's pointer */
	if (syscall)
		sscanf(syscall, "%*d %*x %*x %*x %*x %*x %*x %" SCNx64, &now);
	return now == 0 || begin < now || begin - now > UINT32_MAX ? 0 :
		(uint32_t)(begin - now);
}

bool ddp_kernel_polls(const char *maps)
{
	static const char *const names[] = {
		"/libmpi", "/libcuda.so", "/libhsa-runtime64.so",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(maps, names[i]))
			return true;
	return false;
}

/* The line after this one; NULL: it is the last. */
static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line ? line + 1 : NULL;
}

/* The number in the line that begins with key and this byte; 0: there is none. */
static uint64_t find_number(const char *text, const char *key, char behind)
{
	size_t length = strlen(key);

	for (; text; text = next_line(text))
		if (strncmp(text, key, length) == 0 && text[length] == behind)
			return strtoull(text + length + 1, NULL, 10);
	return 0;
}

uint64_t ddp_kernel_read_io(const char *text, const char *name)
{
	return find_number(text, name, ':');
}

void ddp_kernel_add_thread(struct ddp_kernel_threads *threads, pid_t id,
			   const char *text)
{
	struct ddp_kernel_thread thread = { .id = id }, *data = threads->data;

	if (!text ||
	    sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64,
		   &thread.share.ran_ns, &thread.share.waited_ns,
		   &thread.share.times) != 3)
		return;
	if (threads->count == threads->size) {
		threads->size = threads->size ? 2 * threads->size : 64;
		data = realloc(data, threads->size * sizeof(*data));
		if (!data) {
			threads->size = threads->count;
			return;
		}
		threads->data = data;
	}
	data[threads->count++] = thread;
}

/* Look for a thread from where the one before it was found. */
static const struct ddp_kernel_thread *
find_thread(const struct ddp_kernel_threads *threads, pid_t id, size_t *next)
{
	size_t i, at;

	for (i = 0; i < threads->count; i++) {
		at = (*next + i) % threads->count;
		if (threads->data[at].id == id) {
			*next = at + 1;
			return &threads->data[at];
		}
	}
	return NULL;
}

/* One that was not there before, or not as this one, has begun since. */
static struct ddp_kernel_share subtract(const struct ddp_kernel_thread *now,
					const struct ddp_kernel_thread *before)
{
	const struct ddp_kernel_share *old = before ? &before->share : NULL;
	struct ddp_kernel_share share = now->share;

	if (!old || share.ran_ns < old->ran_ns ||
	    share.waited_ns < old->waited_ns || share.times < old->times)
		return share;
	share.ran_ns -= old->ran_ns;
	share.waited_ns -= old->waited_ns;
	share.times -= old->times;
	return share;
}

struct ddp_kernel_share
ddp_kernel_find_share(const struct ddp_kernel_threads *before,
		      const struct ddp_kernel_threads *now)
{
	struct ddp_kernel_share sum = { 0 }, share;
	size_t i, next = 0;

	for (i = 0; before->count > 0 && i < now->count; i++) {
		share = subtract(&now->data[i],
				 find_thread(before, now->data[i].id, &next));
		if (share.ran_ns < LOOK_NS * share.times)
			continue;
		sum.ran_ns += share.ran_ns;
		sum.waited_ns += share.waited_ns;
	}
	return sum;
}

/* "Memory cgroup out of memory: Killed process 123 (python) ..." */
static void read_killed(const char *text, struct ddp_kernel_record *record)
{
	static const char *const words[] = {
		"Killed process ", "Kill process ",	/* before Linux 4.20 */
	};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		at = strstr(text, words[i]);
		if (!at)
			continue;
		record->what = DDP_KERNEL_KILLED;
		record->pid = (uint32_t)strtoul(at + strlen(words[i]), NULL,
						10);
		return;
	}
}

/* The words of an Xid are behind pid= and name=, which old drivers lack. */
static void copy_words(const char *text, struct ddp_kernel_record *record)
{
	static const char *const names[] = { "pid=", "name=", "channel " };
	const char *comma;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		text += strspn(text, ", ");
		comma = strchr(text, ',');
		if (comma && strncmp(text, names[i], strlen(names[i])) == 0)
			text = comma;
	}
	text += strspn(text, ", ");
	snprintf(record->words, sizeof(record->words), "%.*s",
		 (int)strcspn(text, "\n"), text);
	ddp_text_quote(record->words);
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=123, name=python, words" */
static void read_xid(const char *text, struct ddp_kernel_record *record)
{
	const char *pid;
	int length = 0;

	if (sscanf(text, "NVRM: Xid (PCI:%31[0-9a-fA-F:.]): %u%n", record->bus,
		   &record->xid, &length) != 2)
		return;
	record->what = DDP_KERNEL_XID;
	pid = strstr(text, "pid=");
	if (pid)
		record->pid = (uint32_t)strtoul(pid + 4, NULL, 10);
	copy_words(text + length, record);
}

void ddp_kernel_read_record(const char *text, struct ddp_kernel_record *record)
{
	const char *message = strchr(text, ';');

	*record = (struct ddp_kernel_record){ 0 };
	if (!message)
		return;
	message++;
	if (strstr(message, "ut of memory"))
		read_killed(message, record);
	else
		read_xid(message, record);
}

/* ---- cgroups */

/* Returns true if a list of length bytes, commas between, has the word. */
static bool has_word(const char *list, size_t length, const char *word)
{
	size_t size = strlen(word), step;

	for (;; list += step + 1, length -= step + 1) {
		const char *comma = memchr(list, ',', length);

		step = comma ? (size_t)(comma - list) : length;
		if (step == size && memcmp(list, word, size) == 0)
			return true;
		if (step == length)
			return false;
	}
}

/* The path in the line of this controller, up to its end; NULL. */
static const char *find_line(const char *text, const char *controller)
{
	const char *list, *path;

	for (; text; text = next_line(text)) {
		list = strchr(text, ':');
		path = list ? strchr(++list, ':') : NULL;
		if (path && has_word(list, (size_t)(path - list), controller))
			return path + 1;
	}
	return NULL;
}

static int copy(const char *from, size_t length, char to[DDP_CGROUP_SIZE])
{
	if (length >= DDP_CGROUP_SIZE)
		return -1;
	memcpy(to, from, length);
	to[length] = '\0';
	return 0;
}

int ddp_cgroup_find(const char *text, const char *controller,
		    char path[DDP_CGROUP_SIZE])
{
	const char *at = find_line(text, controller);

	return at ? copy(at, strcspn(at, "\n"), path) : -1;
}

int ddp_cgroup_find_step(const char *text, const char *controller,
			 char path[DDP_CGROUP_SIZE])
{
	static const char name[] = "/step_";
	char *step;

	if (ddp_cgroup_find(text, controller, path) < 0)
		return -1;
	step = strstr(path, name);
	if (!step)
		return -1;
	step += sizeof(name) - 1;
	step[strcspn(step, "/")] = '\0';
	return 0;
}

/* A line of mountinfo: what of it is used here. */
struct mount {
	char root[DDP_CGROUP_SIZE], point[DDP_CGROUP_SIZE];
	char type[32], options[256];
};

static bool read_mount(const char *line, struct mount *mount)
{
	const char *rest = strstr(line, " - ");

	return rest && rest < line + strcspn(line, "\n") &&
	       sscanf(line, "%*s %*s %*s %1023s %1023s", mount->root,
		      mount->point) == 2 &&
	       sscanf(rest, " - %31s %*s %255s", mount->type,
		      mount->options) == 2 &&
	       !strchr(mount->point, '\\') && !strchr(mount->root, '\\');
}

/* The part of path below the root of the mount; NULL if it is elsewhere. */
static const char *strip(const char *path, const char *root)
{
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, length) != 0 ||
	    (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return path + length;
}

static int use_mount(const struct mount *mount, const char *controller,
		     const char *path, char folder[DDP_CGROUP_SIZE])
{
	const char *below = strip(path, mount->root);
	int length;

	if (!below || (*controller ? strcmp(mount->type, "cgroup") != 0 ||
		       !has_word(mount->options, strlen(mount->options),
				 controller) :
		       strcmp(mount->type, "cgroup2") != 0))
		return -1;
	length = snprintf(folder, DDP_CGROUP_SIZE, "%s%s", mount->point, below);
	return length < DDP_CGROUP_SIZE ? 0 : -1;
}

int ddp_cgroup_find_folder(const char *mounts, const char *controller,
			   const char *path, char folder[DDP_CGROUP_SIZE])
{
	struct mount mount;

	for (; mounts; mounts = next_line(mounts))
		if (read_mount(mounts, &mount) &&
		    use_mount(&mount, controller, path, folder) == 0)
			return 0;
	return -1;
}

unsigned long ddp_cgroup_count(const char *text, const char *key)
{
	return (unsigned long)find_number(text, key, ' ');
}
