# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# Compares ddp-train with PyTorch: one thread a rank, each rank on a CPU of its
# own; this ends if a rank is not, or if the losses differ. A round has every
# run once, and the next one has them in the opposite order. The figure of a run
# is the median of its steps without the first.

# The peers: "debian" is PyTorch of this Python, "eager" and "compile" are that
# of the environment which tests/frameworks makes.
train_python=/usr/bin/python3 train_peers='' train_env=''
train_text=/usr/share/common-licenses
train_steps=5 train_batch=8 train_preset=10M
test -z "$smoke" || train_steps=3 train_preset=tiny

# what mpirun must be told as root, on one machine
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export BENCH_CPUS=2
# no processes beside the ranks
export TORCHINDUCTOR_COMPILE_THREADS=1

# train_missing: prints why nothing can be measured here, if so
train_missing()
{
	if ! grep -Eq '^HAVE_(ONEDNN|BLAS) = yes' "$build/config.mak"; then
		echo 'configure found no engine for ddp-train'
	elif ! grep -q '^HAVE_MPI = yes' "$build/config.mak" ||
		! command -v mpirun >/dev/null; then
		echo 'there is no Open MPI'
	elif test "$(nproc)" -lt 2; then
		echo 'the ranks need 2 CPUs'
	fi
}

torch_version()
{
	"$1" -c 'import numpy, torch; print(torch.__version__)' 2>err
}

# train_find_peers: set train_peers, and say what they are
train_find_peers()
{
	if version=$(torch_version "$train_python"); then
		train_peers=debian
		echo "  debian: PyTorch $version, eager"
	else
		left_out "  PyTorch of $train_python" "$(tail -n 1 err)"
	fi
	test -z "$smoke" || return 0
	train_env=$("$top/tests/frameworks/environment")
	case $? in
	0) ;;
	77) left_out '  PyTorch 2 from PyPI' "$train_env"
		return ;;
	*) die 'tests/frameworks/environment has failed' ;;
	esac
	version=$(torch_version "$train_env/bin/python3") || die "$(cat err)"
	train_peers="$train_peers eager"
	echo "  eager: PyTorch $version"
	if "$train_env/bin/python3" -c 'import torch
torch.compile(torch.sin)(torch.ones(9))' >err 2>&1; then
		train_peers="$train_peers compile"
		echo "  compile: the same by torch.compile"
	else
		left_out '  torch.compile' "$(grep . err | tail -n 1)"
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

# flags: of the processor, those that matter to matrix products
flags()
{
	sed -n '/^flags/{p;q;}' /proc/cpuinfo | tr ' ' '\n' |
		grep -xE 'avx2|avx512f|avx512_bf16|amx_bf16|amx_tile' | xargs
}

train_prepare()
{
	make -s -C "$build" obj/bin/ddp-train >&2 ||
		die "cannot build ddp-train in $build"
	cp "$build/obj/bin/ddp-train" "$here"/train_*.py \
		"$top"/tests/train/parity.py "$top"/tests/train/reference.py \
		. || exit 1
	cat "$train_text"/* >text
	chmod 755 ddp-train train_*.py
	chmod 644 text parity.py reference.py
	engine=$(sed -n 's/^HAVE_ONEDNN = yes/oneDNN/p' "$build/config.mak")
	echo "train, ddp-train (${engine:-OpenBLAS}), processor: $(flags)"
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
	# What root's runs have compiled the user on the nodes cannot change.
	case $where in
	nodes) export TORCHINDUCTOR_CACHE_DIR="$PWD/compiled_by_user" ;;
	*) export TORCHINDUCTOR_CACHE_DIR="$PWD/compiled" ;;
	esac
	test -d "$TORCHINDUCTOR_CACHE_DIR" ||
		mkdir -m 777 "$TORCHINDUCTOR_CACHE_DIR"
	set -- "$train_python" "$PWD/train_rank.py" "$PWD/run" "$@"
	MASTER_PORT=$("$train_python" -c 'import socket
s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
	export MASTER_PORT
	case $where in
	alone) timeout -k 5 900 "$@" ;;
	node) MASTER_ADDR=127.0.0.1 GLOO_SOCKET_IFNAME=lo \
		timeout -k 5 900 mpirun -n "$count" "$@" ;;
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

# row NAME PRESET: add a line about the run to NAME.runs, and write its losses
# to NAME.losses. The columns of a line:
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
		's/^.*ready in .*, \(.*\) s of it to meet.*$/\1/p' run/out.0)" \
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
	sed -n 's/.*"loss":\([^,]*\),.*/\1/p' run/log >"$1.losses"
}

# ours NAME WHERE COUNT PRESET STEPS [OPTION...]: one run of ddp-train
ours()
{
	name=$1 where=$2 count=$3 preset=$4 number=$5
	shift 5
	ranks "$where" "$count" ./ddp-train --device cpu --preset "$preset" \
		--data text \
		--global-batch $((count * train_batch)) --steps "$number" \
		--seed 7 --lr 3e-4 --schedule constant --warmup 0 \
		--log run/log "$@"
	row "$name" "$preset"
}

