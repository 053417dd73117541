# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC2317,SC2086 # of run; several arguments
# --zero 1: the bits of a run without it, checkpoints that go from one to the
# other, and the memory of a rank.

# states.py DIR: of the checkpoint in DIR, the checksum of each state, put
# together from the shards as ddp-train(1) has the format
cat >states.py <<'END'
import glob, hashlib, sys
path, = glob.glob(sys.argv[1] + "/step-*")
lines = [line.split() for line in open(path + "/manifest")]
values = next(int(line[1]) for line in lines if line[0] == "values")
states = {line[1]: [None] * values for line in lines if line[0] == "state"}
shards = []
for line in lines:
    if line[0] == "shard":
        shards.append((line[1], []))
    elif line[0] == "range":
        shards[-1][1].append(range(int(line[1]), int(line[2])))
for name, ranges in shards:
    with open(path + "/" + name, "rb") as file:
        for state in states.values():
            for i in (i for span in ranges for i in span):
                assert state[i] is None, "twice"
                state[i] = file.read(4)
        assert file.read() == b""
for name, state in states.items():
    print(name, hashlib.sha256(b"".join(state)).hexdigest())
END

# zero_run RANKS ARGUMENTS...: zero.bits, of the log, and zero.states
zero_run()
{
	zero_ranks=$1
	shift
	rm -rf zero.saved
	ranks "$zero_ranks" "$train" "$@" --checkpoint zero.saved \
		--checkpoint-every 0 --log zero.log
	bits zero.log >zero.bits
	"$python" states.py zero.saved >zero.states 2>&1
	zero_status=$status
}

# zero_reference RANKS ARGUMENTS...: what zero_same compares with
zero_reference()
{
	zero_run "$@"
	mv zero.bits zero.bits.wanted
	mv zero.states zero.states.wanted
	test "$zero_status" -eq 0 && test -s zero.bits.wanted &&
		grep -q '^param' zero.states.wanted
	result $? "$1 ranks without --zero"
}

# zero_same NAME RANKS ARGUMENTS...: with --zero 1, the same
zero_same()
{
	zero_name=$1
	shift
	zero_run "$@" --zero 1
	test "$zero_status" -eq 0 &&
		diff zero.bits.wanted zero.bits >why &&
		diff zero.states.wanted zero.states >why
	result $? "$zero_name: the same bits"
}

# A bucket has up to three blocks here; of more ranks, one of each.
test_zero()
{
	test_zero_pieces
	test_zero_refusals
	needs_worlds 'ranks that share the optimizer' || return 0
	zero_exact="--data $text --width 48 --context 32 --deterministic $(
		)--global-batch 8 --steps 8 --lr 3e-3 --eval-every 4 $(
		)--bucket-mib 0.05"
	for type in fp32 bf16 fp16; do
		zero_reference 1 $zero_exact --dtype $type --backend self
		for n in 1 2 4 8; do
			zero_same "$n ranks in $type" $n $zero_exact \
				--dtype $type --backend mpi
		done
	done
	zero_exact="$zero_exact --dtype fp16 --lr 2 --clip 0 --warmup 0"
	zero_reference 1 $zero_exact --max-bad-steps 9 --backend self
	check 'a step is skipped' grep '"skipped":true' zero.bits.wanted
	zero_same 'a step that is skipped' 2 $zero_exact --max-bad-steps 9
	test_zero_loose
	test_zero_empty
	test_zero_memory
	corruption 'parameters that differ on a rank with --zero 1' 2 \
		0 0.4 --steps 2 --check-every 1000000 --zero 1
}

# Behind a token table of 300 rows are 20 of zeros, which are no rank's.
test_zero_padded()
{
	needs_worlds 'a vocabulary of 300' || return 0
	make_tokens >padded
	zero_exact="--tokens padded --vocab 300 --width 48 --context 32 $(
		)--deterministic --global-batch 8 --steps 4 --bucket-mib 0.05"
	for type in fp32 bf16; do
		zero_reference 1 $zero_exact --dtype $type --backend self
		zero_same "2 ranks, a vocabulary of 300 in $type" 2 \
			$zero_exact --dtype $type --backend mpi
	done
}

# Without --deterministic ranks sum in the same order with and without it.
test_zero_loose()
{
	zero_loose="--data $text --context 32 --global-batch 12 --batch 2"
	against_one 3 $zero_loose --lr 1e-3 --zero 1
	zero_loose="$zero_loose --steps 10"
	for more in '' '--dtype bf16 --optimizer sgd --momentum 0.9' \
		'--dtype fp16 --overlap off --bucket-mib 0.1'; do
		zero_reference 2 $zero_loose $more
		zero_same "2 ranks with $more" 2 $zero_loose $more
	done
}

