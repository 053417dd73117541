# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# Training with one rank: the losses that its user sees.

# What losses to expect: an untrained softmax over 256 bytes has about
# ln 256 = 5.545; a model that only knows how often each byte occurs in English
# has 4.5 bits = 3.1 at best.
test_gpt()
{
	call timeout 120 "$train" --data "$text" --log log --eval-every 50 \
		--sample 40 --backend self
	equal 'trains on any file' 0 "$status"
	losses log | awk 'NR == 1 { first = $1 } { last = $1 }
		END { print first, last
			exit !(first > 5.4 && first < 5.7 && last < 3.1) }' >why
	result $? 'the loss falls from ln 256 on a licence text'
	losses log >once
	test "$(wc -l <once)" -eq 100
	result $? 'logs each step'
	awk '/eval loss/ { n++; last = $NF }
		END { print n, last; exit !(n == 2 && last > 1.5 && last < 3.4) }' \
		out >why
	result $? 'the loss of held-out text falls too'
	call timeout 120 "$train" --data "$text" --log log --eval-every 50 \
		--backend self
	losses log | cmp -s once -
	result $? 'the same seed gives the same losses'
	call timeout 120 "$train" --data "$text" --log log --eval-every 50 \
		--backend self --seed 2 --steps 10
	! losses log | head -n 5 | cmp -s - once
	result $? 'another seed gives others'
	test_plan
	test_bad_steps
	test_recompute
}

test_recompute()
{
	for type in fp32 bf16 fp16; do
		for choice in on off; do
			call timeout 60 "$train" --data "$text" --steps 5 \
				--dtype $type --recompute $choice --log log \
				--backend self
			losses log >"again.$choice"
		done
		test -s again.on && cmp -s again.on again.off
		result $? "--recompute on and off train alike in $type"
	done
	for choice in on off auto; do
		call timeout 60 "$train" --data "$text" --plan \
			--recompute $choice
		sed -n 's/^ *activations and workspace *//p' out
	done >had
	# 16 x 64 rows of 64 values of 4 bytes: 0.25 MiB. Two layers keep 6
	# such, and the last norm one; of the scratch 5 go.
	awk 'NR == 1 { on = $1 } NR == 2 { off = $1 } NR == 3 { auto = $1 }
		END { print on, off, auto
			exit !(off - on > 1.9 && off - on < 2.1 &&
			       auto == on) }' had >why
	result $? '--plan counts what is kept'
}

# Preset 10M by hand: a layer has 12 width^2 + 13 width parameters; the tables
# have (256 + 256) width, the last norm 2 width.
# 6 * (12 * 384^2 + 13 * 384) + 512 * 384 + 2 * 384 = 10,844,160
test_plan()
{
	call timeout 60 "$train" --data "$text" --preset 10M --plan
	test "$status" -eq 0 && grep -q '10844160 parameters' out &&
		grep -q '^ *gradients.* 41\.4 MiB' out &&
		grep -q '^3 buckets' out && ! grep -q '^step' out
	result $? '--plan prints parameters, memory and buckets, and exits'
	# Three of 512^2 floats; alone, a rank shares nothing.
	call timeout 60 "$train" --data "$text" --dtype fp16 --plan
	grep -q '^  fp32 copies in matrix products  *3\.0 MiB$' out &&
		! grep -q 'shared memory' out
	result $? '--plan has the fp32 copies of fp16'
	test_shared_plan
}

test_shared_plan()
{
	needs_worlds '--plan of two ranks' || return 0
	ranks 2 "$train" --data "$text" --plan
	equal '--plan says what two ranks share' '0 2 0' "$status $(
		grep -c '^  \(gradients\|parameters\), in shared memory  ' out) $(
		grep -c 'fp32 copies' out)"
	# Each is rounded to 0.1 MiB.
	awk '/^  in all  / { rank = $(NF - 1) }
		/^  in all, on a node with 2 ranks  / { node = $(NF - 1) }
		END { exit rank == 0 || node < 2 * rank - 0.2 ||
			node > 2 * rank + 0.2 }' out
	result $? '--plan has the memory of a node with two ranks'
	ranks 1 "$train" --data "$text" --plan
	equal '--plan says nothing of a node with a rank alone' \
		1 "$(grep -c 'in all' out)"
}

test_bad_steps()
{
	call timeout 60 "$train" --data "$text" --lr 1e30 --clip 0 --log log
	test "$status" -eq 65 && grep -q 'no longer a number at step' err
	result $? 'ends at the first loss that is not a number'
	call timeout 60 "$train" --data "$text" --lr 1e30 --clip 0 --log log \
		--max-bad-steps 3 --steps 20
	test "$status" -eq 65 &&
		test "$(grep -c '"loss":null' log)" -eq 2
	result $? 'ends after as many bad steps in a row as are allowed'
}

# against_torch LR: 50 steps of the toy
test_losses()
{
	call timeout 60 "$train" --steps 50 --log log
	losses log >implied
	call timeout 60 "$train" --model toy --lr 0.001 --seed 1 --steps 50 \
		--log log
	losses log | cmp -s implied -
	result $? 'trains without options: toy, lr 0.001, seed 1'
	for lr in 0.001 0.5; do
		name="50 losses of toy at $lr are PyTorch's"
		if ! has_torch; then
			skip "$name" "no torch for $python"
			continue
		fi
		call timeout 60 "$train" --model toy --lr $lr --seed 7 \
			--batch 32 --steps 50 --log log
		losses log >ours
		timeout 60 "$python" "$here/reference.py" toy $lr 7 32 50 \
			>theirs
		close theirs ours 50 2e-6
		result $? "$name"
	done
	test_whole
}

# The program as it is used, from the file to the last update: its 55 sequences
# to train on are no multiple of 12, so that the epochs' ends are padded.
test_whole()
{
	name="50 losses of gpt are PyTorch's, and that of held-out text"
	if ! has_torch; then
		skip "$name" "no torch for $python"
		return
	fi
	head -c 3950 "$text" >short
	timeout 60 "$python" "$here/reference.py" gpt short 12 >theirs 2>err
	set -- "$train" --data short --seed 7 --steps 50 --warmup 4 --lr 1e-3 \
		--min-lr 2e-4 --clip 2 --eval-every 50 --log log
	ranks 1 "$@" --backend self --batch 3 --global-batch 12
	all_losses log >ours
	close theirs ours 51 1e-6
	result $? "$name"
	needs_worlds 'the same on two ranks' || return 0
	for how in '--batch 2' '--deterministic --granule 3'; do
		# shellcheck disable=SC2086 # several arguments
		ranks 2 "$@" $how --global-batch 12
		all_losses log >ours
		close theirs ours 51 1e-6
		result $? "the same on two ranks with $how"
	done
}

# all_losses LOG: in its order, with those of held-out data
all_losses()
{
	sed -n 's/^.*loss":\([^,}]*\).*$/\1/p' "$1"
}
