# SPDX-License-Identifier: BSD-3-Clause
"""What a rank says of its world and device, in a line for worlds.sh."""
import os
import sys


def report(rank, size, total, *devices):
    """Print a rank's line. The framework itself has summed all ranks' numbers
    to the total; devices are the numbers of the rank's own."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    for device in devices:
        assert device in range(len(gpus)), f"device {device} of {gpus}"
    sys.stdout.write(f"rank {rank} {size} {int(total)} {os.uname().nodename} "
                     + ",".join(gpus[device] for device in devices) + "\n")
    sys.stdout.flush()
