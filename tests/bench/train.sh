# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# Compares ddp-train with PyTorch: one thread a rank, each rank on a CPU of its
# own; this ends if a rank is not. A round has every run once, and the next one
# has them in the opposite order. The figure of a run is the median of its steps
# without the first.

train_python=/usr/bin/python3
train_text=/usr/share/common-licenses
train_steps=5 train_batch=8

# what mpirun must be told as root, on one machine
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export BENCH_CPUS=2

# train_missing: prints why nothing can be compared here, if so
train_missing()
{
	if ! grep -Eq '^HAVE_(ONEDNN|BLAS) = yes' "$build/config.mak"; then
		echo 'configure found no engine for ddp-train'
	elif ! "$train_python" -c 'import torch' 2>err; then
		echo "no torch for $train_python"
	elif ! grep -q '^HAVE_MPI = yes' "$build/config.mak" ||
		! command -v mpirun >/dev/null; then
		echo 'there is no Open MPI'
	elif test "$(nproc)" -lt 2; then
		echo 'the ranks need 2 CPUs'
	fi
}

# OpenBLAS before about 0.3.22 does not know every CPU with AVX-512. Then both
# sides are told to use its kernels for AVX-512, which are much faster.
train_openblas()
{
	case $("$train_python" - 2>/dev/null <<-END
	import ctypes
	name = ctypes.CDLL("libblas.so.3").openblas_get_corename
	name.restype = ctypes.c_char_p
	print(name().decode(), "avx512f" in open("/proc/cpuinfo").read())
	END
	) in
	'Haswell True' | 'Zen True')
		export OPENBLAS_CORETYPE=SkylakeX
		echo "  OpenBLAS does not know this CPU: all runs have" \
			"OPENBLAS_CORETYPE=SkylakeX" ;;
	esac
}

