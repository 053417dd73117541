#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ddp-train on a GPU is compared with: the same GPT by PyTorch on that
GPU, with its fused attention and fused AdamW.

train_gpu_peer.py PRESET DATA STEPS BATCH TYPE LOG [compile] [cpu]

TYPE is fp32, or bf16 for autocast; compile is torch.compile; cpu, to try this
without a GPU. The samples are those of ddp-train --seed 7, and so are the first
parameters (but of 774M, of which numpy would draw them for minutes: they have
the same distribution). It writes a JSON object a step to LOG, as ddp-train
--log does: step, loss, seconds since training began. Then it prints the MiB of
the GPU's memory that its tensors took at most, and that it had reserved.
"""
import json
import sys
import time

import numpy
import torch
from torch import nn

import train_peer
from train_peer import parity, reference

PRESETS = {  # layers, heads, width, context, vocabulary
    "tiny": (2, 2, 64, 64, 256), "10M": (6, 6, 384, 256, 256),
    "124M": (12, 12, 768, 1024, 50304), "774M": (36, 20, 1280, 1024, 50304)}
QUICK = ("774M",)
HEADER = 1024       # bytes of a token file before its 16-bit tokens


def create(preset, device):
    """The network on the device; causal attention needs no mask there."""
    if preset in QUICK:
        parity.initial = lambda net, layers: [
            ("initial " + name, tensor) for name, tensor
            in net.state_dict().items()]
    net = train_peer.GPT(*PRESETS[preset])
    if preset in QUICK:
        for parameter in net.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
    if device == "cuda":
        for layer in net.h:
            layer.mask = None
    return net.to(device)


def rows(preset, data, steps, batch, device):
    """The batches of all steps, as ddp-train shuffles them."""
    context, vocab = PRESETS[preset][3:]
    if vocab == 256:
        text = numpy.fromfile(data, numpy.uint8)
    else:
        text = numpy.fromfile(data, numpy.uint16, offset=HEADER)
    text = torch.from_numpy(text.astype(numpy.int64))
    count = (len(text) - 1) // context
    if steps * batch > count:
        sys.exit(f"{data} is too short for {steps} steps")
    text = text[:count * context + 1].unfold(0, context + 1, context)
    return [text[[reference.permuted(i, count, parity.SEED, 0)
                  for i in range(step * batch, (step + 1) * batch)]].to(device)
            for step in range(steps)]


class Clock:
    """When the device came to a step, without waiting for it."""
    def __init__(self, device):
        self.cuda, self.ticks = device == "cuda", []

    def tick(self):
        if self.cuda:
            self.ticks.append(torch.cuda.Event(enable_timing=True))
            self.ticks[-1].record()
        else:
            self.ticks.append(time.monotonic())

    def seconds(self):
        if not self.cuda:
            return [tick - self.ticks[0] for tick in self.ticks]
        torch.cuda.synchronize()
        return [self.ticks[0].elapsed_time(tick) / 1e3
                for tick in self.ticks]


def train(preset, data, steps, batch, kind, device, compiled):
    """The loss of each step, and when it had ended."""
    net = create(preset, device)
    update = train_peer.optimizer(net)
    model = torch.compile(net) if compiled else net
    batches = rows(preset, data, steps, batch, device)
    losses, clock = [], Clock(device)
    clock.tick()
    for tokens in batches:
        with torch.autocast(device, torch.bfloat16, kind == "bf16"):
            loss = model(tokens[:, :-1], tokens[:, 1:])
        update.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        update.step()
        losses.append(loss.detach())
        clock.tick()
    return [loss.item() for loss in losses], clock.seconds()[1:]


def main(preset, data, steps, batch, kind, log, *how):
    device = "cpu" if "cpu" in how else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"no GPU: PyTorch {torch.__version__} sees none")
    if kind == "fp32" and device == "cuda":
        # Its other kernels may use TF32; older versions have fewer of them.
        for kernel in ("flash", "mem_efficient", "cudnn"):
            enable = getattr(torch.backends.cuda, f"enable_{kernel}_sdp", None)
            if enable:
                enable(False)
    losses, seconds = train(preset, data, int(steps), int(batch), kind, device,
                            "compile" in how)
    with open(log, "w", encoding="ascii") as file:
        for step, row in enumerate(zip(losses, seconds), 1):
            file.write(json.dumps(
                {"step": step, "loss": row[0], "seconds": row[1]},
                separators=(",", ":")) + "\n")
    if device == "cuda":
        print("memory", torch.cuda.max_memory_allocated() / 2**20,
              torch.cuda.max_memory_reserved() / 2**20)
    else:
        print("memory 1 1")


if __name__ == "__main__":
    main(*sys.argv[1:])
