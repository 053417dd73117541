# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# Who saves in a folder, and where: two runs at once, links, and file systems
# that show late, or not at all, what another node has made.

# begin_owner NAME COMMAND...: an endless run in the background, once it has
# saved; its process is $owner, and NAME.out and NAME.err have its output
begin_owner()
{
	begin_owner=$1
	shift
	: >"$begin_owner.out"	# not that of the run before
	"$@" --model toy --checkpoint "$scratch/saved" --steps 999999998 \
		>"$begin_owner.out" 2>"$begin_owner.err" </dev/null &
	owner=$!
	reaches "$owner" grep -q '^step [0-9]*  saved' "$begin_owner.out"
}

# end_owner SIGNAL: its exit code is in $owner_status
end_owner()
{
	kill "-$1" "$owner"
	reap "$owner"
	owner_status=$status
}

# has_lock PROCESS: whether it has opened the file of the lock
has_lock()
{
	find "/proc/$1/fd" -lname "*ddp-train-owner" | grep -q .
}

# in_use NAME WHO JOB COMMAND...: it says at once for whom it waits, and then
# that WHO has the folder
in_use()
{
	in_use_name=$1 in_use_who=$2 in_use_job=$3
	shift 3
	rm -f err
	in_use_begin=$(date +%s)
	"$@" >out 2>err </dev/null &
	second=$!
	reaches "$second" test -s err || return 0
	in_use_told=$(cat err)
	# After ten seconds it says more.
	test $(($(date +%s) - in_use_begin)) -lt 10 ||
		in_use_told=$(head -n 1 err)
	equal "$in_use_name is told at once for whom it waits" \
		"ddp-train: --checkpoint saved: waiting 10 s at most for $(
		)the end of another run that saves there, $in_use_who$(
		)$in_use_job" "$in_use_told"
	reap "$second"
	cp err why
	test "$status" -eq 1 && test "$(wc -l <err)" -eq 2 &&
		grep -q "^ddp-train: --checkpoint saved is in use by $(
		)another run, $in_use_who$in_use_job, since 20" err
	result $? "$in_use_name is refused"
}

test_owner()
{
	rm -rf saved
	begin_owner first "$train" --checkpoint-every 20000
	in_use 'a second run at once' "process $owner on $(uname -n)" '' \
		"$train" --checkpoint saved --resume --steps 999999999
	end_owner USR1
	cat first.err >why
	test "$owner_status" -eq 75 && ! test -s first.err &&
		timeout 60 "$train" --checkpoint saved --resume --plan >>why
	result $? 'a first run saves as ever beside a second one'
	begin_owner first "$train" --checkpoint-every 20000 --resume
	"$train" --checkpoint saved --resume --steps 999999999 >out 2>err &
	second=$!
	reaches "$second" has_lock "$second"
	# It waits for 10 s at most, however long the first one saves.
	kill -STOP "$second"
	end_owner USR1
	kill -CONT "$second"
	reap "$second"
	equal 'a run saves once more while another looks for its checkpoint' \
		1 "$status"
	check 'a run that finds a newer save says to start again' grep -q \
		'another run has just saved .*step-[0-9]*; start again' err
	begin_owner first "$train" --checkpoint-every 20000 --resume
	end_owner KILL
	call timeout 60 "$train" --checkpoint saved --resume --plan
	equal 'what was killed owns nothing' 0 "$status"
	test_attempts
	test_no_locks
}

# A lost node may hold its locks for ever, but Slurm has ended its processes.
test_attempts()
{
	rm -rf saved log
	begin_owner first env SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=c \
		"$train" --checkpoint-every 20000
	in_use 'a second step of a job' "process $owner on $(uname -n)" \
		', of job 7 of c' env SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=c \
		"$train" --checkpoint saved --resume --steps 999999999
	kill -STOP "$owner"
	env SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=c SLURM_RESTART_COUNT=1 \
		"$train" --checkpoint saved --resume --checkpoint-every 0 \
		--steps 999999999 --log log >out 2>err </dev/null &
	later=$!
	reaches "$later" test -s log
	kill -CONT "$owner"
	reap "$owner"
	owner_status=$status
	cp first.err why
	test "$owner_status" -eq 1 && grep -q "^ddp-train: --checkpoint $(
		)$scratch/saved was taken by another run, process $later on $(
		).*, of job 7 of c, since .*; this run saves no more" first.err
	result $? 'the earlier attempt of a job ends where a later one began'
	kill -USR1 "$later"
	reap "$later"
	cp err why
	test "$status" -eq 75 &&
		grep -q 'attempt before is still held; going on' err
	result $? 'the later attempt of a job saves'
}

# Without locks the later run has the folder, and the earlier one learns it.
test_no_locks()
{
	build_preload 'a file system without locks' || return 0
	rm -rf saved log
	begin_owner first ./preloaded SAVE_FAIL=fcntl:37 "$train" \
		--checkpoint-every 20000
	kill -STOP "$owner"
	./preloaded SAVE_FAIL=fcntl:37 "$train" --resume --checkpoint-every 0 \
		--checkpoint "$scratch/saved" --steps 999999999 --log log \
		>out 2>err </dev/null &
	later=$!
	reaches "$later" test -s log
	kill -CONT "$owner"
	reap "$owner"
	owner_status=$status
	kill -USR1 "$later"
	reap "$later"
	echo "$owner_status $status" >why
	grep -q '^1 75$' why && grep -q "is noticed late, as locks do $(
		)not work: No locks available" err &&
		grep -q 'was taken by another run' first.err
	result $? 'an earlier run without locks ends at its next save'
}

