# SPDX-License-Identifier: BSD-3-Clause
"""timm's own set-up, as its train.py calls it."""
from argparse import Namespace

import fake_cuda
import torch
from timm.utils import init_distributed_device, reduce_tensor

from report import report

args = Namespace(device="cpu")
init_distributed_device(args)
torch.cuda.set_device(args.local_rank)
mean = reduce_tensor(torch.tensor(float(args.rank)), args.world_size)
report(args.rank, args.world_size, round(mean.item() * args.world_size),
       fake_cuda.current)
