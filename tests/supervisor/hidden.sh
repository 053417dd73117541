# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Failures of which srun alone tells, and no agent does.

# An earlier rank may be that of an agent that is stopped, as srun says here.
killed='srun: error: n2: task 1: Killed'
step 2 n1:0-0:w400,e0=3,done n2:1-1:deaf,w9000 \
	"srun:w390,p$killed/$ends/,w4000,x137"
said 'nobody is named where the agent of another rank is stopped' \
	137 "$(silent n2)
$killed
$ends"

# A rank starts steps of its own, and goes on where they fail. Of the ranks of this
# one agents tell.
again='n1:0-1:e0=0,e1=0,done srun:all'
restarts='slurm-ddp: restart 1 of 1: on the same nodes'
# after MS LINE: rank 1 fails so long after this line, of which the rest is told
nested()
{
	# shellcheck disable=SC2086 # words
	step $3 restarts=1 2 n1:0-0:w4000,K,done "n2:1-1:w4000,$4,done" \
		"srun:w$((4000 - $1)),p$2/,all,x137" $again
	said "$6" 0 "$2
slurm-ddp: rank 1 failed first on n2 (pid 1001) after 4.0 s: $5
$(others '1 other rank')
$restarts"
}
for alone in 0 1; do
	nested 3000 "$failed" alone=$alone e1=9 'exit code 9' \
		"a rank is named after srun has told of a step of another, alone=$alone"
	nested 300 "$failed" alone=$alone e1=9 'exit code 9' \
		"a rank is named just after srun has told of a step of another, alone=$alone"
	nested 3000 "$aborted" alone=$alone k1=9 'killed by signal 9 (SIGKILL)' \
		"a killed rank is named after srun has aborted a step of another, alone=$alone"
done

step 2 n1:0-0:w300,quit n2:1-1:w320,quit \
	"srun:w290,p$killed/$ends/,w500,x137"
said 'no rank is named of which only srun tells' \
	137 "$killed
$ends
slurm-ddp: which rank failed first, if any, is not known: the whole step was \
killed at once, as scancel and MPI_Abort have it done"

step 3 n1:0-0:w100,k0=15,done n2:1-2:w120,k1=15,k2=15,done \
	"srun:w140,p$failed/$ends/,all,x143"
said 'nobody is named where srun tells of a rank that a signal ended with all others' \
	143 "$failed
$ends"
step 1 n1:0-0:w400,k0=2,done \
	"srun:w200,psrun: sending Ctrl-C to StepId=12.3/$failed/$ends/,all,x130"
said 'nobody is named where srun tells of a rank that a user has interrupted' \
	130 "srun: sending Ctrl-C to StepId=12.3
$failed
$ends"

step 2 n1:0-0:w300,K,done "srun:w200,p$killed/$ends/,w300,x1"
said 'nothing is told of a rank without an agent that srun names' 1 "$killed
$ends"

# A rank is killed before the tasks of n1 have begun, and then they never do: Slurm
# may have killed it for one of theirs, but then others of its node, too.
killed='srun: error: n2: task 2: Killed'
named=$(first 2 'n2 (pid 1002)' 1 'killed by signal 9 (SIGKILL)')
step 4 n2:2-3:w100,k2=9,K,done "srun:w400,p$killed/$ends/,w2000,x143"
said 'a rank killed alone on its node before others begin is named' 137 \
	"$named
$killed
$ends
$(others '1 other rank')"
step restarts=1 4 n2:2-3:w100,k2=9,K,done "srun:w700,p$killed/$ends/,w2000,x143" \
	n1:0-1:e0=0,e1=0,done n2:2-3:e2=0,e3=0,done srun:all
said 'a step starts again whose rank was killed before other nodes begin' \
	0 "$named
$killed
$ends
$(others '1 other rank')
slurm-ddp: restart 1 of 1: on the same nodes"
step 4 n2:2-3:w100,k2=9,w50,k3=9,done "srun:w700,p$killed/$ends/,w2000,x5"
said 'a rank killed with another of its node before others begin is not named' 5 \
	"$killed
$ends"
# Agents are asked each second whether they are there.
step 4 n1:0-1:w5000,K,done n2:2-3:w5000,k2=9,K,done srun:all,x137
said 'a rank that is killed after some seconds is named, as all agents answer' 137 \
	"slurm-ddp: rank 2 failed first on n2 (pid 1002) after 5.0 s: killed by signal \
9 (SIGKILL)
$(others '3 other ranks')"
