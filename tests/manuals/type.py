# SPDX-License-Identifier: BSD-3-Clause
"""Types lines into a shell on a terminal and asks it for all completions.

    type.py SHELL SETUP <LINES

For each line it prints what its last word may become, sorted: without what the
line has before an "=", and without an "=" or a comma at the end. SETUP is a
file of commands; after it the shell must have a key (ESC *) that inserts all
completions, and one (ESC p) that writes the line to the file "line".
"""
import os
import pty
import select
import sys
import time


def wait_for(terminal, name):
    """Read what the shell prints until it has written the file."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.02)[0]:
            os.read(terminal, 65536)
        elif os.path.exists(name):
            break
    else:
        sys.exit(f"the shell did not write {name}")
    with open(name) as file:
        text = file.read()
    os.unlink(name)
    return text


shell, setup = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    arguments = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}[shell]
    os.execvp(shell, [shell, *arguments, "-i"])
os.write(terminal, f". {setup}; echo >ready\n".encode())
wait_for(terminal, "ready")
for line in sys.stdin:
    line = line.rstrip("\n")
    # Control-U empties the line first.
    os.write(terminal, b"\x15" + line.encode() + b"\x1b*\x1bp")
    got = wait_for(terminal, "line").rstrip("\n")
    first = len((line + ".").split()) - 1
    words = got.split()[first:] if got != line else []
    print(*sorted(word.rstrip("=,").split("=")[-1] for word in words))
os.write(terminal, b"\x15exit\n")
os.close(terminal)
os.waitpid(pid, 0)
