# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; inner shells expand
# PyTorch's pmix:// under a plain srun --mpi=pmix: who meets whom, what goes
# wrong. $python says whose PyTorch.

python=${python:-/usr/bin/python3}
if ! "$python" -c 'import torch.distributed' 2>/dev/null; then
	skip 'pmix://' "no torch for $python"
	return 0
fi
module=$(find "$dir/root" -name slurm_ddp.py)
include=$(dirname "$(find "$dir/root" -name ddp.h)")
cp "$top/tests/boot/meet.py" . && chmod 644 meet.py
PYTHONPATH=${module%/*}
PYTHONDONTWRITEBYTECODE=1
DDP_LIBRARY=$(find "$dir/root" -name libddp.so.0)
export PYTHONPATH PYTHONDONTWRITEBYTECODE DDP_LIBRARY

# said WANTED NAME: what all ranks printed, in their order, without seconds and
# ports that differ from run to run
said()
{
	sed 's/waited [0-9.]* s/waited/' out | sort -n >had
	printf '%s\n' "$1" | sort -n >wanted
	diff wanted had >why && test "$status" -eq 0
	result $? "$2"
}

check 'slurm_ddp.py is what Python 3.9 can read' "$python" -c 'import ast, sys
ast.parse(open(sys.argv[1]).read(), feature_version=(3, 9))' "$module"
cat >layout.c <<-'END'
	#include <ddp.h>
	#include <stdio.h>

	#define SHOW(type, name) \
		printf(#name " %zu %zu\n", __builtin_offsetof(struct type, name), \
		       sizeof(((struct type *)0)->name))

	int main(void)
	{
		printf("%zu %zu\n", sizeof(struct ddp_error),
		       sizeof(struct ddp_job_options));
		SHOW(ddp_error, code);
		SHOW(ddp_error, native);
		SHOW(ddp_error, text);
		SHOW(ddp_job_options, size);
		SHOW(ddp_job_options, launch);
		SHOW(ddp_job_options, timeout_ms);
		printf("ARGUMENT %d\nSYSTEM %d\nTIMEOUT %d\nPEER %d\nPMIX %d\n"
		       "NCCL %d\nCUDA %d\n", DDP_ERROR_ARGUMENT,
		       DDP_ERROR_SYSTEM, DDP_ERROR_TIMEOUT, DDP_ERROR_PEER,
		       DDP_ERROR_PMIX, DDP_ERROR_NCCL, DDP_ERROR_CUDA);
		return 0;
	}
END
cc -I"$include" -o layout layout.c && ./layout >wanted
call "$python" -c '
import ctypes
from slurm_ddp import _CODES, _Error, _Options
print(ctypes.sizeof(_Error), ctypes.sizeof(_Options))
for struct in _Error, _Options:
    for name, _ in struct._fields_:
        field = getattr(struct, name)
        print(name, field.offset, field.size)
for number, name in _CODES.items():
    if number:
        print(name, number)'
check 'the structs and codes in Python are those of ddp.h' diff wanted out

h=$(uname -n)
call env MASTER_ADDR=nowhere "$python" meet.py meet=3 world_size=1 meet=1
said "0 $h rank 0 of 1, sum 1
0 $h rank 0 of 1, sum 1" 'one process is a world'
call env SLURM_STEP_NUM_TASKS=4 "$python" meet.py meet=1
said "0 $h DdpError: this is one of 4 tasks (SLURM_STEP_NUM_TASKS), which \
cannot find each other without PMIx: start it with srun --mpi=pmix or srun \
--ddp" 'one of several tasks without PMIx is none'
call env DDP_LIBRARY=/nowhere "$python" meet.py meet=1
said "0 $h DdpError: cannot load libddp: /nowhere: cannot open shared object \
file: No such file or directory: set DDP_LIBRARY to the path of libddp.so.0 on \
this node" 'a libddp that is not there'
call env -u DDP_LIBRARY LD_LIBRARY_PATH="${DDP_LIBRARY%/*}" "$python" meet.py \
	meet=1
said "0 $h rank 0 of 1, sum 1" 'one that the loader finds'
call "$python" -c 'import torch.distributed as dist
dist.init_process_group("gloo", init_method="pmix://")
print(0, dist.get_world_size())'
if grep -q 'No rendezvous handler' err; then
	skip 'pmix:// without an import' 'this PyTorch calls no entry points'
else
	said '0 1' 'pmix:// without an import'
fi
call "$python" -c 'import slurm_ddp
import torch.distributed as dist
for url in "pmix://n1:5000", "pmix://?port=5000":
    try:
        dist.init_process_group("gloo", init_method=url)
    except ValueError as error:
        print(0, error)
dist.init_process_group("gloo", init_method="pmix://")
print(0, dist.get_world_size())'
said '0 pmix://n1:5000: pmix:// takes no address and no options
0 pmix://?port=5000: pmix:// takes no address and no options
0 1' 'an address in the URL is refused'

# What counts: the rank, a program that it starts, and no worker that it forks
DDP_HEARTBEAT_FILE=$PWD/beats
export DDP_HEARTBEAT_FILE
call "$python" -c 'import os, slurm_ddp, subprocess, sys
slurm_ddp.heartbeat()
worker = os.fork()
slurm_ddp.heartbeat()
if not worker:
    os._exit(0)
os.waitpid(worker, 0)
subprocess.run([sys.executable, "-c", """import ctypes, os
ctypes.CDLL(os.environ["DDP_LIBRARY"]).ddp_heartbeat()"""], check=True)'
equal 'heartbeats are counted' '0  4096 3' "$status $(cat err) $(wc -c <beats) $(
	od -An -tu8 -N8 beats | tr -d ' ')"
rm -f beats
call "$python" meet.py meet=2
# Each meeting exchanges two records.
equal 'meetings are counted as heartbeats' \
	4 "$(od -An -tu8 -N8 beats | tr -d ' ')"
unset DDP_HEARTBEAT_FILE

if test -n "$why"; then
	skip 'pmix:// on two nodes' "$why"
	return 0
fi
cluster --nodes 2 --gpus 2 --cpus 8

# two ARGUMENT...: a step of two nodes with two ranks each
two()
{
	call login srun --mpi=pmix -N2 --ntasks-per-node=2 "$python" meet.py \
		"$@"
}

# each WORDS [HOST0 HOST1 HOST2 HOST3]: the lines of four ranks
each()
{
	each_words=$1
	shift
	test $# -gt 0 || set -- n1 n1 n2 n2
	for rank in 0 1 2 3; do
		echo "$rank $1 $each_words" | sed "s/rank RANK/rank $rank/"
		shift
	done
}
world='rank RANK of 4, sum 10'

two meet=20
said "$(each "$world")" 'two ranks on each of two nodes meet 20 times'
printf '%s\n' n2 n1 n1 n2 >hostfile
call login env SLURM_HOSTFILE="$scratch/hostfile" srun --mpi=pmix -n4 \
	-m arbitrary "$python" meet.py meet=1
said "$(each "$world" n2 n1 n1 n2)" 'a host file in another order'
call login srun --ddp -N2 --gres=gpu:2 "$python" meet.py meet=2
said "$(each "$world")" 'srun --ddp'
call login salloc -Q -N2 --ntasks-per-node=4 sh -c '
	for i in 1 2; do
		srun --mpi=pmix --exact -N2 -n4 "$0" meet.py meet=20 >step$i &
	done
	wait' "$python"
cat step1 step2 >out
said "$(each "$world"; each "$world")" \
	'two steps at once on the same nodes meet 20 times each'
two threads meet=1
said "$(each "$world"; each 'arrived [4, 4]')" 'two threads meet at once'

two meet=1 timeout=4 @3:sleep=12 !3:meet=1
said "$(each "$world"; each 'DdpError: waited for rank 3 on n2' | sed 3q)" \
	'a rank that does not come is named'
wrong="by PMIx this is rank 1 of 4: unset it, and start one process a task"
two @1:world_size=8 meet=1
said "$(each "DdpError: rank 1 on n1: world_size is 8, but $wrong" |
	sed 's/^\(1 n1\) DdpError: rank 1 on n1/\1 ValueError/')" \
	'another world_size is refused, on all ranks'
call login srun --mpi=pmix -N2 --ntasks-per-node=2 sh -c \
	'test $SLURM_PROCID -ne 1 || export RANK=0; exec "$0" meet.py meet=1' \
	"$python"
said "$(each "DdpError: rank 1 on n1: the variable RANK is 0, but $wrong" |
	sed 's/^\(1 n1\) DdpError: rank 1 on n1/\1 ValueError/')" \
	"so is what another launcher's variables say"
two meet=1 @2:fork meet=1
said "$(each "$world"; each "$world"; echo '2 n2 DdpError: this process is a' \
	'child of a rank that has joined the job: use the job in that rank' \
	'alone')" 'a child of fork is no rank, and its parent still is'
two no-libuv meet=1
said "$(each "$world")" 'a PyTorch without libuv'
two @0:no-store meet=1
said "$(each 'DdpError: rank 0 on n1: no store today' |
	sed 's/^\(0 n1\) .*/\1 RuntimeError: no store today/')" \
	'no rank waits for a store that cannot be opened'
two @0:no-port meet=1
# Rank 0 speaks of the first who said so.
said "$(each "ConnectionError: cannot reach rank 0's store on n1, port 1, from \
HOST: [Errno 111] Connection refused: that name must lead to rank 0's node \
from every node, and no firewall may be between" |
	sed '1s/ConnectionError/DdpError: rank 1 on n1/
	s/^\(. \)\(n.\)\(.*\)HOST/\1\2\3\2/')" 'a store that cannot be reached'
unset PYTHONPATH PYTHONDONTWRITEBYTECODE DDP_LIBRARY
