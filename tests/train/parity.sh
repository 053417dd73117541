# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The GPT against PyTorch, by parity.py and the program parity.

has_torch()
{
	"$python" -c 'import importlib.util, sys
for name in "numpy", "torch":
    if not importlib.util.find_spec(name):
        sys.exit(1)' 2>/dev/null
}

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
	equal 'and fails then' 3 "$status"
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
