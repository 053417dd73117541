# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Agents that come late, go, or are stopped, and nodes that are lost.

step 2 n1:0-1:w100,orphan,K,done srun:all,x1
said 'a node whose slurmstepd has ended is lost' 1 \
	"slurm-ddp: node n1 was lost first, after 0.1 s: its slurmstepd has ended"
step 2 n1:0-0:w900,e0=3,K,done n2:1-1:w1000,a600,orphan,K,done srun:all,x1
said 'a node is named that was lost before a rank failed' 1 \
	"slurm-ddp: node n2 was lost first, after 0.4 s: its slurmstepd has ended
$(others '1 other rank')"
step 2 n1:0-0:w100,e0=3,K,done n2:1-1:l800,K,done srun:all
said 'an agent that comes when the step ends does not hold it up' 3 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
$(others '1 other rank')"
check 'an agent that comes late ends its ranks, so that Slurm need not' \
	test ! -e "$ASKED"
step 2 n1:0-1:w100,e0=3,K0,stays,deaf,w9000 srun:hang
said 'a process that cannot be killed is told' 3 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: rank 0 on n1 (pid 1000) stays: D, in nfs_wait_bit_killable
$(others '1 other rank')"
within 6000 'a process that cannot be killed keeps srun for 6 s at most'
step 2 n1:0-1:e0=0,e1=0,w500,quit srun:w200
said 'an agent that srun does not wait for is no failure' 0 ''
step report=r.json 2 n1:0-1:w100,K,done srun:w300,x4
equal 'ranks that srun has left behind are ended' '4 2' \
	"$status $(grep -c '"signal": 9' r.json)"
step 1 n1:0-0:w100,quit srun:w3000
said 'a node that is not watched any more is told' \
	0 "slurm-ddp: node n1 is not \
watched any more, as its ddp-agent has ended; the step goes on under Slurm's \
own rules"
unknown='slurm-ddp: which rank failed first, if any, is not known:'
step 2 n1:0-0:deaf,w4600,quit n2:1-1:w4500,k1=9,done srun:all,x143
said 'an agent that is stopped is the reason why nobody is named' 143 \
	"$unknown the ddp-agent of node n1 had stopped to answer"
step 2 n1:0-0:w300,quit n2:1-1:w320,quit srun:all,x143
said 'a step that is killed with its agents is told as such' 143 \
	"$unknown the whole step was killed at once, as scancel and MPI_Abort have \
it done"
step 2 n1:0-0:w100,quit n2:1-1:l60,w300,quit srun:w3200,x141
said 'agents that ended before their ranks are the reason why nobody is named' \
	141 \
	"slurm-ddp: node n1 is not watched any more, as its ddp-agent has ended; \
the step goes on under Slurm's own rules
slurm-ddp: node n2 is not watched any more, as its ddp-agent has ended; the \
step goes on under Slurm's own rules
$unknown the ddp-agent of node n1 ended before its ranks did"
step 2 n1:0-0:w300,quit n2:1-1:w1200,k1=15,done srun:all,x143
said 'an agent that ended a second before a rank is the reason why nobody is named' \
	143 \
	"$unknown the ddp-agent of node n1 ended before its ranks did"
step 1 n1:0-0:w100,reset srun:w3000
said 'a node whose connection is reset is not watched any more, but not lost' 0 \
	"slurm-ddp: node n1 is not watched any more, as its ddp-agent has ended; the \
step goes on under Slurm's own rules"
step 2 n1:0-1:w100,orphan,K,done srun:hang
said 'an srun that waits for a node without its slurmstepd is ended' 1 \
	"slurm-ddp: node n1 was lost first, after 0.1 s: its slurmstepd has ended"
within 2000 'an srun that waits for a node that is lost ends within 2 s'
step 2 n1:0-0:w500,e0=0,done n2:1-1:w100,e0=7,w400,e1=0,done srun:all
said 'an agent cannot tell of the end of a rank of another node' 0 ''
step 2 n1:0-1:e0=0,e1=0,done srun:w2500
said 'an agent that has told all may go while srun goes on' 0 ''
step 2 n1:0-1:deaf,w60000 srun:w200
said 'a stopped agent is no failure once srun has ended well' 0 ''
within 3000 'a stopped agent holds up the end of srun for 3 s at most'

# Who connects, and knows no secret of the step
step 3 n9:2-2:forge,w100,e2=7,done n1:0-1:w500,e0=0,e1=0,done srun:all
said 'a rank fails by the word of an agent with the right secret only' 0 ''
step 2 n9:0-0:s1=1 n1:0-1:w20000,e0=0,e1=0,done srun:all
said 'a stranger who proves nothing is put out' 0 'strangers: 1 put out, the first'
# The first agent comes when strangers have all descriptors but one, or about all.
codes=
for strangers in 4 5 6 7; do
	call timeout -k 1 60 sh -c 'ulimit -n 14; exec ./srun "$@"' sh 1 \
		n9:0-0:s$strangers=1 n1:0-0:l500,e0=0,done srun:w3000,x0
	codes="$codes $status"
done
equal 'an agent that gets the last open file is believed' ' 0 0 0 0' "$codes"
if sh -c 'ulimit -n 1100' 2>why; then
	call timeout -k 1 60 sh -c 'ulimit -n 1100; exec ./srun "$@"' sh 2 \
		n9:0-0:s1030=6 n1:0-1:l3000,w100,e0=3,K,done srun:all
	said 'of 1030 strangers 1024 stay, and an agent still finds a place' 3 \
		"strangers: 6 put out, the first
$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '1 other rank')"
else
	skip 'of 1030 strangers 1024 stay' "$(cat why)"
fi
