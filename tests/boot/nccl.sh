# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run, which sources this
# Communicators over PMIx: through a fake NCCL on a fake driver, which check who
# meets whom, and as far as a machine without a GPU goes with the real one.

if test -n "$why"; then
	skip 'communicators on two nodes' "$why"
	return 0
fi
# Three CPUs each: five ranks are three and two.
cluster --nodes 2 --gpus 0 --cpus 3

# config NAME: its value in the build
config()
{
	sed -n "s/^$1 = //p" "$build/config.mak"
}

# compile ARGUMENT...: with the build's compiler
compile()
{
	# shellcheck disable=SC2046 # lists of words
	$(config CC) $(config DDP_CFLAGS | tr -d '$' | sed 's/-ff[^ ]*//g') \
		-O2 -g -pthread -I"$top/lib" -I"$top/lib/include" "$@"
}

# Not the real ones: $fakes/libnccl.so.2 and libcuda.so.1; $old has no
# ncclCommInitRankScalable; $driver has the driver alone; $amd has RCCL and HIP.
fakes=$scratch/fakes old=$scratch/old driver=$scratch/driver amd=$scratch/amd
mkdir "$fakes" "$old" "$driver" "$amd"
# fake ARGUMENT...: a library
fake()
{
	compile -Wno-missing-prototypes -fPIC -shared "$@" || exit 1
}
set -- "$top/tests/fakes/fake_nccl"*.c
fake "$@" -Wl,-soname,libnccl.so.2 -o "$fakes/libnccl.so.2"
fake "$@" -Wl,-soname,libnccl.so.2 -DFAKE_OLD -o "$old/libnccl.so.2"
fake "$@" -o inside.so
fake "$top/tests/fakes/fake_cuda.c" -Wl,-soname,libcuda.so.1 \
	-o "$driver/libcuda.so.1"
fake "$@" -Wl,-soname,librccl.so.1 -DFAKE_OLD -o "$amd/librccl.so.1"
fake "$top/tests/fakes/fake_cuda.c" -DcuInit=hipInit -DcuCtxGetDevice=hipGetDevice \
	-DcuDeviceGetPCIBusId=hipDeviceGetPCIBusId \
	-DcuStreamQuery=hipStreamQuery \
	-DcuGetErrorString=hipDrvGetErrorString -Wl,-soname,libamdhip64.so.6 \
	-o "$amd/libamdhip64.so.6"
cp "$driver/libcuda.so.1" "$fakes"
cp "$driver/libcuda.so.1" "$old"
# What is installed: the build may lie where the cluster's user cannot read.
lib=$(dirname "$(find "$dir/root" -name libddp.so.0)")
compile "$here/comms.c" -o comms -L"$lib" -Wl,-rpath,"$lib" -lddp -ldl || exit 1
compile "$here/comms.c" -o linked -L"$lib" -lddp -ldl -Wl,--no-as-needed \
	"$old/libnccl.so.2" \
	-Wl,--disable-new-dtags,-rpath,"$old",-rpath,"$lib" || exit 1
# shellcheck disable=SC2046
compile $(config PMIX_CFLAGS) -fPIC -shared "$here/count_fences.c" \
	-o count.so -ldl || exit 1
comms=$scratch/comms linked=$scratch/linked

# with DIRECTORY SRUN-OPTIONS ARGUMENT...: a step of ranks that find NCCL and the
# driver in that directory; what they print, by rank, is then in out.
with()
{
	with_dir=$1 with_options=$2
	shift 2
	rm -rf meet
	mkdir -m 777 meet
	: >meet/log
	chmod 666 meet/log
	# Slurm 26.05 takes long to end a step of which some ranks sleep.
	settle
	begin=$(now)
	# shellcheck disable=SC2086 # a list of words
	call login env FAKE_NCCL_DIR="$scratch/meet" srun --mpi=pmix \
		$with_options env LD_LIBRARY_PATH="$with_dir" \
		${preload:+LD_PRELOAD="$preload"} ${program:-$comms} "$@"
	took=$(($(now) - begin))
	sort -s -n -k1,1 out >sorted
	mv sorted out
}

