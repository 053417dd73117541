# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The variables are right wherever Slurm puts the tasks, and whoever else sets
# some of them.

cluster --nodes 3 --gpus 2 --cpus 8

# places_of OPTIONS: where the tasks of a plain step run, in the order of ranks
places_of()
{
	login srun "$@" sh -c 'echo $SLURM_PROCID $(uname -n)' </dev/null |
		sort -n | cut -d' ' -f2 | paste -sd' '
}

# Where plain steps run their tasks, with and without what the MPI plugin tells
where_plain()
{
	set -f		# one has a star
	while read -r options; do
		# shellcheck disable=SC2086 # several words
		hosts=$(places_of $options)
		for type in pmix none; do
			test $type = none || ! lacks_pmix "--mpi=pmix $options" ||
				continue
			# shellcheck disable=SC2086
			world "$hosts" srun --ddp --mpi=$type $options
		done
	done
	set +f
}
where_plain <<END
-n1
-N3 --ntasks-per-node=2 --gres=gpu:2
-N3 -n7
-N3 -n7 --exclusive
-N3 -n7 --exclusive -m block:block,NoPack
-N3 -n7 --exclusive -m block,Pack
-N3 -n6 -m cyclic
-N3 -n7 -m cyclic:cyclic --exclusive
-N2 -n5 -m cyclic -c2
-N3 -n8 -m plane=2
-N3 -n8 -m plane=2 --exclusive
-N3 -n7 -m plane=3 --exclusive
-N3 -n9 -m plane=1 --exclusive
-N2 -n4 -m * --exclusive
-n2 -w n3
-n4 -w n3,n2 --ntasks-per-node=2
END
printf '%s\n' n3 n1 n2 n1 n3 n2 >hosts
set -- env SLURM_HOSTFILE="$scratch/hosts" srun --ddp
name='SLURM_HOSTFILE' world 'n3 n1 n2 n1 n3 n2' "$@" -n6
name='SLURM_HOSTFILE without pmix' \
	world 'n3 n1 n2 n1 n3 n2' "$@" -n6 --mpi=none
name='SLURM_HOSTFILE and -m arbitrary' \
	world 'n3 n1 n2 n1 n3 n2' "$@" -n6 -m arbitrary --gres=gpu:2
name='SLURM_HOSTFILE without a number of tasks' \
	world 'n3 n1 n2 n1 n3 n2' "$@" --gres=gpu:2
name='srun -w FILE' world 'n3 n1 n2 n1 n3 n2' \
	srun --ddp -n6 -m arbitrary -w "$scratch/hosts"
world 'n1 n1 n2 n2' srun --ddp --export=NONE -N2 --gres=gpu:2
world 'n1 n1 n2 n2' srun --ddp --export=HOME -N2 --gres=gpu:2
world 'n1 n1' srun --ddp --export=ALL,RANK=7 --gres=gpu:2

# All at once within one job: on all of it, on parts of it, on one node of it
cat >several <<'END'
#!/bin/sh
srun --overlap --ddp -N3 --gres=gpu:2 "$@" >all &
srun --overlap --ddp -N2 -w n2,n3 --gres=gpu:2 "$@" >part &
srun --overlap --ddp -N1 -w n3 --gres=gpu:2 "$@" >one &
srun --overlap --ddp -N3 -n3 --gres=gpu:2 -m cyclic "$@" >three &
wait
END
call login salloc -N3 --gres=gpu:2 --exclusive sh several "$show"
while read -r file hosts; do
	cp "$file" out
	right "$hosts"
	result $? "several steps at once, one on $hosts"
done <<END
all n1 n1 n2 n2 n3 n3
part n2 n2 n3 n3
one n3 n3
three n1 n2 n3
END
equal 'steps at once have a port of their own each' 4 \
	"$(cat all part one three | cut -d' ' -f16 | sort -u | wc -l)"

# sees NAME VALUES CMD...: what the variables of that name are in the tasks
sees()
{
	sees_name=$1 wanted=$2
	shift 2
	call login "$@" sh -c "echo \$SLURM_PROCID \${$sees_name:--}"
	equal "${name:-$*}: $sees_name" "$wanted" \
		"$(sort -n out | cut -d' ' -f2 | tr '\n' ' ')"
	name=
}
step='srun --ddp -N2 --gres=gpu:1'
while read -r variable value kept; do
	# shellcheck disable=SC2086 # several words
	sees "$variable" "$kept " env "$variable=$value" $step
done <<END
MASTER_ADDR n2 n2 n2
MASTER_ADDR 10.1.2.3 10.1.2.3 10.1.2.3
MASTER_PORT 12345 12345 12345
OMP_NUM_THREADS 7 7 7
GLOO_SOCKET_IFNAME lo lo lo
NCCL_SOCKET_IFNAME =ib0 =ib0 =ib0
JAX_COORDINATOR_ADDRESS n3:5 n3:5 n3:5
JAX_LOCAL_DEVICE_IDS 1 1 1
TF_CONFIG {} {} {}
ACCELERATE_USE_CPU false false false
RANK 7 0 1
LOCAL_RANK 7 0 0
WORLD_SIZE 7 2 2
LOCAL_WORLD_SIZE 7 1 1
NODE_RANK 7 0 1
GROUP_RANK 7 0 1
GROUP_WORLD_SIZE 7 2 2
ROLE_RANK 7 0 1
ROLE_WORLD_SIZE 7 2 2
END
# shellcheck disable=SC2086 # several words
name='a --ddp-port over an exported one' \
	sees MASTER_PORT '20005 20005 ' env MASTER_PORT=12345 $step \
	--ddp-port=20005

