# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The agents of a step, under a fake supervisor (fake_supervisor.py): what they
# tell it, and what they do when it says so, or is gone.

# shellcheck source=tests/cluster/fake_log.sh
. "$here/fake_log.sh"

# fake [HOW]: a new fake supervisor on the login node; its log is $fake/log
fake()
{
	fake=$scratch/fake.$((fakes = ${fakes:-0} + 1))
	mkdir -m 777 "$fake"
	cp "$here/fake_supervisor.py" "$fake"
	"$sandbox" exec --dir "$dir/cluster" /usr/bin/python3 \
		"$fake/fake_supervisor.py" "$fake" "$@" 2>"$fake/err" &
	enters=$!
	wait_until test -s "$fake/told"
	told=$(cat "$fake/told")
	rm -f go ready.*
}

# The mark of plugin/srun/rerun.c, by which srun takes the fake for its own
# supervisor, and starts none
cat >under <<'END'
#!/bin/sh
export SLURM_DDP_RERUN="$$:1:1:0:0:0:0:0" SLURM_DDP_SUPERVISOR="$1"
shift
exec srun --ddp "$@"
END
chmod 755 under

# under [OPTION...] CMD: run a step that has the fake for its supervisor
under()
{
	call login "$scratch/under" "$told" "$@"
}

# ready COUNT: wait until so many tasks have made a file ready.RANK
ready()
{
	wait_until are_ready "$1"
}
are_ready() { test "$(find . -maxdepth 1 -name 'ready.*' | wc -l)" -ge "$1"; }

# A program for tasks that ends when the file go is there
cat >goes <<'END'
#!/bin/sh
until test -e go; do sleep 0.05; done
END
# A program that ends when the fake has heard of so many ranks. An agent whose
# ranks have ended well leaves after 0.8 s, though the fake has not let it in.
cat >is_heard <<'END'
#!/bin/sh
until test "$(grep -c ' RANK ' "$fake/log")" -ge "$1"; do sleep 0.05; done
END
chmod 755 goes is_heard
export fake

# heard_ends: the ends of ranks that have no memory of their own. The agent
# guesses that they lacked some if the kernel has just killed any process for it.
heard_ends()
{
	heard END | sed 's/|perhaps out of memory|$/||/'
}

# left: processes of the user's that are left
left()
{
	settle
	"$sandbox" exec --dir "$dir/cluster" ps -u 61000 -o pid=,args= |
		grep -v -e fake_supervisor -e ' ps -u ' -e '<defunct>'
	rank_files
}

# finish NAME: nothing of the step is left
finish()
{
	equal "nothing is left: $1" '' "$(left)"
	order QUIT
}

# A program for tasks: they cannot be ended by SIGTERM, one is stopped, and each
# has a child that has left the session.
cat >stubborn <<'END'
#!/bin/sh
trap '' TERM
setsid sleep 300 &
sleep 300 &
touch "ready.$SLURM_PROCID"
test "$SLURM_LOCALID" = 0 || kill -STOP $$
wait
END
chmod 755 stubborn

cluster --nodes 2 --gpus 2 --cpus 8

fake
under -N2 --ntasks-per-node=2 --gres=gpu:2 sh -c '
	echo "n$((SLURM_NODEID + 1))|$SLURM_PROCID|$$"
	exec ./is_heard 4'
equal 'each rank is told, with its node, its process and its GPU' \
	"$(sort out)" "$(heard RANK | sed 's/|[01]|$//')"
equal 'the GPUs are those of the node' '0 1 0 1' \
	"$(logged RANK | sort -t'|' -k2n | cut -d'|' -f4 | paste -sd' ')"
equal 'each agent says which step it is of' \
	"$(printf 'n%s|4|2\n' 1 2)" "$(logged HELLO | cut -d'|' -f1,4,5)"
equal 'each end is told, and then that all have ended' \
	'n1|0|0||| n1|1|0||| n2|2|0||| n2|3|0||| n1 n2' \
	"$({ logged END; logged DONE; } | paste -sd' ')"
test "$status" -eq 0 && ! test -s err
result $? 'the agent prints nothing'
finish 'a step that ends well'

# It counts in the memory of the step; what it shares with slurmstepd does not.
# The process that it has made for output has its name for a moment, too.
fake
under -N2 --ntasks-per-node=2 ./goes &
started RANK 4
"$sandbox" exec --dir "$dir/cluster" --root timeout 60 sh -c '
	until pids=$(pgrep -x ddp-agent) && test "$(echo "$pids" | wc -l)" = 2
	do
		sleep 0.1
	done
	for pid in $pids; do
		awk "/^Private_/ { kb += \$2 } END { print kb }" \
			"/proc/$pid/smaps_rollup"
	done' >why
