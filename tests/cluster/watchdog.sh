# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2034 # see run; the tasks' shells expand
# --ddp-watchdog: a step in which nobody makes progress is ended, and the rank
# that holds the others up is named; one that is quiet or suspended goes on.
# WATCHDOG_HANGS is how often PyTorch hangs (1), in each way.

cluster --nodes 2 --gpus 2 --cpus 8

# hangs RANK WHY WORDS...: run the step, which leaves the time at which it hangs
# in $scratch/since; RANK is named for WHY
hangs()
{
	rank=$1 says=$2
	shift 2
	rm -f since
	call login srun --ddp -N2 --ntasks-per-node=2 "$@"
	test -s since || echo 0 >since	# it did not come so far
	took=$((($(date +%s%N) - $(cat since)) / 1000000))
	sed -n 's/^\(slurm-ddp: no rank has.*\)/\1/p' err >why
	test "$(sed 's/.*step ends; //' why)" = \
		"rank $rank holds the others up: $says" && test "$status" = 124
	result $? "${name:-$*}: rank $rank is named"
	name=
}

# soon SECONDS: it was named so long, and 5 s, after it hung
soon()
{
	in_goal "$took" $((1000 * $1 + 5000)) -N2 --ntasks-per-node=2 >why
	in_time $? "rank $rank is named within $(($1 + 5)) s"
}

# goes_on NAME WORDS...: the step ends well, without a word
goes_on()
{
	name=$1
	shift
	call login srun --ddp --ddp-watchdog=5 -N2 --ntasks-per-node=2 "$@"
	grep '^slurm-ddp' err >why
	test $? = 1 && test "$status" = 0
	result $? "$name"
	name=
}

stamp='date +%s%N >since; '
name='a shell that reads for ever, and others that sleep' hangs 1 \
	'waiting elsewhere than the others' --ddp-watchdog=5 \
	--ddp-report=report.json sh -c "$stamp"'mkfifo $RANK.fifo
	test $RANK = 1 && read line <>$RANK.fifo; sleep 1000; exit'
soon 5
cat >check.py <<'END'
import json
report = json.load(open("report.json"))
verdict = report["verdict"]
assert report["exit_code"] == 124, report
assert 5 <= verdict.pop("after_s") <= 60, report
assert verdict == {"kind": "hang", "seconds": 5, "why": "place",
                   "lagging": [1]}, report
