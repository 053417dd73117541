# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2034 # see run; the tasks' shells expand
# Ranks along the network: --ddp-order=network, and the nearest spare. By their
# names nodes change the switch at each step of a ring: four times; along the
# network twice, there and back.

# in_order NAME WANTED SALLOC-OPTION... -- SRUN-OPTION...: the nodes of the ranks
in_order()
{
	name=$1 wanted=$2 words=''
	shift 2
	while test "$1" != --; do
		words="$words $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # words
	call login salloc -Q $words srun --ddp "$@" sh -c '
		test $RANK = $SLURM_PROCID || exit 1
		printf "%s %s %s %s\n" $RANK $NODE_RANK $SLURMD_NODENAME \
			$MASTER_ADDR'
	sort -n out >why
	cat err >>why
	test "$status" = 0 && test "$(sort -n out | cut -d ' ' -f 3 |
		uniq | paste -sd,)" = "$wanted"
	result $? "$name"
}

# leaves_it REASON SRUN-OPTION...: the order is Slurm's, in one line. Which nodes it
# takes, where it has the choice, differs from version to version.
leaves_it()
{
	reason=$1
	shift
	call login salloc -Q -N3 --gres=gpu:1 srun --ddp --ddp-order=network \
		"$@" sh -c 'echo $RANK $SLURMD_NODENAME'
	sort -n out | cut -d ' ' -f 2 >why
	test "$status" = 0 && test "$(wc -l <why)" = 2 && sort -c why 2>/dev/null
	result $? "$1 ${2-} leaves the ranks as Slurm has them"
	grep -qF "slurm-ddp: --ddp-order=network: ranks stay in Slurm's order: \
$reason" err
	result $? "$1 ${2-} makes srun say why the order stays: $reason"
}

# of_network: what holds for switches and for blocks
of_network()
{
	in_order "$1: ranks follow it" n1,n3,n2,n4 -N4 --ntasks-per-node=2 --gres=gpu:2 -- \
		--ddp-order=network
	equal "$1: rank 0's node is the master, and nodes count as ranks do" \
		'0 0 n1 n1,2 1 n3 n1,4 2 n2 n1,6 3 n4 n1' "$(sort -n out |
			awk '$1 % 2 == 0' | paste -sd,)"
	in_order "$1: so they do with -N" n1,n3,n2,n4 -N4 \
		-- -N4 --ntasks-per-node=1 --ddp-order=network
	call login salloc -Q -N4 --ntasks-per-node=2 --gres=gpu:2 srun --ddp=explain \
		--ddp-order=network true
	grep -qx "slurm-ddp: order along the network: a ring through the nodes \
leaves a switch 2 times, and by their names 4 times" err
	result $? "$1: explain counts what the order saves"
}

cluster --nodes 4 --gpus 2 --cpus 2 --topology 'SwitchName=s1 Nodes=n[1,3]' \
	--topology 'SwitchName=s2 Nodes=n[2,4]' \
	--topology 'SwitchName=top Switches=s[1-2]'
of_network switches

in_order 'nodes that are named are put in order' n1,n3,n2,n4 -N4 -- \
	-N4 -w n4,n2,n3,n1 --ntasks-per-node=1 --ddp-order=network
call login salloc -Q -N4 --gres=gpu:1 srun --ddp --ddp-order=network sh -c '
	test $RANK != 0 || srun --ddp=off --overlap --cpu-bind=none \
		-N1 -n1 -w n4 hostname'
equal 'a step within the step has an order of its own' 'n4 0' \
	"$(cat out err) $status"
in_order 'a job hands the order on to its steps' n1,n3,n2,n4 -N4 --ntasks-per-node=2 --gres=gpu:2 \
	--ddp --ddp-order=network --
call login salloc -Q -N2 -w n1,n3 --ntasks-per-node=2 --gres=gpu:2 srun --ddp=explain \
	--ddp-order=network true
test "$status" = 0 && grep -qx "slurm-ddp: order of Slurm: a ring through the \
nodes leaves a switch 0 times by their names, and no other order less often" err
result $? 'Slurm keeps its order where no other is better'

leaves_it '-N2 leaves open which nodes the step gets, as the job has 3; give as many by --nodelist' \
	-N2
leaves_it '--distribution, or a host file says where ranks are, too; leave out' \
	--distribution=plane=1 -N2 -wn1,n2
leaves_it '--distribution, or a host file says where ranks are, too; leave out' \
	--distribution=block:block -N2 -wn1,n2
leaves_it '--exclude says where ranks are, too' --exclude=n3 -N2
leaves_it 'it needs --mpi=pmix' --mpi=none -N2 -wn1,n2
leaves_it 'srun refuses -N beside it; give -N apart from other letters' -uN2 \
	-wn1,n2
call login srun --ddp --ddp-order=network -N2 --gres=gpu:1 true
test "$status" = 0 && grep -qF 'not a step of one component within a job' err
result $? 'a step without a job keeps the order, and says why'
call login salloc -Q -N2 --gres=gpu:1 srun --ddp --ddp-order=network -N1 true
test "$status" = 0 && ! test -s err
result $? 'a step on one node says nothing of its order'
call login srun --ddp --ddp-order=speed -N2 true
test "$status" = 1 && grep -qF -- \
	"--ddp-order 'speed' is not one of slurm, network" err
result $? 'an order that there is not is refused'

# The step has n1 and n2; n3 is the first of the spares, and n4 is beside n2.
cat >waits <<'END'
#!/bin/sh
echo "attempt $RESTART_COUNT rank $RANK on $SLURMD_NODENAME"
test "$RESTART_COUNT" = 0 || exit 0
date >"begun.$RANK"
exec sleep 60
END
chmod 755 waits
begun() { test -e begun.0 && test -e begun.1; }
(
	wait_until begun
	"$sandbox" exec --dir "$dir/cluster" --root --node n2 \
		ip link set eth0 down
) >later.out 2>&1 &
call login salloc -Q -N4 --no-kill --ntasks-per-node=1 srun --ddp \
	--ddp-restarts=1 --ddp-spares=2 ./waits
wait $!
"$sandbox" exec --dir "$dir/cluster" --root --node n2 ip link set eth0 up
cat out err later.out >why
test "$status" = 0 && grep -qx \
	'slurm-ddp: restart 1 of 1: n4 in place of n2, which was lost' err
result $? 'the spare on the switch of a lost node takes its place'

cluster --nodes 2 --gpus 1
in_order 'without switches the ranks are in the order of names' n1,n2 -N2 \
	--gres=gpu:1 -- --ddp-order=network
grep -qF 'Slurm tells of no switches or blocks' err
result $? 'srun says that it knows of no switches'

case $(slurmctld -V) in
*22.* | *23.02*) return ;;	# topology/block is newer
esac
cluster --nodes 4 --gpus 2 --cpus 2 --topology 'BlockName=b1 Nodes=n[1,3]' \
	--topology 'BlockName=b2 Nodes=n[2,4]' --topology BlockSizes=2
of_network blocks
