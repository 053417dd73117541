# SPDX-License-Identifier: BSD-3-Clause
"""A rank that meets the others by pmix://. Its arguments are what it does, in
order; @2:WORD is for task 2 alone, !2:WORD for all others.

  timeout=S rank=N world_size=N  for each init_process_group that follows
  meet=N      N times: init_process_group, a sum of all ranks, destroy
  fork        a child, that meets as well
  threads     two threads that meet at once, and count who came to each
              meeting
  sleep=S

and, to stand in for what cannot be had here, fakes in PyTorch's place:
  no-libuv    PyTorch was built without libuv
  no-store    no store can be opened
  no-port     nothing listens where the store should be
"""
import os
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import slurm_ddp

task = os.environ.get("SLURM_PROCID", "0")
host = os.uname().nodename
TCPStore = dist.TCPStore
given = {}
stores = []  # rank 0's serve the others as long as it has them


def meet(times):
    for _ in range(int(times)):
        dist.init_process_group("gloo", init_method="pmix://", **given)
        rank, size = dist.get_rank(), dist.get_world_size()
        ranks = torch.tensor([rank + 1])
        dist.all_reduce(ranks)
        dist.destroy_process_group()
    return f"rank {rank} of {size}, sum {ranks.item()}"


def fork():
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        do("meet", "1")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


def threads():
    def count():
        store, _, size = next(dist.rendezvous("pmix://"))
        store.add("arrived", 1)
        while store.add("arrived", 0) < size:
            time.sleep(0.01)
        arrived.append(size)
        stores.append(store)
    arrived = []
    both = [threading.Thread(target=count) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return f"arrived {arrived}"


def without_libuv(*arguments, use_libuv=True):
    if use_libuv:
        raise RuntimeError("built without libuv")
    try:
        return TCPStore(*arguments, use_libuv=False)
    except TypeError:
        return TCPStore(*arguments)


def without_store(*_, **__):
    raise RuntimeError("no store today")


class WithoutPort:
    port = 1

    def __init__(self, *_, **__):
        pass


def do(word, value):
    words = {"meet": meet, "fork": fork, "threads": threads,
             "sleep": lambda seconds: time.sleep(float(seconds))}
    fakes = {"no-libuv": without_libuv, "no-store": without_store,
             "no-port": WithoutPort}
    try:
        if word == "timeout":
            given[word] = timedelta(seconds=float(value))
        elif word in ("rank", "world_size"):
            given[word] = int(value)
        elif word in fakes:
            dist.TCPStore = fakes[word]
        else:
            said = words[word](*([value] if value else []))
            if said:
                print(task, host, said)
    except (RuntimeError, OSError, ValueError) as error:
        print(task, host, f"{type(error).__name__}: {error}")


for argument in sys.argv[1:]:
    if argument[0] in "@!":
        who, action = argument[1:].split(":")
        if (who == task) != (argument[0] == "@"):
            continue
        argument = action
    do(*argument.partition("=")[::2])
