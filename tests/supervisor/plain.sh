# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# A step that ends well, what of srun passes through, limits, ports, and the signal
# before the end of a job.

step 2 n1:0-1:e0=0,e1=0,done srun:phello/,all
said 'a step that ends well prints what srun prints, and no more' 0 hello
step 2 n1:0-1:e0=0,e1=0,done srun:all,x4
said 'the code of a step in which no rank fails is srun'\''s' 4 ''
step 1 n1:0-0:done srun:s9
said 'an srun that is killed is told, and its signal is the code' 137 \
	'slurm-ddp: srun itself was killed by signal 9, and so the step ends'
step 2 srun:x1,
said 'a step that is never launched ends with srun'\''s code' 1 ''
step 1 srun:pend
printf end >wanted
check 'output of srun'\''s without a newline arrives so' cmp wanted err

# Nodes that come one after the other, more than there can be connections to. When
# the first of them have ended, others still find room.
set --
for rank in $(seq 19); do
	set -- "$@" "n$rank:$rank-$rank:l$((rank * 50)),K,done"
done
call timeout -k 1 60 sh -c 'ulimit -n 16; exec ./srun "$@"' sh 20 \
	n0:0-0:w1500,e0=3,K,done "$@" srun:w3000,x3
sed 's/ [0-9]* nodes/ N nodes/; s/ [0-9.]* s:/ T s:/; s/ [0-9]* other/ N other/' \
	err >full
equal 'too few open files for all nodes are told once, and the step ends' \
	'3 slurm-ddp: only N nodes are watched: Too many open files; raise ulimit -n
slurm-ddp: rank 0 failed first on n0 (GPU 0, pid 1000) after T s: exit code 3
slurm-ddp: N other ranks ended because of it' "$status $(cat full)"

set --
for rank in $(seq 0 11); do
	set -- "$@" "n$rank:$rank-$rank:l$((rank * 50)),w1500,e$rank=0,done"
done
call timeout -k 1 60 sh -c 'ulimit -n 14; exec ./srun "$@"' sh 14 "$@" \
	n12:12-13:l4000,w500,e12=3,K,done srun:w6000,x3
check 'agents that come when others have ended find room among the open files' \
	grep 'rank 12 failed first on n12' err

call timeout -k 1 60 sh -c 'ulimit -S -n 6; exec ./srun "$@"' sh restarts=1 2 \
	n1:0-1:w100,e0=3,K,done srun:files,all,x3 \
	n1:0-1:e0=0,e1=0,done srun:files,all
grep files err >full
equal 'a limit on files that is too low for pipes is raised, but not for srun' \
	'0 6 files 6 files' "$status $(paste -sd' ' full)"

# Lines of Slurm's come after the report, others at once.
step 2 n1:0-1:w100,e0=3,K,done \
	'srun:w250,psrun: error: a/mine/slurmstepd-n1: b/srun/,all'
said 'the report comes before lines of Slurm'\''s' 3 "mine
srun
$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '1 other rank')
srun: error: a
slurmstepd-n1: b"
step 2 n1:0-1:w200,e0=3,K,done 'srun:w150,psrun: error: a/mine/,all'
said 'the report comes before lines of Slurm'\''s that came a moment ago' 3 "mine
$(first 0 'n1 (GPU 0, pid 1000)' 2 'exit code 3'; others '1 other rank')
srun: error: a"
step 2 n1:0-1:w900,e0=3,K,done 'srun:w150,psrun: a/mine/srun: b/s,all'
said 'lines of Slurm'\''s are held for no longer than a moment' 3 "mine
srun: a
srun: b
s
$(first 0 'n1 (GPU 0, pid 1000)' 9 'exit code 3'; others '1 other rank')"
return=$(printf '\r')
for end in '' "$return"; do
	step 2 n1:0-1:w900,e0=3,K,done "srun:w150,p0%$return 50%$end,w150,all"
	said "what the supervisor says does not begin behind a bar${end:+ that ends}" 3 \
		"0%$return 50%$end
