/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link to the supervisor: connect, prove, and do what it says. Where it
 * cannot be reached the tasks run all the same, and a sentence says so.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/state.h"
#include "options/plugin.h"
#include "slurm/scontrol.h"
#include "util/file.h"

enum {
	PATIENCE_MS = 10000,
	AGAIN_MS = 500,		/* from one attempt, or question, to the next */
	ANSWER_MS = 8000,	/* slurmctld's, when the supervisor is lost */
	LOOK_MS = 50
};

static const char no_address[] = "srun tells no such address";
static const char other_version[] = "its slurm-ddp is of another version than "
	"this node's";

static int find_address(struct ddp_talk *talk)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found;

	if (getaddrinfo(talk->host, talk->port, &hints, &found) != 0)
		return -1;
	memcpy(&talk->address, found->ai_addr, found->ai_addrlen);
	talk->address_size = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Returns why it cannot be talked to; NULL: its address is found. */
static const char *find_supervisor(struct ddp_talk *talk, const char *told)
{
	static const char version[] = ":" DDP_WIRE_VERSION ":";
	const char *at = strchr(told, ':');

	if (!at || find_address(talk) < 0)
		return no_address;
	if (strncmp(at, version, strlen(version)) != 0)
		return other_version;
	return ddp_proof_parse(at + strlen(version), &talk->secret) < 0 ?
		no_address : NULL;
}

void ddp_talk_find(struct ddp_talk *talk, const struct ddp_agent_step *step)
{
	const char *told = step->supervisor, *host = step->srun_host;
	const char *flaw;

	if (!told)
		return;
	snprintf(talk->host, sizeof(talk->host), "%s", host ? host : "");
	snprintf(talk->port, sizeof(talk->port), "%.*s",
		 (int)strcspn(told, ":"), told);
	talk->why = "it has not answered";
	talk->state = DDP_TALK_DIALING;
	flaw = find_supervisor(talk, told);
	if (flaw) {
		talk->why = flaw;
		talk->until_ms = -1;
	}
}

void ddp_talk_begin(struct ddp_agent *agent)
{
	if (agent->talk.until_ms == 0)
		agent->talk.until_ms = ddp_clock_ms() + PATIENCE_MS;
}

/* ---- the supervisor has ended while tasks run
 *
 * Then they are killed, but not where Slurm ends a batch job: it kills the script
 * with all that this has started, and so srun, at once, and leaves the tasks the time
 * of KillWait after SIGTERM. In the step both look alike, so a helper process asks
 * slurmctld.
 */

/*
 * Returns true if Slurm ends this batch job. Its state tells, and its flag, which
 * is 0 for other jobs and counts how often a batch job began.
 */
static bool is_ended(const char *job)
{
	static const char *const lives[] = {
		"RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "CONFIGURING",
		"SIGNALING",
	};
	char state[32];
	int flag;
	size_t i;

	if (sscanf(job, "%31s %d", state, &flag) != 2)
		return false;
	for (i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(state, lives[i]) == 0)
			return false;
	return flag != 0;
}

/* The helper. Slurm's SIGTERM for the step must not end squeue. */
__attribute__((noreturn)) static void ask(const struct ddp_agent *agent)
{
	char id[16], *job;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_IGN);
	dup2(DDP_AGENT_NULL, STDIN_FILENO);
	dup2(DDP_AGENT_NULL, STDERR_FILENO);
	ddp_close_from(STDERR_FILENO + 1);
	snprintf(id, sizeof(id), "%u", agent->node->job_id);
	if (agent->path)
		setenv("PATH", agent->path, 1);
	while (!(job = ddp_squeue_show(id, "-O",
				       "JobID:20,State:20,BatchFlag:20")))
		usleep(1000 * AGAIN_MS);
	_exit(is_ended(job) ? 0 : 1);
}

static void begin_to_ask(struct ddp_agent *agent)
{
	struct ddp_talk *talk = &agent->talk;

	talk->until_ms = ddp_clock_ms() + ANSWER_MS;
	talk->helper = fork();
	if (talk->helper == 0)
		ask(agent);
	if (talk->helper > 0) {
		/* Whoever is first. */
		setpgid(talk->helper, talk->helper);
		return;
	}
	talk->helper = 0;
	ddp_agent_kill(agent);
}

