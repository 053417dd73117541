#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What ddp-train is compared with: the same GPT by PyTorch, as a careful user
would write it, with DistributedDataParallel over gloo on several ranks.

train_peer.py PRESET DATA STEPS LOG [bf16] [compile]

bf16 is by autocast, compile by torch.compile. The first parameters and the
samples are those of ddp-train --seed 7, so that both have the same losses. It
reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints "step 1 ..."
after the first step, and writes a JSON object a step to LOG, as ddp-train --log
does: step, loss, seconds since training began.
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

# Or beside this, where it was copied to
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../train"))
import parity       # noqa: E402
import reference    # noqa: E402

PRESETS = {  # layers, heads, width, context
    "tiny": (2, 2, 64, 64), "10M": (6, 6, 384, 256)}
VOCAB, BATCH = 256, 8
NEW = hasattr(F, "scaled_dot_product_attention")  # PyTorch 2


class Layer(nn.Module):
    def __init__(self, heads, width, context):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width),
                                   "c_proj": nn.Linear(width, width)})
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width),
                                  "c_proj": nn.Linear(4 * width, width)})
        mask = torch.full((context, context), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def attend(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2)
                   for y in self.attn["c_attn"](x).split(c, dim=2))
        if NEW and (q.is_cuda or q.dtype == torch.float32):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # in bf16 faster than that
            q, k, v = (y.reshape(n * self.heads, t, -1) for y in (q, k, v))
            # The product scales and masks too, to pass over the scores less.
            scores = torch.baddbmm(self.mask.to(q.dtype), q, k.transpose(1, 2),
                                   alpha=1 / math.sqrt(c // self.heads))
            y = torch.bmm(F.softmax(scores, dim=-1), v)
            y = y.view(n, self.heads, t, -1)
        return self.attn["c_proj"](y.transpose(1, 2).reshape(n, t, c))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        up = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](up)


class GPT(nn.Module):
    """Its parameters have ddp-train's names and order."""
    def __init__(self, layers, heads, width, context, vocab=VOCAB):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.Sequential(*(Layer(heads, width, context)
                                 for _ in range(layers)))
        self.ln_f = nn.LayerNorm(width)
        self.load_state_dict({name.split()[1]: tensor for name, tensor
                              in parity.initial(self, layers)})

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        x = self.ln_f(self.h(x))
        logits = F.linear(x, self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.reshape(-1))


def optimizer(net):
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]},
              {"params": [p for p in net.parameters() if p.dim() == 1],
               "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95),
                             weight_decay=0.1, **({"fused": True} if NEW
                                                  else {}))


def batches(data, context, steps, rank, size):
    """This rank's rows of each step, as ddp-train shuffles them."""
    with open(data, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    count = (len(text) - 1) // context
    rows = text[:count * context + 1].unfold(0, context + 1, context)
    for step in range(steps):
        first = (step * size + rank) * BATCH
        assert first + BATCH <= count, f"{data} is too short for {steps} steps"
        yield rows[[reference.permuted(i, count, parity.SEED, 0)
                    for i in range(first, first + BATCH)]].long()


def train(log, preset, data, steps, *how):
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo")
    net = GPT(*PRESETS[preset])
    update = optimizer(net)
    model = torch.compile(net) if "compile" in how else net
    if size > 1:
        model = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True)
    rows = list(batches(data, PRESETS[preset][3], int(steps), rank, size))
    begin = time.monotonic()
    for step, batch in enumerate(rows, 1):
        with torch.autocast("cpu", torch.bfloat16, "bf16" in how):
            loss = model(batch[:, :-1], batch[:, 1:])
        update.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        update.step()
        loss = loss.detach() / size
        if size > 1:  # ddp-train prints the mean of all ranks
            dist.all_reduce(loss)
        if rank == 0:
            log.write(json.dumps({
                "step": step, "loss": loss.item(),
                "seconds": time.monotonic() - begin},
                separators=(",", ":")) + "\n")
            log.flush()
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    if size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    with open(sys.argv[4] if os.environ["RANK"] == "0" else os.devnull,
              "w", encoding="ascii") as file:
        train(file, *sys.argv[1:4], *sys.argv[5:])
