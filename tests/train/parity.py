#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold a GPT of ddp-train against PyTorch's modules in float64.

parity.py PROGRAM SHAPE[,MUTATION]...

PROGRAM is the build of parity.c, SHAPE a key of SHAPES.  One line for each
comparison; the worst difference of PyTorch's own float32 stands beside it.
MUTATION breaks the reference in one of MUTATIONS' ways; the comparison must
then fail.  Exit status: 0 all are equal, 3 some differ.
"""
import math
import struct
import subprocess
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler

#         layers heads width context vocab sequences
SHAPES = {"tiny": (2, 2, 64, 64, 256, 2),
          "odd": (3, 3, 45, 33, 301, 3)}
SEED, STEPS, WARMUP = 7, 50, 4
SKIPPED = 3         # a step without an update
# Some norms of gradients are above "clip", some below.
ADAMW = {"lr": 1e-3, "min_lr": 2e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
         "momentum": 0, "decay": 0.1, "clip": 2}
SGD = {"lr": 1e-2, "min_lr": 2e-3, "beta1": 0, "beta2": 0, "eps": 0,
       "momentum": 0.9, "decay": 0.1, "clip": 2.5}
LOGITS, GRADIENT, LOSS, INITIAL = 1e-5, 1e-5, 1e-6, 1e-6
TRAINING = ("decay", "clip", "schedule", "skip")
MUTATIONS = ("erf", "bias", "scale") + TRAINING


class Layer(nn.Module):
    def __init__(self, heads, width, mutation):
        super().__init__()
        self.heads, self.mutation = heads, mutation
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width),
                                   "c_proj": nn.Linear(width, width)})
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width),
                                  "c_proj": nn.Linear(4 * width, width)})

    def attend(self, x):
        sequences, context, width = x.shape
        size = width // self.heads
        q, k, v = (part.view(sequences, context, self.heads, size)
                   .transpose(1, 2)
                   for part in self.attn["c_attn"](x).split(width, 2))
        scores = q @ k.transpose(2, 3) / math.sqrt(size)
        if self.mutation == "scale":
            scores = scores * 1.01
        future = torch.ones(context, context).triu(1) > 0
        weights = functional.softmax(
            scores.masked_fill(future, -math.inf), 3)
        return (weights @ v).transpose(1, 2).reshape(x.shape)

    def forward(self, x):
        x = x + self.attn["c_proj"](self.attend(self.ln_1(x)))
        fc = self.mlp["c_fc"]
        bias = fc.bias.detach() if self.mutation == "bias" else fc.bias
        wide = functional.linear(self.ln_2(x), fc.weight, bias)
        how = "none" if self.mutation == "erf" else "tanh"
        return x + self.mlp["c_proj"](
            functional.gelu(wide, approximate=how))


class Gpt(nn.Module):
    def __init__(self, shape, mutation=None):
        super().__init__()
        layers, heads, width, context, vocab, _ = shape
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Layer(heads, width, mutation)
                               for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x) @ self.wte.weight.T

    def loss(self, tokens, targets):
        return functional.cross_entropy(self(tokens).flatten(0, 1),
                                        targets.flatten())


def perturb(net, generator):
    """Weights of deviation 0.2, gains about 1, biases about 0."""
    with torch.no_grad():
        for name, tensor in net.named_parameters():
            tensor.normal_(0, 0.2, generator=generator)
            if "ln_" in name and name.endswith("weight"):
                tensor += 1


def mix(x):
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def normal(begin, count):
    """Of the stream of the parameters, as ddp-train(1) documents it."""
    golden = numpy.uint64(0x9E3779B97F4A7C15)
    base = mix(numpy.array([SEED], numpy.uint64) + golden)
    bits = mix(base + golden * numpy.arange(
        begin, begin + count, dtype=numpy.uint64))
    u = ((bits >> numpy.uint64(32)).astype(float) + 1) / 2**32
    v = (bits & numpy.uint64(0xFFFFFFFF)).astype(float) / 2**32
    return torch.from_numpy(
        numpy.sqrt(-2 * numpy.log(u)) * numpy.cos(2 * math.pi * v))


def initial(net, layers):
    """GPT-2's, drawn in the order of the state dict."""
    begin, found = 0, []
    for name, tensor in net.state_dict().items():
        count = tensor.numel()
        if tensor.dim() > 1:
            values = 0.02 * normal(begin, count)
            if name.endswith("c_proj.weight"):
                values /= math.sqrt(2 * layers)
        else:
            values = torch.full((count,), float(name.endswith("weight")))
        found.append(("initial " + name, values.reshape(tensor.shape)))
        begin += count
    return found


def write_input(path, shape, net, tokens, targets):
    state = net.state_dict()
    with open(path, "wb") as file:
        file.write(struct.pack(
            "10i16f", *shape, STEPS, len(state), WARMUP, SKIPPED,
            *ADAMW.values(), *SGD.values()))
        for name, tensor in state.items():
            file.write(struct.pack("32si", name.encode(), tensor.numel()))
            file.write(tensor.numpy().tobytes())
        for tensor in tokens, targets:
            file.write(tensor.int().numpy().tobytes())


def rounded(settings):
    """As the program reads them: float32 numbers."""
    return {name: struct.unpack("f", struct.pack("f", value))[0]
            for name, value in settings.items()}