# Where nodes have as many ranks, their number; Slurm's own stands.
while IFS='|' read -r wanted command; do
	# shellcheck disable=SC2086 # several words
	sees SLURM_NTASKS_PER_NODE "$wanted " $command
done <<END
2 2 2 2|srun --ddp -N2 --gres=gpu:2
2 2 2 2|srun --ddp -N2 -n4 --gres=gpu:2
1 1|srun --ddp -N2 -n2 --gres=gpu:2
2 2 2 2|srun --ddp -N2 -n4 -m cyclic --gres=gpu:2
2 2 2 2|srun --ddp -N2 -n4 --ntasks-per-node=2
5 5|env SLURM_NTASKS_PER_NODE=5 srun --ddp -N2 -n2
2 2 2 2|salloc -Q -N2 --gres=gpu:2 --exclusive --ddp srun
2 2 2 2 2 2|env SLURM_HOSTFILE=$scratch/hosts srun --ddp -n6
2 2 2 2|srun --ddp --mpi=none -N2 --gres=gpu:2
END
# JAX itself would take the device of the local rank's number.
while IFS='|' read -r wanted options; do
	# shellcheck disable=SC2086 # several words
	sees JAX_LOCAL_DEVICE_IDS "$wanted " srun --ddp $options
done <<END
- - - -|-N2 --gres=gpu:2
- 0 - 0|-N2 --gres=gpu:2 --ddp-gpus=own
0,1 0,1|-N2 -n2 --gres=gpu:2
- 0|-N1 -n2 --gpus-per-task=1
- - -|-n3
END
sees SLURM_NTASKS_PER_NODE '- - - ' srun --ddp -N2 -n3
batch --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 <<'END'
#!/bin/sh
srun sh -c 'echo $SLURM_NTASKS_PER_NODE $SLURM_NTASKS'
END
equal 'sbatch --ddp: SLURM_NTASKS_PER_NODE' '2 4 2 4 2 4 2 4' \
	"$(paste -sd' ' out)"

# TensorFlow's workers: every rank has an address of its own, in their order.
call login srun --ddp --ddp-env=tf -N2 --gres=gpu:2 sh -c 'echo "$RANK $TF_CONFIG"'
sort -n out | perl -MJSON::PP -ne '
	my ($rank, $text) = split(/ /, $_, 2);
	my $config = decode_json($text);
	my @workers = @{$config->{cluster}{worker}};
	my %seen = map { $_ => 1 } @workers;
	print "$rank $config->{task}{type} $config->{task}{index} ",
		scalar(keys(%seen)), " ",
		join(" ", map { s/:\d+$//r } @workers), "\n"' >workers
for rank in 0 1 2 3; do
	echo "$rank worker $rank 4 n1 n1 n2 n2"
done | diff - workers >why
result $? 'srun --ddp --ddp-env=tf: TF_CONFIG'
inner='srun --overlap sh -c '\''echo ${TF_CONFIG-none}'\'
call login srun --ddp --ddp-env=tf -N1 -n1 sh -c "$inner"
equal 'a step within that has none' none "$(cat out)"

# What a step has set does not count as the user's own for a step within it.
inner='test $RANK != 0 || { echo $MASTER_PORT >outer.port
	srun --overlap --ddp -N1 -n1 -w n2 "$0"; }'
# shellcheck disable=SC2086
call login $step sh -c "$inner" "$show"
test "$status" -eq 0 && right 'n2' && ! grep " $(cat outer.port)\$" out >why
result $? "a step within a step has its own master and port"
inner='test $RANK != 0 || { export MASTER_ADDR=n3 MASTER_PORT=12345
	srun --overlap --ddp -N1 -n1 -w n2 "$0"; }'
# shellcheck disable=SC2086
call login $step sh -c "$inner" "$show"
equal 'unless the user sets them in between' 'n3 12345' \
	"$(cut -d' ' -f12,16 out)"

# A topology that lists the nodes in another order: some versions of Slurm lay
# ranks out by it
cluster --nodes 3 --gpus 2 --cpus 8
cat >"$dir/cluster/etc/topology.conf" <<END
SwitchName=a Nodes=n3
SwitchName=b Nodes=n1
SwitchName=c Nodes=n2
SwitchName=all Switches=a,b,c
END
echo TopologyPlugin=topology/tree >>"$dir/cluster/etc/slurm.conf"
"$sandbox" exec --dir "$dir/cluster" --root sh -c '
	read -r pid <"$0/run/slurmctld.pid"
	scontrol shutdown slurmctld
	timeout 60 tail --pid="$pid" -s 0.1 -f /dev/null
	slurmctld' "$dir/cluster"
all_idle() { test "$(bounded 20 sinfo -h -t idle -o %D)" = 3; }
wait_until all_idle
where_plain <<END
-N3 --ntasks-per-node=2 --gres=gpu:2
-N3 -n7 --exclusive
-N2 -w n1,n3 -n3
-N3 -n6 -m cyclic
-N3 -n8 -m plane=2
END
hosts=$(places_of -N3 --ntasks-per-node=2)
call login srun --ddp=explain -N3 --ntasks-per-node=2 true
equal 'srun names the node of rank 0' "${hosts%% *}" \
	"$(sed -n "s/^slurm-ddp: master \(.*\): rank 0's node.* of n\[1-3\]$/\1/p" err)"
"$sandbox" exec --dir "$dir/cluster" --root \
	mount --bind /dev/null "$(command -v sattach)"
call login srun --ddp --mpi=none -N3 --ntasks-per-node=2 "$show"
if test "$status" -eq 0; then
	right "$hosts"
else
	grep -q '^slurm-ddp: .*install sattach beside srun$' err
fi
result $? 'a step without sattach is right, or refused'
