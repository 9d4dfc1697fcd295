# SPDX-License-Identifier: Apache-2.0
"""What make_project.py takes from a document, and that the projects of docs/ have
the versions of tools/lib.sh and MODULE.bazel, and the flags of .bazelrc."""
import re
import unittest

import make_project

DOCUMENT = """\
`BUILD`:

```starlark
cc_binary(name = "x")
```

Some word, `and`, before it. Bazel reads `MODULE.bazel`:

```starlark
module(name = "x")

bazel_dep(name = "y")
```

```sh
shell
```
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class MakeProjectTest(unittest.TestCase):
    def test_each_block_is_the_file_named_above_it(self):
        self.assertEqual(make_project.files_of(DOCUMENT), {
            "BUILD": 'cc_binary(name = "x")\n',
            "MODULE.bazel": 'module(name = "x")\n\nbazel_dep(name = "y")\n'})

    def test_two_blocks_for_a_file_are_refused(self):
        with self.assertRaises(SystemExit):
            make_project.files_of(DOCUMENT + "\n" + DOCUMENT)

    def test_page_shows_all_files_of_a_project(self):
        self.assertEqual(list(make_project.files_of(read("docs/build.md"))),
                         ["first_buffer.cc", "BUILD", "MODULE.bazel", "WORKSPACE", ".bazelrc"])

    def test_overrides_are_those_of_the_consumer(self):
        overrides = make_project.overrides_of('module(name = "x")\n\narchive_override(\n    a = 1,\n)\nx()\n')
        self.assertEqual(overrides, ["archive_override(\n    a = 1,\n)\n"])


class VersionsTest(unittest.TestCase):
    def test_bazel_versions_are_those_that_the_commands_take(self):
        taken = re.search(r'want ([\d.]+) or (\d+);', read("tools/lib.sh")).groups()
        for document in ("docs/build.md", "tools/README.md"):
            named = re.findall(r"Bazel (?:than )?(\d[\d.]*\d|\d)(?: and (\d))?", read(document))
            self.assertEqual({v for pair in named for v in pair if v}, set(taken), document)

    def test_abseil_is_the_one_of_the_module(self):
        pattern = r'bazel_dep\(name = "abseil-cpp", .*\)'
        self.assertEqual(re.findall(pattern, read("docs/build.md")),
                         re.findall(pattern, read("MODULE.bazel")))


class OptimisedBuildTest(unittest.TestCase):
    def test_outside_it_has_the_options_of_the_commands(self):
        lines = re.findall(r"^build:opt (.*)$", read(".bazelrc"), re.M)
        for document in ("docs/build.md", "docs/first_hour.md"):
            outside = re.findall(r"^build:opt (.*)$", make_project.files_of(read(document))[".bazelrc"], re.M)
            self.assertEqual(outside, [" ".join(lines)], document)
