# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2086 # variables of run; several arguments
# Checkpoints: a run that goes on is the one that was never interrupted. What
# may go wrong is in checkpoint_failures.sh.

# The run of most tests, of 20 steps
twenty="--data $text --context 32 --width 48 --steps 20 --eval-every 4"
exact="$twenty --deterministic --global-batch 8"

# bits LOG: what must be the same, bit by bit
bits()
{
	sed 's/,"seconds".*//' "$1"
}

# newest DIR: the step of the newest checkpoint that is committed
newest()
{
	find "$1" -path '*/step-*/manifest' | sed 's,.*/step-,,; s,/.*,,' |
		sort -n | tail -n 1
}

# build_preload NAME: ./preloaded WORDS COMMAND..., which runs it with
# checkpoint_preload.c, and WORDS for that
build_preload()
{
	test ! -e preloaded || return 0
	if ! cc -O1 -shared -fPIC -o preload.so \
		"$here/checkpoint_preload.c" -ldl >why 2>&1; then
		skip "$1" 'no cc'
		return 1
	fi
	cat >preloaded <<-END
	#!/bin/sh
	words=\$1
	shift
	exec env SAVE_DIR="$scratch/saved" \$words \
		LD_PRELOAD="$scratch/preload.so" "\$@"
	END
	chmod 755 preloaded
}

# full_run RANKS ARGUMENTS...: reference.log
full_run()
{
	full_ranks=$1
	shift
	ranks "$full_ranks" "$train" "$@" --log reference.log
	test "$status" -eq 0 && test "$(grep -c '"loss"' reference.log)" -eq 20
	result $? "$full_ranks ranks train 20 steps: $*"
}

# half_run RANKS ARGUMENTS...: the same, killed when step 20 is about to be
# saved, so that the checkpoint is of step 10 and the log has all steps
half_run()
{
	half_ranks=$1
	shift
	rm -rf saved log
	ranks "$half_ranks" ./preloaded SAVE_END=step-20/ "$train" "$@" \
		--checkpoint "$scratch/saved" --checkpoint-every 10 --log log
	test "$status" -ne 0 && test "$(newest saved)" = 10 &&
		test "$(grep -c '"loss"' log)" -eq 20
	result $? "$half_ranks ranks are killed: $*"
}

# other_half RANKS ARGUMENTS...: and goes on
other_half()
{
	other_ranks=$1
	shift
	ranks "$other_ranks" "$train" "$@" --checkpoint "$scratch/saved" \
		--resume --log log
	test "$status" -eq 0 && grep -q '^resumed from .*/step-10$' out &&
		grep -q 'the save of .*/step-20 did not come to its end' err
	result $? "$other_ranks ranks go on from step 10"
}

# same_half RANKS RANKS ARGUMENTS...: half by the first, half by the others; the
# log has the bits of reference.log
same_half()
{
	same_first=$1 same_then=$2
	shift 2
	half_run "$same_first" "$@"
	other_half "$same_then" $again
	bits reference.log >wanted
	bits log >had
	check "10 steps of $same_first ranks, then 10 of $same_then: same bits" \
		diff wanted had
}