# took SECONDS NAME: the last step took no longer
took()
{
	in_goal "$took" $((1000 * $1)) -N2 --ntasks-per-node=2 >why
	in_time $? "$2 within $1 s"
}

# ranks SRUN-OPTIONS ARGUMENT...: on the fakes
ranks()
{
	with "$fakes" "$@"
}

# shows NAME LINES: what was printed, as "rank: comms", one after the other
shows()
{
	equal "$1" "$2" "$(grep -v ' after ' out | cut -d' ' -f1,3- |
		paste -sd';')$(test "$status" = 0 || echo " status $status")"
}

# says NAME RANKS CODE TEXT: as many ranks failed, with the same sentence; CODE
# has the code of each of them, in their order
says()
{
	equal "$1" "$2 $3: $4" "$(grep -c ' after ' out) $(
		sed -n 's/^[0-9]* [^ ]*: \([A-Z]*\) .* after .*/\1/p' out |
			uniq | paste -sd' '): $(
		sed -n 's/.* after [0-9]*: //p' out | sort -u)"
}

# logged WORDS: how often the fake noted it
logged()
{
	grep -c -- "$1" meet/log
}

# ids: how many were made
ids()
{
	find meet -mindepth 1 -maxdepth 1 -type d | wc -l
}

# ---- who is with whom

uneven='0 0/5 0/3 0/2;1 1/5 1/3 0/2;2 2/5 2/3 0/1;3 3/5 0/2 1/2;4 4/5 1/2 1/2'
preload=$scratch/count.so
ranks '-N2 -n5' create=7 destroy=9000
preload=
equal 'three groups cost one fence' '5 fences 1' \
	"$(grep -c 'fences 1$' out) $(grep fences out | sort -u)"
sed -i /fences/d out
shows 'world, node and cross on 3 and 2 ranks' "$uneven"
equal 'three groups make one id a communicator' 6 "$(ids)"
equal 'all communicators are finalised and destroyed' '15 15 0' \
	"$(logged finalize) $(logged destroy) $(logged abort)"
ranks '-N2 -n5 -m cyclic' create=7 destroy=9000
shows 'the same, ranks dealt to the nodes in turn' \
	'0 0/5 0/3 0/2;1 1/5 0/2 1/2;2 2/5 1/3 0/2;3 3/5 1/2 1/2;4 4/5 2/3 0/1'
ranks '-N2 --ntasks-per-node=2' create=2 create=5
shows 'some of the groups' "$(printf '%s;' '0 - 0/2 -' '0 0/4 - 0/2' \
	'1 - 1/2 -' '1 1/4 - 0/2' '2 - 0/2 -' '2 2/4 - 1/2' '3 - 1/2 -' |
	cat)3 3/4 - 1/2"
ranks '-N1 -n1' create=7 split=1 destroy=9000
shows 'a job of one rank' '0 0/1 0/1 0/1;0 0/1'
preload=$scratch/count.so
ranks '-N2 -n5' split=2 destroy=9000
preload=
equal 'a split costs two fences' '5 fences 2' \
	"$(grep -c 'fences 2$' out) $(grep fences out | sort -u)"
sed -i /fences/d out
shows 'a split orders ranks by key' '0 2/3;1 1/2;2 1/3;3 0/2;4 0/3'
ranks '-N2 --ntasks-per-node=2' !0,1,2:set=FAKE_GPUS=0 \
	!0,1,2:set=DDP_NCCL_LIBRARY=/nowhere join=3
shows 'a rank that joins none needs neither NCCL nor a GPU' \
	'0 2/3;1 1/3;2 0/3;3 -'
ranks '-N2 --ntasks-per-node=2' set=FAKE_CUDA_GPU=one split=4
shows 'ranks of different colors may be on one GPU' '0 0/1;1 0/1;2 0/1;3 0/1'

# ---- several roots

