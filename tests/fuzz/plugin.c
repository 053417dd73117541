/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the --ddp options and plugstack.conf's arguments. The input is a line
 * for each: an option begins with its letter (see give_option), an argument with
 * an a, and the partition with an n. The files that read them are included,
 * because they keep what they read, and this must forget it before the next
 * input. Slurm is a stub here.
 */
#include "options/options.c"
#include "options/site.c"

#include "fuzz.h"

enum { LINES_MAX = 8 };

/* Slurm's part: remember the option, whose callback is called below. */
static struct spank_option *registered[DDP_OPTION_COUNT];
static int registered_count;

spank_err_t spank_option_register(spank_t spank,
				  struct spank_option *option)
{
	(void)spank;
	CHECK(registered_count < DDP_OPTION_COUNT);
	registered[registered_count++] = option;
	return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
	CHECK(!format);
}

static void give_option(char letter, const char *value)
{
	static const char letters[] = "dpgcesrtlw";
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
	size_t i;

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
	for (i = 0; i < plugin->env_count; i++) {
		fuzz_check_line(plugin->env[i]);
		CHECK(name_length(plugin->env[i]) > 0);
	}
}

/* A bad argument must not leave anything behind that holds. */
static void check_site(const char *partition)
{
	const char *text;
	size_t i;

	for (i = 0; (text = ddp_site_default(i, partition)); i++)
		CHECK(!*text || find_key(text, NULL));
	for (i = 0; (text = ddp_site_env(i)); i++)
		CHECK(!*text || name_length(text) > 0);
	ddp_site_asks_partition();
	ddp_options_typed("--ddp=explain");
}

static void forget(void)
{
	int i;

	for (i = 0; i < DDP_OPTION_COUNT; i++)
		free(said.typed[i].value);
	memset(&said.typed, 0, sizeof(said.typed));
	memset(&site, 0, sizeof(site));
	ddp_options_partition(NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text, *line;
	char *arguments[LINES_MAX];
	const char *partition = NULL;
	int count = 0;

	if (registered_count == 0)
		ddp_options_register(NULL);
	while (*rest != '\0') {
		line = fuzz_next_line(&rest);
		if (*line == 'n')
			partition = line + 1;
		else if (*line != 'a')
			give_option(*line, *line != '\0' ? line + 1 : line);
		else if (count < LINES_MAX)
			arguments[count++] = line + 1;
	}
	ddp_options_read(count, arguments);
	check_plugin(&ddp_plugin);
	ddp_options_partition(partition);
	check_plugin(&ddp_plugin);
	check_site(partition);
	forget();
	free(text);
	return 0;
}