# What resumes gives the data again, and nothing else.
test_resume()
{
	build_preload 'a run that is killed goes on' || return 0
	again="--data $text"
	full_run 1 $exact --backend self
	same_half 1 1 $exact
	full_run 1 $exact --optimizer sgd --momentum 0.9 --seed 3
	same_half 1 1 $exact --optimizer sgd --momentum 0.9 --seed 3
	full_run 1 $exact --optimizer sgd --granule 2
	same_half 1 1 $exact --optimizer sgd --granule 2
	full_run 1 $twenty
	same_half 1 1 $twenty
	full_run 1 $exact --bucket-mib 0.001
	same_half 1 1 $exact --bucket-mib 0.001
	again=
	full_run 1 --model toy --steps 20
	same_half 1 1 --model toy --steps 20
	again="--data $text"
	needs_worlds 'checkpoints of several ranks' || return 0
	full_run 1 $exact --backend self
	for pair in '1 2' '2 1' '4 2' '2 8'; do
		same_half ${pair% *} ${pair#* } $exact
	done
	full_run 3 $twenty --global-batch 12
	losses reference.log >one.losses
	half_run 3 $twenty --global-batch 12
	other_half 2 $again
	losses log >many.losses
	close one.losses many.losses 20 1e-6
	result $? '3 ranks and then 2 lose as 3 do'
	again="--data $text --backend mpi"
	full_run 2 $twenty --global-batch 8
	same_half 2 2 $twenty --global-batch 8
	test_other_defaults
}

# --global-batch and --granule, whose defaults depend on the ranks, are those of
# the checkpoint: 16 times 2 sequences, not 16 times 1.
test_other_defaults()
{
	half_run 2 $twenty
	other_half 1 --data "$text"
	grep -q '32 samples a step' out
	result $? 'a batch of 2 ranks stays what it was'
	equal 'samples are counted from the beginning' 640 \
		"$(sed -n 's/.*"step":20,.*"samples":\([0-9]*\),.*/\1/p' log)"
}

# What is said and done of options that change, and of those that may not.
test_resume_options()
{
	rm -rf saved
	call timeout 60 "$train" $exact --checkpoint saved --log log
	equal 'the last step is saved' "0 20" "$status $(newest saved)"
	cp log before.log
	call timeout 60 "$train" --data "$text" --checkpoint saved --resume \
		--log log
	test "$status" -eq 0 && grep -q 'step-20, whose steps are all done; to train .* --steps$' out
	result $? 'a run with nothing left to do says so, and does not fail'
	check 'a run with nothing left to do does not change the log' \
		cmp log before.log
	call timeout 60 "$train" --data "$text" --checkpoint saved --resume \
		--steps 30 --lr 0.01 --log log --keep 9
	grep '^--' out >had
	cat >wanted <<-END
	--steps is 30, was 20
	--lr is 0.01, was 0.001
	--keep is 9, was 2
	END
	diff wanted had >why && grep -q 'so the cosine .* is another' out &&
		test "$status.$(newest saved)" = 0.30
	result $? 'options that have changed are printed'
	# Step 25 of 30, 2 of them to warm up: 22 of 27 parts of a half turn,
	# from 0.01 to the checkpoint's 0.0001:
	# 0.0001 + 0.0099 (1 + cos(180 22 / 27)) / 2
	equal 'the learning rate is that of the new steps' 0.000914 \
		"$(sed -n 's/.*"step":25,.*"lr":\([^,]*\),.*/\1/p' log |
			xargs printf '%.6f')"
	head -n 25 log | diff - before.log >why
	result $? 'the log goes on'
	test_resume_refusals
	test_data_sum
	test_warmup
}

# All bytes of the data count, also those that are not in the checksum by which
# ranks compare it: of this file, bytes 4096 to 8191.
test_data_sum()
{
	yes | head -c 3000001 >large
	cp large changed
	dd if=/dev/zero of=changed bs=4096 seek=1 count=1 conv=notrunc 2>why
	rm -rf saved other
	call timeout 60 "$train" --data large --steps 1 --checkpoint saved
	grep ^data-sum saved/step-1/manifest >had
	"$python" - large >wanted <<-END
	import sys
	M, G = 2 ** 64, 0x9e3779b97f4a7c15
	def mix(x):
	    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 % M
	    x = (x ^ (x >> 27)) * 0x94d049bb133111eb % M
	    return x ^ (x >> 31)
	data = open(sys.argv[1], "rb").read()
	words = [int.from_bytes(data[i:i + 8], "little")
	         for i in range(0, len(data), 8)]
	total = sum(mix((word + G * i) % M) for i, word in enumerate(words))
	print(f"data-sum {total % M:016x}")
	END
	check 'the checksum of all data is what ddp-train(1) says' \
		diff wanted had
	call timeout 60 "$train" --data changed --steps 2 --checkpoint saved \
		--resume
	equal 'data that has changed is refused' "2 ddp-train: --resume: $(
		)saved/step-1 has learned a file of the size of --data $(
		)changed, but not of these bytes; name the same file" \
		"$status $(cat err)"
	cp large moved
	call timeout 60 "$train" --data moved --steps 2 --checkpoint saved \
		--resume
	equal 'the data may lie elsewhere' 0 "$status"
	(cd saved/step-2 && forge /^data-sum/d)
	call timeout 60 "$train" --data changed --steps 3 --checkpoint saved \
		--resume
	equal 'a checkpoint need not have the checksum of the data' '0 3' \
		"$status $(newest saved)"
	needs_worlds 'data that several ranks read' || return 0
	ranks 3 "$train" --data large --steps 1 --checkpoint other
	equal 'three ranks find the same checksum' "$(cat wanted)" \
		"$(grep ^data-sum other/step-1/manifest)"
}

