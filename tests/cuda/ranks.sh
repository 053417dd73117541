# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC2317 # variables of run, which sources this
# Whole runs of ddp-train on emulated GPUs, a GPU a rank: srun --ddp on two
# nodes, the module over the emulated CUDA, a fake driver and a fake NCCL whose
# work is that of the emulated streams. The same losses as the CPU's, in each
# type and for each number of ranks; ranks that are equal bit by bit.

# ranks_library FILE SOURCE...: a shared library, by the build's compiler
ranks_library()
{
	ranks_library_to=$1
	shift
	$(sed -n 's/^CC = //p' "$build/config.mak") -O2 -g -fPIC -shared \
		-pthread -I"$top/tests/fakes" -o "$ranks_library_to" "$@" ||
		exit 1
}

# What the cluster's user loads: where the user may read it
ranks_install()
{
	mkdir -m 755 fakes fast checked
	ranks_library fakes/libcuda.so.1 "$top/tests/fakes/fake_cuda.c"
	ranks_library fakes/libnccl.so.2 -Wl,-soname,libnccl.so.2 \
		"$top"/tests/fakes/fake_nccl*.c
	for ranks_module in checked fast; do
		built cuda_on_cpu/$ranks_module/ddp_cuda.so
		cp "$build/obj/tests/cuda_on_cpu/$ranks_module/ddp_cuda.so" \
			$ranks_module
	done
	cp "$build/obj/bin/ddp-train" .
	chmod 755 fast/* checked/* fakes/* ddp-train
	train=$scratch/ddp-train
}

# ranks_begin: the cluster. This leaves the folder of run, and its traps, for
# those of tests on clusters.
ranks_begin()
{
	ranks_left=$scratch ranks_counts="$tap_count $tap_failed" level=cuda
	# shellcheck source=tests/cluster/begin.sh
	. "$top/tests/cluster/begin.sh"
	tap_count=${ranks_counts% *} tap_failed=${ranks_counts#* }
	trap 'stop; rm -rf "$ranks_left"' EXIT
	ranks_missing=$(missing)
	test -n "$ranks_missing" || ! grep -q '^HAVE_PMIX = no' \
		"$build/config.mak" || ranks_missing='configure found no PMIx'
	if test -n "$ranks_missing"; then
		skip 'ranks of emulated GPUs' "$ranks_missing"
		return 1
	fi
	install_build
	cluster --nodes 2 --gpus 2
	ranks_install
}

# ranks_meet: where the next run's ranks find each other
ranks_meet()
{
	rm -rf meet
	mkdir -m 777 meet
	: >meet/log
	chmod 666 meet/log
}

# on LAYOUT ARGUMENT...: ddp-train on emulated GPUs
on()
{
	on_layout=$1
	shift
	ranks_meet
	# shellcheck disable=SC2086 # several arguments
	call login env FAKE_NCCL_DIR="$scratch/meet" EMU_ORDER="$order" \
		FAKE_CUDA_NAME="$gpu_name" \
		srun --ddp $on_layout env LD_LIBRARY_PATH="$scratch/fakes" \
		DDP_MODULE_DIR="$scratch/$ranks_module" "$train" \
		$ranks_data "$@"
}

# ranks_losses LOG
ranks_losses()
{
	sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1"
}

# as_cpu NAME COUNT TOLERANCE: emu.log and cpu.log have COUNT losses that are
# close
as_cpu()
{
	ranks_losses cpu.log >cpu.losses
	ranks_losses emu.log | paste cpu.losses - | awk -v most="$3" -v n="$2" '
		NF != 2 { bad = 1 }
		{ d = ($1 - $2) / $1; d = d < 0 ? -d : d }
		d > worst { worst = d }
		END { print "worst relative difference " worst " of " NR
			exit bad || worst > most || NR != n }' >why
	result $? "$1"
}

text=/usr/share/common-licenses/GPL-3
ranks_data="--data $text"
one='-N1 -n1 --gres=gpu:1' two='-N2 -n2 --gres=gpu:1'
four='-N2 -n4 --gres=gpu:2'
tiny='--context 32 --global-batch 4 --steps 20 --check-every 1'
gpu_name=Fake

# ranks_trains LAYOUT TOLERANCE ARGUMENT...: as one rank on the CPU does
ranks_trains()
{
	ranks_layout=$1 ranks_tolerance=$2
	shift 2
	rm -f emu.log cpu.log
	# shellcheck disable=SC2086 # several arguments
	call login srun --ddp $one "$train" --device cpu --data $text \
		$tiny "$@" --log cpu.log
	# shellcheck disable=SC2086
	on "$ranks_layout" $tiny "$@" --log emu.log
	test "$status" -eq 0 && ! grep -q '^cuda_on_cpu' err &&
		grep -q '^backend [a-z]*, device cuda (' out
	result $? "emulated GPUs train: $ranks_layout $*"
	# One communicator for buckets, and one for little, on each rank
	test "$(grep -c 'config .* CTAs 1 ' meet/log)" -eq "$(grep -c \
		'config .* CTAs -1 ' meet/log)"
	result $? "every second communicator is a small one"
	as_cpu "and lose as a CPU does" 20 "$ranks_tolerance"
}

# ranks_calls NAME WANTED: what the communicators for buckets were asked for,
# and how often, on all ranks alike. Those for little only gather.
ranks_calls()
{
	equal "$1" "$2" "$(sed -n 's/^[0-9]* calls \(.*\) [^ ]*$/\1/p' meet/log |
		sed 's/nccl//g; /^AllGather [0-9]*$/d' | sort -u | paste -sd';')"
}

# ranks_rated LAYOUT: what emu.log and the end of its run say of H100s. A
# step has 128 tokens, each of 6 x 116480 + 6 x 2 x 64 x 32 FLOP.
ranks_rated()
{
	grep 'predicted time$' out | sed 's/.*, \([0-9.]*\) of.*/\1/' >steady
	# shellcheck disable=SC2086 # several arguments
	on "$1" $tiny --dtype bf16 --plan
	sed -n 's/^a step on one H100 .*(MFU \([0-9.]*\)%).*/\1/p' out |
		cat - steady >rated
	sed 's/.*"seconds":\([^,]*\),.*"mfu":/\1 /; s/,.*:/ /; s/}$//' \
		emu.log >>rated
	# shellcheck disable=SC2016 # awk's own variables
	check "MFU, and the predicted time: $1" awk -v ranks="${1#* -n}" '
	BEGIN { ranks += 0 }	# up to the first blank
	function far(a, b, most) { d = a / b - 1; return d * d > most * most }
	NR == 1 { planned = $1 }
	NR == 2 { steady = $1 }
	NR < 3 { next }
	{
		took = $1 - before; before = $1
		flop = 128 * (6 * 116480 + 6 * 2 * 64 * 32)
		if (far($2, flop / (ranks * 989.4e12 * took), 1e-4)) {
			print "step " NR - 2 " has MFU " $2; bad = 1
		}
		if (sprintf("%.1f", 100 * $2 * $3) != planned) {
			print $3 " times that of MFU " planned "%"; bad = 1
		}
		if (NR == 3) first = $1
		predicted = took / $3
	}
	END {
		print "in all " steady " of " predicted " s"
		exit bad || NR != 22 || \
			far(steady, ($1 - first) / 19 / predicted, 1e-3)
	}' rated
}