static void wait_for_answer(struct ddp_agent *agent)
{
	struct ddp_talk *talk = &agent->talk;
	bool late = ddp_clock_ms() >= talk->until_ms;
	int status;

	if (late)
		kill(-talk->helper, SIGKILL);
	if (waitpid(talk->helper, &status, late ? 0 : WNOHANG) == 0)
		return;
	talk->helper = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ddp_agent_kill(agent);
}

/* ---- the connection */

static void dial(struct ddp_talk *talk)
{
	int fd = socket(talk->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC |
			SOCK_NONBLOCK, 0);

	talk->greeted = false;
	talk->again_ms = ddp_clock_ms() + AGAIN_MS;
	if (fd < 0)
		return;
	if (connect(fd, (struct sockaddr *)&talk->address,
		    talk->address_size) == 0 || errno == EINPROGRESS) {
		talk->link = ddp_link_create(fd);
		return;
	}
	talk->why = strerror(errno);
	close(fd);
}

/* Give the connection up. Returns whether tasks were watched over it. */
static bool part(struct ddp_agent *agent, const char *why)
{
	struct ddp_talk *talk = &agent->talk;
	bool was_on = talk->state == DDP_TALK_ON;

	ddp_link_destroy(talk->link);
	talk->link = NULL;
	talk->why = why;
	if (was_on)
		talk->state = DDP_TALK_LOST;
	return was_on && !agent->done;
}

static void drop(struct ddp_agent *agent, const char *why)
{
	if (part(agent, why))
		ddp_agent_kill(agent);
}

/* It is broken, by this error; 0: the other side has closed it. */
static void lose(struct ddp_agent *agent, int error)
{
	bool closed = error == 0 || error == ECONNRESET || error == EPIPE;
	const char *why = error ? strerror(error) :
			  "it has closed the connection";

	if (!closed)
		drop(agent, why);
	else if (part(agent, why))
		begin_to_ask(agent);
}

static void give_up(struct ddp_agent *agent)
{
	struct ddp_talk *talk = &agent->talk;
	const char *fix = talk->why == other_version ?
		"install one version on all nodes and on srun's host" :
		"let the nodes connect to srun's host (SrunPortRange in "
		"slurm.conf says by which ports)";

	drop(agent, talk->why);
	talk->state = DDP_TALK_OFF;
	dprintf(DDP_AGENT_SPEAK, "slurm-ddp: on %s: srun's supervisor at %s "
		"port %s cannot be reached (%s), so it does not watch this "
		"node; %s, or use --ddp-supervise=off\n", agent->host,
		talk->host, talk->port, talk->why, fix);
	ddp_ends_tell(agent);
}

/* Answer the supervisor's challenge, and ask it for the same. */
static void greet(struct ddp_agent *agent, const struct ddp_wire *challenge)
{
	struct ddp_talk *talk = &agent->talk;
	struct ddp_wire hello = {
		.kind = DDP_WIRE_HELLO,
		.job_id = agent->node->job_id,
		.step_id = agent->node->step_id,
		.world_size = agent->world_size,
		.count = agent->count,
	};

	snprintf(hello.node, sizeof(hello.node), "%s", agent->host);
	if (talk->greeted || ddp_proof_random(talk->nonce) < 0 ||
	    ddp_proof_make(&talk->secret, "agent", hello.node,
			   challenge->nonce, hello.proof) < 0) {
		drop(agent, "it cannot be proven that it is the right one");
		return;
	}
	memcpy(hello.nonce, talk->nonce, sizeof(hello.nonce));
	talk->greeted = true;
	if (ddp_link_send(talk->link, &hello) < 0)
		lose(agent, errno);
}

static void welcome(struct ddp_agent *agent, const struct ddp_wire *wire)
{
	struct ddp_talk *talk = &agent->talk;
	struct ddp_wire rank = { .kind = DDP_WIRE_RANK };
	uint32_t i;

	if (!talk->greeted ||
	    !ddp_proof_check(&talk->secret, "supervisor", agent->host,
			     talk->nonce, wire->proof)) {
		drop(agent, "it does not know the secret of this step");
		return;
	}
	talk->state = DDP_TALK_ON;
	dup2(DDP_AGENT_NULL, DDP_AGENT_SPEAK);
	for (i = 0; i < agent->count; i++) {
		rank.rank = agent->node->slots[i].rank;
		rank.pid = (uint32_t)agent->node->slots[i].pid;
		snprintf(rank.gpus, sizeof(rank.gpus), "%s",
			 agent->node->slots[i].gpus);
		snprintf(rank.message, sizeof(rank.message), "%s",
			 agent->node->slots[i].warning);
		ddp_talk_send(agent, &rank);
	}
	ddp_ends_send(agent);
}

