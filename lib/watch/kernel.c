/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc/PID/stat (proc(5)) and the kernel's messages. */
#include "watch/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/text.h"

enum { STATUS_FIELD = 52 };	/* exit_code; the state is field 3 */

int ddp_kernel_read_process(const char *text,
			    struct ddp_kernel_process *process)
{
	/* The program's name before it can have parentheses, too. */
	const char *rest = strrchr(text, ')');
	int parent, session, i;

	if (!rest || sscanf(rest, ") %c %d %*d %d", &process->state, &parent,
			    &session) != 3)
		return -1;
	process->parent = parent;
	process->session = session;
	for (i = 2; rest && i < STATUS_FIELD; i++)
		rest = strchr(rest + 1, ' ');
	process->status = rest ? atoi(rest + 1) : 0;
	return 0;
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