# Two types' losses differ where sums are rounded, which each device does in its
# own order: to 2^-8 of a value of bf16, 2^-11 of fp16, 2^-24 of fp32, of which
# a loss has the mean over many. After 20 steps it is some times as much.
ranks_types()
{
	order=eager
	for layout in "$one" "$two" "$four"; do
		ranks_trains "$layout" 2e-6 --dtype fp32
		test "$layout" = "$one" || ranks_calls \
			'the only bucket is summed, and nothing else' \
			"AllReduce $((20 + 1)) Broadcast 1"
		ranks_trains "$layout" 5e-4 --dtype fp16
		gpu_name='NVIDIA H100 80GB HBM3'
		ranks_trains "$layout" 2e-3 --dtype bf16
		ranks_rated "$layout"
		gpu_name=Fake
	done
	ranks_trains "$one" 2e-3 --dtype bf16 --recompute on
}

# Streams in other orders than that of the calls: an event that is missing shows
ranks_orders()
{
	for order in lazy 1 2; do
		ranks_trains "$four" 2e-6 --dtype fp32 --zero 1 \
			--bucket-mib 0.1
		# In each of 20 steps 7 even buckets, a last one that is not,
		# and the sums of squares; before them a trial of both, and the
		# parameters of 8 buckets
		ranks_calls '--zero 1 scatters sums, and gathers parameters' \
			"AllReduce 20 ReduceScatter $((20 * 7 + 1)) AllGather $(
			)$((20 * 8 + 1)) Broadcast $((20 + 8))"
		ranks_trains "$two" 2e-3 --dtype bf16 --bucket-mib 0.05
	done
	order=eager
}

