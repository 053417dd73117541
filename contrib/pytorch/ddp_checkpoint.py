# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of ddp-train for PyTorch, and back; ddp-train(1) has the format.

    import ddp_checkpoint
    saved = ddp_checkpoint.load("DIR")           # the newest one in it
    saved = ddp_checkpoint.load("DIR/step-40")   # or this one
    net.load_state_dict(saved["param"])
    ddp_checkpoint.save("NEW", net.state_dict(), heads=12)

    $ python3 ddp_checkpoint.py DIR              # list those in it

What load() returns has "step", "updates", "options", a dictionary, and for each
state ("param", and the optimizer's "m" and "v") a dictionary of tensors, whose
names are those of a state_dict. The tensors are those of nn.Linear: a GPT-2 of
the package transformers has the matrices of its layers the other way round.
"""
import datetime
import errno
import fcntl
import operator
import os
import re
import secrets
import stat
import struct
import sys
import zlib

import torch

TITLE = "ddp-train checkpoint, version "
VERSION = 2
OWNER = ".ddp-train-owner"
F_OFD_SETLK = 37                # of Linux; Python 3.9 and later name it
SIZE_MAX, STEP_MAX = 65536, 10 ** 9     # of the options of ddp-train
STATES_MAX, BYTES_MAX = 8, 16 << 20     # of a manifest
TOY = {"0.weight": (10, 10), "0.bias": (10,),
       "2.weight": (5, 10), "2.bias": (5,)}


def list_steps(folder):
    """The N of each DIR/step-N that has a manifest, the last one first."""
    steps = [int(name[5:]) for name in os.listdir(folder)
             if re.fullmatch("step-[0-9]+", name)
             and os.path.exists(os.path.join(folder, name, "manifest"))]
    if not steps:
        raise FileNotFoundError(f"no checkpoint of ddp-train in {folder}")
    return sorted(steps, reverse=True)


def find(folder):
    """The newest DIR/step-N, or the folder itself if it is one."""
    if os.path.exists(os.path.join(folder, "manifest")):
        return folder
    return os.path.join(folder, f"step-{list_steps(folder)[0]}")


def open_file(folder, name):
    """As ddp-train does: no link, no device, and no pipe that it would wait
    for."""
    path = os.path.join(folder, name)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO,
                           errno.ENAMETOOLONG):
            raise ValueError(f"{path}: {error.strerror}") from error
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return open(handle, "rb")
    os.close(handle)
    raise ValueError(f"{path} is not a file")


def parse(lines):
    """What they say, by their names; an exception if that is incomplete."""
    said = {"state": [], "shard": [], "parameter": [], "option": {}}
    for name, _, value in (line.partition(" ") for line in lines):
        if name in ("step", "updates", "values"):
            said[name] = int(value)
        elif name == "state":
            said[name].append(value)
        elif name == "shard":
            file, crc = value.split()
            said[name].append((file, int(crc, 16), []))
        elif name == "range":
            begin, end = map(int, value.split())
            said["shard"][-1][2].append((begin, end))
        elif name == "parameter":
            tensor, begin, rows, columns = value.split()
            said[name].append((tensor, int(begin), int(rows), int(columns)))
        elif name == "option":
            option, _, said[name][option] = value.partition(" ")
    if not {"step", "updates", "values"} <= said.keys():
        raise KeyError
    return said


def check(path, said):
    """ValueError: it would lead to other files, or its shards do not have each
    value once."""
    end = 0
    for begin, next_end in sorted(part for _, _, ranges in said["shard"]
                                  for part in ranges):
        if begin < end or next_end <= begin:
            raise ValueError(f"{path} has value {begin} twice")
        if begin > end:
            break
        end = next_end
    if end != said["values"] or end == 0:
        raise ValueError(f"{path} has shards up to value {end} of "
                         f"{said['values']}")
    for file, _, _ in said["shard"]:
        if "/" in file:
            raise ValueError(f"{path}: {file} is not the name of a file")
    for name, begin, rows, columns in said["parameter"]:
        if (min(begin, rows - 1, columns - 1) < 0 or
                begin + rows * columns > end):
            raise ValueError(f"{path}: {name} is not within its {end} values")
    if not 1 <= len(set(said["state"])) == len(said["state"]) <= STATES_MAX:
        raise ValueError(f"{path} has states that ddp-train does not write")


def read_manifest(folder):
    """What it says, by the names of its lines; a shard with its ranges."""
    path = os.path.join(folder, "manifest")
    with open_file(folder, "manifest") as file:
        text = file.read(BYTES_MAX + 1)
    if len(text) > BYTES_MAX:
        raise ValueError(f"{path} has more than 16 MiB")
    title = text.partition(b"\n")[0].decode(errors="replace")
    if not title.startswith(TITLE):
        raise ValueError(f"{path} is not a manifest of ddp-train")
    version = title[len(TITLE):]
    if version != str(VERSION):
        raise ValueError(f"{path} is of version {version}, and this "
                         f"ddp_checkpoint reads version {VERSION}")
    body, mark, crc = text.rpartition(b"crc ")
    if not mark or crc != b"%08x\n" % zlib.crc32(body):
        raise ValueError(f"{path} has another checksum than it says")
    try:
        said = parse(body.decode().split("\n")[1:])
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{path} has a line that ddp-train does not write, "
                         "or lacks one") from error
    step = re.fullmatch("step-([0-9]+)",
                        os.path.basename(os.path.abspath(folder)))
    if step and int(step[1]) != said["step"]:
        raise ValueError(f"{path} is of step {said['step']}")
    check(path, said)
    return said


def count_bytes(said, ranges):
    return 4 * len(said["state"]) * sum(end - begin for begin, end in ranges)


def open_shard(folder, said, shard):
    """ValueError: it has not the bytes that the manifest counts."""
    file = open_file(folder, shard[0])
    size, wanted = os.fstat(file.fileno()).st_size, count_bytes(said, shard[2])
    if size == wanted:
        return file
    file.close()
    raise ValueError(f"{os.path.join(folder, shard[0])} has {size} bytes in "
                     f"place of {wanted}")


def see_shards(folder, said):
    """Without reading them: all are there, in their sizes."""
    for shard in said["shard"]:
        open_shard(folder, said, shard).close()


def load(folder):
    """The newest checkpoint in a folder, or the folder itself if it is one; see
    above. ValueError: it is broken, or of another version."""
    folder = find(folder)
    said = read_manifest(folder)
    see_shards(folder, said)
    states = said["state"]
    every = torch.zeros(len(states), said["values"])
    for shard in said["shard"]:
        file, crc, ranges = shard
        with open_shard(folder, said, shard) as opened:
            data = bytearray(opened.read(count_bytes(said, ranges)))
        if zlib.crc32(data) != crc:
            raise ValueError(f"{folder}/{file} has another checksum than the "
                             "manifest says")
        values = torch.frombuffer(data, dtype=torch.float32)
        sizes = [end - begin for begin, end in ranges]
        for (begin, end), part in zip(ranges, values.view(
                len(states), -1).split(sizes, dim=1)):
            every[:, begin:end] = part
    saved = {state: {} for state in states}
    for name, begin, rows, columns in reversed(said["parameter"]):
        shape = [rows, columns] if rows != 1 else [columns]
        for state, values in zip(states, every):
            part = values[begin:begin + rows * columns]
            saved[state][name] = part.view(shape)
    return {**saved, "options": said["option"], "step": said["step"],
            "updates": said["updates"]}


def write(path, data):
    """Beside it, and then under its name: never in part. What a save has left
    there goes: as a link it could lead to another file."""
    try:
        os.unlink(path + ".part")
    except FileNotFoundError:
        pass
    with open(path + ".part", "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)
    sync(os.path.dirname(path))


def sync(folder):
    """The names in it, too, outlast a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def take(folder):
    """The lock by which one run at a time saves in a folder, as ddp-train takes
    it: an open file, which has it until that is closed."""
    path = os.path.join(folder, OWNER)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    # Who can read it can lock it, too: the group, if the folder is theirs.
    shared = os.stat(folder)
    mode = 0o660 if shared.st_mode & 0o020 else 0o600
    try:
        if mode == 0o660 and os.fstat(handle).st_gid != shared.st_gid:
            os.fchown(handle, -1, shared.st_gid)
    except OSError:
        mode = 0o600    # we are not in that group
    try:
        os.fchmod(handle, mode)
    except OSError:
        pass            # it is of another user of the group
    try:
        # struct flock: of what kind, from where, and all of the file
        fcntl.fcntl(handle, F_OFD_SETLK, struct.pack(
            "hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except (BlockingIOError, PermissionError) as error:
        lines = dict(line.split(" ", 1) for line in
                     os.read(handle, 512).decode(errors="replace").splitlines()
                     if " " in line)
        os.close(handle)
        raise BlockingIOError(
            f"{folder} is in use by another run, process "
            f"{lines.get('process', '?')} on {lines.get('host', '?')}, since "
            f"{lines.get('since', '?')}; wait for its end or name another "
            "folder") from error
    except OSError as error:
        print(f"{folder}: another run that saves there is not noticed, as "
              f"locks do not work: {error.strerror}", file=sys.stderr)
    now = datetime.datetime.now(datetime.timezone.utc)
    record = (f"run {secrets.token_hex(8)}\nhost {os.uname().nodename}\n"
              f"process {os.getpid()}\nattempt 0.0\n"
              f"since {now:%Y-%m-%d %H:%M:%S} UTC\n").encode()
    os.pwrite(handle, record, 0)
    os.ftruncate(handle, len(record))
    return handle


def order(param, shapes, model):
    """The tensors in the order of ddp-train, whose model has these shapes."""
    for name in {**shapes, **param}:
        if name not in param or name not in shapes:
            raise ValueError(f"param {'lacks' if name in shapes else 'has'} "
                             f"{name}, which {model} of ddp-train "
                             f"{'has' if name in shapes else 'lacks'}")
        if tuple(param[name].shape) != shapes[name]:
            raise ValueError(f"{name} is of shape {tuple(param[name].shape)}, "
                             f"and should be of {shapes[name]}")
    return {name: param[name] for name in shapes}


def measure_gpt(param, heads):
    """A GPT's size by the options of ddp-train."""
    for name in param:
        prefix = name[:-len("wte.weight")]
        if prefix and name.endswith("wte.weight"):
            raise ValueError(f"param has {name}, which is wte.weight in "
                             f"ddp-train: take {prefix!r} off the names")
    tables = [tuple(param[name].shape) if name in param else (0, 0)
              for name in ("wte.weight", "wpe.weight")]
    if any(len(shape) != 2 for shape in tables):
        raise ValueError("wte.weight and wpe.weight should have two "
                         f"dimensions, and are of shapes {tables}")
    (vocab, width), (context, _) = tables
    layers = len({name.split(".")[1] for name in param
                  if name.startswith("h.")})
    return {"--layers": max(layers, 1), "--heads": heads, "--width": width,
            "--vocab": vocab, "--context": context}


def order_gpt(param, size):
    """The tensors of a GPT in the order of ddp-train; all must be there."""
    width, heads = size["--width"], size["--heads"]
    shapes = {"wte.weight": (size["--vocab"], width),
              "wpe.weight": (size["--context"], width)}
    for layer in range(size["--layers"]):
        for part, rows, columns in (
                ("ln_1", 0, 1), ("attn.c_attn", 3, 1), ("attn.c_proj", 1, 1),
                ("ln_2", 0, 1), ("mlp.c_fc", 4, 1), ("mlp.c_proj", 1, 4)):
            shapes[f"h.{layer}.{part}.weight"] = (
                (rows * width, columns * width) if rows else (width,))
            shapes[f"h.{layer}.{part}.bias"] = ((rows or 1) * width,)
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (width,)
    param = order(param, shapes, "a GPT")
    if heads < 1:
        raise ValueError("a GPT is saved without its number of heads: "
                         "add heads=N")
    if width % heads:
        raise ValueError(f"heads={heads} does not divide the width, {width}")
    for name, value in size.items():
        if not 1 <= value <= SIZE_MAX:
            raise ValueError(f"{name} of {value} is not 1 to {SIZE_MAX}, as "
                             "ddp-train can have it")
    return param


def complete(moments, param, options):
    """The optimizer's states by name, of what is given and else 0."""
    names = ["v"] if float(options.get("--momentum", 0)) else []
    optimizer = "adamw" if options["--model"] == "gpt" else "sgd"
    if options.get("--optimizer", optimizer) == "adamw":
        names = ["m", "v"]
    for state, values in moments.items():
        if values and state not in names:
            raise ValueError(f"{state} is given, but the options are of an "
                             "optimizer without it: give them --optimizer or "
                             "--momentum")
        for name, tensor in (values or {}).items():
            if name not in param:
                raise ValueError(f"{state} has {name}, which param lacks")
            if tensor.shape != param[name].shape:
                raise ValueError(
                    f"{name} of {state} is of shape {tuple(tensor.shape)}, "
                    f"and should be of {tuple(param[name].shape)}")
    return {name: moments[name] or {} for name in names}


def check_finite(state, name, values):
    """What ddp-train would refuse: it has no parameters that are infinite, and
    no NaN in any state."""
    if state == "param" and not values.isfinite().all() or values.isnan().any():
        raise ValueError(f"{name} of {state} has a value that is not a finite "
                         "number in fp32")


def save(folder, param, heads=None, m=None, v=None, step=0, updates=None,
         options=()):
    """So that ddp-train --checkpoint FOLDER --resume goes on from it. Of a GPT
    the number of heads must be said; where m and v of the optimizer are not
    given, or not of a parameter, they are 0. As load() returns them, options
    may say more: what they do not is given to ddp-train anew. ValueError:
    ddp-train could not resume from it."""
    step = operator.index(step)
    updates = operator.index(step if updates is None else updates)
    if not 0 <= step <= STEP_MAX or updates < 0:
        raise ValueError(f"step={step} with updates={updates} is not from 0 "
                         f"to {STEP_MAX}")
    options = dict(options)
    if heads or param.keys() != TOY.keys():
        size = measure_gpt(param, int(heads or options.get("--heads", 0)))
        param = order_gpt(param, size)
        options.update(size, **{"--model": "gpt"})
    else:
        param = order(param, TOY, "the toy")
        options["--model"] = "toy"
    lines = [f"step {step}", f"updates {updates}"]
    lines += [f"option {name} {value}" for name, value in options.items()]
    every = {"param": param, **complete({"m": m, "v": v}, param, options)}
    begin, places = 0, []
    for name, tensor in reversed(list(param.items())):
        rows, columns = tensor.shape if tensor.dim() > 1 else (1, len(tensor))
        lines.append(f"parameter {name} {begin} {rows} {columns}")
        places.append((name, begin, begin + tensor.numel()))
        begin = -(-(begin + tensor.numel()) // 16) * 16
    data = torch.zeros(len(every), begin)
    for state, values in zip(every, data):
        lines.append(f"state {state}")
        for name, first, end in places:
            if name in every[state]:
                values[first:end] = every[state][name].detach().flatten()
                check_finite(state, name, values[first:end])
    data = data.numpy().tobytes()
    lines += [f"values {begin}", f"shard shard-0-of-1 {zlib.crc32(data):08x}",
              f"range 0 {begin}"]
    new = not os.path.exists(folder)
    os.makedirs(folder, exist_ok=True)
    owner = take(folder)
    path = os.path.join(folder, f"step-{step}")
    try:
        write_step(path, lines, data)
    finally:
        os.close(owner)
    sync(folder)
    if new:
        try:
            sync(os.path.join(folder, ".."))
        except PermissionError:
            pass    # one may be allowed to write there, but not to read


def write_step(path, lines, data):
    """The shard first: without a manifest there is no checkpoint, but perhaps
    what a save that did not come to its end has left."""
    if os.path.exists(os.path.join(path, "manifest")):
        raise FileExistsError(f"{path} is a checkpoint already; remove it, or "
                              "name another folder or step")
    os.makedirs(path, exist_ok=True)
    text = "".join(line + "\n" for line in
                   [f"{TITLE}{VERSION}", *lines]).encode()
    write(os.path.join(path, "shard-0-of-1"), data)
    write(os.path.join(path, "manifest"),
          text + b"crc %08x\n" % zlib.crc32(text))


def printable(text):
    return "".join(c if c.isprintable() else "?" for c in str(text))


def main(arguments):
    usage = "usage: python3 ddp_checkpoint.py DIR"
    if arguments[1:] in (["-h"], ["--help"]):
        print(usage + "\n\nLists the checkpoints of ddp-train in a folder.")
        return 0
    if len(arguments) != 2 or arguments[1].startswith("-"):
        return usage
    try:
        steps = list_steps(arguments[1])
    except OSError as error:
        return "ddp_checkpoint: " + printable(
            f"{arguments[1]}: {error.strerror}" if error.strerror else error)
    for step in steps:
        path = os.path.join(arguments[1], f"step-{step}")
        try:
            said = read_manifest(path)
            see_shards(path, said)
        except (OSError, ValueError) as error:
            print(f"{path}: broken: {printable(error)}")
            continue
        print(f"{path}: {said['values']} values of each of",
              *map(printable, said["state"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
