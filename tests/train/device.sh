# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# --device and --backend nccl, without a GPU: a fake driver and a fake NCCL, and
# a fake module that is the CPU under another name. What kernels and queues do
# is for tests/cuda.

# a_library FILE ARGUMENT...: compiled into a shared library
a_library()
{
	a_library_file=$1
	shift
	mkdir -p "$(dirname "$a_library_file")"
	$(sed -n 's/^CC = //p' "$build/config.mak") -O2 -fPIC -shared \
		-pthread -I"$top/bin/ddp-train" -I"$top/lib" \
		-I"$top/lib/include" -o "$a_library_file" "$@" || exit 1
}

# What the tests below share: folders with libraries, and the fake module
build_fakes()
{
	fakes=$scratch/device
	test ! -d "$fakes" || return 0
	mkdir "$fakes" "$fakes/driver" "$fakes/none" "$fakes/broken"
	a_library "$fakes/all/libcuda.so.1" "$top/tests/fakes/fake_cuda.c"
	a_library "$fakes/all/libnccl.so.2" -Wl,-soname,libnccl.so.2 \
		"$top"/tests/fakes/fake_nccl*.c
	cp "$fakes/all/libcuda.so.1" "$fakes/driver"
	a_library "$fakes/before_11/libcuda.so.1" \
		-DcuDevicePrimaryCtxRelease_v2=cuDevicePrimaryCtxRelease \
		"$top/tests/fakes/fake_cuda.c"
	echo 'int other;' >"$fakes/other.c"
	a_library "$fakes/other/libcuda.so.1" "$fakes/other.c"
	a_library "$fakes/without/ddp_cuda.so" "$fakes/other.c"
	cat >"$fakes/old.c" <<-END
	#include "device.h"
	const struct device_table ddp_device_table = { .abi = 4 };
	END
	a_library "$fakes/old/ddp_cuda.so" "$fakes/old.c"
	echo 'no library' >"$fakes/broken/ddp_cuda.so"
	# with FOLDER COMMAND...: which finds its driver and NCCL there
	cat >"$fakes/with" <<-'END'
	#!/bin/sh
	export LD_LIBRARY_PATH="$1" FAKE_CUDA_GPU="gpu${OMPI_COMM_WORLD_RANK-0}"
	shift
	exec "$@"
	END
	chmod 755 "$fakes/with"
	make -s -C "$build" obj/tests/train/host/ddp_cuda.so >make.out 2>&1 || {
		cat make.out >&2
		exit 1
	}
	host=$build/obj/tests/train/host
}

# Of a machine's own driver nothing is known here.
test_no_driver()
{
	if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
		skip 'no driver' 'this machine has one'
		return 0
	fi
	refuses 'says that there is no driver' 1 \
		'--device cuda: there is no CUDA driver (libcuda.so.1:' \
		"$train" --device cuda
	refuses 'says for NCCL alone, too, that there is no GPU' \
		1 '--backend nccl needs a GPU: ' \
		"$train" --backend nccl
}

# All that is said of drivers and modules: each sentence says what is wrong.
test_device()
{
	build_fakes
	test_no_driver
	while IFS='|' read -r want words variables folder arguments; do
		# shellcheck disable=SC2086 # several words in one field
		refuses "$words: $variables $arguments" "$want" "$words" \
			env $variables "$fakes/with" "$fakes/$folder" \
			"$train" $arguments
	done <<-END
	1|there is no GPU (no CUDA-capable device is detected); ask for a node|FAKE_GPUS=0|driver|--device cuda
	1|--device cuda: the CUDA driver cannot be used (a fake CUDA error); ask for|FAKE_CUDA_INIT=999|driver|--device cuda
	1|the CUDA driver cannot be used (a fake CUDA error); repair it, or train without GPUs by --device cpu|FAKE_CUDA_INIT=999|driver|
	1|libcuda.so.1 has no cuInit: it is not that of a CUDA driver|A=|other|--device cuda
	2|/slurm-ddp/ddp_cuda.so: No such file or directory; install|A=|driver|
	2|/slurm-ddp/ddp_cuda.so: No such file or directory; install|A=|before_11|
	2|for it, /none/ddp_cuda.so: No such file or directory; install|DDP_MODULE_DIR=/none|driver|--device cuda
	1|cannot be loaded: $fakes/broken/ddp_cuda.so: |DDP_MODULE_DIR=$fakes/broken|driver|
	1|$fakes/without/ddp_cuda.so is no module of ddp-train: it has no ddp_device_table|DDP_MODULE_DIR=$fakes/without|driver|
	1|the part '$fakes/old/ddp_cuda.so' was built for version 4 of|DDP_MODULE_DIR=$fakes/old|driver|
	2|--backend mpi sums gradients in the host's memory|A=|none|--device cuda --backend mpi
	2|--backend nccl sums gradients in the memory of GPUs|A=|driver|--device cpu --backend nccl
	2|--backend mpi sums gradients in the host's memory|A=|driver|--backend mpi
	1|there are 2 ranks but --backend self trains one process alone; use --backend nccl|WORLD_SIZE=2|driver|--backend self
	2|--steps 'x'|DDP_MODULE_DIR=/none|driver|--steps x
	END
	for arguments in '--device cpu' '--steps 2'; do
		# shellcheck disable=SC2086 # several words
		call timeout 60 env FAKE_GPUS=0 DDP_MODULE_DIR=/none "$fakes/with" \
			"$fakes/driver" "$train" --steps 2 $arguments
		test "$status" -eq 0 && ! grep -q 'device cuda' out
		result $? "the CPU trains without a GPU: $arguments"
	done
	call timeout 60 env DDP_MODULE_DIR=/none "$fakes/with" "$fakes/driver" \
		"$train" --steps 2 --device cpu
	equal 'the CPU trains beside a GPU if that is asked' 0 "$status"
	call timeout 60 env DDP_MODULE_DIR="$host" "$fakes/with" "$fakes/driver" \
		"$train" --steps 2
	test "$status" -eq 0 &&
		grep -q '^backend self, device cuda (Fake), model toy ' out
	result $? 'a rank on a GPU names it, and needs no NCCL'
}

