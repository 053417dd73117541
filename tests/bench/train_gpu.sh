# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run, train.sh
# On a GPU: ddp-train beside PyTorch, and ddp-bench beside NCCL alone. A round
# has each of two runs once, the next one in the opposite order: A B B A. The
# figure of a run is the median of its steps without the first three, in which
# PyTorch compiles and tries its kernels.

gpu_python=${DDP_PYTHON:-python3}
gpu_steps=20 gpu_context=1024 gpu_vocab=50304 gpu_calls=50
test -z "$smoke" || gpu_steps=5 gpu_calls=5

# gpu_count: those that a program may see
gpu_count()
{
	if test -n "${CUDA_VISIBLE_DEVICES-}"; then
		echo "$CUDA_VISIBLE_DEVICES" | awk -F, '{ print NF }'
	else
		find /dev -maxdepth 1 -name 'nvidia[0-9]*' | wc -l
	fi
}

# gpu_made FILE...: made, unless DDP_PREBUILT says that they are
gpu_made()
{
	test -n "${DDP_PREBUILT-}" || make -s -C "$build" "$@" >&2
}

# train_gpu_missing: prints why nothing can be measured here, if so
train_gpu_missing()
{
	if test "$(gpu_count)" -eq 0; then
		echo 'no GPU'
	elif ! grep -q '^HAVE_CUBLASLT = yes' "$build/config.mak" ||
		! grep -Eq '^HAVE_(ONEDNN|BLAS) = yes' "$build/config.mak"
	then
		echo 'configure found no CUDA, no cuBLASLt or no engine for CPUs'
	elif ! gpu_made obj/bin/ddp-train obj/bin/ddp_cuda.so; then
		echo 'ddp-train could not be built'
	fi
}

# gpu_tokens: a token file of pairs of our sources' bytes: as many as ddp-train
# needs, and not all as likely as one another
gpu_tokens()
{
	find "$top"/bin "$top"/lib "$top"/plugin "$top"/tests -name '*.[ch]' \
		-exec cat {} + | "$gpu_python" -c 'import array, struct, sys
text = sys.stdin.buffer.read()
tokens = array.array("H", ((a * 256 + b) % 50257
                           for a, b in zip(text, text[1:])))
sys.stdout.buffer.write(struct.pack("<3I", 20240520, 1, len(tokens)))
sys.stdout.buffer.write(bytes(1024 - 12) + tokens.tobytes())' >tokens
}

# gpu_mib: the memory of the GPU on which ddp-train computes
gpu_mib()
{
	DDP_MODULE_DIR=$build/obj/bin timeout -k 5 300 \
		"$build/obj/bin/ddp-train" --device cuda --steps 1 |
		sed -n 's/^computing on .*, \([0-9]*\) MiB$/\1/p'
}

# gpu_batch PRESET MIB: sequences at once that fit, also into PyTorch, whose
# logits alone take 200 MB a sequence; 0: none
gpu_batch()
{
	case $1 in
	124M)	set -- "$2" 60000 32 36000 16 20000 8 11000 4 7000 1 ;;
	774M)	set -- "$2" 120000 16 60000 8 36000 4 22000 1 ;;
	esac
	mib=$1
	shift
	while test $# -gt 1 && test "$mib" -le "$1"; do
		shift 2
	done
	echo "${2:-0}"
}

# gpu_lost NAME WHY: a run has failed. What it was to show is left out, and it
# does not run again; all else is measured, as GPUs are rare.
gpu_lost()
{
	failed=1
	rm -f "$1.runs"
	: >"$1.lost"
	left_out "  $1" "$2"
}

# gpu_limit SECONDS: as long, or until $DDP_BENCH_END if that is sooner
gpu_limit()
{
	gpu_left=$((${DDP_BENCH_END:-9999999999} - $(date +%s)))
	test "$gpu_left" -lt "$1" || gpu_left=$1
	test "$gpu_left" -gt 1 || gpu_left=1
	echo "$gpu_left"
}

# gpu_reason STATUS: why the last run has failed
gpu_reason()
{
	echo "exit status $1: $(grep -h . out err | tail -n 1)"
}

