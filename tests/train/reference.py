#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The losses of ddp-train by PyTorch, one a line.

reference.py toy|mlp LR SEED BATCH STEPS [DATA]

The random numbers are those that ddp-train(1) documents, written anew here;
networks, losses, gradients and optimiser are PyTorch's own.
"""
import math
import sys

import torch
from torch import nn

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
PARAMETER, INPUT, TARGET, POSITION = 1, 2, 3, 4
CONTEXT = EMBED = 16


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
        if isinstance(layer, nn.Embedding):
            end = fill(layer.weight, end, stream.normal)
        elif isinstance(layer, nn.Linear):
            bound = 1 / math.sqrt(layer.in_features)
            for tensor in (layer.weight, layer.bias):
                end = fill(tensor, end, lambda i: stream.uniform(i, bound))


def toy(seed, batch, _):
    net = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))
    inputs, targets = Stream(seed, INPUT), Stream(seed, TARGET)

    def draw(first):
        x, y = torch.empty(batch, 10), torch.empty(batch, 5)
        fill(x, first * 10, inputs.normal)
        fill(y, first * 5, targets.normal)
        return x, y

    return net, nn.MSELoss(), draw


def mlp(seed, batch, data):
    net = nn.Sequential(nn.Embedding(256, EMBED), nn.Flatten(),
                        nn.Linear(CONTEXT * EMBED, 256), nn.Tanh(),
                        nn.Linear(256, 256))
    with open(data, "rb") as file:
        text = torch.tensor(list(file.read()))
    positions = Stream(seed, POSITION)

    def draw(first):
        begins = [positions.bits(first + i) % (len(text) - CONTEXT)
                  for i in range(batch)]
        return (torch.stack([text[b:b + CONTEXT] for b in begins]),
                torch.stack([text[b + CONTEXT] for b in begins]))

    return net, nn.CrossEntropyLoss(), draw


def main(model, lr, seed, batch, steps, data=None):
    torch.set_num_threads(1)
    make = {"toy": toy, "mlp": mlp}[model]
    net, loss_of, draw = make(int(seed), int(batch), data)
    set_parameters(net, int(seed))
    optimizer = torch.optim.SGD(net.parameters(), lr=float(lr))
    for step in range(int(steps)):
        x, y = draw(step * int(batch))
        loss = loss_of(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("%.9g" % loss.item())


main(*sys.argv[1:])
