# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# A step with --ddp is like any other step: its input, output, signals, exit
# code and environment, and what is started from within it.

cluster --nodes 2 --gpus 2 --cpus 8

ours='RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK
	GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE SLURM_NTASKS_PER_NODE
	MASTER_ADDR MASTER_PORT JAX_COORDINATOR_ADDRESS
	OMP_NUM_THREADS GLOO_SOCKET_IFNAME ACCELERATE_USE_CPU
	DDP_SET DDP_PLACEMENT CUDA_DEVICE_ORDER PET_NNODES
	TORCHELASTIC_ERROR_FILE'

# environments DIRECTORY: print those of all tasks, without what differs from
# step to step
: >noise
environments()
{
	cat "$1"/* | grep -Ev '^(SLURM_STEP_?ID|(SLURM_)?PMIX[A-Z_0-9]*|dir)=' |
		grep -Evf noise | sort
}

# differ FROM TO: the names of variables that differ, with < or > before them
differ()
{
	environments "$1" >from.env
	environments "$2" >to.env
	diff from.env to.env | sed -n 's/^\([<>]\) \([A-Za-z_0-9]*\)=.*/\1\2/p' |
		sort -u | tr '\n' ' '
}

# shellcheck disable=SC2086 # a list of words
expected=$(printf '>%s\n' $ours | sort | tr '\n' ' ')
mkdir -m 777 hand again ddp nested.plain nested.ddp
keep='env >"$dir/$SLURM_PROCID"'
# With --mpi=pmix by hand a task sees that. --ddp chooses it where srun offers it.
pmix='' lost=''
if has_pmix; then
	pmix=--mpi=pmix lost='<SLURM_MPI_TYPE '
fi
call login env dir=hand srun -N2 -n4 -c4 --gres=gpu:2 -K1 ${pmix:+"$pmix"} sh -c "$keep"
call login env dir=ddp srun --ddp -N2 -c4 --gres=gpu:2 sh -c "$keep"
# What differs between two plain steps, such as when they began, in seconds
sleep 1
call login env dir=again srun -N2 -n4 -c4 --gres=gpu:2 -K1 ${pmix:+"$pmix"} sh -c "$keep"
environments again >again.env
environments hand | noise - again.env >noise.new
mv noise.new noise
equal 'nothing is seen in tasks but the variables, and no MPI type' \
	"$lost$expected" "$(differ hand ddp)"
equal 'the variables are of four tasks each' '0 1 2 3 0 1 2 3 ' \
	"$( (ls hand; ls ddp) | tr '\n' ' ')"
# Most of torchrun's are for one task a node.
# shellcheck disable=SC2086
equal 'the variables are those of ddp-info --variables' \
	"$(printf '%s\n' $ours | sort)" \
	"$(login ddp-info --variables | sed '1d; /^ /d; s/ .*//' |
		grep -v -e NCCL_ -e VISIBLE -e JAX_LOCAL -e HEARTBEAT \
		-e TF_CONFIG -e RESTART -e '^PET_.*[^S]$' | sort)"
inner='test $SLURM_PROCID != 0 || srun --overlap sh -c '\''env >"$dir/$SLURM_PROCID"'\'
call login env dir=nested.plain srun -N2 -n4 -c4 --gres=gpu:2 sh -c "$inner"
cp err plain.err
call login env dir=nested.ddp srun --ddp -N2 -c4 --gres=gpu:2 sh -c "$inner"
equal 'a plain srun in a task is as it is without --ddp outside' \
	'' "$(differ nested.plain nested.ddp)"
equal 'a plain srun in a task has the same tasks' \
	"$(ls nested.plain)" "$(ls nested.ddp)"
