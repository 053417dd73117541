# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2034 # see run; a task's shell expands
# A node is lost before its tasks have begun: srun waits for it for minutes, and
# says nothing. Another one just has a prolog that takes long.

# A rank prints a line; those of the first attempt fail if the file fails is
# there.
cat >begins <<'END'
#!/bin/sh
echo "attempt $RESTART_COUNT rank $RANK on $SLURMD_NODENAME"
test "$RESTART_COUNT" != 0 || ! test -e fails || exit 3
END
# For srun --prolog, which runs before each attempt is launched: the second one
# waits there until the link is cut, if the first is to fail.
cat >before <<'END'
#!/bin/sh
echo >>attempts
test "$(wc -l <attempts)" != 2 || ! test -e fails || {
	touch cut
	until test -e is.cut; do sleep 0.02; done
}
END
chmod 755 begins before

# cut: the link of n2, now
cut()
{
	begin_fault
	admin n2 ip link set eth0 down
	touch is.cut
}

# heal: it is back, and the job before has ended
heal()
{
	admin n2 ip link set eth0 up
	root scancel -u ddp
	ready n2
}

# prolog SECONDS: so long takes that of each job
prolog()
{
	rm -f slow
	test "$1" = 0 || echo "$1" >slow
}

# launch NODES OPTION...: a step in a job on that many nodes; heard is when the
# user reads the name of a node
launch()
{
	launch_nodes=$1
	shift
	: >err
	{
		until grep -q '^slurm-ddp: node n[12] ' err ||
			test -e launched; do
			sleep 0.05
		done
		now >heard
	} &
	call bounded 90 salloc -Q -N "$launch_nodes" --no-kill \
		srun --ddp "$@" ./begins
	ended=$(now)
	touch launched
	wait
}

# fresh: nothing has begun yet
fresh()
{
	tidy
	rm -f attempts cut is.cut launched heard slow.n*
}

# named NODE: whether it was
named()
{
	grep '^slurm-ddp: ' err
	echo "code $status"
	grep -q "^slurm-ddp: node $1 was lost first, after [0-9.]* s: srun could not start tasks there, as its slurmd does not answer\$" err
}

# soon NAME: the user has read of the node within 10 s after the fault. All nodes
# must be ready again: how long a plain step takes is measured where that was too
# late.
# shellcheck disable=SC2086 # several words
soon()
{
	in_goal $(($(cat heard) - $(cat fault.end) / 1000000)) 10000 $plain >why
	in_time $? "$1 within 10 s"
}

# spared NODE SPARE RANKS: whether the last attempt ran without that node
spared()
{
	cat out
	test "$status" = 0 && grep '^slurm-ddp: restart' err | tail -n 1 |
		grep -q ": $2 in place of $1, which was lost\$" &&
		grep "^attempt $(($(wc -l <attempts) - 1)) " out >last &&
		test "$(wc -l <last)" = "$3" && ! grep " on $1\$" last
}

# later: cut the link when the prolog of n2 runs
later()
{
	wait_until test -e slow.n2
	cut
}

spare='--prolog=./before --ddp-spares=1 --ntasks-per-node=1'

prolog 3
fresh
later &
launch 2 --prolog=./before --ntasks-per-node=1
heal
{
	named n2 && test "$status" = 1 &&
		test "$(grep -c '^slurm-ddp: node' err)" = 1
} >why
result $? 'a link is cut while a step begins: the node is named'
soon 'a link is cut while a step begins: the node is named'
left_ms=0
ended 10000 'a link is cut while a step begins'

# Where the other nodes begin later, it is named before that.
prolog 12
fresh
later &
# shellcheck disable=SC2086 # words
launch 3 $spare --ddp-restarts=1
heal
{ named n2 && spared n2 n3 2; } >why
result $? 'a spare takes its place, also while all prologs run'
soon 'a node is lost while all prologs run: it is named'
grep -q '^slurm-ddp: node n2 is lost, as its slurmd does not answer; ' err
result $? 'the user is told that the node is lost'

fresh
launch 2 --ddp-restarts=1 --ntasks-per-node=1
grep '^slurm-ddp: ' err >why
test "$status" = 0 && test "$(grep -c ^attempt out)" = 2 && ! test -s why
result $? 'a prolog that takes long is no loss'
prolog 0

fresh
touch fails
{
	wait_until test -e cut
	cut
} &
# shellcheck disable=SC2086
launch 3 $spare --ddp-restarts=2
heal
{ named n2 && spared n2 n3 2; } >why
result $? 'a link is cut before a restart: a spare takes its place'
soon 'a link is cut before a restart: the node is named'
rm -f fails

fresh
kill_on n1 slurmd
# shellcheck disable=SC2086
launch 2 -N1 $spare --ddp-restarts=1
root scancel -u ddp
ready n1
{ named n1 && spared n1 n2 1; } >why
result $? 'the spare of a step of one node whose slurmd is dead is used'
soon 'a slurmd is dead before a step begins: the node is named'