# A run that ends within its warm-up, as long as one of 1000 steps has it.
test_warmup()
{
	rm -rf saved
	call timeout 60 "$train" --model toy --steps 40 --warmup 30 \
		--checkpoint saved --checkpoint-every 10 --keep 9
	rm -rf saved/step-40 saved/step-30
	refuses 'fewer steps than the warm-up of the checkpoint' 2 "--warmup $(
		)30, which is that of the checkpoint, is not below --steps, 25; $(
		)choose a larger --steps, or give a smaller --warmup" \
		"$train" --checkpoint saved --resume --steps 25
	call timeout 60 "$train" --checkpoint saved --resume --steps 25 \
		--warmup 5
	equal 'a smaller --warmup goes on' 0 "$status"
}

test_resume_refusals()
{
	head -c 3000 "$text" >short
	data="--data $text --checkpoint saved --resume"
	refuses_each 2 <<-END
	--checkpoint saved has a checkpoint of step 30 already; add --resume|--data $text --checkpoint saved
	--seed is 1 in saved/step-30, not 2|$data --seed 2
	--width is 48 in saved/step-30, not 64|$data --width 64
	--preset is tiny in saved/step-30, not 10M|$data --preset 10M
	--optimizer is adamw in saved/step-30, not sgd|$data --optimizer sgd
	--beta1 is 0.9 in saved/step-30, not 0.5|$data --beta1 0.5
	--global-batch is 8 in saved/step-30, not 16|$data --global-batch 16
	--granule is 1 in saved/step-30, not 2|$data --granule 2
	--drop-last is off in saved/step-30, not on|$data --drop-last
	--model is gpt in saved/step-30, not toy|--model toy --checkpoint saved --resume
	of 3000 bytes, checksum $(checksum short); name the same file|--data short --checkpoint saved --resume
	--steps 29 is below the step of saved/step-30|$data --steps 29
	--steps 1 is below the step of saved/step-30|$data --steps 1
	--min-lr 0.0001, which is that of the checkpoint, is above --lr, 1e-05; choose a larger --lr, or|$data --lr 1e-5
	--eval-every is 4 in saved/step-30, not 0|$data --eval-every 0
	--eval-every 90 is above --steps, 30; choose a smaller one|$data --eval-every 90
	a gpt needs something to learn|--checkpoint saved --resume
	--resume has no effect without --checkpoint|--data $text --resume
	--keep has no effect without --checkpoint|--keep 3
	--checkpoint-every has no effect without --checkpoint|--checkpoint-every 3
	--checkpoint needs a value|--checkpoint=
	--keep '0' is not a whole number from 1|--checkpoint saved --keep 0
	END
	echo 'no log' >other
	refuses 'a log that is none' 2 '--log other has a line that is not' \
		"$train" $data --log other --steps 31
	equal 'a log that is none is left alone' 'no log' "$(cat other)"
	call timeout 60 "$train" $data --steps 31 --plan
	test "$status" -eq 0 && grep -q 'copy for a checkpoint' out
	result $? '--plan has the memory of the copy'
	call timeout 60 "$train" $data --eval-every 5 --steps 35
	test "$status" -eq 0 && grep -q '^--eval-every is 5, was 4$' out
	result $? 'held-out data may be looked at more often, or less'
	rm -rf saved
	call timeout 60 "$train" --data "$text" --checkpoint saved --steps 2
	refuses 'data that was trained on cannot be held out' 2 \
		'--eval-every is 0 in saved/step-2, not 1; leave it out, or' \
		"$train" $data --eval-every 1 --steps 3
	refuses 'a batch that does not divide the global one' 2 "--resume: $(
		)--batch 5 on 1 rank does not divide the checkpoint's $(
		)--global-batch 16; leave --batch out" \
		"$train" $data --batch 5 --steps 3
	rm -rf saved
	call timeout 60 "$train" --data "$text" --checkpoint saved --resume \
		--steps 2 --log log
	test "$status" -eq 0 && test "$(newest saved)" = 2 &&
		grep -q '^no checkpoint in saved: from the beginning$' out &&
		test "$(wc -l <log)" -eq 2
	result $? '--resume without a checkpoint starts from the beginning'
}

