# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# --init: the model files of llm.c. llmc.py writes them, with 3 layers, 3 heads,
# width 45, 32 positions, 300 tokens and 384 rows for them.

# begins NAME VERSION CONTEXT RANKS SEQUENCES OPTIONS...: the first loss, over
# all sequences of the file, is PyTorch's
begins()
{
	begins_name=$1 begins_ranks=$4 begins_batch=$5
	"$python" "$here/llmc.py" model "$2" "$3" numbers >theirs 2>err
	shift 5
	ranks "$begins_ranks" "$train" --init model --tokens numbers \
		--global-batch "$begins_batch" --steps 3 --lr 1e-3 --log log \
		"$@"
	losses log | head -n 1 >ours
	close theirs ours 1 1e-6
	result $? "$begins_name"
}

# spoil NAME OFFSET BYTE...: a copy of the model with these bytes there
spoil()
{
	spoil_name=$1 spoil_offset=$2
	shift 2
	cp model "$spoil_name"
	# shellcheck disable=SC2059 # octal for bytes
	printf "$(printf '\\%03o' "$@")" | dd of="$spoil_name" bs=1 \
		seek="$spoil_offset" conv=notrunc 2>/dev/null
}

# The token table has 384 * 45 parameters, the positions have 32 * 45; then each
# layer's first norm has 45 gains, and "nan" has one of layer 1 that is bad.
make_bad_models()
{
	spoil magic 0 1
	spoil swapped 0 1 52 215 198		# 20240326 is 0x0134d7c6
	spoil version 4 1
	spoil no_layers 16 0
	spoil negative 16 255 255 255 255
	spoil heads 20 4
	spoil wide 24 0 0 2
	spoil few_rows 28 43 1
	spoil nan $((1024 + 4 * (384 + 32 + 1) * 45 + 12)) 0 0 192 127
	spoil inf $((1024 + 4 * 46)) 0 0 128 255
	head -c 1000 model >headless
	head -c -1 model >truncated
	{ cat model; echo; } >longer
	: >empty
}

refuses_models()
{
	size=$(wc -c <model)
	make_bad_models
	refuses_each 2 <<-END
	cannot open --init none: No such file|--init none --plan
	--init folder is not a regular file|--init folder --plan
	--init fifo is not a regular file|--init fifo --plan
	--init empty has 0 bytes, fewer than the 1024|--init empty --plan
	--init headless has 1000 bytes, fewer than the 1024|--init headless --plan
	--init magic begins with 20240129, not with 20240326|--init magic --plan
	--init swapped is a model file in the wrong byte order|--init swapped --plan
	--init version is a model file of version 1; only versions 3|--init version --plan
	states 0 layers, not 1 to 65536|--init no_layers --plan
	states -1 layers, not 1 to 65536|--init negative --plan
	states 299 rows in its token table for 300 tokens|--init few_rows --plan
	states 4 heads, which do not divide its width 45|--init heads --plan
	states 131072 as its width, not 1 to 65536|--init wide --plan
	--init truncated has $((size - 1)) bytes, but the $(((size - 1024) / 4)) parameters that its header states make $size|--init truncated --plan
	--init longer has $((size + 1)) bytes, but|--init longer --plan
	END
	refuses_each 2 <<-END
	--init and --preset are both given|--init model --preset 10M --plan
	--init has no effect on --model toy|--init model --model toy
	--init needs a value|--init=
	a gpt needs something to learn|--init model
	--layers 2 is not the 3 that --init model has; leave --layers out|--init model --layers 2 --plan
	--heads 5 is not the 3|--init model --heads 5 --plan
	--width 64 is not the 45|--init model --width 64 --plan
	a vocabulary of 301 is not the 300|--init model --vocab 301 --plan
	a vocabulary of 256 is not the 300 that --init model has; use --tokens|--init model --data $text
	--context 33 is more than the 32 positions of --init model|--init model --context 33 --plan
	END
}

# stops NAME WORDS COMMAND...: after the table of ranks, with one sentence that
# has WORDS
stops()
{
	stops_name=$1 stops_words=$2
	shift 2
	call timeout 60 "$@"
	test "$status" -eq 2 && ! grep -q '^backend\|^step' out &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep '^ddp-train: ' err | grep -qF -- "$stops_words"
	result $? "$stops_name"
}