ranks '-N2 -n5' roots=2 create=7 destroy=9000
shows 'two ranks a root' "$uneven"
equal 'make as many ids as that takes' '9 5 3' \
	"$(ids) $(logged 'ids 3') $(logged 'ids 2')"
ranks '-N2 -n5 -m cyclic' roots=1 create=7 split=3 destroy=9000
shows 'a root for each rank' "$(printf '%s;' '0 0/5 0/3 0/2' '0 1/2' \
	'1 1/5 0/2 1/2' '1 1/2' '2 2/5 1/3 0/2' '2 0/1' '3 3/5 1/2 1/2' \
	'3 0/2' '4 4/5 2/3 0/1')4 0/2"
with "$old" '-N2 -n5' roots=2 create=7
shows 'an NCCL without ncclCommInitRankScalable' "$uneven"
equal 'gets one id each' 15 "$(logged 'ids 1')"

# ---- again and again

ranks '-N2 --ntasks-per-node=2' create=1 create=1 destroy=9000 split=1 split=1 create=1
equal 'further communicators have ids of their own' '20 5' \
	"$(logged init) $(ids)"
for version in 22203 22501 22602 22809; do
	ranks '-N2 --ntasks-per-node=2' set=FAKE_NCCL_VERSION=$version create=1 \
		sum wait=9000 create=2 destroy=9000
	shows "another one after a call, NCCL $version" "$(printf '%s;' \
		'0 0/4 - -' '0 7' '0 - 0/2 -' '1 1/4 - -' '1 7' '1 - 1/2 -' \
		'2 2/4 - -' '2 7' '2 - 0/2 -' '3 3/4 - -' '3 7')3 - 1/2 -"
done
ranks '-N2 --ntasks-per-node=2' @0:set=FAKE_NCCL_ID=fail create=7 @0:set=FAKE_NCCL_ID= create=7
says 'a root that fails to make its id' 4 'NCCL PEER' 'rank 0 on n1: NCCL 2.28.9, in ncclGetUniqueId: unhandled system error (fake: no interface)'
shows 'the call after a root that failed makes communicators' \
	'0 0/4 0/2 0/2;1 1/4 1/2 0/2;2 2/4 0/2 1/2;3 3/4 1/2 1/2'
equal 'ids that nobody used serve the next call' 5 "$(ids)"
ranks '-N2 --ntasks-per-node=2' timeout=1500 @3:set=FAKE_NCCL_INIT=error create=7 \
	@3:set=FAKE_NCCL_INIT= timeout=20000 create=7
equal 'a rank that NCCL fails on: what each says' \
	'TIMEOUT TIMEOUT TIMEOUT NCCL' \
	"$(sed -n 's/.*: \([A-Z]*\) .* after.*/\1/p' out | paste -sd' ')"
shows 'the call after an NCCL that failed makes communicators' \
	'0 0/4 0/2 0/2;1 1/4 1/2 0/2;2 2/4 0/2 1/2;3 3/4 1/2 1/2'
equal 'what had begun was aborted' 3 "$(logged abort)"
ranks '-N2 --ntasks-per-node=2' set=FAKE_NCCL_INIT=second create=3
says 'the second communicator fails' 4 NCCL 'NCCL 2.28.9, in the initialisation of the node communicator of 2 ranks: unhandled system error (fake: the second fails)'
equal 'the first is aborted' 4 "$(logged abort)"
ranks '-N2 --ntasks-per-node=2' threads=8
equal 'eight threads' '4 64 64' \
	"$(grep -c '^[0-9] threads ended$' out) $(logged init) $(
	logged destroy)"

# ---- what is found before NCCL is called

