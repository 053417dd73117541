# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests; tests/run starts this and tells how to use it.

A unit is one theme of a level, or a whole level that has no themes. The table
tests/themes lists all of them with what each costs. Units run side by side, the
longest first, as long as the CPUs have room for what they compute.

Each unit has a keeper, a process that all orphans of the unit fall to. So the
unit's CPU time is known, and a process that it leaves behind makes it fail.

A check that is only late (TAP "not ok ... # LATE", see in_time in tests/lib.sh)
is not believed at once, nor acquitted by a second run: the unit runs again and
again beside two busy loops, and the first failure there counts.
"""
import ctypes
import fcntl
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
TABLE = os.path.join(HERE, "themes")
PREPARE = os.path.join(TOP, "contrib", "sandbox", "prepare")
CPUS = len(os.sched_getaffinity(0))

LIMIT_S = 1800          # a unit that takes longer hangs
GRACE_S = 5             # in which what a unit has stopped may still end
STOP_S = 60             # to take down what a stopped unit has made
AGAIN_S, AGAIN_RUNS = 180, 10
LATE_MOST = 5           # more late checks than this in a run are a failure

# What each level needs: groups of contrib/sandbox/packages beside "build".
# Levels with programs of their own have a target tests-LEVEL in tests.mk. For
# those that are alone nothing else is built.
SANDBOX = ["sandbox", "trainer"]
NEEDS = {
    "runner": [], "unit": ["unit"], "golden": ["python"], "hostnames": ["sandbox"],
    "manuals": ["sandbox", "python", "manuals"], "spank": [],
    "agent": ["python"], "supervisor": ["python"], "configure": ["configure"],
    "packages": ["sandbox", "python", "packages"], "fuzz": ["fuzz"],
    "train": ["trainer", "python", "torch", "plot"],
    "cuda": SANDBOX + ["torch", "cuda"], "benchtool": SANDBOX + ["python"],
    "sandbox": SANDBOX + ["manuals"], "cluster": SANDBOX,
    "boot": SANDBOX + ["torch", "boot"],
    "programs": SANDBOX + ["torch", "containers"],
    "faults": SANDBOX + ["torch"],
    "watch": SANDBOX + ["torch", "watch"],
    "frameworks": SANDBOX + ["frameworks"],
    "arm64": ["trainer", "python", "arm64"],
}
ALONE = ["unit", "spank", "agent", "supervisor", "arm64"]
# These write GBs, or want to see what goes to a disk.
ON_DISK = ["agent", "packages", "frameworks", "arm64"]
OPEN = ["golden", "spank", "fuzz"]      # their programs know their own themes
PROGRAMS = ALONE + ["boot", "faults", "train", "cuda"]


class Usage(Exception):
    """What is wrong with the command line, and what to do."""


class Unit:
    """A row of the table: [SUITE:]LEVEL[/THEME], its tier and its costs."""

    def __init__(self, name, tier="long", cpu=20.0, wall=40.0):
        self.name, self.tier = name, tier
        self.cpu, self.wall = cpu, wall
        self.suite, _, rest = name.rpartition(":")
        self.level, _, self.theme = rest.partition("/")
        self.load = min(CPUS, max(0.05, cpu / max(wall, 0.1)))
        self.file = re.sub("[/:]", ".", name)
        self.again = [name]             # what to run if it failed

    def command(self):
        place = "/mnt" if self.suite else TOP
        words = ["%s/tests/%s/run" % (place, self.level)]
        if self.theme:
            words.append(self.theme)
        return in_root(self.suite, words)


class Preparation(Unit):
    """Makes a root of another release and installs and builds in it."""

    def __init__(self, suite, units):
        Unit.__init__(self, suite + ":", cpu=200.0, wall=300.0)
        self.units = units
        self.again = [unit.name for unit in units]

    def command(self):
        return in_root(self.suite, ["/mnt/contrib/sandbox/prepare"] +
                       groups(self.units), targets(self.units))


def in_root(suite, words, wanted=""):
    """The command that runs words on another release of Debian."""
    if not suite:
        return words
    build = "/var/tmp/build-%d" % zlib.crc32(TOP.encode())
    return [os.path.join(HERE, "root"), suite, "env", "DDP_BUILD=" + build,
            "DDP_TARGETS=" + wanted] + words


def groups(units):
    found = ["build"]
    for unit in units:
        found += NEEDS[unit.level]
    return sorted(set(found))


def targets(units):
    """What is made for units: "all" only if one of them installs it."""
    levels = {unit.level for unit in units}
    wanted = ["tests-" + level for level in sorted(levels)
              if level in PROGRAMS]
    return " ".join(wanted if levels <= set(ALONE) else ["all"] + wanted)


def read_table():
    units = {}
    with open(TABLE) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, tier, cpu, wall = line.split()
                units[name] = Unit(name, tier, float(cpu), float(wall))
    return units


def write_table(results):
    """Replaces the costs of units that passed by what was measured."""
    with open(TABLE) as file:
        lines = file.read().splitlines()
    for i, line in enumerate(lines):
        words = line.split()
        if words and words[0] in results:
            lines[i] = "%-32s %-5s %6.1f %6.1f" % (
                words[0], words[1], *results[words[0]])
    with open(TABLE, "w") as file:
        file.write("\n".join(lines) + "\n")


def root_exists(suite):
    place = os.environ.get("DDP_ROOTS", "/var/cache/slurm-ddp")
    return os.path.isdir(os.path.join(place, suite))


def is_fast(unit):
    """Whether the unit is of the fast tier. "root": where its root exists."""
    return unit.tier == "fast" or (unit.tier == "root" and
                                   root_exists(unit.suite))


def select(table, word):
    """The units that a word of the command line names."""
    if word == "all":
        return list(table.values())
    suite, colon, name = word.rpartition(":")
    level, _, theme = name.partition("/")
    if colon and not re.match("[a-z]+$", suite):
        raise Usage("'%s' is no release of Debian: see tests/root" % suite)
    if name and level not in NEEDS:
        raise Usage("'%s' is not a level; there are: %s" % (
            level, " ".join(sorted(NEEDS))))
    found = [unit for unit in table.values() if word in (
        unit.name, unit.name.partition("/")[0], unit.suite + colon)]
    if found:
        return found
    if not name:
        raise Usage("tests/themes has nothing for '%s': name a level" % suite)
    here = [u for u in table.values() if not u.suite and u.level == level]
    if not theme:
        return [Unit(suite + colon + u.name, cpu=u.cpu, wall=u.wall)
                for u in here]
    themes = [u.theme for u in here if u.theme]
    if theme not in themes and level not in OPEN:
        raise Usage("%s has no theme '%s'; it has: %s" % (
            level, theme, " ".join(themes) or "none"))
    return [Unit(word)]


def prepare_here(units, slurm):
    """Installs and builds what units need."""
    build = os.environ.get("DDP_BUILD")
    if build:
        os.environ["DDP_BUILD"] = os.path.abspath(build)
        command = ["make", "-s", "-C", build, "all"]
    else:
        os.environ["DDP_BUILD"] = TOP if not slurm else os.path.join(
            TOP, "obj", "slurm-%d" % zlib.crc32(slurm.encode()))
        command = [PREPARE] + groups(units)
    if subprocess.call(command, stdout=sys.stderr, env=dict(
            os.environ, DDP_SLURM=slurm, DDP_TARGETS=targets(units))):
        sys.exit(1)


def children(pid):
    found = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        try:
            with open(path) as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


def descendants(pid):
    for child in children(pid):
        yield child
        yield from descendants(child)


def describe(pid):
    try:
        with open("/proc/%d/cmdline" % pid) as file:
            words = file.read().replace("\0", " ").strip()
        return "process %d: %s" % (pid, words[:200]) if words else ""
    except OSError:
        return ""


def reap():
    """Waits for all children that have ended: {pid: exit code as of a shell}."""
    ended = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            ended[pid] = (os.WEXITSTATUS(status) if os.WIFEXITED(status)
                          else 128 + os.WTERMSIG(status))
    except ChildProcessError:
        pass
    return ended


def kill_all(number):
    for pid in list(descendants(os.getpid())):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def wait_alone(seconds):
    """Waits until no child is left, for so long at most."""
    end = time.time() + seconds
    while time.time() < end:
        reap()
        if not children(os.getpid()):
            break
        signal.sigtimedwait([signal.SIGCHLD], 0.1)


def hide_tmp(log):
    """Gives root's unit a /tmp of its own, in memory, which goes with it."""
    libc = ctypes.CDLL(None)
    if os.geteuid() == 0 and tempfile.gettempdir() == "/tmp" and not any(
            path.startswith("/tmp/") for path in (
                TOP, log, os.environ.get("DDP_BUILD", ""))):
        # Each only after the one before: a mount that is not private to this
        # unit would hide everybody's /tmp.
        _ = (libc.unshare(0x20000) == 0 and             # CLONE_NEWNS
             libc.mount(None, b"/", None, 0x44000, None) == 0 and  # private
             libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"mode=1777"))