# ranks_watched LAYOUT ARGUMENT...: a few steps, each access of a kernel and of
# NCCL looked at
ranks_watched()
{
	on "$@" --context 32 --global-batch 4 --steps 3 --check-every 1
	test "$status" -eq 0 && ! grep -q '^cuda_on_cpu' err &&
		grep -q '^backend nccl, device cuda (' out
	result $? "the emulator has nothing to tell: $order $*"
}

# The code between ranks: its buffers, and what of a stream waits for another
ranks_checked()
{
	ranks_module=checked order=lazy
	ranks_watched "$four" --zero 1 --bucket-mib 0.1
	ranks_watched "$four" --deterministic --bucket-mib 0.1
	ranks_watched "$two" --dtype bf16 --batch 1
	ranks_module=fast order=eager
}

# ranks_bits LAYOUT ARGUMENT...: what a log has but times
ranks_bits()
{
	rm -f log
	on "$@" --log log
	test "$status" -eq 0 || cat err
	sed 's/"seconds".*//' log
}

# ranks_as_one LAYOUT ARGUMENT...: with those of $same, the bits of one.bits
ranks_as_one()
{
	# shellcheck disable=SC2086 # several arguments
	ranks_bits "$@" $same >many.bits
	test "$(wc -l <one.bits)" -eq 20 && diff one.bits many.bits >why
	result $? "--deterministic has the bits of one rank: $*"
}

# Repeated runs have the same bits; --deterministic ones those of any layout.
ranks_repeat()
{
	for dtype in bf16 fp16; do
		# shellcheck disable=SC2086 # several arguments
		set -- $tiny --dtype $dtype --zero 1
		ranks_bits "$four" "$@" >first.bits
		order=lazy ranks_bits "$four" "$@" >second.bits
		test "$(wc -l <first.bits)" -eq 20 &&
			diff first.bits second.bits >why
		result $? "a run again, in another order: the same bits ($dtype)"
	done
	same="$tiny --deterministic --bucket-mib 0.1"
	# shellcheck disable=SC2086
	ranks_bits "$one" $same >one.bits
	ranks_as_one "$two" --zero 0
	# In each step 4 even buckets, and one that is not; before them a trial,
	# and the parameters of 5
	ranks_calls 'which sends owners their slices, and has NCCL add nothing' \
		"AllGather $((20 * 4 + 1)) Broadcast $((20 * 2 + 5)) $(
		)Send $((20 * 5 + 1)) Recv $((20 * 5 + 1))"
	ranks_as_one "$two" --zero 1
	for layout in "$four" "$four --distribution=cyclic"; do
		for zero in 0 1; do
			ranks_as_one "$layout" --zero $zero
		done
	done
	for dtype in bf16 fp16; do
		# shellcheck disable=SC2086
		ranks_bits "$one" --dtype $dtype $same >one.bits
		ranks_as_one "$two" --dtype $dtype --zero 1
		ranks_as_one "$four" --dtype $dtype
	done
	# Rows of zeros behind the token table
	make_tokens >squares
	ranks_data="--tokens $scratch/squares --vocab 300"
	# shellcheck disable=SC2086
	ranks_bits "$one" $same >one.bits
	ranks_as_one "$two"
	ranks_as_one "$four" --zero 1
	ranks_data="--data $text"
}

# Chance rounds alike on any ranks, and after a break.
ranks_chance()
{
	set -- --context 32 --global-batch 4 --schedule constant --warmup 0 \
		--dtype bf16 --deterministic --rounding
	ranks_bits "$one" "$@" nearest --steps 20 >nearest.bits
	ranks_bits "$one" "$@" stochastic --steps 20 >one.bits
	rm -rf saved log
	on "$four" "$@" stochastic --zero 1 --steps 10 --checkpoint saved \
		--log log
	on "$two" --steps 20 --checkpoint saved --resume --log log
	sed 's/"seconds".*//' log >many.bits
	test "$(wc -l <one.bits)" -eq 20 && diff one.bits many.bits >why &&
		! cmp -s one.bits nearest.bits
	result $? "--rounding stochastic: one rank, and four and then two with $(
		)--zero 1 have the same bits"
}

