# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# Signals, which ask a run to save and to end, and waits for a save.

# The first signal saves, and the second one does not wait for that.
test_signals()
{
	for signal in USR1 TERM; do
		: >log
		rm -rf saved
		"$train" --model toy --steps 1000000 --checkpoint saved \
			--log log >out 2>err </dev/null &
		run=$!
		reaches "$run" grep -q '"step":5,' log || continue
		kill -$signal "$run"
		reap "$run"
		step=$(newest saved)
		test "$status" -eq 75 && ! test -s err &&
			grep -q "^stopped after step $step by a signal" out &&
			tail -n 1 log | grep -q "\"step\":$step,"
		result $? "SIG$signal saves, and ends with 75"
	done
	build_preload 'a second signal' || return 0
	# Again where this machine took longer than it was to.
	took=2000 tries=0
	while test "$took" -gt 1900 && test "$tries" -lt 10; do
		tries=$((tries + 1))
		rm -rf saved
		: >log
		: >waits
		./preloaded "SAVE_SLOW=20 SAVE_WAITS=$scratch/waits" "$train" \
			--model toy --steps 1000000 \
			--checkpoint "$scratch/saved" --log log \
			>out 2>err </dev/null &
		run=$!
		# Late in a second, as whole seconds are not what counts.
		reaches "$run" is_late_in_a_second || return 0
		began=$(date +%s%3N)
		kill -USR1 "$run"
		reaches "$run" has_taken 1 || return 0
		sleep 1.4
		kill -USR1 "$run"
		reaches "$run" has_taken 2 || return 0
		took=$(($(date +%s%3N) - began))
		sleep 1
		kill -TERM "$run" 2>/dev/null
		reap "$run"
	done
	test "$took" -le 1900
	in_time $? 'two signals are taken within two seconds'
	test "$took" -gt 1900 ||
		equal 'a second signal, but not within two seconds, ends it' \
			143 "$status"
	: >log
	"$train" --steps 1000000 --log log >out 2>err </dev/null &
	run=$!
	if reaches "$run" grep -q '"step":5,' log; then
		kill -USR1 "$run"
		reap "$run"
		equal 'without --checkpoint a signal ends it as usual' 138 \
			"$status"
	fi
	test_signals_of_ranks
}

is_late_in_a_second()
{
	grep -q '"step":5,' log && grep -q '^[0-9]*[.][78]' /proc/uptime
}

# has_taken N: whether the run has taken N signals: it waits for the next one
has_taken()
{
	test "$(wc -c <waits)" -gt "$1"
}

# Only one rank gets it, and all end with 75: each writes its own code.
test_signals_of_ranks()
{
	needs_worlds 'signals of several ranks' || return 0
	for rank in 0 2; do
		rm -rf saved code.* pid.*
		: >log
		call timeout 60 mpirun -n 3 sh -c '
			"$@" &
			echo $! >pid.$OMPI_COMM_WORLD_RANK
			wait $!
			echo $? >code.$OMPI_COMM_WORLD_RANK' - "$train" \
			--model toy --steps 1000000 --checkpoint saved \
			--log log &
		run=$!
		reaches "$run" grep -q '"step":5,' log || continue
		reaches "$run" test -s pid.$rank || continue
		kill -TERM "$(cat pid.$rank)"
		reap "$run"
		equal "of a signal to rank $rank all end with 75" '75 75 75' \
			"$(cat code.0 code.1 code.2 | paste -sd' ')"
		check "a signal to rank $rank leaves a save that is whole" \
			timeout 60 "$train" \
			--checkpoint saved --resume --plan
	done
}

# A signal while a checkpoint is read, which takes as long as there is a file
# named hold: of one rank, and of several.
test_early_signals()
{
	build_preload 'signals before the first step' || return 0
	begin_saved
	early 'a signal while a checkpoint is looked at' \
		./preloaded SAVE_READ="$scratch/hold" "$train" \
		--checkpoint "$scratch/saved" --resume --steps 20
	early 'which is taken late' ./preloaded \
		"SAVE_DEAF=60 SAVE_READ=$scratch/hold" "$train" \
		--checkpoint "$scratch/saved" --resume --steps 20
	needs_worlds 'signals of several ranks before the first step' ||
		return 0
	early 'such a signal to rank 1 of 2' mpirun -n 2 \
		./preloaded "SAVE_RANK=1 SAVE_READ=$scratch/hold" "$train" \
		--checkpoint "$scratch/saved" --resume --steps 20
}

