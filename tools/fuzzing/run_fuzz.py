#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzzers that are built; tools/fuzz calls this.

usage: run_fuzz.py --state DIR [--seconds N] [--runs N] [--jobs N] [--resume]
                   [--no-merge] [--counts FILE] NAME=BINARY=FOLDER ...

NAME is //package:stem_fuzz, FOLDER where its corpus lies in the source tree;
FOLDER.dict, if it is there, has words to try. DIR keeps, for each target, the
grown corpus, the findings, a log and how far the campaign got: a run that was
killed goes on with --resume. A target ends at its first finding. Then what the
grown corpus reaches and FOLDER does not is added to FOLDER, smallest files
first, within MAX_FILES and MAX_BYTES.

Prints a table, and writes "PASSED FAILED" to the --counts file. Exit status 1
if anything failed.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

SLICE_SECONDS = 60      # What a kill may lose.
INPUT_SECONDS = 10      # An input that takes longer is a finding.
MEMORY_MB = 2048        # So is one that takes more.
MAX_FILES, MAX_BYTES, MAX_FILE_BYTES = 80, 50_000, 4096

_print_lock = threading.Lock()
_stopped = threading.Event()
_children = set()


def say(*words):
    with _print_lock:
        print("fuzz:", *words, flush=True)


class Target:
    """One fuzzer and what is known of it."""

    def __init__(self, spec, state):
        self.label, self.binary, self.folder = spec.split("=")
        self.name = self.label.split(":")[-1]
        self.state = os.path.join(state, self.label[2:].replace("/", "_").replace(":", "_"))
        self.corpus = os.path.join(self.state, "corpus")
        self.findings = os.path.join(self.state, "findings")
        self.progress_path = os.path.join(self.state, "progress.json")
        self.executions, self.seconds, self.coverage, self.features = 0, 0.0, 0, 0
        self.problem, self.added = "", 0

    def start(self, resume):
        os.makedirs(self.corpus, exist_ok=True)
        os.makedirs(self.findings, exist_ok=True)
        if resume and os.path.exists(self.progress_path):
            with open(self.progress_path, encoding="utf-8") as f:
                self.__dict__.update(json.load(f))
        else:
            self.save()

    def save(self):
        keep = {k: getattr(self, k) for k in
                ("executions", "seconds", "coverage", "features", "problem")}
        with open(self.progress_path + ".new", "w", encoding="utf-8") as f:
            json.dump(keep, f)
        os.replace(self.progress_path + ".new", self.progress_path)

    def inputs(self):
        return len(os.listdir(self.corpus))


def call(command, log):
    """Runs it with its output in `log`; (exit status, CPU seconds, output)."""
    with open(log, "wb") as out:
        # Its own group: a Ctrl-C at the terminal ends the slice through us.
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, start_new_session=True)
        _children.add(child)
        try:
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            _children.discard(child)
    with open(log, encoding="utf-8", errors="replace") as f:
        return child.returncode, used.ru_utime + used.ru_stime, f.read()


def read_output(output):
    """(executions, coverage, features, path of a finding or None) of a fuzzer's words."""
    steps = re.findall(r"^#(\d+)\s.*?cov: (\d+)(?: ft: (\d+))?", output, re.M)
    total = re.search(r"^stat::number_of_executed_units:\s*(\d+)", output, re.M)
    found = re.search(r"Test unit written to (\S+)", output)
    executions = int(total.group(1)) if total else max([int(s[0]) for s in steps], default=0)
    return (executions, max([int(s[1]) for s in steps], default=0),
            max([int(s[2] or 0) for s in steps], default=0), found.group(1) if found else None)