# The toy has one block: it is rank 0's.
test_zero_empty()
{
	for more in '--optimizer adamw' '--dtype bf16' \
		'--momentum 0.5 --dtype fp16'; do
		zero_reference 3 --model toy --steps 20 $more
		zero_same "ranks with nothing to update, $more" 3 --model toy \
			--steps 20 $more
	done
	equal 'a rank that has nothing saves nothing' 1 \
		"$(find zero.saved -name 'shard-*' | wc -l)"
}

# mebibytes OUT WHAT: what --plan says of it
mebibytes()
{
	sed -n "s,^  $2  *\([0-9.]*\) MiB\$,\1,p" "$1"
}

# Preset 10M has 10844160 parameters: 2647.5 blocks of 4096. In bf16, a bucket
# of 1 MiB has 128 of them, the next one the other 2519.5. Of eight ranks, rank
# 0 has 16 and 315, which are 331 * 4096 * 4 = 5423104 bytes of each state,
# 5.17 MiB. In fp32 buckets have 64, 1600 and 983.5; of two ranks, rank 0 has
# 32 + 800 + 492 = 1324: 20.69 MiB. The smallest buckets of eight ranks have
# eight blocks each: of 330 of them and of the last 7.5, rank 0 has one, 331.
test_zero_memory()
{
	ranks 8 "$train" --data "$text" --preset 10M --dtype bf16 --zero 1 \
		--plan
	equal 'memory of eight ranks in bf16' '10.3 5.2' \
		"$(mebibytes out optimizer) $(mebibytes out 'fp32 master .*')"
	ranks 8 "$train" --data "$text" --preset 10M --zero 1 --plan \
		--bucket-mib 0.001
	equal 'memory of small buckets' 10.3 "$(mebibytes out optimizer)"
	ranks 2 "$train" --data "$text" --preset 10M --zero 1 --plan
	equal 'memory of two ranks in fp32' '41.4 ' \
		"$(mebibytes out optimizer) $(mebibytes out 'fp32 master .*')"
	ranks 2 "$train" --data "$text" --preset 10M --zero 1 --plan \
		--optimizer sgd --momentum 0.9
	equal 'memory of two ranks by SGD' 20.7 "$(mebibytes out optimizer)"
	ranks 2 "$train" --data "$text" --preset 10M --plan
	equal 'memory without --zero' 82.7 "$(mebibytes out optimizer)"
}

test_zero_pieces()
{
	program pieces
	call timeout 60 "$program"
	test "$status" -eq 0 && grep -q '^1\.\.18$' out &&
		! grep -v '^ok \|^1\.\.' out
	result $? 'values have the same bits in one call and piece by piece'
}

test_zero_refusals()
{
	refuses_each 2 <<-END
	--zero 2 is not there: the ranks can share the optimizer, --zero 1, but not|--zero 2
	--zero '4' is not a whole number from 0 to 3|--zero 4
	--zero 'on' is not a whole number|--zero on
	--zero needs a value|--zero
	END
}

# Half of a run by some ranks, the other half by others, as in checkpoint.sh
test_zero_resume()
{
	needs_worlds 'checkpoints with --zero' || return 0
	build_preload 'a run with --zero that is killed goes on' || return 0
	small="$exact --bucket-mib 0.05"
	full_run 1 $small --backend self
	again="--data $text --zero 0"
	same_half 4 2 $small --zero 1
	grep -q '^--zero is 0, was 1$' out
	result $? 'a change of --zero is said'
	again="--data $text --zero 1"
	same_half 2 4 $small
	again="--data $text --bucket-mib 25"
	same_half 4 2 $small --zero 1
	again="--data $text --zero 1 --backend mpi"
	same_half 8 1 $small --zero 1
	for type in bf16 fp16; do
		full_run 1 $small --dtype $type --backend self
		again="--data $text --zero 0"
		same_half 4 2 $small --dtype $type --zero 1
		again="--data $text --zero 1"
		same_half 2 4 $small --dtype $type
	done
	full_run 1 $small --optimizer sgd --momentum 0.9 --backend self
	again="--data $text --zero 1"
	same_half 1 2 $small --optimizer sgd --momentum 0.9
}
