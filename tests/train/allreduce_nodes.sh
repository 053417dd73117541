# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # build is tests/cluster/run's
# The collectives alone, on the two nodes of a real cluster that is up: in a
# job, because not all versions make one for --overcommit with a host file.

test_allreduce_nodes()
{
	make -s -C "$build" obj/tests/train/allreduce >make.out 2>&1 ||
		cat make.out >&2
	cp "$build/obj/tests/train/allreduce" .
	printf '%s\n' n1 n2 n2 n1 >crossed
	printf '%s\n' n1 n1 n1 n2 >uneven
	hold -N2 --exclusive
	while read -r name options; do
		for order in plain deterministic; do
			# shellcheck disable=SC2086 # several words
			call login env $options --cpu-bind=none ./allreduce \
				mpi $order real 4 5
			equal "exact sums on two nodes, $name, $order" '0 ' \
				"$status $(cat out)"
		done
	done <<-END
	1+1 srun --jobid=$job --mpi=pmix -N2 -n2
	2+2 srun --jobid=$job --mpi=pmix -N2 -n4 --overcommit
	crossed SLURM_HOSTFILE=$PWD/crossed srun --jobid=$job --mpi=pmix -n4 --overcommit
	uneven SLURM_HOSTFILE=$PWD/uneven srun --jobid=$job --mpi=pmix -n4 --overcommit
	END
	release
}
