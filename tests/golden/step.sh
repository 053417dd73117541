# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# What a task of a step says: what was planned for it beside what it got.

# The CPUs of this process, as the kernel lists them
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)

# task NAME=VALUE...: rank 3 of step 12.1, local rank 1 on n1, planned with the
# GPUs 1,0, device 1 and the CPUs that it has
task()
{
	call env SLURM_PROCID=3 SLURM_JOB_ID=12 SLURM_STEP_ID=1 \
		SLURMD_NODENAME=n1 RANK=3 LOCAL_RANK=1 \
		CUDA_VISIBLE_DEVICES=1,0 WORLD_SIZE=4 \
		"DDP_SET=job=12.1 RANK=3" "DDP_PLACEMENT=$(
		printf '3\t0\t1\t1\tn1\tCUDA_VISIBLE_DEVICES=1,0\t%s\t0\teth0\t' \
			"$cpus"
		printf '1\t0\t0000:29:00.0\tA100\t0\t')" env "$@" "$info"
}

# differ: the lines that differ, without runs of spaces
differ()
{
	sed -n 's/ *DIFFERS$//p' out | tr -s ' ' | sed 's/^ //' | paste -sd,
}

task
equal 'a task that got what was planned is told so' '0 ' \
	"$status $(differ)$(cat err)"
equal 'a task is told its device, with the GPU that it is' \
	' device 1 0000:29:00.0 0000:29:00.0' \
	"$(grep ' device ' out | tr -s ' ')"
equal 'a variable for which nothing was planned is shown' ' WORLD_SIZE - 4' \
	"$(grep WORLD_SIZE out | tr -s ' ')"
task RANK=2
equal 'a task with the rank of another one fails, and is told so' \
	'1 RANK 3 2' "$status $(differ)"
task LOCAL_RANK=0
equal 'a task with the local rank of another one is told so' \
	'1 LOCAL_RANK 1 0' "$status $(differ)"
task CUDA_VISIBLE_DEVICES=0,1
equal 'a task with its GPUs in another order is told so' \
	'1 CUDA_VISIBLE_DEVICES 1,0 0,1' "$status $(differ)"
task -u CUDA_VISIBLE_DEVICES
equal 'a task without the variable of its GPUs is told so' \
	'1 CUDA_VISIBLE_DEVICES 1,0 -' "$status $(differ)"
first=${cpus%%[-,]*}
if command -v taskset >/dev/null && test "$first" != "$cpus"; then
	task taskset -c "$first"
	equal 'a task that is bound to fewer CPUs is told so' \
		"1 CPUs $cpus $first" "$status $(differ)"
else
	skip 'a task that is bound to fewer CPUs is told so' \
		'no taskset, or one CPU'
fi

# What another step left in the environment is not of this one.
for steps in '12.10 12 1' '12.1 12 10' '1.12 1 1' '112.1 12 1'; do
	# shellcheck disable=SC2086 # three words
	set -- $steps
	task "DDP_SET=job=$1 RANK=3" SLURM_JOB_ID="$2" SLURM_STEP_ID="$3"
	equal "what step $1 was given is not taken for that of step $2.$3" \
		'0 task 3 on n1: no placement is in DDP_PLACEMENT' \
		"$status $(sed 1q out)"
done

frees 'a task that got what was planned' 0 task
frees 'a task that got something else' 1 task RANK=2