train_prepare()
{
	make -s -C "$build" obj/bin/ddp-train >&2 ||
		die "cannot build ddp-train in $build"
	cp "$build/obj/bin/ddp-train" "$here"/train_*.py . || exit 1
	cat "$train_text"/* >text
	chmod 755 ddp-train train_*.py
	chmod 644 text
	engine=$(sed -n 's/^HAVE_ONEDNN = yes/oneDNN/p' "$build/config.mak")
	echo "train, ddp-train (${engine:-OpenBLAS}) and PyTorch" \
		"$("$train_python" -c 'import torch; print(torch.__version__)')"
	train_openblas
}

# ranks WHERE COUNT CMD...: run CMD by COUNT ranks: "alone", on one "node", or
# on two "nodes" of the cluster. They write into the folder run.
ranks()
{
	where=$1 count=$2
	shift 2
	rm -rf run
	mkdir -m 777 run
	set -- "$train_python" "$PWD/train_rank.py" "$PWD/run" "$@"
	MASTER_PORT=$("$train_python" -c 'import socket
s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
	export MASTER_PORT
	case $where in
	alone) timeout -k 5 300 "$@" ;;
	node) MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo \
		timeout -k 5 300 mpirun -n "$count" "$@" ;;
	nodes) MASTER_ADDR=n1 GLOO_SOCKET_IFNAME=eth0 \
		on_login srun --mpi=pmix -N2 -n"$count" "$@" ;;
	esac >err 2>&1 </dev/null ||
		die "a run has failed: $(cat err; tail -n 5 run/out.*)"
	cpus=$((count < BENCH_CPUS ? count : BENCH_CPUS))
	if test "$(cat run/rank.* | wc -l)" -ne "$count" ||
		test "$(cut -d' ' -f2 run/rank.* | sort -u | wc -l)" -ne $cpus
	then
		die "the $count ranks are not on CPUs of their own:" \
			"$(cat run/rank.*)"
	fi
}

# row NAME PRESET: add a line about the run to NAME.runs. Its columns:
#   1 tokens/s
#   2 ms of exposed communication
#   3 MB of the largest rank
#   4 ms to the first step
#   5 the same without the time of the backend (MPI_Init)
#   6 ms of exposed communication of the rank that computed longest: of two
#     ranks twice the mean without the other one's, so without its waiting
#   7 MB of a rank with its share of the shared memory
row()
{
	case $2 in tiny) tokens=64 ;; *) tokens=256 ;; esac
	sharers=$count
	test "$where" = node || sharers=1
	awk -v tokens="$((count * train_batch * tokens))" \
		-v memory="$(sort -k 3n run/rank.* | tail -n 1)" \
		-v first="$(cut -d' ' -f5 run/rank.0)" \
		-v sharers="$sharers" -v backend="$(sed -n \
		's/^.*ready in .*, \(.*\) s of it backend.*$/\1/p' run/out.0)" \
		"$quantiles"'
	function field(name, text) {
		text = $0
		return sub(".*\"" name "\":", "", text) ? text + 0 : 0
	}
	NR > 1 {
		took[NR - 1] = field("seconds") - last
		exposed[NR - 1] = field("exposed") * 1e3
		own[NR - 1] = (2 * field("waited") - field("exposed")) * 1e3
	}
	{ last = field("seconds") }
	END {
		sort(took, NR - 1); sort(exposed, NR - 1); sort(own, NR - 1)
		step = at(took, NR - 1, 0.5)
		split(memory, kb, " ")
		print (NR > 1 ? tokens / step : 0), at(exposed, NR - 1, 0.5) + 0, \
			kb[3] / 1e3, first * 1e3, (first - backend) * 1e3, \
			at(own, NR - 1, 0.5) + 0, \
			(kb[3] - kb[4] + kb[4] / sharers) / 1e3
	}' run/log >>"$1.runs" || exit 1
}

# ours NAME WHERE COUNT PRESET STEPS [OPTION...]: one run of ddp-train
ours()
{
	name=$1 where=$2 count=$3 preset=$4 number=$5
	shift 5
	ranks "$where" "$count" ./ddp-train --preset "$preset" --data text \
		--global-batch $((count * train_batch)) --steps "$number" \
		--log run/log "$@"
	row "$name" "$preset"
}

# theirs NAME WHERE COUNT PRESET STEPS: one run of PyTorch
theirs()
{
	ranks "$2" "$3" "$train_python" train_peer.py "$4" text "$5" run/log
	row "$1" "$4"
}

# in_rounds FILE: run each of its lines once a round
in_rounds()
{
	rm -f ./*.runs
	tac "$1" >backward
	round=0
	while test $((round += 1)) -le "$rounds"; do
		if test $((round % 2)) -eq 1; then
			cp "$1" order
		else
			cp backward order
		fi
		while read -r run <&3; do
			eval "$run"
		done 3<order
	done
}

train_head()
{
	printf '  %-30s %5s  %-13s %-13s %6s %6s %6s  rounds\n' "$1" ratio \
		'95 %' quartiles A B 'A - B'
}

# versus NAME A B COLUMN: a line about A.runs / B.runs
versus()
{
	paste "$2.runs" "$3.runs" | awk -v a="$4" '{ print $a, $(NF / 2 + a) }' \
		>pairs.out
	ratio "$1"
}

train_speed()
{
	cat >plan <<-END
	ours one alone 1 10M $train_steps
	theirs one_torch alone 1 10M $train_steps
	ours two node 2 10M $train_steps
	theirs two_torch node 2 10M $train_steps
	ours far nodes 2 10M $train_steps
	theirs far_torch nodes 2 10M $train_steps
	ours four node 4 10M $train_steps
	ours fixed node 2 10M $train_steps --deterministic
	ours fixed8 node 2 10M $train_steps --deterministic --granule 8
	END
	in_rounds plan
	train_head '10M, tokens/s, A / B'
	versus '1 rank / PyTorch' one one_torch 1
	versus '2 on a node / PyTorch' two two_torch 1
	versus '2 on two nodes / PyTorch' far far_torch 1
	versus '2 on a node / 1 rank' two one 1
	versus 'PyTorch: 2 on a node / 1' two_torch one_torch 1
	versus '4 on 2 CPUs / 2' four two 1
	versus 'deterministic / not' fixed two 1
	versus 'the same, granules of 8' fixed8 two 1
	train_head '10M, resident MB a rank, A / B'
	versus '1 rank / PyTorch' one one_torch 3
	versus '2 on a node / PyTorch' two two_torch 3
	versus 'the same, shared memory once' two two_torch 7
	versus '2 on two nodes / PyTorch' far far_torch 3
}

train_start()
{
	cat >plan <<-END
	ours one alone 1 tiny 1
	theirs one_torch alone 1 tiny 1
	ours two node 2 tiny 1
	theirs two_torch node 2 tiny 1
	END
	in_rounds plan
	train_head 'tiny, ms to its first step'
	versus '1 rank / PyTorch' one one_torch 4
	versus '2 on a node / PyTorch' two two_torch 4
	versus 'the same without MPI_Init' two two_torch 5
}

# limit RATE: limit what each node may send; "none" removes the limit
limit()
{
	for node in n1 n2; do
		admin "$node" tc qdisc del dev eth0 root 2>/dev/null
		test "$1" = none || admin "$node" tc qdisc add dev eth0 root \
			tbf rate "$1" burst 1mb latency 50ms ||
			die "cannot limit eth0 on $node"
	done
}

# train_link NAME: --overlap on / off, between two nodes
train_link()
{
	cat >plan <<-END
	ours on nodes 2 10M $train_steps --overlap on
	ours off nodes 2 10M $train_steps --overlap off
	END
	in_rounds plan
	train_head "10M, two nodes, $1"
	versus 'overlap on / off, tokens/s' on off 1
	versus 'the same, exposed ms a step' on off 2
	versus 'of it, the later rank'"'s" on off 6
}

train_overlap()
{
	train_link 'no limit'
	limit 2gbit
	train_link '2 Gbit/s'
	limit none
}

train_allreduce()
{
	programs allreduce
	for where in node nodes; do
		ranks "$where" 2 ./allreduce
		sed 's/^/  /' run/out.0
	done
}

# train PART: measure it; the first call prepares for all parts
train()
{
	train_why=$(train_missing)
	if test -n "$train_why"; then
		left_out "$1" "$train_why"
		return
	fi
	"$sandbox" down --dir "$dir/cluster" 2>/dev/null
	"$sandbox" up --no-plugin --dir "$dir/cluster" --nodes 2 --gpus 1 \
		--cpus $(($(nproc) / 2)) 2>err || die "$(cat err)"
	test -x ddp-train || train_prepare
	"$1"
}
