# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# Bad files and environments, each refused with one sentence; options.sh has the
# options.

# refuses NAME STATUS WORDS COMMAND...: COMMAND exits with STATUS, and it or its
# ranks print nothing but one sentence that contains WORDS
refuses()
{
	refuses_name=$1 refuses_want=$2 refuses_words=$3
	shift 3
	call timeout 60 "$@"
	test "$status" -eq "$refuses_want" && ! test -s out &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep '^ddp-train: ' err | grep -qF -- "$refuses_words"
	result $? "$refuses_name"
}

# refuses_each STATUS: ddp-train for each line WORDS|ARGUMENTS
refuses_each()
{
	while IFS='|' read -r words arguments; do
		# shellcheck disable=SC2086 # several arguments in one field
		refuses "refuses ddp-train $arguments" "$1" "$words" \
			"$train" $arguments
	done
}

# words NUMBER...: as 32 bits each, little-endian
words()
{
	for number; do
		# shellcheck disable=SC2059 # octal for bytes
		printf "$(printf '\\%03o\\%03o\\%03o\\%03o' \
			$((number & 255)) $((number >> 8 & 255)) \
			$((number >> 16 & 255)) $((number >> 24 & 255)))"
	done
}

# header NUMBER NUMBER NUMBER: the 1,024 bytes that begin a token file
header()
{
	words "$@"
	head -c 1012 /dev/zero
}

# The text's bytes as tokens: UTF-16 is the same for the first 256 characters.
make_token_files()
{
	size=$(wc -c <"$text")
	iconv -f ISO-8859-1 -t UTF-16LE "$text" >body
	{ header 20240520 1 "$size"; cat body; } >tokens
	{ header 20240520 1 65; head -c 130 body; } >least_tokens
	{ header 20240520 1 64; head -c 128 body; } >short_tokens
	{ header 20240520 1 100; head -c 120 body; } >broken
	{ header 20240520 1 100; head -c 201 body; } >odd
	{ header 20240520 1 100; head -c 202 body; } >longer
	{ header 20240520 2 100; head -c 200 body; } >version
	{ header 20240521 1 100; head -c 200 body; } >magic
	{ header 20240801 7 100; head -c 200 body; } >llama3
	# 20240520 is 0x0134d888.
	{ header $((0x88d83401)) $((0x01000000)) 0; cat body; } >swapped
	head -c 1023 tokens >headless
	{ header 20240520 1 0; } >bodiless
	# Token 5000, counted from 0, is 256 + 1 or 65535.
	{ header 20240520 1 9000; head -c 10000 body; printf '\001\001'
		head -c 7998 body; } >above
	{ header 20240520 1 9000; head -c 10000 body; printf '\377\377'
		head -c 7998 body; } >far_above
}

