#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An unmodified PyTorch loop over gloo, one of whose ranks breaks.

rank.py WHEN HOW RANK FILE, as fault.c has them; "none" breaks no rank. FILE
gets the pid. Two ranks come late to what the broken rank is in, so
that it breaks while it waits.
"""
import os
import resource
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

when, how, rank, file = sys.argv[1:5]
steps = int(os.environ.get("FAULT_STEPS", "100000"))
mine = os.environ["RANK"] == rank
late = int(os.environ["RANK"]) in (1, 4)


def take_memory():
    pieces = []
    while True:
        pieces.append(bytearray(1 << 20))


def act():
    with open(file + ".part", "w") as out:
        print(os.getpid(), file=out)
    os.rename(file + ".part", file)
    if how in ("KILL", "SEGV", "TERM", "STOP"):
        os.kill(os.getpid(), getattr(signal, "SIG" + how))
        time.sleep(60)
    if how == "sleep":
        time.sleep(1000)
    if how.startswith("exit"):
        os._exit(int(how[4:]))
    if how == "limit":
        # With none left Python could not even raise an error.
        with open("/proc/self/statm") as sizes:
            pages = int(sizes.read().split()[0])
        limit = pages * resource.getpagesize() + (64 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if how in ("limit", "oom"):
        take_memory()
    raise ValueError("bad batch")


def reach(point):
    if mine and when == point:
        act()


def within(point, call):
    """Call it; if that is the point, break after 0.3 s in it."""
    if when == point and late:
        time.sleep(1)
    if when != point or not mine:
        return call()
    if how in ("error", "limit", "oom", "sleep"):
        act()
    threading.Timer(0.3, act).start()
    return call()


@record
def main():
    reach("start")
    within("init", lambda: dist.init_process_group("gloo"))
    reach("after")
    ones = torch.ones(1000)
    within("collective", lambda: dist.all_reduce(ones))
    for step in range(steps):
        if step == 5:
            reach("step")
        dist.all_reduce(torch.ones(1000))
        time.sleep(0.02)
    dist.destroy_process_group()


main()
