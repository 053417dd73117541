# SPDX-License-Identifier: BSD-3-Clause
"""MMEngine's init_dist, which sets the device itself."""
import sys

import fake_cuda
import torch
from mmengine import dist

from report import report

dist.init_dist(sys.argv[1], backend="gloo")
total = torch.tensor(dist.get_rank())
dist.all_reduce(total)
report(dist.get_rank(), dist.get_world_size(), total, fake_cuda.current)
