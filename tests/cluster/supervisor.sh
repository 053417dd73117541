# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# srun's first process watches over the step: who failed first, how soon all
# ends, with which code, and that nothing is left.

cluster --nodes 3 --gpus 2 --cpus 8 --slurm SrunPortRange=21000-21060

# watched WORDS...: run the step; took is how long, in ms, from $since on, which
# somebody may have written meanwhile. What comes "later" has ended, too, then.
watched()
{
	since=$(date +%s%N)
	rm -f since
	call login "$@"
	now=$(date +%s%N)
	test -s since && since=$(cat since)
	took=$(((now - since) / 1000000))
	wait
}

# fresh: no rank has begun yet
fresh()
{
	rm -rf begun
	mkdir -m 777 begun
}
all_begun() { test "$(find begun -type f -size +0 | wc -l)" = 4; }

# later COMMAND...: when all ranks of the step have begun, which is when they
# have written a file in the folder begun, run this
later()
{
	fresh
	(
		wait_until all_begun || exit
		date +%s%N >since
		"$@"
	) >later.out 2>&1 &
}
begin='echo $PPID >begun/$SLURM_PROCID; '
# For a rank that waits for the others
all='until test "$(ls begun | wc -l)" -ge 4; do sleep 0.02; done; '
# For the rank that fails, just before it does
fails='date +%s%N >since; '

# ours: the lines of err that are the supervisor's, without what varies. Of a rank
# that was killed the agent guesses that it lacked memory if the kernel has just
# killed any process of the machine for that.
ours()
{
	grep '^slurm-ddp: ' err |
		sed 's/pid [0-9]*/pid P/; s/[0-9]*\.[0-9] s:/T:/
			s/T: perhaps out of memory, /T: /'
}

# remains: print the processes of a step on any node
remains()
{
	"$sandbox" exec --dir "$dir/cluster" ps -u 61000 -o pid=,args= |
		grep -v -e ' ps -u' -e timeout
}

# left: print what is left of a step on any node; nothing if nothing is
left()
{
	settle
	remains
}

# empties: wait until nothing is left; took counts on. A node that is cut off is not
# done with the job before it is there again.
empties()
{
	wait_until is_empty
	took=$((($(date +%s%N) - since) / 1000000))
}
is_empty() { test -z "$(remains)"; }

# ends MS STEP: the last step, which is called so, took no longer, and nothing is
# left
ends()
{
	left >left.out
	in_goal "$took" "$1" -N2 --gres=gpu:2 >why
	in_time $? "$2 ends within $(($1 / 1000)) s"
	equal "$2 leaves nothing" '' "$(cat left.out)"
}

# Each fault of rank 2, which has to be named, and its code to be srun's. The
# others wait, deaf to SIGTERM; rank 0 is stopped, rank 1 computes. Where all has
# ended and srun of 22.05 hangs, that is ended later: so there are three tries.
wait='test $RANK != 0 || kill -STOP $$; test $RANK != 1 || while :; do :; done
	sleep 1000'
while IFS='|' read -r fault wanted says; do
	for _ in 1 2 3; do
		fresh
		watched srun --ddp -N2 --gres=gpu:2 sh -c "trap '' TERM
			$begin test \$RANK = 2 && { $all $fails $fault; }
			$wait"
		test "$took" -gt 4000 || break
	done
	ours >why
	test "$(sed -n 1p why)" = "slurm-ddp: rank 2 failed first on n2 (GPU \
0, pid P) after T: $says" && test "$(tail -n 1 why)" = \
		'slurm-ddp: 3 other ranks ended because of it' &&
		test "$status" = "$wanted"
	result $? "a rank is named that does: $fault"
	ends 4000 "a step whose rank does: $fault"
	grep '^[a-z-]*: ' err | sed -n 1p >why
	grep -q '^slurm-ddp: rank 2 failed' why
	result $? "the verdict comes before what Slurm says: $fault"
done <<'END'
exit 3|3|exit code 3
kill -9 $$|137|killed by signal 9 (SIGKILL)
kill -11 $$|139|killed by signal 11 (SIGSEGV)
trap - TERM; kill -15 $$|143|killed by signal 15 (SIGTERM)
END

# On a busy machine the last of them may be too late for the verdict.
together='slurm-ddp: all 4 ranks failed in the same way, after'
for _ in 1 2 3; do
	rm -rf alike
	mkdir -m 777 alike
	watched srun --ddp -N2 --gres=gpu:2 sh -c 'echo >"alike/$RANK"
		until test "$(ls alike | wc -l)" = 4; do sleep 0.02; done
		echo "E: bad $RANK" >&2; exit 1'
	! ours | grep -q "^$together" || break
