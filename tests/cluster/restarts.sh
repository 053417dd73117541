# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2034 # see run; the tasks' shells expand
# A step that has failed starts again: --ddp-restarts, --ddp-spares.

cluster --nodes 8 --gpus 2 --cpus 4

# Each rank leaves a file when it begins. FAILS is the number of attempts in
# which rank 1 fails, by a code that tells the attempt. Others save on SIGTERM.
cat >again <<'END'
#!/bin/sh
echo "attempt $RESTART_COUNT $TORCHELASTIC_RESTART_COUNT" \
	"of $TORCHELASTIC_MAX_RESTARTS: rank $RANK of $WORLD_SIZE on" \
	"$SLURMD_NODENAME, step $SLURM_STEP_ID"
trap 'touch "begun/saved.$RANK"; exit 0' TERM
date +%s%N >"begun/$RESTART_COUNT.$RANK"
! env | grep SLURM_DDP || exit 99
test "$RESTART_COUNT" -lt "${FAILS-0}" || exit 0
until test "$(ls begun | grep -c "^$RESTART_COUNT\.")" = "$WORLD_SIZE"; do
	sleep 0.02
done
while test "$RANK" != "${CULPRIT-1}"; do
	sleep 0.1
done
# srun drops what is on its way when a step is killed.
until test "$(cat out begun/text begun/logs/*/* 2>/dev/null |
	grep -ac "attempt $RESTART_COUNT .*step")" -ge "$WORLD_SIZE"; do
	sleep 0.05
done
date +%s%N >"begun/failed"
exit "7$RESTART_COUNT"
END
chmod 755 again

# fresh: nothing has begun yet
fresh()
{
	rm -rf begun
	mkdir -m 777 begun
}

# within ALLOCATION... -- SRUN...: a step in a job of its own
within()
{
	fresh
	words=
	while test "$1" != --; do
		words="$words $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	call login salloc -Q $words srun --ddp "$@"
}

# ours: what the supervisor has said of restarts
ours()
{
	grep -e '^slurm-ddp: restart' -e '^slurm-ddp: the step is not' err
}

# attempts NUMBER RANKS: whether out has so many, with all ranks in each
attempts()
{
	for attempt in $(seq 0 $(($1 - 1))); do
		test "$(grep -c "^attempt $attempt $attempt of " out)" \
			= "$2" || return
	done
	test "$(wc -l <out)" = $(($1 * $2))
}

# took_since FILE: puts into took how many ms after the time in it the last rank
# of the second attempt began; a minute if none did
took_since()
{
	took_begin=$(cat "$1" 2>/dev/null)
	took_end=$(cat begun/1.* 2>/dev/null | sort -n | tail -n 1)
	took=60000
	test -z "$took_begin" || test -z "$took_end" ||
		took=$(((took_end - took_begin) / 1000000))
}

export FAILS=0
within -N2 --ntasks-per-node=1 -- --ddp-restarts=3 ./again
ours >why
test "$status" = 0 && ! test -s why && attempts 1 2
result $? 'a step that ends well is not started again'

export FAILS=2
within -N2 --ntasks-per-node=2 -- --ddp-restarts=3 --ddp-report=begun/report \
	./again
cat >wanted <<'END'
slurm-ddp: restart 1 of 3: on the same nodes
slurm-ddp: restart 2 of 3: on the same nodes
END
ours | diff - wanted >why && test "$status" = 0 && attempts 3 4
result $? 'a step that fails twice ends well in its third attempt'
/usr/bin/python3 - >why 2>&1 <<'END'
import json
report = json.load(open("begun/report"))
assert [(a["step"], a["exit_code"], a["verdict"]["kind"], len(a["ranks"]))
        for a in report["attempts"]] == [
    (0, 70, "rank", 4), (1, 71, "rank", 4), (2, 0, "none", 4)], report
assert report["exit_code"] == 0 and report["step"] == 2, report
END
result $? 'the report has each attempt'

export FAILS=9
within -N3 --ntasks-per-node=1 -- --ddp-restarts=1 -N2 -n2 ./again
cat >wanted <<'END'
slurm-ddp: restart 1 of 1: on the same nodes
slurm-ddp: the step is not started again: all its restarts are used up
END
ours | diff - wanted >why && test "$status" = 71 && attempts 2 2 &&
	! grep ' on n3' out
