#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A fake rank of a program that uses NCCL on a GPU, where neither is there.

It keeps a third of a CPU busy without a word, has a file mapped that is called libcuda.so,
and answers at NCCL_RAS_ADDR as RAS of NCCL 2.28.7 does: for all ranks, whose
addresses and process ids they leave in files, and in JSON after
"SET FORMAT json". Each rank has launched as many operations as it is told:

    fake_ras.py FOLDER COUNT [SECONDS]   COUNT operations, or one more each 0.1 s
                                         if COUNT is "rises"; ends after SECONDS
"""
import json
import mmap
import os
import socket
import sys
import threading
import time

folder, count = sys.argv[1:3]
until = time.time() + float(sys.argv[3]) if len(sys.argv) > 3 else 1e18
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
names = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"]


def find_host():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ["MASTER_ADDR"], 9))
        return probe.getsockname()[0]


def describe():
    ranks = []
    for i in range(world):
        with open(f"{folder}/{i}") as file:
            host, pid, has = file.read().split()
        has = int(time.time() * 10) if has == "rises" else int(has)
        counts = dict.fromkeys(names, 0) | {"AllReduce": has}
        ranks.append({
            "rank": i, "host": host, "pid": int(pid), "cuda_dev": 0,
            "nvml_dev": 0, "status": {
                "init_state": 0, "async_error": 0, "finalize_called": False,
                "destroy_flag": False, "abort_flag": False},
            "collective_counts": counts})
    communicator = {
        "hash": "0xabcdef0123456789", "secondary_hash": "0x1:0x2",
        "size": world, "ranks_count": world, "missing_ranks_count": 0,
        "ranks": ranks, "missing_ranks": []}
    return json.dumps({
        "nccl_version": "2.28.7", "cuda_runtime_version": 13000,
        "cuda_driver_version": 13000, "timestamp": "2025-10-20 12:00:00",
        "communicators_count": 1, "communicators": [communicator],
        "ras": {"collection_time_sec": 0.0, "timeouts_count": 0}},
        indent=2) + "\n"


def answer(client):
    with client, client.makefile("r") as lines:
        for line in lines:
            line = line.strip().lower()
            if line.startswith("client protocol "):
                client.sendall(b"SERVER PROTOCOL 2\n")
            elif line.startswith("timeout ") or line == "set format json":
                client.sendall(b"OK\n")
            elif line in ("status", "verbose status"):
                client.sendall(describe().encode())
                return
            else:
                client.sendall(f"ERROR: Unknown command {line}\n".encode())


def serve():
    host, port = os.environ["NCCL_RAS_ADDR"].rsplit(":", 1)
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(address)
        server.listen()
        while True:
            answer(server.accept()[0])


with open(f"{folder}/libcuda.so", "ab") as file:
    file.truncate(4096)
with open(f"{folder}/libcuda.so", "rb") as file:
    driver = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
with open(f"{folder}/{rank}.new", "w") as file:
    file.write(f"{find_host()} {os.getpid()} {count}\n")
os.rename(f"{folder}/{rank}.new", f"{folder}/{rank}")
while not all(os.path.exists(f"{folder}/{i}") for i in range(world)):
    time.sleep(0.1)
threading.Thread(target=serve, daemon=True).start()
with open("since", "w") as since:
    since.write(str(time.time_ns()))
while time.time() < until:
    rest = time.time() + 0.03
    while time.time() < rest:
        pass
    time.sleep(0.05)
