# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables of ./run
# tests/gpu/run where there is no GPU, and where an emulated one takes its place
# in a build directory of another machine, which has CUDA and nothing else.

# gpu_prebuilt: such a directory, and a driver
gpu_prebuilt()
{
	mkdir -p other/obj/bin other/obj/tests/train drivers
	cat >other/config.mak <<-END
	CC = none
	NVCC = /none/bin/nvcc
	HAVE_CUDA = yes
	HAVE_CUBLASLT = yes
	HAVE_GCRYPT = no
	END
	cp "$build/obj/tests/cuda_on_cpu/fast/ddp_cuda.so" other/obj/bin
	cp "$build/obj/tests/train/operators" other/obj/tests/train
	ranks_library drivers/libcuda.so.1 "$top/tests/fakes/fake_cuda.c"
}

# gpu_run ARGUMENT...: tests/gpu/run with a device file of a GPU in its own /dev
gpu_run()
{
	# shellcheck disable=SC2016 # for the inner shell
	call env DDP_BUILD="$PWD/other" DDP_PREBUILT=1 \
		LD_LIBRARY_PATH="$PWD/drivers" unshare --mount sh -c '
		mkdir dev && mount -t tmpfs none dev &&
		cp -a /dev/null /dev/zero /dev/urandom /dev/fd dev &&
		mkdir -m 1777 dev/shm && mkdir dev/pts &&
		mknod dev/nvidia0 c 195 0 &&
		mount --bind dev /dev && exec "$@"' sh \
		timeout -k 5 500 "$top/tests/gpu/run" "$@"
	rmdir dev
}

# Where the trainer was not built, the operators are tested all the same.
gpu_emulated()
{
	if ! unshare --mount sh -c 'mkdir dev && mount -t tmpfs none dev &&
		mknod dev/null c 1 3' 2>/dev/null; then
		rmdir dev 2>/dev/null
		skip 'operators of a build from elsewhere' \
			'no folder of device files can be made here'
		return
	fi
	rmdir dev
	built train/operators cuda_on_cpu/fast/ddp_cuda.so
	gpu_prebuilt
	gpu_run operators rank
	equal 'operators of a build from elsewhere' \
		"0, 5 passed, 0 failed, 1 skipped" "$status, $(tail -n 1 out)"
	equal 'ddp-train is left out' 'ok 6 - one rank # SKIP configure found'`
		`' no libgcrypt, or no oneDNN and no BLAS' "$(grep SKIP out)"
	EMU_CC=7.5 gpu_run operators rank
	gpu_reason="GPU 0 (Emulated GPU) has compute capability 7.5, and $(
		)ddp-train needs 8.0 (A100) or later"
	equal 'a GPU that is too old is a reason to skip' \
		"ok 2 - operators # SKIP $gpu_reason
ok 3 - one rank # SKIP $gpu_reason" "$(grep SKIP out)"
	gpu_bounded
	gpu_speed
	gpu_slurm
	gpu_libraries
	rm other/obj/tests/train/operators
	gpu_run operators
	equal 'what is missing is not made' "1, $PWD/other has no $(
		)obj/tests/train/operators: run 'make gpu-tests' where it $(
		)was built" "$status, $(sed -n 's/^# why: //p' out)"
}

# gpu_program FILE CASE...: a program that looks for its arguments in these cases
gpu_program()
{
	gpu_program_to=$1
	shift
	{
		printf '%s\n' '#!/bin/sh' 'case "$*" in' "$@" esac
	} >"$gpu_program_to"
	chmod 755 "$gpu_program_to"
}

# What does not fit into the time is left out, and told; a tool of the sanitizer
# judges some operators at once. The tool is a fake.
gpu_bounded()
{
	gpu_run --seconds 30 operators
	check 'a part for which there is no time is left out' grep -qx \
		'ok 1 - operators # SKIP it needs 60 s, and [0-9]* are left' out
	call "$top/tests/gpu/run" --seconds soon
	equal 'a time that is none is refused' "2 tests/gpu/run: --seconds $(
		)'soon' is no number of seconds" "$status $(cat err)"
	mkdir -p tools
	gpu_program tools/compute-sanitizer \
		"*memcheck*norm*) echo '========= Invalid read'; exit 9 ;;" \
		"*racecheck*norm*) exit 124 ;;" "*) echo 1..1 ;;"
	PATH=$PWD/tools:$PATH gpu_run sanitizer
	equal 'what the sanitizer finds is told by tool and operators' \
		"1, not ok 3 - compute-sanitizer memcheck norm classifier $(
		)embed: nothing is found, # why: ========= Invalid read, ok 7 $(
		)- compute-sanitizer racecheck norm classifier embed # SKIP $(
		)it took too long, 15 passed" "$status, $(
		sed -n '/^not ok/p; /^# why: =/p; /SKIP/p
			s/\( passed\),.*/\1/p' out | paste -sd, | sed 's/,/, /g')"
	gpu_program tools/compute-sanitizer '*) exec sleep 300 ;;'
	PATH=$PWD/tools:$PATH gpu_run --seconds 90 sanitizer
	equal 'what does not end is ended, and what follows left out' '1 15' \
		"$(grep -c 'SKIP it took too long$' out) $(
		grep -c 'SKIP it needs 20 s' out)"
}

