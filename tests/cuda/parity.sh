# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of ./run
# The whole model on an emulated GPU against PyTorch in fp64, by what holds the
# CPU's (tests/train/parity.py): logits, gradients, the losses of some steps.

# parity BUILD ORDER ARGUMENT...: into out
parity()
{
	parity_module=$build/obj/tests/cuda_on_cpu/$1/ddp_cuda.so
	parity_order=$2
	shift 2
	call env EMU_ORDER="$parity_order" OMP_NUM_THREADS=1 \
		PYTHONDONTWRITEBYTECODE=1 timeout 300 "$python" \
		"$top/tests/train/parity.py" --module "$parity_module" "$@"
}

# holds NAME SHAPE: all is the same, and the emulator tells of nothing
holds()
{
	grep '^[^ ]* differs' out >why
	test "$status" -eq 0 && test ! -s err && test ! -s why &&
		grep -q "^$2 same: losses by sgd " out
	result $? "$1"
}

test_parity()
{
	if ! test -x "$build/obj/bin/ddp-train"; then
		skip 'parity' 'ddp-train was not built: no oneDNN, no BLAS'
		return
	elif ! has_torch; then
		skip 'parity with PyTorch' "no torch for $python"
		return
	fi
	built train/parity cuda_on_cpu/fast/ddp_cuda.so \
		cuda_on_cpu/checked/ddp_cuda.so
	program=$build/obj/tests/train/parity
	while read -r order type shape; do
		parity fast "$order" --steps 20 --type "$type" "$program" \
			"$shape"
		holds "parity with PyTorch, 20 steps of $shape in $type" \
			"$shape"
	done <<-END
	eager fp32 tiny
	eager fp32 odd
	1 bf16 tiny
	2 fp16 tiny
	END
	parity checked lazy --steps 6 --type bf16 "$program" tiny
	holds 'parity, each access checked, work as late as can be' tiny
	# Mutations of PyTorch's model that this comparison must find
	while IFS='|' read -r mutation type comparison; do
		parity fast eager --steps 6 --type "$type" "$program" \
			"tiny,$mutation"
		test "$status" -eq 3 &&
			grep -q "^tiny,$mutation differs: $comparison by " out
		result $? "parity in $type sees a mutation: $mutation"
	done <<-END
	erf|fp32|logits
	scale|fp16|gradient of .*
	skip|bf16|losses by adamw
	END
}
