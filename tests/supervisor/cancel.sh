# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Steps that somebody has cancelled, and those of which Slurm says the same.

step 2 n1:0-0:w400,e0=1,done n2:1-1:w400,e1=1,done \
	"srun:w200,p$cancelled/,all,x143"
said 'nobody is named where Slurm has said that it ends the step' \
	143 "$cancelled"
step 2 n1:0-0:w400,e0=1,quit n2:1-1:w430,quit \
	"srun:w200,p$cancelled/,all,x143"
said 'nobody is named where Slurm kills the agents with a cancelled step' \
	143 "$cancelled"
equal 'slurmctld is asked whether the job of that step runs' \
	'squeue -ah -tall -j 12 -o %A %T' "$(cat "$ASKED")"
mkfifo squeue.says
step 2 n1:0-0:w400,e0=1,quit n2:1-1:w430,quit \
	"srun:w200,p$cancelled/,all,x143"
said 'nobody is named where slurmctld does not answer that' 143 "$cancelled"
within 6000 'a question that slurmctld does not answer is given up'
# One that was killed may take a moment to end.
nobody_asks() { ! pgrep -f "cat $scratch/squeue.says"; }
check 'a question that slurmctld does not answer leaves no process' \
	wait_until nobody_asks
rm squeue.says
# Other tasks of its array can come before it.
printf '%s\n' '13 COMPLETING' '12 RUNNING' '14 PENDING' >squeue.says
step 2 n1:0-0:w400,e0=1,quit n2:1-1:w430,quit \
	"srun:w200,p$cancelled/,all,x143"
said 'a rank is named where slurmctld says that its job runs' 1 "$cancelled
$(first 0 'n1 (GPU 0, pid 1000)' 4 'exit code 1'; others '1 other rank')"
step 2 n1:0-0:w400,e0=1,done n2:1-1:w600,e1=1,done \
	"srun:w200,p$cancelled/,all,x143"
said 'nobody is named where the agents of a cancelled step go on' \
	143 "$cancelled"
step 2 n1:0-0:w400,k0=9,done n2:1-1:w700,k1=9,done \
	"srun:w200,p$cancelled/,all,x137"
said 'nobody is named where the ranks of a cancelled step are killed' \
	137 "$cancelled"
step 2 n1:0-1:w400,k0=15,w900,e1=3,done "srun:w200,p$cancelled/,all,x143"
said 'nobody is named where a rank of a cancelled step traps SIGTERM' \
	143 "$cancelled"
# Where an agent was faster, all is told when the agents are done.
step 2 n1:0-1:w400,k0=15,w200,e1=3,done \
	"srun:w600,p$cancelled/,w400,pmine/,w2000,x143"
said 'what Slurm says is held back no longer than until all is told' 143 \
	"$cancelled
mine"
# srun has the step killed when it hears of a failure, and says so before.
step 2 n1:0-0:w700,k0=9,K,done n2:1-1:w700,K,done \
	"srun:w200,p$failed/$ends/$cancelled/,all,x137"
said 'the rank is named for which srun itself has the step killed' 137 "$failed
$ends
$cancelled
$(first 0 'n1 (GPU 0, pid 1000)' 7 'killed by signal 9 (SIGKILL)'
	others '1 other rank')"
step restarts=1 2 n1:0-0:w1500,a1000,k0=15,K,done n2:1-1:w700,k1=15,done \
	"srun:w200,p$failed/$ends/$cancelled/,all,x143" \
	n1:0-1:e0=0,e1=0,done srun:all
said 'the rank of which srun told is named though heard of later, and the step starts again' \
	0 \
	"$failed
$ends
$cancelled
$(first 0 'n1 (GPU 0, pid 1000)' 5 'killed by signal 15 (SIGTERM)'
	others '1 other rank')
slurm-ddp: restart 1 of 1: on the same nodes"
step restarts=1 2 n1:0-0:deaf,w9000,K,done n2:1-1:w700,k1=15,quit \
	"srun:w200,p$failed/$ends/$cancelled/,w3000,x143"
said 'a rank that has ended after the one that srun names is not named' \
	143 "$failed
$ends
$cancelled"
step restarts=1 2 n1:0-0:w700,k0=9,done n2:1-1:w1000,k1=9,done \
	"srun:w200,p$cancelled/$failed/$ends/,all,x137"
said 'nobody is named where srun tells of a rank of a cancelled step' \
	137 "$cancelled
$failed
$ends"
step restarts=1 2 n1:0-0:w700,k0=9,done n2:1-1:w1000,k1=9,done \
	"srun:w200,p$ends/$cancelled/,all,x137"
said 'nobody is named where srun ends the step and no rank had failed, as with --wait' \
	137 "$ends
$cancelled"
rm squeue.says
aborted='srun: Job step aborted: Waiting up to 7 seconds for step to finish.'
step 2 n1:0-0:w400,k0=9,done n2:1-1:w700,k1=9,done \
	"srun:w200,p$aborted/,all,x137"
