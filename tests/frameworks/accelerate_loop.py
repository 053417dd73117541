# SPDX-License-Identifier: BSD-3-Clause
"""Accelerate, started without its own launcher."""
import fake_cuda
import torch
from accelerate import Accelerator

from report import report

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(1, 1, bias=False))
accelerator.backward(model(torch.ones(1, 1)).sum())
rank = accelerator.process_index
total = accelerator.reduce(torch.tensor(rank), reduction="sum")
torch.cuda.set_device(accelerator.local_process_index)
report(rank, accelerator.num_processes, total, fake_cuda.current)
accelerator.end_training()
