# SPDX-License-Identifier: BSD-3-Clause
"""The indices that PyTorch's own DistributedSampler gives to each replica.

sampler.py CASES WANTED: writes to CASES what tests/train/sampler.c reads (the
permutation is the one that torch drew), and to WANTED what it should print.
"""
import sys

import torch
from torch.utils.data.distributed import DistributedSampler

drawn = []
randperm = torch.randperm


def record(*arguments, **options):
    drawn.append(randperm(*arguments, **options))
    return drawn[-1]


torch.randperm = record
with open(sys.argv[1], "w") as cases, open(sys.argv[2], "w") as wanted:
    for samples in (1, 2, 3, 5, 7, 8, 16, 17, 31, 100, 1000):
        for replicas in (1, 2, 3, 4, 7, 8, 13, 64):
            for drop_last in (False, True):
                if drop_last and samples < replicas:
                    continue
                for epoch in (0, 1, 5):
                    for rank in range(replicas):
                        sampler = DistributedSampler(
                            range(samples), replicas, rank, shuffle=True,
                            seed=samples, drop_last=drop_last)
                        sampler.set_epoch(epoch)
                        print(*sampler, file=wanted)
                    permutation = drawn[-1].tolist()
                    print(samples, replicas, int(drop_last), *permutation,
                          file=cases)
assert len(drawn) > 1000 and drawn[0].tolist() == [0]
