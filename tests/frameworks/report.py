# SPDX-License-Identifier: BSD-3-Clause
"""What a rank says of its world and device, in a line for worlds.sh."""
import os
import sys


def report(rank, size, total, device):
    """Print a rank's line. The framework itself has summed all ranks' numbers
    to the total; device is the number of the rank's device."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    assert device in range(len(gpus)), f"device {device} of {gpus}"
    sys.stdout.write(f"rank {rank} {size} {int(total)} {os.uname().nodename}"
                     f" {gpus[device]}\n")
    sys.stdout.flush()