done
equal 'of ranks that fail at once by the same error none is the first' \
	"1 $together T: exit code 1" "$status $(ours | sed -n 1p)"
equal 'the error of ranks that fail together is said once' \
	1 "$(ours | grep -c ': | E: bad')"
# Of processes that have executed nothing newer kernels tell no user how they end.
printf '#!/bin/sh\r\ntrue\r\n' >from_windows
chmod 755 from_windows
while IFS='|' read -r name code why words; do
	for _ in 1 2 3; do
		# shellcheck disable=SC2086
		watched srun --ddp -N2 --gres=gpu:2 $words
		ours | grep -v '^slurm-ddp: rank [0-9] on ' >why
		! grep -q "^$together" why || break
	done
	equal "$name is the cause, of no rank alone, and told once" \
		"$code $together T: $why" "$status $(cat why)"
done <<END
a command that is not found|2|cannot execute no-such-command: No such file or directory, exit code 2|no-such-command
an end of a line as on Windows|2|cannot execute bad interpreter(/bin/sh?): No such file or directory, exit code 2|./from_windows
a log that cannot be written|1|exit code 1: --ddp-logs: cannot write /dev/null: Not a directory; give a folder that you can write to on every node|--ddp-logs=/dev/null true
END
watched srun --ddp -N2 --gres=gpu:2 true
test "$status" = 0 && ! unquiet >why
result $? 'a step that goes well prints nothing'
watched srun --ddp --ddp-supervise=off -N2 --gres=gpu:2 \
	sh -c 'test $RANK != 2 || exit 3; sleep 1000'
test "$status" -ne 3 && ! ours | grep -q failed
result $? 'a step that fails with --ddp-supervise=off has no verdict'
# What srun prints of a step that a rank has started has no step's number.
fresh
watched salloc -Q -N2 --ntasks-per-node=2 --gres=gpu:2 \
	srun --ddp --ddp-restarts=1 sh -c "
	test \$RESTART_COUNT = 0 || exit 0
	$begin $all"'
	case $RANK in
	0)	srun --overlap --ddp=off --mpi=none -N1 -n1 \
			sh -c "kill -KILL \$\$" || echo >begun/inner ;;
	1)	echo "srun: error: n2: task 2: Killed" >&2
		echo >begun/printed ;;
	3)	until test -e begun/inner && test -e begun/printed; do
			sleep 0.05
		done
		exit 9 ;;
	esac
	sleep 1000'
grep -q 'srun: error: n[12]: task 0: Killed' err
equal 'a rank is named, and the step starts again, after steps of ranks have failed' \
	'0 0 slurm-ddp: rank 3 failed first on n2 (GPU 1, pid P) after T: exit code 9 slurm-ddp: 3 other ranks ended because of it slurm-ddp: restart 1 of 1: on the same nodes' \
	"$? $status $(ours | paste -sd' ')"
watched srun --ddp -K0 -N2 --gres=gpu:2 \
	sh -c 'test $RANK != 2 || exit 3; sleep 1; echo lives'
equal '--kill-on-bad-exit=0 names it, and ends nobody' \
	'3 3 slurm-ddp: rank 2 failed first on n2 (GPU 0, pid P) after T: exit code 3' \
	"$status $(grep -c lives out) $(ours)"
if ! lacks_pmix 'a step of two components whose rank fails'; then
	watched srun --ddp -N2 --gres=gpu:1 sh -c \
		'test $RANK = 1 && exit 4; sleep 1000' : \
		-N1 --gres=gpu:1 sh -c 'sleep 1000'
	equal 'a failed rank ends a step of two components' \
		'4 slurm-ddp: rank 1 failed first' \
		"$status $(ours | sed -n '1s/ on .*//p')"
fi

# Time for the others to end by themselves, and no more
: >graced
saves='trap "echo saved; exit 0" TERM; '
for save in "$saves" 'trap "echo saved" TERM; '; do
	fresh
	watched srun --ddp --ddp-grace=15 --mpi=none -N2 --gres=gpu:2 \
		sh -c "$save$begin
		test \$RANK != 2 || { $all $fails exit 3; }
		while :; do sleep 0.1; done"
	equal "ranks are told with --ddp-grace=15 that do: $save" '3 3' \
		"$status $(grep -c saved out)"
	echo "$took ms" >why
	if test "$save" = "$saves"; then
		test "$took" -lt 15000
		in_time $? 'a step whose ranks have saved waits no longer'
	else
		test "$took" -ge 15000
		result $? 'ranks that have not ended get all of 15 s'
		in_goal "$took" 19000 -N2 --gres=gpu:2 >why
		in_time $? 'ranks that have not ended are killed within 19 s'
	fi
	ours | tail -n 1 >>graced
