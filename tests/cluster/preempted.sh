# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The template of ddp-train that saves and is queued again: before its job's
# end, when another job takes its nodes, when it is requeued by hand, when the node
# of its script is lost. Each time it trains on where it was.

if test -z "$train"; then
	skip 'jobs that train on' 'ddp-train was not built'
	return
fi
# Slurm does not start a job again before its credential has expired, and, where
# nothing else happens, looks for jobs that may start every 60 s.
cluster --nodes 2 --gpus 2 --cpus 4 \
	--slurm PreemptType=preempt/partition_prio \
	--slurm PreemptMode=REQUEUE --slurm KillWait=30 \
	--slurm SlurmdTimeout=15 \
	--slurm SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_interval=2 \
	--slurm "AuthInfo=socket=$dir/cluster/run/munge/munge.sock,cred_expire=5"
admin n1 scontrol create PartitionName=low Nodes=ALL State=UP PriorityTier=1 \
	GraceTime=30
admin n1 scontrol create PartitionName=high Nodes=ALL State=UP \
	PriorityTier=10 PreemptMode=off
cp "$templates/ddp-train_requeue.sbatch" .
cp /usr/share/common-licenses/GPL-3 text
chmod 644 text
mkdir -m 777 job
steps=100000000

# in_job COMMAND...: as the user, in the folder of the jobs
in_job()
{
	bounded 60 sh -c 'cd job && exec "$@"' - "$@"
}

# submit OPTION... -- ARGUMENT...: the template, unchanged; its number in $job
submit()
{
	rm -rf job/*
	words=
	while test "$1" != --; do
		words="$words $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	job=$(in_job env PATH="$dir/cluster/bin:/usr/bin:$PATH" \
		sbatch --parsable -p low -o output $words \
		../ddp-train_requeue.sbatch --data ../text --width 16 \
		--context 8 --log log "$@" 2>submit.err)
	cat submit.err >why
	test -n "$job"
}

# comes SECONDS COMMAND...: wait until COMMAND succeeds
comes()
{
	deadline=$(($(date +%s) + $1))
	shift
	until "$@"; do
		test "$(date +%s)" -lt "$deadline" || return
		sleep 0.2
	done
}

# printed NUMBER WORDS: whether the output has WORDS so often
printed()
{
	test -e job/output && test "$(grep -c -- "$2" job/output)" -ge "$1"
}

# begins NUMBER: wait until the ranks train, in the NUMBER-th attempt
begins()
{
	comes 90 printed "$1" '^backend mpi' && comes 60 test -s job/log &&
		begins_at=$(wc -l <job/log) && comes 60 sh -c \
		'test "$(wc -l <job/log)" -gt "$0"' "$begins_at"
}

# trains_on [STATES]: the second attempt goes on from where the first has
# stopped, and the job is in one of these states (RUNNING)
trains_on()
{
	stopped=$(sed -n 's/^stopped after step \([0-9]*\) by.*/\1/p' \
		job/output | head -n 1)
	resumed=$(sed -n 's/^resumed from .*step-\([0-9]*\)$/\1/p' \
		job/output | head -n 1)
	cp job/output why
	wait_until has_state
	test "${stopped:-0}" -gt 0 && test "$stopped" = "$resumed" &&
		echo "$squeue_state" | grep -qxE "${1:-RUNNING}"
}
has_state() { squeue_state=$(in_job squeue -h -j "$job" -o %T); }

# is_gone: whether the job is not in the queue any more
is_gone()
{
	queued=$(bounded 20 squeue -h -j "$job" -o %T 2>/dev/null) &&
		test -z "$queued"
}

# cancel: end the job, and wait until its nodes are done
cancel()
{
	in_job scancel "$job"
	comes 60 is_gone
	settle
}

submit --time=3 --ddp-signal=USR1@120 -- --steps $steps
begins 1 && begins 2
in_time $? 'a job that saves before its end begins again'
cp job/output why
printed 1 '^exit code 75: requeued'
result $? 'the job says that it was queued again'
# On a busy machine 20 s may be over again by now, and it has saved once more.
check 'a job that saved before its end trains on' \
	trains_on 'RUNNING|COMPLETING|PENDING'
