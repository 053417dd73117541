# SPDX-License-Identifier: BSD-3-Clause
"""The same training by DataParallel in one process, or by
DistributedDataParallel in several: the same losses; which is faster?"""
import os
import time

import torch
import torch.distributed as dist
from torch import nn

BATCH, STEPS = 128, 12


def wrap(net, ranks):
    if ranks == 1:
        return nn.DataParallel(net), "DataParallel"
    return nn.parallel.DistributedDataParallel(net), "DDP"


def main():
    gpu = torch.cuda.is_available()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks > 1:
        dist.init_process_group("nccl" if gpu else "gloo")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1))
    model, name = wrap(net.to(device), ranks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005)
    for step in range(STEPS):
        if step == 2:  # the first steps set things up
            begin = time.monotonic()
        # All ranks draw the whole batch, and each takes its part.
        x = torch.randn(BATCH, 512).chunk(ranks)[rank].to(device)
        y = x.mean(dim=1, keepdim=True) * 20
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach() / ranks
        if ranks > 1:
            dist.all_reduce(mean)
        if rank == 0:
            print(name, "step", step + 1, f"loss {mean.item():.4f}")
    if rank == 0:
        speed = BATCH * (STEPS - 2) / (time.monotonic() - begin)
        print(f"{name}, {ranks} ranks x {torch.get_num_threads()} threads, "
              f"samples a second: {speed:.0f}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
