# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# What watches breaks: slurmctld, srun, its supervisor; the disk and the clock.

# named NAME: whether the rank that broke, by exit 3, is named
named()
{
	{
		says "rank $1 failed first on $2 .*: exit code 3" 3 2000
		named_status=$?
		left
		test "$named_status" -eq 0 && ! test -s left.out
	} >why 2>&1
	result $? "$3"
	ended "$limit" "$3"
}

# gone NAME: all of the step, which ran, has ended, within 10 s
gone()
{
	{
		cat err
		left
		test "$(grep -c '^rank ' err)" = 6 && ! test -s left.out
	} >why 2>&1
	result $? "$1"
	ended 10000 "$1"
}

FAULT_SECONDS=60
export FAULT_SECONDS
begin_step sh told exit3 2
# By SIGTERM, at which it saves the job.
slurmctld=$(cat "$dir/cluster/run/slurmctld.pid")
root kill "$slurmctld"
root timeout 60 tail --pid="$slurmctld" -f /dev/null
root slurmctld
# With all nodes: srun cannot read what slurmstepd sends of one that has not told
# its version yet.
is_up() { test "$(root scontrol show node 2>>why | grep -c ' Version=')" = 3; }
wait_until is_up
touch fault.go
end_step
rm -f fault.go
named 2 n2 'a rank breaks after slurmctld was started anew'

begin_step sh none none 0
begin_fault
# What it has just made has its name for a moment.
root kill -KILL "$(root pgrep -ox ddp-supervisor)"
end_step
gone 'the supervisor is killed'

begin_step sh none none 0
begin_fault
root kill -KILL "$(root pgrep -ox srun -P "$(root pgrep -ox ddp-supervisor)")"
end_step
gone 'the srun below the supervisor is killed'

root sh -c "cat /dev/zero >$dir/full/zeros" 2>why
step sh step exit3 2 --export="ALL,TMPDIR=$dir/full"
named 2 n2 'a full disk'
rm -f "$dir/full/"*

# Of two ranks, on nodes whose clocks differ, the first is named.
root kill -KILL "$(cat "$dir/cluster/run/slurmd.n3.pid")"
admin n3 env LD_PRELOAD="$scratch/clock.so" slurmd
step sh step exit3 2 --export=ALL,FAULT_FOLLOWER=4
named 2 n2 'a clock is 30 s off: a rank of another node is first'
step sh step exit3 4 --export=ALL,FAULT_FOLLOWER=2
named 4 n3 'a clock is 30 s off: a rank of that node is first'
root kill -KILL "$(cat "$dir/cluster/run/slurmd.n3.pid")"
admin n3 slurmd

FAULT_SECONDS=33
step sh step exit0 2
test "$status" -eq 0 && grep -E '^slurm-ddp: ' err >why &&
	test "$(wc -l <why)" = 1 && grep -q ' rank 2 ended with exit code 0 .* ranks 0-1,3-5 still run' why &&
	left >>why && ! test -s left.out
result $? 'a rank that ended well while others went on is told after 30 s'
