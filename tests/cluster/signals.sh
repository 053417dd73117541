# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The signal before a job's end: --ddp-signal reaches the ranks alone, at its
# time; what they save then is complete. SIGNALS_SAVES is how often PyTorch
# saves (5), for 10 s each.

cluster --nodes 2 --gpus 2 --cpus 8 --slurm KillWait=20

as_root()
{
	"$sandbox" exec --dir "$dir/cluster" --root "$@"
}

# A program for tasks: rank and child each leave a file where they get USR1.
# The rank ends with 75, and says when that was.
cat >told <<'END'
#!/bin/sh
trap 'echo >>"$1/$RANK"; date +%s; sleep 1; exit 75' USR1
sh -c 'trap "echo >\"$0\"" USR1; while sleep 0.2; do :; done' "$1/$RANK.child" &
while sleep 0.2; do :; done
END
chmod 755 told

# told OPTION...: put the ranks' times into out, and the names of those that
# were told into why
told()
{
	rm -rf met
	mkdir -m 777 met
	call login srun --ddp -N2 --ntasks-per-node=2 "$@" ./told met
	ls met >why
}

# job_begin: puts into begin when the job named told has begun
job_begin()
{
	begin=$(bounded 20 squeue -h -t all -n told -o %S) &&
		test -n "$begin" && begin=$(date -d "$begin" +%s)
}

# A minute has 60 s, so this comes 20 s after the job's start. On a busy machine
# the shells, which it would end before, need some of them to start.
told -J told --time=1 --ddp-signal=USR1@40
equal 'each rank is told, and none of its children' '0 1 2 3' \
	"$(paste -sd' ' why)"
wait_until job_begin
sort -n out >why
test "$(sed 1q why)" -ge $((begin + 20)) && test "$(wc -l <why)" = 4 &&
	test "$(cat met/* | wc -l)" = 4
result $? 'the signal reaches each rank once, and not before 40 s of a minute are left'
test "$(tail -n 1 why)" -le $((begin + 30))
in_time $? 'each rank is told within 10 s then'
equal 'the exit code is what the ranks agreed on' 75 "$status"
saved='slurm-ddp: all 4 ranks ended with exit code 75: they have saved, and there is more to do'
equal 'the user reads why, and of no failure' \
	"slurm-ddp: the ranks get SIGUSR1, as their job ends in 40 s
$saved" "$(grep '^slurm-ddp' err)"

# Another signal may have told them, such as SIGTERM of a preemption.
call login salloc -Q -N2 --ntasks-per-node=2 srun --ddp --ddp-restarts=2 \
	--ddp-report=saved.json sh -c 'sleep 1; exit 75'
equal 'without the option, too, ranks that all have saved have not failed' \
	"75 $saved
slurm-ddp: the step is not started again: its ranks have saved, so that the job can be requeued" \
	"$status $(grep '^slurm-ddp' err)"
equal 'the report says that ranks have saved' 'saved' \
	"$(sed -n 's/^  "verdict": {"kind": "\([a-z]*\)"},$/\1/p' saved.json |
		head -n 1)"

cat >crash <<'END'
#!/bin/sh
trap 'test "$RANK" = 2 && kill -SEGV $$; sleep 30; exit 75' USR1
while sleep 0.2; do :; done
END
chmod 755 crash
call login srun --ddp -N2 --ntasks-per-node=2 --time=1 --ddp-signal=USR1@40 \
	./crash
grep -q '^slurm-ddp: rank 2 failed first on n2 .*SIGSEGV' err &&
	test "$status" = 139
result $? 'a rank that crashes while it saves is named'

call login srun --ddp -N1 -n1 --ddp-signal=USR1@90 sleep 3
test "$status" = 0 && test "$(grep -c . err)" = 1 &&
	grep -q '^slurm-ddp: --ddp-signal: no signal .* no time limit' err
result $? 'a job without a limit gets one sentence, and no signal'

# The question 5 s before the signal, which was due 15 s after the start.
runs()
{
	job=$(bounded 9 squeue -h -n longer -t R -o %A) && test -n "$job"
}
# On a busy machine its end may be moved too late.
for _ in 1 2 3; do
	rm -rf met
	mkdir -m 777 met
	before=$(date +%s)
	bounded 20 srun --ddp -n2 -N2 --time=1 --ddp-signal=USR1@45 -J longer \
		./told met >out 2>err &
	wait_until runs
	as_root scontrol update "jobid=$job" timelimit=5
	moved=$(date +%s)
	wait $!
	test $((moved - before)) -ge 10 || break
