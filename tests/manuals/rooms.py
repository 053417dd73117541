#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which folder of the source uses which: rooms.py TOP [BUILD]

A room is a folder. contrib/CONTRIBUTING.md has a table of what each uses; what
those use, it may use, too. This reads that table, the #include lines below TOP,
and in BUILD, with nm, the symbols of the objects, as a function may be declared
by hand. Prints a line for each arrow that the table does not have, and then exits
with 1. Lines that begin with "#" are circles: files of one room that need each
other, which a reader has to read together.
"""
import glob
import os
import re
import subprocess
import sys

ROOMS = {}
# Where the compiler looks for what a file includes, beside its own folder
FOLDERS = ["lib", "lib/include", "plugin", "bin/ddp-info", "bin/ddp-bench",
           "bin/ddp-train"]


def read_table(path):
    """Fill ROOMS from the table whose last column is what a folder uses."""
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"^\| `([a-z/-]+)` \|.*\| ([a-z, ]*)\|$", file.read(),
                          re.M)
    uses = {room: re.findall(r"[a-z]+", words) for room, words in rows}
    names = {room.split("/")[-1]: room for room in uses}
    for room, words in uses.items():
        ROOMS[room], todo = set(), list(words)
        while todo:
            other = todo.pop()
            if other not in ROOMS[room]:
                ROOMS[room].add(other)
                todo += uses.get(names.get(other), [])


def find_room(path):
    """The room of a file, or None: that with the longest name."""
    fit = [room for room in ROOMS if path.startswith(room + "/")]
    return max(fit, key=len) if fit else None


def may_use(room, other):
    """Whether the table has this arrow."""
    return (room == other or other.split("/")[-1] in ROOMS[room]
            or other == "lib/include")


def find_included(path, name):
    """The file that an #include "name" of path means, or None."""
    own = [folder for folder in FOLDERS if path.startswith(folder + "/")]
    for folder in [os.path.dirname(path)] + own + FOLDERS:
        found = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(found):
            return found
    return None


def read_includes(sources):
    """Pairs of a file and one that it includes."""
    for path in sources:
        with open(path, encoding="utf-8") as file:
            for name in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
                found = find_included(path, name)
                if found and find_room(found):
                    yield path, found


def read_symbols(build):
    """Triples of an object's file, one whose symbol it needs, and the symbol."""
    objects, defined = {}, {}
    for path in glob.glob(build + "/obj/lib/*/*.o") + glob.glob(
            build + "/obj/plugin/**/*.o", recursive=True):
        source = os.path.relpath(path, build + "/obj")[:-1] + "c"
        if not os.path.exists(source):
            continue
        needs = objects.setdefault(source, [])
        for line in subprocess.run(["nm", path], check=True, text=True,
                                   capture_output=True).stdout.splitlines():
            kind, name = line.split()[-2:]
            if kind == "U":
                needs.append(name)
            elif kind in "TDBRC":
                defined[name] = source
    for source, names in objects.items():
        for name in names:
            if name in defined:
                yield source, defined[name], name


def find_circles(pairs):
    """Sets of units, each a .c with its .h, that need each other."""
    uses = {}
    for path, found in pairs:
        unit, other = path.rsplit(".", 1)[0], found.rsplit(".", 1)[0]
        if unit != other and find_room(path) == find_room(found):
            uses.setdefault(unit, set()).add(other)

    def reach(unit):
        seen, todo = set(), [unit]
        while todo:
            for other in uses.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reached = {unit: reach(unit) for unit in uses}
    circles = {frozenset(other for other in reached[unit]
                         if unit in reached.get(other, ()))
               for unit in uses if unit in reached[unit]}
    return sorted(circles, key=lambda circle: (-len(circle), sorted(circle)))


def main():
    os.chdir(sys.argv[1])
    read_table("contrib/CONTRIBUTING.md")
    if len(ROOMS) < 20:
        sys.exit("contrib/CONTRIBUTING.md has no table of folders")
    sources = sorted(path for folder in ("lib", "plugin", "bin")
                     for ending in ("c", "h", "cu")
                     for path in glob.glob(f"{folder}/**/*.{ending}",
                                           recursive=True)
                     if find_room(path))
    pairs = list(read_includes(sources))
    wrong = [f"{path} includes {found}" for path, found in pairs
             if not may_use(find_room(path), find_room(found))]
    if len(sys.argv) > 2:
        wrong += [f"{path} uses {name} of {found}"
                  for path, found, name in read_symbols(sys.argv[2])
                  if not may_use(find_room(path), find_room(found))]
    print("\n".join(wrong + ["# " + " ".join(sorted(circle))
                             for circle in find_circles(pairs)]))
    sys.exit(1 if wrong else 0)


main()
