# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What the agent takes for progress. Each second it tells how long its ranks have
# made none. The steps run side by side.

# watched NAME TASKS COMMAND...: begin such a step
watched()
{
	name=$1 tasks=$2 at=$scratch/$1
	shift 2
	mkdir "$at"
	fake
	begin "$tasks" --ddp-watchdog=5 "$@"
	echo "$fake $job $step" >"$at/which"
}

# look NAME: the variables of that step
look()
{
	read -r fake job step <"$scratch/$1/which"
}

# pulses NAME: what it told, in ms
pulses()
{
	look "$1"
	sed -n 's/^[0-9.]* PULSE n1|//p' "$fake/log"
}

# moves NAME: two of its pulses in a row tell of progress, after the first. Of a rank
# that only waits for a CPU each third does.
moves()
{
	pulses "$1" >why
	tail -n +2 why | uniq -d | grep -qx 0
}

# rests NAME: none of its ranks has made progress for 3 s
rests()
{
	pulses "$1" >why
	test "$(tail -n 1 why)" -ge 3000
}

# The last of a rank's processes does nothing.
forever='sleep 300 & while sleep 0.3; do'
watched frozen 1 sleep 300
watched idle 2 sleep 300
watched stores 1 bash -c 'printf -v mega %1500000s; '"$forever"'
	printf %s "$mega" >"$S/stored"; done'
watched beats 1 bash -c "$forever"' i=$((i % 7 + 1))
	printf "\\$i\0\0\0\0\0\0\0" 1<>"$DDP_HEARTBEAT_FILE"; done'
watched one_prints 2 sh -c 'test $RANK = 0 || exec sleep 300; '"$forever"'
	echo >&2; done'
watched explained 3 sh -c 'test $RANK -ne 2 || exit 0
	test $RANK -ne 0 || kill -STOP $$
	sh -c "echo \$\$ >\"\$S/child\"; exec sleep 300"; exit'
# as bubblewrap does: what waits in read(2) has started a rank with other files
test "$(id -u)" != 0 || watched contained 1 sh -c 'mkfifo "$S/fifo"
	cp /bin/sleep "$S/sleep"
	unshare -m sh -c "mount --bind \"\$S/sleep\" /bin/sleep
		echo \$\$ >\"\$S/child\"; exec /bin/sleep 300" &
	read line <"$S/fifo"'
# Last, and ended first: they take two CPUs.
watched computes 1 sh -c '(while :; do :; done) & sleep 300 & wait'
# as podman does: what computes has left the task
watched leaves 1 sh -c '(while :; do :; done &); exec sleep 300'

look frozen
started PULSE 2
stopped=$(agent)
kill -STOP "$stopped"
begun=$(date +%s)

wait_until moves computes
result $? 'a rank whose child computes makes progress'
look computes
order KILL
wait_until moves leaves
result $? 'a rank makes progress where what it left behind computes'
look leaves
order KILL
wait_until rests idle
result $? 'ranks that sleep make no progress'
wait_until moves stores
result $? 'a rank that writes to a file makes progress, whatever its children do'
wait_until moves beats
result $? 'a rank whose heart beats makes progress'
wait_until moves one_prints
result $? 'ranks make progress where one of them prints'

look explained
cat >bin/eu-stack <<'END'
#!/bin/sh
END
chmod 755 bin/eu-stack
started END 1
started PULSE 1
# waits_in PID: sets place
waits_in()
{
	wait_until is_state "$1" S
	place=$(cat "/proc/$1/wchan")
	test "${place:-0}" != 0 ||
		place="system call $(cut -d' ' -f1 "/proc/$1/syscall")"
}
wait_until is_state "$(rank_pid 0)" T
wait_until test -s explained/child
waits_in "$(cat explained/child)"
order EXPLAIN
started DETAIL 2
order PING
started PONG 1
equal 'the agent says what each rank does that runs, and of a shell what it waits for' \
	"0|$(printf %d "'T") 1|$(printf %d "'S")|$place" \
	"$(logged DETAIL | awk -F'|' '{ printf "%s%s|%s", sep, $2, $3; sep = " " }
		$3 != 84 { printf "|%s", $8 }')"

steps='frozen idle stores beats one_prints computes leaves explained'
name='a rank in a container is told, and no stack by files that it does not have'
if test "$(id -u)" = 0; then
	steps="$steps contained"
	look contained
	cat >bin/eu-stack <<-'END'
	#!/bin/sh
	echo '#0  0x00007f00 wrong'
	END
	wait_until test -s contained/child
	started PULSE 1
	waits_in "$(cat contained/child)"
	order EXPLAIN
	started DETAIL 1
	equal "$name" "$place|(no stack: its files are those of a container)\\n" \
		"$(logged DETAIL | cut -d'|' -f8,9)"
else
	skip "$name" 'only root can mount a file of its own'
fi

# One sample counts 2 s at most, however late it is.
while test $(($(date +%s) - begun)) -lt 4; do sleep 0.1; done
before=$(pulses frozen | wc -l)
kill -CONT "$stopped"
look frozen
started PULSE $((before + 1)) && pulses frozen | awk '
	NR > 1 && $1 - last > 2000 { bad = 1 } { last = $1; print }
	END { exit bad }' >why
result $? 'a step that was suspended has not been idle meanwhile'

for name in $steps; do
	look "$name"
	order KILL
done
for name in $steps; do
	look "$name"
	wait "$step"
	order QUIT
done
finish 'steps with a watchdog'
at=$scratch