done
equal 'how many needed it, and how many more' \
	'slurm-ddp: --ddp-grace=15: 3 other ranks ended by themselves, none had to be killed
slurm-ddp: --ddp-grace=15: no other rank ended by itself, 3 had to be killed' \
	"$(cat graced)"

# Slurm's PMIx plugin kills a step whose rank ends without MPI_Finalize. With Open
# MPI 5 the others may abort before.
case $(mpirun --version 2>why | sed -n 's/.*(Open MPI) //p;1q'):$train in
[1-4].*:/*)
	rm -f log
	watched srun --ddp --ddp-grace=20 -N2 --gres=gpu:2 sh -c '
		test $RANK != 2 || {
			until test -s log; do sleep 0.1; done
			date +%s%N >since
			kill -KILL $$
		} &
		trap "" TERM
		exec ddp-train --data /usr/share/common-licenses/GPL-3 \
			--log log --steps 1000000'
	ours >why
	grep -qE '^slurm-ddp: --ddp-grace=20: (1 other rank was|[23] other ranks were) killed before that, and not by slurm-ddp; ' why &&
		test "$status" = 137
	result $? 'ranks to which Slurm leaves no time are told'
	echo "$took ms" >why
	test "$took" -lt 15000
	in_time $? 'a step that Slurm has killed does not wait for the grace' ;;
*)	skip 'ranks to which Slurm leaves no time' 'no ddp-train with Open MPI 4' ;;
esac

fresh
watched srun --ddp --ddp-grace=3 --mpi=none -N2 --gres=gpu:2 sh -c "$begin"'
	case $RANK in
	0)	until test "$(ls begun | wc -l)" = 4 &&
			test "$(pgrep -c -x ddp-agent)" = 2; do sleep 0.05; done
		while pkill -KILL -x ddp-agent || pgrep -x ddp-agent; do
			sleep 0.05
		done
		touch killed ;;
	2)	until test -e killed; do sleep 0.05; done
		date +%s%N >since
		exit 3 ;;
	esac
	sleep 1000'
rm -f killed
grep -q ': rank 2 has failed, as srun says, on a node that is not' err &&
	test "$status" -ne 0
result $? 'a failure of which no agent tells ends a step with --ddp-grace'
ends 15000 'a step with a failure of which no agent tells'

# Nobody is named where somebody ends the step.
# step: its number, as scancel wants it
step()
{
	"$sandbox" exec --dir "$dir/cluster" squeue -h -s -o %i |
		grep '\.0$' | head -n 1
}
end_step()
{
	"$sandbox" exec --dir "$dir/cluster" scancel "$@" "$(step)"
}
end_job()
{
	"$sandbox" exec --dir "$dir/cluster" scancel "$(step | sed 's/\..*//')"
}
for how in end_step 'end_step -s KILL' end_job; do
	# shellcheck disable=SC2086 # several words
	later $how
	watched srun --ddp -N2 --gres=gpu:2 sh -c "$begin exec sleep 1000"
	ours >why
	# By SIGKILL the agents go, too, some after they have named a rank.
	case $how in *KILL) : >why ;; esac
	! test -s why && test "$status" -gt 128
	result $? "$how: its exit code, and nobody is named"
	ends 10000 "a step that is ended by $how"
done

# pids [-o] NAME: of processes of that name, the first first; -o: the first
# alone. A process that the supervisor has just made has its name for a moment.
pids()
{
	"$sandbox" exec --dir "$dir/cluster" pgrep -x "$@"
}
strike()
{
	"$sandbox" exec --dir "$dir/cluster" kill "$@"
}
kill_supervisor()
{
	strike -KILL "$(pids -o ddp-supervisor)"
}
kill_srun()
{
	strike -KILL "$(pids -o srun)"
}
kill_both()
{
	strike -KILL "$(pids -o srun)" "$(pids -o ddp-supervisor)"
}
kill_all()
{
	# shellcheck disable=SC2046 # several words
	strike -KILL $(pids srun) $(pids ddp-supervisor)
}
for how in kill_supervisor kill_srun kill_both kill_all; do
	later $how
	watched srun --ddp -N2 --gres=gpu:2 \
		sh -c "$begin trap '' TERM; while :; do sleep 1; done"
	equal "$how: its exit code" 137 "$status"
	empties
	ends 5000 "a step after $how"
	# Where nothing is left of srun, Slurm still has the job.
	"$sandbox" exec --dir "$dir/cluster" scancel -u 61000