# theirs PEER NAME WHERE COUNT PRESET STEPS [bf16]: one run of PyTorch, to
# NAME_PEER
theirs()
{
	interpreter=$train_python how=
	test "$1" = debian || interpreter=$train_env/bin/python3
	test "$1" != compile || how=compile
	# shellcheck disable=SC2086 # nothing, or a word
	ranks "$3" "$4" "$interpreter" train_peer.py "$5" text "$6" run/log \
		$how $7
	row "$2_$1" "$5"
}

# both NAME WHERE COUNT PRESET STEPS [bf16]: lines of a plan: ddp-train's run
# and each peer's
both()
{
	echo "ours $1 $2 $3 $4 $5 ${6:+--dtype $6}"
	for peer in $train_peers; do
		echo "theirs $peer $1 $2 $3 $4 $5 '${6-}'"
	done
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

# beside NAME RUN COLUMN: a line for each peer
beside()
{
	for peer in $train_peers; do
		versus "$1 / $peer" "$2" "$2_$peer" "$3"
	done
}

# fastest RUN: the peer with the highest median rate
fastest()
{
	for peer in $train_peers; do
		cut -d' ' -f1 "$1_$peer.runs" | awk -v peer="$peer" "$quantiles"'
			{ rate[NR] = $1 }
			END { sort(rate, NR); print at(rate, NR, 0.5), peer }'
	done | sort -n | sed -n '$s/.* //p'
}

# faster NAME RUN: lines for each peer, and for the fastest
faster()
{
	test -n "$train_peers" || return
	beside "$1" "$2" 1
	versus "$1 / the fastest" "$2" "$2_$(fastest "$2")" 1
}

# alike RUN MOST: ends all if a peer's losses are further apart than MOST times
# the loss
alike()
{
	for peer in $train_peers; do
		paste "$1.losses" "$1_$peer.losses" | awk -v most="$2" '
			{ apart = $2 / $1 - 1
			  apart = apart < 0 ? -apart : apart
			  worst = apart > worst ? apart : worst }
			END { printf "%.1e\n", worst
			      exit !(NR > 0 && worst <= most) }' >apart ||
			die "$1: $peer has other losses than ddp-train:" \
				"$(paste "$1.losses" "$1_$peer.losses")"
		echo "  losses of $1: $peer at most $(cat apart) of them apart"
	done
}

train_speed()
{
	{
		both one alone 1 $train_preset $train_steps
		both two node 2 $train_preset $train_steps
		both far nodes 2 $train_preset $train_steps
		cat <<-END
		ours four node 4 $train_preset $train_steps
		ours fixed node 2 $train_preset $train_steps --deterministic
		ours fixed8 node 2 $train_preset $train_steps --deterministic --granule 8
		ours zero node 2 $train_preset $train_steps --zero 1
		END
	} >plan
	in_rounds plan
	alike one 1e-5
	alike two 1e-5
	train_head "$train_preset, fp32, tokens/s, A / B"
	faster '1 rank' one
	faster '2 on a node' two
	faster '2 on two nodes' far
	versus '2 on a node / 1 rank' two one 1
	for peer in $train_peers; do
		versus "$peer: 2 on a node / 1" "two_$peer" "one_$peer" 1
	done
	versus '4 on 2 CPUs / 2' four two 1
	versus 'deterministic / not' fixed two 1
	versus 'the same, granules of 8' fixed8 two 1
	versus '--zero 1 / not' zero two 1
	train_head "$train_preset, fp32, resident MB a rank"
	beside '1 rank' one 3
	beside '2 on a node' two 3
	beside 'the same, shared once' two 7
	versus 'the same, --zero 1 / not' zero two 7
	beside '2 on two nodes' far 3
}

train_bf16()
{
	case $(flags) in
	*_bf16*) ;;
	*)	left_out train_bf16 'no AVX512_BF16, no AMX in this processor'
		return ;;
	esac
	{
		both one16 alone 1 $train_preset $train_steps bf16
		both two16 node 2 $train_preset $train_steps bf16
		echo "ours one alone 1 $train_preset $train_steps"
	} >plan
	in_rounds plan
	alike one16 0.02
	alike two16 0.02
	train_head "$train_preset, bf16, tokens/s, A / B"
	faster '1 rank' one16
	faster '2 on a node' two16
	versus '1 rank / fp32' one16 one 1
	train_head "$train_preset, bf16, resident MB a rank"
	beside '1 rank' one16 3
	beside '2 on a node' two16 3
	beside 'the same, shared once' two16 7
}

train_start()
{
	{
		both one alone 1 tiny 1
		both two node 2 tiny 1
	} >plan
	in_rounds plan
	train_head 'tiny, ms to its first step'
	beside '1 rank' one 4
	beside '2 on a node' two 4
	beside 'the same without MPI_Init' two 5
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
	ours on nodes 2 $train_preset $train_steps --overlap on
	ours off nodes 2 $train_preset $train_steps --overlap off
	END
	in_rounds plan
	train_head "$train_preset, two nodes, $1"
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
		ranks "$where" 2 ./allreduce ${smoke:+1048576 1}
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
	case $1 in
	train_speed | train_bf16 | train_start)
		test -n "$train_peers" || train_find_peers ;;
	esac
	"$1"
}
