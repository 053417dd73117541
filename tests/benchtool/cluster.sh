# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; awk expands
# ddp-bench on a real cluster: MPI, PMIx, and the NCCL backend on fakes.

cluster_nodes=0

# needs_cluster NAME NODES: one of so many nodes is up
needs_cluster()
{
	needs_why=$(missing)
	if test -n "$needs_why"; then
		skip "$1" "$needs_why"
		return 1
	fi
	test "$cluster_nodes" -ne "$2" || return 0
	"$sandbox" down --dir "$dir/cluster" 2>/dev/null
	cluster_nodes=$2
	"$sandbox" up --no-plugin --dir "$dir/cluster" --nodes "$2" --gpus 2 \
		2>up.err && return
	cat up.err >&2
	exit 1
}

# A step of the cluster, once no node is busy with the job before
cat >step <<END
#!/bin/sh
end=\$((\$(date +%s) + 60))
until nodes=\$("$sandbox" exec --dir "$dir/cluster" \\
	sinfo -h -t completing -o %N 2>/dev/null) && test -z "\$nodes"; do
	test "\$(date +%s)" -lt "\$end" || exit 99
	sleep 0.05
done
exec "$sandbox" exec --dir "$dir/cluster" env SLURM_PMIX_FENCE=ring \\
	srun --mpi=pmix "\$@"
END
chmod 755 step

missing()
{
	if test "$(id -u)" -ne 0; then
		echo 'starting a cluster needs root'
		return
	fi
	for tool in slurmctld slurmd srun munged ip nsenter; do
		command -v $tool >/dev/null || echo "$tool is not installed"
	done
	unshare --mount --uts --ipc --net --pid --fork \
		ip link add br0 type bridge 2>/dev/null ||
		echo 'this machine allows no namespaces'
}

cluster_mpi()
{
	for name in all_reduce reduce_scatter all_gather broadcast; do
		rows "$name on 2 nodes" 4 2 $name 1024 16384 -- \
			./step -N2 -n4 "$bench" --backend mpi \
			--collective $name -b 1K -e 16K -f 16 -n 3
	done
}

cluster_refusals()
{
	if has_no_gpu; then
		says 'no GPU on the nodes is one sentence' 1 'there is no GPU' \
			./step -N2 -n4 "$bench"
	else
		skip 'no GPU on the nodes is one sentence' 'here is one'
	fi
	says 'a bad option is one sentence' 2 '--bogus' \
		./step -N2 -n4 "$bench" --bogus
	says 'tasks without PMIx are one sentence' 1 'srun --mpi=pmix' \
		./step --mpi=none -N2 -n4 "$bench"
}

bootstrap()
{
	call timeout 60 ./step -N2 -n4 "$bench" --bootstrap -n 5
	equal '--bootstrap has a row for each rank' \
		'0 n1, 1 n1, 2 n2, 3 n2' \
		"$(awk '!/^#/ { printf "%s%s %s", n++ ? ", " : "", $1, $2 }' \
			out)"
	check 'a row gives each time but those of NCCL' awk '
		!/^#/ && !($3 > 0 && $4 > 0 && $5 == "-" && NF == 5) { bad = 1 }
		END { exit bad }' out
	equal 'a line says why those of NCCL are left out' '0 1' \
		"$status $(grep -c '^# NCCL init is left out: ' out)"
	call timeout 60 ./step -N2 -n4 "$bench" --bootstrap -n 5 --json
	"$python" - out >why 2>&1 <<-END
	import json
	rows = [json.loads(line) for line in open("out")]
	assert [row["rank"] for row in rows] == [0, 1, 2, 3]
	assert [row["host"] for row in rows] == ["n1", "n1", "n2", "n2"]
	for row in rows:
	    assert row.pop("nccl_init_ms") is None
	    assert 0 < row["exchange_us"] < 6e7
	    assert row["pmix_init_ms"] > 0
	    assert len(row) == 4
	END
	result $? '--bootstrap --json has the same rows'
}

bootstrap_mpi()
{
	call timeout 60 ./step -N2 -n4 "$bench" --bootstrap --backend mpi -n 5
	equal "--bootstrap has MPI's times, too" \
		'0 0 n1 4, 1 n1 4, 2 n2 4, 3 n2 4' \
		"$status $(awk '!/^#/ && $3 > 0 && $4 > 0 {
			printf "%s%s %s %s", n++ ? ", " : "", $1, $2, NF }' \
			out)"
	call timeout 60 mpirun -n 2 "$bench" --bootstrap --backend mpi --json
	"$python" - >why 2>&1 <<-END
	import json
	rows = [json.loads(line) for line in open("out")]
	assert [row["rank"] for row in rows] == [0, 1]
	for row in rows:
	    assert row["mpi_init_ms"] > 0 and row["mpi_bcast_us"] > 0
	    assert len(row) == 4
	END
	result $? '--bootstrap --json has the times of MPI'
}

test_cluster()
{
	needs_cluster 'a step of a real cluster' 2 || return 0
	if needs_mpi 'the backend mpi on a cluster'; then
		cluster_mpi
		bootstrap_mpi
	fi
	needs_pmix 'ranks that meet by PMIx' || return 0
	cluster_refusals
	bootstrap
}

