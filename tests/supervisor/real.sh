# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Steps by the machine's clock, one for each kind of wait that is short: all run at
# the same time.

# real WORDS...: such a step, for a minute at most
real()
{
	timeout -k 1 60 ./real "$@"
}

: >began
real 2 n1:0-1:w100,e0=3,K,done srun:hang 2>real_hang &
hang=$!
real alone=1 grace=1 2 n1:0-1:w100,e0=3,T,K,done srun:all 2>real_grace &
grace=$!
real watchdog=1 2 n1:0-1:i1000,X,d0=S=a=600,d1=S=b=600,K,done srun:all \
	2>real_watchdog &
watchdog=$!
real 1 n1:0-0:w100,quit srun:w3000 2>real_left &
left=$!

# take PID FILE: takes what that step printed. All end within 6 s, and of one that
# took longer, what is found tells of lateness alone.
take()
{
	wait "$1"
	status=$?
	test "$(find began -newermt '-9 seconds')" || late=' # LATE'
	mv "$2" err
}
take $hang real_hang
said_soon 'by the machine'\''s clock an srun that hangs after a failure is ended' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '1 other rank')"
take $grace real_grace
said_soon 'by the machine'\''s clock ranks that outlive --ddp-grace are killed' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: --ddp-grace=1: no other rank ended by itself, 1 had to be killed"
take $watchdog real_watchdog
equal 'by the machine'\''s clock a step in which nobody makes progress is ended' \
	'124 1' "$status $(grep -c 'no rank has made progress for 1 s' err)"
take $left real_left
said 'by the machine'\''s clock a node that is not watched any more is told' 0 \
	"slurm-ddp: node n1 is not watched any more, as its ddp-agent has ended; the \
step goes on under Slurm's own rules"
late=
