# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# The options of ddp-train, alone, together, and on several ranks.

# plans WORDS ARGUMENTS...: a line of the plan has WORDS in it
plans()
{
	plans_words=$1
	shift
	call timeout 60 "$train" --plan "$@"
	test "$status" -eq 0 && grep -qF -- "$plans_words" out
	result $? "plans $plans_words for ddp-train $*"
}

test_options()
{
	refuses_each 2 <<-END
	--steps '-3' is not a whole number from 1 to 1000000000|--steps -3
	--steps '0'|--steps 0
	--steps '+1'|--steps +1
	--steps '5x'|--steps 5x
	--steps '0x10'|--steps 0x10
	--steps '1000000001'|--steps 1000000001
	--steps '99999999999999999999'|--steps 99999999999999999999
	--steps ''|--steps=
	--steps needs a value|--steps
	--timeout '-1' is not a whole number from 0 to 1000000000|--timeout -1
	--timeout '1.5'|--timeout 1.5
	--batch '65537'|--batch 65537
	--batch '1.5'|--batch=1.5
	--global-batch '0'|--global-batch 0
	--lr '0' is not a number above 0|--lr 0
	--lr '-0.1'|--lr -0.1
	--lr '+0.1'|--lr +0.1
	--lr 'nan'|--lr nan
	--lr 'inf'|--lr inf
	--lr '1e999'|--lr 1e999
	--lr '1e-999'|--lr 1e-999
	--lr '0x1p-3'|--lr 0x1p-3
	--lr '0.1x'|--lr 0.1x
	--lr '.'|--lr .
	--lr ''|--lr=
	--eps '0'|--eps 0
	--beta1 '1' is not a number from 0 to below 1|--beta1 1
	--beta2 '1.0'|--beta2 1.0
	--momentum '1'|--momentum 1
	--weight-decay '-1' is not a number from 0|--weight-decay -1
	--clip 'nan'|--clip nan
	--clip '1e999'|--clip 1e999
	--bucket-mib '0' is not a number from 0.001 to 1024|--bucket-mib 0
	--bucket-mib '1025'|--bucket-mib 1025
	--bucket-mib 'nan'|--bucket-mib nan
	--seed '-1'|--seed -1
	--seed '18446744073709551616'|--seed 18446744073709551616
	--vocab '65537'|--vocab 65537
	--layers '0'|--layers 0
	--width '18446744073709551615'|--width 18446744073709551615
	--model 'mlp' is not one of toy, gpt|--model mlp
	--dtype 'fp64' is not one of fp32, bf16, fp16|--dtype fp64
	--grad-dtype 'half' is not one of|--grad-dtype half
	--tf32 'yes' is not one of off, on|--tf32 yes
	--attention 'flash' is not one of own, cudnn|--attention flash
	--rounding 'up' is not one of nearest, stochastic|--rounding up
	--model ''|--model=
	--model 'toyg'|--model toyg
	--model 'to'|--model to
	--backend 'gloo'|--backend gloo
	--device 'gpu' is not one of auto, cpu, cuda|--device gpu
	--optimizer 'adam'|--optimizer adam
	--schedule 'linear'|--schedule linear
	--overlap 'yes' is not one of off, on|--overlap yes
	--preset '10m' is not known|--preset 10m --data $text
	--preset needs a value|--preset=
	--data needs a value|--data=
	--checkpoint is given without data; name what to learn by --data FILE or --tokens FILE, or add --model toy|--checkpoint none
	--checkpoint is given without data; name what to learn by --data FILE or --tokens FILE, or add --model toy|--checkpoint none --resume
	--checkpoint is given without data; name what to learn by --data FILE or --tokens FILE, or add --model toy|--checkpoint none --steps 500 --lr 0.1 --plan
	--checkpoint has a name of 1001 bytes; choose one of at most 1000|--model toy --checkpoint $(printf %1001s | tr ' ' x)
	--tokens needs a value|--tokens=
	--log needs a value|--log=
	--bogus is not an option|--bogus
	-xy is not an option|-xy
	--help '3' is not all, the only word that it takes; leave it out|--help=3
	--help 'steps' is not all|--help steps
	--help 'al' is not all|--help al
	--help '' is not all|--help=
	--plan takes no value|--plan=yes
	did you mean --granule|--granuel=2
	--be is short for --beta1 and --beta2|--be 0.9
	'$text' is not an option|$text
	END
	test_options_together
	test_planned_memory
	test_rates
	test_help
	call timeout 60 "$train" --version
	test "$status" -eq 0 && grep -q '^ddp-train [0-9]' out
	result $? '--version'
	for option in --help --version; do
		# shellcheck disable=SC2016 # $0 is the inner shell's
		refuses "$option to a full disk" 1 \
			'cannot write the standard output: No space' \
			sh -c '"$0" "$1" >/dev/full' "$train" $option
	done
	call timeout 60 "$train" --seed 18446744073709551615 --steps 1 \
		--batch 1 --lr .5e-3 --bucket-mib 0.001 --steps 1
	equal 'takes the largest seed and the smallest batch' 0 "$status"
	test_options_of_ranks
}

