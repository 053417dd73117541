# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# How many tasks a step gets, and on which nodes: one for each GPU, unless the
# user asks for another number.

# table WORD...: lines of "hosts of rank 0, 1, ...|options" after these words
table()
{
	while IFS='|' read -r hosts options; do
		# shellcheck disable=SC2086 # several options in one field
		world "$hosts" "$@" $options
	done
}

cluster --nodes 3 --gpus 2 --cpus 8

table srun --ddp <<END
n1|--gres=gpu
n1 n1|--gres=gpu:2
n1 n2|-N2 --gres=gpu
n1 n1 n2 n2|--nodes=2 --gres=gpu:2
n1 n1 n2 n2|-N2-2 --gres=gpu:2
n1 n1|--gpus-per-node=2
n1 n1 n2 n2|-N2 --gpus-per-node=2
n1 n1 n2 n2|-N2 --gpus=4
n1 n2 n3|-N3 --gpus=3
n1 n2|-N2
n1 n2|-N2 --gres=none
n2 n2 n3 n3|-w n2,n3 --gres=gpu:2
n1 n1 n3 n3|-N2 -x n2 --gres=gpu:2
n1 n1|-n2 --gres=gpu:2
n1|-n1 --gres=gpu:2
n1 n2|-N2 -n2 --gres=gpu:2
n1 n1 n2|-N2 -n3 --gres=gpu:2
n1 n1 n2 n2|-n4 --gres=gpu:2
n1 n1 n2 n2|-n4 -N2 --gres=gpu:2
n1 n1 n1 n1|-n4
n1 n1 n2 n2 n3 n3|-n6 --gpus-per-node=2
n1 n2|-N2 --ntasks-per-node=1 --gres=gpu:2
n1 n1 n1|--ntasks-per-node=3 --gres=gpu:2 --ddp-gpus=off
n1 n1|--tasks-per-node=2 -N1 --gres=gpu:1 --ddp-gpus=off
n1 n1|--ntasks-per-gpu=1 --gpus=2 --ddp-gpus=off
n1 n1 n2 n2|--ntasks-per-gpu=1 -N2 -n4 --ddp-gpus=off
n1 n2|-n2 -N2 --gpus-per-task=1
n1 n1|-c2 --gres=gpu:2
n1 n1 n2 n2|-N2 --cpus-per-gpu=2 --gpus-per-node=2
n1 n1 n2 n2|-N2 --exclusive --gres=gpu:2
END
# The same, with the one line that warns that LOCAL_RANK is not a device number
while IFS='|' read -r hosts options; do
	# shellcheck disable=SC2086 # several options in one field
	call login srun --ddp $options "$show"
	test "$status" -eq 0 && right "$hosts" && test "$(wc -l <err)" = 1 &&
		grep -q '^slurm-ddp: .*LOCAL_RANK is not a device' err
	result $? "srun --ddp $options: $hosts, and a warning"
done <<END
n1 n1|--ntasks-per-gpu=1 --gpus=2
n1 n1 n2 n2|--ntasks-per-gpu=1 -N2 -n4
n1 n1 n2 n2|--ntasks-per-gpu=1 -N2 --gres=gpu:2
n1 n1 n2 n2 n3 n3|--ntasks-per-gpu=1 -N3 --gpus-per-node=2
n1 n1 n1|--ntasks-per-node=3 --gres=gpu:2 --ddp-gpus=share
n1 n1 n2 n2|-N2 --gres=gpu:2 --ddp-gpus=own
END
world 'n1 n2' env SLURM_NTASKS=2 srun --ddp -N2 --gres=gpu:2
world 'n1 n2' env SLURM_NPROCS=2 srun --ddp -N2 --gres=gpu:2
world 'n1 n2' env SLURM_NTASKS_PER_NODE=1 srun --ddp -N2 --gres=gpu:2