ranks '-N2 --ntasks-per-node=2' @3:set=FAKE_NCCL_VERSION=22703 create=7
says 'another version' 4 NCCL 'rank 0 on n1 has NCCL 2.28.9, but not rank 3 on n2 (2.27.3): all ranks must load the same'
equal 'keeps NCCL from being called' 0 "$(logged init)"
ranks '-N2 --ntasks-per-node=2' set=FAKE_NCCL_VERSION=21705 create=1
says 'too old a version' 4 NCCL "all 4 ranks: $fakes/libnccl.so.2 is NCCL 2.17.5: use 2.18 or later"
ranks '-N2 --ntasks-per-node=2' @1:set=DDP_NCCL_LIBRARY=/nowhere/libnccl.so.2 create=7
says 'a missing library' 4 'PEER NCCL PEER' 'rank 1 on n1: no NCCL: /nowhere/libnccl.so.2: cannot open shared object file: No such file or directory: set DDP_NCCL_LIBRARY to the right path'
ranks '-N2 --ntasks-per-node=2' \
	@1:set=DDP_NCCL_LIBRARY="$(printf '/a\033[31m\nsrun: error: b')" create=7
says 'a path with escapes' 4 'PEER NCCL PEER' 'rank 1 on n1: no NCCL: /a?[31m?srun: error: b: cannot open shared object file: No such file or directory: set DDP_NCCL_LIBRARY to the right path'
ranks '-N2 --ntasks-per-node=2' @1:set=DDP_NCCL_LIBRARY="$fakes/libcuda.so.1" create=7
says 'a library that is no NCCL' 4 'PEER NCCL PEER' "rank 1 on n1: $fakes/libcuda.so.1 is no NCCL: it has no ncclGetVersion"
ranks '-N2 --ntasks-per-node=2' @2,3:set=FAKE_GPUS=0 split=1
says 'ranks without a GPU' 4 'PEER CUDA' 'rank 2 on n2 and rank 3 on n2: no GPU: cuInit: no CUDA-capable device is detected'
ranks '-N2 --ntasks-per-node=2' @0:set=FAKE_CUDA_CONTEXT=no create=1
says 'a rank that chose no GPU' 4 'CUDA PEER' 'rank 0 on n1: this thread has chosen no GPU: call cudaSetDevice first (before CUDA 12, cudaFree(0) after it)'
advice='each rank must choose its own, as by cudaSetDevice(local rank)'
ranks '-N2 --ntasks-per-node=2' @0,1:set=FAKE_CUDA_GPU=a @2,3:set=FAKE_CUDA_GPU=b create=7
says 'two ranks on one GPU' 4 ARGUMENT "rank 0 on n1 and rank 1 on n1 use the same GPU, GPU-61000000-0000-0000-0000-000000000000 (1 more GPU is shared): $advice"
ranks '-N2 --ntasks-per-node=2' set=FAKE_CUDA_UUID=no @0,2:set=FAKE_CUDA_GPU=0000:01:00.0 \
	@1,3:set=FAKE_CUDA_GPU=0000:02:00.0 create=1 \
	@3:set=FAKE_CUDA_GPU=0000:01:00.0 create=1
says 'two ranks of a node on one GPU, by its bus id' 4 ARGUMENT "rank 2 on n2 and rank 3 on n2 use the same GPU, 0000:01:00.0: $advice"
shows 'ranks of two nodes may have the same bus id' \
	'0 0/4 - -;1 1/4 - -;2 2/4 - -;3 3/4 - -'
ranks '-N2 --ntasks-per-node=2' set=FAKE_CUDA_GPU=one create=1 share create=7
shows 'unless they are to share it' \
	'0 0/4 0/2 0/2;1 1/4 1/2 0/2;2 2/4 0/2 1/2;3 3/4 1/2 1/2'
equal 'ranks that share a GPU are each a host of its own for NCCL' '3 3 3 3' \
	"$(for i in 0 1 2 3; do logged "hostid 'ddp-rank-$i'"; done | paste -sd' ')"
ranks '-N2 --ntasks-per-node=2' create=1 share create=1
says 'share_gpu comes too late' 4 ARGUMENT 'all 4 ranks: share_gpu came after the first communicator, which read NCCL_HOSTID: set it for the first one'
ranks '-N2 --ntasks-per-node=2' @3:create=3 !3:create=1
says 'other groups' 4 ARGUMENT 'rank 0 on n1 asks for world, but rank 3 on n2 for world and node: all ranks must ask for the same'
ranks '-N2 --ntasks-per-node=2' @3:split=1 !3:create=1
equal 'another call' 'rank 3 on n2 made another call, or has another version of libddp: all ranks must make the same calls in the same order' \
	"$(sed -n 's/^[012] .* after .: //p' out | sort -u)"
