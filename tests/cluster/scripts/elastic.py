# SPDX-License-Identifier: BSD-3-Clause
"""The toy model, one step, as torchrun starts it."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    print(f"Start running basic DDP example on rank {rank}.", flush=True)
    device = torch.device(f"cuda:{local_rank}" if gpu else "cpu")
    model = DistributedDataParallel(ToyModel().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer.zero_grad()
    y = model(torch.randn(20, 10, device=device))
    nn.functional.mse_loss(y, torch.randn(20, 5, device=device)).backward()
    optimizer.step()
    print(f"rank {rank} of {dist.get_world_size()}, worker {local_rank} on "
          f"{os.uname().nodename} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