done
test -z "$(ls met)" && ! grep 'get SIGUSR1' err >why
result $? 'a job whose end is moved away is not told at the old time'

call login sbatch -W --ddp --signal=USR1@90 -n1 -o /dev/null --wrap true
grep -q 'slurm-ddp: --signal=USR1@90 goes to every process.*--ddp-signal=USR1@90' \
	err
result $? "sbatch --signal is told what it does to a rank's children"
call login sbatch -W --ddp --signal=B:USR1@90 -n1 -o /dev/null --wrap 'srun true'
! grep slurm-ddp err >why
result $? 'sbatch --signal=B: is told nothing'

# Slurm ends the script of a batch job that is cancelled, and its srun, at once.
cat >late <<'END'
#!/bin/sh
trap 'sleep 9; echo >"$1/$RANK"; exit 75' TERM
echo >"$1/begun.$RANK"
while sleep 0.2; do :; done
END
chmod 755 late
# begun COUNT: wait until so many of them have begun
begun()
{
	wait_until have_begun "$1"
}
have_begun() { test "$(find met -name 'begun.*' | wc -l)" = "$1"; }
rm -rf met
mkdir -m 777 met
bounded 20 sbatch -N2 --ntasks-per-node=2 -J late -o /dev/null \
	--wrap 'srun --ddp ./late met; sleep 1000' >why 2>&1
begun 4
bounded 20 scancel -n late >>why 2>&1
settle
equal 'ranks of a batch job that is cancelled have the time of KillWait' \
	'0 1 2 3' "$(find met -name '[0-9]' -printf '%f\n' | sort | paste -sd' ')"

# But not where srun alone ends: the ranks, deaf to SIGTERM, are killed.
rm -rf met
mkdir -m 777 met
bounded 20 sbatch -N2 --ntasks-per-node=2 -J alone -o /dev/null --wrap \
	'srun --ddp sh -c "trap : TERM; echo >met/begun.\$RANK
		while :; do sleep 0.2; done"; touch met/on; sleep 1000' \
	>why 2>&1
begun 4
as_root pkill -KILL -x ddp-supervisor
no_ranks() { ! as_root pgrep -f 'begun.[$]RANK'; }
wait_until no_ranks >>why
in_time $? 'ranks whose srun is killed are killed'
wait_until test -e met/on
{
	bounded 20 squeue -h -n alone -o %T
	ls met/on
} >why 2>&1
equal 'their job goes on' \
	'RUNNING met/on' "$(paste -sd' ' why)"
bounded 20 scancel -n alone

python=/usr/bin/python3
requeue=$templates/pytorch_requeue
if ! $python -c 'import torch.distributed' 2>why; then
	skip 'PyTorch saves' "no torch for $python"
	return
fi
# Debian 13's PyTorch has no libuv, and asks for it all the same.
saves()
{
	settle
	call bounded 120 env USE_LIBUV=0 srun --ddp -N2 --ntasks-per-node=2 \
		-c2 "$@"
}
# is_whole STEP: whether the checkpoint can be read and is of this step; it is
# then in the older form
is_whole()
{
	$python -c 'import sys, torch
state = torch.load(sys.argv[1])
assert state["step"] == int(sys.argv[2]), state["step"]
assert len(state["model"]) == 4 and len(state["optimizer"]) == 4
assert all(v["step"] == state["step"] for v in state["optimizer"].values())
# As the script wrote it before: it goes on from that, too.
state["optimizer"] = {"state": state["optimizer"], "param_groups": []}
torch.save(state, sys.argv[1])' checkpoint.pt "$1"
}
step=0 saves=${SIGNALS_SAVES:-5}
for try in $(seq "$saves"); do
	saves --time=1 --ddp-signal=USR1@5$((try % 5)) \
		$python "$requeue.py" 100000
	from=$(sed -n 's/^from step //p' out)
	saved=$(sed -n 's/^saved at step \([0-9]*\),.*/\1/p' out)
	if test "$status" != 75 || test "$from" != "$step" ||
		test "$saved" -le "$from" || test -e checkpoint.pt.new ||
		! is_whole "$saved" >why 2>&1 ||
		grep -E 'failed|Traceback|killed' err >why; then
		break
	fi
	step=$saved
done
test "$try $saved" = "$saves $step"
code=$?
name="PyTorch with data loaders saves $saves times of $saves, and goes on"
# It has 50 s from the signal to the end of its job, and a few to begin and block
# the signal, which ends it otherwise.
if grep -qE 'DUE TO TIME LIMIT|User defined signal 1' err; then
	in_time $code "$name"
else
	result $code "$name"
fi