def keep(unit, log, limit):
    """In a process of its own: runs the unit, and writes down how it ended."""
    os.setsid()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)         # PR_SET_CHILD_SUBREAPER
    if unit.level not in ON_DISK:
        hide_tmp(log)
    watched = [signal.SIGCHLD, signal.SIGTERM]
    signal.pthread_sigmask(signal.SIG_SETMASK, watched +
                           [signal.SIGINT, signal.SIGHUP])
    begun, prefix = time.time(), "/tmp/ddp-%d" % os.getpid()
    with open(log + ".tap", "wb") as out, open(log + ".err", "wb") as err:
        main = subprocess.Popen(
            unit.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            env=dict(os.environ, DDP_TEST_DIR=prefix),
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []))
    status, ended = None, "ended"
    while status is None:
        got = signal.sigtimedwait(watched, max(0, begun + limit - time.time()))
        status = reap().get(main.pid)
        if status is None and (not got or got.si_signo == signal.SIGTERM):
            ended = "stopped" if got else "hung"
            kill_all(signal.SIGTERM)
            wait_alone(STOP_S)
            status = 1
    wait_alone(GRACE_S)
    left = [describe(pid) for pid in descendants(os.getpid())]
    kill_all(signal.SIGKILL)
    wait_alone(GRACE_S)
    left += glob.glob(prefix + "-*")
    with open("/proc/self/mountinfo") as file:
        left += ["mount " + line.split()[4] for line in file
                 if prefix + "-" in line]
    usage = os.times()
    with open(log + ".json", "w") as file:
        json.dump({"how": ended, "status": status, "left": [x for x in left if
                                                             x],
                   "wall": time.time() - begun, "load": os.getloadavg()[0],
                   "cpu": usage.children_user + usage.children_system}, file)


