# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables of ./run
# Whole runs of one rank on an emulated GPU that fails or has too little memory.
# Those of several ranks are in ranks.sh.

# trouble NAME SENTENCE VARIABLE=VALUE: the run ends with that sentence alone, in
# which N is a number, and the kernel that was met any
trouble()
{
	call env LD_LIBRARY_PATH="$PWD/drivers" DDP_MODULE_DIR="$build/obj/$(
		)tests/cuda_on_cpu/fast" "$3" timeout 60 "$train" \
		--data /usr/share/common-licenses/GPL-3 --context 32 \
		--batch 4 --steps 100000 --device cuda
	equal "$1" "1, ddp-train: $2" \
		"$status, $(sed 's/ [0-9]* MiB/ N MiB/g
			s/in or before [^:]*:/in or before a kernel:/' err)"
}

# memory_run ARGUMENT...: two steps in 16 bit, or their plan
memory_run()
{
	call env LD_LIBRARY_PATH="$PWD/drivers" DDP_MODULE_DIR="$build/obj/$(
		)tests/cuda_on_cpu/fast" EMU_BYTES="$memory_bytes" \
		timeout 60 "$train" --data /usr/share/common-licenses/GPL-3 \
		--context 32 --batch 4 --width 512 --dtype bf16 --steps 2 "$@"
}

# A GPU with the memory that a plan counts trains, and one with less is refused
# by that figure. A plan rounds to 0.1 MiB, a refusal up to a whole one.
memory_as_planned()
{
	memory_bytes=8000000000
	memory_run --plan
	memory_mib=$(sed -n \
		's/^  on the GPU, beside .* \([0-9.]*\) MiB$/\1/p' out)
	memory_bytes=$(awk "BEGIN { print int(($memory_mib + 0.1) * 2^20) }")
	memory_run
	equal 'the memory that a plan counts is enough' 0 "$status"
	memory_wanted=$(awk "BEGIN { printf \"%.0f\", $memory_mib + 0.45 }")
	for memory_less in "$memory_mib - 1" "$memory_mib / 2"; do
		memory_bytes=$(awk "BEGIN { print int(($memory_less) * 2^20) }")
		memory_run
		equal "a run with $memory_less MiB needs as much as the plan" \
			"1, $memory_wanted" "$status, $(sed -n "s/^ddp-train: $(
			).*this rank needs \([0-9]*\) MiB.*/\1/p" err)"
	done
}

test_trouble()
{
	one_gpu 'trouble' || return 0
	lost="GPU 0 (Emulated GPU) of $(uname -n) failed in or before a kernel:"
	resume="look for Xid in the node's kernel log, and resume from the $(
		)last checkpoint"
	trouble 'a GPU that is lost at once' "$lost a kernel was $(
		)stopped, or the GPU has fallen off the bus $(
		)(cudaErrorLaunchFailure); $resume" EMU_LOST=0
	trouble 'one that loses a value after some steps' "$lost its $(
		)memory lost a value (cudaErrorECCUncorrectable); $resume" \
		EMU_LOST=700:214
	trouble 'a product that cuBLASLt does not offer' "GPU 0 (Emulated $(
		)GPU) of $(uname -n) does not compute a matrix product $(
		)(cuBLASLt's status 15) of this shape: choose another $(
		)--batch, --width or --dtype, or --attention own" \
		EMU_REFUSED_K=64
	trouble 'one that fails in a product of cuBLASLt' "$lost a kernel $(
		)used memory that is not its own (cudaErrorIllegalAddress); $(
		)$resume" EMU_FAULT=5
	trouble 'too little memory' "GPU 0 (Emulated GPU) has N MiB of $(
		)memory free, and this rank needs N MiB: choose a smaller $(
		)--batch, --recompute on, or --zero 1 with several ranks" \
		EMU_BYTES=50000000
	memory_as_planned
}
