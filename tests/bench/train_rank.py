#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs one rank of a measured run on one CPU: train_rank.py DIR CMD...

mpirun or srun starts it once a rank. It binds CMD to one CPU, checks again and
again that all threads of CMD stay there, and sets the variables that PyTorch
needs. It writes to DIR/rank.N: the node, the CPU, the peak of the resident
memory in KB, how much of that is shared with other ranks, and the seconds from
CMD's start to its first line that begins with "step" (0 if there is none). What
CMD prints goes to DIR/out.N.
"""
import os
import select
import subprocess
import sys
import time


def number(*names):
    return int(next((os.environ[n] for n in names if n in os.environ), 0))


def bind(local):
    """Put local rank i on the i-th of the CPUs for ranks."""
    cpus = sorted(os.sched_getaffinity(0))[:int(os.environ["BENCH_CPUS"])]
    cpu = cpus[local % len(cpus)]
    os.sched_setaffinity(0, {cpu})
    return cpu


def astray(pid, cpu):
    """Return a sentence about a thread that is elsewhere, or None"""
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            had = os.sched_getaffinity(int(task))
        except ProcessLookupError:
            continue
        if had != {cpu}:
            return f"thread {task} of {pid} is on {had}, not on CPU {cpu}"
    return None


def shared(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        words = [line.split() for line in file]
    return next((int(w[1]) for w in words if w[0] == "RssShmem:"), 0)


def watch(child, cpu, out):
    """Return the time of the first step (or None) and the most shared memory"""
    first, text, most = None, b"", 0
    home = time.monotonic()
    while True:
        if select.select([child.stdout], [], [], 0.5)[0]:
            chunk = os.read(child.stdout.fileno(), 65536)
            if not chunk:
                break
            out.write(chunk)
            text = (text + chunk) if first is None else b""
            if first is None and b"\nstep " in b"\n" + text:
                first = time.monotonic()
        said = astray(child.pid, cpu)
        # hwloc, in MPI_Init, runs on every CPU for some milliseconds.
        if not said:
            home = time.monotonic()
        elif time.monotonic() - home > 2:
            sys.exit(said)
        most = max(most, shared(child.pid))
    return first, most


def main():
    rank = number("OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
    local = number("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
    size = number("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS") or 1
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size),
                      LOCAL_RANK=str(local), OMP_NUM_THREADS="1")
    directory, command = sys.argv[1], sys.argv[2:]
    cpu = bind(local)
    with open(f"{directory}/out.{rank}", "wb") as out:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=out)
        try:
            first, most = watch(child, cpu, out)
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            child.kill()
    if status != 0:
        sys.exit(f"rank {rank} has failed: {' '.join(command)}")
    with open(f"{directory}/rank.{rank}", "w", encoding="ascii") as file:
        print(os.uname().nodename, cpu, usage.ru_maxrss, most,
              f"{first - begin:.3f}" if first else 0, file=file)


if __name__ == "__main__":
    main()