ranks '-N2 --ntasks-per-node=2' @2:set=NCCL_COMM_ID=n1:1 create=1
says 'NCCL_COMM_ID' 4 'PEER ARGUMENT PEER' 'rank 2 on n2: NCCL_COMM_ID is set, so that all communicators would meet at one address: unset it'
ranks '-N2 --ntasks-per-node=2' @2:set=NCCL_COMM_BLOCKING=0x1 create=1
says 'NCCL_COMM_BLOCKING' 4 'PEER ARGUMENT PEER' 'rank 2 on n2: NCCL_COMM_BLOCKING=1 is set, under which no deadline holds: unset it'
ranks '-N2 --ntasks-per-node=2' ctas=7 create=2
equal 'a config is passed on, without blocking' 4 \
	"$(logged 'config size 40 version 21800 CTAs 7')"
ranks '-N2 --ntasks-per-node=2' ctas=7 @1:magic create=2
says 'a config that is none is refused' 4 'PEER ARGUMENT PEER' 'rank 1 on n1: the config is not valid: set it to NCCL_CONFIG_INITIALIZER first'
ranks '-N2 --ntasks-per-node=2' create=8
says 'no groups' 4 ARGUMENT 'all 4 ranks: groups is 0x8: set it to an OR of enum ddp_group'

# ---- deadlines and errors after that

ranks '-N2 --ntasks-per-node=2' timeout=1000 set=FAKE_NCCL_INIT=never create=1
says 'an initialisation that does not end' 4 TIMEOUT 'the initialisation of the world communicator of 4 ranks was not done in time: a rank does not take part, or cannot be reached'
equal 'is aborted' 4 "$(logged abort)"
took 4 'an initialisation that does not end is aborted'
ranks '-N2 --ntasks-per-node=1' timeout=1000 set=FAKE_NCCL_INIT=never \
	set=FAKE_NCCL_ABORT=never create=1
says 'an initialisation whose abort does not end' 2 TIMEOUT 'the initialisation of the world communicator of 2 ranks was not done in time: a rank does not take part, or cannot be reached'
took 9 'an abort that does not end is left to itself'
ranks '-N2 --ntasks-per-node=1' set=FAKE_NCCL_INIT=third \
	set=FAKE_NCCL_ABORT=never create=7
