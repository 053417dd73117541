# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The output of ranks: as srun's without options, and with --ddp-logs and
# --ddp-show whole lines, each once, in logs and at srun; whoever is killed.

cluster --nodes 2 --gpus 2 --cpus 4

# A program for tasks: 10,000 lines on each of its streams.
cat >prints <<'END'
#!/bin/sh
seq -f "line %.0f of $SLURM_PROCID" 1 10000 &
seq -f "error %.0f of $SLURM_PROCID" 1 10000 >&2
wait
END
# The same, with a pause in the middle, in which rank 0 runs its arguments.
cat >pauses <<'END'
#!/bin/sh
lines()
{
	seq -f "line %.0f of $SLURM_PROCID" "$1" "$2"
	seq -f "error %.0f of $SLURM_PROCID" "$1" "$2" >&2
}
lines 1 5000
sleep 1
test "$SLURM_PROCID" != 0 || "$@"
sleep 0.5
lines 5001 10000
END
# A program for tasks: all bytes, a long line, and one that is not whole.
cat >bytes <<'END'
#!/usr/bin/perl
$| = 1;
binmode STDOUT;
binmode STDERR;
print STDERR pack('C*', 0 .. 255), "\n";
print pack('C*', 0 .. 255), "\n";
print STDERR 'z' x 100000, "\nnot whole";
print 'z' x 100000, "\nnot whole";
END
chmod 755 prints pauses bytes

# whole FILE WORD RANK...: whether it has just the 10,000 lines of each of these
# ranks once, each with its label
whole()
{
	whole_file=$1
	whole_word=$2
	shift 2
	for rank in "$@"; do
		node=$(((rank + 2) / 2))
		seq -f "[$rank n$node] $whole_word %.0f of $rank" 1 10000
	done | sort >wanted
	sort "$whole_file" | diff wanted - >why
}

