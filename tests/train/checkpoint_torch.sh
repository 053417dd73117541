# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# Checkpoints that PyTorch reads and writes, by checkpoint_torch.py.

in_torch()
{
	call env PYTHONPATH="$top/contrib/pytorch" timeout 120 "$python" \
		"$here/checkpoint_torch.py" "$@"
}

# evaluation STEP: the loss of held-out data in the log
evaluation()
{
	sed -n "s/^{\"step\":$1,\"eval_loss\":\([^}]*\)}$/\1/p" log
}

# The shards of four ranks have what one rank saves in one range. The 120576
# values are 29.44 blocks, and each bucket has one block for each rank: of the
# first seven buckets all four ranks have a part, of the rest two.
test_torch_shards()
{
	needs_worlds 'checkpoints of several ranks in PyTorch' || return 0
	rm -rf one four
	set -- "$train" --data "$text" --steps 10 --eval-every 10 \
		--deterministic
	ranks 1 "$@" --checkpoint one --backend self
	ranks 4 "$@" --checkpoint four --zero 1 --bucket-mib 0.05 --log log
	evaluation 10 >one.losses
	equal 'of four ranks each saves its parts' '4 30' \
		"$(grep -c '^shard ' four/step-10/manifest) $(
		grep -c '^range ' four/step-10/manifest)"
	in_torch same one four
	equal 'PyTorch reads the parts of four ranks as those of one' \
		0 "$status"
	in_torch read four "$text"
	cp out many.losses
	close one.losses many.losses 1 1e-6
	result $? "PyTorch has one rank's loss from the save of four ranks"
}

# PyTorch does not save where ddp-train does.
test_torch_lock()
{
	mkdir -p used
	"$train" --model toy --steps 999999998 --checkpoint used >lock.out \
		2>lock.err </dev/null &
	owner=$!
	reaches "$owner" grep -q '^step ' lock.out || return 0
	in_torch write used "$text"
	torch_status=$status
	end_owner KILL
	test "$torch_status" -ne 0 && grep -q "BlockingIOError: used is in use by $(
		)another run, process $owner on $(uname -n), since 20" err &&
		! test -e used/step-0
	result $? 'PyTorch does not save where ddp-train does'
	in_torch write used "$text"
	equal 'PyTorch saves when ddp-train has ended, locked to other users' \
		'0 600' \
		"$status $(stat -c %a used/.ddp-train-owner)"
}

# torch_broken NAME COMMAND: a checkpoint that COMMAND breaks
torch_broken()
{
	mkdir -p "broken/$1"
	cp -r toy/step-10 "broken/$1"
	(cd "broken/$1/step-10" && eval "$2")
}