# Who can read the file of the lock can keep runs out.
test_lock_mode()
{
	rm -rf saved
	mkdir -m 755 saved
	touch saved/.ddp-train-owner
	chmod 644 saved/.ddp-train-owner
	call timeout 60 "$train" --model toy --steps 1 --checkpoint saved
	equal 'no other user can open the file of the lock' '0 600' \
		"$status $(stat -c %a saved/.ddp-train-owner)"
	rm -rf saved
	mkdir -m 775 saved
	chmod 775 saved
	test "$(id -u)" != 0 || chgrp 61001 saved
	call timeout 60 "$train" --model toy --steps 1 --checkpoint saved
	equal 'the group whose folder it is can open the file of the lock' \
		"0 660 $(stat -c %g saved)" \
		"$status $(stat -c '%a %g' saved/.ddp-train-owner)"
}

# A link is not followed: what lies outside stays as it is.
test_links()
{
	test_lock_mode
	rm -rf saved away
	mkdir -p saved away/step-20
	ln -s ../away/step-20 saved/step-20
	ends_in 'a link for the folder of a step' \
		'cannot write step-20/.*: Not a directory; remove what is' \
		"$train" --model toy --steps 20 --checkpoint saved
	equal 'a link for the folder of a step is not written through' '' \
		"$(find away -type f)"
	rm -rf saved
	mkdir saved
	ln -s ../away/owner saved/.ddp-train-owner
	refuses 'a link for the file of the lock' 2 \
		'--checkpoint saved: cannot be written: Too many levels of ' \
		"$train" --model toy --steps 20 --checkpoint saved
	test ! -e away/owner
	result $? 'the file of the lock is not made where a link leads'
}

# What other nodes have made may come into sight late, and must.
test_late()
{
	needs_worlds 'file systems that show files late' || return 0
	build_preload 'file systems that show files late' || return 0
	for late in '1 ddp-train-owner' '0 shard-1-of-2'; do
		rm -rf saved
		call timeout 120 mpirun -n 2 ./preloaded "SAVE_RANK=${late% *} $(
		) SAVE_LATE=${late#* }:5" "$train" --steps 20 \
			--model toy --checkpoint "$scratch/saved"
		test "$status" -eq 0 && test "$(newest saved)" = 20
		result $? "rank ${late% *} waits until it sees ${late#* }"
	done
	if ! unshare -m true 2>why; then
		skip 'a shard that rank 0 does not see' 'no mount namespaces'
		return
	fi
	begin_saved
	mkdir saved/step-20
	call timeout 120 mpirun -n 2 sh -c '
		test "$OMPI_COMM_WORLD_RANK" = 0 || exec unshare -m sh -c "
			mount -t tmpfs none saved/step-20 &&
				exec \"\$0\" \"\$@\"" "$@"
		exec "$@"' - "$train" --checkpoint saved --steps 20 --resume \
		--checkpoint-every 0
	test "$status" -eq 1 && grep -q "^ddp-train: rank 0 on .*: rank 0 $(
		)does not see the [0-9]* bytes of step-20/shard-1-of-2.* that a $(
		)rank has written; .*; the checkpoint of step 10 is whole" err
	result $? 'a shard that rank 0 does not see'
	test ! -e saved/step-20/manifest &&
		diff -r first/step-10 saved/step-10 >why
	result $? 'is not committed, and the checkpoint before stays'
}

# Of three checkpoints the newest are broken.
test_keep_broken()
{
	rm -rf saved
	for keep_step in 5 10 15; do
		call timeout 60 "$train" --steps $keep_step --keep 3 --resume \
			--model toy --checkpoint saved
	done
	for keep_step in 10 15; do
		truncate -s 700 saved/step-$keep_step/shard-*
	done
	call timeout 60 "$train" --steps 20 --checkpoint saved --resume \
		--keep 2
	equal 'broken checkpoints do not count as kept' '0 step-20 step-5' \
		"$status $(cd saved && echo step-*)"
	rm -rf saved
	for keep_step in 5 10 15; do
		call timeout 60 "$train" --steps $keep_step --keep 3 --resume \
			--model toy --checkpoint saved
	done
	truncate -s 700 saved/step-10/shard-*
	call timeout 60 "$train" --steps 20 --checkpoint saved --resume \
		--keep 3
	equal 'an older checkpoint that is broken does not count as kept' \
		'0 step-15 step-20 step-5' \
		"$status $(cd saved && echo step-*)"
}

# What a killed save has left is removed before the next run saves.
test_left()
{
	begin_saved
	mkdir saved/step-20
	for name in step-20/shard-0-of-1.0123456789abcdef.0123456789abcdef.part \
		step-20/shard-1-of-2.0123456789abcdef \
		step-10/manifest.0123456789abcdef.part; do
		echo left >"saved/$name"
	done
	call timeout 60 "$train" --checkpoint saved --resume --steps 12 \
		--checkpoint-every 0 --log /dev/full
	find saved/step-10 saved/step-20 -type f >had
	find first/step-10 -type f | sed s/first/saved/ >wanted
	test "$status" -eq 1 && diff wanted had >why
	result $? 'a run that then saves nothing has removed what was left'
}
