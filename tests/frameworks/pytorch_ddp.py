# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch: init_process_group and DistributedDataParallel."""
import os

import fake_cuda
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from report import report

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

# The gradient is the mean of what the ranks put in.
model = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.full((1, 1), float(rank))).sum().backward()
mean = model.module.weight.grad.item()

report(rank, dist.get_world_size(), round(mean * dist.get_world_size()),
       fake_cuda.current)
dist.destroy_process_group()
# A thread of gloo's that still runs aborts Python's own end, now and then.
os._exit(0)