# What a manifest says is not trusted. The toy has 208 values, of which 2.bias are
# the first 5.
test_torch_broken()
{
	if ! has_torch; then
		skip 'broken checkpoints in PyTorch' "no torch for $python"
		return
	fi
	rm -rf toy broken
	call timeout 60 "$train" --model toy --steps 10 --checkpoint toy
	torch_broken beyond "forge 's/^\(parameter 2.bias\) 0/\1 204/'"
	torch_broken gap "forge '/^range/{s/ 0 208/ 0 96/p;s/ 0 96/ 97 208/}'"
	torch_broken line "forge 's/^updates .*/updates x/'"
	torch_broken link 'for file in shard-*; do
		mv "$file" copy; ln -s copy "$file"; done'
	torch_broken long "forge 's,^shard [^ ]*,shard $(printf %300s | tr ' ' a),'"
	torch_broken none "forge '/^shard/d;/^range/d'"
	torch_broken path \
		"mv shard-* ../shard; forge 's,^shard [^ ]*,shard ../shard,'"
	torch_broken size 'truncate -s 100 shard-*'
	torch_broken step "forge 's/^step 10/step 5/'"
	torch_broken twice "forge '/^range/p'"
	torch_broken zz_pipe 'for file in shard-*; do
		rm "$file"; mkfifo "$file"; done'
	in_torch broken broken -
	sed -i 's,broken/[a-z_]*/step-10/,./,; s/shard-0-of-1\.[0-9a-f]*/shard/
		s/a\{300\}/a.../' out
	cat >wanted <<-END
	beyond ValueError: ./manifest: 2.bias is not within its 208 values
	gap ValueError: ./manifest has shards up to value 96 of 208
	line ValueError: ./manifest has a line that ddp-train does not write, or lacks one
	link ValueError: ./shard: Too many levels of symbolic links
	long ValueError: ./a...: File name too long
	none ValueError: ./manifest has shards up to value 0 of 208
	path ValueError: ./manifest: ../shard is not the name of a file
	size ValueError: ./shard has 100 bytes in place of 832
	step ValueError: ./manifest is of step 5
	twice ValueError: ./manifest has value 0 twice
	zz_pipe ValueError: ./shard is not a file
	END
	diff wanted out >why
	result $? 'PyTorch is told of a manifest that cannot be trusted'
	mkdir broken/empty
	call "$python" "$top/contrib/pytorch/ddp_checkpoint.py" broken/empty
	equal 'a list of no checkpoint says that there is none' \
		'1 ddp_checkpoint: no checkpoint of ddp-train in broken/empty' \
		"$status $(cat err)"

	# Who may write in the folder, too, could lead a save to a file of ours.
	mkdir -p linked.toy/step-0
	echo mine >"$scratch/victim"
	ln -s "$scratch/victim" linked.toy/step-0/shard-0-of-1.part
	in_torch others linked -
	equal 'PyTorch saves beside a link that has the name of an unfinished file' \
		'0 mine shard-0-of-1' "$status $(head -c 4 "$scratch/victim") $(
			find linked.toy/step-0 -name 'shard*' -type f -printf %f)"
}

