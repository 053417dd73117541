# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC2016 # see run; the tasks' shells expand
# How ranks end, and what the agent says of it.

error='{"message": {"message": "E: bad"}}'

# clock: nanoseconds of CLOCK_MONOTONIC, which is that of the agent's messages
clock()
{
	python3 -c 'import time; print(time.monotonic_ns())'
}

# at RANK: when a rank ended or failed, as the agent tells it
at()
{
	wait_until grep -q " AT n1|$1|" "$fake/log"
	logged AT | sed -n "s/^n1|$1|//p"
}

fake
run 3 sh -c 'echo $SLURM_PROCID $$; case $RANK in
	1) kill -KILL $$ ;;
	2) echo "$0" >"$TORCHELASTIC_ERROR_FILE"; exit 3 ;; esac' "$error"
equal 'the agent tells the process of each rank' "$(sort out)" \
	"$(heard RANK | sed 's/^n1|\(.\)|\(.*\)||$/\1 \2/')"
equal 'the agent tells how each rank ended, and which error it left' \
	'n1|0|0||| n1|1|9||| n1|2|768|E: bad||' "$(heard END | paste -sd' ')"
equal 'when all ranks have ended the agent says that it is done' n1 \
	"$(heard DONE)"
finish 'a step whose ranks fail'

# Nobody else can read them, or put something there before.
rm -f ends files
fake
run 2 --ddp-watchdog=5 sh -c 'umask 0
	for file in "$TORCHELASTIC_ERROR_FILE" "$DDP_HEARTBEAT_FILE"; do
		echo "${file##*.}" >>"$S/ends"
		stat -c "%u %a %s %F" "$file" >>"$S/files"
		echo >"$file"; stat -c "%u %a %s" "$file" >>"$S/files"
	done'
equal 'ranks find files for an error and heartbeats, which only the user can read' \
	"4 $(id -u) 600 0 regular empty file 4 $(id -u) 600 1" \
	"$(sort files | uniq -c | xargs)"
equal 'no name of these tells another' 4 "$(sort -u ends | wc -l)"
finish 'a step whose ranks write all their files'

# torchrun makes the file itself, by its umask.
launcher=2
fake
run 1 sh -c 'umask 022; file=$TORCHELASTIC_ERROR_FILE
	test -e "$file" && echo "there already"
	echo "$0" >"$file"; stat -c "%u %a" "${file%/*}"; exit 1' "$error"
equal "no other user can open the folder of a launcher's error file" \
	"$(id -u) 700" "$(cat out)"
equal 'the error file of a launcher is read' 'n1|0|256|E: bad||' "$(heard END)"
finish 'a step whose launcher writes its error file'
run 1 true
finish 'a step whose launcher ends well'
launcher=''

# as in a container: most have a /tmp of their own, and some all folders
if test "$(id -u)" = 0; then
	for own in '/tmp|E: bad' '/dev/shm|'; do
		fake
		run 1 unshare -m sh -c 'mount -t tmpfs tmpfs "$1" || exit 9
			echo "$0" >"$TORCHELASTIC_ERROR_FILE" || exit 8; exit 7' \
			"$error" "${own%|*}"
		equal "a rank whose ${own%|*} is its own can write its error" \
			"n1|0|1792|${own#*|}||" "$(heard END)"
		finish "a step whose rank has a ${own%|*} of its own"
	done
else
	skip 'a rank whose /tmp is its own can write its error' \
		'only root can mount one'
fi

if test "$(id -u)" = 0; then
	fake
	run 1 sh -c 'echo "$0" >"$TORCHELASTIC_ERROR_FILE"
		chown 12345 "$TORCHELASTIC_ERROR_FILE"; exit 1' "$error"
	equal 'the agent does not read the error file of another user' \
		'n1|0|256|||' "$(heard END)"
	order QUIT
else
	skip 'the agent does not read the error file of another user' \
		'only root can make one'
fi

fake
run 1 sh -c 'ln -sf "$S/secret" "$TORCHELASTIC_ERROR_FILE"; echo "$0" >"$S/secret"
	exit 1' "$error"
equal 'the agent does not follow a link to an error file' 'n1|0|256|||' \
	"$(heard END)"
order QUIT