class Result:
    """What the TAP of a unit says, and how the unit ended."""

    def __init__(self, unit, log):
        self.unit, self.log = unit, log
        self.passed, self.skips, self.plan = 0, [], None
        self.failed, self.late = [], []         # (title, its diagnostics)
        with open(log + ".tap", errors="replace") as file:
            shown = None
            for line in file:
                line = line.rstrip("\n")
                match = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
                if not match:
                    if line.startswith("1.."):
                        self.plan = int(re.match(r"\d*", line[3:]).group() or
                                        0)
                    elif shown is not None:
                        shown.append(line)
                    continue
                shown = None
                title = match.group(2)
                if match.group(1):
                    shown = []
                    if title.endswith(" # LATE"):
                        self.late.append((title[:-len(" # LATE")], shown))
                    else:
                        self.failed.append((title, shown))
                elif " # SKIP" in title:
                    self.skips.append(title.partition(" # SKIP")[2].strip())
                else:
                    self.passed += 1
        with open(log + ".json") as file:
            self.end = json.load(file)
        self.judge()

    def judge(self):
        """Adds a failure for what no check of the unit has said."""
        count = (self.passed + len(self.skips) + len(self.failed) +
                 len(self.late))
        if self.unit.name.endswith(":"):
            if self.end["status"] == 77:
                self.skips.append("no root of %s can be made here" %
                                  self.unit.suite)
            elif self.end["status"]:
                self.failed.append(("%s installs and builds what it needs" %
                                    self.unit.suite, []))
        elif self.end["how"] == "hung":
            self.failed.append(("it ends (stopped after %d s, %d checks)" % (
                self.end["wall"], count), []))
        elif self.plan != count or (self.end["status"] and not self.failed and
                                    not self.late):
            wanted = "" if self.plan is None else "of %d " % self.plan
            self.failed.append(("it runs to its end (status %d after %d %s"
                                "checks)" % (self.end["status"], count,
                                             wanted), []))
        elif count == 0:
            self.failed.append(("it has checks to run", []))
        if self.end["left"]:
            self.failed.append(("it leaves nothing behind",
                                ["# " + x for x in self.end["left"]]))


