# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run and train.sh
# Beside other software: PyTorch's losses, compute-sanitizer, and speed.

# torch_missing: prints why PyTorch cannot be compared with, if so
torch_missing()
{
	"$python" - 2>&1 <<-'END_OF_PYTHON' | tail -n 1
	import numpy, torch
	if not torch.cuda.is_available():
	    print("PyTorch", torch.__version__, "sees no GPU")
	END_OF_PYTHON
}

# torch_parity: logits, gradients and losses of the whole model, by what holds
# the CPU's
torch_parity()
{
	builds parity made obj/tests/train/parity
	test "$built" = yes || return 0
	while read -r type shape; do
		call env OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
			timeout -k 5 "$(limit 600)" "$python" \
			"$top/tests/train/parity.py" --module "$build/$module" \
			--type "$type" "$build/obj/tests/train/parity" "$shape"
		grep ' differs: ' out >why
		mv out parity.out
		test "$status" -eq 0 && test ! -s why &&
			grep -q "^$shape same: losses by sgd " parity.out
		result $? "PyTorch's gradients in fp64: $shape in $type"
	done <<-END
	fp32 tiny
	fp32 odd
	bf16 tiny
	fp16 tiny
	END
}

# Both begin with the same parameters and have the same samples. PyTorch does
# not use TF32 unless it is told to; in 16 bits it computes by autocast, which
# is as far from fp32 as we are.
gpu_torch()
{
	can_train 'beside PyTorch' || return 0
	if ! has_torch; then
		omit 'beside PyTorch' "no numpy and torch for $python"
		return
	fi
	torch_parity
	torch_why=$(torch_missing)
	if test -n "$torch_why"; then
		omit 'losses beside PyTorch' "$torch_why"
		return
	fi
	for type in fp32 bf16; do
		eval "most=\$apart_$type"
		train gpu --data text --preset tiny --steps 20 --batch 16 \
			--seed 7 --lr 3e-4 --schedule constant --warmup 0 \
			--dtype $type --device cuda
		call timeout -k 5 "$(limit 600)" "$python" \
			"$top/tests/bench/train_gpu_peer.py" tiny text 20 16 \
			$type torch.log
		close gpu torch 20 "$most"
		result $? "losses beside PyTorch in $type: apart by $worst"
	done
}

# find_sanitizer: the program, or nothing
find_sanitizer()
{
	nvcc=$(config NVCC)
	for file in "$(command -v compute-sanitizer)" \
		"${nvcc%/*}/compute-sanitizer" \
		/usr/local/cuda/bin/compute-sanitizer; do
		test ! -x "$file" || {
			echo "$file"
			return
		}
	done
}

gpu_sanitizer()
{
	can_operate compute-sanitizer || return 0
	sanitizer=$(find_sanitizer)
	if test -z "$sanitizer"; then
		omit compute-sanitizer 'it is not installed'
		return
	fi
	for tool in memcheck racecheck synccheck initcheck; do
		sanitize "$tool" attention
		sanitize "$tool" norm classifier embed
		sanitize "$tool" matmul special
		sanitize "$tool" updates rounding step casts fold
	done
}

# sanitize TOOL THEME...: of the operators. Errors of CUDA's functions are the
# operators' own to notice.
sanitize()
{
	sanitize_name="compute-sanitizer $*"
	sanitize_tool=$1
	shift
	fits "$sanitize_name" 20 || return 0
	call timeout -k 5 "$(limit 600)" "$sanitizer" --tool "$sanitize_tool" \
		--report-api-errors no --error-exitcode 9 "$operators" \
		"$build/$module" "$@"
	mv out sanitizer.out
	grep -h '^=========' sanitizer.out err | head -n 20 >why
	: >err
	case $status in
	124 | 137)
		omit "$sanitize_name" 'it took too long'
		return ;;
	esac
	test "$status" -eq 0 && grep -q '^1\.\.[1-9]' sanitizer.out
	result $? "$sanitize_name: nothing is found"
}

gpu_bench()
{
	can_train 'speed' || return 0
	rounds=2
	test "$(time_left)" -gt 900 || rounds=1
	DDP_BUILD=$build DDP_PYTHON=$python DDP_BENCH_END=$(($(date +%s) +
		$(limit 100000))) "$top/tests/bench/run" --rounds $rounds \
		train_gpu 2>err </dev/null >bench.out
	status=$?
	: >out
	: >why
	sed 's/^/# /' bench.out
	# A ratio, its interval and quartiles, A, B, A - B, and the rounds
	if grep -Eq ' [0-9.]+ - [0-9.]+( +[-+0-9.]+){3} +[0-9]+$' bench.out
	then
		result $status 'speed was measured'
	elif test $status -eq 0 && grep -q ': left out: ' bench.out; then
		omit speed "$(sed -n 's/^ *\(.*\): left out: /\1: /p' \
			bench.out | head -n 1)"
	else
		result 1 'speed was measured'
	fi
}