# ranks_resume TOLERANCE ARGUMENT...: a checkpoint of CPUs goes on with GPUs, and
# theirs on CPUs
ranks_resume()
{
	ranks_tolerance=$1
	shift
	set -- --context 32 --global-batch 4 --schedule constant --warmup 0 "$@"
	rm -rf saved emu.log cpu.log
	# shellcheck disable=SC2086
	call login srun --ddp $one "$train" --device cpu --data $text "$@" \
		--steps 18 --log cpu.log
	call login srun --ddp -N2 -n2 "$train" --device cpu --data $text "$@" \
		--steps 3 --checkpoint saved --log emu.log
	on "$four" --steps 12 --checkpoint saved --resume --log emu.log
	grep -q '^resumed from saved/step-3$' out
	result $? "four GPUs go on where two CPUs were: $*"
	# shellcheck disable=SC2086
	call login srun --ddp $one "$train" --device cpu --data $text \
		--steps 18 --checkpoint saved --resume --log emu.log
	grep -q '^resumed from saved/step-12$' out
	result $? 'a CPU goes on where four GPUs were'
	as_cpu 'CPUs, GPUs and a CPU in turn lose as one CPU' 18 \
		"$ranks_tolerance"
	for log in cpu emu; do
		sed 's/.*"norm":[^,]*,\(.*\),"samples".*/\1/' $log.log \
			>$log.skips
	done
	check 'CPUs, GPUs and a CPU in turn leave out the same steps' \
		diff cpu.skips emu.skips
}

# A rank that stops is named: also where NCCL is old, and an abort has no bound.
ranks_trouble()
{
	on "$four" --steps 100000 --context 32 --batch 1 --timeout 4 --log log \
		--bogus
	equal 'a bad option is one sentence' 1 "$(grep -c '^ddp-train: ' err)"
	ranks_meet
	rm -f log
	# shellcheck disable=SC2016,SC2086 # for the ranks' shell; arguments
	call login env FAKE_NCCL_DIR="$scratch/meet" FAKE_NCCL_VERSION=21805 \
		srun --ddp $four env LD_LIBRARY_PATH="$scratch/fakes" \
		DDP_MODULE_DIR="$scratch/fast" sh -c '
		test "$SLURM_PROCID" = 2 && {
			(until grep -qs "\"step\":3," log; do sleep 0.1; done
				kill -STOP $$) & }
		exec "$@"' sh "$train" --data $text --context 32 --batch 1 \
		--steps 100000 --timeout 4 --log log
	test "$status" -ne 0 && grep -q "^ddp-train: .* waited [0-9]* s for $(
		)NCCL, and then over PMIx: waited [0-9.]* s for rank 2 on n2" err
	result $? 'a rank that stops is named'
	check 'a rank that names another one has aborted its communicators' \
		grep ' abort [013]/4$' meet/log
	ranks_meet
	rm -f log
	# shellcheck disable=SC2016,SC2086
	call login env FAKE_NCCL_DIR="$scratch/meet" \
		srun --ddp $four env LD_LIBRARY_PATH="$scratch/fakes" \
		DDP_MODULE_DIR="$scratch/fast" sh -c '
		test "$SLURM_PROCID" = 2 && {
			(until grep -qs "\"step\":3," log; do sleep 0.1; done
				kill -KILL $$) & }
		exec "$@"' sh "$train" --data $text --context 32 --batch 1 \
		--steps 100000 --log log
	test "$status" -ne 0 && grep -q "^slurm-ddp: rank 2 failed first on $(
		)n2 (.* killed by signal 9 (SIGKILL)$" err
	result $? 'a rank that is killed in a step is named'
}

