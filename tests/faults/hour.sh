# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# Healthy training whose steps are quiet for longer than the watchdog waits.

cat >quiet.py <<'END'
"""PyTorch over gloo for argv[1] seconds. In each step one rank computes for 5 to
25 s while the others wait for it, or all ranks do. Nobody prints."""
import random, sys, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
random.seed(0)  # all ranks agree on whose turn it is
end = time.time() + float(sys.argv[1])
more = torch.ones(1)
while more:
    step_end = time.time() + random.uniform(5, 25)
    turn = random.randrange(world + 1)
    while turn in (rank, world) and time.time() < step_end:
        torch.mm(torch.rand(128, 128), torch.rand(128, 128))
    more = torch.tensor([float(time.time() < end)])
    dist.all_reduce(more, op=dist.ReduceOp.MIN)
dist.barrier()
dist.destroy_process_group()
END
hour=${FAULTS_HOUR:-3600}
case " $have :$has_mpi" in
*' torch :1') ;;
*)	skip 'an hour of quiet steps' 'there is no PyTorch without MPI'
	return ;;
esac
call bounded $((hour + 120)) env USE_LIBUV=0 srun --ddp --ddp-watchdog=10 -N2 \
	--gres=gpu:2 "$python" quiet.py "$hour"
echo "code $status" >why
test "$status" -eq 0 && ! grep '^slurm-ddp: ' err >>why && left >>why &&
	! test -s left.out
result $? "$hour s of healthy steps that are quiet for up to 25 s"