# In a job: what the job was given counts, unless the step asks for something.
table salloc --exclusive <<END
n1 n1 n2 n2|-N2 --gres=gpu:2 srun --ddp
n1 n1 n2 n2|-N2 --gpus-per-node=2 srun --ddp
n1 n1 n2 n2|-N2 --gpus=4 srun --ddp
n1 n2|-N2 --gres=gpu:2 srun --ddp --gres=gpu:1
n1 n2|-N2 --gres=gpu:2 srun --ddp -n2
n1 n2|-N2 --gres=gpu:2 srun --ddp --ntasks-per-node=1
n1 n1|-N3 --gres=gpu:2 srun --ddp -N1
n2 n2|-N3 --gres=gpu:2 srun --ddp -w n2 -N1
n2 n2 n3 n3|-N3 --gres=gpu:2 srun --ddp -w n2,n3 -N2
n1 n1 n2|-N3 --gres=gpu:2 srun --ddp -N2 -n3
n1 n2|-N2 --gres=gpu:2 --ntasks-per-node=1 srun --ddp
n1 n2|-N2 --gres=gpu:2 -n2 srun --ddp
n1 n1 n2 n2|-N2 --gres=gpu:2 --ntasks-per-node=2 --ddp srun
n1 n1 n2 n2|-N2 --gpus=4 --ntasks-per-node=2 --ddp srun
n1|-N2 --gres=gpu:2 --ntasks-per-node=2 --ddp srun -N1 -n1
n1 n2|-N2 --gres=gpu:2 --ntasks-per-node=2 --ddp srun -N2 --ntasks-per-node=1
n1 n1|-N2 --gres=gpu:2 --ntasks-per-node=2 --ddp srun -N1
n1 n1|-N2 --gres=gpu:2 -n4 srun --ddp -N1
n1 n1 n2|-N2 --gres=gpu:2 -n3 srun --ddp -N2
END
world 'n1 n2' salloc -N2 srun --ddp
hold -N2 --gres=gpu:2 --exclusive
name='srun --jobid -N2' world 'n1 n1 n2 n2' srun --ddp --jobid="$job" -N2
name='srun --jobid alone' world 'n1 n1 n2 n2' srun --ddp --jobid="$job"
name='srun --jobid -n3' world 'n1 n1 n2' srun --ddp --jobid="$job" -N2 -n3
release
refuses '2 GPUs a node make 2 ranks, and the job has CPUs for 1 only' \
	salloc -Q -N2 --gres=gpu:2 srun --ddp true
refuses '2 GPUs a node make 2 ranks, and the job has CPUs for 1 only' \
	salloc -Q -N2 --gres=gpu:2 srun --ddp -N1 true

# In a task of another step, which has one task
world 'n1 n1' srun --gres=gpu:2 -c2 srun --ddp --overlap --ntasks-per-node=2
world 'n1 n1' srun --gres=gpu:2 -c2 srun --ddp --overlap -N1
world n1 srun --gres=gpu:2 -c2 srun --ddp --overlap
call login srun -n1 sh -c 'srun --ddp true &
	until grep -q "and waits" err; do sleep 0.1; done; kill $!; wait'
check 'a step that waits for the one around it says so' \
	grep -q 'slurm-ddp: this srun is in a task of a step, and waits' err

batch <<END
#!/bin/sh
#SBATCH --ddp -N2 --gres=gpu:2 --ntasks-per-node=1 --cpus-per-task=2
srun $show
END
test "$status" -eq 0 && right 'n1 n2'
result $? '--ntasks-per-node=1 in the sbatch file wins'
batch --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 -c2 <<END
#!/bin/sh
for host in n1 n2; do
	srun -n1 -w \$host hostname
	srun -n1 -N1 -w \$host hostname
done
END
check 'srun -n1 -w HOST hostname in sbatch --ddp runs there' \
	test "$(tr '\n' ' ' <out)" = 'n1 n1 n2 n2 '
