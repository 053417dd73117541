# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What the agent does when its supervisor says so, or speaks wrongly.

# Tasks that SIGTERM does not end, of which one is stopped. Each has a child, and
# one that has left the session.
cat >stubborn <<'END'
#!/bin/sh
trap '' TERM
setsid sleep 1000 &
sleep 1000 &
touch "$S/there.$RANK"
test "$RANK" = 0 || kill -STOP $$
wait
END
chmod 755 stubborn

# start_stubborn: start two of them under a new fake
start_stubborn()
{
	fake
	rm -f there.*
	begin 2 ./stubborn
	wait_until test -e there.0 -a -e there.1
	started RANK 2
	wait_until is_state "$(rank_pid 1)" T
}

start_stubborn
# Somebody else's, beside the step
setsid sleep 1000 &
other=$!
order KILL
wait "$step"
equal 'all ranks are killed on order, though stopped or deaf to SIGTERM' \
	'n1|0|9||| n1|1|9|||' "$(heard END | paste -sd' ')"
finish 'a step that was killed, with children that had left its session'
check 'a process beside the step is not killed' kill "$other"

start_stubborn
order WELCOME
wait "$step"
equal 'the ranks of a supervisor that does not speak as it should are killed' \
	'137 137' "$(awk '{ print 128 + $2 }' told.log | paste -sd' ')"
finish 'a step whose supervisor spoke wrongly'

# A supervisor without the secret may give orders: none is obeyed.
fake liar
begin 1 sh -c 'trap "echo got >\"$S/got\"; exit 0" USR1
	: >"$S/there"; read line <"$S/go"; exit 0'
wait_until test -e there
started CLOSED 1
order SIGNAL 10
order KILL
started CLOSED 2
go
wait "$step"
equal 'no order of a supervisor without the secret is obeyed' 0 \
	"$(cut -d' ' -f2 told.log)"
equal 'a supervisor without the secret is told nothing of the ranks' 0 \
	"$(grep -c -e ' RANK ' -e ' END ' -e ' DONE ' "$fake/log")"
order QUIT

fake
rm -f got.* there.*
begin 2 sh -c 'trap "kill \$child; echo got >\"$S/got.$RANK\"; exit 0" USR1
	sh -c "trap \"echo got >\\\"$S/got.child\\\"\" USR1; : >\"$S/there.$RANK\"
		sleep 60; :" &
	child=$!
	while :; do sleep 0.05; done'
wait_until test -e there.0 -a -e there.1
started RANK 2
order SIGNAL 10
wait "$step"
equal 'each rank gets a signal, and no other process does' 'got.0 got.1' \
	"$(printf '%s\n' got.* | paste -sd' ')"
members "$job" | xargs -r kill -KILL 2>/dev/null
finish 'a step that was signalled'