fake
run 1 sh -c 'rm -f "$TORCHELASTIC_ERROR_FILE"; mkfifo "$TORCHELASTIC_ERROR_FILE"; exit 1'
equal 'the agent does not wait for an error file that is a FIFO' 'n1|0|256|||' \
	"$(heard END)"
order QUIT

# mark_tail: the agent waits for 2 s at most until its tee has read what a rank
# has printed: if slurmstepd was kept for so long, what is missing was only late
mark_tail()
{
	test "$(sed 's/.* //' told.log)" -lt 2000 || late=' # LATE'
}

fake
run 1 sh -c 'printf "one\ntwo" >&2; exit 3'
mark_tail
equal 'the last line that a rank printed is told though it has no newline' \
	'n1|0|768|||one\ntwo' "$(heard END)"
late=
equal 'a last line without a newline arrives at srun' 'one
two' "$(cat err)"
order QUIT
fake
run 1 --ddp-show=0 sh -c 'printf "one\ntwo"'
equal 'a last line without a newline arrives where each line has a label' \
	'[0 n1] one
[0 n1] two' "$(cat out)"
order QUIT


# A bar, in the middle of which a rank fails
cat >bar.py <<'END'
import sys
for percent in range(100):
    sys.stderr.write("\r%2d%% " % percent + "#" * percent)
    sys.stderr.flush()
raise ValueError("bad")
END
fake
run 1 --ddp-show=0 python3 bar.py
bar=$(printf '%99s' '' | tr ' ' '#')
mark_tail
equal 'the last state of a progress bar is told before the error of a rank' \
	"99% $bar""Traceback (most recent call last): ValueError: bad" \
	"$(heard END | cut -d'|' -f6 | sed 's/\\n/\n/g' | grep -v '^\( \|$\)' |
		paste -sd' ')"
late=
equal 'each state of a progress bar has a label, and none is lost' \
	"100 $(printf '[0 n1] 98%% %.98s' "$bar")" \
	"$(tr '\r' '\n' <err | grep -c '^\[0 n1\] *[0-9]*% #*') $(tr '\r' '\n' <err |
		grep ' 98% ')"
order QUIT

fake
err_file=$scratch/err.file
run 1 sh -c 'printf "lost\nfound" >&2; exit 3'
err_file=
equal 'the last lines are told, too, where they go to a file' \
	'n1|0|768|||lost\nfound' "$(heard END)"
order QUIT

# slurmstepd is slow to say how rank 0 has ended; it has read it, so that nobody else
# can.
fake
touch hold
begin 2 sh -c 'test $RANK = 0 || exec sleep 60
	echo "$TORCHELASTIC_ERROR_FILE" >"$S/name"; read line <"$S/go"; exit 1'
started RANK 2
kill -STOP "$(agent)"
go
wait_until is_state "$(rank_pid 0)" X
kill -CONT "$(agent)"
order PING
started PONG 1
before=$(clock)
echo "$error" >"$(cat name)"
rm hold
started END 1
equal 'an error file is read when slurmstepd tells the end of its rank' \
	'n1|0|256|E: bad||' "$(logged END)"
echo "before $before, told $(at 0)" >why
test "$(at 0)" -le "$before"
result $? 'a rank has not ended later because its error file is younger'
kill "$(rank_pid 1)"
wait "$step"
finish 'a step of which one end was told late'

# slurmstepd first runs task epilogs, for which it takes a second and more.
fake
touch hold
begin 1 sh -c ': >"$S/there"; read line <"$S/go"; exit 3'
started RANK 1
kill -STOP "$(agent)"
go
wait_until is_state "$(rank_pid 0)" X
kill -CONT "$(agent)"
sleep 2
rm hold
started END 1
equal 'a rank is not taken to have ended well while task epilogs run' \
	'n1|0|768|||' "$(logged END)"
wait "$step"
finish 'a step with task epilogs'

# A fake clock_gettime(): the agent stands still for 3 s where it reads that clock,
# for what it tells of the error, and of the end.
cat >still.c <<'END'
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at)
{
	static int stood;
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	if (clock == CLOCK_REALTIME && strcmp(name, "ddp-agent") == 0 &&
	    stood++ < 2)
		sleep(3);
	return syscall(SYS_clock_gettime, clock, at);
}
END
cc -shared -fPIC -o still.so still.c && preload=$scratch/still.so
fake
before=$(clock)
begin 1 sh -c 'echo "$0" >"$TORCHELASTIC_ERROR_FILE"; : >"$S/there"
	read line <"$S/go"; exit 1' "$error"