# gpus N COMMAND...: ranks with a fake GPU each, and the fake NCCL
gpus()
{
	gpus_n=$1
	shift
	rm -rf meet
	mkdir meet
	: >meet/log
	ranks "$gpus_n" env FAKE_NCCL_DIR="$scratch/meet" DDP_MODULE_DIR="$host" \
		"$fakes/with" "$fakes/all" "$@"
}

# gpus_lose N ARGUMENTS...: as one rank on the CPU does with the same batch
gpus_lose()
{
	gpus_lose_n=$1
	shift
	ranks 1 "$train" --backend self "$@" --steps 12 --log one.log
	losses one.log >one.losses
	gpus "$gpus_lose_n" "$train" --check-every 1 "$@" --steps 12 \
		--log many.log
	losses many.log >many.losses
	close one.losses many.losses 12 1e-6
	result $? "$gpus_lose_n ranks by NCCL lose as one on the CPU: $*"
}

needs_nccl()
{
	if ! grep -q '^HAVE_PMIX = yes' "$build/config.mak"; then
		skip "$1" 'ddp-train was built without PMIx'
		return 1
	fi
	needs_worlds "$1" && build_fakes
}

test_nccl()
{
	needs_nccl 'ranks that meet by NCCL' || return 0
	tiny="--data $text --context 32 --layers 2 --heads 2 --width 32"
	# shellcheck disable=SC2086 # several arguments
	for n in 2 3 4; do
		gpus_lose $n $tiny --global-batch 12
		gpus_lose $n $tiny --global-batch 12 --zero 1 --bucket-mib 0.03
	done
	# shellcheck disable=SC2086
	gpus_lose 2 $tiny --global-batch 8 --overlap off --optimizer sgd
	gpus 2 "$train" --steps 3
	test "$status" -eq 0 &&
		grep -q '^backend nccl, device cuda (Fake), model toy' out
	result $? 'two ranks on GPUs meet by NCCL'
	gpus 2 env FAKE_CUDA_GPU=same "$train" --share-gpu --steps 3
	test "$status" -eq 0 && grep -q '^backend nccl, device cuda ' out
	result $? 'two ranks with --share-gpu meet on one and the same GPU'
	equal 'all communicators end in order' '4 destroy' \
		"$(grep -c ' destroy ' meet/log) $(
			sed -n 's/^[^ ]* \(destroy\|abort\) .*/\1/p' \
				meet/log | sort -u)"
	test_nccl_checkpoints
	test_nccl_trouble
	test_nccl_mixed
}

# mixed NAME GPUS CPUS ARGUMENT...: of three ranks some compute on GPUs, others
# on CPUs, as the sentence says; the ranks in $drivers have a driver
mixed()
{
	mixed_name=$1 mixed_gpus=$2 mixed_cpus=$3
	shift 3
	# shellcheck disable=SC2016 # for the ranks' shell
	ranks 3 env DDP_MODULE_DIR="$host" drivers=" $drivers " sh -c '
		case $drivers in
		*" $OMPI_COMM_WORLD_RANK "*) set -- "$0/driver" "$@" ;;
		*) set -- "$0/none" "$@" ;;
		esac
		exec "$0/with" "$@"' "$fakes" "$@"
	sed "s/ on $(uname -n)//g" err >why
	test "$status" -ne 0 && grep -q "^ddp-train: some ranks $(
		)compute on GPUs ($mixed_gpus) and others on CPUs $(
		)($mixed_cpus), and .* --device cpu$" why &&
		test "$(grep -c '^ddp-train: ' why)" -eq 1
	result $? "$mixed_name"
}