result $? 'a step that always fails ends with the code of its last attempt'
# On a busy machine an attempt may last longer than that, and does not count.
for _ in 1 2 3; do
	within -N2 --ntasks-per-node=1 -- --ddp-restarts=9 ./again
	grep -qE 'failed first .* after [0-9]{2,}[.][0-9] s' err || break
done
ours >why
test "$status" = 72 && attempts 3 2 && test "$(wc -l <why)" = 3 &&
	grep -q 'within 10 s of its start three times in a row' why
result $? 'a step that fails at once three times in a row is not started again'

export FAILS=1
within -N8 --ntasks-per-node=2 -- --ddp-restarts=1 ./again
took_since begun/failed
cp err why
test "$status" = 0 && attempts 2 16
result $? 'a step of 8 nodes starts again'
in_goal "$took" 5000 -N8 --ntasks-per-node=2 >why
in_time $? 'on 8 nodes all new ranks run within 5 s after the failure'
echo "# on 8 nodes: $took ms"

within -N1 -n2 -- --ddp-restarts=1 --output=begun/text ./again
cp begun/text why
test "$status" = 0 && grep -q '^attempt 0' why && grep -q '^attempt 1' why
result $? 'a file of --output has both attempts'
within -N1 -n2 -- --ddp-restarts=1 --ddp-logs=begun/logs ./again
find begun/logs -name 'rank-00000[01].out' | sed 's/.*[.]\([01]\)/\1/' |
	sort >why
printf '%s\n' 0/rank-000000.out 0/rank-000001.out 1/rank-000000.out \
	1/rank-000001.out | cmp -s - why && test "$status" = 0
result $? '--ddp-logs has a file of each rank and attempt'
within -N2 -n4 -- --ddp-restarts=1 --ddp-grace=30 ./again
find begun -name 'saved.*' | sort >why
test "$status" = 0 && attempts 2 4 && test "$(wc -l <why)" = 3
result $? 'the other ranks save before a restart with --ddp-grace'
export CULPRIT=0
fresh
call bounded 60 script -qec \
	'salloc -Q -N1 -n1 srun --ddp --pty --ddp-restarts=1 ./again' /dev/null
unset CULPRIT
tr -d '\r\0' <out >why
test "$status" = 0 && grep -q 'attempt 0 .*rank 0 of 1' why &&
	grep -q '^slurm-ddp: restart 1 of 1: on the same nodes$' why &&
	grep -q '^attempt 1.*rank 0 of 1' why
result $? 'a step with --pty starts again'

python=/usr/bin/python3
if $python -c 'import torch.distributed' 2>why; then
	cat >trains <<END
#!/bin/sh
test "\$RANK.\$RESTART_COUNT" != 1.0 || (
	until test -s begun/checkpoint; do sleep 0.1; done
	kill -KILL \$\$
) &
exec env USE_LIBUV=0 $python $templates/pytorch_requeue.py 150 \
	begun/checkpoint 50
END
	chmod 755 trains
	# On a busy machine the rank may have trained to the end by then.
	for _ in 1 2 3; do
		fresh
		call bounded 300 salloc -Q -N2 --ntasks-per-node=2 -c2 \
			srun --ddp --ddp-restarts=1 ./trains
		! grep -q '^slurm-ddp: restart 1' err || break
	done
	cat out err >why
	test "$status" = 0 && grep -qE '^from step [1-9][0-9]*$' out &&
		grep -q '^saved at step 150,' out
	result $? 'PyTorch goes on from what it has saved'
else
	skip 'PyTorch goes on from what it has saved' "no torch for $python"
fi

# resumes NAME OPTION...: ddp-train; in the first of several attempts rank 1 is
# killed as soon as there is a checkpoint
cat >resumes <<'END'
#!/bin/sh
test "$RANK$RESTART_COUNT" != 10 || (
	until ls "$1"/step-*/manifest; do sleep 0.05; done >/dev/null 2>&1
	kill -KILL $$
) &
exec ddp-train --data text --width 16 --context 8 --deterministic \
	--steps 3000 --checkpoint "$1" --checkpoint-every 1000 --resume \
	--log "$1.log"
END
chmod 755 resumes
resumes()
{
	resumes_name=$1
	shift
	within -N2 --ntasks-per-node=2 -- "$@" ./resumes "begun/$resumes_name"
	sed 's/,"seconds".*//' "begun/$resumes_name.log" >"$resumes_name.bits"
	cat "begun/$resumes_name"/step-3000/shard-* >"$resumes_name.state"
}
if lacks_pmix 'ddp-train goes on from what it has saved'; then
	:
