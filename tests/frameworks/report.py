# SPDX-License-Identifier: BSD-3-Clause
"""How a rank says what its framework says: a line for worlds.sh."""
import os
import sys


def report(rank, size, total, device):
    """The line of a rank: total is the sum of all ranks' numbers, summed by the
    framework itself, and device the number of the rank's device."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    assert device in range(len(gpus)), f"device {device} of {gpus}"
    sys.stdout.write(f"rank {rank} {size} {int(total)} {os.uname().nodename}"
                     f" {gpus[device]}\n")
    sys.stdout.flush()
