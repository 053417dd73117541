# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision, with the scaler in the checkpoint: amp.py STEPS [RESUME]
saves to amp-STEP.pt at every fourth step, and goes on from the file RESUME."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_scaler(device):
    """Before 2.3 it scales on GPUs only, where it is needed most."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type, growth_interval=3)
    return torch.cuda.amp.GradScaler(growth_interval=3,
                                     enabled=device.type == "cuda")


def train(device, steps, resume):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    model = DistributedDataParallel(net.to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler, first = make_scaler(device), 0
    if resume:
        saved = torch.load(resume, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        first = saved["step"]
    half = torch.float16 if device.type == "cuda" else torch.bfloat16
    for step in range(first, steps):
        torch.manual_seed(1000 * step + dist.get_rank())
        x = torch.randn(64, 32).to(device)
        with torch.autocast(device.type, dtype=half):
            y = model(x)
            loss = nn.functional.mse_loss(y.float(), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print("step", step + 1, "rank", dist.get_rank(), y.dtype, "loss",
              repr(loss.item()), "scale", scaler.get_scale())
        if (step + 1) % 4 == 0 and dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "step": step + 1,
                        "optimizer": optimizer.state_dict(),
                        "scaler": scaler.state_dict()}, f"amp-{step + 1}.pt")


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    device = torch.device(f"cuda:{os.environ['LOCAL_RANK']}" if gpu else "cpu")
    train(device, int(sys.argv[1]), sys.argv[2] if sys.argv[2:] else None)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
