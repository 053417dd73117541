/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin, spank_ddp.so: the only code of slurm-ddp that includes Slurm's
 * headers. Read dispatch.c first: Slurm's hooks, and who answers them.
 * plugin/srun answers in srun, sbatch and salloc, as the user; plugin/stepd
 * answers in slurmstepd and in each task, and stepd/as_root.c is what runs there
 * as root. Neither includes anything of the other: what they share is in
 * plugin/options, the options of --ddp and of plugstack.conf.
 */
#ifndef DDP_PLUGIN_H
#define DDP_PLUGIN_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/notice.h"
#include "place/placement.h"

enum {
	DDP_ENV_MAX = 32,	/* variables of env= */
	DDP_ENV_SIZE = 512,	/* holds each of them and its NUL */
	DDP_SECONDS_MAX = 86400,	/* of a time in an option */
	DDP_RESTART_MAX = 1000,	/* of --ddp-restarts */
	DDP_LOGS_MAX = 2048,	/* bytes of the path in --ddp-logs */
	DDP_MASTER_MAX = 128	/* of master= */
};

/* Ranks in Slurm's order of nodes, or along the switches. */
enum ddp_order { DDP_ORDER_SLURM, DDP_ORDER_NETWORK };

/* The settings that hold: the user's options over the site's; see options.h. */
struct ddp_plugin {
	bool seen;		/* --ddp was given in some form */
	bool on;		/* and is not --ddp=off */
	bool explain, dry_run, torchrun, srun, help;	/* words of --ddp */
	const char *stray;	/* a --ddp-... option that was given; NULL */
	uint16_t port;		/* --ddp-port; 0: not given */
	bool tf;		/* --ddp-env=tf */
	enum ddp_gpus_policy gpus;	/* --ddp-gpus */
	enum ddp_cpus_policy cpus;	/* --ddp-cpus */
	enum ddp_order order;	/* --ddp-order */
	bool unsupervised;	/* --ddp-supervise=off */
	bool check;		/* --ddp-check */
	uint32_t check_s;	/* ddp-bench's --limit for it; 0: its own */
	const char *report;	/* --ddp-report; NULL: not given */
	uint32_t grace_s;	/* --ddp-grace; 0: not given */
	uint32_t watchdog_s;	/* --ddp-watchdog; 0: not given, or off */
	const char *logs;	/* --ddp-logs; NULL: not given */
	const char *show;	/* --ddp-show; NULL: not given */
	struct ddp_notice notice;	/* --ddp-signal; number 0: not given */
	uint32_t restarts;	/* --ddp-restarts; 0: not given */
	uint32_t spares;	/* --ddp-spares; 0: not given */

	/* The site's alone, which options do not replace */
	bool mpi_keep;		/* plugstack: mpi=keep */
	bool cpus_trust;	/* plugstack: cpus=trust */
	uint16_t port_first, port_last;	/* plugstack: port-range=a-b */
	char interface[IF_NAMESIZE];	/* plugstack: interface=; or "" */
	const char *master;	/* plugstack: master=, %n rank 0's node; NULL */
	const char *topology;	/* plugstack: topology=, %n the node; NULL */
	const char *env[DDP_ENV_MAX];	/* plugstack: env=NAME=VALUE; the task
					 * knows what its % words are */
	size_t env_count;
	const char *allow, *deny;	/* plugstack: lists; NULL */
};

/* Holds where neither says anything; layout/port_range.h has the numbers. */
#define DDP_BUILT_IN { .port_first = DDP_PORT_FIRST, .port_last = DDP_PORT_LAST }

extern struct ddp_plugin ddp_plugin;

/*
 * A --ddp option: its name, what srun --help says of it, and how its values are
 * read. Parsed as root in slurmstepd, which opens nothing of what they name.
 */
struct ddp_option {
	const char *name;	/* with its "--" */
	const char *values;	/* as srun --help shows them */
	int has_arg;		/* as getopt_long(3) has it; 2: optional */
	bool watches;		/* it is about the watch over one step alone */
	const char *usage;

	/* Sets what a text says, which is then the caller's, not a copy, or
	 * returns -1 with the reason. "": no value, where has_arg is 2. */
	int (*parse)(const struct ddp_option *option, const char *text,
		     struct ddp_plugin *plugin, struct ddp_error *error);

