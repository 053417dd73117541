# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of ./run
# The emulator itself: it tells of each mistake of bugs.cu, and of none in
# right.cu and exchange.cu, whose results are right.

# found NAME WORDS: with these words, and the exit code is 99
found()
{
	call timeout 60 "$build/obj/tests/cuda/bugs" "$1"
	test "$status" -eq 99 && grep -q "$2" err &&
		tail -n 1 err | grep -qx 'cuda_on_cpu: [0-9]* problems*'
}

# silent ORDER COMMAND...: it succeeds, and the emulator tells of nothing
silent()
{
	silent_order=$1
	shift
	call env EMU_ORDER="$silent_order" timeout 60 "$@"
	test "$status" -eq 0 && test ! -s err
}

# What each mistake is called
mistakes()
{
	cat <<-'EOT'
	divergent deadlock: of 64 threads 16 have ended, 48 are at
	two_places __syncthreads at two places at once
	few_lanes deadlock
	absent_lane a shuffle from a lane that takes no part
	absent_caller whose mask lacks the caller
	misaligned a misaligned pointer: .* for 16 bytes, at bugs.cu:
	shared_out shared memory out of bounds: byte 2560 of 2560, at bugs.cu:
	shared_raw read of shared memory never written
	refilled race in shared memory
	no_syncwarp race in shared memory: thread .* reads
	half_syncwarp race in shared memory: thread .* reads
	not_awaited cp.async still fills, at bugs.cu:
	awaited_late cp.async still fills, at bugs.cu:
	left_behind ended with cp.async under way
	copy_misaligned cp.async not at 16 bytes
	row_misaligned ldmatrix of a row not at 16 bytes
	few_multiply mma of fewer than 32 lanes
	run_endless a fault: a thread writes
	two_blocks race: two_blocks reads what another thread of the same
	two_threads race: two_threads .* what another thread of the same
	run_out_of_bounds reads out of bounds: byte 4[0-9]* of 4096
	raw read reads memory never written: byte [0-9]* of 4096
	after_free read reads freed memory: byte [0-9]* of freed 4096
	freed_twice cudaFree of what is freed already
	host_written write writes the host's memory
	host_read read reads the host's memory
	reads_device the host reads the device's memory: byte 12 of 4096
	writes_device the host writes the device's memory: byte 12 of 4096
	too_many_threads a launch of write is refused: grid 1 1 1, block 1025
	too_much_shared a launch of write is refused: .* 50176 bytes of shared
	copies_beyond a copy of 4097 bytes beyond an allocation
	copies_wrong_way whose kind is not that of its addresses
	no_event race: .*no event or order of a stream is between
	no_event_back race: .*no event or order of a stream is between
	event_too_early race: .*no event or order of a stream is between
	two_readers race: .*no event or order of a stream is between
	default_stream race: .*no event or order of a stream is between
	copied_early race: .*no event or order of a stream is between
	EOT
}

test_emulator()
{
	built cuda/bugs cuda/right
	for order in eager lazy 1 2 3; do
		check "a program that is right has no finding, $order" \
			silent "$order" "$build/obj/tests/cuda/right"
	done
	mistakes >list
	while read -r mistake words; do
		orders='eager 1'
		case $words in
		*'order of a stream'*) orders='eager lazy 1 2' ;;
		esac
		for order in $orders; do
			export EMU_ORDER="$order"
			check "$mistake is noticed, $order" found "$mistake" \
				"$words"
		done
	done <list
	EMU_ORDER=1
	check 'mixed is noticed' found mixed 'race: mixed writes'
	unset EMU_ORDER
}

test_products()
{
	built cuda/products
	for order in eager lazy 1; do
		call env EMU_ORDER="$order" timeout 60 \
			"$build/obj/tests/cuda/products"
		test "$status" -eq 0 &&
			test "$(grep -vc 'cublasLtMatmul is refused' err)" -eq 0
		result $? "products by the fake cuBLASLt, $order"
	done
	equal 'the fake cuBLASLt tells what it refuses' 5 "$(wc -l <err)"
}

# exchange MODE: by the fake NCCL
exchange()
{
	call env FAKE_NCCL_DIR="$scratch/nccl" timeout 120 \
		"$build/obj/tests/cuda/exchange" "$scratch/libnccl.so.2" "$@"
}

# exchanged MODE STATUS WORDS
exchanged()
{
	exchange "$1"
	test "$status" -eq "$2" && grep -q "$3" err
}

test_exchange()
{
	built cuda/exchange
	mkdir nccl
	# What is exchanged here goes by several pieces.
	# shellcheck disable=SC2046 # words
	$(config CC) -O2 -Wall -Wextra -pthread -fPIC -shared \
		-DFAKE_ROOM=131072 -o libnccl.so.2 "$top/tests/fakes/fake_nccl"*.c || exit 1
	for order in eager lazy 1 2; do
		export EMU_ORDER="$order"
		exchange
		test "$status" -eq 0 && test ! -s err
		result $? "three ranks exchange, $order"
		check "an event left out is noticed, $order" exchanged forget \
			99 'race: ncclAllReduce reads what fill<float>'
	done
	unset EMU_ORDER
	check 'memory of the host is refused' exchanged host 1 \
		"the host's memory is refused"
	check 'ranks that do not agree get an error' exchanged short 4 \
		'ncclSend and ncclRecv of other sizes'
}
