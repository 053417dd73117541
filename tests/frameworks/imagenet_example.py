# SPDX-License-Identifier: BSD-3-Clause
"""The shape of PyTorch's imagenet example: it takes RANK and WORLD_SIZE, and
never a device other than the first in sight, unless it starts the processes of
a node itself."""
import os
import sys

import fake_cuda
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from report import report


def worker(gpu, gpus):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if gpus is not None:
        rank, size = rank * gpus + gpu, size * gpus
        torch.cuda.set_device(gpu)
    dist.init_process_group("gloo", init_method="env://", rank=rank,
                            world_size=size)
    total = torch.tensor(rank)
    dist.all_reduce(total)
    report(rank, size, total, fake_cuda.current)
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:] == ["--multiprocessing-distributed"]:
        count = len(fake_cuda.in_sight())
        mp.spawn(worker, nprocs=count, args=(count,))
    else:
        worker(None, None)