elif test -n "$train"; then
	cp /usr/share/common-licenses/GPL-3 text
	chmod 644 text
	patience=60
	resumes whole
	test "$status" = 0 && test "$(wc -l <whole.bits)" = 3000
	result $? 'ddp-train trains for 3000 steps'
	# As above, it may be killed too late.
	for _ in 1 2 3; do
		resumes killed --ddp-restarts=1
		ours >why
		! test -s why || grep -q '^resumed from .*-3000$' out || break
	done
	test "$status" = 0 && test "$(wc -l <why)" = 1 &&
		grep -q '^resumed from begun/killed/step-[12]000$' out
	result $? 'killed after a save, it goes on from that'
	check 'a run that was killed has the losses and norms of a whole one' \
		cmp whole.bits killed.bits
	test -s whole.state && cmp whole.state killed.state >why
	result $? 'a run that was killed has the last checkpoint of a whole one'
	patience=20
else
	skip 'ddp-train goes on from what it has saved' 'ddp-train was not built'
fi

# refused SENTENCE WORDS...
refused()
{
	sentence=$1
	shift
	call login "$@"
	grep -v '^salloc: ' err >why
	test "$status" = 1 && test "$(wc -l <why)" = 1 &&
		grep -qF "slurm-ddp: $sentence" why && ! test -s out
	result $? "refused: $*"
}
refused '--ddp-restarts: srun gives its' srun --ddp --ddp-restarts=1 true
set -- salloc -Q -N2 srun --ddp
refused '--ddp-restarts: is not for heterogeneous steps; leave it out' \
	"$@" --ddp-restarts=1 -n1 true : -n1 true
set -- salloc -Q -N1 : -N1 srun --ddp
refused '--ddp-restarts: is not for heterogeneous steps; leave it out' \
	"$@" --ddp-restarts=1 --het-group=0,1 true
refused '--ddp-spares: is not for heterogeneous jobs; leave it out' \
	"$@" --ddp-restarts=1 --ddp-spares=1 true
refused '--ddp-spares: SLURM_NTASKS=4 is not the same for each of 3 nodes' \
	salloc -Q -N3 -n4 srun --ddp --ddp-restarts=1 --ddp-spares=1 true
set -- salloc -Q -N2 srun --ddp
refused '--ddp-restarts: needs the supervisor; leave out --ddp-supervise=off' \
	"$@" --ddp-restarts=1 --ddp-supervise=off true
refused '--ddp-restarts: a step that a fail' "$@" --ddp-restarts=1 -K0 true
refused '--ddp-restarts=-1: not a number from 0 to 1000' \
	"$@" --ddp-restarts=-1 true
refused '--ddp-spares: keeps nodes back for a re' "$@" --ddp-spares=1 true
refused '--ddp-spares=2: too few' "$@" --ddp-restarts=1 --ddp-spares=2 true
set -- salloc -Q -N2 --no-kill --ddp --ddp-restarts=1 --ddp-spares=1 srun
refused '--ddp-spares=1: too few nodes in the job for it: 2, of which' "$@" -N2 true
for option in -N1 '-N2 --ddp-spares=0'; do
	# shellcheck disable=SC2086 # several words
	call login "$@" $option hostname
	equal "a job's spares, and a step with $option" "0 ${option%% *}" \
		"$status -N$(sort -u out | wc -l)"
done
set -- salloc -Q -N2 srun --ddp
refused '--ddp-spares: chooses the nodes of the step, as --relative does' \
	"$@" --ddp-restarts=1 --ddp-spares=1 -r1 true
refused '--ddp-spares: a restart without a lost node needs --overlap, which' \
	"$@" --ddp-restarts=1 --ddp-spares=1 --exclusive true

# in_cluster COMMAND...: as the user
in_cluster()
{
	"$sandbox" exec --dir "$dir/cluster" "$@"
}

# begun NUMBER: wait until so many ranks have begun
begun()
{
	wait_until have_begun "$1"
}
have_begun() { test "$(find begun -type f | wc -l)" = "$1"; }

