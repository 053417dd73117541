# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run and train.sh
# srun --ddp with the real GPU, in a sandbox of one node.

# slurm_missing: prints why it cannot be tested here, if so
slurm_missing()
{
	if test -z "$gpu"; then
		echo 'no GPU'
	elif test "$(id -u)" -ne 0 || ! PATH=$PATH:/usr/sbin command -v slurmd \
		>/dev/null
	then
		echo 'a sandbox needs root and slurmd'
	elif test "$(config HAVE_PLUGIN)" != yes; then
		echo 'the plugin was not built'
	fi
}

slurm_build()
{
	made obj/plugin/spank_ddp.so obj/bin/ddp-info obj/bin/ddp-bench
}

# in_slurm NAME COMMAND...: a test that passes if the command does; what it
# prints is a part of the report
in_slurm()
{
	in_slurm_name=$1
	shift
	call timeout -k 5 "$(limit 120)" "$sandbox" exec --dir "$dir/slurm" env \
		DDP_MODULE_DIR="$build/obj/bin" "$@"
	result "$status" "$in_slurm_name"
	head -n 30 out | sed 's/^/#   /'
}

gpu_slurm()
{
	slurm_why=$(slurm_missing)
	if test -n "$slurm_why"; then
		omit 'srun --ddp' "$slurm_why"
		return
	fi
	builds 'the plugin' slurm_build
	test "$built" = yes || return 0
	check 'a sandbox with the GPU' env DDP_BUILD="$build" \
		timeout "$(limit 100)" "$sandbox" up \
		--dir "$dir/slurm" --gpu-driver --nodes 1 --gpus 1 \
		--gres "Name=gpu File=$gpu"
	"$sandbox" status --dir "$dir/slurm" >/dev/null 2>&1 || return 0
	if ! "$sandbox" exec --dir "$dir/slurm" test -r \
		"$build/obj/bin/ddp_cuda.so"; then
		omit 'srun --ddp with the GPU' \
			"jobs, which run as another user, cannot read $build"
		return
	fi
	in_slurm 'srun --ddp=explain places the rank' \
		srun --ddp=explain --gres=gpu:1 true
	in_slurm 'a rank reads its GPU back' srun --ddp --gres=gpu:1 ddp-info
	in_slurm '--ddp-check lets a step begin' \
		salloc -Q --gres=gpu:1 srun --ddp --ddp-check true
	in_slurm 'ddp-bench over NCCL' srun --ddp --gres=gpu:1 \
		ddp-bench --backend nccl -b 1M -e 64M -f 8
	in_slurm 'the doctor finds nothing wrong' \
		salloc -Q --gres=gpu:1 ddp-info --doctor
	! can_train 'ddp-train under srun --ddp' ||
		in_slurm 'ddp-train under srun --ddp' srun --ddp --gres=gpu:1 \
			ddp-train --data "$PWD/text" --preset tiny --steps 5 \
			--device cuda
	"$sandbox" down --dir "$dir/slurm" 2>/dev/null
}