done
end_supervisor()
{
	strike -TERM "$(pids -o ddp-supervisor)"
}
later end_supervisor
watched srun --ddp -N2 --gres=gpu:2 sh -c "$begin trap '' TERM; sleep 1000"
equal 'SIGTERM to srun ends the step as without a supervisor' 137 "$status"
! ours | grep failed >why
result $? 'SIGTERM to srun names nobody'

# A node's slurmstepd, and a node
kill_slurmstepd()
{
	admin n2 kill -KILL "$(cat begun/2)"	# the parent of rank 2
}
cut_link()
{
	admin n2 ip link set eth0 down
}
while IFS='|' read -r how limit says; do
	later "$how"
	watched srun --ddp -N2 --gres=gpu:2 \
		sh -c "$begin trap '' TERM; while :; do sleep 1; done"
	equal "$how: the node is named" "1 slurm-ddp: node n2 was lost first, \
after T: $says slurm-ddp: 2 other ranks ended because of it" \
		"$status $(ours | sed 's/, after [0-9.]* s/, after T/' |
			paste -sd' ')"
	srun_took=$took
	empties
	remains >left.out
	# A step that is measured needs all nodes.
	admin n2 ip link set eth0 up
	wait_until bounded 20 srun -N3 true >wait.out 2>&1 </dev/null
	in_goal "$srun_took" "$limit" -N2 --gres=gpu:2 >why
	in_time $? "$how: srun ends within $((limit / 1000)) s"
	in_goal "$took" 12000 -N2 --gres=gpu:2 >why
	in_time $? "$how: all has ended within 12 s"
	equal "$how: nothing is left" '' "$(cat left.out)"
done <<'END'
kill_slurmstepd|10000|its slurmstepd has ended
cut_link|10000|it has not answered for 7 s
END

kill_agent()
{
	strike -KILL "$(pids -o ddp-agent)"
}
later kill_agent
watched srun --ddp -N2 --gres=gpu:2 sh -c "$begin"'
	until grep -q "is not watched any more" err; do sleep 0.05; done
	echo lives'
grep -q 'is not watched any more, as its ddp-agent has ended' err &&
	test "$status $(grep -c lives out)" = '0 4'
result $? 'a step goes on if an agent is killed'

# A report
fresh
watched srun --ddp --ddp-report=report.json -N2 --gres=gpu:2 sh -c \
	"$begin test \$RANK != 3 || { $all exit 9; }; sleep 1000"
cat >check.py <<'END'
import json
report = json.load(open("report.json"))
assert report["schema"] == 1 and report["exit_code"] == 9, report
verdict = report["verdict"]
assert (verdict["kind"], verdict["rank"], verdict["node"], verdict["gpus"],
        verdict["exit_code"]) == ("rank", 3, "n2", "1", 9), report
assert [rank["node"] for rank in report["ranks"]] == ["n1", "n1", "n2", "n2"]
assert [rank["rank"] for rank in report["ranks"]] == [0, 1, 2, 3], report
END
check 'a report' python3 check.py
call login srun --ddp --ddp-report=/nowhere/a -n1 echo runs
! test -s out && test "$status" = 1 && grep -q 'cannot write it' err
result $? 'a report that cannot be written is refused'
mkdir -m 1777 sticky
touch sticky/theirs
call login srun --ddp --ddp-report="$scratch/sticky/theirs" -n1 echo runs
! test -s out && test "$status" = 1 && grep -q 'cannot write it' err
result $? 'a report in the place of another user'\''s file is refused'

# SIGINT by kill(1): srun asks for a second one, and gets just what was sent.
cat >interrupt <<'END'
#!/bin/bash
# interrupt GROUP SECONDS... -- CMD...: with job control, so that CMD has a
# process group of its own; wait so long after each SIGINT to it, or to its
# first process
set -m
group=$1 waits=()
shift
while test "$1" != --; do waits+=("$1"); shift; done
shift
: >interrupted
"$@" >>interrupted 2>&1 &
until test "$(grep -c begun interrupted)" = 2; do sleep 0.05; done
for wait in "${waits[@]}"; do
	kill -INT -- "$group$!"
	sleep "$wait"
