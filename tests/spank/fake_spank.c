/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake of Slurm's side of spank.h: the part that plugins may call. Any call
 * can be made to fail. When the environment changes, it moves with all its
 * strings, so that the sanitizers find whoever keeps an old pointer.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

struct fake fake;

static bool fails(void)
{
	return ++fake.calls == fake.fail;
}

spank_context_t spank_context(void)
{
	return fails() ? S_CTX_ERROR : fake.context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	(void)spank;
	if (fails() || fake.option_count == COUNT(fake.options) ||
	    !option->name || !option->usage)
		return ESPANK_BAD_ARG;
	fake.options[fake.option_count++] = option;
	return ESPANK_SUCCESS;
}

const char *spank_strerror(spank_err_t error)
{
	return error == ESPANK_ERROR ? "Generic error" : "Bad argument";
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	va_list args;
	spank_err_t rc = ESPANK_SUCCESS;

	(void)spank;
	fake.items++;
	if (fails())
		return ESPANK_ERROR;
	if (fake.context != S_CTX_REMOTE &&
	    (!fake.launched || item == S_JOB_LOCAL_TASK_COUNT ||
	     item == S_TASK_EXIT_STATUS || item == S_JOB_ENV))
		return ESPANK_NOT_REMOTE;
	va_start(args, item);
	switch (item) {
	case S_JOB_ID:
		*va_arg(args, uint32_t *) = fake.job_id;
		break;
	case S_JOB_NNODES:
		*va_arg(args, uint32_t *) = fake.nodes;
		break;
	case S_JOB_UID:
		*va_arg(args, uid_t *) = fake.uid;
		break;
	case S_JOB_GID:
		*va_arg(args, gid_t *) = fake.gid;
		break;
	case S_TASK_ID:
		*va_arg(args, int *) = fake.task;
		break;
	case S_TASK_EXIT_STATUS:
		*va_arg(args, int *) = fake.exit_status;
		break;
	case S_JOB_STEPID:
		*va_arg(args, uint32_t *) = fake.step_id;
		break;
	case S_JOB_LOCAL_TASK_COUNT:
		*va_arg(args, uint32_t *) = fake.local_tasks;
		break;
	case S_JOB_TOTAL_TASK_COUNT:
		*va_arg(args, uint32_t *) = fake.all_tasks;
		break;
	case S_JOB_ARGV:
		*va_arg(args, int *) = fake.argc;
		*va_arg(args, char ***) = fake.argv;
		break;
	case S_JOB_ENV:
		*va_arg(args, char ***) = fake.env;
		break;
	default:
		rc = ESPANK_BAD_ARG;
	}
	va_end(args);
	return rc;
}

static bool is_named(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* entry NULL: none. */
void fake_env_set(const char *name, char *entry)
{
	size_t count = 0, kept = 0, i;
	char **env;

	while (fake.env[count])
		count++;
	env = calloc(count + 2, sizeof(*env));
	for (i = 0; i < count; i++) {
		if (!is_named(fake.env[i], name))
			env[kept++] = strdup(fake.env[i]);
		free(fake.env[i]);
	}
	env[kept] = entry;
	free(fake.env);
	fake.env = env;
}

static bool env_has(const char *name)
{
	size_t i;

	for (i = 0; fake.env[i]; i++)
		if (is_named(fake.env[i], name))
			return true;
	return false;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value,
			 int overwrite)
{
	char *entry;

	(void)spank;
	fake.items++;
	if (fails())
		return ESPANK_ERROR;
	if (fake.context != S_CTX_REMOTE)
		return ESPANK_NOT_REMOTE;
	if (!overwrite && env_has(name))
		return ESPANK_ENV_EXISTS;
	if (asprintf(&entry, "%s=%s", name, value) < 0)
		abort();
	fake_env_set(name, entry);
	return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
	(void)spank;
	fake.items++;
	if (fails())
		return ESPANK_ERROR;
	if (fake.context != S_CTX_REMOTE)
		return ESPANK_NOT_REMOTE;
	fake_env_set(name, NULL);
	return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: error: ", fake.program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void slurm_info(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", fake.program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
