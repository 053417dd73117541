# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run
# The collectives alone, on one machine: tests/train/allreduce.c.

# reduces NAME RANKS BACKEND ORDER NODES ROUNDS SEED
reduces()
{
	reduces_name=$1 reduces_ranks=$2
	shift 2
	call timeout -k 5 60 mpirun -n "$reduces_ranks" "$program" "$@"
	test "$status" -eq 0 && ! test -s out && ! test -s err
	result $? "$reduces_name"
}

test_allreduce()
{
	needs_worlds 'collectives' || return 0
	program allreduce
	reduces 'one process without MPI' 1 self plain real 4 1
	for ranks in 1 2 3 4; do
		reduces "exact sums of $ranks ranks" $ranks mpi plain real 8 2
	done
	reduces "exact sums of 3 ranks, deterministic" 3 mpi deterministic \
		real 8 3
	while read -r nodes order; do
		reduces "exact sums of ranks on nodes $nodes, $order" \
			${#nodes} mpi "$order" "$nodes" 4 4
	done <<-END
	01 plain
	012120 plain
	0011 plain
	0110 plain
	0123 plain
	0001 plain
	0100 deterministic
	0110 deterministic
	END
}