done
wait $!
END
chmod 755 interrupt
call login "$scratch/interrupt" - 0 -- srun --ddp -N2 -n2 sh -c 'echo begun
	until grep -q "one more" interrupted; do sleep 0.1; done; sleep 1'
equal 'one SIGINT to the process group leaves a step alone' '0 1' \
	"$status $(grep -c 'one more' interrupted)"
call login "$scratch/interrupt" - 0 -- srun --ddp -Q -N2 -n2 \
	sh -c 'echo begun; sleep 3; echo goes on'
equal 'a SIGINT leaves a step alone, also if srun says nothing of it' '0 2' \
	"$status $(grep -c 'goes on' interrupted)"
watched "$scratch/interrupt" '' 1.3 0 -- srun --ddp -N2 -n2 --ddp-grace=2 \
	sh -c 'echo begun; test $RANK = 1 || { sleep 3; exit 3; }; sleep 60'
test "$status" -ne 0
result $? 'a failure after two slow SIGINT is srun'\''s exit code'
echo "$took ms" >why
test "$took" -lt 40000
in_time $? 'a failure after two slow SIGINT ends the step'

# srun listens where slurm.conf says, and stdin, a terminal and its job control
# are as without.
later "$sandbox" exec --dir "$dir/cluster" ss -Hltnp
watched srun --ddp -N2 --gres=gpu:2 sh -c "$begin"'
	until test -s later.out; do sleep 0.05; done'
sed -n 's/.*[]*]:\([0-9]*\) .*ddp-supervisor.*/\1/p' later.out >why
test "$(cat why)" -ge 21000 && test "$(cat why)" -le 21060
result $? 'the supervisor listens within SrunPortRange'
cat >terminal.py <<'END'
import os, pty, re, select, signal, sys, time

pid, terminal = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = printed = ""

def wait(pattern, seconds=60):
    global seen, printed
    end = time.time() + seconds
    while not re.search(pattern, seen):
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            print("no %r in %r" % (pattern, seen))
            sys.exit(1)
        more = os.read(terminal, 4096).decode(errors="replace")
        seen += more
        printed += more
    found = re.search(pattern, seen)
    seen = seen[found.end():]
    return found[0]

def say(text):
    os.write(terminal, text.encode())

# A ^C that is typed before bash has made a job the foreground's is for bash.
def foreground():
    end = time.time() + 60
    while os.tcgetpgrp(terminal) == pid and time.time() < end:
        time.sleep(0.02)

say("PS1='ready> '; stty -echo\n")
wait("ready> ")
wait("ready> ")
say("srun --ddp -n1 sh -c 'echo be''gun; cat; sleep 1000'\n")
wait("begun")
say("typed\n")
wait("typed")
say("\x1a")
wait("Stopped")
say("jobs -l\n")
wait("Stopped.*srun --ddp")
say("fg\n")
wait("srun --ddp")
say("again\n")
wait("again")
# srun says it in another thread than the one that reads what is typed.
if "got SIGCONT" not in printed:
    wait("got SIGCONT")
time.sleep(0.5)
say("\x1a")
wait("Stopped")
if printed.count("got SIGCONT") != 1:
    print("not one SIGCONT in %r" % printed)
    sys.exit(1)
say("bg\n")
wait("srun --ddp")
say("echo ba''sh lives; fg\n")
wait("bash lives")
foreground()
say("\x03")
wait("one more within 1 sec")
# On a busy machine it may take srun longer to see the next one.
say("\x03")
while wait("one more within 1 sec|ready> ") != "ready> ":
    say("\x03")
say("echo code=$?=\n")
wait("code=(130|137)=")
say("srun --ddp --pty -n1 bash --norc --noprofile\n")
say("PS1='inside> '\n")
wait("inside> ")
say("tty; echo rank=$RANK=\n")
wait(r"/dev/pts/\S+\s+rank=0=")
say("sh -c 'echo sl\"\"eeps; exec sleep 1000'\n")
wait("sleeps")
say("\x03")
say("echo still=$?=\n")
wait("still=130=")
say("exit 5\n")
wait("ready> ")
say("echo code=$?=\n")
wait("code=5=")
say("stty -a | grep -o -- '-*icanon'\n")
wait("[^-]icanon")
END
settle
call bounded 300 python3 -u terminal.py
equal 'on a terminal: ^Z, fg, bg, ^C and --pty are as usual' 0 "$status"
equal 'a supervisor on a terminal leaves nothing' '' "$(left)"