test_files()
{
	mkdir dir
	mkfifo pipe
	: >empty
	head -c 64 "$text" >short
	head -c 65 "$text" >least
	cp least copy
	make_token_files
	refuses_each 2 <<-END
	cannot open --data none: No such file|--data none
	--data dir is a directory|--data dir
	--data pipe is not a regular file|--data pipe
	--data empty is empty|--data empty
	--data short has 64 tokens, but --context 64 needs at least 65|--data short
	cannot open --tokens none: No such file|--tokens none
	--tokens shard_*.bin is a pattern; name one file|--tokens shard_*.bin
	--tokens dir is a directory|--tokens dir
	--tokens pipe is not a regular file|--tokens pipe
	--tokens empty is empty|--tokens empty
	begins with 538976288, not with 20240520|--tokens $text
	--tokens headless has 1023 bytes, fewer than the 1024|--tokens headless
	--tokens bodiless has 0 tokens|--tokens bodiless
	--tokens short_tokens has 64 tokens|--tokens short_tokens
	has 1144 bytes, but 100 tokens, which its header counts, make 1224|--tokens broken
	has 1225 bytes, but 100 tokens|--tokens odd
	has 1226 bytes, but 100 tokens|--tokens longer
	--tokens version is a token file of version 2|--tokens version
	--tokens magic begins with 20240521|--tokens magic
	--tokens llama3 is a token file of 32-bit tokens|--tokens llama3
	--tokens swapped is a token file in the wrong byte order|--tokens swapped
	token 5000, counted from 0, is 257, past the vocabulary of --vocab 257|--tokens above --vocab 257
	token 5000, counted from 0, is 65535, past the vocabulary of --vocab 50257|--tokens far_above
	END
	refuses_each 2 <<-END
	cannot write --log dir: Is a directory|--log dir
	cannot write --log dir/none/x: No such file|--log dir/none/x
	END
	refuses_each 1 <<-END
	--log pipe is a pipe that nobody reads|--log pipe --steps 1
	END
	test_unreadable_file
	refuses 'quotes a name that is not printable' 2 \
		"--data a?[2J?srun: x: No such file" \
		"$train" --data "$(printf 'a\033[2J\nsrun: x')"
	refuses 'refuses a log that would replace the data' 2 '--log ./least' \
		"$train" --data least --log ./least
	check 'a log that is refused leaves the data as it was' cmp least copy
	call timeout 60 "$train" --data least --steps 2 --log log
	equal 'trains on the shortest file' '0 2' "$status $(wc -l <log)"
	call timeout 60 "$train" --tokens least_tokens --steps 2 --log log \
		--width 8 --batch 1
	equal 'trains on the shortest token file' '0 2' \
		"$status $(wc -l <log)"
	call timeout 60 "$train" --data "$text" --steps 5 --log log
	losses log >bytes
	call timeout 60 "$train" --tokens tokens --vocab 256 --steps 5 \
		--log log
	losses log | cmp -s bytes - && test "$(wc -l <bytes)" -eq 5
	result $? 'the same text as tokens gives the losses of its bytes'
	call timeout 60 "$train" --tokens above --vocab 258 --steps 1
	equal 'takes tokens up to the vocabulary' 0 "$status"
	call timeout 60 "$train" --log /dev/full
	test "$status" -eq 1 && grep -q 'cannot write --log /dev/full' err
	result $? "ends when the log's disk is full"
	truncate -s 100000 zeros
	call timeout 60 "$train" --data zeros --eval-every 1 --steps 1 \
		--deterministic --granule 600 --global-batch 600 \
		--layers 1 --heads 1 --width 8 --context 8
	test "$status" -eq 0 && grep -q '^step 1  eval loss 5\.' out
	result $? 'evaluates by granules of more than 512 sequences'
	# shellcheck disable=SC2016 # $0 is the inner shell's
	call timeout 60 sh -c '"$0" >/dev/full' "$train"
	test "$status" -eq 1 && grep -q 'cannot write the standard output' err
	result $? "ends when the output's disk is full"
	# shellcheck disable=SC2016
	call timeout 60 sh -c '"$0" --steps 3 --log log >&-' "$train"
	test "$status" -eq 1 &&
		grep -q 'cannot write the standard output' err &&
		test "$(grep -vc '^{' log)" -eq 0
	result $? 'ends when the output is closed, which the log is not put for'
	echo before >own
	timeout 60 "$train" --log own >>own 2>err
	equal 'refuses a log that is its own output' \
		"2 before ddp-train: --log own is the file of the standard $(
		)output, which it would replace; name another file" \
		"$? $(cat own) $(cat err)"
	test_large_files
	needs_worlds 'ranks check their parts of the tokens' || return 0
	refuses 'the rank whose part has the token says so' 2 'rank 1 on' \
		mpirun -n 2 "$train" --tokens above --vocab 257
}

