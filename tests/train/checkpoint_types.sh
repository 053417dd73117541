# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034,SC2086 # variables of run; several arguments
# Checkpoints of 16-bit runs: the loss scale, and how many updates, good steps
# and bad ones there were.

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
		full_run 1 --dtype fp16 --batch 1 --steps 20 $how
		same_half 1 1 --dtype fp16 --batch 1 --steps 20 $how
		head -n 10 reference.log >first.log
		skipped=$(grep -c '"skipped":true' first.log)
		equal 'what was skipped before the save is no update' \
			"$((10 - skipped)) $(member loss_scale 10 first.log)" \
			"$(recorded updates) $(recorded loss-scale)"
		test "$skipped" -gt 0 &&
			tail -n 10 reference.log | grep -q '"skipped":true'
		result $? 'and there are skips before and after it'
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
		--checkpoint saved
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
	test "$status" -eq 1 && grep -q '^resumed from saved/step-2$' out &&
		grep -q '^ddp-train: .* no longer a number at step 3' err
	result $? 'and the next one, after a break, is the second in a row'
}
