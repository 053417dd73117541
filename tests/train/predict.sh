# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What GPUs can do and a step should take, by obj/tests/train/predict.

test_predict()
{
	program predict
	# As nvidia-smi prints them, and as people say
	while IFS=: read -r name wanted; do
		equal "'$name' is $wanted" "$wanted" "$("$program" find "$name")"
	done <<-END
	NVIDIA A100-SXM4-80GB:A100
	NVIDIA A100-SXM4-40GB:A100-40GB
	NVIDIA A100 80GB PCIe:A100-PCIe
	NVIDIA H100 80GB HBM3:H100
	NVIDIA H100 PCIe:H100-PCIe
	NVIDIA H200:H200
	NVIDIA B200:B200
	NVIDIA L40S:L40S
	NVIDIA GeForce RTX 4090:RTX4090
	h100:H100
	NVIDIA GeForce GTX 1080:unknown
	A10:unknown
	NVIDIA GH200 480GB:unknown
	NVIDIA GB200:unknown
	NVIDIA GeForce RTX 4090 Laptop GPU:unknown
	NVIDIA H100 80GB HBM3 MIG 1g.10gb:unknown
	END
	# GPT-2's 124,439,808 parameters but 1024 x 768 positions, 6 each; and
	# 6 x 12 x 1024 x 768
	equal 'the FLOP of a token of 124M' $((6 * 123653376 + 56623104)) \
		"$("$program" flops 12 768 1024 50257 1)"
	"$program" step H100 1 >rows
	# 6 x 32768 x 768 x 3072 FLOP by 0.65 x 989.4e12 a second
	equal 'a product that its FLOP limit' \
		'24 463856467968 7.212708e-04' \
		"$(sed -n 's/^product up: //p' rows | cut -d ' ' -f 1,2,4)"
	# 32768 x 50257 logits of 4 bytes, and gradients of 2 bytes, by
	# 0.8 x 3.35e12 a second
	equal 'an operator that memory limits' \
		'2 0 9880928256 3.686914e-03' \
		"$(sed -n 's/^cross entropy: //p' rows)"
	# Gradient and copy of 2 bytes, three fp32 values read and written; once
	equal 'the update' "1 0 $((124439808 * 28))" \
		"$(sed -n 's/^optimizer: //p' rows | cut -d ' ' -f 1-3)"
	# Of 3, 1, 4 and 1 outputs a layer, each 32768 x 768 of 2 bytes
	equal 'sums of biases, in a pass' "24 0 $((9 * 32768 * 768 * 2))" \
		"$(sed -n 's/^gradients of biases: //p' rows |
			cut -d ' ' -f 1-3)"
	# Tokens/s that llm.c's README and discussions state for an A100 SXM
	while read -r preset sequences stated; do
		"$train" --preset "$preset" --vocab 50304 --dtype bf16 \
			--batch "$sequences" --plan --gpu A100 >out 2>err
		ms=$(sed -n 's/.* should take \([0-9.]*\) ms .*/\1/p' out)
		check "$preset on an A100 is predicted as llm.c measured it" \
			awk -v n="$sequences" -v ms="$ms" -v stated="$stated" '
			BEGIN { ratio = n * 1024 / ms * 1000 / stated
			print "predicted / measured: " ratio
			exit !(ratio > 0.85 && ratio < 1.15) }'
	done <<-END
	124M 64 218000
	774M 16 38500
	END
	equal 'a step is the sum of its rows' \
		"$(awk '/^all/ { next } { sub(/.*: /, "")
			sum += $1 * $4 } END { printf "%.5f\n", sum }' rows)" \
		"$(sed -n 's/^all: //p' rows | awk '{ printf "%.5f\n", $1 }')"
	equal 'fp32 has no tensor cores: 66.9e12' 1.066705e-02 \
		"$("$program" step H100 0 | sed -n 's/^product up: .* //p')"
	# Half of 989.4e12; and 32768 x 1024 / 2 pairs of 4 x 768 FLOP, which
	# stay at 0.05 x 66.9e12
	equal 'TF32 has tensor cores' '1.442542e-03 1.540795e-02' \
		"$("$program" step H100 tf32 |
		sed -n 's/^product up: .* //p; s/^attention: .* //p' |
		sort | tr '\n' ' ' | sed 's/ $//')"
	test_predicted_work
	test_predicted_plan
}

