# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016,SC2086 # variables of run; several arguments
# A save that does not come to its end, and checkpoints that are broken: there
# is always one to go on from, and one sentence says what is wrong.

# begin_saved: a run with a checkpoint of step 10 that is to go on
begin_saved()
{
	rm -rf saved first
	call timeout 60 "$train" --model toy --steps 10 \
		--checkpoint "$scratch/saved" --checkpoint-every 5 --deterministic
	cp -r saved first
}

# loads_on STEP: whether what is saved loads, is of STEP, and has its bits
loads_on()
{
	timeout 60 "$train" --checkpoint "$scratch/saved" --resume \
		--steps 20 --log log >again.out 2>again.err
	again_status=$?
	from=$(sed -n 's/^resumed from .*step-\([0-9]*\).*/\1/p' again.out)
	cat again.out again.err >why
	test "$again_status" -eq 0 && test "${from:-0}" -ge "$1" || return
	grep '"step":20,' log | sed 's/,"seconds".*//' >had
	cmp -s had wanted || test "$from" -eq 20
}

# The process is killed at each call of the save, and each time it goes on.
# kill_at_each NAME RANKS RANK
kill_at_each()
{
	each_name=$1 each_ranks=$2 each_rank=$3 k=0
	while test "$k" -lt 100; do
		k=$((k + 1))
		rm -rf saved
		cp -r first saved
		ranks "$each_ranks" ./preloaded \
			"SAVE_KILL=$k SAVE_RANK=$each_rank" "$train" \
			--checkpoint "$scratch/saved" --resume --steps 20 \
			--keep 1 --backend ${each_backend:-auto}
		test "$status" -ne 0 || break
		loads_on 10 || break
	done
	# The last one, which no call has ended, has made some twenty.
	test "$status" -eq 0 && test "$k" -gt "$4" && test "$k" -lt 100
	result $? "$each_name"
	echo "# $each_name: $((k - 1))"
}

test_kills()
{
	build_preload 'a process that is killed as it saves' || return 0
	call timeout 60 "$train" --steps 20 --deterministic --log log
	grep '"step":20,' log | sed 's/,"seconds".*//' >wanted
	begin_saved
	kill_at_each 'killed at each call of a save' 1 0 20
	needs_worlds 'a rank that is killed as it saves' || return 0
	each_backend=mpi
	kill_at_each 'rank 0 of 2 is killed at each call' 2 0 20
	kill_at_each 'rank 1 of 2 is killed at each call' 2 1 8
	each_backend=auto
}

# killed_well: whether the run was alive until it was killed, went on from the
# step before or a later one, and complained of nothing but half a save
killed_well()
{
	from=$(sed -n 's/^resumed from .*step-\([0-9]*\).*/\1/p
		s/^no checkpoint in .*/0/p' out)
	printf 'exit code %s, from %s after %s, kill %s\n' "$status" \
		"${from:-nothing}" "$last" "$k" >why
	test "$status" -eq 137 && test "${from:-$last}" -ge "$last" &&
		! grep '^ddp-train: ' err | grep -qv \
		'^ddp-train: the save of saved/step-[0-9]* did not come to its end$'
}

# SIGKILL at random moments, time after time, while it saves whenever it can:
# each attempt goes on from the one before, and the end has the bits of a run
# that is not killed.
test_random_kills()
{
	kills=40
	test "$long" = no || kills=1000
	endless="--data $text --deterministic --width 16 --context 8 $(
		)--schedule constant --warmup 0"
	rm -rf saved log
	last=0 k=0
	while test "$k" -lt "$kills"; do
		"$train" $endless --steps 1000000000 --checkpoint saved \
			--resume --checkpoint-every 1 >out 2>err </dev/null &
		run=$!
		reaches "$run" test -s out || break
		sleep "0.$(shuf -n 1 -i 1-3)$(shuf -n 1 -i 0-9)"
		kill -KILL "$run"
		wait "$run" 2>/dev/null
		status=$?
		killed_well || break
		k=$((k + 1))
		last=$(newest saved)
		last=${last:-0}
	done
	test "$k" -eq "$kills" && test "$last" -gt 0
	result $? "$kills times killed at a random moment: nothing is lost"
	steps=$((last + 20))
	call timeout 500 "$train" --data "$text" --checkpoint saved --resume \
		--steps $steps --log log
	bits log >had
	call timeout 500 "$train" $endless --steps $steps --log log
	bits log | tail -n "$(wc -l <had)" >wanted
	test -s had && diff wanted had >why
	result $? "a run killed $kills times has its bits after $last steps"
}