preload=
wait_until test -e there
between=$(clock)
started RANK 1
order ERRORS
started ERROR 1
equal 'the agent tells the errors of ranks that still run' 'E: bad' \
	"$(logged ERROR | cut -d'|' -f4)"
go
wait "$step"
echo "before $before, between $between, told $(at 0)" >why
test "$(at 0)" -ge "$before" && test "$(at 0)" -le "$between"
result $? 'a rank has failed when it wrote its error, not when it ended'
# shellcheck disable=SC2086 # numbers
wait $readers
equal 'where there is a supervisor the agent prints no error' '' "$(cat err)"
finish 'a step whose rank wrote its error first'

fake
begin 2 sh -c 'echo "$0" >"$TORCHELASTIC_ERROR_FILE"
	test $RANK = 0 || { : >"$S/there"; read line <"$S/go"; }; exit 1' "$error"
wait_until test -e there
started END 1
order ERRORS
started ERROR 1
order PING
started PONG 1
equal 'the agent tells no error of a rank that has ended' 'n1|1|' \
	"$(logged ERROR | sed 's/[0-9]*|E: bad$//')"
go
wait "$step"
finish 'a step of which one rank fails first'

# The machine kills a process of another user's for its memory.
if test -n "$behind"; then
	fake
	begin 2 sh -c 'test $RANK = 0 || exit 3; read line <"$S/go"
		echo oom_kill 5 >"$S/vmstat"; kill -KILL $$'
	# As a supervisor does when it hears of a failure: the PINGs that follow make
	# no old news of what the kernel then tells.
	started END 1
	order ERRORS
	order PING
	started PONG 1
	go
	wait "$step"
	equal 'a process of another that was killed for its memory is no certain cause' \
		'n1|0|9||perhaps out of memory| n1|1|768|||' \
		"$(heard END | sort | paste -sd' ')"
	echo 'oom_kill 4' >vmstat
	order QUIT
else
	skip 'a process of another that was killed for its memory is no certain cause' \
		'nothing can be mounted here'
fi

# Private folders of ranks of ddp-train, which a rank that fails leaves
fake
run 2 sh -c 'cd /dev/shm && at=slurm-ddp.$SLURM_JOB_ID && mkdir "$S/kept" "$at.3.$RANK.x"
	touch "$S/kept/file" "$at.3.$RANK.x/file"
	test $RANK = 0 || mkdir "$at.3.10.x" "$at.30.1.x" "$at.3.2.x"
	test $RANK = 0 || ln -s "$S/kept" "$at.3.1.link"
	exit $RANK' 2>/dev/null
equal 'what ranks have left in memory is removed, and nothing of other ranks' \
	'.3.1.link .3.10.x .3.2.x .30.1.x' \
	"$(find /dev/shm -name "slurm-ddp.$job.*" | sed "s/.*$job//" | sort |
		paste -sd' ')"
equal 'the file that a link of such a name leads to stays' file "$(ls kept)"
rm -r /dev/shm/slurm-ddp."$job".*
order QUIT

# One descriptor for each of 30 tasks is too much.
old_as=$as as="${as:+$as }prlimit --nofile=24"
why='30 tasks of this node cannot be watched: Too many open files; raise the limit of open files (ulimit -n 274)'
fake
run 30 sh -c 'exit 3'
equal 'a node says why no agent can run there' "slurm-ddp: on n1: $why" \
	"$(cat err)"
equal 'the tasks run there all the same' '30 768' \
	"$(cut -d' ' -f2 told.log | uniq -c | xargs)"
rm -f ran
run 30 --ddp-watchdog=5 touch ran
equal 'an option that needs the agent is refused there' \
	"slurm-ddp: rank 0 on n1: --ddp-watchdog: $why" "$(cat err)"
equal 'the tasks do not run then' '30 256' \
	"$(cut -d' ' -f2 told.log | uniq -c | xargs)$(ls ran 2>/dev/null)"
finish 'steps that cannot be watched'
as=$old_as
