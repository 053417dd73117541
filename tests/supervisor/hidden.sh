# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Failures of which srun alone tells, and no agent does.

# Of a rank whose agent is stopped srun alone tells.
killed='srun: error: n2: task 1: Killed'
step 2 n1:0-0:w400,e0=3,done n2:1-1:deaf \
	"srun:w390,p$killed/$ends/,w1500,x137"
said 'nobody is named where srun told before of a rank whose agent is stopped' \
	137 "slurm-ddp: \
which rank failed first is not known: srun says that rank 1 had failed, and \
the ddp-agent of n2 does not tell of it
$killed
$ends"
step 2 n1:0-0:w400,e0=3,K,done n2:1-1:deaf "srun:w300,w400,\
psrun: error: n1: task 0: Exited with exit code 3/$killed/$ends/,w1500,x3"
equal 'a rank is named of which srun tells before that of a stopped agent' \
	"3 $(first 0 'n1 (GPU 0, pid 1000)' 4 'exit code 3')" \
	"$status $(head -n 1 err)"

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
said 'a rank of which only srun tells is told where nobody is named' \
	137 "$killed
$ends
slurm-ddp: which rank failed first is not known: srun says that rank 1 had \
failed, and no ddp-agent tells of it"

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

# A rank is killed before the tasks of n1 have begun, and then they never do. For
# what srun says is waited, but not for ever.
killed='srun: error: n2: task 2: Killed'
named=$(first 2 'n2 (pid 1002)' 1 'killed by signal 9 (SIGKILL)')
for wait in 700 1100; do
	step 4 n2:2-3:w100,k2=9,K,done "srun:w$wait,p$killed/$ends/,w2000,x143"
	said "a rank killed before other nodes begin is named once srun tells of it at $wait ms" \
		137 "$named
$killed
$ends
$(others '1 other rank')"
done
step 4 n2:2-2:w100,k2=9,done "srun:w700,p$killed/$ends/,w2000,x137"
said 'a rank killed alone on its node before others begin is named' 137 "$named
$killed
$ends"
step restarts=1 4 n2:2-3:w100,k2=9,K,done "srun:w700,p$killed/$ends/,w2000,x143" \
	n1:0-1:e0=0,e1=0,done n2:2-3:e2=0,e3=0,done srun:all
said 'a step starts again whose rank was killed before other nodes begin' \
	0 "$named
$killed
$ends
$(others '1 other rank')
slurm-ddp: restart 1 of 1: on the same nodes"

# nameless NAME LINES SRUN AGENT...: that one prints these lines, and has the code
nameless()
{
	nameless_name=$1 nameless_lines=$2 nameless_srun=$3
	shift 3
	step 4 "$@" "srun:$nameless_srun,x5"
	said "$nameless_name" 5 "$nameless_lines"
}
nameless 'a rank killed before others begin is not named where srun says nothing' \
	'' w2500 \
	n2:2-3:w100,k2=9,w1500,K0,done
task='srun: error: n1: task 0: Exited with exit code 3'
nameless 'a rank killed before others begin is not named where srun names another before' \
	"$task
$killed
$ends" "w700,p$task/$killed/$ends/,w2000" n2:2-3:w100,k2=9,w1500,K0,done
task='srun: error: n1: task 2: Killed'
nameless 'a rank killed before others begin is not named for a task of another node' \
	"$task
$ends" "w700,p$task/$ends/,w2000" n2:2-3:w100,k2=9,w1500,K0,done
nameless 'a rank killed before others begin is not named where Slurm had ended the step' \
	"$cancelled
$killed" "w400,p$cancelled/$killed/,w2100" n2:2-3:w200,k2=9,w1500,K0,done
nameless 'a rank killed before others begin is not named where Slurm ends the step later' \
	"$killed
$cancelled" "w400,p$killed/,w100,p$cancelled/,w2000" \
	n2:2-3:w200,k2=9,w1500,K0,done
nameless 'a rank killed with all of its node before others begin is not named' \
	"$killed
$ends" "w700,p$killed/$ends/,w2000" n2:2-3:w100,k2=9,w500,k3=9,done
task='srun: error: n2: task 2: Terminated'
nameless 'a rank ended by SIGTERM before others begin is not named' "$task
$ends" "w700,p$task/$ends/,w2000" n2:2-3:w100,k2=15,w300,k3=15,done
# Agents are asked each second whether they are there.
step 4 n1:0-1:w5000,K,done n2:2-3:w5000,k2=9,K,done srun:all,x137
said 'a rank that is killed after some seconds is named, as all agents answer' 137 \
	"slurm-ddp: rank 2 failed first on n2 (pid 1002) after 5.0 s: killed by signal \
9 (SIGKILL)
$(others '3 other ranks')"
