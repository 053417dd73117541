#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The losses of ddp-train --model toy by PyTorch, one a line.

reference.py toy LR SEED BATCH STEPS

The random numbers are those that ddp-train(1) documents, written anew here;
networks, losses, gradients and optimiser are PyTorch's own.
"""
import math
import sys

import torch
from torch import nn

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
PARAMETER, INPUT, TARGET = 1, 2, 3


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Stream:
    def __init__(self, seed, stream):
        self.base = mix((seed + GOLDEN * stream) & MASK)

    def bits(self, index):
        return mix((self.base + GOLDEN * index) & MASK)

    def uniform(self, index, bound):
        return (2 * ((self.bits(index) >> 40) / 2**24) - 1) * bound

    def normal(self, index):
        bits = self.bits(index)
        u = ((bits >> 32) + 1) / 2**32
        v = (bits & 0xFFFFFFFF) / 2**32
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def fill(tensor, begin, draw):
    """Set tensor to draw(begin), draw(begin + 1), ...; return the end."""
    count = tensor.numel()
    values = torch.tensor([draw(begin + i) for i in range(count)])
    with torch.no_grad():
        tensor.copy_(values.reshape(tensor.shape))
    return begin + count


def set_parameters(net, seed):
    stream, end = Stream(seed, PARAMETER), 0
    for layer in net:
        if isinstance(layer, nn.Linear):
            bound = 1 / math.sqrt(layer.in_features)
            for tensor in (layer.weight, layer.bias):
                end = fill(tensor, end, lambda i: stream.uniform(i, bound))


def toy(lr, seed, batch, steps):
    net = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))
    set_parameters(net, seed)
    inputs, targets = Stream(seed, INPUT), Stream(seed, TARGET)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    x, y = torch.empty(batch, 10), torch.empty(batch, 5)
    for step in range(steps):
        fill(x, step * batch * 10, inputs.normal)
        fill(y, step * batch * 5, targets.normal)
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[1] != "toy":
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for found in toy(float(sys.argv[2]), *map(int, sys.argv[3:])):
        print("%.9g" % found)
