# SPDX-License-Identifier: Apache-2.0
"""What join_tests.py makes of tests that have helpers of one name."""
import os
import subprocess
import sys
import tempfile
import unittest

_SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "join_tests.py")
_TEST = """#include <cstdio>
namespace rill {
namespace {
int Helper() { return %d; }
const bool done = std::printf("%%s:%%d %%d\\n", __FILE__, __LINE__, Helper()) > 0;
}  // namespace
}  // namespace rill
"""


class JoinTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_here(self, *command):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def joined(self, *texts):
        names = ["%s_test.cc" % "abc"[i] for i in range(len(texts))]
        for name, text in zip(names, texts):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        return self.run_here(sys.executable, _SCRIPT, *names)

    def test_helpers_of_one_name_stay_apart_and_lines_are_the_tests_own(self):
        joined = self.joined(_TEST % 1, _TEST % 2)
        self.assertEqual(joined.stderr, "")
        with open(os.path.join(self.folder, "joined.cc"), "w", encoding="utf-8") as f:
            f.write(joined.stdout + "int main() {}\n")
        built = self.run_here("g++", "-std=c++20", "-Wno-unused-variable", "joined.cc", "-o", "joined")
        self.assertEqual(built.stderr, "")
        self.assertEqual(self.run_here("./joined").stdout, "a_test.cc:5 1\nb_test.cc:5 2\n")

    def test_another_shape_is_refused(self):
        for text in "", _TEST % 1 + _TEST % 2, (_TEST % 1).replace("}  // namespace rill", "}"):
            refused = self.joined(_TEST % 1, text)
            self.assertNotEqual(refused.returncode, 0)
            self.assertRegex(refused.stderr, "b_test.cc: .*not one of each.*alone = True")


if __name__ == "__main__":
    unittest.main()
