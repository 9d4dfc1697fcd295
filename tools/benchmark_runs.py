# SPDX-License-Identifier: Apache-2.0
"""Runs of Google Benchmark programs, for compare_speed.py and performance.py."""
import json
import subprocess

NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def runs_of(output):
    """{benchmark: its figures} of Google Benchmark's JSON; `ns` is its time."""
    # A filter that matches nothing prints no JSON.
    if not output.lstrip().startswith("{"):
        return {}
    runs = {}
    for run in json.loads(output)["benchmarks"]:
        if run.get("error_occurred"):
            raise SystemExit("%s failed: %s" % (run["name"], run.get("error_message")))
        runs[run["name"]] = dict(run, ns=run["real_time"] * NANOSECONDS[run["time_unit"]])
    return runs


def run_program(path, pattern, seconds):
    """runs_of the benchmarks whose whole names match; each takes `seconds`."""
    done = subprocess.run(
        (path, "--benchmark_filter=^(%s)$" % pattern, "--benchmark_min_time=" + seconds,
         "--benchmark_format=json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("%s ended with %d: %s" % (path, done.returncode, done.stderr[-500:]))
    return runs_of(done.stdout)


def in_words(ns):
    """1250 is "1.25 us"."""
    for unit in ("s", "ms", "us"):
        if ns >= NANOSECONDS[unit]:
            return "%.3g %s" % (ns / NANOSECONDS[unit], unit)
    return "%.3g ns" % ns