# The order in which calls were made, of two ranks: the file of the lock has its
# text and no more, what is renamed was synced, the manifest comes when all
# shards are in their synced folder, and what was before is removed when the
# manifest is there, too.
test_order()
{
	needs_worlds 'the order of a save' || return 0
	build_preload 'the order of a save' || return 0
	begin_saved
	ranks 2 ./preloaded "SAVE_TRACE=$scratch/trace" "$train" --steps 15 \
		--checkpoint "$scratch/saved" --resume --keep 1 \
		--checkpoint-every 0
	"$python" - trace "$scratch/saved" >why 2>&1 <<-END
	import os, sys
	calls = [line.split(None, 1) for line in open(sys.argv[1])]
	calls = [(name, path.strip()) for name, path in calls]
	folder = sys.argv[2] + "/step-15"
	owner = sys.argv[2] + "/.ddp-train-owner"
	assert [name for name, path in calls if path == owner and
	        name != "close"] == ["open", "pwrite", "ftruncate", "fsync"], calls
	renamed = [i for i, call in enumerate(calls) if call[0] == "rename"]
	assert len(renamed) == 3, calls
	assert calls[renamed[2]][1] == folder + "/manifest", calls
	def find(name, path, begin=0):
	    return calls.index((name, path), begin)
	for i in renamed:
	    path = calls[i][1]
	    beside = [call[1] for call in calls[:i] if call[0] == "fsync" and
	              call[1].startswith(path + ".")]
	    assert len(beside) == 1, (path, calls)
	    wrote = max(j for j, call in enumerate(calls)
	                if call == ("write", beside[0]))
	    assert wrote < find("fsync", beside[0]) < i, calls
	    after = find("fsync", folder, i)
	    if i != renamed[2]:
	        assert after < find("open", folder + "/manifest" +
	                            beside[0][-22:]), calls
	removed = min(j for j, call in enumerate(calls) if j > renamed[2]
	              and call[0] == "unlinkat")
	assert find("fsync", folder, renamed[2]) < removed, calls
	assert find("fsync", sys.argv[2], renamed[2]) < removed, calls
	END
	result $? 'a file is synced before it is renamed, its folder after'
}

# broken NAME WORDS COMMAND: the newest checkpoint is broken by COMMAND, in
# its folder; the one before serves, and WORDS say why
broken()
{
	rm -rf saved
	cp -r first saved
	(cd saved/step-10 && eval "$3") >why 2>&1
	call timeout 60 "$train" --checkpoint saved --resume --steps 12
	test "$status" -eq 0 && grep -q '^resumed from saved/step-5$' out &&
		test "$(wc -l <err)" -eq 1 && grep -q -- \
	"^ddp-train: the checkpoint saved/step-10 is broken: .*$2.*takes step-5$" \
		err
	result $? "broken: $1"
}

