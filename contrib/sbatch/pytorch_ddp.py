# SPDX-License-Identifier: BSD-3-Clause
"""DistributedDataParallel on whatever srun --ddp has set up."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)

    torch.manual_seed(0)
    model = torch.nn.Linear(16, 1).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    target = torch.arange(16.0, device=device).reshape(16, 1) / 16
    torch.manual_seed(1 + rank)
    for step in range(50):
        x = torch.randn(64, 16, device=device)
        loss = torch.nn.functional.mse_loss(model(x), x @ target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss)
        if rank == 0 and step % 10 == 9:
            mean = loss.item() / dist.get_world_size()
            print(f"step {step + 1} loss {mean:.6f}", flush=True)

    print(f"rank {rank} of {dist.get_world_size()} done", flush=True)
    dist.barrier()  # gloo may still hold the loss, which aborts Python's end
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
