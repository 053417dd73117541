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

# filled BYTES COMMAND...: COMMAND where /dev/shm has so many bytes
filled()
{
	filled_bytes=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands
	call unshare --mount sh -c 'mount -t tmpfs -o size="$0" none /dev/shm &&
		exec timeout -k 5 60 "$@"' "$filled_bytes" "$@"
}

# says_room NAME RANKS: each rank has ended with the sentence and nothing else
says_room()
{
	sort -u out >sentences
	test "$status" -eq 3 && test "$(wc -l <out)" -eq "$2" &&
		test "$(wc -l <sentences)" -eq 1 &&
		grep -q '^/dev/shm on .* has [0-9]* bytes free, but ' out &&
		! grep -qi 'bus error' err
	result $? "$1"
}

room()
{
	if ! unshare --mount mount -t tmpfs none /dev/shm 2>/dev/null; then
		skip 'a /dev/shm that is full' 'mounting another needs root'
		return
	fi
	filled 40m mpirun -n 2 "$program" room 4194304
	equal 'a /dev/shm that suffices is taken' 0 "$status"
	filled 40m mpirun -n 2 "$program" room 16777216
	says_room 'one that is too small is one sentence on each rank' 2
	grep -q ' has 4[01][0-9]\{6\} bytes free' out
	result $? 'which names the bytes that are free'
	filled 64k mpirun --mca btl tcp,self -n 3 "$program" room 65536
	says_room 'likewise one with hardly any room' 3
	filled 40m mpirun --mca btl tcp,self -n 2 "$program" late 8388608
	says_room 'likewise one that others fill in between' 2
	filled 40m mpirun -n 1 "$program" room 67108864
	equal 'a rank alone on its node needs none' 0 "$status"
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
	room
}
