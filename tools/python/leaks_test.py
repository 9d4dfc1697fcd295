# SPDX-License-Identifier: Apache-2.0
import unittest

import leaks

OURS = """
Direct leak of 48 byte(s) in 1 object(s) allocated from:
    #0 0x7f01 in operator new(unsigned long) (libclang_rt.asan-x86_64.so+0xb)
    #1 0x7f02 in rill::python::Make() python/bindings/batch_out.cc:12:3 (/venv/rill/_rill.so)
    #2 0x4503 in _PyEval_EvalFrameDefault (/usr/bin/python3.11)
"""
OTHERS = """
Direct leak of 512 byte(s) in 1 object(s) allocated from:
    #0 0x7f01 in malloc (libclang_rt.asan-x86_64.so+0xb)
    #1 0x4502 in PyDict_New (/usr/bin/python3.11)
    #2 0x7f03 in rill::python::Make() (/venv/rill/_rill.so)
"""
RACE = "WARNING: ThreadSanitizer: data race (pid=1)\n    #0 f (/venv/rill/_rill.so)\n"


class LeaksTest(unittest.TestCase):

    def test_only_memory_that_the_module_took_counts(self):
        report = "==1==ERROR: LeakSanitizer: detected memory leaks\n" + OURS + OTHERS + "\nSUMMARY: x\n"
        self.assertEqual([text.strip() for text in leaks.findings(report, "_rill.so")], [OURS.strip()])
        self.assertEqual(leaks.findings(OTHERS, "_rill.so"), [])

    def test_errors_count_wherever_they_are(self):
        for report in (RACE, "==1==ERROR: AddressSanitizer: heap-use-after-free", "a.cc:1:2: runtime error: overflow"):
            self.assertEqual(leaks.findings(report, "_rill.so"), [report])


if __name__ == "__main__":
    unittest.main()
