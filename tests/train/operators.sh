# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The operators of the CPU, in a program of their own.

# runs_operators NAME: each line of the program's TAP as a result
runs_operators()
{
	call timeout 100 "$program"
	mv "$scratch/out" "$scratch/tap"
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			test "${line#ok }" != "$line"
			result $? "$1: ${line#*ok * - }"
			: >"$scratch/out"
			;;
		'# '*)
			echo "${line#'# '}" >>"$scratch/out"
			;;
		esac
	done <"$scratch/tap"
	equal "$1: all of them ran" \
		"0, $(grep -c '^ok ' "$scratch/tap") of them" \
		"$status, $(sed -n 's/^1\.\.//p' "$scratch/tap") of them"
}

# has_bf16: whether the processor multiplies bf16 itself
has_bf16()
{
	grep -q '^flags.* \(avx512_bf16\|amx_bf16\)' /proc/cpuinfo
}

# has_slow_bf16: whether it multiplies fp32 faster, as Intel's without AMX
has_slow_bf16()
{
	has_bf16 && ! grep -q '^flags.* amx_bf16' /proc/cpuinfo &&
		grep -q '^vendor_id.*GenuineIntel' /proc/cpuinfo
}

# one_step TYPE: of tiny, and of one sequence
one_step()
{
	call timeout 60 "$train" --preset tiny --data "$text" --steps 1 \
		--batch 1 --dtype "$1"
}

# says_fp32 TYPE WHY: a run says why its products are of fp32
says_fp32()
{
	one_step "$1"
	wanted="$1 products are computed in fp32 and rounded$2"
	equal "products of $1" "0 ${2:+$wanted}" \
		"$status $(grep ' products are ' out)"
}

test_operators()
{
	program operators
	runs_operators operators
	says_fp32 fp32 ''
	says_fp32 fp16 ', as on every CPU'
	if ! grep -q '^#define HAVE_ONEDNN ' "$build/config.h"; then
		says_fp32 bf16 ': ddp-train was built without oneDNN'
		return
	fi
	# As on a processor without instructions for bf16
	export ONEDNN_MAX_CPU_ISA=AVX2
	runs_operators 'operators by AVX2'
	why=': this processor has no AVX512_BF16'
	! has_bf16 || why=", as oneDNN leaves this processor's AVX512_BF16$(
		) alone; unset ONEDNN_MAX_CPU_ISA"
	says_fp32 bf16 "$why"
	unset ONEDNN_MAX_CPU_ISA
	has_slow_bf16 || return 0
	says_fp32 bf16 ", which is faster here than this processor's$(
		) AVX512_BF16"
	export ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16
	runs_operators 'operators by AVX512_BF16'
	unset ONEDNN_MAX_CPU_ISA
}

# The constants of operators.h, and how NaN spreads, are PyTorch's.
test_constants()
{
	if ! has_torch; then
		skip 'what PyTorch errs by' "no torch for $python"
		return
	fi
	check 'twice what PyTorch errs by is the most for ours' \
		timeout 200 "$python" "$here/operators.py" "$here/operators.h"
	sed 's/^\(#define TORCH_NORM\).*/\1 2.5/' "$here/operators.h" >larger.h
	call timeout 200 "$python" "$here/operators.py" larger.h
	equal 'a larger constant is found' '3 1' \
		"$status $(grep -c 'TORCH_NORM is 2.5: too large$' out)"
}

# What oneDNN itself says of a step's products. By hand: each of the 2 layers
# has 4 linear layers, with 3 products each (y, dx, dweight); the classifier has
# 3; each of the 2 heads of a layer has 2 forward and 5 backward: 24 + 3 + 28.
test_native()
{
	if ! grep -q '^#define HAVE_ONEDNN ' "$build/config.h"; then
		skip 'products of bf16' 'ddp-train was built without oneDNN'
		return
	elif ! has_bf16; then
		skip 'products of bf16' 'this processor has no AVX512_BF16'
		return
	fi
	export ONEDNN_VERBOSE=1
	! has_slow_bf16 || export ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16
	one_step bf16
	unset ONEDNN_VERBOSE ONEDNN_MAX_CPU_ISA
	grep ',exec,cpu,matmul,' out >products
	equal "the processor's own products of bf16, and no other" '0 55 0 0' \
		"$status $(grep -c '[,:]src[_:]bf16:' products) $(
		grep -c ',matmul,[^,]*ref' products) $(
		grep -c ' products are ' out)"
}

# Rank 1's processor lacks what the others' have.
test_notes()
{
	needs_worlds 'notes of several ranks' || return 0
	if ! grep -q '^#define HAVE_ONEDNN ' "$build/config.h" || ! has_bf16
	then
		skip 'notes of several ranks' 'no processor with AVX512_BF16'
		return
	fi
	says="bf16 products are computed in fp32 and rounded, as oneDNN"
	while IFS='|' read -r limited wanted; do
		! has_slow_bf16 || export ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16
		# shellcheck disable=SC2016 # each rank's own shell expands
		ranks 3 sh -c 'case $0 in
			*$OMPI_COMM_WORLD_RANK*)
				export ONEDNN_MAX_CPU_ISA=AVX2 ;;
			esac
			exec "$@"' "$limited" "$train" --data "$text" \
			--dtype bf16 --steps 1
		unset ONEDNN_MAX_CPU_ISA
		equal "ranks $limited compute in fp32" "0 $wanted$says" \
			"$status $(sed -n "s/\($says\).*/\1/p" out)"
	done <<-END
	1|rank 1 on $(uname -n): |
	12|rank 1 on $(uname -n) and 1 other: |
	012||
	END
}
