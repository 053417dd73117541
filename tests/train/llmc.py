#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model file as llm.c writes it, and the loss that PyTorch has with it.

llmc.py FILE VERSION CONTEXT TOKENS

FILE is written as VERSION 3 (fp32) or 5 (bf16): 256 int32 and the parameters,
of each kind those of all layers, with rows after the vocabulary's that nobody
may read.  Then, in float64, the mean loss over the sequences of CONTEXT in the
token file.  LAYERS in the environment is the number of layers.
"""
import math
import os
import struct
import sys

import numpy
import torch

import parity

LAYERS = int(os.environ.get("LAYERS", 3))
HEADS, WIDTH, CONTEXT, VOCAB, PADDED = 3, 45, 32, 300, 384
KINDS = ("ln_1.weight", "ln_1.bias", "attn.c_attn.weight",
         "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
         "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias",
         "mlp.c_proj.weight", "mlp.c_proj.bias")


def write(path, version, state):
    """The state as llm.c's write_model() has it."""
    names = ["wte.weight", "wpe.weight"]
    names += [f"h.{i}.{kind}" for kind in KINDS for i in range(LAYERS)]
    names += ["ln_f.weight", "ln_f.bias"]
    assert set(names) == set(state)
    header = struct.pack("<8i", 20240326, version, CONTEXT, VOCAB, LAYERS,
                         HEADS, WIDTH, PADDED)
    with open(path, "wb") as file:
        file.write(header.ljust(1024, b"\0"))
        for name in names:
            tensor = state[name]
            if name == "wte.weight":
                padding = torch.full((PADDED - VOCAB, WIDTH), math.nan)
                tensor = torch.cat((tensor, padding))
            if version == 5:
                tensor = tensor.bfloat16().view(torch.int16)
            file.write(tensor.numpy().tobytes())


def find_loss(net, context, path):
    tokens = torch.from_numpy(
        numpy.fromfile(path, "<u2", offset=1024).astype(int))
    count = (len(tokens) - 1) // context
    end = count * context
    # The positions of a shorter context are the first ones.
    net.wpe.weight = torch.nn.Parameter(net.wpe.weight[:context])
    return net.loss(tokens[:end].view(count, context),
                    tokens[1:end + 1].view(count, context)).item()


def main(path, version, context, tokens):
    torch.set_num_threads(1)
    shape = (LAYERS, HEADS, WIDTH, CONTEXT, VOCAB, 1)
    net = parity.Gpt(shape)
    parity.perturb(net, torch.Generator().manual_seed(1))
    if version == "5":
        net.bfloat16().float()
    write(path, int(version), net.state_dict())
    print("%.9g" % find_loss(net.double(), int(context), tokens))


if __name__ == "__main__":
    main(*sys.argv[1:])