# help [all]: what --help prints, and in "shown" its groups and options
help()
{
	call timeout 60 "$train" --help "$@"
	test "$status" -eq 0 && grep -q '^Usage: ' out && ! test -s err
	result $? "--help $*"
	equal 'no line of it is longer than 80' '' "$(grep '.\{81\}' out)"
	sed -n 's/^\([A-Z][A-Za-z ]*\):$/\1/p; s/^  \(--[a-z0-9-]*\).*/\1/p' \
		out >shown
}

# A new user's options on one screen, all others in the order of the manual.
test_help()
{
	help
	lines=$(wc -l <out)
	check "--help has at most 40 lines, not $lines" test "$lines" -le 40
	for word in --data --preset --steps --lr --help 'Data and model'; do
		check "--help has $word" grep -qx -e "$word" shown
	done
	for word in --overlap --eps --timeout 'For study only' 'The ranks'; do
		! grep -qx -e "$word" shown
		result $? "--help has no $word"
	done
	mv shown usual
	help all
	equal 'all options have all of the usual ones' '' \
		"$(grep -vxF -f shown usual)"
	# The groups and tagged paragraphs of the manual's part on options
	sed -n '/^\.SH OPTIONS/,/^\.SH CHECKPOINTS/p' \
		"$top/bin/ddp-train/ddp-train.1" | sed 's/\\-/-/g' | awk '
		sub(/^\.SS /, "")
		/^\.(TP|TQ)/ { tag = 2 }
		tag-- == 1' | grep -v '^\.T' |
		grep -o -e '^[A-Z].*' -e '--[a-z0-9-]*' >manual
	check 'the manual has them in the same order' diff shown manual
	refuses 'a line break in --checkpoint, which would forge a manifest' 2 \
		"--checkpoint 'x?--lr 5' has a line break or another" \
		"$train" --checkpoint "$(printf 'x\n--lr 5')"
	call timeout 60 "$train" --help --bogus
	equal 'what follows --help is not read' 0 "$status"
}