	/* parse sets this member of struct ddp_plugin. It takes numbers in this
	 * range, perhaps "off" for 0, and says what others are not; or it takes
	 * these words. */
	size_t at, size;
	uint32_t min, max;
	bool can_be_off;
	const char *not_number;
	const char *const *words;
};

enum { DDP_OPTION_COUNT = 16 };

/* The first is --ddp itself. */
extern const struct ddp_option ddp_option_table[DDP_OPTION_COUNT];

/*
 * Set what a value says, by the option's name ("--ddp-gpus"); value NULL sets
 * nothing. Returns 0, or -1 with the reason.
 */
int ddp_value_set(const char *name, const char *value,
		  struct ddp_plugin *plugin, struct ddp_error *error);

/*
 * How Slurm hands an option to what srun runs, and a job to its steps: these,
 * and the option's name with "_" for "-".
 */
#define DDP_HANDED "_SLURM_SPANK_OPTION_ddp_"
#define DDP_INHERITED "SLURM_SPANK_" DDP_HANDED

/*
 * Variables by which srun tells its tasks something. The tasks' programs do not
 * see them. Their names begin with SLURM, so that --export=NONE keeps them.
 */

/* 1 if srun's own standard output is a pipe, whose reader wants no labels. */
#define DDP_TELL_PIPE "SLURM_DDP_PIPE"

/* Names of other variables that the programs must not see, blanks between. */
#define DDP_TELL_HIDDEN "SLURM_DDP_ADDED"

/*
 * 1 if the user gave --cpu-bind. Slurm's own variables for it are the same
 * where nobody did.
 */
#define DDP_TELL_CPU_BIND "SLURM_DDP_CPU_BIND"

/* 1 if the user gave --wait-for-children. */
#define DDP_TELL_CHILDREN "SLURM_DDP_CHILDREN"

/* The places of the step's ranks, as layout/tasks.h has them; "": unknown. */
#define DDP_TELL_MAPPING "SLURM_DDP_MAPPING"

/*
 * The command starts the ranks of its node itself: how many, 0 if its arguments
 * leave that open. Not set: the tasks are the ranks.
 */
#define DDP_TELL_LAUNCHER "SLURM_DDP_LAUNCHER"

/*
 * The PET_ variables that the launcher gets. "none": none, as it is in one of
 * several steps. "no-rank": all but the rank, as its own rendezvous ranks the
 * nodes. Not set: all.
 */
#define DDP_TELL_PET "SLURM_DDP_PET"

/* The launcher's name, if it makes one world only where it finds GPUs. */
#define DDP_TELL_NEEDS_GPU "SLURM_DDP_NEEDS_GPU"

/* The same, if it needs DDP_LAUNCHER_PORT to be free. */
#define DDP_TELL_NEEDS_PORT "SLURM_DDP_NEEDS_PORT"

/*
 * The port at which the supervisor listens, DDP_WIRE_VERSION, and the step's
 * secret: "PORT:VERSION:DIGITS", as wire/proof.h has them. The host is
 * SLURM_SRUN_COMM_HOST. Not set: the step has no supervisor.
 */
#define DDP_TELL_SUPERVISOR "SLURM_DDP_SUPERVISOR"

/*
 * "DONE:MAX": how often the step was started again, and how often it may be.
 * Not set: there are no restarts.
 */
#define DDP_TELL_RESTARTS "SLURM_DDP_RESTARTS"

/*
 * sbatch or salloc with --ddp sets this for srun if the job has --no-kill, or
 * if the user has been told what follows without it.
 */
#define DDP_TELL_NO_KILL "SLURM_DDP_NO_KILL"

/*
 * Set in the step of --ddp-check, whose ddp-bench finds out which node does not
 * resolve the master's name.
 */
#define DDP_TELL_CHECKS "SLURM_DDP_CHECKS"

/*
 * A dry run learns from it whether each task would execute the command's first
 * word: "1" if so, "prolog" if a task prolog may change that, "0" with
 * --multi-prog and in a container. Not set: that is not known.
 */
#define DDP_TELL_COMMAND "SLURM_DDP_COMMAND"

/* The job's partition, where SLURM_JOB_PARTITION is a list of several. */
#define DDP_TELL_PARTITION "SLURM_DDP_PARTITION"

#endif
