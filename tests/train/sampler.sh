# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# Which rank gets which sample.

test_sampler()
{
	program sampler
	for property in bijection differs uniform; do
		check "our own permutation: $property" "$program" $property
	done
	if ! "$python" -c 'import torch' 2>/dev/null; then
		skip "PyTorch's DistributedSampler" "no torch for $python"
		return
	fi
	check "PyTorch's DistributedSampler gives its indices" \
		timeout 120 "$python" "$here/sampler.py" cases wanted
	"$program" given <cases >had
	check "the sampler's are the same" cmp wanted had
	# 11 sizes, 8 numbers of replicas, 3 epochs, with and without the last
	# samples, except where they are too few for a step.
	equal 'the sampler is compared in as many cases as there should be' \
		438 \
		"$(grep -c '' cases)"
}
