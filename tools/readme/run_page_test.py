# SPDX-License-Identifier: Apache-2.0
"""What run_page.py runs of a page, and how it counts."""
import os
import subprocess
import sys
import tempfile
import unittest

import run_page

PAGE = """\
It reads `.bazelrc`:

```sh
build --no
```

## 1. First

```sh
echo one > one
```

## 2. Second

```cpp
int main() {}
```

```sh
cat one
%s
```

```sh
touch three
```
"""


class RunPageTest(unittest.TestCase):
    def run_page(self, second):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.md")
            with open(page, "w", encoding="utf-8") as f:
                f.write(PAGE % second)
            printed = subprocess.run(
                [sys.executable, run_page.__file__, page, folder], check=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode()
            return printed.splitlines(), sorted(os.listdir(folder))

    def test_blocks_of_commands_are_those_of_no_file(self):
        self.assertEqual(run_page.blocks_of(PAGE % "true"), [
            ("1. First", "echo one > one\n"), ("2. Second", "cat one\ntrue\n"),
            ("2. Second", "touch three\n")])

    def test_all_are_run_in_order(self):
        printed, files = self.run_page("true")
        self.assertEqual(printed[-1], "3 0")
        self.assertEqual(files, ["one", "page.md", "three"])

    def test_none_is_run_behind_one_that_fails(self):
        printed, files = self.run_page("false; true")
        self.assertEqual(printed[-1], "1 2")
        self.assertIn("2. Second: FAILED", "\n".join(printed))
        self.assertEqual(files, ["one", "page.md"])

    def test_a_program_that_a_block_leaves_running_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(os.path.join(folder, "held"))
            held = os.open(os.path.join(folder, "held"), os.O_RDONLY | os.O_NONBLOCK)
            self.assertTrue(run_page.run("exec 3>held\nsleep 1000 &\nexec 3>&-\n", folder))
        os.set_blocking(held, True)
        # At its end, and only then, nobody has the other side.
        self.assertEqual(os.read(held, 1), b"")
        os.close(held)
