# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run
# Mixed precision: what ranks and batches add up to, steps that are skipped,
# and the loss scale.

# trains_mixed NAME RANKS CASE OPTIONS...: all lines of mixed's TAP are ok
trains_mixed()
{
	trains_name=$1 trains_ranks=$2
	shift 2
	ranks "$trains_ranks" "$program" "$@"
	test "$status" -eq 0 && grep -q '^1\.\.[5-9]$' out &&
		! grep -v '^ok \|^1\.\.' out
	result $? "$trains_name of $trains_ranks ranks: $*"
}

test_mixed()
{
	needs_worlds 'mixed precision' || return 0
	program mixed
	while read -r n batches arguments; do
		# shellcheck disable=SC2086 # several arguments in one field
		trains_mixed 'exact sums' "$n" sums --optimizer sgd --lr 1 \
			--batch 2 --global-batch $((2 * n * batches)) $arguments
	done <<-END
	1 1 --dtype bf16
	1 3 --dtype bf16
	1 3 --dtype bf16 --grad-dtype fp32
	2 3 --dtype fp32
	2 1 --dtype fp16
	2 3 --dtype fp16
	2 3 --dtype fp16 --grad-dtype fp32
	4 1 --dtype bf16 --bucket-mib 0.001
	4 3 --dtype bf16 --bucket-mib 0.001
	4 3 --dtype fp16 --overlap off
	END
	for type in bf16 fp16; do
		trains_mixed 'exact sums' 2 sums --optimizer sgd --lr 1 \
			--dtype $type --deterministic --global-batch 8
	done
	trains_mixed 'an overflow of the sum' 2 exchange --optimizer adamw \
		--lr 0.01 --dtype fp16
	trains_mixed 'an overflow of the sum' 4 exchange --optimizer adamw \
		--lr 0.01 --dtype fp16 --zero 1
	while read -r arguments; do
		# shellcheck disable=SC2086
		trains_mixed 'an overflow on one' 2 overflow \
			--optimizer adamw --lr 0.01 $arguments
	done <<-END
	--dtype fp32
	--dtype bf16
	--dtype bf16 --rounding stochastic
	--dtype fp16
	--dtype fp16 --grad-dtype fp32
	--dtype fp16 --zero 1
	--dtype fp16 --global-batch 12 --batch 2
	--dtype fp16 --deterministic --global-batch 8
	END
}

# The bits of 16-bit runs do not depend on the number of ranks either.
test_mixed_ranks()
{
	needs_worlds 'ranks in 16 bits' || return 0
	for type in bf16 fp16; do
		for n in 1 2 4; do
			ranks $n "$train" --data "$text" --dtype $type \
				--deterministic --steps 10 --log $n.log
			losses $n.log >$n.bits
		done
		test "$(wc -l <1.bits)" -eq 10 && cmp 1.bits 2.bits &&
			cmp 1.bits 4.bits
		result $? "1, 2 and 4 ranks have the same bits in $type"
	done
}

# Rounding by chance has the same bits however the work is divided, and others
# than to nearest.
test_rounding()
{
	rounded_run="--data $text --dtype bf16 --deterministic --steps 10"
	rounded_run="$rounded_run --rounding stochastic --check-every 1"
	rounded 1 wanted
	rounded 1 again
	equal 'a second run has the same bits' 0 "$(cmp wanted again; echo $?)"
	rounded 1 nearest --rounding nearest
	check 'the bits of stochastic rounding are not those of nearest' \
		differ wanted nearest
	if needs_worlds 'rounding on several ranks'; then
		while read -r n arguments; do
			# shellcheck disable=SC2086
			rounded "$n" had $arguments
			check "the same bits on $n ranks: $arguments" \
				cmp wanted had
		done <<-END
		2
		4 --bucket-mib 0.01
		2 --zero 1
		4 --zero 1 --bucket-mib 0.05 --overlap off
		END
	fi
}

# rounded RANKS FILE ARGUMENTS...: the losses of test_rounding's run
rounded()
{
	rounded_n=$1 rounded_file=$2
	shift 2
	# shellcheck disable=SC2086 # several arguments
	ranks "$rounded_n" "$train" $rounded_run "$@" --log rounded.log
	losses rounded.log >"$rounded_file"
	equal "$rounded_n ranks train 10 steps, rounded by chance: $*" '0 10' \
		"$status $(wc -l <"$rounded_file")"
}

differ()
{
	! cmp -s "$1" "$2"
}

# member NAME STEP LOG: of a step's line
member()
{
	sed -n "/^{\"step\":$2,/s/^.*\"$1\":\([^,]*\),.*\$/\1/p" "$3"
}