# Options that contradict each other, and defaults that depend on others.
test_options_together()
{
	refuses_each 2 <<-END
	a gpt needs something to learn|--model gpt
	a gpt needs something to learn|--preset 10M
	--data has no effect on --model toy|--model toy --data $text
	--layers has no effect on --model toy|--layers 2
	--eval-every has no effect on --model toy|--eval-every 5
	--data and --tokens are both given|--data a --tokens b
	--vocab has no effect with --data|--data $text --vocab 300
	--sample prints bytes|--tokens $text --sample 10
	--momentum is an option of SGD; add --optimizer sgd|--data $text --momentum 0.9
	--beta2 is an option of AdamW; add --optimizer adamw|--beta2 0.9
	--min-lr is where|--min-lr 1e-4
	--min-lr 0.1 is above --lr, 0.01|--data $text --min-lr 0.1 --lr 0.01
	--warmup 100 is not below --steps, 100|--warmup 100
	--eval-every 11 is above --steps, 10|--data $text --eval-every 11 --steps 10
	--granule has no effect without --deterministic|--granule 2
	--batch does not go with --deterministic|--deterministic --batch 4
	--grad-dtype bf16 is neither fp32 nor --dtype fp32|--grad-dtype bf16
	leave it out, or use --dtype fp16|--grad-dtype fp16 --dtype bf16
	--grad-dtype bf16 does not go with --deterministic|--deterministic --dtype bf16 --grad-dtype bf16
	--rounding stochastic rounds parameters to bf16, not to fp32; leave it out, or use --dtype bf16|--rounding stochastic
	--rounding stochastic rounds parameters to bf16, not to fp16|--rounding stochastic --dtype fp16
	--tf32 on is how fp32 is multiplied, not bf16; leave it out, or use --dtype fp32|--tf32 on --dtype bf16
	--tf32 on is for GPUs, and this rank computes on its CPUs; leave it out|--tf32 on --device cpu
	--tf32 on is for GPUs, and this rank computes on its CPUs|--tf32 on --plan --preset tiny --device cpu
	--attention cudnn computes in 16 bit, not in fp32; leave it out, or use --dtype bf16|--attention cudnn --data $text
	--attention cudnn is for GPUs, and this rank computes on its CPUs; leave it out|--attention cudnn --dtype bf16 --data $text --device cpu
	--attention has no effect on --model toy|--attention cudnn --dtype bf16 --model toy
	--heads 5 does not divide --width 64|--data $text --heads 5
	--global-batch 23|--batch 16 --global-batch 23
	use --global-batch 16|--batch 16 --global-batch 23
	use --global-batch 32|--batch 16 --global-batch 24
	use --global-batch 16|--batch 16 --global-batch 1
	is not a multiple of --batch 16 times 1 rank; use|--batch 16 --global-batch 1
	use --global-batch 16|--deterministic --global-batch 20
	use --global-batch 32|--deterministic --global-batch 25
	use --global-batch 12|--deterministic --granule 3 --global-batch 10
	use --global-batch 4|--deterministic --granule 4 --global-batch 1
	END
	plans '1 x 64 samples each'
	plans '1 x 16 samples each' --data "$text"
	plans '1 x 8 samples each' --data "$text" --preset 10M
	plans '2 x 12 samples each' --data "$text" --global-batch 24
	plans '6 x 4 samples each' --data "$text" --global-batch 24 --batch 4
	plans '8 x 1 samples each' --data "$text" --deterministic
	plans '8 x 3 samples each' --data "$text" --deterministic --granule 3
	plans '4 x 3 samples each' --data "$text" --deterministic --granule 3 \
		--global-batch 12
	plans '(2 layers, 2 heads, width 64, context 64, vocabulary 256)' \
		--data "$text"
	plans '(3 layers, 1 heads, width 32, context 8, vocabulary 256)' \
		--data "$text" --layers 3 --heads 1 --width 32 --context 8
	plans 'should take' --tf32 on --plan --preset 124M --gpu H100
	plans '(2 layers, 2 heads, width 64, context 64, vocabulary 500)' \
		--model gpt --vocab 500
}

# What the plan has of each parameter, in bytes; none is that it does not say.
# 124M has 12 layers of 12 * 768^2 + 13 * 768, tables of 256 and 1024 rows and a
# norm: 86039040.
test_planned_memory()
{
	while read -r gradients parameters master moments batch sums \
		arguments; do
		# shellcheck disable=SC2086 # several arguments in one field
		call timeout 60 "$train" --plan --preset 124M $arguments
		while read -r bytes what; do
			equal "plans $bytes bytes of $what:$arguments" \
				"$(awk "BEGIN { if ($bytes) printf \"%.1f\",
					$bytes * 86039040 / 1048576 }")" \
				"$(sed -n "s/^  $what  *\([0-9.]*\) MiB$/\1/p" \
					out)"
		done <<-END
		$gradients gradients
		$parameters parameters
		$master fp32 master of the parameters
		$moments optimizer
		$batch gradients of a batch
		$sums partial sums of gradients
		END
	done <<-END
	4 4 0 8 0 0 --dtype fp32
	2 2 4 8 0 0 --dtype bf16
	2 2 4 8 0 4 --dtype fp16 --batch 1 --global-batch 3
	4 2 4 8 2 0 --dtype bf16 --grad-dtype fp32 --batch 1 --global-batch 3
	4 2 4 8 2 12 --dtype bf16 --deterministic --global-batch 8
	END
}

