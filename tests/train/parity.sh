# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The GPT against PyTorch, by parity.py and the program parity.

test_parity()
{
	test_shapes
	if ! has_torch; then
		skip 'parity with PyTorch' "no torch for $python"
		return
	fi
	program parity
	# Mutations of our code that this comparison must find.
	cat >mutations <<-END
	erf|logits
	bias|gradient of h.0.mlp.c_fc.bias
	scale|logits
	decay|losses by adamw
	clip|losses by adamw
	schedule|losses by adamw
	skip|losses by adamw
	END
	# shellcheck disable=SC2046 # a list of words
	call timeout 200 "$python" "$here/parity.py" "$program" tiny odd \
		$(sed 's/|.*//; s/^/tiny,/' mutations)
	for shape in tiny odd; do
		grep "^$shape differs" out >why
		test ! -s why && grep -q "^$shape same: losses by sgd " out
		result $? "parity with PyTorch: shape $shape"
	done
	while IFS='|' read -r mutation comparison; do
		grep -q "^tiny,$mutation differs: $comparison by " out
		result $? "parity sees a mutation: $mutation"
	done <mutations
	equal 'parity with mutations fails' 3 "$status"
	for type in bf16 fp16; do
		call timeout 200 "$python" "$here/parity.py" --type $type \
			"$program" tiny
		grep '^tiny differs' out >why
		test "$status" -eq 0 && test ! -s why &&
			grep -q '^tiny same: losses by sgd ' out
		result $? "parity with PyTorch in $type"
	done
}

# Tensors of 2^31 numbers and more are refused, and the message names the option
# that made them. So is too little data to hold out.
test_shapes()
{
	refuses_each 2 <<-END
	choose a smaller --width|--data $text --width 23296 --heads 64
	choose a smaller --context|--data $text --context 65536 --width 8192
	--context times --vocab|--tokens $text --context 32768 --vocab 65536
	choose a smaller --batch|--data $text --batch 65536 --context 512
	is less than 1; name a larger|--data $text --context 8192 --eval-every 1
	is less than --granule 64; name a larger|--data $text --deterministic --granule 64 --eval-every 1
	END
}

# 200 steps of tiny, in fp32 and bf16, ours and PyTorch's: the same text, first
# weights and order. The noise of bf16 is how far PyTorch's autocast is from its
# fp32, as the root of the mean square of the losses' relative differences: the
# differences grow from step to step, so no single one says much. Autocast
# rounds products only, and we also what lies between them and the weights: each
# operator may err twice as much, which gives twice the noise (seen: 1.9); and
# between two such curves, if chance makes them independent, the root of 1 + 4
# times it. 3 leaves room for chance.
test_noise()
{
	if ! has_torch; then
		skip "bf16's noise" "no torch for $python"
		return
	fi
	for seed in 1 2; do
		for kind in float32 bfloat16; do
			call timeout 400 "$python" "$here/reference.py" curve \
				"$text" 8 $seed $kind
			mv out theirs.$kind.$seed
		done
		for type in fp32 bf16; do
			call timeout 400 "$train" --data "$text" --seed $seed \
				--steps 200 --warmup 4 --lr 1e-3 --clip 2 \
				--min-lr 2e-4 --batch 8 --dtype $type --log log
			losses log >ours.$type.$seed
		done
	done
	cat >noise.py <<-END
	import sys
	def read(name):
	    found = [[float(line) for line in open(f"{name}.{seed}")]
	             for seed in (1, 2)]
	    assert [len(losses) for losses in found] == [200, 200], name
	    return sum(found, [])
	def distance(one, other):
	    return (sum(((a - b) / a)**2 for a, b in zip(one, other))
	            / len(one))**.5
	theirs, ours = read("theirs.float32"), read("ours.fp32")
	cast, rounded = read("theirs.bfloat16"), read("ours.bf16")
	noise = distance(theirs, cast)
	had = {"fp32": distance(theirs, ours), "bf16": distance(ours, rounded),
	       "autocast": distance(cast, rounded)}[sys.argv[1]]
	print(f"noise {noise:.2g}, {sys.argv[1]} is off by {had:.2g}")
	sys.exit(not 0 < had <= float(sys.argv[2]) * noise)
	END
	check 'the losses of 200 steps in fp32 are those of PyTorch' \
		"$python" noise.py fp32 0.01
	check "the losses in bf16 are within bf16's noise of fp32's" \
		"$python" noise.py bf16 3
	check "the losses in bf16 are within the noise of PyTorch's autocast" \
		"$python" noise.py autocast 3
}
