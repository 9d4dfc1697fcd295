# SPDX-License-Identifier: Apache-2.0
"""Tests doc_examples.py on files and trees made here."""
import os
import tempfile
import unittest

import doc_examples

HEADER = """\
// Counts.
//
// Example (CounterTest.Example runs it):
//   Counter counter;
//
//   if (counter.value() > 0) {
//     counter.Reset();
//   }
// More text, and
//   a table of words.
class Counter {
 public:
  // Says
  //   RILL_RETURN_IF_ERROR(counter.Load());
  // where it fails.
  absl::Status Load();
};
"""

PAGE = """\
# Counter
```cpp
counter.Reset();
```
```sh
ls
```
```
counter/   a folder; with files
```
"""

BUILD = """\
rill_doc_examples(
    name = "doc_examples",
    srcs = [
        "counter/README.md",
        "counter/impl/counter.h",
    ],
    deps = [],
)
"""


def find(path, text):
    findings = []
    return [(e.line, e.code) for e in doc_examples.examples(path, text, findings)], findings


class Finding(unittest.TestCase):

    def test_a_header_has_marked_ones_and_those_with_macros(self):
        found, findings = find("counter.h", HEADER)
        self.assertEqual(found, [
            (4, ["Counter counter;", "", "if (counter.value() > 0) {", "  counter.Reset();", "}"]),
            (14, ["RILL_RETURN_IF_ERROR(counter.Load());"]),
        ])
        self.assertEqual(findings, [])

    def test_a_marked_one_without_code_is_named(self):
        found, findings = find("counter.h", "// Example: counter.Reset().\n")
        self.assertEqual(found, [])
        self.assertEqual([(f.line, "without code" in f.message) for f in findings], [(1, True)])

    def test_a_page_has_what_is_fenced_as_cpp(self):
        for tag in ("cpp", "c++", "cc"):
            found, findings = find("README.md", PAGE.replace("```cpp", "```" + tag))
            self.assertEqual(found, [(3, ["counter.Reset();"])])
            self.assertEqual(findings, [])

    def test_blocks_that_hide_what_they_are_are_named(self):
        for tag, text in (("", "counter.Reset();"), ("", "#include <x>"),
                          ("cplusplus", "counter.Reset()")):
            found, findings = find("a.md", "```%s\n%s\n```\n" % (tag, text))
            self.assertEqual(found, [])
            self.assertEqual([f.line for f in findings], [1])


class Writing(unittest.TestCase):

    def write(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                findings = doc_examples.write_source([path + "=" + path], "context.h", "out.cc")
                with open("out.cc", encoding="utf-8") as f:
                    return f.read(), findings
            finally:
                os.chdir(here)

    def test_statements_stand_in_functions_with_their_place(self):
        source, findings = self.write("counter.h", "namespace rill::inner {\n" + HEADER)
        self.assertEqual(findings, [])
        self.assertIn('#include "context.h"\n#include "rill/counter.h"\n', source)
        self.assertIn("using namespace rill::inner;", source)
        self.assertIn('absl::Status Example5() {\n#line 5 "counter.h"\nCounter counter;\n', source)

    def test_tests_declarations_programs_and_includes_stand_where_they_compile(self):
        source, _ = self.write("a.md", "```cpp\nEXPECT_EQ(1, 1);\n```\n"
                               "```cpp\nINSTANTIATE_MINE(A);\n```\n"
                               "```cpp\n#include <new>\nint main() {}\n```\n")
        self.assertIn('void Example2() {\n#line 2 "a.md"\nEXPECT_EQ(1, 1);\n}', source)
        self.assertIn('#line 5 "a.md"\nINSTANTIATE_MINE(A);\n}', source)
        self.assertLess(source.index("#include <new>"), source.index("int main() {}"))
        self.assertLess(source.index("int main() {}"), source.index("namespace rill"))

    def test_a_file_without_examples_is_named(self):
        _, findings = self.write("a.md", "Words.\n")
        self.assertEqual(len(findings), 1)


class Checking(unittest.TestCase):

    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return [(f.path, f.line) for f in doc_examples.check(root)]

    def test_what_a_target_compiles_is_fine_and_what_none_does_is_named(self):
        tree = {"counter/README.md": PAGE, "counter/impl/counter.h": HEADER,
                "counter/doc_examples/BUILD": BUILD}
        self.assertEqual(self.check(tree), [])
        self.assertEqual(self.check({**tree, "counter/other.h": HEADER, "docs/a.md": PAGE}),
                         [("counter/other.h", 4), ("counter/other.h", 14), ("docs/a.md", 3)])

    def test_another_target_may_compile_a_block(self):
        page = PAGE.replace("```cpp", "<!-- compiled by //docs:walk -->\n```cpp")
        tree = {"docs/a.md": page, "docs/BUILD": 'sh_test(\n    name = "walk",\n)\n'}
        self.assertEqual(self.check(tree), [])
        tree["docs/BUILD"] = tree["docs/BUILD"].replace("walk", "talk")
        self.assertEqual(self.check(tree), [("docs/a.md", 2)])

    def test_long_lines_of_headers_are_named(self):
        tree = {"counter/README.md": PAGE, "counter/doc_examples/BUILD": BUILD}
        for width, want in ((75, []), (76, [("counter/impl/counter.h", 2)])):
            header = "// Example:\n//   " + "a" * (width - 1) + ";\n"
            self.assertEqual(self.check({**tree, "counter/impl/counter.h": header}), want)


if __name__ == "__main__":
    unittest.main()
