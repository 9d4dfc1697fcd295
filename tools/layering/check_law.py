#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether all that a target depends on lies in the packages it may reach.

usage: check_law.py TARGET DEPS_FILE [PACKAGE ...]

DEPS_FILE holds one label a line, as genquery writes it. CUDA (//device/cuda and
the toolkit's repository) is out of reach for every target with a law, although
device is a package that many may reach. LibTorch is libtorch's alone, and ONNX
Runtime onnx's.
"""
import re
import sys

# Build settings and macros: no code that could be linked.
ALWAYS = ["tools"]
MAX_LINES = 5
# Their only user among the packages.
LIBRARIES = {"Arrow": (re.compile(r"^@.*local_flight"), "distributed"),
             "MPI": (re.compile(r"^@.*local_mpi"), "distributed"),
             "LibTorch": (re.compile(r"^@.*local_torch"), "libtorch"),
             "ONNX Runtime": (re.compile(r"^@.*local_onnx"), "onnx")}
CUDA_REPOSITORY = re.compile(r"^@.*local_cuda")


def verdict(label, allowed):
    """Why `label` is out of reach, or None."""
    if CUDA_REPOSITORY.match(label):
        return "CUDA"
    for library, (repository, package) in LIBRARIES.items():
        if repository.match(label) and package not in allowed:
            return library
    own = re.match(r"^(?:@@?(?:rill)?)?//([^:]*)", label)
    if not own:
        return None  # third-party
    path = own.group(1)
    if path == "device/cuda" or path.startswith("device/cuda/"):
        return "CUDA"
    package = path.split("/", 1)[0]
    return None if package in allowed + ALWAYS else package


def main(target, deps_file, *allowed):
    with open(deps_file, encoding="utf-8") as f:
        labels = f.read().splitlines()
    if target not in [re.sub(r"^@@?(?:rill)?//", "//", label) for label in labels]:
        raise SystemExit("the list of dependencies of %s does not hold itself" % target)
    broken = [(label, verdict(label, list(allowed))) for label in labels]
    broken = [(label, what) for label, what in broken if what]
    for label, what in broken[:MAX_LINES]:
        print("%s reaches %s: %s is not among %s" % (target, label, what, " ".join(allowed)))
        print("  the way: bazel query 'somepath(%s, %s)'" % (target, label))
    if len(broken) > MAX_LINES:
        print("and %d more" % (len(broken) - MAX_LINES))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
