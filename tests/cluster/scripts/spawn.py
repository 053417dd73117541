# SPDX-License-Identifier: BSD-3-Clause
"""One process a node, which starts a rank for each GPU of its node:
spawn.py -n NODES -g GPUS -nr NODE"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(gpu, args):
    rank = args.nr * args.gpus + gpu
    if rank == args.fail:
        raise ValueError(f"rank {rank} finds no data")
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo", rank=rank,
                            world_size=args.nodes * args.gpus)
    device = torch.device(f"cuda:{gpu}" if cuda else "cpu")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + rank)
    for _ in range(args.steps):
        x = torch.randn(32, 8, device=device)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss)
    print(f"rank {rank} of {dist.get_world_size()}, GPU {gpu} of node "
          f"{args.nr} on {os.uname().nodename}: mean loss "
          f"{loss.item() / dist.get_world_size():.4f}")
    dist.barrier()
    dist.destroy_process_group()
    # Threads of gloo's that have not ended would abort a Python that ends.
    sys.stdout.flush()
    os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--nodes", type=int, default=1)
    parser.add_argument("-g", "--gpus", type=int, default=1)
    parser.add_argument("-nr", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--fail", type=int, help="the rank that raises")
    args = parser.parse_args()
    mp.spawn(train, nprocs=args.gpus, args=(args,))


if __name__ == "__main__":
    main()
