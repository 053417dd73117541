# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The files of --ddp-logs, and what is said of ranks whose program does not start.

mkdir logs

# next: the folder of the next step
next()
{
	mkdir "logs/$((job + 1)).3"
	echo "logs/$((job + 1)).3"
}

# refused: why the ranks of the last step did not start, as the agent tells it
refused()
{
	heard END | sed "s:$scratch/::; s/; give a folder .*//" | paste -sd' '
}

fake
folder=$(next)
echo old >"$folder/rank-000000.err"
run 1 --ddp-logs="$scratch/logs" sh -c 'printf "one\ntwo" >&2'
equal 'a log goes on behind what it has, and ends with the last bytes' 'old
one
two' "$(cat "$folder/rank-000000.err")"
equal 'what goes to a log is printed, too, with a label' '[0 n1] one
[0 n1] two' "$(cat err)"
order QUIT

fake
folder=$(next)
ln -s "$scratch/precious" "$folder/rank-000000.out"
: >precious
run 1 --ddp-logs="$scratch/logs" echo overwritten
equal 'no log is written through a link' '' "$(cat precious)"
equal 'the agent tells why the program of a rank was not started' \
	"n1|0|256|--ddp-logs: cannot write $folder/rank-000000.out: it is a link" \
	"$(refused)"
order QUIT

# Fakes: net.core.wmem_max is Linux's, and the agent, which sleeps until the program
# of rank 0 runs, does so for a second.
cat >narrow.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int (*real)(int, int, int, const void *, socklen_t) =
		dlsym(RTLD_NEXT, "setsockopt");
	const int max = 212992;

	if (level == SOL_SOCKET && name == SO_SNDBUF && *(const int *)value > max)
		value = &max;
	return real(fd, level, name, value, size);
}

int execvpe(const char *file, char *const argv[], char *const env[])
{
	int (*real)(const char *, char *const[], char *const[]) =
		dlsym(RTLD_NEXT, "execvpe");
	char *const *at = env;

	while (*at && strcmp(*at, "SLURM_PROCID=0") != 0)
		at++;
	if (*at)
		sleep(1);
	return real(file, argv, env);
}
END
cc -shared -fPIC -o narrow.so narrow.c -ldl
if python3 -c 'import socket as s; SO_SNDBUFFORCE = 32
s.socket(s.AF_UNIX).setsockopt(s.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 20)' 2>why; then
	fake
	next >/dev/null
	preload=$scratch/narrow.so
	run 200 --ddp-logs="$scratch/logs" echo written
	preload=
	equal 'many tasks tell the agent where their output goes before it reads' \
		'200 0' "$(grep -c written out) $(wc -l <err)"
	order QUIT
else
	skip 'many tasks tell the agent where their output goes before it reads' \
		'only root may go beyond net.core.wmem_max'
fi

if test "$(id -u)" = 0; then
	fake
	folder=$(next)
	chown 12345 "$folder"
	run 1 --ddp-logs="$scratch/logs" echo lost
	equal 'no log is written to the folder of another user' \
		"n1|0|256|--ddp-logs: cannot write $folder: it is another user's" \
		"$(refused)"
	order QUIT
else
	skip 'no log is written to the folder of another user' \
		'only root can make one'
fi
finish 'steps with logs'
