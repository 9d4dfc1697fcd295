# SPDX-License-Identifier: Apache-2.0
"""Exchanges dictionaries between tensordict and Rill, in both directions, and
replay buffers with TorchRL; and compares what transforms make.

usage: exchange.py INSPECT CONVERT WRITE_SAMPLES WRITE_LIVE COPY_REPLAY RUN_TRANSFORMS WRITE_ROLLOUT

For every case and form: tensordict writes it and Rill's inspect must show
exactly what it held; then Rill's convert rewrites it in every form and
tensordict must find the same in it. Archives are inspected deflated, too. At last tensordict reads what Rill made
from nothing, and looks at a storage while Rill writes it. Without TorchRL no
replay buffers are exchanged and no transforms compared, and it says so. Prints what failed or was skipped, and
"PASSED FAILED SKIPPED" as its last line.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")

import tensordict  # noqa: E402
import torch  # noqa: E402
from tensordict import TensorDict  # noqa: E402

try:
    import torchrl  # noqa: E402
except ImportError:
    torchrl = None

import cases  # noqa: E402
import live  # noqa: E402
import samples  # noqa: E402
from describe import describe, difference, key_text  # noqa: E402

ENDINGS = {"directory": "", "tdz": ".tdz", "consolidated": ".bin"}


def write(td, path, form):
    if form == "consolidated":
        td.consolidate(filename=path)
    else:
        td.save(path)


def read(path, form):
    if form == "consolidated":
        return TensorDict.from_consolidated(path)
    return TensorDict.load_memmap(path)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stderr.splitlines()
    if done.returncode and (done.returncode != 1 or len(lines) != 1):
        raise AssertionError("status %d with %d lines of error, want 1 with 1: %.300s"
                             % (done.returncode, len(lines), done.stderr))
    return done.returncode, done.stdout, done.stderr.strip()


def check_equal(want, got):
    found = difference(want, got)
    if found:
        raise AssertionError(found)


class Exchange:
    def __init__(self, inspect, convert, folder):
        self.inspect = inspect
        self.convert = convert
        self.folder = folder
        self.passed = 0
        self.failed = []
        self.skipped = 0

    def skip(self, name, reason):
        self.skipped += 1
        print("skipped: %s: %s" % (name, reason), flush=True)

    def check(self, name, body):
        """Counts `body()`, which raises where something is wrong; whether it
        did not."""
        try:
            body()
        except Exception as e:  # whatever the packages raise
            self.failed.append("%s: %s: %.400s" % (name, type(e).__name__, e))
            print("failed: " + self.failed[-1], flush=True)
            return False
        self.passed += 1
        return True

    def path(self, name, form):
        return os.path.join(self.folder, name + ENDINGS[form])

    def run_case(self, case):
        td = case.make()
        for form in cases.FORMS:
            if form in case.not_written:
                continue
            name = "%s as %s" % (case.name, form)
            path = self.path(case.name, form)
            if not self.check(name + ", written", lambda: write(td, path, form)):
                continue
            refused = case.refused.get(form, ())
            want = None if form in case.unread else kept(form, describe_but(td, refused))
            self.check(name + ", inspected", lambda: self.inspected(path, want, refused))
            for to in cases.FORMS:
                self.check("%s, converted to %s" % (name, to),
                           lambda: self.converted(path, form, to, want, refused))
            if form == "tdz":
                self.check(name + ", inspected deflated",
                           lambda: self.inspected_deflated(td, case.name, want, refused))

    def inspected(self, path, want, refused=()):
        """`want` None: a refusal of the whole."""
        status, out, error = run(self.inspect, "--json", "--values", path)
        if want is None:
            check_refusal(status, error)
            return
        assert status == 0, error
        got = json.loads(out)
        # A jagged tensor has several entries, named after it.
        names = {key.split(">")[-1] for key in got.pop("refused", {})}
        check_equal(sorted(key_text(*key) for key in refused), sorted(names))
        check_equal(want, got)
        status, text, error = run(self.inspect, "--values", path)
        assert status == 0 and text, error

    def inspected_deflated(self, td, name, want, refused):
        path = self.path(name + "_deflated", "tdz")
        td.save(path, compression="deflate")
        self.inspected(path, want, refused)

    def converted(self, path, form, to, want, refused):
        out = os.path.join(self.folder, "from_" + form, "to_" + to, os.path.basename(self.path("x", to)))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        remove(out)
        status, _, error = run(self.convert, path, out, "--to=" + to)
        if want is None or refused or (to == "consolidated" and several_ragged(want)):
            check_refusal(status, error)
            assert not os.path.exists(out), "a refusal left something"
            return
        assert status == 0, error
        check_equal(kept(to, want), describe(read(out, to)))


def several_ragged(description):
    """Whether rows differ in several dimensions: no jagged tensor."""
    return any(sum(len(set(sizes)) > 1 for sizes in zip(*rows["shapes"])) > 1
               for rows in description.get("ragged", {}).values())


def check_refusal(status, error):
    assert status == 1 and error.startswith("INVALID_ARGUMENT"), "want a refusal, got " + error


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)


def kept(form, description):
    """What a form keeps of a description: all but the names of dimensions,
    for which only a consolidated file has a place."""
    return {member: value for member, value in description.items()
            if member != "dim_names" or form == "consolidated"}


def describe_but(td, refused):
    """describe(td) without the refused entries, some of which have no JSON."""
    return describe(td.exclude(*refused) if refused else td)


def zeros_like_the_file(exchange):
    """memmap_like: files of zeros."""
    td = cases.steps(3)
    path = exchange.path("memmap_like", "directory")
    td.memmap_like(path)
    exchange.inspected(path, describe(td.apply(torch.zeros_like)))


def packed_by_hand(exchange):
    """A directory that tensordict packs into an archive, and one of ours that
    it unpacks."""
    td = cases.steps(2, 3)
    path, archive = exchange.path("pack", "directory"), exchange.path("pack", "tdz")
    td.memmap(path)
    tensordict.pack_memmap(path, archive)
    exchange.inspected(archive, describe(td))
    ours, unpacked = exchange.path("ours", "tdz"), exchange.path("unpacked", "directory")
    status, _, error = run(exchange.convert, archive, ours)
    assert status == 0, error
    tensordict.unpack_memmap(ours, unpacked)
    check_equal(describe(td), describe(TensorDict.load_memmap(unpacked)))


def deflated_archive(exchange):
    """Converted to every form."""
    td = cases.steps(3)
    path = exchange.path("deflated", "tdz")
    td.save(path, compression="deflate")
    for to in cases.FORMS:
        exchange.converted(path, "tdz", to, describe(td), ())


def otherwise_compressed(compression):
    def body(exchange):
        path = exchange.path(compression, "tdz")
        cases.steps(3).save(path, compression=compression)
        status, _, error = run(exchange.inspect, path)
        check_refusal(status, error)
        assert compression in error, error
    return body


def truncated(form):
    def body(exchange):
        path = exchange.path("truncated", form)
        write(cases.steps(3), path, form)
        file = os.path.join(path, "observation.memmap") if form == "directory" else path
        os.truncate(file, os.path.getsize(file) - 5)
        status, _, error = run(exchange.inspect, path)
        assert status == 1 and error.startswith(("DATA_LOSS", "INVALID_ARGUMENT")), error
    return body


EXTRAS = {
    "memmap_like": zeros_like_the_file,
    "pack_memmap and unpack_memmap": packed_by_hand,
    "deflated archive": deflated_archive,
    "bzip2 archive is refused": otherwise_compressed("bzip2"),
    "lzma archive is refused": otherwise_compressed("lzma"),
    "truncated directory is refused": truncated("directory"),
    "truncated archive is refused": truncated("tdz"),
    "truncated consolidated file is refused": truncated("consolidated"),
}


def exchange_with_torchrl(exchange, copy_replay, run_transforms, write_rollout):
    if torchrl is None:
        print("torchrl is not installed here: no replay buffers were exchanged, no transforms compared", flush=True)
        return
    import beside
    import replay
    import transforms
    transforms.run(exchange, run_transforms, run)
    beside.run(exchange, write_rollout, run)
    replay.run(exchange, copy_replay, run)


def main(inspect, convert, write_samples, write_live, copy_replay, run_transforms, write_rollout):
    with tempfile.TemporaryDirectory() as folder:
        exchange = Exchange(inspect, convert, folder)
        for case in cases.CASES:
            exchange.run_case(case)
        for name, body in EXTRAS.items():
            exchange.check(name, lambda: body(exchange))
        samples.run(exchange, write_samples, read, run)
        live.run(exchange, write_live)
        exchange_with_torchrl(exchange, copy_replay, run_transforms, write_rollout)
    print(exchange.passed, len(exchange.failed), exchange.skipped)
    return 1 if exchange.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
