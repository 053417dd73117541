/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks Slurm which nodes a step has, and where their slurmds listen. */
#define _GNU_SOURCE
#include "supervisor/slurmds.h"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "slurm/scontrol.h"
#include "util/file.h"

/*
 * "SlurmdPort              = 6818": that of all nodes which do not differ. False
 * where it is not told, or where slurmds may not listen by IPv4.
 */
static bool read_port(char port[16])
{
	char *text = ddp_scontrol_show("config", NULL);
	const char *at = ddp_scontrol_find_setting(text, "SlurmdPort");
	int number = at && !strcasestr(text, "EnableIPv6") ? atoi(at) : 0;

	snprintf(port, 16, "%d", number);
	free(text);
	return number > 0 && number <= UINT16_MAX;
}

/* A node whose address is not known here is left out. */
static void print_node(const char *line, const char *usual)
{
	struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
	}, *list;
	char name[256], port[16], host[256];
	int name_length, length;
	const char *at = ddp_scontrol_find_word(line, "Port", &length);

	if (length > 0)
		snprintf(port, sizeof(port), "%.*s", length, at);
	else
		snprintf(port, sizeof(port), "%s", usual);
	at = ddp_scontrol_find_word(line, "NodeAddr", &length);
	snprintf(host, sizeof(host), "%.*s", length, at);
	at = ddp_scontrol_find_word(line, "NodeName", &name_length);
	snprintf(name, sizeof(name), "%.*s", name_length, at);
	if (!*name || !*host || getaddrinfo(host, port, &hints, &list) != 0)
		return;
	if (getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof(host),
			port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		printf("%s %s %s\n", name, host, port);
	freeaddrinfo(list);
}

static void print_nodes(uint32_t job_id, uint32_t step_id, const char *other)
{
	char *text = ddp_scontrol_show_step(job_id, step_id), *line, *save;
	char *list = NULL, port[16];
	bool known;
	int length;
	const char *at = ddp_scontrol_find_word(text, "NodeList", &length);

	if (length > 0 && asprintf(&list, "%.*s%s%s", length, at,
				   other ? "," : "", other ? other : "") < 0)
		list = NULL;
	free(text);
	text = list ? ddp_scontrol_show("node", list) : NULL;
	known = text && read_port(port);
	for (line = known ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		print_node(line, port);
	if (known)
		puts("end");
	fflush(stdout);
}

int ddp_slurmds_ask(uint32_t job_id, uint32_t step_id, const char *other,
		    pid_t *pid)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -1;
	*pid = fork();
	if (*pid == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipes[1], STDOUT_FILENO);
		/* A user has nothing from scontrol's complaints. */
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		/* A connection must not outlive the supervisor. */
		ddp_close_from(STDERR_FILENO + 1);
		print_nodes(job_id, step_id, other);
		_exit(0);
	}
	close(pipes[1]);
	if (*pid < 0) {
		close(pipes[0]);
		return -1;
	}
	/* Whoever is first: from now on the group can be ended. */
	setpgid(*pid, *pid);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	return pipes[0];
}