# On a busy machine a step may have to wait until the one before is cleaned up.
own_words()
{
	grep -vE '^srun: (Job [0-9]+ step|Step created for job) ' err
}
own_words >ddp.err
cp job.sh again.sh
batch -N2 --gres=gpu:2 --ntasks-per-node=2 -c2 <again.sh
own_words >plain.err
check 'an srun in sbatch --ddp says no more than without --ddp' \
	cmp ddp.err plain.err

# Heterogeneous steps, in and out of a job
while read -r step; do
	! lacks_pmix "srun $step is one world" || continue
	# shellcheck disable=SC2046 # several words
	call login srun $(echo "$step" | sed "s|show|$show|g")
	test "$status" -eq 0 && right 'n1 n2 n2' && ! unquiet >why
	result $? "srun $step is one world"
done <<END
--ddp --gres=gpu:1 show : --gres=gpu:2 show
--gres=gpu:1 show : --ddp --gres=gpu:2 show
--ddp -n1 show : -n2 show
--ddp --gres=gpu:1 show : -n2 -N1 show
END
if ! lacks_pmix 'steps of two components in a job'; then
	set -- --ddp -N1 --gres=gpu:2 "$show" : -N1 -n1 --gres=gpu:1 "$show"
	call login salloc -N2 --gres=gpu:2 --exclusive srun "$@"
	test "$status" -eq 0 && right 'n1 n1 n2' && ! unquiet >why
	result $? 'srun --ddp a : b in a job of one component'
	set -- --gres=gpu:2 -n2 -c2 : --gres=gpu:1 -n1 -c2 --ddp \
		srun --het-group=0,1 "$show"
	call login salloc "$@"
	test "$status" -eq 0 && right 'n1 n1 n2' && ! unquiet >why
	result $? 'srun --het-group in a heterogeneous salloc --ddp'
fi
set -- --gres=gpu:1 : --gres=gpu:2 -c2 srun --ddp --het-group=1 "$show"
call login salloc "$@"
test "$status" -eq 0 && right 'n2 n2' && ! unquiet >why
result $? 'srun --het-group=1 has one task for each GPU of that component'

# Several kinds of GPUs, and other resources
cluster --nodes 2 --cpus 8 --gres 'Name=gpu Type=big File=@DIR@/nvidia[0-1]' \
	--gres 'Name=gpu Type=small File=@DIR@/nvidia[2-3]' \
	--gres 'Name=shard Count=8' --gres 'Name=nic Count=2'
table srun --ddp <<END
n1|--gres=gpu:big
n1 n1|--gres=gpu:small:2
n1 n1 n1|--gres=gpu:big:2,gpu:small:1
n1 n1 n2 n2|-N2 --gres=gpu:big,gpu:small
n1 n1|--gres=gpu:2,nic:1
n1|--gres=nic:2
n1|--gres=shard:2
n1 n1|--gpus-per-node=2 --gres=nic:2
n1 n1|--gpus-per-node=big:1,small:1
n1 n1 n2 n2|-N2 --gpus=big:2,small:2
n1 n1 n2 n2|-N2 --gpus=big:4
END
call login srun --ddp -N2 --gpus=4 sh -c \
	'echo "$(uname -n) $SLURM_GPUS_ON_NODE"'
check '--gpus=4 on 2 nodes of 4 is 2 GPUs on each' \
	test "$(sort -u out | tr '\n' ' ')" = 'n1 2 n2 2 '
call login srun --ddp -N2 --gpus=big:2,small:2 sh -c \
	'echo "$(uname -n) $SLURM_GPUS_ON_NODE $CUDA_VISIBLE_DEVICES"'
check '--gpus=big:2,small:2 on 2 nodes is one of each on each' \
	test "$(sort -u out | tr '\n' ' ')" = 'n1 2 0,2 n2 2 0,2 '
call login srun --ddp -N2 --gpus=4 env
check 'the tasks do not see the GPUs a node that were filled in' \
	sh -c '! grep SLURM_GPUS_PER_NODE out'