# One node alone has a driver: all ranks end at once, and say who has a GPU.
ranks_mixed()
{
	for ranks_node in 0 1; do
		ranks_gpus=$((2 * ranks_node)) ranks_cpus=$((2 - ranks_gpus))
		# shellcheck disable=SC2016,SC2086 # for the ranks' shell; words
		call login srun --ddp $four sh -c '
			test "$SLURM_NODEID" != "$0" ||
				export LD_LIBRARY_PATH="$1"
			shift
			exec "$@"' $ranks_node "$scratch/fakes" \
			env DDP_MODULE_DIR="$scratch/fast" "$train" \
			--data $text --steps 2
		ranks_words="ranks $ranks_gpus-$((ranks_gpus + 1)) on n$((
			ranks_node + 1))) and others on CPUs (ranks $(
			)$ranks_cpus-$((ranks_cpus + 1)) on n$((2 - ranks_node)))"
		test "$status" -ne 0 && grep -q "^ddp-train: some ranks $(
			)compute on GPUs ($ranks_words, and " err &&
			test "$(grep -c '^ddp-train: ' err)" -eq 1
		result $? "node $ranks_node alone has GPUs: one sentence"
	done
}

# with_rank RANK VARIABLE=VALUE LAYOUT ARGUMENT...: one rank's GPU is another
with_rank()
{
	with_one=$1 with_set=$2 with_layout=$3
	shift 3
	ranks_meet
	# shellcheck disable=SC2016,SC2086 # for the ranks' shell; arguments
	call login env FAKE_NCCL_DIR="$scratch/meet" timeout -k 5 120 \
		srun --ddp $with_layout env LD_LIBRARY_PATH="$scratch/fakes" \
		DDP_MODULE_DIR="$scratch/fast" sh -c '
		test "$SLURM_PROCID" != "$0" || export "$1"
		shift; exec "$@"' "$with_one" "$with_set" "$train" \
		--data $text "$@"
}

# A GPU that fails ends all ranks, by one sentence with its name. Another model
# may train, but not to the same bits.
ranks_gpus()
{
	with_rank 2 EMU_LOST=300 "$four" --context 32 --batch 1 --steps 100000
	equal 'a GPU that is lost ends all ranks, and is named' "1 1 $(
		)ddp-train: rank 2 on n2: GPU 0 (Emulated GPU) of n2 failed" "$status $(
		grep -c '^ddp-train: .*GPU' err) $(
		sed -n 's/^\(ddp-train: .*n2 failed\) in .*/\1/p' err)"
	set -- "$two" --context 32 --width 512 --granule 1 --global-batch 2 \
		--deterministic
	on "$@" --plan
	ranks_mib=$(sed -n 's/^  on the GPU, beside .* \([0-9.]*\) MiB$/\1/p' out)
	with_rank 1 EMU_BYTES="$(awk "BEGIN { print int($ranks_mib * 2^19) }"
		)" "$@" --steps 9
	equal 'a rank with too little memory says what is planned' \
		"1 $(awk "BEGIN { printf \"%.0f\", $ranks_mib + 0.45 }")" \
		"$status $(sed -n "s/^ddp-train: .*MiB of memory free, and $(
		)this rank needs \([0-9]*\) MiB.*/\1/p" err)"
	set -- "$two" --context 32 --global-batch 4 --steps 2
	with_rank 0 FAKE_CUDA_NAME='NVIDIA H100 80GB HBM3' "$@"
	equal 'two models of GPU train; without MFU, as one is not known' \
		'0 rank 1 on n2' "$status $(sed -n "s/^what the GPU of $(
			)\(.*\) can do is not known, so .* no MFU$/\1/p" out)"
	with_rank 1 FAKE_CUDA_NAME=Other "$@" --deterministic
	equal 'two models of GPU are refused with --deterministic' \
		"1 rank 1 on n2 has $(
		)--deterministic on a GPU Other, but rank 0 has $(
		)--deterministic on a GPU Fake" "$status $(
		sed -n 's/^ddp-train: \(.*\); start every rank .*/\1/p' err)"
}

test_ranks()
{
	ranks_begin || return 0
	patience=60
	ranks_types
	ranks_orders
	ranks_checked
	ranks_repeat
	ranks_chance
	ranks_resume 2e-6
	ranks_resume 2e-3 --dtype bf16 --zero 1
	# A large rate: the gradients of steps 3 and 4 overflow, and each halves
	# the scale. What rounds differently then grows faster, too.
	ranks_resume 2e-2 --dtype fp16 --zero 1 --optimizer sgd --lr 2
	equal 'a step on CPUs and one on GPUs were left out, 14 since' '2 14' "$(
		grep -c 'skipped":true' emu.skips) $(
		sed -n 's/^good-steps //p' saved/step-18/manifest)"
	ranks_trouble
	ranks_mixed
	ranks_gpus
}
