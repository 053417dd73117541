# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034,SC2086 # variables of run; several arguments
# Checkpoints of 16-bit runs: their types, the loss scale, and how many updates,
# good steps and bad ones there were.

# recorded NAME: what the manifest of step 10 says
recorded()
{
	sed -n "s/^$1 //p" saved/step-10/manifest
}

# A step that is skipped is no update, which AdamW's bias correction shows. It
# halves the loss scale, and a later skip shows from which one.
test_resume_scale()
{
	build_preload 'a run with a loss scale goes on' || return 0
	again=
	for how in '--lr 1' '--optimizer adamw --lr 0.3'; do
		how="--model toy $how"
		full_run 1 --dtype fp16 --batch 1 --steps 20 $how
		same_half 1 1 --dtype fp16 --batch 1 --steps 20 $how
		head -n 10 reference.log >first.log
		skipped=$(grep -c '"skipped":true' first.log)
		equal 'what was skipped before the save is no update' \
			"$((10 - skipped)) $(member loss_scale 10 first.log)" \
			"$(recorded updates) $(recorded loss-scale)"
		test "$skipped" -gt 0 &&
			tail -n 10 reference.log | grep -q '"skipped":true'
		result $? "steps are skipped before and after the save: $how"
	done
	test_resume_good
	test_resume_bad
}

# The loss scale doubles after 2000 good steps, 1500 of them before the break.
test_resume_good()
{
	rm -rf saved
	call timeout 60 "$train" --dtype fp16 --steps 2001 --log reference.log
	call timeout 60 "$train" --dtype fp16 --steps 1500 --log log \
		--model toy --checkpoint saved
	call timeout 60 "$train" --checkpoint saved --resume --steps 2001 \
		--log log
	equal 'good steps count over a break' '0 65536 131072' "$status $(
		member loss_scale 1999 log) $(member loss_scale 2000 log)"
	bits reference.log >wanted
	bits log >had
	check '1500 steps, then 501: the bits of 2001' diff wanted had
}

# After the first update no loss is a number, and two such steps in a row end a
# run: here one is before the save, and one after it.
test_resume_bad()
{
	rm -rf saved
	call timeout 60 "$train" --data "$text" --lr 1e30 --clip 0 --steps 2 \
		--max-bad-steps 2 --checkpoint saved
	equal 'a bad step is saved as one' '0 1' "$status $(
		sed -n 's/^bad-steps //p' saved/step-2/manifest)"
	call timeout 60 "$train" --data "$text" --checkpoint saved --resume \
		--steps 20
	test "$status" -eq 65 && grep -q '^resumed from saved/step-2$' out &&
		grep -q '^ddp-train: .* no longer a number at step 3' err
	result $? 'a bad step after a break is the second in a row'
}

# retyped FROM TO OPTIONS...: ten steps in type FROM, and ten more in TO. What
# is said of types is wanted, and the masters are those of the run that stays in
# FROM: at step 11 its loss and norm are the same but for the noise of a type.
retyped()
{
	retyped_from=$1 retyped_to=$2
	shift 2
	rm -rf saved log
	call timeout 60 "$train" $twenty "$@" --dtype "$retyped_from" \
		--checkpoint saved --checkpoint-every 10 --log reference.log
	rm -r saved/step-20
	call timeout 60 "$train" --data "$text" --checkpoint saved --resume \
		--dtype "$retyped_to" --log log
	grep '^--.*dtype\|^--rounding\|^so ' out >had
	test "$status" -eq 0 && grep -q '^resumed from saved/step-10$' out &&
		diff wanted had >why
	result $? "a change from $retyped_from to $retyped_to is said"
	for file in reference.log log; do
		member loss 11 $file
		member norm 11 $file
	done | xargs printf '%s %s %s %s\n' >why
	awk '{ loss = $3 / $1 - 1; norm = $4 / $2 - 1 }
		END { exit NF != 4 || loss > 2^-9 || loss < -2^-9 ||
			norm > 0.01 || norm < -0.01 }' why
	result $? \
		"the step after $retyped_from is that of a run without a change"
}

# The type is for one run to choose, as a checkpoint has fp32 alone.
test_resume_types()
{
	cat >wanted <<-END
	--dtype is fp16, was fp32
	so the loss scale begins at 65536
	--grad-dtype is fp16, was fp32
	END
	retyped fp32 fp16
	equal 'the loss scale begins at 65536 with fp16' \
		65536 "$(member loss_scale 11 log)"
	for type in bf16 fp16; do
		cat >wanted <<-END
		--dtype is fp32, was $type
		--grad-dtype is fp32, was $type
		END
		retyped $type fp32
		equal "a change from $type to fp32 leaves no loss scale" \
			'' "$(member loss_scale 11 log)"
	done
	cat >wanted <<-END
	--dtype is fp32, was bf16
	--grad-dtype is fp32, was bf16
	--rounding is nearest, was stochastic
	END
	retyped bf16 fp32 --rounding stochastic
	# There gradients are fp32 in any case.
	echo '--dtype is bf16, was fp32' >wanted
	retyped fp32 bf16 --deterministic --global-batch 8
	rm -rf saved
	call timeout 60 "$train" --data "$text" --dtype fp16 --steps 2 \
		--checkpoint saved
	refuses '16-bit gradients of a checkpoint' 2 "--resume: $(
		)--deterministic does not go with the checkpoint's --grad-dtype $(
		)fp16; leave it out, or train anew into another --checkpoint" \
		"$train" --data "$text" --checkpoint saved --resume \
		--deterministic --steps 4
	test_recalled_types
}

# Parameters are rounded by chance as the run that was not interrupted rounded
# them, whoever has which of them.
test_resume_rounding()
{
	build_preload 'a run that rounds by chance goes on' || return 0
	again="--data $text"
	set -- $exact --bucket-mib 0.05 --dtype bf16 --rounding stochastic
	full_run 1 "$@" --backend self
	same_half 1 1 "$@"
	again="--data $text --rounding nearest"
	half_run 1 "$@"
	other_half 1 $again
	bits log >had
	grep -qx -- '--rounding is nearest, was stochastic' out &&
		! cmp -s wanted had
	result $? 'a change of the rounding is shown'
	again="--data $text --rounding stochastic"
	full_run 1 "$@" --optimizer sgd --momentum 0.9 --seed 3
	same_half 1 1 "$@" --optimizer sgd --momentum 0.9 --seed 3
	needs_worlds 'ranks that round by chance and go on' || return 0
	full_run 2 "$@"
	again="--data $text"
	same_half 2 2 "$@"
	again="--data $text --zero 0"
	same_half 2 1 "$@" --zero 1
	again="--data $text --zero 1"
	same_half 1 2 "$@"
	same_half 2 4 "$@" --zero 1
}

# Without --dtype both types are those of the checkpoint. Two batches of a step
# show what their gradients are added up in.
test_recalled_types()
{
	build_preload 'a run in bf16 that is killed goes on' || return 0
	again="--data $text"
	full_run 1 $exact --dtype bf16
	same_half 1 1 $exact --dtype bf16
	again="--data $text --batch 4"
	half="$twenty --batch 4 --global-batch 8 --dtype bf16"
	for type in bf16 fp32; do
		full_run 1 $half --grad-dtype $type
		bits reference.log >$type.bits
		same_half 1 1 $half --grad-dtype $type
		grep '^--' out >why
		result $((! $?)) 'and nothing has changed'
	done
	cmp -s bf16.bits fp32.bits
	result $((! $?)) 'which would show'
}
