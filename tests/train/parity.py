#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold a GPT of ddp-train against PyTorch's modules in float64.

parity.py [--module FILE] [--type TYPE] [--steps N] PROGRAM SHAPE[,MUTATION]...

PROGRAM is the build of parity.c, which computes on the CPU or on the device of
a module such as ddp_cuda.so, in TYPE: fp32, bf16 or fp16.  SHAPE is a key of
SHAPES; N is 6 to 50.  One line for each comparison; the worst difference of
PyTorch's own float32 or bfloat16 stands beside it.  MUTATION breaks the
reference in one of MUTATIONS' ways; the comparison must then fail.  Exit
status: 0 all are equal, 3 some differ.

In fp32 the limits are LOGITS and so on.  In bf16 the program may err by twice
what PyTorch's bfloat16 does, in fp16 by an eighth of that: it has three more
bits, and not every PyTorch computes in it; see operators.h.  Losses are
single numbers, of which one is right by chance: PyTorch's error is then the
worst of those of all batches.  The parameters at the start are numbers of both
types, so only what is computed errs.
"""
import argparse
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
UNITS = {"bf16": 1, "fp16": 1 / 8}      # of rounding, in that of bf16
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
        logits = self(tokens).flatten(0, 1)
        if logits.dtype == torch.bfloat16:      # as autocast has it
            logits = logits.float()
        return functional.cross_entropy(logits, targets.flatten())


def perturb(net, generator):
    """Weights of deviation 0.2, gains about 1, biases about 0."""
    with torch.no_grad():
        for name, tensor in net.named_parameters():
            tensor.normal_(0, 0.2, generator=generator)
            if "ln_" in name and name.endswith("weight"):
                tensor += 1


def round_both(net):
    """To numbers that both 16-bit types have."""
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.copy_(tensor.bfloat16().half())


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
            "10i16f", *shape, len(tokens), len(state), WARMUP, SKIPPED,
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


def create_schedule(optimizer, settings, mutation=None, steps=None):
    steps = steps or STEPS
    warmup = WARMUP + (mutation == "schedule")
    return lr_scheduler.SequentialLR(optimizer, [
        lr_scheduler.LinearLR(optimizer, 1 / warmup, 1, warmup - 1),
        lr_scheduler.CosineAnnealingLR(optimizer, steps - warmup - 1,
                                       settings["min_lr"])], [warmup])


def create_net(shape, state, kind, mutation=None):
    net = Gpt(shape, mutation)
    net.load_state_dict(state)
    return net.to(kind)


def compute_gradient(net, master, batch):
    """To the master's; net is its copy in bfloat16, or the same."""
    master.zero_grad()
    if net is not master:
        net.zero_grad()
        net.load_state_dict(master.state_dict())
    loss = net.loss(*batch)
    loss.backward()
    if net is not master:
        for one, other in zip(net.parameters(), master.parameters()):
            other.grad = one.grad.float()
    return loss


def train(shape, state, batches, kind, mutation, settings):
    """The losses of a step for each of the batches."""
    settings = rounded(settings)
    net = master = create_net(shape, state, kind, mutation)
    if kind == torch.bfloat16:
        master = create_net(shape, state, torch.float32)
    optimizer = create_optimizer(master, settings, mutation)
    schedule = create_schedule(optimizer, settings, mutation, len(batches))
    losses = []
    for step, batch in enumerate(batches, 1):
        losses.append(compute_gradient(net, master, batch).item())
        if mutation != "clip":
            nn.utils.clip_grad_norm_(master.parameters(), settings["clip"])
        if step != SKIPPED or mutation == "skip":
            optimizer.step()
        schedule.step()
    return torch.tensor(losses, dtype=torch.float64)


def ways(mutation):
    """What suffices to show a mutation."""
    if mutation:
        return (("adamw", ADAMW),) if mutation in TRAINING else ()
    return ("adamw", ADAMW), ("sgd", SGD)


def reference(shape, state, batches, kind, mutation=None):
    """What the program writes: names and float64 tensors, in its order."""
    net = create_net(shape, state, kind, mutation)
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
    apart = found - wanted
    if name == "logits":
        return (apart.abs().max() / wanted.abs().max()).item()
    if "gradient" in name or "initial" in name:
        return apart.norm().item() / (wanted.norm().item() or 1)
    return (apart / wanted).abs().max().item()


def measure_losses(shape, state, batches):
    """By how much PyTorch's losses in bfloat16 err, at most."""
    one, other = (create_net(shape, state, kind)
                  for kind in (torch.bfloat16, torch.float64))
    with torch.no_grad():
        return max(difference("loss", one.loss(*batch), other.loss(*batch))
                   for batch in batches)


def limit(name, kind, noise, losses):
    """The most that a difference may be, where PyTorch's are `noise`."""
    if "initial" in name:
        return INITIAL
    if kind in UNITS:
        least = losses if "loss" in name else 0
        return 2 * UNITS[kind] * max(noise, least)
    if "gradient" in name:
        return GRADIENT
    return LOGITS if name == "logits" else LOSS


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


def compare(label, outputs, kind, losses, whole):
    """Whether the program's output is the one that is wanted."""
    wanted, peer = outputs
    same = True
    for i, found in enumerate(read_output("output", wanted, whole)):
        name, values = wanted[i]
        size = difference(name, found, values)
        noise = difference(name, peer[i][1], values) if peer else 0
        most = limit(name, kind, noise, losses)
        text = "same" if size <= most else "differs"
        line = "%s %s: %s by %.2g, at most %.3g" % (label, text, name, size,
                                                    most)
        if peer:
            line += " (PyTorch in %s: %.2g)" % (
                "bfloat16" if kind in UNITS else "float32", noise)
        print(line)
        same &= size <= most
    return same


def hold(arguments, case):
    which, _, mutation = case.partition(",")
    if mutation not in ("", *MUTATIONS):
        sys.exit("mutations: " + " ".join(MUTATIONS))
    shape, kind = SHAPES[which], arguments.type
    context, vocab, sequences = shape[3:]
    generator = torch.Generator().manual_seed(1)
    net = Gpt(shape)
    perturb(net, generator)
    if kind in UNITS:
        round_both(net)
    tokens, targets = (torch.randint(vocab, (STEPS, sequences, context),
                                     generator=generator) for _ in "xy")
    steps = arguments.steps
    write_input("input", shape, net, tokens[:steps], targets[:steps])
    subprocess.run([arguments.program, "input", "output", arguments.module,
                    kind], check=True)
    state, batches = net.state_dict(), list(zip(tokens, targets))
    losses = measure_losses(shape, state, batches) if kind in UNITS else 0
    wanted = reference(shape, state, batches[:steps], torch.float64, mutation)
    peer = None
    if kind in UNITS or not mutation:
        peer = reference(shape, state, batches[:steps], torch.bfloat16 if
                         kind in UNITS else torch.float32, mutation)
    return compare(case, (wanted, peer), kind, losses, not mutation)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="cpu")
    parser.add_argument("--type", default="fp32", choices=["fp32", *UNITS])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("program")
    parser.add_argument("case", nargs="+")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    # SequentialLR itself causes PyTorch's warning.
    warnings.filterwarnings("ignore", module="torch.optim.lr_scheduler")
    sys.exit(0 if all([hold(arguments, case) for case in arguments.case])
             else 3)


if __name__ == "__main__":
    main()