# srun --ddp in a sandbox, on the fake driver and NCCL
gpu_slurm()
{
	gpu_all=other/obj
	mkdir -p $gpu_all/plugin ids
	chmod 755 .
	chmod 777 ids
	cp "$build/obj/plugin/spank_ddp.so" $gpu_all/plugin
	cp "$build/obj/bin/ddp-info" "$build/obj/bin/ddp-bench" \
		"$build/obj/bin/ddp-train" $gpu_all/bin
	# NCCL is where the toolkit is, and the loader knows of none
	mkdir wheels
	printf '%s\n' 'HAVE_PLUGIN = yes' "CUDA_LIBS = -L$PWD/wheels" \
		>>other/config.mak
	ranks_library wheels/libnccl.so.2 -Wl,-soname,libnccl.so.2 \
		"$top"/tests/fakes/fake_nccl*.c
	gpu_program tools/ldconfig '*) ;;'
	PATH=$PWD/tools:$PATH FAKE_NCCL_DIR="$PWD/ids" FAKE_GPU_BYTES=400000000 gpu_run slurm
	equal 'srun --ddp with a GPU' '0, 10 passed, 0 failed, 0 skipped' \
		"$status, $(tail -n 1 out)"
	sed -i '/^CUDA_LIBS/d' other/config.mak
}

# gpu_ratios: how often each ratio is in the report
gpu_ratios()
{
	sed -n 's/^#   \(tokens.*[^ ]\)  *[0-9]*\.[0-9]*  too .*/\1/p' out |
		LC_ALL=C sort | uniq -c | sed 's/^ *//' | paste -s -d ';'
}

# The report on speed, where ddp-train and PyTorch take no time: where one run
# fails, and where nothing is there to compare with
gpu_speed()
{
	printf '%s\n' 'HAVE_GCRYPT = yes' 'HAVE_BLAS = yes' >>other/config.mak
	sed -i '/^HAVE_GCRYPT = no/d' other/config.mak
	# shellcheck disable=SC2016 # for those programs
	log='for i in $(seq 20); do echo "{\"loss\":1,\"seconds\":$i}"; done'
	gpu_program other/obj/bin/ddp-train \
		"*--plan*) echo '  in all   100.0 MiB' ;;" \
		"*--log*) $log >run.log ;;" \
		"*) echo 'computing on a GPU, 80000 MiB' ;;"
	gpu_program python \
		"*peer.py*774M*) echo 'CUDA out of memory' >&2; exit 1 ;;" \
		"*peer.py*) $log >run.log; echo memory 100 100 ;;" \
		"*torch*) echo PyTorch ;;" "*) exec $python \"\$@\" ;;"
	export DDP_PYTHON="$PWD/python"
	gpu_run bench
	equal 'a run that fails loses no figure but its own, and is told' \
		"1, theirs_774M: left out: exit status 1: CUDA out of memory, $(
		)1 tokens/s / PyTorch, compile;2 tokens/s, attention by $(
		)cuDNN / our own" "$status, $(
		sed -n 's/^# *\(theirs.*\)/\1/p' out), $(gpu_ratios)"
	gpu_program python "*torch*) echo 'no torch' >&2; exit 1 ;;" \
		"*) exec $python \"\$@\" ;;"
	sed -i 's/^case.*/&\n*cudnn*) exit 1 ;;/' other/obj/bin/ddp-train
	gpu_run bench
	equal 'speed with nothing beside it is not said to be measured' \
		'ok 3 - speed # SKIP PyTorch: no torch' "$(grep SKIP out)"
	unset DDP_PYTHON
}

# A module whose cuBLASLt is in no folder where the loader looks, and then in
# the one where configure has found the toolkit
gpu_libraries()
{
	mkdir toolkit
	ranks_library toolkit/libcublasLt.so.99 \
		-Wl,-soname,libcublasLt.so.99 "$top/tests/fakes/fake_cuda.c"
	ranks_library other/obj/bin/ddp_cuda.so -Wl,--no-as-needed \
		toolkit/libcublasLt.so.99 "$top/tests/fakes/fake_cuda.c"
	gpu_run operators
	equal 'a module without its cuBLASLt says what to set' \
		"1, ddp_cuda.so needs libcublasLt.so.99, in no folder where $(
		)the loader looks: export LD_LIBRARY_PATH=FOLDER, that with $(
		)CUDA's libraries" "$status, $(sed -n 's/^# why: //p' out)"
	echo "CUDA_LIBS = -L$PWD/toolkit -lcudart" >>other/config.mak
	gpu_run operators
	equal "the module takes the cuBLASLt of the toolkit" \
		"ok 1 - ddp-train's module: prebuilt" "$(grep '^ok 1 ' out)"
}

test_gpu()
{
	if test "$(config HAVE_CUDA)$(config HAVE_CUBLASLT)" != yesyes; then
		skip 'what tests on GPUs need' 'configure found no CUDA toolkit'
		return
	fi
	check 'all that tests on GPUs need compiles' \
		make -s -C "$build" gpu-tests
	gpu_emulated
	if has_torch; then
		call "$python" "$top/tests/bench/train_gpu_peer.py" tiny none 1 \
			1 fp32 log
		equal 'PyTorch beside it finds all but a GPU' '1 no GPU' \
			"$status $(sed 's/:.*//' err)"
	else
		skip 'PyTorch beside it' "no torch for $python"
	fi
	if test -e /dev/nvidiactl; then
		skip 'a run that tests nothing' 'this machine has a GPU'
	else
		call env DDP_BUILD="$build" "$top/tests/gpu/run" operators ranks
		equal 'a run that tests nothing fails' \
			'1 nothing was tested: see the reasons above' \
			"$status $(tail -n 1 out)"
	fi
	call env -u DDP_BUILD DDP_PREBUILT=1 "$top/tests/gpu/run"
	equal 'DDP_PREBUILT alone is refused' '2 1' "$status $(wc -l <err)"
}