static void answer(struct ddp_agent *agent, const struct ddp_wire *ping)
{
	struct ddp_wire pong = {
		.kind = DDP_WIRE_PONG,
		.ping_ns = ping->at_ns,
		.at_ns = (uint64_t)ddp_clock_ns(),
	};

	ddp_talk_send(agent, &pong);
	ddp_cause_forget(agent);
}

/*
 * A rank has failed. That the kernel kills one for memory others can notice before
 * it has ended: so the PING that follows makes no old news of it.
 */
static void tell_errors(struct ddp_agent *agent)
{
	agent->cause.asked = true;
	ddp_ends_errors(agent);
}

static void obey(struct ddp_agent *agent, const struct ddp_wire *wire)
{
	bool on = agent->talk.state == DDP_TALK_ON;

	if (!on && wire->kind == DDP_WIRE_CHALLENGE)
		greet(agent, wire);
	else if (!on && wire->kind == DDP_WIRE_WELCOME)
		welcome(agent, wire);
	else if (on && wire->kind == DDP_WIRE_PING)
		answer(agent, wire);
	else if (on && wire->kind == DDP_WIRE_SIGNAL)
		ddp_agent_signal(agent, (int)wire->status);
	else if (on && wire->kind == DDP_WIRE_KILL)
		ddp_agent_kill(agent);
	else if (on && wire->kind == DDP_WIRE_EXPLAIN)
		ddp_explain_begin(agent);
	else if (on && wire->kind == DDP_WIRE_ERRORS)
		tell_errors(agent);
	else
		drop(agent, "it does not speak as it should");
}

static void receive(struct ddp_agent *agent)
{
	struct ddp_talk *talk = &agent->talk;
	struct ddp_wire wire;
	int rc;

	if (ddp_link_flush(talk->link) < 0) {
		lose(agent, errno);
		return;
	}
	while (talk->link && (rc = ddp_link_receive(talk->link, &wire)) != 0) {
		if (rc > 0)
			obey(agent, &wire);
		else
			lose(agent, errno);
	}
}

short ddp_talk_events(const struct ddp_agent *agent, int *fd)
{
	const struct ddp_link *link = agent->talk.link;

	*fd = link ? ddp_link_fd(link) : -1;
	return link ? ddp_link_events(link) : 0;
}

int64_t ddp_talk_deadline(const struct ddp_agent *agent)
{
	const struct ddp_talk *talk = &agent->talk;

	if (talk->helper)
		return ddp_clock_ms() + LOOK_MS;
	if (talk->state != DDP_TALK_DIALING)
		return DDP_CLOCK_NEVER;
	return talk->link || talk->until_ms < talk->again_ms ?
		talk->until_ms : talk->again_ms;
}

void ddp_talk_serve(struct ddp_agent *agent)
{
	struct ddp_talk *talk = &agent->talk;
	int64_t now = ddp_clock_ms();

	if (talk->state == DDP_TALK_DIALING && now >= talk->until_ms)
		give_up(agent);
	if (talk->state == DDP_TALK_DIALING && !talk->link &&
	    now >= talk->again_ms)
		dial(talk);
	if (talk->link)
		receive(agent);
	if (talk->helper)
		wait_for_answer(agent);
}

void ddp_talk_send(struct ddp_agent *agent, const struct ddp_wire *wire)
{
	if (agent->talk.state == DDP_TALK_ON &&
	    ddp_link_send(agent->talk.link, wire) < 0)
		lose(agent, errno);
}

bool ddp_talk_sent(const struct ddp_agent *agent)
{
	const struct ddp_link *link = agent->talk.link;

	return !link || !(ddp_link_events(link) & POLLOUT);
}

/*
 * What has come and is not read would make the kernel throw away what is still
 * on its way to the supervisor.
 */
void ddp_talk_end(struct ddp_agent *agent)
{
	struct ddp_wire wire;

	while (agent->talk.link &&
	       ddp_link_receive(agent->talk.link, &wire) > 0)
		;
	ddp_link_destroy(agent->talk.link);
	agent->talk.link = NULL;
}