check 'a plain srun in a task prints the same messages' cmp plain.err err
rm -f nested.ddp/*
second=$(printf '%s' "$inner" | sed 's/|| /&{ srun --overlap true; /
	s/srun --overlap sh/srun --overlap --ddp=off sh/; s/$/; }/')
call login env dir=nested.ddp srun --ddp -N2 -c4 --gres=gpu:2 sh -c "$second"
equal 'a second srun in a task, with --ddp=off, is as without' \
	'' "$(differ nested.plain nested.ddp)"
equal 'a second srun in a task has the same tasks' \
	"$(ls nested.plain)" "$(ls nested.ddp)"

# left: how many variables of a --ddp step a program sees
# shellcheck disable=SC2086 # a list of words
cat >left <<END
#!/bin/sh
env | grep -cE '^($(echo $ours JAX_LOCAL_DEVICE_IDS TF_CONFIG | tr ' ' '|')|PET_[A-Z_]*)='
true
END
chmod 755 left
while IFS='|' read -r name inner wanted; do
	call login srun --ddp -n1 sh -c "$inner"
	equal "in a --ddp step $name" "$wanted" "$(paste -sd' ' out)"
done <<'END'
a task sees them|./left|25
a job that is submitted does not|./sbatch_wait -o batch.out left; cat batch.out|0
nor one that is allocated|salloc -Q -n1 ./left|0
what is changed in between stays|export RANK=7 MASTER_PORT=5; srun --overlap sh -c 'echo $RANK $MASTER_PORT $WORLD_SIZE'|7 5
END

# Steps beside one that sets nearly all of them, and steps within it
cat >beside <<'END'
#!/bin/sh
srun --overlap ./left >beside.1 &
srun --overlap ./left >beside.2 &
srun --overlap --ddp --ddp-env=tf -N2 -n2 --gres=gpu:2 sh -c '
	test $RANK = 0 || exit 0
	./left >within.own
	srun --overlap -n1 ./left >within.1 &
	srun --overlap -n1 ./left >within.2 &
	srun --overlap -n1 --ddp=off ./left >within.off &
	wait' &
wait
srun --ddp=off ./left >beside.off
END
call login salloc -Q -N2 --gres=gpu:2 --exclusive sh beside
equal 'steps beside a --ddp step and within it see none, it sees them' \
	'0 0 0 0 0 0 28' "$(for file in beside.1 beside.2 beside.off \
		within.1 within.2 within.off within.own; do
		sort -u $file | paste -sd,
	done | paste -sd' ')"

# nested OUTER...: run show by an srun --ddp in rank 0 of OUTER, and keep
# OUTER's port
nested()
{
	call login srun "$@" sh -c 'test $SLURM_PROCID != 0 || {
		echo ${MASTER_PORT-0} >outer.port
		srun --overlap --ddp --gres=gpu:2 "$0"; }' "$show"
	test "$status" -eq 0 && ! unquiet >why && right 'n1 n1 n2 n2' &&
		! grep " $(cat outer.port)\$" out >why
	result $? "srun --ddp in srun $*"
}
nested --ddp -N2 --gres=gpu:2
nested -N2 --ntasks-per-node=2 --gres=gpu:2
nested --ddp --mpi=none -N2 --gres=gpu:2

# Messages: the same as without --ddp
while read -r options; do
	# shellcheck disable=SC2086 # several words
	call login srun -K1 $options
	cp err plain.err
	before=$status
	# shellcheck disable=SC2086
	call login srun --ddp $options
	messages plain.err >plain.sorted
	# Of a rank that fails, what the supervisor says comes on top
	grep -v '^slurm-ddp: rank 0[ :]' err >ours.err
	messages ours.err | cmp - plain.sorted >why && test "$status" = "$before" && test -s err
	result $? "srun --ddp $options says what it says without"
done <<END
-N2 -n1 true
-N2 -n3 --ntasks-per-node=1 true
--bogus true
--gres=nonsense:1 -n1 true
-n0 true
-n2
--mpi=bogus -n1 true
-w nowhere -n1 true
-n1 ./missing
END
call login srun -v --ddp --gres=gpu:2 true
check '-v shows the options once' test "$(grep -c 'end of defined' err)" = 1
call login sh -c 'srun --ddp --gres=gpu:2 "$0" 2>&-' "$show"
test "$status" -eq 0 && right 'n1 n1'
result $? 'a step without a standard error is right'

# Signals, arguments, input and programs
# What slurmstepd leaves open has another number beside the plugin's pipe.
state='grep -E "Sig[BIC]" /proc/self/status; umask; pwd
	readlink /proc/self/fd/* | sed "s/[0-9]\{1,\}/N/g" | sort'
call login nohup srun ${pmix:+"$pmix"} -n1 sh -c "$state"
cp out plain.out
call login nohup srun --ddp -n1 sh -c "$state"
check 'signals, open files, umask and directory are as without' \
	diff plain.out out
call login srun --ddp -n1 printf '[%s]' 'a  b' '' '*' "$(printf 'x\ny')" '"'
check 'arguments arrive as they were typed' test "$(cat out)" = \
	"$(printf '[%s]' 'a  b' '' '*' "$(printf 'x\ny')" '"')"
seq 20000 >many
# shellcheck disable=SC2046 # 20,000 words
call login srun --ddp -n1 sh -c 'echo $#' $(cat many)
check 'a command gets all of 19,999 arguments' test "$(cat out)" = 19999
call login sh -c 'seq 200000 | srun --ddp -N2 --gres=gpu:1 cksum'
check 'piped input arrives at all ranks' \
	test "$(uniq out)" = "$(seq 200000 | cksum)"
printf '%s\n' "0 $show" "1-3 $show %t" >programs
call login srun --ddp -N2 --gres=gpu:2 --multi-prog programs
test "$status" -eq 0 && right 'n1 n1 n2 n2'
result $? 'srun --ddp --multi-prog'
for outer in '' 'salloc -Q -N2 --gres=gpu:2 --exclusive '; do
	call login script -qec "${outer}srun --ddp --gres=gpu:2 --pty sh -c '
		test -t 0 && echo \$RANK \$WORLD_SIZE \$(uname -n)'" /dev/null
	equal "${outer}srun --ddp --pty runs one task on a terminal" \
		'0 1 n1 ' "$(grep -o '[0-9] [0-9] n[12]' out | tr '\n' ' ')"
done

# Exit codes, and the end of a step whose rank fails
call login srun --ddp -N2 --gres=gpu:2 sh -c 'test $RANK != 2 || exit 7'
equal "a task's exit code is srun's" 7 "$status"
call login srun --ddp -N2 --gres=gpu:2 sh -c \
	'test $RANK = 2 && exit 7; exec sleep 1000'
# Two that do not end at once are told of one by one.
ended=$(sed -nE 's/.*n1: tasks? (.*): (Terminated|Killed)$/\1/p' err | sort |
	paste -sd' ')
case $ended:$status in 0-1:7 | '0 1:7') ;; *) false ;; esac
result $? 'a rank that fails ends the others, and its code is the step'\''s'
# Two messages: srun must wait for the second.
call login srun --ddp -N2 --gres=gpu:1 perl -e '
	sleep 1000 if $ENV{RANK} == 0;
	syswrite(STDERR, "last\n");
	select(undef, undef, undef, 0.002);
	syswrite(STDERR, "words\n");
	exit 7'
equal 'the last words of a rank that fails are printed' 'last words' \
	"$(grep -xE 'last|words' err | paste -sd' ')"
call login srun --ddp -n1 sh -c 'kill -9 $$'
equal "a task that a signal kills has the signal's code" 137 "$status"
# The others end when srun has printed that one of them has failed.
outlive='test $RANK = 2 && exit 7
	until grep -q "task 2: Exited" err; do sleep 0.05; done; echo alive'
for how in 'srun --kill-on-bad-exit=0' 'env SLURM_KILL_BAD_EXIT=0 srun'; do
	# shellcheck disable=SC2086 # several words
	call login $how --ddp -N2 --gres=gpu:2 sh -c "$outlive"
	equal "a failed rank does not end the others with ${how% srun}" '7 3' \
		"$status $(grep -c alive out)"
done

# interrupt CMD...: interrupt it when its four tasks have begun, and again when
# srun asks for that
interrupt()
{
	call login perl -e '
		my $pid = open(my $p, "-|") // die;
		if (!$pid) { open(STDERR, ">&STDOUT"); exec @ARGV; }
		my $begun = 0;
		while (<$p>) {
			kill INT => $pid
				if /^begun/ && ++$begun == 4 || /one more/;
			print s/^\[\S+\] |StepId=\S+|STEP \S+ |on n[12]|AT .*//gr
				unless /^begun/;
		}
		close $p;
		exit($? >> 8 || $? & 127);' \
		"$@" sh -c 'echo begun; exec sleep 1000'
	# It is chance which tasks' ends reach srun before it gives up.
	grep -E 'interrupt|Ctrl-C|forcing|aborted|CANCEL' out |
		sort -u >out.sorted
}
interrupt srun --ddp -N2 --gres=gpu:2
cp out.sorted ddp.out
ended=$status
# It is chance, too, whether srun says that it waits for the step, and then has
# the code of SIGINT, or sees it end before, by SIGTERM.
for _ in 1 2 3 4 5; do
	interrupt srun -K1 -N2 -n4 --gres=gpu:2
	test "$status" -ne "$ended" || break
done
equal 'interrupts end it as they do without' "$status" "$ended"
check 'interrupts print the same messages as without' diff out.sorted ddp.out