# ended_by NAME COMMAND...: a step that this ends is not started again
ended_by()
{
	ended_name=$1
	shift
	fresh
	(
		begun 2
		"$@"
	) >later.out 2>&1 &
	within -N2 --ntasks-per-node=1 -- --ddp-restarts=3 sh -c \
		'date >begun/$RANK; exec sleep 60'
	wait $!
	ours >why
	test "$status" != 0 && ! test -s why &&
		test "$(find begun -type f | wc -l)" = 2
	result $? "a step is not started again after $ended_name"
}
ended_by scancel in_cluster sh -c \
	'scancel "$(squeue -hs -o %i | grep "\.0$")"'
ended_by 'SIGTERM to srun' in_cluster sh -c \
	'kill -TERM "$(pgrep -ox ddp-supervisor)"'
ended_by 'Ctrl-C twice' in_cluster sh -c \
	'for i in 1 2; do kill -INT $(ps -C ddp-supervisor,ddp-mirror,srun -o pid=)
	sleep 0.5; done'
ended_by 'the end of its job' in_cluster scancel -u ddp

# Slurm kills the agents together with the ranks then, mostly before they could
# tell of the one that has called it. What Open MPI 4 says of that can come too
# late, and Open MPI 5 says nothing under srun: so the rank itself says it, in
# time.
if lacks_pmix 'a rank that calls MPI_Abort is named'; then
	:
elif command -v mpicc >/dev/null; then
	cat >aborts.c <<-'END'
	#include <mpi.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>

	int main(int argc, char **argv)
	{
		int rank, fails = atoi(getenv("RESTART_COUNT")) < 2;

		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 2 && fails && argc == 1) {
			fprintf(stderr, "MPI_ABORT was invoked on rank %d in "
				"communicator MPI_COMM_WORLD\n", rank);
			usleep(500000);
			MPI_Abort(MPI_COMM_WORLD, 7);
		}
		fclose(fopen(argc == 1 ? "begun/all" : argv[1], "w"));
		while (fails)
			pause();
		return MPI_Finalize();
	}
	END
	mpicc -o aborts aborts.c >why 2>&1
	# On a busy machine an agent may first tell of a rank that Slurm killed.
	for _ in 1 2 3 4; do
		within -N2 --ntasks-per-node=2 -- --ddp-restarts=2 ./aborts
		named='^slurm-ddp: rank 2 failed first on n2 .*exit code 7$'
		cp err why
		test "$(grep -c "$named" err)" != 2 || break
	done
	test "$status" = 0 && test "$(grep -c "$named" err)" = 2 &&
		test "$(ours | wc -l)" = 2
	result $? 'a rank that calls MPI_Abort is named, and all start again'
	fresh
	(
		begun 4
		in_cluster sh -c \
			'scancel "$(squeue -hs -o %i | grep "[.]0$")"'
	) >later.out 2>&1 &
	call login salloc -Q -N2 --ntasks-per-node=2 srun --ddp \
		--ddp-restarts=2 sh -c 'exec ./aborts "begun/$RANK"'
	wait $!
	grep '^slurm-ddp: ' err >why
	test $? = 1 && test "$status" -gt 128
	result $? 'no rank is named if scancel ends MPI ranks'
else
	skip 'a rank that calls MPI_Abort is named' 'no mpicc'
fi

cat >once <<'END'
#!/bin/sh
test "$RESTART_COUNT" = 0 || exec sleep 60
exec ./again
END
chmod 755 once

# between NAME COMMAND...: this comes when the first attempt is over
between()
{
	between_name=$1
	shift
	: >err
	(
		# Before the second attempt begins, which is soon
		timeout 60 sh -c 'until grep -q "^slurm-ddp: restart 1" err
			do sleep 0.02; done'
		"$@"
	) >later.out 2>&1 &
	within -N2 --ntasks-per-node=1 -- --ddp-restarts=3 ./once
	wait $!
	grep slurm-ddp err >why
	cat later.out >>why
	test "$status" != 0 && test "$(ours)" = \
		'slurm-ddp: restart 1 of 3: on the same nodes' &&
		! grep -q '^attempt 2' out
	result $? "$between_name between two attempts ends it"
}
export FAILS=9
between SIGTERM in_cluster sh -c 'kill $(ps -C ddp-supervisor -o pid=)'
between 'Ctrl-C twice' in_cluster sh -c \
	'for i in 1 2; do kill -INT $(ps -C ddp-supervisor,ddp-mirror,srun -o pid=)
	sleep 0.3; done'
between 'scancel of the job' in_cluster scancel -u ddp