touch go
wait $!
test "$(awk '$1 > 0 && $1 <= 2048' why | wc -l)" = 2
result $? 'an agent takes 2 MiB at most'
finish 'a step whose agents were measured'

fake
under -N2 --ntasks-per-node=2 sh -c 'case $SLURM_PROCID in
	1) exit 0 ;; 2) kill -KILL $$ ;; 3)
	echo "{\"message\": {\"message\": \"ValueError: bad batch\"}}" \
		>"$TORCHELASTIC_ERROR_FILE"
	exit 3 ;; esac; exec ./is_heard 4'
equal 'how each rank ended, and its error' \
	"$(printf '%s\n' 'n1|0|0|||' 'n1|1|0|||' 'n2|2|9|||' \
		'n2|3|768|ValueError: bad batch||')" "$(heard_ends)"
! grep 'slurm-ddp' err >why
result $? 'the agent leaves it to the supervisor to say it'
finish 'a step that fails'

# fails SECONDS: a step whose rank 1 fails while the agent is stopped, and stays
# so for that time; $took is how many ms after the failure srun says so
cat >stamp.py <<'END'
import sys, time
for line in sys.stdin:
    print(time.time_ns(), line, end="", flush=True)
END
fails()
{
	rm -f failed
	login "$scratch/under" "$told" -N1 -n2 sh -c '
		test $SLURM_PROCID = 1 || exec sleep 2
		test $0 = 0 || {
			pkill -STOP -x ddp-agent
			(until test -s failed; do sleep 0.02; done
			sleep $0; pkill -CONT -x ddp-agent) >/dev/null 2>&1 &
		}
		date +%s%N >failed
		exit 3' "$1" 2>&1 | /usr/bin/python3 stamp.py >stamps
	cat failed stamps >why
	took=$(sed -n 's/ srun: error: n1: task 1: Exited .*//p' stamps)
	took=$(((${took:-0} - $(cat failed)) / 1000000))
}
# The supervisor does not answer until the only rank has failed, and for 2 s more.
# nsenter stops with what it has started, if a moment later, and continues it.
is_stopped() { ps -p "$1" -o stat= | grep -q '^T'; }
fake
"$sandbox" exec --dir "$dir/cluster" pkill -STOP -f fake_supervisor
wait_until is_stopped "$enters"
under -N1 -n1 sh -c 'touch late.began; exit 3' &
wait_until test -e late.began
sleep 2
kill -CONT "$enters"
wait $!
equal 'a supervisor that is late hears which rank has failed' 'n1|0|768|||' \
	"$(heard END)"
finish 'a step that failed before its supervisor was reached'

# slurmstepd tells srun of a failure after 0.2 s, and when the agent has told of it
# or 3 s have passed. The machine may be busy.
fake
fails 0.6
test "$took" -ge 500
result $? 'srun says nothing of a rank before its agent has told of it'
equal 'the agent has told of the rank' \
	'n1|1|768|||' "$(heard END | grep '|1|')"
order QUIT
for _ in 1 2 3; do
	fake
	fails 0
	order QUIT
	test "$took" -ge 900 || break
done
test "$took" -ge 0
result $? 'srun says it when the agent has told of it'
in_goal "$took" 900 -N1 -n2 >why
in_time $? 'srun says it within 0.9 s then'
equal 'nothing is left: agents that were waited for' '' "$(left)"

fake
under -N2 --ntasks-per-node=2 "$scratch/stubborn" &
started RANK 4
ready 4
order KILL
wait $!
equal 'all are killed' 'n1|0|9||| n1|1|9||| n2|2|9||| n2|3|9|||' \
	"$(heard_ends | paste -sd' ')"
in_goal "$(took 'ORDER KILL' DONE)" 2000 -N2 --ntasks-per-node=2 >why
in_time $? 'ranks that are stopped, or ignore SIGTERM, are killed within 2 s'
finish 'a step that was killed'

fake
rm -f got.* && : >got.child
chmod 666 got.child
under -N2 --ntasks-per-node=2 sh -c 'trap "echo got >got.$SLURM_PROCID; chmod 666 got.*
		exit 0" USR1
	sh -c "trap \"echo child >got.child\" USR1; touch ready.$SLURM_PROCID
		sleep 60; :" &
	while :; do sleep 0.1; done' &
chmod 777 .
started RANK 4
ready 4
order SIGNAL 10
wait $!
equal 'each rank gets a signal' 'got got got got' \
	"$(cat got.[0-3] 2>/dev/null | paste -sd' ')"
equal 'no process but the ranks gets the signal' '' "$(cat got.child)"
finish 'a step that was signalled'

fake
under -N2 --ntasks-per-node=2 "$scratch/stubborn" &
started RANK 4
ready 4
order DROP
before=$(now)
wait $!
in_goal $(($(now) - before)) 5000 -N2 --ntasks-per-node=2 >why
in_time $? 'a step whose supervisor is gone is killed within 5 s'
finish 'a step whose supervisor is gone'