test_loss_scale()
{
	call timeout 60 "$train" --dtype fp16 --steps 2001 --log scale.log
	equal 'the loss scale doubles after 2000 good steps' \
		'0 65536 65536 131072 131072' \
		"$status $(member loss_scale 1 scale.log) $(
		member loss_scale 1999 scale.log) $(
		member loss_scale 2000 scale.log) $(
		member loss_scale 2001 scale.log)"
	# A sample's gradient times 65536 is soon above fp16's 65504.
	call timeout 60 "$train" --dtype fp16 --lr 1 --steps 20 --batch 1 \
		--log skipped.log
	check 'steps that overflow are skipped, and are not bad' "$python" - \
		skipped.log out <<-END
	import json, re, sys
	rows = [json.loads(line) for line in open(sys.argv[1])]
	text = open(sys.argv[2]).read()
	scale, skipped = 65536, 0
	for row in rows:
	    assert row["loss"] is not None, row
	    if row["skipped"]:
	        assert row["norm"] is None, row
	        scale /= 2
	        skipped += 1
	        assert re.search(rf"^step {row['step']}  skipped, loss [0-9.]+, "
	                         rf"loss scale {scale:g}$", text, re.M), row
	    assert row["loss_scale"] == scale, row
	assert skipped > 0 and len(rows) == 20, rows
	END
	call timeout 60 "$train" --dtype fp16 --lr 60000 --steps 100
	test "$status" -eq 65 &&
		grep -q '^ddp-train: the gradient is too large for fp16 at' err
	result $? 'a loss scale below 1 ends the run'
}

# The loss of each of the first 40 steps is within half a unit of the type's
# last place, 2^-9 or 2^-12 of it. Then a difference of any size grows 5000 fold
# in 20 steps, in fp32 too; so only means of 40 steps are compared, to 1 %:
# another seed changes them by as much.
test_curves()
{
	for type in fp32 bf16 fp16; do
		call timeout 300 "$train" --data "$text" --dtype $type \
			--steps 200 --log $type.log
		losses $type.log >$type.losses
	done
	while read -r type most; do
		check "tiny's losses in $type are those of fp32 but for noise" \
			"$python" - fp32.losses $type.losses $type.log <<-END
		import json, sys
		one, two = ([float(line) for line in open(name)]
		            for name in sys.argv[1:3])
		assert len(one) == len(two) == 200
		worst = max(abs(a - b) / a for a, b in zip(one[:40], two[:40]))
		print("first steps:", worst)
		assert 0 < worst <= $most
		for k in range(40, 200, 40):
		    a, b = sum(one[k:k + 40]) / 40, sum(two[k:k + 40]) / 40
		    print(k, a, b)
		    assert abs(a - b) <= 0.01 * a
		assert not any(json.loads(line)["skipped"]
		               for line in open(sys.argv[3]))
		END
	done <<-END
	bf16 2**-9
	fp16 2**-12
	END
}

# With a fault on one rank, as faults.c has it, all ranks end by one sentence.
test_faults()
{
	program faults
	ranks 1 "$program" row 0 2 --data "$text" --dtype fp16 --batch 1 \
		--steps 9 --max-bad-steps 2
	equal 'an overflow neither adds to a row of bad steps nor ends it' \
		"0 the loss is no longer a number at step 4, first on rank 0" \
		"$status $(sed -n 's/^rank 0: \(.*\) on .*/\1/p' out)"
	needs_worlds 'faults of one rank' || return 0
	host=$(uname -n)
	while IFS='|' read -r fault wanted; do
		# shellcheck disable=SC2086 # several arguments in one field
		ranks 3 "$program" $fault --data "$text" --dtype fp16 \
			--batch 1 --steps 5 --eval-every 2
		grep -a '^rank [012]: ' out | sort >ends
		test "$status" -eq 0 && test "$(wc -l <ends)" -eq 3 &&
			test "$(cut -c8- ends | uniq | wc -l)" -eq 1 &&
			grep -q ": $wanted" ends
		result $? "all ranks end by the fault of one: $fault"
	done <<-END
	norm 1 3|step 3 on rank 1 on $host is taken, with .* but on rank 0 on
	skip 2 3|step 3 on rank 2 on $host is skipped, .* rank 0 on $host taken
	scale 1 4|step 4 on rank 1 .* of 131072, but on rank 0 .* and 65536;
	loss 1 2|rank 1 on $host: a FAKE failure\$
	loss 0 4|rank 0 on $host: a FAKE failure\$
	norm 0 9|\$
	END
	ranks 1 "$program" loss 0 2 --data "$text" --steps 2 --eval-every 2
	equal 'an evaluation that fails is not printed' '0 0 a FAKE failure' \
		"$status $(grep -c eval out) $(sed -n 's/^rank 0: //p' out)"
	ranks 2 "$program" logits 0 5 --data "$text" --steps 5 --sample 4
	test "$status" -eq 1 && grep -q '^ddp-train: a FAKE failure$' err
	result $? 'a device that fails in a sample ends the run'
}

# By faults.c, too: "+N" starts step N, "-N" looks for its results, and "wait"
# waits for all work. Only where the state is looked at does it wait in a step.
test_late_reads()
{
	program faults
	while IFS='|' read -r arguments wanted; do
		# shellcheck disable=SC2086 # several arguments, or none
		ranks 1 "$program" order 0 0 --data "$text" --steps 5 $arguments
		equal "results are read a step late${arguments:+, $arguments}" \
			"$wanted" "$(sed -n 's/^order: //p' out)"
	done <<-END
	|+1 +2 -1 +3 -2 +4 -3 +5 -4 -5 wait
	--check-every 3|+1 +2 -1 +3 -2 -3 wait +4 +5 -4 -5 wait
	--eval-every 2|+1 +2 -1 -2 wait +3 +4 -3 -4 wait +5 -5 wait
	END
}