# Each save is left out while one before is written; of those made, K stay.
test_saves()
{
	build_preload 'saves that take long' || return 0
	rm -rf saved
	call timeout 60 ./preloaded SAVE_SLOW=0.3 "$train" --model toy --steps 20 \
		--checkpoint "$scratch/saved" --checkpoint-every 1
	test "$status" -eq 0 && test "$(newest saved)" = 20 &&
		grep -q '^step 1  saved$' out &&
		grep -q '^step 2  not saved, as the save before is ' out
	result $? 'a save that is due too early is left out, and that is said'
	rm -rf saved
	call timeout 60 "$train" --model toy --steps 20 --checkpoint saved \
		--checkpoint-every 0
	equal 'the end alone' 'step-20' "$(ls saved)"
	rm -rf saved
	for saves in 250 500 750 1000; do
		call timeout 60 "$train" --model toy --steps $saves --checkpoint saved \
			--checkpoint-every 0 --resume --keep 3
	done
	equal 'as many as --keep stay' '3 1000' \
		"$(find saved -name manifest | wc -l) $(newest saved)"
	equal '--keep leaves nothing else, but for whose folder it is' 7 \
		"$(find saved -type f | wc -l)"
	test_manifest
	test_long_manifest
	rm -rf saved
	call timeout 60 ./preloaded SAVE_SLOW=0.1 "$train" --data "$text" \
		--context 16 --width 16 --steps 60 --lr 1e9 --clip 0 \
		--checkpoint "$scratch/saved" --checkpoint-every 1
	test "$status" -eq 65 && test "$(newest saved)" = 1 &&
		grep -q 'no longer a number at step 2' err
	result $? 'a run that ends by its own error has what it began to save'
}

# 480000 parameters, each in a line of more than 35 bytes, are 16 MiB; and small
# buckets of one rank, which lie side by side, are one range.
test_long_manifest()
{
	rm -rf saved
	call timeout 60 "$train" --data "$text" --layers 40000 --heads 1 \
		--width 1 --context 1 --batch 1 --steps 1 --checkpoint saved
	test "$status" -eq 1 && test "$(wc -l <err)" -eq 1 &&
		grep -q 'bytes in place of at most 16777216; choose' err &&
		! grep -q '^step' out && test ! -e saved/step-1
	result $? 'a manifest that nobody would read is refused at the start'
	rm -rf saved
	call timeout 60 "$train" --data "$text" --steps 1 --zero 1 \
		--bucket-mib 0.001 --checkpoint saved
	equal 'neighbouring slices are one range' 1 \
		"$(grep -c '^range ' saved/step-1/manifest)"
}

# What the manifest says, against the files by another implementation.
test_manifest()
{
	"$python" - saved/step-1000 >why 2>&1 <<-END
	import sys, zlib
	path = sys.argv[1]
	text = open(path + "/manifest", "rb").read()
	lines = text.decode().splitlines()
	assert lines[0] == "ddp-train checkpoint, version 2"
	body, last = text.rsplit(b"crc ", 1)
	assert int(last, 16) == zlib.crc32(body), last
	assert "step 1000" in lines and "updates 1000" in lines
	# 100, 10, 50 and 5 values, each up to a multiple of 16
	assert "values 208" in lines, lines
	shard = [line.split() for line in lines if line.startswith("shard ")]
	assert len(shard) == 1 and lines.count("range 0 208") == 1, shard
	data = open(path + "/" + shard[0][1], "rb").read()
	assert len(data) == 4 * 208 and zlib.crc32(data) == int(shard[0][2], 16)
	END
	result $? 'the checksums are those of zlib'
}

# seconds FILE: of each line of a log
seconds()
{
	sed -n 's/.*"seconds":\([0-9.]*\).*/\1/p' "$1"
}

# The time that a run has trained is counted on where it goes on.
test_seconds()
{
	rm -rf saved
	call timeout 60 "$train" --model toy --steps 2000 --checkpoint saved \
		--log before.log
	call timeout 60 "$train" --model toy --steps 2001 --checkpoint saved \
		--resume --log after.log
	{
		seconds before.log | tail -n 1
		seconds after.log | head -n 1
	} >both
	check 'the seconds of a run that goes on are those of both' \
		awk 'NR == 1 { before = $1 }
			NR == 2 && before > 0 { good = $1 > before }
			END { exit !good }' both
}