fake
under -N2 --ntasks-per-node=2 "$scratch/stubborn" &
started RANK 4
ready 4
admin n2 ip link set eth0 down
before=$(now)
pids=$(logged RANK | sed -n 's/^n2|[0-9]*|\([0-9]*\)|.*/\1/p' | paste -sd,)
have_ended() { ! admin n2 ps -p "$1" -o stat= | grep -q '^[^Z]'; }
wait_until have_ended "$pids"
took=$(($(now) - before))
admin n2 ip link set eth0 up
order KILL
wait $!
in_goal "$took" 10000 -N2 --ntasks-per-node=2 >why
in_time $? 'a node whose link is cut ends its ranks within 10 s'
finish 'a step whose link was cut'

fake
under -N2 --ntasks-per-node=2 "$scratch/stubborn" &
started RANK 4
ready 4
# The parent of a rank: slurmstepd of the step before may not be gone yet.
pid=$(logged RANK | sed -n '1s/^[^|]*|[^|]*|\([0-9]*\)|.*/\1/p')
admin n1 sh -c "kill -KILL \$(ps -p $pid -o ppid=)"
started DONE 1
grep -q ORPHANED "$fake/log"
result $? 'when slurmstepd is gone, the agent says so'
# The kernel hangs up one that is stopped, as its session has no parent now.
equal 'an agent without slurmstepd kills its ranks' '9 9' \
	"$(logged END | cut -d'|' -f3 | sed 's/^1$/9/' | paste -sd' ')"
took=$(took ORPHANED DONE)
order KILL
started DONE 2
"$sandbox" exec --dir "$dir/cluster" scancel -u ddp
wait $!
in_goal "$took" 2000 -N2 --ntasks-per-node=2 >why
in_time $? 'an agent whose slurmstepd is gone kills its ranks within 2 s'
finish 'a step whose slurmstepd is gone'

# A suspended step must not look like one that is lost, to either side.
fake
under -N2 --ntasks-per-node=2 ./goes &
started RANK 4
admin n1 scontrol suspend "$(jobs | tail -n 1)"
sleep 12
grep -E 'CLOSED|BROKEN|END' "$fake/log" >why
result $((! $?)) 'a step that is suspended for 12 s stays connected'
admin n1 scontrol resume "$(jobs | tail -n 1)"
touch go
wait $!
equal 'a step that was suspended ends well' \
	'n1 n2' "$(heard DONE | paste -sd' ')"
finish 'a step that was suspended'

fake
under -N1 -n256 --overcommit sh -c 'test "$SLURM_PROCID" != 255 || exit 7
	sleep 1'
equal 'each of 256 tasks of a node is told' '256 255 1' \
	"$(heard RANK | wc -l) $(logged END | grep -c '|0|||$') $(logged END |
		grep -c '^n1|255|1792|||$')"
finish '256 tasks'

fake
under --ddp-gpus=off --ddp-cpus=off -N1 -n2 ./is_heard 2
equal 'there is an agent where nothing is placed, too' \
	'n1|0|0||| n1|1|0|||' "$(heard END | paste -sd' ')"
finish 'a step without placement'

if ! lacks_pmix 'ranks of a heterogeneous step'; then
	# srun may be tried again: the last try counts.
	fake
	call login "$scratch/settled" sh -c ': >"$0"; exec "$@"' "$fake/log" \
		"$scratch/under" "$told" \
		--mpi=pmix -N1 -n1 ./is_heard 3 : --mpi=pmix -N1 -n2 sh -c \
		'./is_heard 3; test "$SLURM_PROCID" != 2 || { sleep 1; exit 5; }'
	equal 'ranks of a heterogeneous step are those of the whole' \
		'0 1 2 1280' \
		"$(heard END | sort -t'|' -k2n | cut -d'|' -f2 |
			paste -sd' ') $(
			logged END | sed -n 's/^n2|2|\([0-9]*\)|.*/\1/p')"
	finish 'a heterogeneous step'
fi

for how in mute liar; do
	fake $how
	# shellcheck disable=SC2094 # a task reads what srun writes
	login "$scratch/under" "$told" -N1 -n1 sh -c \
		'until grep -q "cannot be reached" "$0"; do sleep 0.1; done' \
		$how.err 2>$how.err &
	eval "$how=\$!"
done
for how in mute liar; do
	eval "wait \$$how"
	status=$?
	grep 'slurm-ddp: on n1: .* cannot be reached (.*--ddp-supervise=off$' \
		$how.err >why
	equal "a supervisor that is $how is given up, in one sentence" '1 0' \
		"$(wc -l <why) $status"
