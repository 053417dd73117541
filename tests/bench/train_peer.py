#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ddp-train is compared with: the same GPT by PyTorch, as a careful user
would write it, with DistributedDataParallel over gloo on several ranks.

train_peer.py PRESET DATA STEPS LOG

It reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints "step
1 ..." after the first step, and writes a JSON object a step to LOG, as
ddp-train --log does: step, loss, seconds since training began.
"""
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

PRESETS = {  # layers, heads, width, context
    "tiny": (2, 2, 64, 64), "10M": (6, 6, 384, 256)}
VOCAB, BATCH = 256, 8


class Block(nn.Module):
    def __init__(self, heads, width, context):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        mask = torch.full((context, context), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def attention(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2).reshape(
            n * self.heads, t, -1) for y in self.qkv(x).split(c, dim=2))
        # The product scales and masks too, to pass over the scores less.
        scores = torch.baddbmm(self.mask, q, k.transpose(1, 2),
                               alpha=1 / math.sqrt(c // self.heads))
        y = torch.bmm(F.softmax(scores, dim=-1), v)
        y = y.view(n, self.heads, t, -1).transpose(1, 2).reshape(n, t, c)
        return self.proj(y)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        up = F.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(up)


class GPT(nn.Module):
    def __init__(self, layers, heads, width, context):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(heads, width, context)
                                      for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            last = name.endswith(("proj.weight", "down.weight"))
            if p.dim() == 2:
                std = 0.02 / math.sqrt(2 * layers) if last else 0.02
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        x = self.norm(self.blocks(x))
        logits = F.linear(x, self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCAB), targets.reshape(-1))


def optimizer(net):
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]},
              {"params": [p for p in net.parameters() if p.dim() == 1],
               "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=3e-4, weight_decay=0.1)


def train(preset, data, steps, log):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    context = PRESETS[preset][3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if size > 1:
        dist.init_process_group("gloo")
    net = GPT(*PRESETS[preset])
    update = optimizer(net)
    model = net if size == 1 else nn.parallel.DistributedDataParallel(
        net, gradient_as_bucket_view=True)
    text = torch.frombuffer(bytearray(open(data, "rb").read()),
                            dtype=torch.uint8)
    draw = torch.Generator().manual_seed(rank)
    begin = time.monotonic()
    for step in range(1, steps + 1):
        first = torch.randint(len(text) - context, (BATCH,), generator=draw)
        rows = torch.stack([text[i:i + context + 1] for i in first]).long()
        loss = model(rows[:, :-1], rows[:, 1:])
        update.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        update.step()
        if size > 1:  # ddp-train prints the mean of all ranks
            loss = loss.detach() / size
            dist.all_reduce(loss)
        if rank == 0:
            log.write(json.dumps({
                "step": step, "loss": loss.item(),
                "seconds": time.monotonic() - begin},
                separators=(",", ":")) + "\n")
            log.flush()
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(sum(p.numel() for p in net.parameters()), "parameters")
    if size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    with open(sys.argv[4] if os.environ["RANK"] == "0" else os.devnull,
              "w", encoding="ascii") as file:
        train(sys.argv[1], sys.argv[2], int(sys.argv[3]), file)