# early NAME COMMAND...: it ends with 75 and saves nothing
early()
{
	early_name=$1
	shift
	rm -rf hold hold.* saved
	cp -r first saved
	: >hold
	timeout 60 "$@" >out 2>err </dev/null &
	early_run=$!
	reaches "$early_run" test -e hold.reads || return 0
	kill -TERM "$(cat hold.reads)"
	rm hold
	reap "$early_run"
	early_status=$status
	rm -f saved/.ddp-train-owner first/.ddp-train-owner
	# mpirun has the code of a rank, and words of its own on stderr.
	test "$early_status" -eq 75 && ! grep -q '^ddp-train' err &&
		grep -q '^stopped before the first step by a signal; ' out &&
		diff -r first saved >why
	result $? "$early_name"
}

# A rank whose save takes longer than --timeout, as it writes little by little,
# is not missing, and counts as progress of all.
test_slow_save()
{
	build_preload 'a slow save' || return 0
	hung_save 'a save that hangs' 0 --steps 20
	hung_save 'a save that hangs beside the training' 0 --steps 1000000000
	needs_worlds 'a slow save' || return 0
	# Rank 0 writes 384 bytes and the manifest, rank 1 448 bytes: for 17 s
	# and 15 s.
	for slow in '0 100' '1 30'; do
		slow_rank=${slow% *}
		rm -rf saved
		call timeout 60 mpirun -n 2 ./preloaded "SAVE_RANK=$slow_rank $(
			)SAVE_SLOW=1 SAVE_SHORT=${slow#* }" \
			"$train" --steps 20 --timeout 11 \
			--model toy --checkpoint "$scratch/saved"
		equal "the others wait for rank $slow_rank as it saves" \
			'0 20' "$status $(newest saved)"
		hung_save "a save that hangs on rank $slow_rank" "$slow_rank" \
			--steps 20 --ranks 2
	done
}

# hung_save NAME RANK --steps N [--ranks N]: a write takes for ever, and the
# sentence says of whom and which file; the checkpoint before is whole
hung_save()
{
	hung_ranks=${6:-1}
	rm -rf saved hold
	call timeout 60 "$train" --model toy --steps 5 --checkpoint saved
	: >hold
	ranks "$hung_ranks" ./preloaded \
		"SAVE_RANK=$2 SAVE_HOLD=$scratch/hold" "$train" "$3" "$4" \
		--checkpoint "$scratch/saved" --checkpoint-every 10 --resume \
		--timeout 3
	rm hold
	test "$status" -eq 1 && test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep -q "^ddp-train: rank $2 on $(uname -n): --checkpoint: $(
		)the save of $scratch/saved/step-[12]0/shard-$2-of-$hung_ranks$(
		)\.[0-9a-f]* has made no progress for $(
		)\([3-9]\|[1-9][0-9][0-9]*\) s; see whether" err &&
		test "$(newest saved)" = 5
	result $? "$1 ends all ranks in time"
}

# has_more_lines FILE N
has_more_lines()
{
	test "$(wc -l <"$1")" -gt "$2"
}

# A handler on oneDNN's stack would overwrite what is there, so there is none:
# time after time, a run in fp16 meets a signal at a random moment.
test_many_signals()
{
	many=20
	test "$long" = no || many=300
	many_bad=0 many_last=0
	rm -rf saved
	: >many.err
	for _ in $(seq $many); do
		: >log.many
		"$train" --data "$text" --width 64 --context 32 --dtype fp16 \
			--steps 100000000 --checkpoint saved --resume \
			--checkpoint-every 0 --log log.many >out 2>err \
			</dev/null &
		run=$!
		many_lines=$(wc -l <log.many)
		reaches "$run" has_more_lines log.many "$many_lines" || break
		sleep "0.0$(shuf -n 1 -i 0-9)"
		# The first counts; the others follow within a second.
		began=$(date +%s%3N)
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			kill -USR1 "$run" 2>/dev/null
		done
		reap "$run"
		many_status=$status
		took=$(($(date +%s%3N) - began))
		# Where this machine stood still, one may have come later, and
		# that ends the run within its save.
		if test "$many_status" -eq 138 && test "$took" -ge 2000; then
			rm -rf saved
			many_last=0
			continue
		fi
		many_step=$(newest saved)
		if test "$many_status" -ne 75 || test -s err ||
			test "${many_step:-0}" -le "$many_last"; then
			many_bad=$((many_bad + 1))
			cat err >>many.err
		fi
		many_last=${many_step:-0}
	done
	cp many.err why
	test "$many_bad" -eq 0
	result $? "fp16 run saves and ends with 75 at each of $many signals"
}
