# SPDX-License-Identifier: Apache-2.0
"""Each rule of pages.py finds what it is for, and lets good pages pass."""
import ast
import unittest

import pages

PUBLIC = ', visibility = ["//visibility:public"]'
BUILDS = {
    "base/BUILD": 'rill_cc_library(name = "base", deps = [":rng", ":inner", "//base/z:y"]%s)\n' % PUBLIC +
                  'rill_cc_component(name = "rng", hdrs = ["rng.h"], test_deps = []%s)\n' % PUBLIC +
                  'rill_cc_library(name = "inner", hdrs = ["inner.h"])\n'
                  'rill_cc_library(name = "hidden", hdrs = ["hidden.h"])\n'
                  'rill_device_test(name = "rng_fake_test")\n',
    "base/z/BUILD": '_HEADERS = ["y.h"]\nrill_cc_library(name = "y", hdrs = _HEADERS%s)\n' % PUBLIC,
}
ROWS = ("| header | holds | target |\n|---|---|---|\n"
        "| `rng.h` | numbers | `@rill//base:rng` |\n"
        "| `inner.h` | more | `@rill//base` |\n"
        "| `z/y.h` | others | `@rill//base/z:<header>` |\n")


class PagesTest(unittest.TestCase):

    def checked(self, texts, builds=None):
        found = pages.Pages(["base"], {"tools/go"}.__contains__)
        for path, text in dict(BUILDS, **(builds or {})).items():
            found.add_build(path, ast.parse(text))
        for path in ("base/rng.h", "base/inner.h", "base/hidden.h", "base/z/y.h"):
            found.add_file(path, "")
        for path, text in dict({"base/README.md": ROWS}, **texts).items():
            found.add_file(path, text)
        return found, ["%s:%d: %s" % f for f in found.check()]

    def assert_finds(self, texts, *patterns, builds=None):
        _, found = self.checked(texts, builds)
        self.assertEqual(len(found), len(patterns), found)
        for text, pattern in zip(found, patterns):
            self.assertRegex(text, pattern)

    def test_what_is_so_passes(self):
        self.assert_finds({
            "docs/a.md": "Take `@rill//base/z:y`, //base:rng or `base:rng`; `//base:rng_test`, `base:rng_fake_cuda_test`.\n"
                         '`base/rng.h` and `rng.h`\n#include "rill/base/inner.h"\nbase/hidden.h (private)\n'
                         "https://example.org//base:none @other//base:none //base/... `tools/go --fast`\n",
            "CONTRIBUTING.md": "`base/hidden.h`, //base:hidden\n",
            "docs/lab/a.md": "`//base:gone` `base/gone.h`\n"})

    def test_flags_that_commands_are_named_with_are_theirs(self):
        programs = {"tools/go": "usage: tools/go [--fast] [FLAG ...]\nrun_go.py //examples/go:go\n",
                    "tools/run_go.py": 'add_argument("--most")\n',
                    "examples/go/main.cc": "ABSL_FLAG(int, top_speed, 1)\n",
                    "examples/other/main.cc": "ABSL_FLAG(int, slow, 1)\n"}
        self.assert_finds(dict(programs, **{
            "docs/a.md": "`tools/go --fast --most=3`\n../rill/tools/go --top_speed=1  # --slow\n"}))
        self.assert_finds(dict(programs, **{"docs/a.md": "\n`tools/go --slow`\n    tools/go X [--fas]\n"}),
                          "docs/a.md:2: tools/go does not know --slow", "docs/a.md:3: tools/go does not know --fas")

    def test_targets_that_are_named_are_there(self):
        self.assert_finds({"docs/a.md": "\n`//base:gone`\n`base:gone`\n`@rill//base/gone`\n"},
                          "docs/a.md:2: there is no target //base:gone",
                          "docs/a.md:4: there is no target //base/gone:gone",
                          "docs/a.md:3: there is no target //base:gone")

    def test_targets_that_are_named_are_public(self):
        for label in ("`@rill//base:hidden`", "`base:hidden`", '    "@rill//base:hidden",'):
            self.assert_finds({"docs/a.md": label}, "//base:hidden is not public")

    def test_headers_that_are_named_can_be_included(self):
        self.assert_finds({"docs/a.md": '#include "rill/base/hidden.h"\n`base/gone.h`\n'},
                          "docs/a.md:1: base/hidden.h is in no public target", "docs/a.md:2: there is no header base/gone.h")

    def test_commands_that_are_named_are_there(self):
        self.assert_finds({"docs/a.md": "`tools/come --fast`\n"}, "there is no tools/come")

    def test_tables_say_which_target_has_a_header(self):
        def table(row):
            return {"base/README.md": ROWS + row + "\n"}
        self.assert_finds(table("| `hidden.h` | | private |"))
        self.assert_finds(table("| `hidden.h` | | `@rill//base:rng` |"), "no target of this row has base/hidden.h",
                          "@rill//base:rng has none of the row's headers")
        self.assert_finds(table("| `hidden.h` | | `@rill//base:<header>` |"), "//base:hidden is not public")
        self.assert_finds(table("| `hidden.h` | | |"), "no target of this row")
        self.assert_finds(table("| `gone.h` | | private |"), "there is no header gone.h")
        self.assert_finds(table("| `rng.h` | |"), "three columns, this row 2")

    def test_public_targets_stand_in_a_table(self):
        more = {"base/q/BUILD": 'rill_cc_library(name = "q"%s)\n' % PUBLIC +
                                'rill_cc_library(name = "p", hdrs = ["p.h"]%s)\n' % PUBLIC}
        self.assert_finds({"docs/a.md": "`@rill//base/q:p`\n"}, "q/BUILD:2: no page names //base/q:p beside a header",
                          "q/BUILD:1: no page names //base/q:q; name", builds=more)

    def test_labels_of_pages_are_written_with_their_headers(self):
        found, _ = self.checked({"docs/a.md": "`@rill//base/z:y` `//base:rng_test`"})
        self.assertIn('LABELS = {\n    "@rill//base/z:y": ["base/z/y.h"],\n    "@rill//base:base": ["base/inner.h"],\n'
                      '    "@rill//base:rng": ["base/rng.h"],\n}\n', found.labels_file())