# Long before the deadline, which is 300 s
test_nccl_mixed()
{
	drivers='0'
	mixed 'one of three ranks has a GPU' 'rank 0' 'ranks 1-2' \
		"$train" --steps 3
	drivers='1 2'
	mixed 'the first one has none' 'ranks 1-2' 'rank 0' "$train" --steps 3
	drivers='0 1 2'
	# shellcheck disable=SC2016 # for the ranks' shell
	mixed 'all have one, and a rank leaves it alone' 'rank 0, rank 2' \
		'rank 1' sh -c 'test "$OMPI_COMM_WORLD_RANK" != 1 ||
			set -- "$@" --device cpu
		exec "$@"' sh "$train" --steps 3
	# shellcheck disable=SC2016
	ranks 2 env DDP_MODULE_DIR="$host" sh -c '
		case $OMPI_COMM_WORLD_RANK in
		0) set -- "$0/driver" "$@" ;;
		1) set -- "$0/other" "$@" ;;
		esac
		exec "$0/with" "$@"' "$fakes" "$train" --steps 3
	test "$status" -ne 0 && grep -q "^ddp-train: rank 1 on [^ ]*: $(
		)libcuda.so.1 has no cuInit" err
	result $? 'a driver that cannot be used is no missing GPU'
}

# A checkpoint of CPUs goes on with GPUs, and that of these on a CPU.
test_nccl_checkpoints()
{
	# shellcheck disable=SC2086 # several arguments
	set -- $tiny --global-batch 8 --schedule constant --warmup 0
	ranks 1 "$train" --backend self "$@" --steps 18 --log one.log
	losses one.log >one.losses
	rm -rf saved many.log
	ranks 2 "$train" "$@" --steps 6 --checkpoint saved --log many.log
	gpus 2 "$train" --data "$text" --steps 12 --checkpoint saved --resume \
		--log many.log
	equal 'GPUs go on where CPUs were' 0 "$status"
	ranks 1 "$train" --data "$text" --steps 18 --checkpoint saved \
		--resume --log many.log
	losses many.log >many.losses
	close one.losses many.losses 18 1e-6
	result $? 'CPUs, GPUs and a CPU in turn lose as one CPU'
}

test_nccl_trouble()
{
	# The ranks need time to begin, also where a wait is to end.
	while IFS='|' read -r name words variables; do
		seconds=60
		case $words in
		waited*) seconds=10 ;;
		esac
		# shellcheck disable=SC2086 # several words in one field
		gpus 2 env $variables "$train" --data "$text" --steps 400 \
			--batch 1 --timeout $seconds
		test "$status" -ne 0 && ! grep -q '^400/400 ' out &&
			test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
			grep '^ddp-train: ' err | grep -q -- "$words"
		result $? "$name"
		case $variables in
		FAKE_NCCL_ASYNC=* | FAKE_NCCL_BUSY=* | FAKE_DEVICE=*)
			check "communicators are aborted: $name" \
				grep ' abort [01]/2$' meet/log ;;
		esac
	done <<-END
	two ranks on one GPU|use the same GPU|FAKE_CUDA_GPU=same
	NCCL that is missing|/none|DDP_NCCL_LIBRARY=/none
	communicators that do not begin|asked to fail|FAKE_NCCL_INIT=error
	the second of which does not|the second fails|FAKE_NCCL_INIT=second
	one that fails in a step|remote process exited|FAKE_NCCL_ASYNC=300
	calls that do not end|waited [1-9][0-9] s for NCCL, although all ranks answer|FAKE_NCCL_BUSY=60000
	buckets that are not summed|waited [1-9][0-9] s for NCCL, although all ranks answer|FAKE_DEVICE=bucket
	steps on which ranks do not agree|waited [1-9][0-9] s for NCCL, although all ranks answer|FAKE_DEVICE=agree
	END
	gpus 2 "$top/tests/by_rank" "$train" --timeout 60 // --bogus
	grep -q '^ddp-train: rank 1 on [^ ]*: --bogus is not an option' err
	result $? "a rank's bad option is told to all"
	# shellcheck disable=SC2016 # for the ranks' shell
	gpus 2 sh -c 'test "$OMPI_COMM_WORLD_RANK" = 0 || FAKE_DEVICE=hang
		FAKE_DEVICE=${FAKE_DEVICE-agree} exec "$0" "$@"' "$train" \
		--timeout 10 --steps 400
	grep -q "^ddp-train: .*waited [1-9][0-9] s for NCCL, and then over PMIx: $(
		)waited [0-9.]* s for rank 1 on " err
	result $? 'a rank that hangs is named'
}