def create_optimizer(net, settings, mutation=None):
    vectors = 0 if mutation != "decay" else settings["decay"]
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1],
               "weight_decay": settings["decay"]},
              {"params": [p for p in net.parameters() if p.dim() == 1],
               "weight_decay": vectors}]
    if settings["beta1"]:
        return torch.optim.AdamW(groups, settings["lr"], (
            settings["beta1"], settings["beta2"]), settings["eps"])
    return torch.optim.SGD(groups, settings["lr"], settings["momentum"])


def create_schedule(optimizer, settings, mutation=None):
    warmup = WARMUP + (mutation == "schedule")
    return lr_scheduler.SequentialLR(optimizer, [
        lr_scheduler.LinearLR(optimizer, 1 / warmup, 1, warmup - 1),
        lr_scheduler.CosineAnnealingLR(optimizer, STEPS - warmup - 1,
                                       settings["min_lr"])], [warmup])


def train(shape, state, batches, kind, mutation, settings):
    """The losses of a step for each of the batches."""
    settings = rounded(settings)
    net = Gpt(shape, mutation)
    net.load_state_dict(state)
    net.to(kind)
    optimizer = create_optimizer(net, settings, mutation)
    schedule = create_schedule(optimizer, settings, mutation)
    losses = []
    for step, (tokens, targets) in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = net.loss(tokens, targets)
        loss.backward()
        if mutation != "clip":
            nn.utils.clip_grad_norm_(net.parameters(), settings["clip"])
        if step != SKIPPED or mutation == "skip":
            optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def ways(mutation):
    """What suffices to show a mutation."""
    if mutation:
        return (("adamw", ADAMW),) if mutation in TRAINING else ()
    return ("adamw", ADAMW), ("sgd", SGD)


def reference(shape, state, batches, kind, mutation=None):
    """What the program writes: names and float64 tensors, in its order."""
    net = Gpt(shape, mutation)
    net.load_state_dict(state)
    net.to(kind)
    logits = net(batches[0][0]).detach()
    loss = net.loss(*batches[0])
    loss.backward()
    gradients = [(name, torch.zeros_like(p) if p.grad is None else p.grad)
                 for name, p in net.named_parameters()]
    found = initial(net, shape[0])
    found += [("logits", logits), ("loss alone", loss.detach())]
    for way in "gradient of ", "accumulated gradient of ":
        found += [(way + name, tensor) for name, tensor in gradients]
    for way, settings in ways(mutation):
        found.append(("losses by " + way, train(
            shape, state, batches, kind, mutation, settings)))
    return [(name, tensor.double()) for name, tensor in found]


def difference(name, found, wanted):
    """Its size, and the most it may be."""
    apart = found - wanted
    if name == "logits":
        return (apart.abs().max() / wanted.abs().max()).item(), LOGITS
    if "gradient" in name or "initial" in name:
        size = wanted.norm().item() or 1
        return apart.norm().item() / size, (
            GRADIENT if "gradient" in name else INITIAL)
    return (apart / wanted).abs().max().item(), LOSS


def read_output(path, wanted, whole):
    """Tensors of the shapes that are wanted; the whole output, or its begin."""
    with open(path, "rb") as file:
        values = torch.frombuffer(bytearray(file.read()),
                                  dtype=torch.float64)
    counts = [tensor.numel() for _, tensor in wanted]
    rest = len(values) - sum(counts)
    if rest < 0 or (whole and rest):
        sys.exit("the program wrote %d values, not %d" % (
            len(values), sum(counts)))
    return [part.reshape(tensor.shape) for part, (_, tensor)
            in zip(values.split(counts + [rest]), wanted)]


def compare(case, wanted, single, mutation):
    """Whether the program's output is the one that is wanted."""
    same = True
    for i, found in enumerate(read_output("output", wanted, not mutation)):
        name = wanted[i][0]
        size, most = difference(name, found, wanted[i][1])
        text = "same" if size <= most else "differs"
        line = "%s %s: %s by %.2g, at most %g" % (case, text, name, size,
                                                  most)
        if single:
            line += " (PyTorch in float32: %.2g)" % difference(
                name, single[i][1], wanted[i][1])[0]
        print(line)
        same &= size <= most
    return same


def hold(program, case):
    which, _, mutation = case.partition(",")
    if mutation not in ("", *MUTATIONS):
        sys.exit("mutations: " + " ".join(MUTATIONS))
    shape = SHAPES[which]
    context, vocab, sequences = shape[3:]
    generator = torch.Generator().manual_seed(1)
    net = Gpt(shape)
    perturb(net, generator)
    tokens, targets = (torch.randint(vocab, (STEPS, sequences, context),
                                     generator=generator) for _ in "xy")
    write_input("input", shape, net, tokens, targets)
    subprocess.run([program, "input", "output"], check=True)
    state, batches = net.state_dict(), list(zip(tokens, targets))
    wanted = reference(shape, state, batches, torch.float64, mutation)
    single = None if mutation else reference(shape, state, batches,
                                             torch.float32)
    return compare(case, wanted, single, mutation)


def main(program, *cases):
    torch.set_num_threads(1)
    # SequentialLR itself causes PyTorch's warning.
    warnings.filterwarnings("ignore", module="torch.optim.lr_scheduler")
    sys.exit(0 if all([hold(program, case) for case in cases]) else 3)


if __name__ == "__main__":
    main(*sys.argv[1:])