rank = report["ranks"][1]
assert rank["state"] == "S" and rank["heartbeats"] == 0, report
assert 5 <= rank["idle_s"] <= 60 and rank["waits_in"], report
END
check 'the report says it, too' python3 check.py
rm -f ./*.fifo

# A rank whose heart has beaten, and that is busy for ever
name='a busy loop behind heartbeats' hangs 2 'behind in heartbeats' \
	--ddp-watchdog=5 sh -c "$stamp"'
	test $RANK = 2 || printf "\2\0\0\0\0\0\0\0" >$DDP_HEARTBEAT_FILE
	test $RANK = 2 && printf "\1\0\0\0\0\0\0\0" >$DDP_HEARTBEAT_FILE
	test $RANK = 2 && while :; do :; done
	sleep 1000; exit'
equal 'no file is left' '' "$(rank_files)"

# Stacks, where the program that reads rank 0's does not come to an end: that must
# not cost rank 1, on the same node, its own. On a machine that is too busy to read
# any in 3 s the step runs once more.
stacks()
{
	cat >waits.c <<'END'
#include <poll.h>
void sum_gradients(void) { poll(0, 0, -1); }
int main(void) { sum_gradients(); return 0; }
END
	cat >waits.py <<'END'
import os
ends = os.pipe()
def read_batch():
    os.read(ends[0], 1)
read_batch()
END
	mkdir -p fakes
	cat >fakes/eu-stack <<END
#!/bin/sh
# Not elfutils': the real one for all processes but rank 0's
grep -qzx RANK=0 "/proc/\$5/environ" && exec sleep 60
exec $real "\$@"
END
	cat >fakes/py-spy <<'END'
#!/bin/sh
# No real one: it reads nothing, and has one stack for all
printf 'Process %s: a fake\n\nThread %s (idle): "MainThread"\n' "$4" "$4"
printf '    %s\n' 'read_batch (waits.py:4)' '<module> (waits.py:5)'
END
	cat >stacks.py <<'END'
import json
ranks = json.load(open("report.json"))["ranks"]
stacks = [rank["stack"] for rank in ranks]
assert stacks[0] == [], stacks
assert stacks[1] == ["read_batch (waits.py:4)",
                     "<module> (waits.py:5)"], stacks
for stack in stacks[2:]:
    assert "sum_gradients" in stack, stacks
END
	chmod 755 fakes/*
	${cc:-cc} -o waits waits.c || exit 1
	for try in 1 2 3; do
		call login env PATH="$scratch/fakes:$PATH" srun --ddp -N2 \
			--ntasks-per-node=2 --ddp-watchdog=5 \
			--ddp-report=report.json sh -c \
			'test $RANK = 1 || exec ./waits
			exec /usr/bin/python3 waits.py'
		python3 stacks.py >why 2>&1 && break
	done
	check 'the report has the stack of each rank but one' \
		python3 stacks.py
	grep -E '^slurm-ddp: (rank 1: \| |ranks 2-3: )' err |
		sed 's/ sleeping in [^,]*,//' >why
	equal 'the stacks are on standard error' \
		"slurm-ddp: rank 1: | read_batch (waits.py:4)
slurm-ddp: rank 1: | <module> (waits.py:5)
slurm-ddp: ranks 2-3: sum_gradients" "$(cat why)"
}
real=$(command -v eu-stack)
cc=$(sed -n 's/^CC = //p' "$build/config.mak")
if test -z "$real"; then
	skip 'stacks' 'no eu-stack here'
elif grep -qsv '^0$' /proc/sys/kernel/yama/ptrace_scope; then
	skip 'stacks' 'kernel.yama.ptrace_scope forbids to trace'
else
	stacks
fi

goes_on 'one rank sleeps, and the others print' sh -c \
	'test $RANK = 3 && exec sleep 9
	for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 1; done'
goes_on 'one rank computes without a word, and the others wait' sh -c \
	'test $RANK = 3 || exec sleep 9; timeout 9 sh -c "while :; do :; done"
	true'
# Each gets about one in a hundred of a CPU; its rivals are of its own session,
# as a kernel that groups by session gives each session as much.
goes_on 'all ranks compute on nodes that are too busy' sh -c '
	for i in 1 2 3 4; do (timeout 12 sh -c "while :; do :; done" &); done
	nice -n 15 timeout 11 sh -c "while :; do :; done"; true'
call login sh -c 'srun --ddp --ddp-watchdog=5 -n1 \
	sh -c "yes | head -c 3000000" | { sleep 12; wc -c; }'
equal 'nobody reads the output for a while' '0 3000000 ' \
	"$status $(cat out) $(cat err)"

# Suspended for longer than the watchdog waits
bounded 60 srun --ddp --ddp-watchdog=5 -J paused -N2 -n2 \
	sh -c 'for i in 1 2 3 4 5 6; do echo $i; sleep 1; done' >out 2>err &
runs()
{
	job=$(bounded 9 squeue -h -n paused -t R -o %A) && test -n "$job" &&
		test -s out
}
wait_until runs
admin n1 scontrol suspend "$job"
sleep 12
admin n1 scontrol resume "$job"
wait $!
status=$?
grep '^slurm-ddp' err >why
test $? = 1 && test "$status $(wc -l <out)" = '0 12'
result $? 'a step that is suspended goes on'

# Two steps at once, of which one hangs
for try in a b; do
	bounded 60 srun --ddp --ddp-watchdog=6 -N2 -n2 -c2 sh -c \
		'echo $NCCL_RAS_ADDR
		test $0 = a && exec sleep 1000
		for i in 1 2 3 4 5 6 7 8 9; do echo; sleep 1; done' \
		$try >$try.out 2>$try.err &
	eval "$try=$!"
done
wait "$a"
first=$?
wait "$b"
equal 'of two steps the one that hangs is ended' '124 0' "$first $?"
sort -u a.out b.out | grep -c '^localhost:[0-9]*$' >why
test "$(cat why)" = 2 && test "$(sort -u b.out | grep -c localhost)" = 1
result $? 'NCCL has a port of its own in each of two steps'
call login srun --ddp -n1 sh -c 'echo ${NCCL_RAS_ADDR-none}' \
	'${DDP_HEARTBEAT_FILE-none}'
equal 'a step without a watchdog has no port for NCCL' none "$(cat out)"
refuses '--ddp-watchdog=0: not a time' srun --ddp --ddp-watchdog=0 -n1 true

# Ranks that use a CPU, which proves nothing where a GPU's driver is loaded: what
# they have launched is known from NCCL's RAS, here a fake of it.
mkdir -m 777 ras.rises ras.stands
fake_ras=$top/tests/fakes/fake_ras.py
goes_on 'silent ranks that launch operations of NCCL' --ddp-watchdog=8 \
	/usr/bin/python3 "$fake_ras" ras.rises rises 25
name='ranks that launch nothing, one less than the others' hangs 2 \
	"behind in NCCL's operations" --ddp-watchdog=8 sh -c '
	test $RANK = 2 && set -- "$@" 99 || set -- "$@" 100
	exec /usr/bin/python3 "$0" "$@"' "$fake_ras" ras.stands
grep -c '^slurm-ddp: rank 2 on .* heartbeats; NCCL: 1 operation behind$' \
	err >why
equal 'the report says how far a rank is behind' 1 "$(cat why)"

# ddp-train over MPI, whose ranks wait by looking again and again
if lacks_pmix 'ddp-train, stopped'; then
	:
elif test -n "$train"; then
	cp /usr/share/common-licenses/GPL-3 text
	rm -f log
	name='ddp-train, stopped' hangs 2 stopped --ddp-watchdog=5 sh -c '
		test $RANK -ne 2 || {
			until test -s log; do sleep 0.1; done
			date +%s%N >since
			kill -STOP $$
		} &
		exec ddp-train "$@"' ddp-train --data text --log log \
		--steps 1000000000
	soon 5
else
	skip 'ddp-train, stopped' 'ddp-train was not built'
fi

python=/usr/bin/python3
if ! $python -c 'import torch.distributed' 2>why; then
	skip 'PyTorch hangs' "no torch for $python"
	return
fi
cat >hang.py <<'END'
"""Data-parallel steps of one rank that does what it should not, in step 3:
hang.py stop|sleep|leave|quiet RANK"""
import os, signal, sys, time
import torch
import torch.distributed as dist

how, who = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method="env://")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def compute(seconds):
    end = time.time() + seconds
    while time.time() < end:
        torch.mm(torch.rand(128, 128), torch.rand(128, 128))

for step in range(5):
    if dist.get_rank() == who and step == 3:
        with open("since", "w") as since:
            since.write(str(time.time_ns()))
        if how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "sleep":
            time.sleep(100000)
        if how == "leave":
            break
    if how == "quiet" and step > 2:
        compute(15 if dist.get_rank() == who else 1)
    optimizer.zero_grad()
    model(torch.rand(8, 64)).sum().backward()
    optimizer.step()
dist.barrier()
END
chmod 777 .
# With MPI CPU time is no progress, and a PyTorch that loads it starts for long.
dog=10
! $python -c 'import torch
exit("/libmpi" not in open("/proc/self/maps").read())' 2>why || dog=30 patience=40
for how in $(yes stop sleep leave | head -n "${WATCHDOG_HANGS:-1}"); do
	says='waiting elsewhere than the others'
	test "$how" != stop || says=stopped
	name="PyTorch over gloo, $how" hangs 2 "$says" \
		--ddp-watchdog=$dog -c2 env USE_LIBUV=0 $python hang.py \
		"$how" 2
	soon $dog
done
if test $dog != 10; then
	skip 'PyTorch with long quiet steps is left alone' \
		'this PyTorch loads MPI, with which CPU time is no progress'
	patience=20
	return
fi
rm -f since
patience=60
call login srun --ddp --ddp-watchdog=10 -N2 --ntasks-per-node=2 -c2 \
	env USE_LIBUV=0 $python hang.py quiet 1
patience=20
grep '^slurm-ddp' err >why
test $? = 1 && test "$status" = 0
result $? 'PyTorch with long quiet steps is left alone'