cat >waits <<'END'
#!/bin/sh
date +%s%N >"begun/$RESTART_COUNT.$RANK"
echo "attempt $RESTART_COUNT $RESTART_COUNT of 1: $RANK of $WORLD_SIZE on" \
	"$SLURMD_NODENAME, GPUs $CUDA_VISIBLE_DEVICES"
test "$RESTART_COUNT" -gt 0 || exec sleep 60
END
chmod 755 waits

within -N2 -n4 -- --ddp-restarts=1 --ddp-watchdog=5 ./waits
ours >why
test "$status" = 0 && attempts 2 4 && test "$(cat why)" = \
	'slurm-ddp: restart 1 of 1: on the same nodes'
result $? 'a step that hangs starts again'

have_printed() { test "$(grep -c '^attempt 0' out)" -ge 4; }

# loses WITHIN...: the same, and the link of n2 is cut when what 4 ranks print
# has come from there
loses()
{
	fresh
	(
		begun 4
		wait_until have_printed
		date +%s%N >cut.at
		"$sandbox" exec --dir "$dir/cluster" --root --node n2 \
			ip link set eth0 down
	) >later.out 2>&1 &
	within "$@"
	wait $!
	"$sandbox" exec --dir "$dir/cluster" --root --node n2 \
		ip link set eth0 up
}

# Meanwhile a step reaches its time limit, elsewhere.
bounded 150 salloc -Q -n2 -w n5 srun --ddp --time=1 --ddp-restarts=1 \
	sh -c 'echo; exec sleep 120' >limit.out 2>limit.err &
limit=$!

loses -N3 --no-kill --ntasks-per-node=2 --gres=gpu:2 -- --ddp-restarts=1 \
	--ddp-spares=1 ./waits
took_since cut.at
cat >wanted <<'END'
slurm-ddp: restart 1 of 1: n3 in place of n2, which was lost
END
ours | diff - wanted >why && test "$status" = 0 && attempts 2 4 &&
	test "$(grep -c '^attempt 0.* on n[12], GPUs 0,1' out)" = 4 &&
	test "$(grep -c '^attempt 1.* on n[13], GPUs 0,1' out)" = 4
result $? "the place of a lost node is taken by a spare"
in_goal "$took" 15000 -N3 --ntasks-per-node=2 >why
in_time $? 'a step with a spare runs within 15 s'
echo "# a lost node: $took ms"

loses -N2 --no-kill --ntasks-per-node=2 -- --ddp-restarts=1 ./waits
ours >why
test "$status" = 1 && test "$(wc -l <out)" = 4 && test "$(wc -l <why)" = 1 &&
	grep -q 'not started again: a node was lost, and no spare' why
result $? 'the loss of a node ends a step without a spare'

began() { test "$(grep -c '^from step' spare/output)" = "$1"; }

# The template with a spare, unchanged
if $python -c 'import torch.distributed' 2>why; then
	mkdir -m 777 spare
	cp "$templates/pytorch_spare.sbatch" "$templates/pytorch_requeue.py" \
		spare
	runs() { bounded 20 srun -w n1,n2,n3 true; }
	wait_until runs 2>wait.out
	settle
	bounded 20 env USE_LIBUV=0 sh -c 'cd spare && exec sbatch -w n1,n2,n3 \
		-J spare -o output pytorch_spare.sbatch 100000 saved 20' >why 2>&1
	wait_until test -e spare/saved
	"$sandbox" exec --dir "$dir/cluster" --root --node n2 \
		ip link set eth0 down
	wait_until began 2
	cp spare/output why
	grep -qx 'slurm-ddp: restart 1 of 3: n3 in place of n2, which was lost' \
		why && began 2 && grep -q '^from step [1-9]' why
	result $? 'the template with a spare goes on without a node that is lost'
	"$sandbox" exec --dir "$dir/cluster" --root --node n2 \
		ip link set eth0 up
	bounded 20 scancel -n spare
	wait_until runs 2>wait.out
else
	skip 'the template with a spare' "no torch for $python"
fi

# n2 is lost when nobody waits for it: slurmd ends, and then rank 0 fails.
cat >stops <<'END'
#!/bin/sh
date >"begun/$RESTART_COUNT.$RANK"
echo "attempt $RESTART_COUNT rank $RANK on $SLURMD_NODENAME"
test "$RESTART_COUNT" = 0 || exit 0
until test -e begun/go; do sleep 0.1; done
test "$RANK" != 0 || exit 3
exec sleep 60
END
chmod 755 stops
(
	begun 2
	"$sandbox" exec --dir "$dir/cluster" --root kill -KILL \
		"$(cat "$dir/cluster/run/slurmd.n2.pid")"
	in_cluster touch begun/go
) >later.out 2>&1 &
within --no-kill -N3 --ntasks-per-node=1 -w n1,n2,n3 -- --ddp-restarts=2 \
	--ddp-spares=1 ./stops