class Run:
    """The units of one tests/run, which of them run, and what came of them."""

    def __init__(self, units, log, jobs, limit):
        self.waiting = sorted(units, key=lambda u: -u.wall)
        self.count = len(units)
        self.log, self.jobs, self.limit = log, jobs, limit
        self.running = {}                       # keeper's pid: unit
        self.results = {}                       # name: Result
        self.begun = time.time()
        self.expected = sum(u.cpu for u in units)
        self.tty = sys.stdout.isatty()

    def start(self, unit, name):
        """Starts a keeper; its files begin with the name."""
        sys.stdout.flush()
        unit.begun = time.time()
        pid = os.fork()
        if pid == 0:
            try:
                keep(unit, os.path.join(self.log, name), self.limit)
            finally:
                os._exit(0)
        self.running[pid] = unit

    def wait(self, name=None):
        """Waits for a keeper's end."""
        pid = 0
        while pid not in self.running:
            pid, _ = os.wait()
        unit = self.running.pop(pid)
        return Result(unit, os.path.join(self.log, name or unit.file))

    def start_more(self):
        """Starts what there is room for. A suite's units wait for its root."""
        preparing = {u.suite for u in list(self.running.values()) +
                     self.waiting if isinstance(u, Preparation)}
        for unit in list(self.waiting):
            load = sum(u.load for u in self.running.values())
            if len(self.running) >= self.jobs:
                break
            if self.running and load + unit.load > CPUS * 1.1:
                continue
            if not isinstance(unit, Preparation) and unit.suite in preparing:
                continue
            self.waiting.remove(unit)
            self.start(unit, unit.file)

    def seconds_left(self):
        """From the table, and from how fast this machine was so far."""
        left = sum(u.cpu for u in self.waiting) + sum(
            u.cpu / 2 for u in self.running.values())
        done = self.expected - left
        rate = (time.time() - self.begun) / done if done > 60 else 1 / CPUS
        return max([left * rate] + [u.wall for u in self.waiting] + [
            u.begun + u.wall - time.time() for u in self.running.values()])

    def show(self, text=""):
        """Prints lines, and below them, on a terminal, how far the run is."""
        clear = "\r\033[K" if self.tty else ""
        if text:
            print(clear + text)
        if self.tty and self.running:
            line = "%d of %d done, about %d min left: %s" % (
                len(self.results), self.count, self.seconds_left() / 60 + 1,
                " ".join(u.name for u in self.running.values()))
            print(clear + line[:os.get_terminal_size().columns - 1], end="")
        sys.stdout.flush()

    def report(self, result):
        end, unit = result.end, result.unit
        lines = ["%-26s %d passed, %d failed, %d skipped in %d s" % (
            unit.name + ":", result.passed, len(result.failed) +
            len(result.late), len(result.skips), end["wall"])]
        for title, why in result.failed + result.late:
            lines += ["  not ok - " + title] + ["  " + x for x in why[:40]]
        for why in sorted(set(result.skips)):
            lines.append("  %d checks # SKIP %s" % (
                result.skips.count(why), why))
        if result.failed:
            with open(result.log + ".err", errors="replace") as file:
                lines += ["  | " + x.rstrip() for x in file.readlines()[-20:]]
        self.show("\n".join(lines))

    def run(self):
        self.show("%d themes, about %d min" % (self.count,
                                               self.seconds_left() / 60 + 1))
        while self.waiting or self.running:
            self.start_more()
            self.show()
            result = self.wait()
            unit = result.unit
            self.results[unit.name] = result
            self.report(result)
            if isinstance(unit, Preparation) and (result.failed or
                                                  result.skips):
                self.waiting = [u for u in self.waiting
                                if u.suite != unit.suite]
        for result in list(self.results.values()):
            if result.late and not result.failed:
                self.try_again(result)

    def try_again(self, first):
        """Runs a late unit again: red if a check of it fails once more."""
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(2)]
        end = time.time() + AGAIN_S
        try:
            for number in range(AGAIN_RUNS):
                if time.time() > end:
                    break
                self.start(first.unit, first.unit.file + ".again")
                again = self.wait(first.unit.file + ".again")
                if again.failed or again.late:
                    first.failed += first.late + again.failed + again.late
                    first.late = []
                    break
        finally:
            for process in busy:
                process.kill()
                process.wait()
        self.show("%-26s was late, ran again %d times: %s" % (
            first.unit.name + ":", number + 1,
            "failed" if first.failed else "in time"))

    def stop(self):
        for pid in self.running:
            os.kill(pid, signal.SIGTERM)
        for pid in self.running:
            os.waitpid(pid, 0)