# watched NAME COMMAND...: run it, and set used to the MiB of a GPU's memory
# that nvidia-smi saw more than before, at most; 0 where it is not installed
watched()
{
	watched_name=$1
	shift
	: >used.log
	used=0 watcher=
	if command -v nvidia-smi >/dev/null; then
		nvidia-smi --query-gpu=index,memory.used -lms 200 \
			--format=csv,noheader,nounits >used.log 2>/dev/null &
		watcher=$!
		sleep 1
	fi
	timeout -k 5 "$(gpu_limit 900)" "$@" >out 2>err </dev/null
	watched_status=$?
	if test -n "$watcher"; then
		kill "$watcher"
		wait "$watcher" 2>/dev/null
		used=$(awk -F ', ' '!($1 in first) { first[$1] = $2 }
			$2 - first[$1] > most { most = $2 - first[$1] }
			END { print most + 0 }' used.log)
	fi
	test "$watched_status" -eq 0 && return
	gpu_lost "$watched_name" "$(gpu_reason $watched_status)"
	return 1
}

# gpu_row NAME BATCH ALLOCATED PREDICTED: add a line about the run to NAME.runs,
# and write its losses to NAME.losses. The columns of a line: tokens/s, MiB of
# its tensors, MiB as nvidia-smi sees it, MFU in %, time over the prediction.
gpu_row()
{
	awk -v tokens="$(($2 * gpu_context))" -v allocated="$3" \
		-v used="$used" -v predicted="$4" "$quantiles"'
	function field(name, text) {
		text = $0
		return sub(".*\"" name "\":", "", text) ? text + 0 : 0
	}
	NR > 3 {
		took[NR - 3] = field("seconds") - last
		mfu[NR - 3] = field("mfu") * 100
	}
	{ last = field("seconds") }
	END {
		n = NR - 3
		if (n < 1)
			exit 1
		sort(took, n); sort(mfu, n)
		print tokens / at(took, n, 0.5), allocated, used,
			at(mfu, n, 0.5), predicted + 0
	}' run.log >row || {
		gpu_lost "$1" 'its log has no steps'
		return
	}
	cat row >>"$1.runs"
	sed -n 's/.*"loss":\([^,]*\),.*/\1/p' run.log >"$1.losses"
}

# gpu_ours NAME PRESET BATCH ATTENTION: one run of ddp-train
gpu_ours()
{
	test ! -e "$1.lost" || return 0
	gpu_name=$1 gpu_count=$3
	set -- env DDP_MODULE_DIR="$build/obj/bin" "$build/obj/bin/ddp-train" \
		--device cuda --preset "$2" --vocab $gpu_vocab \
		--tokens tokens --dtype bf16 --batch "$3" --steps $gpu_steps \
		--seed 7 --lr 3e-4 --schedule constant --warmup 0 \
		--attention "$4"
	allocated=$("$@" --plan |
		sed -n 's/^ *in all  *\([0-9.]*\) MiB$/\1/p')
	rm -f run.log
	watched "$gpu_name" "$@" --log run.log || return 0
	gpu_row "$gpu_name" "$gpu_count" "$allocated" \
		"$(sed -n 's/.*, \([0-9.]*\) of the predicted time$/\1/p' out)"
}

# gpu_theirs NAME PRESET BATCH HOW: one run of PyTorch
gpu_theirs()
{
	test ! -e "$1.lost" || return 0
	rm -f run.log
	# shellcheck disable=SC2086 # nothing, or a word
	watched "$1" "$gpu_python" "$here/train_gpu_peer.py" "$2" tokens \
		$gpu_steps "$3" bf16 run.log ${4-} || return 0
	gpu_row "$1" "$3" "$(sed -n 's/^memory \([0-9.]*\) .*/\1/p' out)" 0
}

# gpu_versus NAME A B COLUMN: a line about both, if neither has failed
gpu_versus()
{
	test ! -s "$2.runs" || test ! -s "$3.runs" || versus "$@"
}

# gpu_median FILE COLUMN
gpu_median()
{
	cut -d' ' -f"$2" "$1" | awk "$quantiles"'
		{ v[NR] = $1 }
		END { sort(v, NR); printf "%.6g\n", at(v, NR, 0.5) }'
}