def run_slice(target, seconds, runs):
    """Fuzzes for about that long; notes progress and problems."""
    command = [target.binary, "-max_total_time=%d" % max(1, round(seconds)),
               "-timeout=%d" % INPUT_SECONDS, "-rss_limit_mb=%d" % MEMORY_MB,
               "-print_final_stats=1", "-artifact_prefix=%s/" % target.findings]
    if runs:
        command.append("-runs=%d" % runs)
    if os.path.exists(target.folder + ".dict"):
        command.append("-dict=%s.dict" % target.folder)
    command += [target.corpus, target.folder]
    log = os.path.join(target.state, "log")
    status, used, output = call(command, log)
    executions, coverage, features, found = read_output(output)
    target.executions += executions
    target.seconds += used
    target.coverage = max(target.coverage, coverage)
    target.features = max(target.features, features)
    if _stopped.is_set():
        return
    if status != 0:
        words = re.search(r"(broken promise: .*|SUMMARY: .*|ERROR: .*)", output)
        target.problem = "%s; input %s; log %s" % (
            words.group(1) if words else "ended with status %d" % status, found or "none", log)
    elif executions == 0:
        target.problem = "it ran no input; log %s" % log
    target.save()


def run_target(target, options):
    """One target to the end of its campaign."""
    target.start(options.resume)
    while not target.problem and not _stopped.is_set():
        left = options.seconds - target.seconds if options.seconds else SLICE_SECONDS
        runs = options.runs - target.executions if options.runs else 0
        if left < 0.5 or (options.runs and runs <= 0):
            break
        run_slice(target, min(left, SLICE_SECONDS), runs)
        goal = "%d executions" % options.runs if options.runs else "%d s" % options.seconds
        say("%s: %d executions in %d s of %s, coverage %d, %d inputs%s" % (
            target.name, target.executions, target.seconds, goal, target.coverage,
            target.inputs(), ", FINDING" if target.problem else ""))
    if options.merge and not _stopped.is_set():
        merge(target)
    return target


def merge(target):
    """Adds to the source tree's corpus what it does not reach itself."""
    os.makedirs(target.folder, exist_ok=True)
    there = os.listdir(target.folder)
    room = MAX_FILES - len(there)
    room_bytes = MAX_BYTES - sum(
        os.path.getsize(os.path.join(target.folder, name)) for name in there)
    with tempfile.TemporaryDirectory() as folder:
        merged = os.path.join(folder, "merged")
        shutil.copytree(target.folder, merged)
        call([target.binary, "-merge=1", "-rss_limit_mb=%d" % MEMORY_MB,
              "-timeout=%d" % INPUT_SECONDS, "-artifact_prefix=%s/" % folder, merged,
              target.corpus], os.path.join(target.state, "merge_log"))
        new = sorted((os.path.getsize(os.path.join(merged, name)), name)
                     for name in os.listdir(merged) if name not in there)
        for size, name in new:
            if room <= 0 or size > min(room_bytes, MAX_FILE_BYTES):
                break
            shutil.copyfile(os.path.join(merged, name), os.path.join(target.folder, name))
            room, room_bytes, target.added = room - 1, room_bytes - size, target.added + 1


def print_table(targets):
    rows = [("target", "executions", "per second", "coverage", "features", "inputs", "kept",
             "finding")]
    rows += [(t.label, str(t.executions), "%d" % (t.executions / max(t.seconds, 1e-9)),
              str(t.coverage), str(t.features), str(t.inputs()), "+%d" % t.added,
              "YES" if t.problem else "no") for t in targets]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] +
                        [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]))
    for target in targets:
        if target.problem:
            print("failed: %s: %s" % (target.label, target.problem))


def stop(*_):
    _stopped.set()
    for child in list(_children):
        child.terminate()


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", required=True)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--no-merge", dest="merge", action="store_false")
    parser.add_argument("--counts")
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args(argv)
    if not options.seconds and not options.runs:
        options.seconds = 60
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    targets = [Target(spec, options.state) for spec in options.targets]
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        list(pool.map(lambda target: run_target(target, options), targets))
    print_table(targets)
    failed = sum(bool(t.problem) for t in targets)
    if _stopped.is_set():
        say("stopped; the same command with --resume goes on")
        failed = max(failed, 1)
    if options.counts:
        with open(options.counts, "w", encoding="utf-8") as f:
            f.write("%d %d\n" % (sum(not t.problem for t in targets), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
