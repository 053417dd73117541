# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# --ddp-grace, and steps that end for a rank of which no agent tells.

step alone=1 grace=1 2 n1:0-1:w100,e0=3,T,e1=0,done srun:all
said '--ddp-grace gives the others SIGTERM, and they end by themselves' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=1: 1 other rank ended by itself, none had to be killed"
within 1000 'a step ends once all have ended within --ddp-grace'
step alone=1 grace=1 4 n1:0-3:w100,e0=3,T,e1=0,k2=15,k3=15,done srun:all
said 'ranks that SIGTERM itself has ended are told apart' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=1: 1 other rank ended by itself, none had to be killed
slurm-ddp: --ddp-grace=1: 2 other ranks were ended by SIGTERM itself; if they have \
not saved, let the program handle SIGTERM, and a shell exec it"
step alone=1 grace=1 2 n1:0-1:w100,e0=3,T,k1=15,done srun:all
said 'a rank that SIGTERM itself has ended is told apart' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=1: 1 other rank was ended by SIGTERM itself; if it has \
not saved, let the program handle SIGTERM, and a shell exec it"
step alone=1 grace=1 2 n1:0-1:w100,e0=3,T,K,done srun:all
said 'ranks that outlive --ddp-grace are killed' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=1: no other rank ended by itself, 1 had to be killed"
test "$took" -ge 1000
result $? 'no rank is killed before --ddp-grace is over'
step alone=1 grace=30 2 n1:0-1:w100,e0=3,T,K,done srun:w900,x3
said '--ddp-grace is over when srun has ended' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=30: no other rank ended by itself, 1 had to be killed"

# srun alone tells of a failure. SIGTERM ends the fake, as it does the step.
task='srun: error: n1: task 0: Exited with exit code 3'
untold='slurm-ddp: rank 0 has failed, as srun says, on a node that is not watched,
and so the step ends; on such nodes there is no --ddp-grace'
untold=$(echo "$untold" | paste -sd' ')
step alone=1 grace=1 2 "srun:p$task/,w30000"
said 'a rank of which only srun tells ends the step, and --ddp-grace says no word' \
	143 "$task
$untold"
within 8000 'a step ends within 8 s of a failure of which only srun tells'
step alone=1 grace=1 4 n1:0-1:w100,quit n2:2-3:w300,T,e2=0,e3=0,done \
	"srun:w400,p$task/,w30000"
said 'ranks that are watched get SIGTERM where srun alone tells of a failure' \
	143 "$task
$untold"
# Of a node on which slurmstepd fails at once srun says neither name nor step.
unstarted='srun: error: task 2 launch failed: Unspecified error'
step alone=1 grace=1 4 n1:0-1:w300,T,e0=0,e1=0,done \
	"srun:w400,p$unstarted/,w30000"
lacks="$unstarted
slurm-ddp: some ranks could not be started, as srun says, and so the step ends"
said 'a rank that slurmstepd could not start has failed' 143 "$lacks"
step 4 n1:0-1:w300,K,done "srun:w400,p$unstarted/,w30000"
said 'a rank that slurmstepd could not start ends a step without --ddp-grace' \
	143 "$lacks"
step kill=0 4 n1:0-1:w5000,e0=0,e1=0,done "srun:w400,p$unstarted/,w5000"
said 'a step that lacks such a rank goes on with --kill-on-bad-exit=0, and fails' \
	1 "$unstarted"
step 4 "srun:w400,p$unstarted/,w5000"
said 'such a line of a rank ends no step that is not watched' 0 "$unstarted"
step 4 n1:0-1:w300,e0=0,e1=0,done "srun:w400,p$unstarted/,w200"
said 'a step that lacks such a rank has failed when the others end at once' 1 \
	"$unstarted"
step 2 n1:0-1:w300,e0=0,e1=0,done \
	"srun:w400,psrun: error: task 1 launch failed: Unspecified error/,w200"
said 'a step whose ranks have all begun has not failed by such a line' 0 \
	"srun: error: task 1 launch failed: Unspecified error"
step alone=1 3 n1:0-0:w300,quit n2:1-2:w1200,k1=9,K,done srun:all,x137
said 'a step ends where nobody knows which rank failed first' 137 \
	'slurm-ddp: which rank failed first, if any, is not known: the ddp-agent of node n1 ended before its ranks did'
within 4000 'a step of which nobody knows who failed first ends within 4 s'
step alone=1 2 n1:0-0:w100,quit n2:1-1:w300,K,done \
	"srun:w400,p$task/,w30000"
said 'a failure of which only srun tells ends a step without --ddp-grace' 143 \
	"$task
${untold%;*}"
within 3000 'a step ends within 3 s of a failure whose agent has ended'
step alone=1 grace=1 2 n1:0-1:w4000,e0=0,e1=0,done "srun:w200,p$task/,all"
said 'a line as of srun'\''s does not end a step whose ranks are all watched' 0 "$task"
step alone=1 grace=1 2 n1:0-0:w100,quit n2:1-1:w5500,e1=0,done \
	"srun:w200,psrun: error: n2: task 1: Killed/,all"
said 'a line as of srun'\''s on a rank that is watched does not end the step' 0 \
	"srun: error: n2: task 1: Killed
slurm-ddp: node n1 is not watched any more, as its ddp-agent has ended; the \
step goes on under Slurm's own rules"
step 2 n1:0-0:w100,quit "srun:w200,p$task/,w4500"
said 'a failure of which only srun tells is left to Slurm where that ends the step' \
	0 "$task
slurm-ddp: node n1 is not watched any more, as its ddp-agent has ended; the \
step goes on under Slurm's own rules"
