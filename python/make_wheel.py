#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel of the package rill.

usage: make_wheel.py --tag=cp311-cp311 --extension=FILE [--library=FILE] [--notice=FILE] --license=FILE --out=FOLDER FILE...

FILEs are those of the package, by their paths below a folder rill/. Prints the
wheel's path. Libraries lie beside the extension, and notices are their
licenses. The platform is the manylinux level that the symbols of both ask for
(PEP 600). The same files make the same bytes.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

NAME = "rill"
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: The data side of reinforcement learning: replay buffers, samplers and storages in C++
License: Apache-2.0
Requires-Python: {requires}
Requires-Dist: numpy>=1.24
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: rill\nRoot-Is-Purelib: false\nTag: {tag}\n"
# All that the extension may want of the system, by PEP 600.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                    "ld-linux-x86-64.so.2"}


def platform_of(extension, libraries):
    """The manylinux tag of what they ask of glibc; refuses all other libraries."""
    text = subprocess.run(["objdump", "-p", extension, *libraries], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"^\s*NEEDED\s+(\S+)$", text, re.M))
    others = needed - SYSTEM_LIBRARIES - {os.path.basename(path) for path in libraries}
    if others:
        raise SystemExit("make_wheel: %s needs %s, want none but those of PEP 600" %
                         (extension, ", ".join(sorted(others))))
    versions = [tuple(int(n) for n in found.split(".")) for found in re.findall(r"\bGLIBC_([\d.]+)", text)]
    # Nothing older than 2.17 has a tag.
    return "manylinux_%d_%d_x86_64" % max([(2, 17)] + [v[:2] for v in versions])


def version_of(files):
    for path in files:
        if path.endswith("rill/__init__.py"):
            with open(path, encoding="utf-8") as source:
                return re.search(r'^__version__ = "([^"]+)"', source.read(), re.M)[1]
    raise SystemExit("make_wheel: no rill/__init__.py among the files")


def name_in_wheel(path):
    return NAME + "/" + path.rsplit("/rill/", 1)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--extension", required=True)
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--notice", action="append", default=[])
    parser.add_argument("--license", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    version = version_of(args.files)
    is_stable = args.tag.endswith("-abi3")
    tag = "%s-%s" % (args.tag, platform_of(args.extension, args.library))
    info = "%s-%s.dist-info" % (NAME, version)
    minor = re.match(r"cp3(\d+)", args.tag)[1]

    members = {name_in_wheel(path): path for path in args.files}
    members[NAME + ("/_rill.abi3.so" if is_stable else "/_rill.so")] = args.extension
    members.update({NAME + "/" + os.path.basename(path): path for path in args.library})
    members.update({info + "/licenses/" + os.path.basename(path): path for path in args.notice})
    members[info + "/LICENSE"] = args.license
    contents = {}
    for name, path in sorted(members.items()):
        with open(path, "rb") as file:
            contents[name] = file.read()
    contents[info + "/METADATA"] = METADATA.format(
        name=NAME, version=version,
        requires=">=3.12" if is_stable else "==3.%s.*" % minor).encode()
    contents[info + "/WHEEL"] = WHEEL.format(tag=tag).encode()
    record = ""
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (name, digest, len(data))
    contents[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()

    os.makedirs(args.out, exist_ok=True)
    wheel = os.path.join(args.out, "%s-%s-%s.whl" % (NAME, version, tag))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.external_attr = (0o755 if ".so" in name else 0o644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)
    print(wheel)


if __name__ == "__main__":
    sys.exit(main())
