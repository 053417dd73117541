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
	trouble 'too little memory' "GPU 0 (Emulated GPU) has N MiB of $(
		)memory free, and this rank needs N MiB: choose a smaller $(
		)--batch, --recompute on, or --zero 1 with several ranks" \
		EMU_BYTES=50000000
}
