#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Do comments and titles of tests read as sentences? comments.py TOP

Counts comments of C that stand on lines of their own, and titles of shell tests,
which a reader must read twice: they begin with a word that needs another sentence
("What", "Of", "which"), or have a sentence of more than 30 words. Prints each,
and exits with 1 if more than one in 20 is so. Comments of WAITING are left out:
that code is to be written anew.
"""
import glob
import os
import re
import sys

WAITING = ("plugin/agent/", "plugin/supervisor/", "plugin/verdict/")
LEANING = set("""and as but by from in nor not of on only or so than that
to until what when where whether which who whom whose why with without""".split())
MOST_WORDS, MOST_SHARE = 30, 0.05
COMMENT = re.compile(r"^[ \t]*/\*(.*?)\*/", re.M | re.S)
TITLE = re.compile(r"^\s*(?:(?:check|equal|says|said|skip)|(?:result|in_time) "
                   r"\S+) (['\"])([^'\"]* [^'\"]*)\1", re.M)


def is_leaning(text):
    """Whether the first word needs what stands before."""
    return text.split()[0].strip(",.:").lower() in LEANING


def has_long_sentence(text):
    return any(len(sentence.split()) > MOST_WORDS
               for sentence in re.split(r"[.;:]\s", text))


def read_comments(path):
    with open(path, encoding="utf-8") as file:
        for comment in COMMENT.findall(file.read()):
            text = " ".join(comment.replace("\n *", " ").split())
            if len(text) > 12 and not text.startswith("SPDX"):
                yield text, is_leaning(text) or has_long_sentence(text)


def read_titles(path):
    with open(path, encoding="utf-8") as file:
        for _, title in TITLE.findall(file.read()):
            yield title, is_leaning(title)


def judge(what, paths, read):
    """Print those that must be read twice; whether they are few."""
    found = [(path, text, bad) for path in sorted(paths)
             for text, bad in read(path)]
    bad = [(path, text) for path, text, bad in found if bad]
    for path, text in bad:
        print(f"{path}: {text[:100]}")
    print(f"{len(bad)} of {len(found)} {what} must be read twice")
    return found and len(bad) <= MOST_SHARE * len(found)


def main():
    os.chdir(sys.argv[1])
    sources = [path for folder in ("lib", "plugin", "bin")
               for ending in ("c", "h", "cu")
               for path in glob.glob(f"{folder}/**/*.{ending}", recursive=True)
               if not path.startswith(WAITING)]
    tests = glob.glob("tests/*/*.sh") + glob.glob("tests/*/run")
    good = [judge("comments", sources, read_comments),
            judge("titles", tests, read_titles)]
    sys.exit(0 if all(good) else 1)


main()