# One rank's file that is bad, or another: all end with one message.
refuses_models_of_ranks()
{
	needs_worlds 'other model files on a rank' || return 0
	LAYERS=2 "$python" "$here/llmc.py" smaller 3 32 numbers >/dev/null
	set -- mpirun -n 2 "$top/tests/by_rank" "$train" --tokens numbers --init
	refuses 'names the rank whose model file is another' 1 \
		'has --layers 2, but rank 0 has --layers 3' \
		"$@" model // --tokens numbers --init smaller
	refuses 'names the rank that has no model file' 2 \
		'cannot open --init none' \
		"$@" model // --tokens numbers --init none
	stops 'tells all ranks that rank 0 cannot read it' \
		'--init nan: value 3 of h.1.ln_1.weight' \
		"$@" nan // --tokens numbers --init nan
}

# A run that began with a file goes on from its checkpoint, and the same command
# may name the file, which is not read again.
goes_on()
{
	rm -rf saved log
	from_file='--init model --tokens numbers --global-batch 4 --lr 1e-3'
	# shellcheck disable=SC2086 # several arguments
	set -- "$train" $from_file --schedule constant --warmup 0
	call timeout 60 "$@" --steps 6 --log whole
	call timeout 60 "$@" --steps 3 --checkpoint saved
	call timeout 60 "$@" --steps 6 --checkpoint saved --resume --log log
	losses whole | tail -n 3 >wanted
	losses log >had
	check 'goes on from a checkpoint of such a run' diff wanted had
	rm -rf saved log
}

# Each of the 3 * 12 + 4 tensors, which are small, is progress: the same model
# without a file makes that much less.
counts_init()
{
	rm -f beats.init beats.none
	call env DDP_HEARTBEAT_FILE="$PWD/beats.init" timeout 60 "$train" \
		--tokens numbers --steps 1 --init model
	call env DDP_HEARTBEAT_FILE="$PWD/beats.none" timeout 60 "$train" \
		--tokens numbers --steps 1 --layers 3 --heads 3 --width 45 \
		--context 32 --vocab 300
	equal 'counts progress as it reads' 40 \
		$(($(beats init) - $(beats none)))
}

test_llmc()
{
	if ! has_torch; then
		skip "llm.c's model files" "no torch for $python"
		return
	fi
	# 161 tokens: 5 sequences of 32 or 8 of 20
	{
		header 20240520 1 161
		"$python" -c 'import struct, sys
for i in range(161):
    sys.stdout.buffer.write(struct.pack("<H", i * i * 7 % 300))'
	} >numbers
	mkdir folder
	mkfifo fifo
	begins 'begins with parameters in bf16' 5 32 1 5
	begins 'begins with the first positions of a model' 3 20 1 8 \
		--context 20
	begins "begins with llm.c's parameters in fp32" 3 32 1 5
	losses log | awk 'NR > 1 && $1 >= last { exit 1 } { last = $1 }'
	result $? "trains llm.c's parameters in fp32"
	grep -q '^backend self, model gpt of --init of ' out
	result $? 'says that it begins with a file'
	call timeout 60 "$train" --init model --context 20 --layers 3 --plan
	grep -qF '(3 layers, 3 heads, width 45, context 20, vocabulary 300)' \
		out
	result $? '--plan has the shape of the file'
	goes_on
	counts_init
	refuses_models
	cp model copy
	refuses 'a log that would replace the model' 2 \
		'--log ./model is the file of --init, which it would replace' \
		"$train" --init model --tokens numbers --log ./model
	check 'a log that is refused leaves the model as it was' cmp model copy
	stops 'refuses infinity' \
		'value 46 of wte.weight, counted from 0, is not a number' \
		"$train" --tokens numbers --init inf
	refuses_models_of_ranks
	needs_worlds "llm.c's parameters on two ranks" || return 0
	begins "all ranks begin with rank 0's parameters" 3 20 2 8 \
		--context 20
}