# logged DIR RANK...: whether these ranks' logs, and no others, are in it, each
# with its lines in their order
logged()
{
	logged_dir=$1
	shift
	find "$logged_dir" -type f | wc -l >why
	test "$(cat why)" = $((2 * $#)) || return 1
	for rank in "$@"; do
		file=$(find "$logged_dir" -name "rank-00000$rank.out")
		seq -f "line %.0f of $rank" 1 10000 | diff - "$file" >why ||
			return 1
		seq -f "error %.0f of $rank" 1 10000 |
			diff - "${file%.out}.err" >why || return 1
	done
}

# endless CMD...: with an input that does not end. srun passes its end on when all
# nodes are there. A node whose ranks have ended by then answers with a reset, and
# what srun has not read yet of their output is lost: on a busy machine 9 of 250
# plain sruns of the program bytes lost some, and none with this input.
mkfifo -m 666 input
endless() { "$@" <>input; }

call endless login srun -N1 -n1 "$scratch/bytes"
mv out plain.out
mv err plain.err
for how in --ddp-supervise=on --ddp-supervise=off; do
	call endless login srun --ddp "$how" -N1 -n1 "$scratch/bytes"
	cmp out plain.out >why && cmp err plain.err >why && test "$status" = 0
	result $? "the output is as srun's, byte by byte: $how"
done
is_terminal='for fd in 0 1 2; do test -t $fd && echo $fd; done; :'
for how in --quiet --unbuffered; do
	call login srun "$how" -N1 -n1 sh -c "$is_terminal"
	mv out wanted
	call login srun --ddp "$how" -N1 -n1 sh -c "$is_terminal"
	equal "the same streams are terminals: --ddp $how" \
		"$(cat wanted)" "$(cat out)"
	call login srun --ddp "$how" -N1 -n1 --ddp-logs=logs \
		sh -c "$is_terminal"
	equal "the same streams are terminals: --ddp $how --ddp-logs=DIR" \
		"$(cat wanted)" "$(sed 's/^\[0 n1\] //' out)"
done
rm -rf logs

set -- srun --ddp -N2 --ntasks-per-node=2
call endless login "$@" --ddp-logs=logs "$scratch/prints"
whole out line 0 1 2 3 && whole err error 0 1 2 3 && test "$status" = 0
result $? 'srun has 10,000 lines of each of 4 ranks, whole and once'
logged logs 0 1 2 3
result $? 'the logs of each rank have its bytes as they were'
find logs -mindepth 1 -type d | grep -qx 'logs/[0-9]*\.0'
result $? "the logs are in a folder with the job's and the step's number"
rm -rf logs
call endless login "$@" --ddp-show=0,2-3 "$scratch/prints"
whole out line 0 2 3 && whole err error 0 2 3 && test "$status" = 0
result $? '--ddp-show=0,2-3: those alone are at srun'
call endless login "$@" --ddp-show=1 --ddp-logs=logs/ "$scratch/prints"
whole out line 1 && whole err error 1 && logged logs 0 1 2 3
result $? '--ddp-show=1 --ddp-logs=DIR/: one rank is at srun, logs have all'
rm -rf logs
call login "$@" --ddp-show=0,4 echo a
printf '%s\n' 'slurm-ddp: --ddp-show=0,4: the ranks of this step are 0 to 3, and
those from 4 on are left out' | paste -sd ' ' >wanted
sed 's/^srun: //' err | diff wanted - >why && test "$status,$(cat out)" = '0,[0 n1] a'
result $? '--ddp-show=0,4 of a step of 4 ranks shows rank 0, and says so'
call login salloc -N1 -n1 sh -c 'srun --ddp --ddp-show=3 true && srun echo after'
equal 'a step that has no such rank is run, and another after it' after \
	"$(cat out)"
call endless login "$@" --output=none --ddp-logs=logs "$scratch/prints"
! test -s out && ! test -s err && logged logs 0 1 2 3
result $? '--output=none --ddp-logs=DIR: srun prints none of it, logs have all'
rm -rf logs
call endless login "$@" --output=file --ddp-logs=logs "$scratch/prints"
grep line file >lines
grep error file >errors
whole lines line 0 1 2 3 && whole errors error 0 1 2 3 &&
	logged logs 0 1 2 3 && test "$(wc -l <file)" = 80000
result $? '--output=FILE --ddp-logs=DIR: what srun prints is in the file'
rm -rf logs
call login "$@" -l --ddp-show=1 echo word
equal '-l: both labels' '1: [1 n1] word' "$(cat out)"
call endless login srun --ddp -N1 -n1 --ddp-logs=logs "$scratch/bytes"
LC_ALL=C awk 'length > 999 || !/^\[0 n1\] /' out err >why
test "$(tr -cd z <err | wc -c)" = 100001 && ! test -s why &&
	cmp plain.out logs/*/rank-000000.out >why &&
	cmp plain.err logs/*/rank-000000.err >why
result $? 'a line too long for srun becomes several; the log has it whole'
rm -rf logs

call login mkdir -m 777 own
call login ln -s own linked
call login srun --ddp -N1 -n1 --chdir="$scratch/own" --ddp-logs=logs echo a
find own/logs -name rank-000000.out | grep -q .
result $? "a relative folder is in the step's"
call login srun --ddp -N1 -n1 --ddp-logs=linked echo a
test "$status" = 0 && find linked/ -name rank-000000.out | grep -q .
result $? "the user's own link is followed"
call login env SLURM_RESTART_COUNT=1 srun --ddp -N1 -n1 --ddp-logs=logs echo a
equal 'a job that is requeued has new logs' a \
	"$(cat logs/*.0.1/rank-000000.out)"
rm -rf logs

# denies WORDS CMD...: its only task ends with one sentence with WORDS
denies()
{
	denies_words=$1
	shift
	call login "$@"
	test "$status" -eq 1 && ! test -s out &&
		grep 'slurm-ddp: rank 0 on n1: ' err >why &&
		test "$(wc -l <why)" = 1 && grep -qF -- "$denies_words" why
	result $? "$* is refused: $denies_words"
}

call login srun --ddp --ddp-gpus=off --ddp-cpus=off --ddp-supervise=off -N1 \
	-n1 --ddp-show=0 echo a
equal '--ddp-show needs no placement, and no supervisor' '[0 n1] a' "$(cat out)"
call login sh -c 'echo "($(srun --ddp -N1 -n1 --ddp-show=0 echo a))"'
equal 'what one task prints to a pipe has no label' '(a)' "$(cat out)"
call login sh -c 'srun --ddp -N1 -n2 --ddp-show=1 echo a | cat'
equal 'the output of one task among others has a label' '[1 n1] a' "$(cat out)"

# What cannot be
refuses "--ddp-show 'a', byte 1" "$@" --ddp-show=a true
refuses "not a folder's path" "$@" --ddp-logs= true
refuses 'leave out one of them' "$@" --ddp-logs=logs --pty true
refuses '--ddp-show: given without --ddp' srun -n1 --ddp-show=0 true
for option in --output=%t.out --error=%2N.err; do
	refuses "leave out $option, or --ddp-logs" \
		srun --ddp -N1 -n1 --ddp-logs=logs "$option" true
done
denies 'cannot write /proc/logs: ' \
	srun --ddp -N1 -n1 --ddp-logs=/proc/logs true
call login "$@" --ddp-logs=/proc/logs true
grep -qE '^slurm-ddp: .* (failed first on|failed in the same way,) .*: exit code 1: --ddp-logs: cannot write /proc/logs: ' err
result $? 'the rank that is named says why, whichever it is'
# srun may run where the nodes' file system is not.
none='srun: slurm-ddp: --ddp-logs: this host has no folder'
mkdir -m 777 hidden
for dir_logs in "$scratch/none/a" none/a/ hidden/none/a; do
	call login srun --ddp -N1 -n1 --chdir="$scratch" --ddp-logs="$dir_logs" \
		true
	parent=${dir_logs%/}
	parent=${parent%/*}
	equal "a folder around it that is missing is told before: $dir_logs" \
		"1 $none $scratch/${parent#"$scratch/"}; a node that has none \
either refuses the step" "$status $(sed -n 1p err)"
done
call login srun --ddp -N1 -n1 --ddp-logs=hidden/a true
equal 'a folder that is there is not told of' 0 "$status$(cat err)"
mkdir -m 777 theirs
ln -s theirs others
chown -h 1:1 others
denies "cannot write others: it is another user's link" \
	srun --ddp -N1 -n1 --ddp-logs=others true
hold -N1 -n1
rm -rf logs
mkdir -m 777 logs
ln -s ../theirs "logs/$job.0"
mkdir -m 777 "logs/$job.1"
denies "logs/$job.0: it is a link" \
	srun --ddp --jobid="$job" -N1 -n1 --ddp-logs=logs true
denies "logs/$job.1: it is another user's" \
	srun --ddp --jobid="$job" -N1 -n1 --ddp-logs=logs true
release
rm -rf logs

# A disk that is full
admin n1 mount -t tmpfs -o size=64k,mode=777 tmpfs "$scratch/theirs"
call endless login srun --ddp -N1 -n1 --ddp-logs="$scratch/theirs" \
	seq -f 'line %.0f of 0' 1 10000
grep -v '^\[0 n1\] line' out >full
grep '^\[0 n1\] line' out >lines
whole lines line 0 && test "$status" = 0 && test "$(wc -l <full)" = 1 &&
	grep -q 'rank-000000.out any more: No space left on device' full
result $? 'a full disk is told once, and the lines go on at srun'
admin n1 umount -l "$scratch/theirs"

# Whoever is killed
for name in ddp-tee ddp-agent; do
	call endless login "$@" "$scratch/pauses" pkill -KILL -x "$name"
	for rank in 0 1 2 3; do
		seq -f "line %.0f of $rank" 1 10000
		seq -f "error %.0f of $rank" 1 10000
	done | sort >wanted
	grep -h " of [0-3]\$" out err | sort | diff wanted - >why &&
		test "$status" = 0
	result $? "$name is killed: each line is there once"
	call endless login "$@" --ddp-logs=logs "$scratch/pauses" \
		pkill -KILL -x "$name"
	whole out line 0 1 2 3 && test "$status" = 0 &&
		grep '^\[' err >lines && whole lines error 0 1 2 3 &&
		logged logs 0 1 2 3
	result $? "$name is killed, with --ddp-logs=DIR: the same"
	rm -rf logs
done
call endless login srun --ddp -N1 -n1 sh -c '
	seq 1 1000000 >&2 &
	for i in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.05
		pkill -KILL -x ddp-tee
	done
	wait'
seq 1 1000000 | cmp - err >why && test "$status" = 0
result $? 'ddp-tee is killed ten times while it copies: each byte is once'

# The last lines of a rank that fails
fails='test "$SLURM_PROCID" = 2 || exec sleep 30
	seq 1 3000 >&2; echo last >&2; kill -9 $$'
for how in --quiet --error=last --error=last.%t --ddp-show=0; do
	call endless login "$@" "$how" sh -c "$fails"
	equal "the last lines of the rank that failed are told: $how" \
		'2992 2993 2994 2995 2996 2997 2998 2999 3000 last' \
		"$(sed -n 's/.*slurm-ddp: rank 2: | //p' err | paste -sd' ')"
done