# rates NAME LINES WANTED ARGUMENTS...: the learning rates that these lines of
# the log have
rates()
{
	rates_name=$1 rates_lines=$2 rates_wanted=$3
	shift 3
	call timeout 60 "$train" --log log "$@"
	equal "$rates_name" "$rates_wanted" "$(sed -n "$rates_lines" log |
		sed 's/.*"lr":\([^,]*\),.*/\1/' |
		awk '{ printf "%s%.6g", (NR > 1 ? " " : ""), $1 }')"
}

# Up by quarters; then a cosine in six steps of 30 degrees, from lr to --min-lr:
# 0.1 + 0.9 (1 + cos 30) / 2 = 0.939711,
# with cos 60 = 1/2 0.775, with cos 90 = 0 0.55, and so on.
test_rates()
{
	rates 'warms up and falls by a cosine' p \
		'0.25 0.5 0.75 1 1 0.939711 0.775 0.55 0.325 0.160289 0.1' \
		--schedule cosine --warmup 4 --steps 11 --lr 1 --min-lr 0.1
	rates 'falls from the first step on without a warm-up' p \
		'1 0.775 0.325 0.1' \
		--schedule cosine --steps 4 --lr 1 --min-lr 0.1
	rates 'warms up and stays' p '0.25 0.5 0.75 1 1 1' \
		--schedule constant --warmup 4 --steps 6 --lr 1
	rates 'a gpt warms up in a tenth of the steps, falls to a tenth' \
		'1,3p;20p' '0.0005 0.001 0.001 0.0001' \
		--data "$text" --steps 20 --batch 1
}

# checksum FILE: FNV-1a, by its definition
checksum()
{
	"$python" - "$1" <<-END
	import sys
	h = 0xcbf29ce484222325
	for byte in open(sys.argv[1], "rb").read():
	    h = (h ^ byte) * 0x100000001b3 % 2 ** 64
	print(f"{h:016x}")
	END
}

# Options that differ between ranks: the message names option and rank.
test_options_of_ranks()
{
	needs_worlds 'other options on a rank' || return 0
	end='start every rank with the same options and data'
	size=$(wc -c <"$text")
	head -c 3000 "$text" >short
	# The last byte differs.
	{ head -c $((size - 1)) "$text"; echo .; } | head -c "$size" >other
	sum=$(checksum "$text") cut=$(checksum short) other=$(checksum other)
	while IFS='|' read -r had wanted first second; do
		# shellcheck disable=SC2086 # several arguments in one field
		refuses "names a rank with $had" 1 \
			"$(uname -n) has $had, but rank 0 has $wanted; $end" \
			mpirun -n 2 "$top/tests/by_rank" "$train" $first // \
			$second
	done <<-END
	--deterministic on|--deterministic off|--global-batch 8|--deterministic
	--drop-last off|--drop-last on|--data $text --drop-last|--data $text
	--lr 0.25|--lr 0.001|--steps 3|--steps 3 --lr .25
	--lr 0.1000000000000001|--lr 0.1|--lr 0.1|--lr 0.1000000000000001
	--global-batch -|--global-batch 256|--batch 16 --global-batch 256|--batch 16
	--global-batch 4|--global-batch -||--global-batch 4
	--bucket-mib 0.25|--bucket-mib 25||--bucket-mib 0.25
	--overlap off|--overlap on||--overlap off
	--dtype bf16|--dtype fp32||--dtype bf16
	--rounding stochastic|--rounding nearest|--dtype bf16|--dtype bf16 --rounding stochastic
	--grad-dtype fp32|--grad-dtype bf16|--dtype bf16|--dtype bf16 --grad-dtype fp32
	--data of $size bytes, checksum $sum|--data -||--data $text
	--data of $size bytes, checksum $other|--data of $size bytes, checksum $sum|--data $text|--data other
	--preset 10M|--preset tiny|--data $text|--data $text --preset 10M
	--data of 3000 bytes, checksum $cut|--data of $size bytes, checksum $sum|--data $text|--data short
	END
	refuses 'names the first rank that differs' 1 'rank 2 on' \
		mpirun -n 4 sh -c 'test "$OMPI_COMM_WORLD_RANK" -lt 2 ||
			set -- --seed 2; exec "$0" "$@"' "$train"
	call timeout 60 mpirun -n 2 "$top/tests/by_rank" "$train" --steps 2 \
		--log one // --steps 2 --backend mpi --lr 1e-3
	equal 'takes other words for the same' 0 "$status"
}
