# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# CPUs: what a submission must ask for, what reaches a step, what a task has.
# What is refused is in refusals.

cluster --nodes 2 --gpus 2 --cpus 16

# warned WARNINGS PROGRAM OPTIONS: that many lines, and the job is accepted
warned()
{
	lines=$1
	shift
	call login "$@" true
	equal "${name:-$*}: warnings" "0 $lines $lines" \
		"$status $(unquiet | wc -l) $(grep -c '^salloc: slurm-ddp: ' err)"
	name=
}
while read -r lines options; do
	# shellcheck disable=SC2086 # several words
	warned "$lines" salloc --ddp $options
done <<END
1 -N2 --gres=gpu:2 --ntasks-per-node=2
2 -N2 --gres=gpu:2 -n4
1 -N2 --gres=gpu:2 --cpus-per-gpu=1
1 -N2 --gres=gpu:2 -c2
1 --gres=gpu:1
0 -N2 --gres=gpu:2 --ntasks-per-node=2 -c2
0 -N2 --gres=gpu:2 --ntasks-per-node=1 -c2
0 -N2 --gpus=4 --cpus-per-gpu=2
0 -N2 --gres=gpu:2 -c4
0 -N2 --gres=gpu:2 --mincpus=4
0 -N2 --gres=gpu:2 --exclusive
0 -N2 -n2
END
warned 0 salloc -N2 --gres=gpu:2
call login ./sbatch_wait --ddp -N1 --gres=gpu:2 --ntasks-per-node=2 --wrap true
equal 'sbatch --ddp with one CPU a rank: warnings' '0 1' \
	"$status $(grep -c '^sbatch: slurm-ddp: one CPU a rank' err)"
plugstack optional cpus=trust
name='cpus=trust does not look' warned 0 salloc --ddp -N2 --gres=gpu:2
plugstack optional

# has WANTED NAME: SLURM_CPUS_PER_TASK in the tasks of the last batch
has()
{
	equal "$2" "$1" "$(tr '\n' ' ' <out)"
}
say='sh -c "echo \$SLURM_CPUS_PER_TASK"'
batch <<END
#!/bin/sh
#SBATCH --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 -c4
srun $say
END
has '4 4 4 4 ' "a job's --cpus-per-task reaches the step"
batch <<END
#!/bin/sh
#SBATCH --ddp -N2 --gres=gpu:2 -c8
srun $say
srun -c3 $say
srun -n2 $say
srun --ddp=off -n2 $say
END
has '4 4 4 4 3 3 3 3 8 8 8 8 ' 'ranks share what was asked for one task'
call login salloc -Q --ddp -N2 --gres=gpu:2 --ntasks-per-node=2 -c4 \
	sh -c "srun $say"
has '4 4 4 4 ' 'also in salloc'

if test "$(nproc --all)" -lt 2 || test "$(nproc)" -lt 2; then
	skip 'tasks on CPUs of their own' 'fewer than 2 CPUs'
	return
fi

# A node with two CPUs that really exist
cluster --nodes 1 --gpus 2 --cpus 2

# own WANTED OPTIONS: the threads of OpenMP and the CPUs of each rank
own()
{
	wanted=$1
	shift
	call login srun --ddp "$@" sh -c 'echo ${OMP_NUM_THREADS-$(nproc)} \
		$(taskset -cp $$ | sed "s/.*: //") $RANK'
	equal "srun --ddp $*: threads and CPUs" "$wanted" \
		"$(sort -k3 out | cut -d' ' -f1,2 | tr '\n' ' ')"
}
own '1 0 1 1 ' --gres=gpu:2
own '2 0,1 ' -n1 -c2 --gres=gpu:2
own '1 0 1 0 ' --gres=gpu:2 --cpu-bind=map_cpu:0,0
# In some versions a job that asks for that outside waits for ever.
hold -N1 --exclusive --gres=gpu:2
own '2 0,1 2 0,1 ' --jobid="$job" -n2 --overcommit -c2 --cpu-bind=mask_cpu:3,3
release