says 'the third fails, two do not abort' 2 NCCL 'NCCL 2.28.9, in the initialisation of the cross communicator of 2 ranks: unhandled system error (fake: the third fails)'
took 8 'two aborts that do not end are left to themselves'
ranks '-N2 --ntasks-per-node=1' set=FAKE_NCCL_INIT=async create=1
says 'an initialisation that fails later' 2 NCCL 'NCCL 2.28.9, in the initialisation of the world communicator of 2 ranks: internal error (fake: asked to fail later)'
ranks '-N2 --ntasks-per-node=1' set=FAKE_NCCL_INIT=cuda create=1 group
says 'an initialisation that fails inside a group' 2 NCCL 'NCCL 2.28.9, in the initialisation of the world communicator of 2 ranks: unhandled cuda error (fake: cudaGetDevice)'
shows 'does not leave it open' '0 5;1 5'
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_NCCL_ASYNC=0 wait=9000 abort
says 'an error of a peer' 2 NCCL 'NCCL 2.28.9, in a collective: remote process exited (fake: a peer is gone)'
equal 'an error of a peer ends in abort' \
	'2 0' "$(logged abort) $(logged destroy)"
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_CUDA_STREAM=400 wait=9000 destroy=9000
equal 'a stream that is done in time' '2 2' \
	"$(wc -l <out) $(logged destroy)"
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_CUDA_STREAM=999999 wait=400
says 'a stream that is not done in time' 2 TIMEOUT 'waited 0.4 s for a stream: abort the communicator'
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_NCCL_BUSY=999999 wait=400
says 'work that has not reached the stream in time' 2 TIMEOUT 'waited 0.4 s for a stream: abort the communicator'
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_CUDA_STREAM=error wait=400
says 'a stream with an error' 2 CUDA 'what was enqueued to the stream failed: a fake CUDA error'
ranks '-N2 --ntasks-per-node=1' set=FAKE_CUDA_STREAM=999999 wait=400
says 'a stream without a communicator' 2 TIMEOUT 'waited 0.4 s for a stream'
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_NCCL_FINALIZE=never destroy=400
says 'a communicator that does not finalise' 2 TIMEOUT 'ncclCommFinalize was not done in time: a rank does not take part, or cannot be reached'
equal 'is aborted' '2 0' "$(logged abort) $(logged destroy)"
ranks '-N2 --ntasks-per-node=1' create=1 set=FAKE_NCCL_ABORT=fail abort
says 'an abort that fails' 2 NCCL 'NCCL 2.28.9, in ncclCommAbort: unhandled system error (fake: asked to fail in abort)'
ranks '-N2 --ntasks-per-node=2' timeout=1500 @3:sleep=4000 create=7 create=7
equal 'a rank that does not come' '6 waited for rank 3 on n2' \
	"$(grep -c '^[012] .*TIMEOUT' out) $(sed -n '/^[012] .* after [0-9]*: /{
		s///; s/^waited [1-9][0-9.]* s /waited /; p
	}' out | sort -u)"

# ---- the death of a rank: Slurm ends the step

for death in kill set=FAKE_NCCL_ID=crash set=FAKE_NCCL_INIT=crash; do
	ranks '-N2 --ntasks-per-node=2 -K0' @2:$death @1:sleep=200 create=7 sleep=20000
	check "rank 2 dies by $death: the step fails" test "$status" -ne 0
	took 10 "rank 2 dies by $death: the step ends"
done
ranks '-N2 --ntasks-per-node=2 -K0' @2:sleep=500 @2:kill create=7 sleep=20000
check 'a step whose rank 2 dies while the others wait fails' \
	test "$status" -ne 0
took 10 'a step whose rank 2 dies while the others wait ends'

# ---- which NCCL

program=$linked
ranks '-N1 -n1' set=DDP_NCCL_LIBRARY=/nowhere library
equal "the program's own comes first" "0 22809 $old/libnccl.so.2" "$(cat out)"
program=''
deep=$scratch/$(printf '%0100d' 0)
mkdir "$deep" "$deep/a" "$deep/b"
cp "$fakes/libnccl.so.2" "$deep/a"
cp "$fakes/libnccl.so.2" "$deep/b"
# end PATH: the last of it
end()
{
	printf '...%s' "$(printf %s "$1" | tail -c 90)"
}
preload="$deep/a/libnccl.so.2 $deep/b/libnccl.so.2"
both="$(end "$deep/a/libnccl.so.2") and $(end "$deep/b/libnccl.so.2")"
ranks '-N2 --ntasks-per-node=1' create=1
says 'two copies, deep down' 2 NCCL "all 2 ranks: two copies of NCCL are in one process, $both: use only one of them"
preload="$fakes/libnccl.so.2 $old/libnccl.so.2"
both="$fakes/libnccl.so.2 and $old/libnccl.so.2"
ranks '-N2 --ntasks-per-node=1' library
says 'are told to who asks' 2 NCCL "two copies of NCCL are in one process, $both: use only one of them"
preload="$scratch/inside.so $fakes/libnccl.so.2"
both="$fakes/libnccl.so.2 and $scratch/inside.so"
ranks '-N1 -n1' library
says 'a second NCCL in another library' 1 NCCL "two copies of NCCL are in one process, $both: use only one of them"
preload=$scratch/inside.so
ranks '-N1 -n1' library
equal 'an NCCL inside another library serves if it is alone' \
	"0 22809 $scratch/inside.so" "$(cat out)"