test_unreadable_file()
{
	cp least secret
	chmod 0 secret
	if test "$(id -u)" -ne 0; then
		refuses 'refuses unreadable data' 2 'Permission denied' \
			"$train" --data secret
	elif command -v setpriv >/dev/null; then
		chmod 755 .
		cp "$train" trainer
		refuses 'refuses unreadable data' 2 'Permission denied' \
			setpriv --reuid 65534 --regid 65534 --clear-groups \
			./trainer --data secret
	else
		skip 'refuses unreadable data' 'root without setpriv'
	fi
}

# Sparse files that end past 2 GiB.
test_large_files()
{
	count=$((1 << 30 | 1 << 20))
	size=$((1024 + 2 * count))
	header 20240520 1 $count >large
	if ! truncate -s $size large 2>/dev/null ||
		test "$(du -k large | cut -f 1)" -gt 1000; then
		rm -f large
		skip 'files above 2 GiB' 'no sparse files here'
		return
	fi
	set -- --layers 1 --heads 1 --width 8 --context 8 --batch 1
	call timeout 60 "$train" --tokens large --vocab 300 --steps 2 "$@"
	equal 'trains on 2 GiB of tokens' 0 "$status"
	call timeout 60 "$train" --data large --steps 2 "$@"
	equal 'trains on the bytes of a file above 2 GiB' 0 "$status"
	call timeout 60 "$train" --data large --plan "$@"
	grep -qF "data: $size tokens, $(((size - 1) / 8)) samples" out
	result $? '--plan counts the tokens of a file above 2 GiB'
	printf '\001\002' |
		dd of=large bs=1 seek=$((size - 2)) conv=notrunc 2>/dev/null
	refuses 'finds a wrong token at their end' 2 \
		"token $((count - 1)), counted from 0, is 513," \
		"$train" --tokens large --vocab 300
	truncate -s $((size - 2)) large
	refuses 'finds that the last token is missing' 2 \
		"has $((size - 2)) bytes, but $count tokens" \
		"$train" --tokens large --vocab 300
	rm large
	# The number of tokens fits 32 bits, the number of bytes does not.
	count=$((1 << 31 | 1))
	{ header 20240520 1 $count; printf '\001\002'; } >large
	truncate -s $((1024 + 2 * count)) large
	refuses 'knows the length of 4 GiB of tokens' 2 \
		'token 0, counted from 0, is 513,' \
		"$train" --tokens large --vocab 300
	rm large
}

# shrinks SIZE OPTION FILE ARGUMENTS...: truncate FILE while it is trained on
shrinks()
{
	shrinks_to=$1
	shift
	shrinks_what="$1 $2"
	: >out
	timeout 60 "$train" "$@" --steps 1000000 >out 2>err &
	pid=$!
	reaches "$pid" grep -q '^step' out || return 0
	truncate -s "$shrinks_to" "$2"
	wait $pid
	equal "ends when $shrinks_what shrinks to $shrinks_to bytes" \
		"1 ddp-train: $(printf %s "$shrinks_what" |
			tr -c ' -~' '?') shrank while it was read; leave $(
		)the file alone during a run" "$? $(cat err)"
}

test_shrinking_file()
{
	cp "$text" shrinking
	shrinks 0 --data shrinking
	odd=$(printf 'a\033[2J')
	cp "$text" "$odd"
	shrinks 0 --data "$odd"
	# Within its last page, where reading raises no signal.
	head -c 5000 "$text" >shrinking
	shrinks 4500 --data shrinking --check-every 1
	make_token_files
	shrinks 0 --tokens tokens --vocab 256
}

not_checked="a token past the vocabulary that was not there when it was $(
	)checked: the file was changed, or this node's differs from the other $(
	)nodes'; give every node the same file and leave it alone during a run"

# Tokens are checked once; then a changed one would be an index out of range.
test_changing_file()
{
	make_token_files
	: >out
	timeout 60 "$train" --tokens tokens --vocab 256 --steps 1000000 \
		>out 2>err &
	pid=$!
	reaches "$pid" grep -q '^step' out || return 0
	tr '\000-\377' '\377' <tokens | dd of=tokens bs=1024 skip=1 seek=1 \
		conv=notrunc 2>/dev/null
	wait $pid
	equal 'ends when its tokens leave the vocabulary' "1 ddp-train: $(
		)--tokens tokens has $not_checked" "$? $(cat err)"
}