wait $!
cat later.out out err >why
test "$status" = 0 && grep -q '^attempt 2 rank 1 on n3$' out &&
	grep -q '^slurm-ddp: node n2 was lost first, .* not start tasks' err &&
	! grep scancel err && test "$(ours | tail -n 1)" = \
	'slurm-ddp: restart 2 of 2: n3 in place of n2, which was lost'
result $? 'a spare takes the place of a node that cannot start an attempt'
"$sandbox" exec --dir "$dir/cluster" --root --node n2 slurmd
wait_until bounded 20 srun -w n2 true >wait.out 2>&1

# One job for each way in which Slurm learns of --no-kill, and what is said of
# it: by sbatch, and by srun in the job.
cat >kept.sbatch <<'END'
#!/bin/sh
#SBATCH --no-kill
srun --ddp --ddp-restarts=1 --ddp-spares=1 true
END
sed /SBATCH/d kept.sbatch >unkept.sbatch
sed 's/ --ddp-.* / /' unkept.sbatch >handed.sbatch
ends=': when Slurm gives a lost node up, it ends'
while IFS='|' read -r name words file first later; do
	fresh
	# shellcheck disable=SC2086 # words
	call login ./sbatch_wait -N2 -o begun/text $words $file.sbatch
	cat begun/text err >why
	test "$status" = 0 &&
		test "$(grep -o '[a-z]*: slurm-ddp: .*' err)" = \
		"${first:+sbatch: slurm-ddp: --ddp-spares$ends $first}" &&
		test "$(sed 's/job [0-9]*/job N/; s/; give sbatch .*//' \
			begun/text)" = \
		"${later:+srun: slurm-ddp: --ddp-spares$ends $later}"
	result $? "--no-kill: $name"
done <<'END'
an #SBATCH line has it||kept||
sbatch has it|--ddp --no-kill|unkept||
sbatch does not have it|--ddp|unkept||job N, unless that has --no-kill
nobody knows|--no-kill|unkept||job N, unless that has --no-kill
sbatch says it once|--ddp --ddp-restarts=1 --ddp-spares=1|handed|the job; add --no-kill|
END
within --ddp --no-kill -N2 -- --ddp-restarts=1 --ddp-spares=1 true
cp err why
test "$status" = 0 && ! test -s why
result $? '--no-kill: salloc has it'

# What a job says of its steps is not for those that their tasks start.
cat >outer <<'END'
#!/bin/sh
echo outer
env | sed -n 's/=.*//; /SPANK_OPTION/p; /SLURM_DDP/p'
exec srun --overlap -N1 -n1 --mpi=none sh -c "echo inner; exit 5"
END
chmod 755 outer
lacks_pmix 'a step within a task does not inherit the watch over its own' || {
fresh
call login ./sbatch_wait --ddp --ddp-restarts=1 --ddp-spares=1 --no-kill \
	--ddp-check --ddp-watchdog=60 --ddp-grace=5 --ddp-signal=USR1@20 \
	--ddp-logs=begun/logs --ddp-show=0 --ddp-report=begun/report \
	--ddp-port=23456 -t 5 -N2 --ntasks-per-node=1 -o begun/text \
	--wrap 'srun -N1 -n1 ./outer'
cp begun/text why
test "$status" = 5 && test "$(grep -c '^slurm-ddp: restart' why)" = 1 &&
	test "$(grep -c 'preflight passed' why)" = 1 &&
	test "$(cat begun/logs/*/*.out | sort |
		uniq -c | tr -s ' ')" = ' 2 SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp
 2 SLURM_SPANK__SLURM_SPANK_OPTION_ddp_ddp_port
 2 inner
 2 outer'
result $? 'a step within a task does not inherit the watch over its own'
}

wait $limit
limited=$?
cat limit.err >why
test "$limited" != 0 && ! grep -q '^slurm-ddp: restart' why &&
	grep -q 'DUE TO TIME LIMIT' why && test "$(wc -l <limit.out)" = 2
result $? 'a step is not started again after its time limit'