# gpu_figures PRESET: what each reached. For a step of the same model PyTorch's
# MFU is as much less as its speed.
gpu_figures()
{
	test -s "ours_$1.runs" || return 0
	rate=$(gpu_median "ours_$1.runs" 1) mfu=$(gpu_median "ours_$1.runs" 4)
	echo "  ddp-train: $rate tokens/s, $(gpu_median "ours_$1.runs" 2) MiB" \
		"planned$(test "$mfu" = 0 || echo ", MFU $mfu %," \
			"$(gpu_median "ours_$1.runs" 5) of the predicted time")"
	test -s "theirs_$1.runs" || return 0
	gpu_rate=$(gpu_median "theirs_$1.runs" 1)
	echo "  PyTorch: $gpu_rate tokens/s," \
		"$(gpu_median "theirs_$1.runs" 2) MiB allocated$(
		test "$mfu" = 0 || awk -v mfu="$mfu" -v a="$rate" \
			-v b="$gpu_rate" 'BEGIN {
				printf ", MFU %.4g %%", mfu * b / a }')"
	test "$mfu" != 0 || echo '  no MFU: what this GPU can do is not known'
}

# gpu_apart PRESET: how far losses are apart; those of 774M begin differently
gpu_apart()
{
	test "$1" = 124M && test -s "ours_$1.runs" &&
		test -s "theirs_$1.runs" || return 0
	paste "ours_$1.losses" "theirs_$1.losses" | awk '
		{ apart = $2 / $1 - 1; apart = apart < 0 ? -apart : apart }
		apart > worst { worst = apart }
		END { printf "  losses at most %.1e of them apart\n", worst }'
}

# gpu_preset PRESET MIB: its figures, and the ratios
gpu_preset()
{
	batch=$(gpu_batch "$1" "$2")
	if test "$batch" -eq 0; then
		left_out "$1" "$2 MiB of memory are too few"
		return
	fi
	echo "gpu_ours ours_$1 $1 $batch own" >plan
	! $gpu_cudnn || echo "gpu_ours cudnn_$1 $1 $batch cudnn" >>plan
	test -z "$gpu_how" ||
		echo "gpu_theirs theirs_$1 $1 $batch ${gpu_how#eager}" >>plan
	in_rounds plan
	train_head "$1, bf16, batch $batch x $gpu_context"
	! $gpu_cudnn || gpu_versus "tokens/s, attention by cuDNN / our own" \
		"cudnn_$1" "ours_$1" 1
	if test -n "$gpu_how"; then
		gpu_versus "tokens/s / PyTorch, $gpu_how" "ours_$1" \
			"theirs_$1" 1
		gpu_versus 'memory of tensors, MiB' "ours_$1" "theirs_$1" 2
		test "$used" -eq 0 || gpu_versus 'memory by nvidia-smi, MiB' \
			"ours_$1" "theirs_$1" 3
		gpu_apart "$1"
	fi
	gpu_figures "$1"
}

# gpu_find_peer: sets gpu_how to compile, eager, or nothing
gpu_find_peer()
{
	gpu_how=
	if ! "$gpu_python" -c 'import numpy, torch
assert torch.cuda.is_available(), "PyTorch sees no GPU"
print("  PyTorch", torch.__version__)' 2>err; then
		left_out '  PyTorch' "$(tail -n 1 err)"
	elif "$gpu_python" -c 'import torch
torch.compile(torch.sin)(torch.ones(9, device="cuda"))' >err 2>&1; then
		gpu_how=compile
	else
		gpu_how=eager
		left_out '  torch.compile' "$(grep . err | tail -n 1)"
	fi
}

# gpu_find_cudnn: sets gpu_cudnn to true or false
gpu_find_cudnn()
{
	gpu_cudnn=false
	if DDP_MODULE_DIR="$build/obj/bin" "$build/obj/bin/ddp-train" \
		--device cuda --tokens tokens --vocab $gpu_vocab --dtype bf16 \
		--steps 1 --warmup 0 --attention cudnn >out 2>err; then
		gpu_cudnn=true
	else
		left_out '  attention by cuDNN' "$(tail -n 1 err)"
	fi
}

# nccl_by FILE COMMAND...: add a line with the microseconds that a rank 0
# prints to FILE.runs
nccl_by()
{
	nccl_to=$1
	shift
	test ! -e "$nccl_to.lost" || return 0
	timeout -k 5 "$(gpu_limit 300)" mpirun -n "$gpus" "$@" >out 2>err </dev/null || {
		gpu_lost "$nccl_to" "$(gpu_reason $?)"
		return
	}
	sed -n 's/.*"in_place":{"time":\([0-9.]*\),.*/\1/; /^[0-9.]*$/p' \
		out >>"$nccl_to.runs"
}

