#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of cases.py with Rill and its peers in turns on one core.

usage: compare.py [--quick] OUT NAME=COMMAND ...

A command is a program that answers as compare_main.cc does; NAME=- with a reason
behind a colon is one that is missing. OUT gets compare.md, compare.json and
compare.svg. The first name is what the others are compared with.
"""
import json
import os
import select
import shlex
import statistics
import subprocess
import sys
import time

from cases import GROUPS
from chart import chart
from report import report

PATIENCE = 300  # Seconds that a case may take to be prepared.


class Participant:
    """A program that is asked a line and answers one; begun anew where it has ended."""

    def __init__(self, name, command, core):
        self.name = name
        self.command = shlex.split(command)
        self.core = core
        self.process = None
        self.version = ""
        self.missing = None
        if command.startswith("-:"):
            self.missing = command[2:]

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            preexec_fn=lambda: os.sched_setaffinity(0, {self.core}))
        # Rill's program has no greeting: it needs nothing that could be missing.
        if self.command[-1].endswith("compare_main"):
            return
        kind, _, rest = self.read(PATIENCE).partition(" ")
        if kind == "ready":
            self.version = rest
        else:
            self.missing = rest
            self.stop()

    def read(self, seconds):
        line, end = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                return "missing it took longer than %d s" % seconds
            got = os.read(self.process.stdout.fileno(), 4096)
            if not got:
                self.stop()
                return "missing it ended"
            line += got
        return line.decode().strip()

    def ask(self, line):
        if self.missing is None and self.process is None:
            self.start()
        if self.missing is not None:
            return "missing " + self.missing
        self.process.stdin.write(line.encode() + b"\n")
        return self.read(PATIENCE)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def measure_case(case, participants, turns, seconds):
    """{name: [microseconds of each turn]}, or why there is none."""
    found = {}
    for one in participants:
        said = one.ask("prepare " + case.operation)
        found[one.name] = [] if said == "ready" else said.partition(" ")[2]
    for _ in range(turns):
        for one in participants:
            if not isinstance(found[one.name], list):
                continue
            kind, _, rest = one.ask("measure %g" % seconds).partition(" ")
            if kind == "us":
                found[one.name].append(float(rest))
            else:
                found[one.name] = rest
    return found


def probe():
    """What the core does alone: GB/s of a copy, million random reads of 64 B a second."""
    import numpy as np
    source = np.ones(1 << 25, np.float64)
    target = np.empty_like(source)
    records = np.ones((1 << 20, 8), np.float64)
    index = np.random.default_rng(0).integers(0, len(records), 1 << 18)
    taken = np.empty((len(index), 8))
    copies, reads = [], []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        middle = time.perf_counter()
        np.take(records, index, axis=0, out=taken)
        copies.append(source.nbytes / (middle - begin) / 1e9)
        reads.append(len(index) / (time.perf_counter() - middle) / 1e6)
    return {"copy GB/s": statistics.median(copies), "random reads M/s": statistics.median(reads)}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        models = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    return "%s, %d cores, Linux %s" % (models[0] if models else os.uname().machine, len(models) or os.cpu_count(),
                                       os.uname().release.split("-")[0])


def main(arguments):
    quick = "--quick" in arguments
    out, *named = [argument for argument in arguments if argument != "--quick"]
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    participants = [Participant(*argument.split("=", 1), core) for argument in named]
    turns, seconds = (3, 0.05) if quick else (7, 0.3)
    results = {"machine": machine(), "turns": turns, "seconds": seconds, "probes": [probe()], "groups": []}
    try:
        for title, cases in GROUPS:
            rows = []
            for case in cases:
                if quick and not case.quick:
                    continue
                print("%s: %s" % (title, case.title), file=sys.stderr, flush=True)
                rows.append({"title": case.title, "operation": case.operation, "frames": case.frames,
                             "us": measure_case(case, participants, turns, seconds)})
            results["groups"].append({"title": title, "cases": rows})
            results["probes"].append(probe())
    finally:
        for one in participants:
            one.stop()
    results["participants"] = [{"name": one.name, "version": one.version, "missing": one.missing}
                               for one in participants]
    os.makedirs(out, exist_ok=True)
    for name, text in (("compare.json", json.dumps(results, indent=1) + "\n"), ("compare.md", report(results)),
                       ("compare.svg", chart(results))):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(text)
    print(report(results))


if __name__ == "__main__":
    main(sys.argv[1:])
