# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Steps and sruns that do not end by themselves.

# --ddp-watchdog
held='slurm-ddp: no rank has made progress for 1 s, and so the step ends; '
step watchdog=1 4 n1:0-1:i1000,X,d0=S=futex=600,d1=S=futex=600,K,done \
	n2:2-3:w200,i1000,X,d2=S=nap=600,d3=S=futex=600,K,done srun:all
said 'a step in which nobody makes progress is ended, and says who does what' \
	124 "${held}rank 2 holds \
the others up: waiting elsewhere than the others
slurm-ddp: rank 2 on n2 (pid 1002): sleeping in nap; last progress 3 s ago, 0 \
heartbeats
slurm-ddp: ranks 0-1,3: sleeping in futex"
within 3000 'a step that hangs ends as soon as all have said what they do'
step watchdog=1 kill=0 2 n1:0-1:i1000,X,d0=T=a=600,w9000,done srun:all
said 'a step that hangs ends under --kill-on-bad-exit=0, and if a rank says nothing' \
	124 \
	"${held}rank 0 holds the others up: stopped
slurm-ddp: rank 0 on n1 (GPU 0, pid 1000): stopped in a; last progress 3 s ago, \
0 heartbeats
slurm-ddp: rank 1: not known"
step watchdog=1 3 n1:0-1:i9000,w1500,e0=0,e1=0,done \
	n2:2-2:i900,w1500,e2=0,done srun:all
said 'a step goes on in which one node makes progress' 0 ''
# The agent of n1 is busy: what its rank does is not known 4 s after the question.
step watchdog=1 2 n1:0-0:i9000,w5500,e0=0,done n2:1-1:w1000,e1=0,done srun:all
said 'a step goes on whose ranks wait for one that has just ended' 0 ''
step watchdog=1 2 n1:0-1:i1000,X,i0,w1500,e0=0,e1=0,done srun:all
said 'a step goes on that makes progress before all have said what they do' 0 ''
step watchdog=1 2 n1:0-0:i9000,w1500,e0=0,done n2:1-1:quit srun:w2500
grep -q 'no rank' err
test $? = 1 && test "$status" = 0
result $? 'a step goes on of which a node is not watched'
step watchdog=1 3 n1:0-1:i9000,w2500,e0=0,e1=0,done srun:w2600
said 'a step goes on where a rank has not begun, and that is told' \
	0 "slurm-ddp: nothing \
is known of rank 2, 1 s after others have begun: they were not started, or \
their node is not watched; --ddp-watchdog waits until all have begun"

# An srun that does not end
step 2 n1:0-1:w100,e0=3,K,done srun:hang
said 'an srun that hangs after a failure is ended with the code of the rank' \
	3 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '1 other rank')"
equal 'the step of an srun that hangs is cancelled' \
	'scancel -Q 12.3' "$(cat "$ASKED")"
within 6000 'an srun that hangs after a failure ends within 5 s'
step own=1 1 n1:0-0:w100,e0=3,K,done srun:hang
equal 'the job of an srun that hangs is cancelled if that is its own' \
	'scancel -Q 12' "$(cat "$ASKED")"
echo STEPID >squeue.says
filters='ACCOUNT FORMAT2 LICENSES NAMES PARTITION QOS STATES USERS'
for filter in $filters; do
	export "SQUEUE_$filter=x"
done
step 2 n1:0-1:w100,e0=0,e1=0,done srun:hang
for filter in $filters; do
	unset "SQUEUE_$filter"
done
said 'an srun that hangs after its step is ended' 0 ''
equal 'Slurm is asked for the step of an srun that hangs without a filter of the user' \
	'squeue -s 12.3 -o %i' "$(cat "$ASKED")"
within 5500 'an srun that hangs after its step ends within 5 s'
step 2 n1:0-1:w100,e0=0,e1=0,done \
	srun:all,p1/,w1500,p2/,w1500,p3/,w1500,p4/,w1500,p5/
said 'an srun that still writes after its step is left alone' 0 "$(seq 5)"
printf 'STEPID\n12.3\n' >squeue.says
step 1 n1:0-0:w100,e0=0,done srun:w5000,x6
said 'an srun is left alone while Slurm knows its step' 6 ''

# An srun that is gone, or takes no signal
step 2 n1:0-1:w100,K,done srun:w300,s9
said 'a step whose srun is killed ends with its signal' 137 \
	'slurm-ddp: srun itself was killed by signal 9, and so the step ends'
within 800 'the ranks of an srun that is killed are killed at once'
step alone=1 2 n1:0-0:w100,quit \
	"srun:trap,w400,psrun: error: n1: task 0: Exited with exit code 3/,hang"
said 'an srun that hangs after a failure of which it alone told ends with 1' 1 \
	"srun: error: n1: task 0: Exited with exit code 3
slurm-ddp: rank 0 has failed, as srun says, on a node that is not watched, and so \
the step ends"