# nccl_ours BYTES, nccl_alone BYTES
nccl_ours()
{
	nccl_by "bench_$1" "$build/obj/bin/ddp-bench" --backend nccl \
		--minbytes "$1" --maxbytes "$1" --iters $gpu_calls \
		--warmup_iters 5 --check 0 --json
}

nccl_alone()
{
	rm -f nccl.id
	nccl_by "alone_$1" "$PWD/nccl_loop" "$PWD/nccl.id" "$1" $gpu_calls
}

# gpu_several NAME: whether ranks can be started on a GPU each
gpu_several()
{
	gpus=$(gpu_count)
	if test "$gpus" -lt 2; then
		left_out "$1" 'it needs two GPUs'
	elif ! command -v mpirun >/dev/null; then
		left_out "$1" 'there is no mpirun'
	elif ! grep -q '^HAVE_PMIX = yes' "$build/config.mak"; then
		left_out "$1" 'configure found no PMIx'
	else
		return 0
	fi
	return 1
}

# gpu_exposed PRESET MIB: two ranks of ddp-train on a GPU each, and how much of
# a step they only communicate, the median without the first three steps
gpu_exposed()
{
	gpu_several "$1 on two GPUs" || return 0
	batch=$(gpu_batch "$1" "$2")
	test "$batch" -gt 0 || return 0
	rm -f run.log
	# shellcheck disable=SC2016 # for the ranks' shell
	timeout -k 5 "$(gpu_limit 900)" mpirun -n 2 sh -c '
		LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK exec "$@"' sh \
		env DDP_MODULE_DIR="$build/obj/bin" "$build/obj/bin/ddp-train" \
		--device cuda --preset "$1" --vocab $gpu_vocab \
		--tokens "$PWD/tokens" --dtype bf16 --batch "$batch" \
		--steps $gpu_steps --log "$PWD/run.log" >out 2>err \
		</dev/null || {
		gpu_lost "$1 on two GPUs" "$(gpu_reason $?)"
		return
	}
	awk -v tokens="$((2 * batch * gpu_context))" -v preset="$1" \
		"$quantiles"'
	function field(name, text) {
		text = $0
		return sub(".*\"" name "\":", "", text) ? text + 0 : 0
	}
	{ step = field("seconds") - last; last = field("seconds") }
	NR > 3 { took[NR - 3] = step; share[NR - 3] = field("exposed") / step }
	END {
		n = NR - 3
		if (n < 1)
			exit 1
		sort(took, n); sort(share, n)
		printf "  %s on two GPUs: %.6g tokens/s, exposed %.1f %% of a " \
			"step; the goal: at most 10 %%\n", preset,
			tokens / at(took, n, 0.5), 100 * at(share, n, 0.5)
	}' run.log || gpu_lost "$1 on two GPUs" 'its log has no steps'
}

# Both call NCCL in the same way, by calls that block, so a ratio is what
# ddp-bench adds.
gpu_nccl()
{
	gpu_several 'ddp-bench beside NCCL' || return 0
	gpu_made obj/bin/ddp-bench obj/tests/bench/nccl_loop || {
		gpu_lost 'ddp-bench beside NCCL' "no build in $build"
		return
	}
	cp "$build/obj/tests/bench/nccl_loop" . || exit 1
	for bytes in 1048576 26214400 268435456; do
		echo "nccl_ours $bytes"
		echo "nccl_alone $bytes"
	done >plan
	in_rounds plan
	train_head "all-reduce of $gpus GPUs, us"
	for bytes in 1048576 26214400 268435456; do
		gpu_versus "$bytes bytes: ddp-bench / NCCL" "bench_$bytes" \
			"alone_$bytes" 1
	done
}

train_gpu()
{
	gpu_why=$(train_gpu_missing)
	if test -n "$gpu_why"; then
		left_out train_gpu "$gpu_why"
		return
	fi
	rounds=$gpu_rounds
	case $(mpirun --version 2>/dev/null) in	# it asks for ssh otherwise
	*' 4.'*) export OMPI_MCA_plm=isolated ;;
	esac
	echo "train_gpu, $rounds rounds of $gpu_steps steps"
	gpu_tokens || die 'python3 cannot make a token file'
	gpu_find_peer
	gpu_find_cudnn
	gpu_memory=$(gpu_mib)
	test -n "$gpu_memory" || die "ddp-train does not run on this GPU: $(
		cat err)"
	for preset in 124M 774M; do
		gpu_preset $preset "$gpu_memory"
		gpu_exposed $preset "$gpu_memory"
	done
	gpu_nccl
}
