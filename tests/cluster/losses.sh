# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# ddp-train's losses do not depend on the number of ranks; a run that cannot
# train prints one sentence and ends.

cluster --nodes 2 --gpus 2

# agree FILE FILE: whether these logs of ddp-train have the same 50 losses
agree()
{
	sed -n 's/.*"loss":\([^,]*\).*/\1/p' "$1" >one.losses
	sed -n 's/.*"loss":\([^,]*\).*/\1/p' "$2" | paste one.losses - | awk '
	{ d = ($1 - $2) / $1; if (d > 1e-6 || d < -1e-6) { bad = 1; print } }
	END { exit bad || NR != 50 }'
}

# agree_in_16_bit TYPE: as fp32 up to TYPE's noise, of which there is some
agree_in_16_bit()
{
	sed -n 's/.*"loss":\([^,]*\).*/\1/p' "$1.log" | paste one.losses - | awk '
	{ d = $2 / $1 - 1; d = d < 0 ? -d : d; worst = d > worst ? d : worst }
	END { print "at most " worst; exit !(NR == 50 && worst < 0.02 &&
		worst > 0) }'
}

# same_bits: one step after the other, the same run in several layouts
same_bits()
{
	while read -r layout; do
		# shellcheck disable=SC2086 # several arguments
		call login srun --ddp --overcommit $layout ddp-train \
			--data $text --context 32 --steps 8 --deterministic \
			--global-batch 8 --log log
		sed 's/"seconds".*//' log >bits
		test -e wanted.bits || cp bits wanted.bits
		rm -f log
		test "$status" -eq 0 && test "$(wc -l <bits)" -eq 8 &&
			diff wanted.bits bits >why
		result $? "--deterministic has the bits of one rank with $layout"
	done <<-END
	-N1 -n1
	-N1 -n2
	-N2 -n2
	-N2 -n4
	-N2 -n4 -m plane=3
	-N2 -n4 -m cyclic
	-N2 -n8
	-N2 -n8 -m plane=5
	END
}

# same_bits_zero: likewise the ranks that share the optimizer, in buckets of
# which each rank of both nodes has a part
same_bits_zero()
{
	for zero in 0 1; do
		rm -f log
		call login srun --ddp --overcommit -N2 -n4 ddp-train \
			--data $text --context 32 --steps 8 --deterministic \
			--global-batch 8 --bucket-mib 0.05 --zero $zero \
			--log log
		sed 's/"seconds".*//' log >"zero.$zero"
		test "$status" -eq 0 && test "$(wc -l <"zero.$zero")" -eq 8
		result $? "two nodes train with --zero $zero"
	done
	check 'two nodes with --zero 1 have the bits of --zero 0' \
		diff zero.0 zero.1
}

# same_bits_resumed: four steps on some ranks and nodes, then four on others,
# are the eight of one rank
same_bits_resumed()
{
	while IFS='|' read -r layout other; do
		rm -rf log saved
		# shellcheck disable=SC2086 # several arguments
		call login srun --ddp --overcommit $layout ddp-train \
			--data $text --context 32 --steps 8 --deterministic \
			--global-batch 8 --bucket-mib 0.05 --zero 1 --log log \
			--checkpoint saved --checkpoint-every 4
		rm -r saved/step-8
		# shellcheck disable=SC2086
		call login srun --ddp --overcommit $other ddp-train \
			--data $text --checkpoint saved --resume --log log
		sed 's/"seconds".*//' log >bits
		test "$status" -eq 0 && diff wanted.bits bits >why &&
			grep -q '^resumed from saved/step-4$' out
		result $? "a run of $layout goes on with $other: the same bits"
	done <<-END
	-N2 -n4|-N1 -n2
	-N1 -n2|-N2 -n4
	END
}

# complains STATUS WORDS CMD...: it ends with STATUS, and its ranks print one
# sentence with WORDS; the supervisor says which rank it was
complains()
{
	complains_status=$1 complains_words=$2
	shift 2
	call login "$@"
	test "$status" -eq "$complains_status" && ! test -s out &&
		test "$(grep -vcE '^(srun: |slurm-ddp: |slurmstepd-[^:]*: |\[[-0-9T:.]+\] )' err)" = 1 &&
		grep '^ddp-train: ' err | grep -qF -- "$complains_words"
	result $? "$* ends with one sentence: $complains_words"
}

text=/usr/share/common-licenses/GPL-3
if test -z "$train"; then
	skip 'losses' 'ddp-train was not built'
elif ! grep -q '^#define HAVE_MPI' "$build/config.h"; then
	skip 'losses' 'ddp-train was built without MPI'
else
	call login srun --ddp -N2 --gres=gpu:2 ddp-train --data $text \
		--steps 50 --batch 4 --log four.log
	call login srun --ddp -N2 --gres=gpu:1 ddp-train --data $text \
		--steps 50 --batch 8 --log two.log
	call login srun --ddp ddp-train --data $text --steps 50 --batch 16 \
		--log one.log
	check '4 ranks have the losses of one with 4 times the batch' \
		agree one.log four.log
	check '2 ranks those of one with twice the batch' \
		agree one.log two.log
	for type in bf16 fp16; do
		call login srun --ddp -N2 --gres=gpu:1 ddp-train \
			--data $text --steps 50 --batch 8 --dtype $type \
			--log $type.log
		check "2 ranks in $type those of fp32, up to its noise" \
			agree_in_16_bit $type
	done
	same_bits
	same_bits_zero
	same_bits_resumed
	# shellcheck source=tests/train/allreduce_nodes.sh
	. "$here/../train/allreduce_nodes.sh"
	test_allreduce_nodes
	complains 1 'srun --ddp --mpi=pmix' \
		srun --ddp --mpi=none -N2 -n4 ddp-train
	complains 2 '--data missing' \
		srun --ddp -N2 --gres=gpu:2 ddp-train --data missing
	complains 1 'use srun --ddp' srun -N2 -n4 ddp-train
	# Open MPI says in its own words that it was not built for it.
	call login srun --ddp --mpi=pmi2 -N2 -n4 ddp-train
	test "$status" -ne 0 && ! test -s out && grep -qi pmix err
	result $? 'srun --ddp --mpi=pmi2 ddp-train ends and names PMIx'
fi
