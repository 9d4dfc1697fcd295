# SPDX-License-Identifier: Apache-2.0
"""What run_fuzz.py makes of fuzzers, with scripts in their place."""
import contextlib
import io
import os
import re
import stat
import tempfile
import unittest

import run_fuzz

# Speaks like libFuzzer; %s is what it does besides.
FAKE = """#!/bin/sh
for last; do :; done
runs=$(echo "$*" | sed -n 's/.*-runs=\\([0-9]*\\).*/\\1/p')
prefix=$(echo "$*" | sed -n 's/.*-artifact_prefix=\\([^ ]*\\).*/\\1/p')
case "$*" in *-merge=1*) %(merge)s; exit 0 ;; esac
echo "$*" >> %(calls)s
echo "#2	INITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 30Mb"
echo "#64	NEW    cov: 9 ft: 12 corp: 2/3b lim: 4 exec/s: 0 rss: 30Mb L: 2/2 MS: 1 CopyPart-"
%(act)s
echo "stat::number_of_executed_units: ${runs:-1000}"
"""


class RunFuzzTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.seeds = self.path("seeds")
        os.makedirs(self.seeds)
        self.write("seeds/hand_made", "a")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def run_fake(self, *flags, act=":", merge=":"):
        """(exit status, output) of a campaign with a fuzzer that does `act`."""
        self.write("fake", FAKE % {"act": act, "merge": merge, "calls": self.path("calls")})
        os.chmod(self.path("fake"), stat.S_IRWXU)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = run_fuzz.main(["--state", self.path("state"), "--counts",
                                    self.path("counts"), *flags,
                                    "//p:a_fuzz=%s=%s" % (self.path("fake"), self.seeds)])
        return status, out.getvalue()

    def counts(self):
        with open(self.path("counts"), encoding="utf-8") as f:
            return f.read()

    def calls(self):
        with open(self.path("calls"), encoding="utf-8") as f:
            return f.read().splitlines()

    def test_runs_until_the_number_of_executions(self):
        status, out = self.run_fake("--runs=5000")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"//p:a_fuzz +5000 +\d+ +9 +12 +0 +\+0 +no\n$")
        self.assertEqual(self.counts(), "1 0\n")
        self.assertIn("-runs=5000", self.calls()[0])
        self.assertTrue(self.calls()[0].endswith(self.path("state/p_a_fuzz/corpus ") + self.seeds))

    def test_words_are_given_where_there_are_some(self):
        self.run_fake("--runs=10")
        self.assertNotIn("-dict", self.calls()[-1])
        self.write("seeds.dict", '"word"')
        self.run_fake("--runs=10")
        self.assertIn("-dict=" + self.path("seeds.dict"), self.calls()[-1])

    def test_a_finding_fails_and_is_named(self):
        status, out = self.run_fake("--runs=5000", act=(
            'echo "SUMMARY: AddressSanitizer: heap-buffer-overflow x.cc:1 in f"; '
            'echo "artifact_prefix=\'x\'; Test unit written to ${prefix}crash-1"; exit 77'))
        self.assertEqual(status, 1)
        self.assertRegex(out, r"failed: //p:a_fuzz: SUMMARY: .*overflow.*findings/crash-1")
        self.assertEqual(self.counts(), "0 1\n")
        self.assertEqual(len(self.calls()), 1)

    def test_an_end_without_a_reason_is_a_failure(self):
        status, out = self.run_fake("--runs=10", act="exit 3")
        self.assertEqual(status, 1)
        self.assertIn("ended with status 3", out)

    def test_a_fuzzer_that_does_nothing_is_a_failure(self):
        self.assertEqual(run_fuzz.read_output("")[0], 0)
        status, out = self.run_fake("--seconds=2", act='echo "stat::number_of_executed_units: 0"; exit 0')
        self.assertEqual((status, "it ran no input" in out), (1, True))

    def test_resume_goes_on_where_a_run_stopped(self):
        self.run_fake("--runs=700")
        self.run_fake("--runs=1000", "--resume")
        self.assertIn("-runs=300", self.calls()[-1])
        before = len(self.calls())
        status, out = self.run_fake("--runs=1000", "--resume")
        self.assertEqual((status, len(self.calls())), (0, before))
        self.run_fake("--runs=1000")
        self.assertIn("-runs=1000", self.calls()[-1])

    def test_seconds_are_of_cpu_time(self):
        log = self.path("log")
        # Two processes at once take twice the time of the clock.
        work = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
        _, one, _ = run_fuzz.call(["sh", "-c", work], log)
        _, two, _ = run_fuzz.call(["sh", "-c", "(%s) & %s; wait" % (work, work)], log)
        _, waiting, _ = run_fuzz.call(["sh", "-c", "exec sleep 0.2"], log)
        self.assertGreater(two, one * 1.2)
        self.assertLess(waiting, one)

    def test_merge_keeps_small_files_within_the_limits(self):
        many = ('i=100; while [ $i -lt 400 ]; do printf "%%0*d" $((i / 2)) 0 > "$folder/new$i"; '
                "i=$((i + 1)); done; head -c 9999 /dev/zero > $folder/new0")
        merge = "shift 4; folder=$1; " + many.replace("%%", "%")
        status, out = self.run_fake("--runs=10", merge=merge)
        names = os.listdir(self.seeds)
        sizes = [os.path.getsize(os.path.join(self.seeds, n)) for n in names]
        self.assertEqual(status, 0)
        self.assertIn("hand_made", names)
        self.assertEqual(len(names), run_fuzz.MAX_FILES)
        self.assertLessEqual(sum(sizes), run_fuzz.MAX_BYTES)
        self.assertEqual(max(sizes), (100 + run_fuzz.MAX_FILES - 2) // 2)
        self.assertTrue(re.search(r"\+%d" % (run_fuzz.MAX_FILES - 1), out))

    def test_no_merge_leaves_the_tree_alone(self):
        self.run_fake("--runs=10", "--no-merge", merge="touch %s" % self.path("merged"))
        self.assertFalse(os.path.exists(self.path("merged")))