cancel

submit -- --steps $steps
begins 1
bounded 60 sbatch -p high -N2 -n2 --exclusive -o /dev/null --wrap \
	'sleep 3' >why 2>&1
begins 2
in_time $? 'a job whose nodes another one takes is queued again'
check 'a job whose nodes were taken trains on from what it saved' trains_on
cancel

# Here Slurm ends the batch script and its srun at once, and the ranks save with
# nobody to read what they say.
submit -- --steps $steps
begins 1
bounded 60 scontrol requeue "$job" >why 2>&1
begins 2
cp job/output why
printed 1 '^resumed from .*step-[1-9]'
result $? 'a job that is requeued by hand trains on from what it saved then'
cancel

# is_back: whether the job waits in the queue again
is_back()
{
	test "$(in_job squeue -h -j "$job" -o %T)" = PENDING
}

# All of n1 ends, which has the script: nothing in the job can start the step
# again. What its slurmstepds leave would be in the way; see spank_ddp(8).
submit -- --steps $steps --checkpoint-every 50
begins 1 && comes 60 printed 1 '^step [0-9]*  saved'
admin n1 sh -c 'kill -KILL $(pgrep --ns $$ --nslist uts -x "slurmd|slurmstepd") \
	$(pgrep --ns $$ --nslist uts -u 61000)' 2>why
comes 90 is_back
in_time $? 'a job whose script is on a node that is lost is queued again'
rm -r "$dir/cluster/spool/n1/"*pmix* "$dir/cluster/tmp/n1/spmix"*
admin n1 slurmd
begins 2
cp job/output why
printed 1 '^resumed from .*step-[1-9]'
result $? 'a job whose script was on a lost node trains on'
cancel

# Writes to its checkpoints wait while there is a file named hold, so that no
# save comes to its end within the partition's GraceTime.
if cc -O1 -shared -fPIC -o held.so "$top/tests/train/checkpoint_preload.c" \
	-ldl >why 2>&1; then
	mkdir held_bin
	cat >held_bin/ddp-train <<-END
	#!/bin/sh
	exec env SAVE_DIR=ddp-train.saved SAVE_HOLD="$PWD/hold" \
		LD_PRELOAD="$PWD/held.so" "$train" "\$@"
	END
	chmod 755 held_bin/ddp-train held_bin held.so
	admin n1 scontrol create PartitionName=brief Nodes=ALL State=UP \
		PriorityTier=1 GraceTime=3
	held_path=$PATH
	PATH=$PWD/held_bin:$PATH
	submit -p brief -- --steps $steps --checkpoint-every 50
	PATH=$held_path
	begins 1 && comes 60 printed 1 '^step [0-9]*  saved'
	: >hold
	bounded 60 sbatch -p high -N2 -n2 --exclusive -o /dev/null --wrap \
		'sleep 3' >why 2>&1
	comes 60 is_back
	in_time $? 'a job whose GraceTime is shorter than its save is queued again'
	# A rank may be killed before it says what it has saved.
	held_last=$(find job/ddp-train.saved -name manifest |
		sed -n 's,.*/step-\([0-9]*\)/manifest$,\1,p' | sort -n | tail -n 1)
	rm hold
	begins 2
	cp job/output why
	! grep -q '^stopped after' job/output &&
		printed 1 "^resumed from ddp-train.saved/step-$held_last\$" &&
		printed 1 '^ddp-train: the save of .* did not come to its end$'
	result $? 'a job whose save was cut off trains on from the one before'
	cancel
else
	skip 'a GraceTime shorter than a save' 'no cc'
fi

submit -- --steps 20
comes 60 is_gone
cp job/output why
test "$(grep -c '"loss"' job/log)" = 20 && ! printed 1 'requeued'
result $? 'a job that has no more to do is not queued again'

submit -- --steps 20 --seed x
comes 60 is_gone
cp job/output why
printed 1 "^ddp-train: --seed 'x'" && ! printed 1 requeued
result $? 'a job whose command line is wrong is not queued again'

submit -- --steps 20 --init ../none
comes 60 is_gone
equal 'a job that lacks a file is not started' 'cannot read --init '\
'../none: name a file that every node can read' "$(cat job/output)"