said 'nobody is named where srun has aborted the step and a rank is killed' \
	137 "$aborted"
step 2 'n1:0-0:w400,k0=9=out of memory,K,done' n2:1-1:w400,K,done \
	"srun:w200,p$cancelled/,all,x143"
said 'a rank that ran out of memory is named in a cancelled step, too' \
	137 "$cancelled
$(first 0 'n1 (GPU 0, pid 1000)' 4 'out of memory, killed by signal 9 (SIGKILL)'
	others '1 other rank')"
step 2 'n1:0-0:w400,k0=9=perhaps out of memory,done' n2:1-1:w600,k1=9,done \
	"srun:w200,p$cancelled/,all,x143"
said 'a rank that perhaps ran out of memory is not named in a cancelled step' \
	143 "$cancelled"
step 1 n1:0-0:w400,k0=2,done \
	'srun:w200,psrun: sending Ctrl-C to StepId=12.3/,all,x130'
said 'a rank that srun has interrupted for a user is not named' 130 \
	'srun: sending Ctrl-C to StepId=12.3'
# A rank has started an srun of its own, whose step is cancelled.
other='slurmstepd: error: *** STEP 12.4 ON n1 CANCELLED AT 1 ***'
step 2 n1:0-0:w400,e0=1,K,done n2:1-1:w400,K,done \
	"srun:w200,p$aborted/$other/,all,x143"
said 'a rank is named where another step was cancelled' 1 "$aborted
$other
$(first 0 'n1 (GPU 0, pid 1000)' 4 'exit code 1'; others '1 other rank')"

step restarts=1 2 n1:0-0:w300,quit n2:1-1:w320,quit \
	"srun:w200,p$cancelled/,all,x143"
said 'a step that is cancelled with its agents is no riddle, nor tried again' \
	143 "$cancelled"
# A busy machine: an agent lives on for a moment, and tells of its rank.
step restarts=1 2 n1:0-0:w400,k0=9,w600,quit n2:1-1:w900,quit \
	"srun:w650,p$cancelled/,all,x137"
said 'a rank that is heard of just before Slurm cancels the step is not named' \
	137 "$cancelled"
step restarts=1 2 n1:0-0:w400,k0=9,w600,quit n2:1-1:w900,quit \
	"srun:w1900,p$cancelled/,all,x137"
said 'a step that is cancelled after a rank was named is not tried again' \
	137 "$(
	first 0 'n1 (GPU 0, pid 1000)' 4 'killed by signal 9 (SIGKILL)'
	others '1 other rank')
$cancelled"
step restarts=1 2 n1:0-0:w400,k0=9,w300,quit n2:1-1:w700,quit \
	"srun:w550,p$aborted/$cancelled/,all,x5" \
	n1:0-1:e0=0,e1=0,done srun:all
said 'a step starts again whose ranks have called MPI_Abort for a killed one' \
	0 "$(
	first 0 'n1 (GPU 0, pid 1000)' 4 'killed by signal 9 (SIGKILL)')
$aborted
$cancelled
$(others '1 other rank')
slurm-ddp: restart 1 of 1: on the same nodes"

# KillWait is over at some time: then Slurm meant something else.
step 2 n1:0-0:w35000,e0=1,done n2:1-1:w35000,e1=1,done \
	"srun:w200,p$cancelled/,all,x143"
said 'nobody is named where Slurm has cancelled the step 35 s ago' 143 "$cancelled"
step 2 n1:0-0:w45000,e0=1,K,done n2:1-1:w45000,K,done \
	"srun:w200,p$cancelled/,all,x143"
said 'a rank is named that fails 45 s after Slurm cancelled a step' 1 "$cancelled
slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after 45.0 s: exit code 1
$(others '1 other rank')"
asks='srun: sending Ctrl-C to StepId=12.3'
step 1 n1:0-0:w12000,k0=2,done "srun:w200,p$asks/,all,x130"
said 'a rank is named that fails 12 s after srun has sent Ctrl-C' 130 "$asks
slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after 12.0 s: killed by \
signal 2 (SIGINT)"

# Slurm has killed the agents with the step, and some process takes its time to end.
step 1 n1:0-0:w300,quit "srun:w200,p$cancelled/,w50000,x143"
said 'a step that Slurm cancels does not go on without its agents' 143 "$cancelled"
step 1 n1:0-0:w1500,quit srun:I,S,w500,S,w5000,x143
said 'nor does one for which srun got a signal' 143 ''

# srun ends a step at the second SIGINT within a second.
step 1 n1:0-0:w4000,e0=3,done srun:I,S,w2000,S,w500,all
said 'a rank is named after two SIGINTs that are 2 s apart' 3 \
	"slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after 4.0 s: exit code 3"
step restarts=1 1 n1:0-0:w4000,e0=3,done srun:I,S,w500,S,w500,all,x3
said 'nobody is named after two SIGINTs within a second, by which srun ends' 3 ''
