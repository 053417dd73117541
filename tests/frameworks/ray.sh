# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run

# The template, whose Ray counts the CPUs that a task may use, and sees no GPUs
# without a driver.
cp "$top"/contrib/sbatch/ray* .
call login srun --ddp -N2 --gres=gpu:2 --ntasks-per-node=1 -c2 \
	/usr/bin/python3 -c 'import os; print(len(os.sched_getaffinity(0)))'
cpus=$(awk '{ sum += $1 } END { print sum }' out)
batch <ray.sbatch
equal 'ray.sbatch makes one Ray cluster of two nodes' \
	"2 nodes, $cpus CPUs, 0 GPUs: n1 n2 0" "$(cat out) $status"