# Each rank checks its half of its own file. Only rank 1's file has bad tokens,
# in the half that rank 0 checks, and in pages that the checksum leaves out: it
# takes every third of 766.
test_differing_files()
{
	needs_worlds 'files that are not the same' || return 0
	head -c 4096 /dev/zero >page
	{ cat page page | tr '\000' '\377'; cat page; } >pages
	{ header 20240520 1 1568256; head -c 3136512 /dev/zero; } >same
	{ head -c 4096 same; for _ in $(seq 127); do cat pages; done
		tail -c +1564673 same; } >differing
	equal 'the files are of one size' "$(wc -c <same)" "$(wc -c <differing)"
	call timeout 60 mpirun -n 2 "$top/tests/by_rank" "$train" \
		--tokens same --vocab 256 --steps 100 // \
		--tokens differing --vocab 256 --steps 100
	equal "ends when a rank's tokens are not those that were checked" \
		"1 ddp-train: rank 1 on $(uname -n): --tokens differing has $(
		)$not_checked" "$status $(grep -a '^ddp-train: ' err)"
}

test_environment()
{
	while IFS='|' read -r words variables arguments; do
		# shellcheck disable=SC2086 # several words in one field
		refuses "refuses $variables ddp-train $arguments" 1 "$words" \
			env $variables "$train" $arguments
	done <<-END
	there are 4 ranks but --backend self|WORLD_SIZE=4|--backend self
	there are 2 ranks but --backend self|OMPI_COMM_WORLD_SIZE=2|--backend self
	there are 2 ranks but --backend self|SLURM_STEP_NUM_TASKS=2|--backend self
	this is one of 3 tasks of a Slurm step|SLURM_STEP_NUM_TASKS=3|
	this is one of 3 tasks of a Slurm step|SLURM_STEP_NUM_TASKS=3|--backend mpi
	RANK is 2 but|RANK=2|
	RANK is 'x'|RANK=x|
	RANK is '-1'|RANK=-1|--backend self
	WORLD_SIZE is '0'|WORLD_SIZE=0|
	WORLD_SIZE is '3000000000'|WORLD_SIZE=3000000000|
	END
	test "$has_mpi" = yes ||
		refuses 'refuses a world without MPI' 1 '--with-mpi' \
			env WORLD_SIZE=2 "$train"
	call timeout 60 env RANK=0 WORLD_SIZE=1 LOCAL_RANK=5 NODE_RANK=6 \
		CUDA_VISIBLE_DEVICES=2,3 "$train" --steps 1
	test "$status" -eq 0 && ! test -s err &&
	sed -n 1p out | grep -q '^rank  host .* node  local  gpus  cpus$' &&
	sed -n 2p out | grep -q " 0  $(uname -n) .* 6 .* 5 .* 2,3 .*[0-9]$"
	result $? 'prints the ranks and their variables'
	call timeout 60 env NODE_RANK="$(printf 'a\033[2J\nb')" "$train" --steps 1
	equal 'prints nothing in the variables that is not printable' \
		'0 0' "$status $(
		tr -d '\n' <out | tr -d ' -~' | wc -c)"
}

# A Slurm step whose tasks found no MPI: only the first prints the error.
test_singletons()
{
	rm -f singletons statuses
	for task in 0 1 2 3; do
		env WORLD_SIZE=4 RANK=$task SLURM_PROCID=$task \
			timeout 60 "$train" >/dev/null 2>>singletons
		echo $? >>statuses
	done
	cp singletons err
	test "$(wc -l <singletons)" -eq 1 && test "$(grep -c 1 statuses)" -eq 4
	result $? 'four tasks without MPI say one sentence and fail'
}