# Slow is 10 Mbit/s: 32 KiB take 26 ms, while two ranks that share a core wait
# some 10 ms for each other.
test_pairs()
{
	needs_mpi 'pairs of nodes' || return 0
	needs_cluster 'pairs of nodes' 4 || return 0
	admin="$sandbox exec --dir $dir/cluster --root --node n2"
	# shellcheck disable=SC2086 # several words
	if ! $admin tc qdisc add dev eth0 root tbf rate 10mbit burst 16k \
		latency 200ms 2>err; then
		skip '--pairs names the slow node' "no tc: $(cat err)"
		return
	fi
	call timeout 60 ./step -N4 -n4 "$bench" --backend mpi --pairs -b 32K -n 5
	equal '--pairs names the slow node, and fails' '1 n2,' \
		"$status $(sed -n 's/^# slow node: \([^ ]*\) .*/\1/p' out)"
	equal 'all pairs are there, and right' \
		'n1 n2 0, n1 n3 0, n1 n4 0, n2 n3 0, n2 n4 0, n3 n4 0' \
		"$(awk '!/^#/ { printf "%s%s %s %s", n++ ? ", " : "", $1, $2,
			$6 }' out)"
	equal 'the pairs of the slow node are marked' 3 \
		"$(awk '!/^#/ && / n2 / && / slow$/' out | wc -l)"
	call timeout 60 ./step -N3 -n6 -w 'n[1-3]' "$bench" --backend mpi \
		--pairs -b 32K -n 5 --json
	"$python" - >why 2>&1 <<-END
	import json
	rows = [json.loads(line) for line in open("out")]
	assert [row["nodes"] for row in rows[:3]] == \
	    [["n1", "n2"], ["n1", "n3"], ["n2", "n3"]]
	for row in rows[:3]:
	    assert row["size"] == 32768 and row["ranks"] == 2
	    assert row["nwrong"] == 0
	    assert abs(row["bw"] * row["time"] / (2 * 32.768) - 1) < 0.01
	    assert row["slow"] or "n2" not in row["nodes"]
	assert "n2" in rows[3]["slow_nodes"]
	END
	result $? '--pairs --json has each pair of three nodes and names the slow one'
	call timeout 60 ./step -N2 -n4 -w 'n[1,3]' "$bench" --backend mpi \
		--pairs -b 32K -n 5
	equal 'of two nodes nothing is said' '0 1' \
		"$status $(grep -c '^# two nodes are one pair' out)"
}

# make_fakes NAME: a fake GPU and a fake NCCL, which sums floats and ints
make_fakes()
{
	test ! -e libnccl.so.2 || return 0
	for name in cuda:libcuda.so.1 nccl:libnccl.so.2; do
		"$cc" -shared -fPIC -pthread -Wl,-soname,"${name#*:}" \
			-o "${name#*:}" "$top/tests/fakes/fake_${name%:*}"*.c \
			2>err && continue
		skip "$1" 'no compiler for the fakes'
		return 1
	done
	mkdir -m 777 ids
}

test_nccl()
{
	needs_pmix 'the NCCL backend' || return 0
	needs_cluster 'the NCCL backend' 2 || return 0
	make_fakes 'the NCCL backend' || return 0
	export LD_LIBRARY_PATH="$scratch" FAKE_NCCL_DIR="$scratch/ids"
	export DDP_NCCL_LIBRARY="$scratch/libnccl.so.2"
	for name in all_reduce reduce_scatter all_gather broadcast; do
		rows "NCCL: $name on 2 nodes" 4 2 $name \
			1024 16384 -- ./step -N2 -n4 "$bench" \
			--collective $name -b 1K -e 16K -f 16 -n 3 -r 2
	done
	# Each other call would start a thread (NCCL 2.23 and later).
	equal 'NCCL: what is measured goes through calls that block' '16 0' \
		"$(grep -c ' blocking calls ' ids/log) $(
		grep -c '[0-9] calls ' ids/log)"
	wrong 'NCCL: wrong results are told' '1 1 1' \
		env FAKE_NCCL_WRONG=1 ./step -N2 -n4 "$bench" \
		-b 1K -e 1K -n 3
	says 'NCCL: a size beyond the GPU' 1 'choose a smaller --maxbytes' \
		./step -N2 -n4 "$bench" -b 1K -e 64M
	call timeout 60 ./step -N2 -n4 "$bench" -b 1K -e 1K -d double
	test "$status" -eq 1 && grep -q 'rank . on n.: .*invalid arg' err
	result $? 'NCCL: a call that fails ends all'
	says 'NCCL: fewer GPUs than ranks' 1 '--share-gpu' env FAKE_GPUS=2 \
		./step -N1 -n3 --overcommit "$bench" -b 1K -e 1K
	says 'NCCL: two ranks on the only GPU' 1 'GPU' env FAKE_GPUS=1 \
		./step -N1 -n2 "$bench" -b 1K -e 1K
	rows 'NCCL: unless they may share it' 2 1 all_reduce 1024 -- \
		env FAKE_GPUS=1 ./step -N1 -n2 "$bench" -b 1K -e 1K \
		--share-gpu
	says 'NCCL: no GPU' 1 'there is no GPU' env FAKE_GPUS=0 \
		./step -N2 -n4 "$bench"
	call timeout 60 ./step -N2 -n4 "$bench" --pairs -b 32K -n 5
	equal 'NCCL: --pairs measures both ranks of two nodes' 'n1 n2 2 0' \
		"$(awk '!/^#/ { print $1, $2, $3, $6 }' out)"
	call timeout 60 ./step -N2 -n4 "$bench" --bootstrap -n 3
	check 'NCCL: --bootstrap times the communicator' awk '
		!/^#/ { n++; if (!($5 > 0)) bad = 1 }
		END { exit bad || n != 4 }' out
	unset LD_LIBRARY_PATH FAKE_NCCL_DIR DDP_NCCL_LIBRARY
}
