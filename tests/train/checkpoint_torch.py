#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of ddp-train in PyTorch, by contrib/pytorch/ddp_checkpoint.py.

checkpoint_torch.py read DIR FILE     the held-out loss of what is saved there
checkpoint_torch.py write DIR FILE    save a new GPT; its held-out loss
checkpoint_torch.py copy DIR NEW      read, and write the same
checkpoint_torch.py order DIR NEW     likewise; what it syncs and renames
checkpoint_torch.py same DIR DIR      whether both have the same values
checkpoint_torch.py refuse DIR -      try what must not be saved, and say why
checkpoint_torch.py broken DIR -      what is said of each checkpoint in DIR
checkpoint_torch.py others DIR -      save DIR.toy, DIR.moved and DIR.sgd
"""
import os
import sys

import torch

import ddp_checkpoint
import parity


def held_out_loss(net, path):
    """Of the last tenth of the sequences, as ddp-train(1) says."""
    context = parity.SHAPES["tiny"][3]
    with open(path, "rb") as file:
        text = torch.tensor(list(file.read()))
    count = (len(text) - 1) // context
    trained = (count - min(count // 10, 512)) * context
    rows = [text[begin:begin + count * context].view(count, context)
            for begin in (0, 1)]
    return net.double().loss(*(row[trained // context:] for row in rows))


def trace(parent):
    """Print what is synced, and what is renamed to, below a folder."""
    fsync, replace = os.fsync, os.replace

    def say(what, path):
        print(what, os.path.relpath(path, parent))

    def traced_fsync(handle):
        say("sync", os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def traced_replace(old, new):
        say("rename", new)
        replace(old, new)

    os.fsync, os.replace = traced_fsync, traced_replace


def refuse(folder, param):
    """What ddp-train could not resume from, by its sentence."""
    part = "h.1.mlp.c_fc.bias"
    short = {name: value for name, value in param.items() if name != part}
    turned = {**param, "h.0.mlp.c_proj.weight":
              param["h.0.mlp.c_proj.weight"].T}
    large = {**param, part: param[part].double() + 1e39}
    v = {part: torch.full_like(param[part], float("nan"))}
    wrapped, prefixed = ({prefix + name: value for name, value in
                          param.items()}
                         for prefix in ("module.", "transformer."))
    rest = {name: value for name, value in param.items()
            if name != "wte.weight"}
    sgd = {"--optimizer": "sgd"}
    for other, heads, more in (
            (param, 0, {}), (param, 3, {}), (short, 2, {}),
            ({**param, "lm_head.weight": param[part]}, 2, {}),
            (turned, 2, {}), (large, 2, {}), (param, 2, {"v": v}),
            (wrapped, 2, {}), (prefixed, None, {}), (rest, 2, {}), ({}, 2, {}),
            ({}, None, {}), ({**param, "wte.weight": param[part]}, 2, {}),
            ({**param, "wpe.weight": param["wpe.weight"][:0]}, 2, {}),
            (param, 2, {"m": {"ln_f.bios": param["ln_f.bias"]}}),
            (param, 2, {"m": {"ln_f.bias": torch.zeros(3)}}),
            (param, 2, {"v": v, "options": sgd}),
            (param, 2, {"step": -1}), (param, 2, {"updates": -1})):
        try:
            ddp_checkpoint.save(folder, other, heads=heads, **more)
        except ValueError as error:
            print(error)
    assert not os.path.exists(folder)
    ddp_checkpoint.save(folder, dict(sorted(param.items())), heads=2)


def save_others(folder, param):
    """What is no GPT of AdamW."""
    toy = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.ReLU(),
                              torch.nn.Linear(10, 5)).state_dict()
    moved = {"--optimizer": "sgd", "--momentum": "0.9"}
    ddp_checkpoint.save(folder + ".toy", dict(sorted(toy.items())))
    ddp_checkpoint.save(folder + ".moved", toy, v=toy, options=moved)
    ddp_checkpoint.save(folder + ".sgd", param, options={
        "--optimizer": "sgd", "--layers": "9", "--heads": "2"})


def tell_broken(folder):
    """How each of those in a folder is refused."""
    for name in sorted(os.listdir(folder)):
        try:
            ddp_checkpoint.load(os.path.join(folder, name))
            print(name, "is read", flush=True)
        except Exception as error:
            print(name, f"{type(error).__name__}: {error}", flush=True)


def is_same(*saved):
    """The step, the updates and all tensors, none of which is all 0."""
    one, other = ({(state, name): values for state in ("param", "m", "v")
                   for name, values in each[state].items()} for each in saved)
    return (len({(each["step"], each["updates"]) for each in saved}) == 1 and
            one.keys() == other.keys() and
            all(torch.equal(one[key], other[key]) and one[key].any()
                for key in one))


def main(what, folder, other):
    torch.manual_seed(3)
    net = parity.Gpt(parity.SHAPES["tiny"])
    if what == "read":
        net.load_state_dict(ddp_checkpoint.load(folder)["param"])
        print("%.9g" % held_out_loss(net, other).item())
    elif what == "write":
        parity.perturb(net, torch.Generator().manual_seed(5))
        ddp_checkpoint.save(folder, net.state_dict(), heads=2)
        print("%.9g" % held_out_loss(net, other).item())
    elif what == "same":
        return not is_same(*map(ddp_checkpoint.load, (folder, other)))
    elif what == "refuse":
        refuse(folder, net.state_dict())
    elif what == "broken":
        tell_broken(folder)
    elif what == "others":
        save_others(folder, net.state_dict())
    else:
        if what == "order":
            trace(os.getcwd())
        saved = ddp_checkpoint.load(folder)
        ddp_checkpoint.save(other, saved["param"], 2, saved["m"], saved["v"],
                            saved["step"], saved["updates"], saved["options"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
