# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch-Ignite's idist.Parallel."""
import fake_cuda
import ignite.distributed as idist
import torch

from report import report


def main(local_rank):
    torch.cuda.set_device(local_rank)
    rank = idist.get_rank()
    total = idist.all_reduce(torch.tensor(rank))
    report(rank, idist.get_world_size(), total, fake_cuda.current)


with idist.Parallel(backend="gloo") as parallel:
    parallel.run(main)
