#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that a page shows, block by block, in a folder.

usage: run_page.py PAGE FOLDER

A block of commands is one of shell without a file's name above it
(make_project.py makes those files). Each is run by bash, which stops at the
first command that fails; what it has left running is ended. Prints what each
took, and as its last line how many blocks passed and failed: behind the first
that fails none is run, and they count as failed.
"""
import os
import re
import signal
import subprocess
import sys
import time

import make_project


def blocks_of(text):
    """[(heading, commands)], in the order of the page."""
    text = make_project.BLOCK.sub("", text)
    found = []
    heading = ""
    for match in re.finditer(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", text, re.M | re.S):
        if match.group(1) is not None:
            heading = match.group(1)
        else:
            found.append((heading, match.group(2)))
    return found


def run(commands, folder):
    """Whether all of them succeeded."""
    shell = subprocess.Popen(["bash", "-euo", "pipefail", "-c", commands], cwd=folder,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return shell.wait() == 0
    finally:
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main(page, folder):
    with open(page, encoding="utf-8") as f:
        blocks = blocks_of(f.read())
    passed = 0
    for heading, commands in blocks:
        start = time.monotonic()
        is_right = run(commands, folder)
        seconds = time.monotonic() - start
        print("%s: %s after %.1f s" % (heading, "done" if is_right else "FAILED", seconds),
              flush=True)
        if not is_right:
            sys.stderr.write(commands)
            break
        passed += 1
    print(passed, len(blocks) - passed)


if __name__ == "__main__":
    main(*sys.argv[1:])