preload=
cp "$old/libnccl.so.2" "$scratch/other.so"
ranks '-N1 -n1' set=DDP_NCCL_LIBRARY="$scratch/other.so" library
equal 'DDP_NCCL_LIBRARY serves if no NCCL is loaded' \
	"0 22809 $scratch/other.so" "$(cat out)"
ranks '-N1 -n1' library
equal 'libnccl.so.2 serves if nothing else does' \
	"0 22809 $fakes/libnccl.so.2" "$(cat out)"

with "$amd" '-N1 -n1' library
equal 'librccl.so.1 serves where there is no CUDA driver' "0 $amd/librccl.so.1" \
	"$(cut -d' ' -f1,3 out)"
with "$amd" '-N2 -n5' create=7
shows "AMD's: world, node and cross on 3 and 2 ranks" "$uneven"
with "$amd" '-N2 --ntasks-per-node=1' create=1 set=FAKE_CUDA_STREAM=999999 wait=400
says "AMD's: a stream that is not done in time" 2 TIMEOUT 'waited 0.4 s for a stream: abort the communicator'
with "$amd" '-N1 -n2' set=FAKE_CUDA_GPU=same create=1
says "AMD's: two ranks on one GPU" 2 ARGUMENT "all 2 ranks use the same GPU, same: $advice"
with "$amd" '-N1 -n1' set=FAKE_CUDA_INIT=3 create=1
says "AMD's: HIP that does not begin" 1 CUDA 'rank 0 on n1: no GPU: hipInit: a fake CUDA error'
with "$fakes:$amd" '-N1 -n1' set=FAKE_GPUS=0 create=1
says 'a CUDA driver and HIP, and no GPU' 1 CUDA 'rank 0 on n1: no GPU: cuInit: no CUDA-capable device is detected'

# ---- the real one, without a GPU

real=$(find -L /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu \
	-name libnccl.so.2 2>/dev/null | head -n 1)
if test -z "$real"; then
	skip 'the real NCCL' 'no GPU, and no NCCL is installed'
elif test -e /dev/nvidiactl; then
	skip 'the real NCCL without a GPU' 'there is a GPU: see tests/gpu'
else
	with "$scratch" '-N2 --ntasks-per-node=2' set=DDP_NCCL_LIBRARY="$real" create=7
	says 'the real NCCL, no driver' 4 CUDA 'all 4 ranks: no GPU: libcuda.so.1: cannot open shared object file: No such file or directory'
	# Its ids go through the exchange, and then it fails on the fake.
	for arguments in create=7 'roots=1 create=7' 'roots=2 split=2'; do
		# shellcheck disable=SC2086 # several
		with "$driver" '-N2 -n5 -m cyclic' \
			set=DDP_NCCL_LIBRARY="$real" $arguments group
		equal "the real NCCL, a fake driver: $arguments" '5 5 5' \
			"$(grep -c 'NCCL 1 after .: NCCL 2.*unhandled cuda' out) $(
			grep -c 'group: 5' out) $(wc -l <out | awk '{ print $1 / 2 }')"
	done
fi
case $(config HAVE_NCCL) in
yes)	echo '#include <ddp_nccl.h>
	struct ddp_nccl_options o; int main(void) { return (int)o.size; }' \
		>header.c
	cp header.c header.cc
	# shellcheck disable=SC2046
	check 'the header goes with the real nccl.h' \
		compile $(config NCCL_CFLAGS | sed 's/-I/-isystem /g') \
		$(config CUDA_CFLAGS | sed 's/-I/-isystem /g') \
		-fsyntax-only header.c
	# shellcheck disable=SC2046
	check 'the header goes with the real nccl.h in C++ too' \
		c++ -Wall -Wextra -Werror -I"$top/lib/include" \
		$(config NCCL_CFLAGS) $(config CUDA_CFLAGS) -fsyntax-only \
		header.cc ;;
*) skip 'the header goes with the real nccl.h' \
	'no GPU, and configure found no NCCL' ;;
esac