# The largest of what a GPU's operators work in. The classifier has fp32 logits
# of up to 512 MiB, each row of a multiple of 64: of 50304 floats 2668 rows fit,
# 20 x 128 whole tiles of them; then a loss for each row and, in 16 bit, the sum
# of dweight. All rows are one block where they fit. Attention has 8 bytes of
# each row of a head, whose number is even. The norm has gain and bias of each of
# its blocks: 48K threads, a thread 8 columns. cuDNN has 4 bytes of each row of a
# head, and 2 of each pair, in tiles of 64 x 128.
test_predicted_work()
{
	while IFS=: read -r what shape bytes; do
		# shellcheck disable=SC2086,SC2004 # several words, and a sum
		equal "a GPU's workspace: $what" $(($bytes)) \
			"$("$program" work $shape)"
	done <<-END
	blocks of logits in bf16:32 1024 12 768 50257 1 own:(2560 * 50304 + 32768 + 50304 * 768) * 4
	blocks of logits in fp32:32 1024 12 768 50257 0 own:(2560 * 50304 + 32768) * 4
	all logits at once:32 1024 12 768 256 1 own:(32768 * 256 + 32768) * 4
	attention of an odd context:4 1025 64 64 8 1 own:4 * 64 * 1026 * 8
	layer norm:8 1024 1 4096 8 1 own:49152 / 512 * 2 * 4096 * 4
	cuDNN:8 1000 12 768 256 1 cudnn:8 * 12 * (1000 * 4 + 1024 * 1024 * 2) + 4096
	END
}

test_predicted_plan()
{
	call env DDP_MODULE_DIR=/nonexistent timeout 60 "$train" \
		--preset 124M --vocab 50257 --dtype bf16 --batch 32 --plan \
		--gpu h100
	# The step above, but that a GPU computes nothing again
	grep -q '^a step on one H100 should take [0-9.]* ms without' out &&
		grep -q '^  product up  *12  *5566\.3  ' out &&
		! grep -q '^  norm again ' out
	result $? '--plan predicts a step on a GPU that is not there'
	# 124,439,808 parameters: two 16-bit and three fp32 values of each, and
	# 48 MiB of the device's own; the rest are activations.
	equal '--plan counts the memory without the module' \
		'237.4 237.4 474.7 949.4 48.0' "$(awk '
		/^  (gradients|parameters|fp32 master|optimizer|workspace).*MiB/ {
			printf "%s%s", sep, $(NF - 1); sep = " " }' out)"
	equal '--plan leaves the rest to CUDA and NCCL' '81559.0' "$(awk '
		/^  on the GPU, beside CUDA and NCCL/ { needed = $(NF - 1) }
		/^that is enough, if CUDA and NCCL take at most / {
			printf "%.1f", needed + $(NF - 1) }' out)"
	# 774,030,080 parameters take 11.5 GiB of its 24, activations of 64
	# sequences more.
	call timeout 60 "$train" --preset 774M --vocab 50257 --dtype bf16 \
		--batch 64 --plan --gpu RTX4090
	check 'a plan for a GPU with too little memory says so' \
		grep '^that is too little: choose a smaller --batch' out
	check 'a plan with too little memory does not say "enough" as well' sh -c "! grep 'that is enough' out"
	refuses_each 2 <<-END
	--gpu says for what GPU --plan predicts a step; add --plan|--data $text --gpu H100
	what --gpu 'H9' can do is not known; choose one of A100, A100-40GB|--data $text --plan --gpu H9
	--heads 2 of --width 1024 makes heads of 512, and the GPU's attention has at most 256: choose more heads|--data $text --plan --gpu H100 --heads 2 --width 1024
	END
}
