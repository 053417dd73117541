#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A fake of the supervisor, for tests of the agent alone: it listens, proves
that it has the secret, pings, and writes down what agents say. It knows the
frames of lib/wire/wire.h from that header's words, not from its code.

    fake_supervisor.py FOLDER [HOW]

FOLDER/told gets what belongs into SLURM_DDP_SUPERVISOR, FOLDER/log a line for
each message; of an END also AT, with its time, and of PONG only what answers an
order. FOLDER/orders is a pipe for lines: KILL, SIGNAL NUMBER, PING, EXPLAIN,
ERRORS, WELCOME (which is wrong by then), DROP (close all connections), or QUIT.
HOW: "liar" does not have the secret; "mute" never says a word; "shy" closes its
first three connections at once.
"""
import hashlib
import hmac
import os
import secrets
import select
import socket
import struct
import sys
import time

(CHALLENGE, HELLO, WELCOME, RANK, END, DONE, ORPHANED, STAYS, PING, PONG,
 SIGNAL, KILL, PULSE, EXPLAIN, DETAIL, ERRORS, ERROR, WARNING) = range(1, 19)
FIELDS = {  # b: 32 bytes, n: number, q: time, t: text
    CHALLENGE: "b", HELLO: "bbtnnnn", WELCOME: "b", RANK: "nntt", END: "nnqttt",
    DONE: "", ORPHANED: "q", STAYS: "nnt", PING: "q", PONG: "qq", SIGNAL: "n",
    KILL: "", PULSE: "n", EXPLAIN: "", DETAIL: "nnnqnntt", ERRORS: "",
    ERROR: "nqt", WARNING: "t",
}
NAMES = {HELLO: "HELLO", RANK: "RANK", END: "END", DONE: "DONE",
         ORPHANED: "ORPHANED", STAYS: "STAYS", PULSE: "PULSE",
         DETAIL: "DETAIL", ERROR: "ERROR", WARNING: "WARNING"}


def encode(kind, *values):
    body = b""
    for form, value in zip(FIELDS[kind], values):
        if form == "b":
            body += value
        elif form == "t":
            body += value.encode() + b"\0"
        else:
            body += struct.pack({"n": ">I", "q": ">Q"}[form], value)
    return struct.pack(">IB", len(body) + 5, kind) + body


def decode(kind, body):
    values = []
    for form in FIELDS[kind]:
        if form == "t":
            text, body = body.split(b"\0", 1)
            values.append(text.decode("ascii", "replace"))
            continue
        size = {"b": 32, "n": 4, "q": 8}[form]
        part, body = body[:size], body[size:]
        values.append(part if form == "b" else int.from_bytes(part, "big"))
    assert body == b"", (kind, body)
    return values


class Agent:
    def __init__(self, sock, supervisor):
        self.sock, self.of = sock, supervisor
        self.nonce = secrets.token_bytes(32)
        self.node, self.data, self.on = "?", b"", False
        if supervisor.how != "mute":
            self.send(CHALLENGE, self.nonce)

    def send(self, kind, *values):
        try:
            self.sock.sendall(encode(kind, *values))
        except OSError:
            pass

    def prove(self, who, nonce):
        text = who + b"\0" + self.node.encode() + b"\0" + nonce
        return hmac.new(self.of.secret, text, hashlib.sha256).digest()

    def hear(self, kind, values):
        if kind == HELLO:
            self.node = values[2]
            self.on = hmac.compare_digest(
                values[0], self.prove(b"agent", self.nonce))
            proof = self.prove(b"supervisor", values[1])
            if self.of.how == "liar":
                proof = bytes(32)
            self.send(WELCOME, proof)
            self.of.write("HELLO" if self.on else "FALSE", self.node,
                          *values[3:])
        elif kind == PONG:
            assert values[0] in self.of.pings
            if values[0] in self.of.ordered:
                self.of.write("PONG", self.node)
        elif kind == END:
            self.of.write("END", self.node, *values[:2], *values[3:])
            self.of.write("AT", self.node, values[0], values[2])
        else:
            self.of.write(NAMES[kind], self.node, *values)

    def read(self):
        """Returns False when the connection is closed."""
        try:
            more = self.sock.recv(65536)
        except OSError as why:
            self.of.write("BROKEN", self.node, why.strerror)
            return False
        self.data += more
        while len(self.data) >= 5:
            length, kind = struct.unpack(">IB", self.data[:5])
            if len(self.data) < length:
                break
            self.hear(kind, decode(kind, self.data[5:length]))
            self.data = self.data[length:]
        if not more:
            self.of.write("CLOSED", self.node)
        return bool(more)


class Supervisor:
    def __init__(self, folder, how):
        self.how = how
        self.secret = secrets.token_bytes(32)
        self.agents, self.pings = [], set()
        self.ordered, self.closings = set(), 3 if how == "shy" else 0
        self.listener = socket.create_server(("", 0), backlog=1024)
        self.begin = time.monotonic()
        self.log = open(folder + "/log", "a", buffering=1)
        os.mkfifo(folder + "/orders")
        self.orders = os.open(folder + "/orders", os.O_RDWR)
        with open(folder + "/told.new", "w") as file:
            file.write("%d:1:%s\n" % (self.listener.getsockname()[1],
                                    self.secret.hex()))
        os.rename(folder + "/told.new", folder + "/told")

    def write(self, kind, *values):
        text = "|".join(str(v).replace("\n", "\\n") for v in values)
        self.log.write("%.3f %s %s\n" % (time.monotonic() - self.begin, kind,
                                         text))

    def obey(self, order):
        self.write("ORDER", order)
        word = order.split()
        for agent in self.agents:
            if word[0] == "KILL":
                agent.send(KILL)
            elif word[0] == "SIGNAL":
                agent.send(SIGNAL, int(word[1]))
            elif word[0] == "EXPLAIN":
                agent.send(EXPLAIN)
            elif word[0] == "ERRORS":
                agent.send(ERRORS)
            elif word[0] == "WELCOME":
                agent.send(WELCOME, bytes(32))
            elif word[0] != "PING":
                agent.sock.close()
        if word[0] == "DROP":
            self.agents = []
        if word[0] == "PING":
            self.ordered.add(self.ping())
        return word[0] != "QUIT"

    def ping(self):
        now = time.monotonic_ns()
        self.pings.add(now)
        for agent in self.agents:
            if agent.on:
                agent.send(PING, now)
        return now

    def accept(self):
        sock = self.listener.accept()[0]
        if self.closings:
            self.closings -= 1
            self.write("SHY")
            sock.close()
        else:
            self.agents.append(Agent(sock, self))

    def run(self):
        due = time.monotonic()
        while True:
            files = [self.listener, self.orders]
            files += [a.sock for a in self.agents]
            ready = select.select(files, [], [],
                                  max(0, due - time.monotonic()))[0]
            if self.listener in ready:
                self.accept()
            self.agents = [a for a in self.agents
                           if a.sock not in ready or a.read()]
            if time.monotonic() >= due:
                self.ping()
                due += 1
            orders = os.read(self.orders, 65536) if self.orders in ready else b""
            for order in orders.decode().splitlines():
                if not self.obey(order):
                    return


Supervisor(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "").run()