$(first 0 'n1 (GPU 0, pid 1000)' 9 'exit code 3'; others '1 other rank')"
done
step kill=0 2 n1:0-1:w100,e0=3,w1500,e1=0,done \
	'srun:w400,psrun: error: a/,w800,psrun: error: b/,all'
said 'a failure under --kill-on-bad-exit=0 is reported and ends nothing' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
srun: error: a
srun: error: b"

step 4 n1:0-2:e0=0,e2=0,w33000,e1=0,done n2:3-3:w33000,e3=0,done srun:all
said 'ranks that ended well are named where others wait for long' 0 \
	'slurm-ddp: ranks 0,2 ended with exit code 0 a while ago, and ranks 1,3 still run; do they wait for each other?'

step 2 n1:0-1:e0=0,w20000,e1=0,done srun:all
said 'ranks that end within half a minute of each other are not told' 0 ''
step 3 n1:0-0:e0=0,done n2:1-2:l33000,w500,e1=0,w500,e2=0,done srun:all
said 'ranks are not told to have ended long ago where others begin late' 0 ''
step 3 n1:0-1:e0=0,w33000,e1=0,done srun:w34000
said 'ranks that ended well are not told while not all ranks are known' 0 ''
step kill=0 2 n1:0-1:w100,e0=3,w3000,e1=0,done \
	'srun:w200,psrun: error: a/,w1300,pmine/,all'
said 'lines of Slurm'\''s are held for a second at most while others go on' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
srun: error: a
mine"

# --ddp-signal: the number of a task of an array may stand for the whole
export SLURM_JOB_ID=12 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3
echo "RUNNING $(($(date +%s) + 3600))" >squeue.says
step signal=USR1@60 1 n1:0-0:w900,e0=0,done srun:all
said 'a job gets no signal long before its end' 0 ''
equal 'slurmctld is asked for the task of a job array' \
	'squeue -ah -tall -j 7_3 -o %T %e' \
	"$(cat "$ASKED")"
SLURM_JOB_ID=11 step signal=USR1@60 1 n1:0-0:w900,e0=0,done srun:all
unset SLURM_JOB_ID SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID
equal 'a task of an array asks for the job of its step, if that is another' \
	'squeue -ah -tall -j 12 -o %T %e' "$(cat "$ASKED")"
echo "RUNNING $(($(date +%s) + 61))" >squeue.says
step signal=TERM@60 1 n1:0-0:T,e0=0,done srun:all
sed 's/ [0-9]* s$/ N s/' err >why
equal 'the ranks get a signal once, some time before their job ends' \
	'0 slurm-ddp: the ranks get SIGTERM, as their job ends in N s' \
	"$status $(cat why)"
rm squeue.says

# SrunPortRange, of which one port is free
cat >ports.py <<'END'
import os, socket, sys
held = []
while len(held) < 6:
    held = [socket.socket(socket.AF_INET6)]
    held[0].bind(("::", 0))
    first = held[0].getsockname()[1]
    try:
        for port in range(first + 1, first + 6):
            held.append(socket.socket(socket.AF_INET6))
            held[-1].bind(("::", port))
    except OSError:
        held = []
for each in held:
    each.listen()
if sys.argv[1] == "1":
    held[4].close()
code = os.spawnv(os.P_WAIT, "./srun",
                 ["srun", "ports=%d-%d" % (first, first + 5)] + sys.argv[2:])
print(first, first + 5)
sys.exit(code)
END
call "$python" ports.py 1 1 n1:0-0:e0=0,done srun:all
said 'the one free port of a range is found' 0 ''
call "$python" ports.py 0 1 n1:0-0:e0=0,done srun:all
read -r from to <out
said 'srun does not start where no port of the range is free' \
	98 "no port from $from to $to \
(SrunPortRange) for the nodes to connect to: Address already in use; widen the \
range, or use --ddp-supervise=off"
