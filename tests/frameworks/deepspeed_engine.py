# SPDX-License-Identifier: BSD-3-Clause
"""DeepSpeed, started without its own launcher."""
import fake_cuda
import deepspeed
import torch

from report import report

deepspeed.init_distributed(dist_backend="gloo")
model = torch.nn.Linear(1, 1, bias=False)
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    config={"train_micro_batch_size_per_gpu": 1})
engine.backward(engine(torch.ones(1, 1)).sum())
engine.step()
total = torch.tensor(deepspeed.comm.get_rank())
deepspeed.comm.all_reduce(total)
torch.cuda.set_device(engine.local_rank)
report(deepspeed.comm.get_rank(), deepspeed.comm.get_world_size(), total,
       fake_cuda.current)
