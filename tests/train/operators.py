#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the operators take from PyTorch, measured anew.

operators.py HEADER

HEADER is operators.h. Its constants TORCH_NAME say by how much PyTorch's
operators of bf16 err: the relative L2 distance from PyTorch's own in float64
with the same rounded inputs, in 2^-8, of the operator's output or gradient
that errs least. Here it is the root of the mean square of DRAWS draws. Then
where NaN and infinities show, as operators_special.c says it: in the row that
had one, and nowhere else. Exit status: 0 no constant is larger than what
PyTorch errs by here, and it spreads NaN so; 3 otherwise.

By hand, with another PyTorch: PYTHON tests/train/operators.py
tests/train/operators.h
"""
import math
import re
import sys

import torch
from torch.nn import functional

DRAWS, NOISE = 20, 1.03


def draw(*shape, mean=0, deviation=1):
    values = torch.randn(shape, dtype=torch.float64)
    return (mean + deviation * values).bfloat16()


def attend(q, k, v):
    future = torch.ones(q.shape[-2], k.shape[-2]).triu(1) > 0
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return functional.softmax(scores.masked_fill(future, -math.inf), -1) @ v


def gelu(x, weight, bias):
    return functional.gelu(functional.linear(x, weight, bias),
                           approximate="tanh")


def norm(x, gain, bias):
    return functional.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)


def operators():
    """Name, function, inputs, as the C program draws them."""
    rows, width, vocab = 65, 63, 300
    x = draw(rows, width)
    weight = draw(vocab, width, deviation=1 / math.sqrt(width))
    tokens = torch.randint(vocab, (2, rows))
    targets = torch.randint(vocab, (rows,))
    yield "LINEAR", functional.linear, (x, weight, draw(vocab))
    yield "GELU", gelu, (x, weight, draw(vocab))
    yield "NORM", norm, (x, draw(width, mean=1, deviation=0.5), draw(width))
    yield "ATTENTION", attend, [draw(3, 2, rows, 21) for _ in "qkv"]
    yield "CLASSIFIER", lambda x, table: functional.cross_entropy(
        x @ table.T, targets), (x, draw(vocab, width, deviation=0.3))
    yield "EMBED", lambda table, positions: functional.embedding(
        tokens, table) + positions, (draw(vocab, width), draw(rows, width))


def run(function, inputs, kind, grad):
    """The output and the gradients, in one type."""
    leaves = [x.to(kind, copy=True).requires_grad_() for x in inputs]
    out = function(*leaves)
    out.backward(grad.to(kind))
    return [out.detach().double()] + [x.grad.double() for x in leaves]


def measure():
    """By operator, the errors of output and gradients."""
    squares = {}
    for _ in range(DRAWS):
        for name, function, inputs in operators():
            shape = function(*inputs).shape
            grad = draw(*shape) if shape else torch.ones(())
            exact = run(function, inputs, torch.float64, grad)
            had = run(function, inputs, torch.bfloat16, grad)
            # A loss is one number: by luck it errs little.
            errors = [((a - b).norm() / b.norm()).item() * 256
                      for a, b in zip(had, exact) if b.dim()]
            squares.setdefault(name, []).append(errors)
    return {name: torch.tensor(rows).square().mean(0).sqrt()
            for name, rows in squares.items()}


def compare(constants):
    measured = measure()
    good = set(constants) == set(measured)
    for name, errors in measured.items():
        least, constant = errors.min().item(), constants.get(name, math.inf)
        fine = constant <= NOISE * least
        good &= fine
        print("%s: PyTorch errs by %s, TORCH_%s is %g: %s" % (
            name, " ".join("%.2f" % error for error in errors), name,
            constant, "fine" if fine else "too large"))
    return good


def shows(name, out, rows, bad):
    """Whether row 1 of the rows has the bad number, and no other row."""
    finite = out.reshape(rows, -1).isfinite()
    good = not finite[1].any() and finite[[0, 2]].all()
    print("%s: %g shows %s" % (name, bad, "there" if good else "elsewhere"))
    return bool(good)


def spread(bad):
    x = draw(3, 8)
    x[1, 3] = bad
    weight, gain = draw(5, 8), draw(8, mean=1)
    q = draw(3, 8)
    q[1, 3] = bad
    losses = functional.cross_entropy(x @ weight.T, torch.tensor([0, 1, 2]),
                                      reduction="none")
    return (shows("LINEAR", x @ weight.T, 3, bad) &
            shows("NORM", norm(x, gain, draw(8)), 3, bad) &
            shows("ATTENTION", attend(q, draw(3, 8), draw(3, 8)), 3, bad) &
            shows("CLASSIFIER", losses, 3, bad))


def main(header):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with open(header) as file:
        constants = {name: float(value) for name, value in re.findall(
            r"^#define TORCH_(\w+)\s+([0-9.]+)$", file.read(), re.M)}
    good = compare(constants)
    for bad in math.nan, math.inf, -math.inf:
        good &= spread(bad)
    sys.exit(0 if good else 3)


if __name__ == "__main__":
    main(*sys.argv[1:])
