# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables and functions of run and train.sh
# ddp-train on several ranks, which share one GPU and meet by NCCL: slowly, but
# with the code, libraries and messages of a GPU a rank.

# several RANKS NAME ARGUMENT...: a run of tiny, whose log is NAME.log
several()
{
	several_ranks=$1 several_name=$2
	shift 2
	rm -f "$several_name.log"
	# shellcheck disable=SC2086 # several arguments
	call start "$several_ranks" env DDP_MODULE_DIR="$build/obj/bin" \
		"$train" $tiny --device cuda --share-gpu --timeout 120 \
		--check-every 1 "$@" --log "$scratch/$several_name.log"
}

# lose_as_one RANKS TYPE ARGUMENT...: as one rank does with the same batch, and
# --check-every says that the ranks' parameters are equal bit by bit
lose_as_one()
{
	lose_ranks=$1 lose_type=$2
	shift 2
	eval "most=\$apart_$lose_type"
	several "$lose_ranks" many --dtype "$lose_type" "$@"
	trained 20 '^backend nccl, device cuda ('
	result $? "$lose_ranks ranks of $launcher in $lose_type: $*"
	close "one.$lose_type" many 20 "$most"
	result $? "$lose_ranks ranks lose as one in $lose_type: apart by $worst"
}

# The same command again: the same bits, as nothing is summed in another order.
ranks_again()
{
	several 4 first --dtype bf16 --bucket-mib 0.1
	several 4 second --dtype bf16 --bucket-mib 0.1
	same first second
	result $? '4 ranks again: the same bits'
}

# --deterministic: the bits do not depend on the number of ranks.
ranks_deterministic()
{
	for type in fp32 bf16; do
		# shellcheck disable=SC2086 # several arguments
		train one $tiny --deterministic --device cuda --dtype $type
		for count in 2 4; do
			several $count many --deterministic --dtype $type \
				--bucket-mib 0.1
			trained 20 '^backend nccl, device cuda (' &&
				same one many
			result $? "$count ranks, --deterministic: the bits$(
				) of one rank in $type"
		done
		several 4 many --deterministic --dtype $type --zero 1
		same one many
		result $? "4 with --zero 1 have the bits of one rank in $type"
	done
}

gpu_ranks()
{
	can_train 'ranks on one GPU' || return 0
	if test "$(config HAVE_PMIX)" != yes; then
		omit 'ranks on one GPU' 'ddp-train was built without PMIx'
		return
	fi
	choose
	if test -z "$launcher"; then
		omit 'ranks on one GPU' \
			'neither a sandbox nor mpirun nor prterun'
		return
	fi
	for type in $types; do
		# shellcheck disable=SC2086 # several arguments
		train "one.$type" $tiny --device cuda --dtype "$type"
		for count in 2 4; do
			lose_as_one $count "$type" --bucket-mib 0.1
			lose_as_one $count "$type" --zero 1
		done
	done
	lose_as_one 2 fp32 --overlap off
	ranks_again
	ranks_deterministic
}