test_broken()
{
	rm -rf first
	call timeout 60 "$train" --model toy --steps 10 \
		--checkpoint first --checkpoint-every 5
	rm -rf first/step-5
	call timeout 60 "$train" --model toy --steps 5 --checkpoint five
	mv five/step-5 first/step-5
	shard='$(ls shard-*)'
	broken 'a flipped byte' 'has another checksum' \
		"printf x | dd of=$shard bs=1 seek=100 conv=notrunc"
	# Value 25 is in 2.weight, which begins at 16, value 3 in 2.bias.
	broken 'a parameter that is no number' \
		'has a value in 2.weight of param that is not a finite number' \
		"put_value 100 '\\0\\0\\300\\177'"
	broken 'a parameter that is infinite' \
		'has a value in 2.bias of param that is' \
		"put_value 12 '\\0\\0\\200\\377'"
	broken 'a shard that is cut' 'has 700 bytes in place of 832' \
		"truncate -s 700 $shard"
	broken 'a shard that is longer' 'has 708 bytes in place of 832' \
		"truncate -s 708 $shard"
	broken 'a missing shard' 'shard-.*: No such file' "rm $shard"
	broken 'a flipped byte of the manifest' 'manifest has another checksum' \
		"sed -i 's/^seconds ./seconds 9/' manifest"
	broken 'a manifest that is cut' 'manifest ends early' \
		'truncate -s 300 manifest'
	broken 'an empty manifest' 'is not one of ddp-train' ': >manifest'
	broken 'a pipe for a manifest' 'manifest is not a file' \
		'rm manifest; mkfifo manifest'
	broken 'a link for a shard' 'shard-.*: Too many levels' \
		"cp $shard copy; ln -sf copy $shard"
	broken 'a manifest of another step' 'its manifest is of step 5' \
		'cp ../step-5/* .'
	broken 'a shard that the manifest does not name' 'lacks shards' \
		"forge '/^range/s/ 0 208/ 0 96/'"
	broken 'a gap' 'lacks shards from value 96' \
		"forge '/^range/{s/ 0 208/ 0 96/p;s/ 0 96/ 97 208/}'"
	broken 'a shard beyond the end' 'has shards beyond its 208 values' \
		"forge '/^range/{p;s/ 0 208/ 300 508/}'"
	broken 'a range too many' 'manifest has value 0 twice' \
		"forge '/^range/p'"
	broken 'ranges that overlap' 'manifest has value 95 twice' \
		"forge '/^range/{s/ 0 208/ 0 96/p;s/ 0 96/ 95 208/}'"
	broken 'a range of no shard' 'a line that ddp-train does not write' \
		"forge '/^shard/{h;d};/^range/{G}'"
	broken 'a shard that is too long' 'has shards beyond its 208 values' \
		"forge '/^range/s/ 0 208/ 0 209/'"
	broken 'more than a range has' 'a line that ddp-train does not write' \
		"forge '/^range/s/$/ 77 junk/'"
	broken 'a number with a sign' 'a line that ddp-train does not write' \
		"forge '/^updates/s/ / +/'"
	broken 'a number that is below 0' \
		'a line that ddp-train does not write' \
		"forge '/^bad-steps/s/ .*/ -1/'"
	broken 'more values than fit' 'a line that ddp-train does not write' \
		"forge '/^values/s/ .*/ 18446744073709551615/'"
	broken 'a number above 64 bits' 'a line that ddp-train does not write' \
		"forge '/^updates/s/ .*/ 18446744073709551616/'"
	broken 'a checksum that is short' 'a line that ddp-train does not ' \
		"forge '/^shard/s/.$//'"
	rm -rf saved
	cp -r first saved
	for version in 1 3; do
		sed -i "1s/[0-9]*$/$version/" saved/step-10/manifest
		refuses "version $version, which is not broken" 2 "$(
			)saved/step-10 cannot be read: it is of version $(
			)$version, and this ddp-train reads version 2; $(
			)put that right, $(
			)or name another --checkpoint" "$train" --checkpoint saved --resume
		! grep -q remove err
		result $? "version $version is not offered for removal"
	done
	rm -rf saved
	cp -r first saved
	for folder in saved/*; do : >"$folder/manifest"; done
	refuses 'all are broken' 2 '--resume: no checkpoint in saved is whole' \
		"$train" --checkpoint saved --resume
	test -e saved/step-5/manifest && test -e saved/step-10/manifest
	result $? 'checkpoints stay if all are broken'
	test_foreign
}

# reads ZERO: how many times all bytes of the checkpoint are read by four ranks
# that go on with --zero ZERO
reads()
{
	rm -f reads
	rm -rf saved
	cp -r first saved
	ranks 4 ./preloaded "SAVE_READS=$scratch/reads" "$train" \
		--data "$text" --checkpoint "$scratch/saved" --resume \
		--steps 6 --zero "$1"
	test "$status" -eq 0 || return
	size=$(cat first/step-4/shard-* | wc -c)
	awk -v size="$size" '{ n += $1 } END { printf "%.2f\n", n / size }' reads
}

# Each shard is checked by one rank, and all ranks hear of one that is broken.
test_check_together()
{
	needs_worlds 'ranks that check a checkpoint together' || return 0
	build_preload 'ranks that check a checkpoint together' || return 0
	rm -rf first
	ranks 4 "$train" --data "$text" --steps 4 --checkpoint first \
		--checkpoint-every 2 --zero 1
	equal 'to go on, ranks read all once, and each the part that it updates' \
		2.00 "$(reads 1)"
	equal 'ranks without --zero read all, each of them' 5.00 "$(reads 0)"
	for shard in 0 3; do
		rm -rf saved
		cp -r first saved
		printf x | dd of="$(echo saved/step-4/shard-$shard-*)" bs=1 \
			seek=100 conv=notrunc 2>/dev/null
		ranks 4 "$train" --data "$text" --checkpoint saved --resume \
			--steps 6
		test "$status" -eq 0 &&
			grep -q '^resumed from saved/step-2$' out &&
			grep -q "^ddp-train: the checkpoint saved/step-4 is $(
			)broken: rank $shard on $(uname -n): shard-$shard-of-4$(
			).* has another checksum .* takes step-2$" err
		result $? "a broken shard $shard is found by all ranks together"
	done
	for folder in saved/step-*; do
		printf x | dd of="$(echo "$folder"/shard-2-*)" bs=1 seek=100 \
			conv=notrunc 2>/dev/null
	done
	ranks 4 "$train" --data "$text" --checkpoint saved --resume --steps 6
	test "$status" -eq 2 && test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep -q '^ddp-train: --resume: no checkpoint in saved is ' err
	result $? 'no rank trains if all checkpoints are broken'
}

# What a run did not write itself stays, however much it looks like that.
test_foreign()
{
	rm -rf saved
	mkdir -p saved/step-3
	for name in manifest.json manifest.0123456789abcdef.part.txt \
		shard-00000.tokens shard-0-of-1.txt .ddp-train-notes \
		step-3/shard-00000.tokens step-3/manifest.json; do
		echo mine >"saved/$name"
	done
	find saved -type f | sort >wanted
	for name in step-3/shard-1-of-2 \
		step-3/shard-0-of-2.0123456789abcdef step-3/manifest.part; do
		echo left >"saved/$name"
	done
	call timeout 60 "$train" --model toy --steps 3 --checkpoint saved \
		--checkpoint-every 1 --keep 1
	rm -f saved/.ddp-train-owner saved/step-3/manifest saved/step-3/shard-0-of-1.????????????????
	find saved -type f | sort >had
	test "$status" -eq 0 && diff wanted had >why
	result $? 'files that are not of a checkpoint stay in its folder'
}

# forge SED: change a manifest, and give it the right checksum
forge()
{
	sed -i "$1" manifest
	"$python" -c 'import zlib
text = open("manifest", "rb").read().rsplit(b"crc ", 1)[0]
open("manifest", "wb").write(text + b"crc %08x\n" % zlib.crc32(text))'
}

# forge_shard BYTES SED: the shard gets another length, and its checksum, too
forge_shard()
{
	truncate -s "$1" shard-*
	forge "$2;/^shard/s/[0-9a-f]*\$/$("$python" -c 'import sys, zlib
print("%08x" % zlib.crc32(open(sys.argv[1], "rb").read()))' shard-*)/"
}

# put_value OFFSET BYTES: into the shard, which gets its checksum
put_value()
{
	# shellcheck disable=SC2059 # octal for bytes
	printf "$2" | dd of="$(echo shard-*)" bs=1 seek="$1" conv=notrunc
	forge_shard 832 ''
}

# other_model NAME WHAT COMMAND: the checkpoint is whole, but COMMAND in its
# folder makes its parameters or states, which is WHAT, those of another model
other_model()
{
	rm -rf saved
	cp -r first saved
	(cd saved/step-10 && eval "$3") >why 2>&1
	call timeout 60 "$train" --checkpoint saved --resume --steps 12
	diff - err >why <<-END
	ddp-train: --resume: saved/step-10 is of another model: its $2 are not $(
	)those of this one; name the --checkpoint of this model
	END
	test ! -s why && test "$status" -eq 2 && ! grep -q '^step' out
	result $? "a checkpoint of another model is refused: $1"
}

# The toy with momentum has 208 values of each of two states.
test_other_model()
{
	rm -rf first
	call timeout 60 "$train" --model toy --steps 10 --momentum 0.9 \
		--checkpoint first
	other_model 'another name' parameters \
		"forge '/^parameter 0.bias /s/0.bias/1.bias/'"
	other_model 'another place' parameters \
		"forge '/^parameter 2.bias /s/ 0 / 16 /'"
	other_model 'another shape' parameters \
		"forge '/^parameter 0.weight /s/ 10 10\$/ 20 5/'"
	other_model 'a tensor too few' parameters "forge '/^parameter 2.bias/d'"
	other_model 'more values' parameters \
		"forge_shard 1792 '/^values\|^range/s/208\$/224/'"
	other_model 'no v' "optimizer's states" "forge_shard 832 '/^state v/d'"
	other_model 'a state too many' "optimizer's states" \
		"forge_shard 2496 '/^state v/{p;s/v/w/}'"
	other_model 'another state' "optimizer's states" \
		"forge '/^state v/s/v/m/'"
}

# unwritten NAME WORDS STATUS COMMAND...: a save fails, one sentence has WORDS,
# and the checkpoint before is as it was
unwritten()
{
	unwritten_name=$1 unwritten_words=$2 unwritten_status=$3
	shift 3
	rm -rf saved
	cp -r first saved
	call timeout 120 "$@" "$train" --checkpoint "$scratch/saved" --resume \
		--steps 20 --checkpoint-every 0
	test "$status" -eq "$unwritten_status" &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep '^ddp-train: ' err | grep -q -- "$unwritten_words" &&
		diff -r first/step-10 saved/step-10 >why
	result $? "a checkpoint is not written: $unwritten_name"
}

test_unwritten()
{
	build_preload 'saves that fail' || return 0
	begin_saved
	while IFS='|' read -r name number words; do
		unwritten "$name fails" "step-20/$words.*; the checkpoint of $(
			)step 10 is whole" 1 ./preloaded "$(
			)SAVE_DIR=$scratch/saved/step-20 SAVE_FAIL=$name:$number"
		test ! -e saved/step-20/manifest &&
			! find saved -name '*.part' | grep . >why
		result $? "a save whose $name fails leaves nothing half done"
	done <<-END
	mkdir|13|shard-0-of-1.*: Permission denied; make it
	open|30|shard-0-of-1.*: Read-only file system; make it
	write|28|shard-0-of-1.*: No space left on device; make room
	fsync|5|shard-0-of-1.*: Input/output error
	sync_file_range|5|shard-0-of-1.*: Input/output error
	rename|122|shard-0-of-1.*: Disk quota exceeded; make room
	write|5|shard-0-of-1.*: Input/output error; make it
	close|5|shard-0-of-1.*: Input/output error; make it
	END
	find saved/step-20 >why 2>&1
	result $((! $?)) 'nor a folder without a checkpoint'
	unwritten 'the file of the lock cannot be cut' \
		'cannot be written: Input/output error; name a folder' 1 \
		./preloaded SAVE_FAIL=ftruncate:5
	rm -rf saved
	cp -r first saved
	call timeout 60 ./preloaded SAVE_FAIL=sync_file_range:22 "$train" \
		--checkpoint "$scratch/saved" --resume --steps 20
	equal 'a file system that cannot begin to sync will do' 0 "$status"
	test_short_writes
	needs_worlds 'saves that fail on a rank' || return 0
	unwritten 'the disk of rank 1 is full' \
		'^ddp-train: rank 1 on .*: No space left' 1 \
		mpirun -n 2 ./preloaded "SAVE_RANK=1 SAVE_FAIL=write:28$(
		) SAVE_DIR=$scratch/saved/step-20"
}

# A write may write less than it was asked to.
test_short_writes()
{
	rm -rf saved other
	cp -r first saved
	cp -r first other
	call timeout 60 ./preloaded SAVE_SHORT=100 "$train" --resume \
		--checkpoint "$scratch/saved" --steps 20
	call timeout 60 "$train" --checkpoint saved --resume --steps 25 \
		--log short.log
	call timeout 60 "$train" --checkpoint other --resume --steps 25 \
		--log whole.log
	bits whole.log | tail -n 5 >wanted
	bits short.log >had
	test "$(wc -l <had)" -eq 5 && diff wanted had >why
	result $? 'writes that are short make the same checkpoint'
}

# ends_in NAME WORDS COMMAND...: training ends, and one sentence has WORDS
ends_in()
{
	ends_name=$1 ends_words=$2
	shift 2
	call timeout 60 "$@"
	test "$status" -eq 1 && test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep '^ddp-train: ' err | grep -q -- "$ends_words"
	result $? "$ends_name"
}

# What the kernel itself does not allow, in a mount namespace of its own.
test_folders()
{
	echo file >file
	refuses 'a file in place of a folder' 2 \
		'--checkpoint file is a file or lies below one; name a folder' \
		"$train" --model toy --checkpoint file
	refuses 'a folder in none' 2 '--checkpoint none/saved: cannot be written' \
		"$train" --model toy --checkpoint none/saved
	if ! unshare -m true 2>why; then
		skip 'folders of other file systems' 'no mount namespaces'
		return
	fi
	begin_saved
	unwritten 'the folder is read-only' \
		'cannot be written: Read-only file system; name a folder' 2 \
		unshare -m sh -c 'mount --bind "$0" "$0" &&
			mount -o remount,ro,bind "$0" && exec "$@"' \
		"$scratch/saved"
	ends_in 'a disk that is full' 'No space left on device; make room' \
		unshare -m sh -c 'mkdir -p full && mount -t tmpfs \
			-o size=64k none full && exec "$@"' - "$train" \
		--data "$text" --checkpoint full --steps 1
	rm -rf place taken
	# Or, in the middle of a save, in a folder of that.
	ends_in 'another folder in its place' \
		"--checkpoint place.*\\(is no longer the folder of this run\\|$(
		)No such file or directory; bring the folder back\\)" \
		sh -c 'mkdir place; "$@" & run=$!
			until find place -name manifest | grep -q . ||
				! kill -0 "$run"; do sleep 0.02; done
			mv place taken; mkdir place; wait "$run"' - "$train" \
		--model toy --checkpoint place --steps 1000000 \
		--checkpoint-every 1
	find place -name manifest >why
	test ! -s why
	result $? 'a folder that takes the place gets no checkpoint'
	ends_in 'a folder that vanishes' \
		'No such file or directory; bring the folder back, or name ' \
		sh -c 'mkdir gone; "$@" & run=$!
			until find gone -name manifest | grep -q . ||
				! kill -0 "$run"; do sleep 0.02; done
			mv gone away; wait "$run"' - "$train" \
		--model toy --checkpoint gone --steps 1000000 \
		--checkpoint-every 1
	kept=$(newest away)
	call timeout 60 "$train" --checkpoint away --resume \
		--steps $((kept + 20))
	test "$status" -eq 0 && test "$kept" -gt 0 &&
		grep -q "^resumed from away/step-$kept$" out &&
		! grep '^ddp-train: ' err | grep -v 'not come to its end$'
	result $? 'the last save is whole where the folder is now'
	needs_worlds 'folders that ranks do not share' || return 0
	refuses 'a folder that is another one for rank 1' 2 \
		"rank 1 on $(uname -n): --checkpoint saved is not the folder" \
		mpirun -n 2 sh -c 'test "$OMPI_COMM_WORLD_RANK" = 0 ||
			exec unshare -m sh -c "mount -t tmpfs none saved &&
				exec \"\$0\" \"\$@\"" "$@"
			exec "$@"' - "$train" --checkpoint saved --steps 20 \
		--resume --model toy
}