def finish(run, measured):
    """Prints the summary; returns the exit code."""
    results = run.results.values()
    late = [(r, title) for r in results for title, _ in r.late]
    passed = sum(r.passed for r in results) + len(late)
    skipped = sum(len(r.skips) for r in results)
    failed = sum(len(r.failed) for r in results)
    print()
    for result, title in late:
        print("late (at a load of %.0f) %s: %s" % (
            result.end["load"], result.unit.name, title))
    if len(late) > LATE_MOST:
        failed += 1
        print("failed: %d checks were late, more than %d: this is no noise" %
              (len(late), LATE_MOST))
    for result in results:
        for title, _ in result.failed:
            print("failed: %s: %s" % (result.unit.name, title))
        if result.failed:
            print("  again: tests/run %s   output: %s.{tap,err}" % (
                " ".join(result.unit.again), os.path.relpath(result.log)))
    with open(os.path.join(run.log, "failed"), "w") as file:
        file.writelines(name + "\n" for r in results if r.failed
                        for name in r.unit.again)
    if measured:
        write_table({r.unit.name: (r.end["cpu"], r.end["wall"])
                     for r in results if not r.failed})
    print("took %d s, %d of them CPU" % (
        time.time() - run.begun, sum(r.end["cpu"] for r in results)))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return int(failed > 0 or passed + skipped == 0)


def number(option, text, most):
    if not re.match("[1-9][0-9]{0,5}$", text) or int(text) > most:
        raise Usage("%s takes a number from 1 to %d, not '%s'" % (
            option, most, text))
    return int(text)


def parse(words):
    """The options and what is to be run."""
    options = {"--jobs": 4 * CPUS, "--limit": LIMIT_S, "--root": "",
               "--slurm": "", "--failed": False, "--list": False,
               "--measure": False}
    rest = []
    words = [part for word in words for part in (
        word.split("=", 1) if re.match("--[a-z]+=", word) else [word])]
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            rest.append(word)
        elif word not in options:
            raise Usage("unknown option '%s': see tests/run --help" % word)
        elif options[word] is False:
            options[word] = True
        elif not words or not words[0]:
            raise Usage("%s takes a value: see tests/run --help" % word)
        elif word in ("--jobs", "--limit"):
            options[word] = number(word, words.pop(0), 99999)
        else:
            options[word] = words.pop(0)
    if options["--slurm"] and not os.access(options["--slurm"] + "/bin/srun",
                                            os.X_OK):
        raise Usage("--slurm: there is no '%s/bin/srun': name the folder that "
                    "a Slurm was installed in" % options["--slurm"])
    return options, rest


def choose(options, words, log):
    """The units to run."""
    table = read_table()
    if options["--failed"]:
        path = os.path.join(log, "failed")
        if not os.path.exists(path):
            raise Usage("--failed: nothing was run before in this tree")
        with open(path) as file:
            words += file.read().split()
        if not words:
            raise Usage("--failed: nothing failed in the last run")
    if options["--root"]:
        words = ["%s:%s" % (options["--root"], word) for word in words or [""]]
    if words:
        units = {u.name: u for word in words for u in select(table, word)}
    else:
        units = {u.name: u for u in table.values() if is_fast(u)}
    if options["--slurm"] and any(u.suite for u in units.values()):
        raise Usage("another release of Debian brings a Slurm of its own: "
                    "leave --slurm out")
    return list(units.values())


def main(words):
    log = os.path.abspath(os.environ.get("DDP_LOG") or
                          os.path.join(TOP, "obj", "test-logs"))
    options, words = parse(words)
    units = choose(options, words, log)
    if options["--list"]:
        for unit in units:
            print("%-32s %-5s %6.1f %6.1f" % (unit.name, unit.tier, unit.cpu,
                                              unit.wall))
        return 0
    os.makedirs(log, exist_ok=True)
    lock = open(os.path.join(log, "lock"), "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Usage("another tests/run writes into %s: wait for its end, or "
                    "name another folder in DDP_LOG" % log)
    slurm = options["--slurm"] and os.path.abspath(options["--slurm"])
    if slurm:
        os.environ["PATH"] = "%s/bin:%s/sbin:%s" % (slurm, slurm,
                                                    os.environ["PATH"])
    here = [u for u in units if not u.suite]
    if here:
        prepare_here(here, slurm)
    suites = sorted({u.suite for u in units if u.suite})
    if suites and os.geteuid() == 0:
        subprocess.call([PREPARE, "--packages", "root"], stdout=sys.stderr)
    units += [Preparation(suite, [u for u in units if u.suite == suite])
              for suite in suites]
    run = Run(units, log, options["--jobs"], options["--limit"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(143))
    try:
        run.run()
    except BaseException:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        run.stop()
        raise
    return finish(run, options["--measure"])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Usage as why:
        text = "".join(c if " " <= c <= "~" else "?" for c in str(why))
        sys.stderr.write("tests/run: %s\n" % text)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:                         # tests/run | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
