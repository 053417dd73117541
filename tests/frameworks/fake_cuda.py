# SPDX-License-Identifier: BSD-3-Clause
"""A fake: CUDA's device numbers, without CUDA.

Imported before a framework, it makes torch.cuda.set_device take the numbers
that CUDA would take, and refuse what CUDA would refuse: a number that
CUDA_VISIBLE_DEVICES does not have. Nothing else of CUDA is there, and
torch.cuda.is_available() says so.
"""
import os

import torch

current = 0


def in_sight():
    """Which GPU of the node each device number is."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")


def set_device(device):
    global current
    number = device if isinstance(device, int) else torch.device(device).index
    if number not in range(len(in_sight())):
        raise RuntimeError(f"invalid device ordinal {number}: in sight are "
                           f"the GPUs {','.join(in_sight())}")
    current = number


torch.cuda.set_device = set_device