done
equal 'nothing is left: supervisors that are given up' '' "$(left)"
for fake in "$scratch"/fake.*; do order QUIT; done
told=1:$(printf %064d 7)
under -N1 -n2 sh -c 'test $SLURM_PROCID = 0 || {
	echo "{\"message\": \"E: a\"}" >"$TORCHELASTIC_ERROR_FILE"; exit 1; }'
grep '^slurm-ddp: rank 1 failed first on n1, at .*: E: a$' err >why
result $? 'an agent without a supervisor says which rank failed first'

# By the fake, as by srun's real one, root is a user like any other here.
if test -w /dev/kmsg && test -r /dev/kmsg; then
	fake
	echo 'NVRM: Xid (PCI:ffff:03:00): 62, pid=1, name=a, an earlier one' \
		>/dev/kmsg
	"$sandbox" exec --dir "$dir/cluster" --root \
		"$scratch/under" "$told" -N1 -n2 sh -c '
		test $SLURM_PROCID = 0 || {
		echo "NVRM: Xid (PCI:ffff:03:00): 79, pid=$$, name=a, off the bus" \
			>/dev/kmsg; exit 1; }' >out 2>err
	equal 'an error of a GPU is told where the user may read it' \
		'n1|0|0||| n1|1|256||Xid 79 of GPU ffff:03:00 (off the bus)|' \
		"$(heard END | paste -sd' ')"
	finish 'a step with an error of a GPU'
else
	skip 'an error of a GPU is told' 'this machine has no /dev/kmsg'
fi

# A frozen process cannot be killed, like one that waits in the kernel.
freezer=$(awk '$3 == "cgroup" && $4 ~ /freezer/ { print $2; exit }' /proc/mounts)
if test -z "$freezer"; then
	skip 'a process that stays is told' 'there is no freezer of version 1'
else
	fake
	under -N1 -n2 sleep 300 &
	started RANK 2
	pid=$(logged RANK | sed -n 's/^n1|1|\([0-9]*\)|.*/\1/p')
	admin n1 sh -c "at=$freezer\$(sed -n 's/.*:freezer://p' /proc/$pid/cgroup)
		mkdir \$at/held && echo $pid >\$at/held/cgroup.procs &&
		echo FROZEN >\$at/held/freezer.state && echo \$at/held" >held
	is_frozen() { admin n1 grep -qx FROZEN "$(cat held)/freezer.state"; }
	wait_until is_frozen
	order KILL
	started STAYS 1
	logged STAYS | grep -qE "^n1\|1\|$pid\|[A-Z](, in .*)?$"
	result $? 'a process that cannot be killed is told'
	sleep 1.5
	equal 'once' 1 "$(logged STAYS | grep -c "|$pid|")"
	admin n1 sh -c "echo THAWED >$(cat held)/freezer.state"
	wait $!
	equal 'the end of a process that could not be killed is told' \
		'n1|0|9||| n1|1|9|||' \
		"$(heard_ends | paste -sd' ')"
	finish 'a process that stayed'
fi

cluster --nodes 2 --cpus 8 \
	--slurm ProctrackType=proctrack/linuxproc \
	--slurm TaskPlugin=task/affinity
fake
under -N2 --ntasks-per-node=2 "$scratch/stubborn" &
started RANK 4
ready 4
order KILL
wait $!
equal 'all are killed where Slurm uses no cgroups, too' '9 9 9 9' \
	"$(heard END | cut -d'|' -f3 | paste -sd' ')"
finish 'a step without cgroups'

cluster --nodes 1 --cpus 8 --cgroup ConstrainRAMSpace=yes \
	--slurm SelectTypeParameters=CR_CPU_Memory
fake
under -N1 -n2 --mem=200 /usr/bin/python3 -c '
import os, time
time.sleep(1)
if os.environ["SLURM_PROCID"] == "1":
    rows = [bytearray(50 << 20) for i in range(20)]
time.sleep(2)'
equal 'a rank whose memory was short is told apart' \
	'n1|0|0||| n1|1|9||out of memory|' "$(heard END | paste -sd' ')"
finish 'a step that was short of memory'
fake
under -N1 -n1 --mem=200 /usr/bin/python3 -c '
import os, sys
if os.fork() == 0:
    rows = [bytearray(50 << 20) for i in range(20)]
print("worker", os.wait()[1], flush=True)
sys.exit("bad batch")'
equal 'a rank that fails after a child ran out of memory is told apart' \
	'n1|0|256||a process ran out of memory|bad batch\n' \
	"$(heard END | paste -sd' ')"
finish 'a step of which a process was short of memory'
fake
under -N1 -n1 --mem=200 sh -c '/usr/bin/python3 -c "
rows = [bytearray(50 << 20) for i in range(20)]"; exit $?'
equal 'so is the program of a shell that is the rank' \
	'n1|0|35072||out of memory|' \
	"$(heard END | cut -d'|' -f1-5)|"
finish 'a step whose shell has run a program that was short of memory'