test_checkpoint_torch()
{
	if ! has_torch; then
		skip 'checkpoints in PyTorch' "no torch for $python"
		return
	fi
	rm -rf saved copy made
	call timeout 60 "$train" --data "$text" --steps 10 --log log \
		--checkpoint saved --eval-every 10
	evaluation 10 >one.losses
	in_torch read saved "$text"
	cp out many.losses
	close one.losses many.losses 1 1e-6
	result $? 'PyTorch has the loss of what it reads'
	in_torch write made "$text"
	cp out one.losses
	call timeout 60 "$train" --data "$text" --steps 1 --log log \
		--checkpoint made --resume --lr 1e-30 --min-lr 0 \
		--eval-every 1
	evaluation 1 >many.losses
	grep -q '^resumed from made/step-0$' out &&
		close one.losses many.losses 1 1e-6
	result $? 'ddp-train has the loss of what PyTorch has written'
	in_torch copy saved copy
	for folder in saved copy; do
		call timeout 60 "$train" --data "$text" --steps 20 \
			--log $folder.log --checkpoint $folder --resume
	done
	bits saved.log >wanted
	bits copy.log >had
	test "$(wc -l <had)" -ge 10 && diff wanted had >why
	result $? 'a checkpoint by PyTorch trains on to the same bits'
	in_torch order saved ordered
	cat >wanted <<-END
	sync ordered/step-20/shard-0-of-1.part
	rename ordered/step-20/shard-0-of-1
	sync ordered/step-20
	sync ordered/step-20/manifest.part
	rename ordered/step-20/manifest
	sync ordered/step-20
	sync ordered
	sync .
	END
	diff wanted out >why
	result $? 'PyTorch syncs in the order in which ddp-train does'
	call env PYTHONPATH="$top/contrib/pytorch" timeout 120 "$python" \
		"$top/contrib/pytorch/ddp_checkpoint.py" saved
	equal 'what is saved is listed' "$(ls -d saved/step-* | sort -t- -k2nr |
		sed "s/\$/: 120576 values of each of param m v/")" "$(cat out)"
	rm -rf short
	cp -r saved short
	list=short/$(tail -n 1 out | sed 's,.*/,,; s/:.*//')
	shard=$(cd "$list" && echo shard-*)
	truncate -s 100 "$list/$shard"
	call "$python" "$top/contrib/pytorch/ddp_checkpoint.py" short
	equal 'a shard that is cut is listed as broken' "0 $list: broken: $(
		)$list/$shard has 100 bytes in place of 1446912" \
		"$status $(grep broken out)"
	in_torch refuse unfit -
	cat >wanted <<-END
	a GPT is saved without its number of heads: add heads=N
	heads=3 does not divide the width, 64
	param lacks h.1.mlp.c_fc.bias, which a GPT of ddp-train has
	param has lm_head.weight, which a GPT of ddp-train lacks
	h.0.mlp.c_proj.weight is of shape (256, 64), and should be of (64, 256)
	h.1.mlp.c_fc.bias of param has a value that is not a finite number in fp32
	h.1.mlp.c_fc.bias of v has a value that is not a finite number in fp32
	param has module.wte.weight, which is wte.weight in ddp-train: take 'module.' off the names
	param has transformer.wte.weight, which is wte.weight in ddp-train: take 'transformer.' off the names
	param lacks wte.weight, which a GPT of ddp-train has
	param lacks wte.weight, which a GPT of ddp-train has
	param lacks wte.weight, which a GPT of ddp-train has
	wte.weight and wpe.weight should have two dimensions, and are of shapes [(256,), (64, 64)]
	--context of 0 is not 1 to 65536, as ddp-train can have it
	m has ln_f.bios, which param lacks
	ln_f.bias of m is of shape (3,), and should be of (64,)
	v is given, but the options are of an optimizer without it: give them --optimizer or --momentum
	step=-1 with updates=-1 is not from 0 to 1000000000
	step=0 with updates=-1 is not from 0 to 1000000000
	END
	test "$status" = 0 && diff wanted out >why
	result $? 'PyTorch is told of what ddp-train could not resume from'
	call timeout 60 "$train" --data "$text" --steps 1 --checkpoint unfit \
		--resume
	equal 'tensors in another order are saved in the right one' 0 "$status"
	in_torch others other -
	for folder in other.toy other.moved "other.sgd --data $text"; do
		# shellcheck disable=SC2086 # several arguments
		call timeout 60 "$train" --steps 1 --resume --checkpoint $folder
		test "$status" -eq 0 && grep -q '^resumed from other.*0$' out
		result $? "ddp-train goes on from ${folder%% *}"
	done
	in_torch read saved/step-10 "$text"
	cp out many.losses
	in_torch read copy/step-10 "$text"
	cmp -s out many.losses && test -s out
	result $? 'PyTorch reads the checkpoint of a step that is named'
	test_torch_lock
	test_torch_shards
	sed '1s/2$/1/' saved/step-20/manifest >older
	cp -r saved older.saved
	mv older older.saved/step-20/manifest
	in_torch read older.saved "$text"
	test "$status" -ne 0 && grep -q "/manifest is of version 1, and this $(
		)ddp_checkpoint reads version 2$" err
	result $? 'PyTorch is told of another version'
	cp -r saved crc.saved
	sed -i '$s/ .*/ zz/' crc.saved/step-20/manifest
	in_torch read crc.saved "$text"
	test "$status" -ne 0 && grep -q ": crc.saved/step-20/manifest has $(
		)another checksum than it says$" err
	result $? 'PyTorch is told of a checksum that is none'
	printf x | dd of="$(find saved/step-20 -name 'shard-*')" bs=1 \
		seek=100 conv=notrunc 2>/dev/null
	in_torch read saved "$text"
	test "$status" -ne 0 && grep -q 'has another checksum than' err
	result $? 'PyTorch is told of a flipped byte'
}
