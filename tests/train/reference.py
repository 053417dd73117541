#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The losses of ddp-train by PyTorch, one a line.

reference.py toy LR SEED BATCH STEPS
reference.py gpt FILE BATCH
reference.py curve FILE BATCH SEED KIND

The random numbers, the samples and their order are those that ddp-train(1)
documents, written anew here; networks, losses, gradients and optimisers are
PyTorch's own. Of the GPT the seed, the steps and how it is trained are those
of parity.py, in float64, and the last line is the loss of held-out data. Of a
curve, KIND is float32, or bfloat16 for torch.autocast with it; it has CURVE
steps, and no data is held out.
"""
import math
import sys

import torch
from torch import nn

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
PARAMETER, INPUT, TARGET, SHUFFLE = 1, 2, 3, 4
CURVE = 200


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


def permuted(index, count, seed, epoch):
    """Where a sample goes: a cipher, again while it is not below count."""
    key = Stream(seed, SHUFFLE).bits(epoch)
    stream, half = Stream(key, SHUFFLE), 0
    while 4**half < count:
        half += 1
    while True:
        left, right = divmod(index, 2**half)
        for turn in range(16):
            bits = stream.bits(turn * 2**32 + right)
            left, right = right, left ^ bits % 2**half
        index = left * 2**half + right
        if index < count:
            return index


def read_text(path, context):
    with open(path, "rb") as file:
        text = torch.tensor(list(file.read()))
    count = (len(text) - 1) // context
    return (text[:count * context].view(count, context),
            text[1:count * context + 1].view(count, context))


def train(parity, net, data, batch):
    """The losses of a GPT's steps, from parity's first parameters on."""
    tokens, targets = data
    shape = parity.SHAPES["tiny"]
    net.load_state_dict({name.split()[1]: tensor for name, tensor
                         in parity.initial(net, shape[0])})
    optimizer = parity.create_optimizer(net, parity.ADAMW)
    schedule = parity.create_schedule(optimizer, parity.ADAMW)
    length = -(-len(tokens) // batch)
    for step in range(parity.STEPS):
        epoch, begin = divmod(step, length)
        samples = [permuted((begin * batch + i) % len(tokens), len(tokens),
                            parity.SEED, epoch) for i in range(batch)]
        loss = net.loss(tokens[samples], targets[samples])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), parity.ADAMW["clip"])
        optimizer.step()
        schedule.step()
        yield loss.item()


def gpt(path, batch):
    import parity
    shape = parity.SHAPES["tiny"]
    tokens, targets = read_text(path, shape[3])
    trained = len(tokens) - min(len(tokens) // 10, 512)
    net = parity.Gpt(shape).double()
    yield from train(parity, net, (tokens[:trained], targets[:trained]), batch)
    yield net.loss(tokens[trained:], targets[trained:]).item()


def curve(path, batch, seed, kind):
    import parity
    shape = parity.SHAPES["tiny"]
    parity.STEPS, parity.SEED = CURVE, seed
    net = parity.Gpt(shape)
    if kind == "bfloat16":
        whole = net.loss

        def loss(*data):
            with torch.autocast("cpu", torch.bfloat16):
                return whole(*data)
        net.loss = loss
    yield from train(parity, net, read_text(path, shape[3]), batch)


def main(model, *arguments):
    torch.set_num_threads(1)
    if model == "toy" and len(arguments) == 4:
        losses = toy(float(arguments[0]), *map(int, arguments[1:]))
    elif model == "gpt" and len(arguments) == 2:
        losses = gpt(arguments[0], int(arguments[1]))
    elif model == "curve" and len(arguments) == 4:
        losses = curve(arguments[0], int(arguments[1]), int(arguments[2]),
                       arguments[3])
    else:
        sys.exit(__doc__)
    for found in losses:
        print("%.9g" % found)


if __name__ == "__main__":
    main(*sys.argv[1:])
