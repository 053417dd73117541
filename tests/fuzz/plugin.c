/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the --ddp options and plugstack.conf's arguments. The input is a line
 * for each: an option begins with its letter (d, p, g or c), an argument with
 * an a. The file that reads them is included, because it keeps what it read,
 * and this must forget it before the next input. Slurm is a stub here.
 */
#include "options.c"

#include "fuzz.h"

enum { ARGUMENTS_MAX = 8 };

/* Slurm's part: remember the option, whose callback is called below. */
static struct spank_option *registered[OPTION_COUNT];
static int registered_count;

spank_err_t spank_option_register(spank_t spank,
				  struct spank_option *option)
{
	(void)spank;
	CHECK(registered_count < OPTION_COUNT);
	registered[registered_count++] = option;
	return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
	CHECK(!format);
}

static void give_option(char letter, const char *value)
{
	static const char letters[] = "dpgc";
	const char *found = strchr(letters, letter);
	struct spank_option *option;

	if (!found || letter == '\0')
		return;
	option = registered[found - letters];
	CHECK(option->cb(option->val, *value != '\0' ? value : NULL, 0) == 0);
}

static void check_plugin(const struct ddp_plugin *plugin)
{
	const char *error = ddp_options_error();

	if (error)
		fuzz_check_line(error);
	CHECK(plugin->seen || !plugin->on);
	CHECK(plugin->port == 0 || plugin->port >= 1024);
	CHECK(plugin->gpus <= DDP_GPUS_OFF && plugin->cpus <= DDP_CPUS_OFF);
	CHECK(plugin->port_first >= 1024);
	CHECK(plugin->port_first < plugin->port_last);
	CHECK(memchr(plugin->interface, '\0', sizeof(plugin->interface)));
	if (plugin->interface[0] != '\0')
		fuzz_check_line(plugin->interface);
	CHECK(!plugin->topology || plugin->topology[0] == '/');
}

static void forget(const struct ddp_plugin *fresh)
{
	free((char *)ddp_plugin.topology);
	ddp_plugin = *fresh;
	memset(&bad, 0, sizeof(bad));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const struct ddp_plugin fresh = ddp_plugin;
	char *text = fuzz_text(data, size), *rest = text, *line;
	char *arguments[ARGUMENTS_MAX];
	int count = 0;

	if (registered_count == 0)
		ddp_options_register(NULL);
	while (*rest != '\0') {
		line = fuzz_next_line(&rest);
		if (*line != 'a')
			give_option(*line, *line != '\0' ? line + 1 : line);
		else if (count < ARGUMENTS_MAX)
			arguments[count++] = line + 1;
	}
	ddp_options_read(count, arguments);
	check_plugin(&ddp_plugin);
	forget(&fresh);
	free(text);
	return 0;
}
