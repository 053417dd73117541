# SPDX-License-Identifier: BSD-3-Clause
"""Lightning Fabric, with the two numbers that its users give."""
import fake_cuda
import torch
from lightning.fabric import Fabric

from report import report

fabric = Fabric(devices=2, num_nodes=2)
fabric.launch()
model = fabric.setup(torch.nn.Linear(1, 1, bias=False))
fabric.backward(model(torch.ones(1, 1)).sum())
total = fabric.all_reduce(torch.tensor(fabric.global_rank), reduce_op="sum")
torch.cuda.set_device(fabric.local_rank)
report(fabric.global_rank, fabric.world_size, total, fake_cuda.current)
