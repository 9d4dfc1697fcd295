# SPDX-License-Identifier: Apache-2.0
"""Each rule of lint.py finds what it is for, and lets good files pass."""
import os
import tempfile
import unittest

import classes
import lint

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LAWS = 'LAWS = {"base": []}\nBESIDE_BUNDLE = {"//base:odd": "why"}\n'
BAZELRC = "build --per_file_copt=^(base|samplers|tools)/.*@-Wall\n"


def header(path, body=""):
    guard = "RILL_%s_" % path.replace("/", "_").replace(".", "_").upper()
    return "%s\n#ifndef %s\n#define %s\n%s\n#endif  // %s\n" % (SPDX, guard, guard, body, guard)


class LintTest(unittest.TestCase):

    def findings(self, files, level="error"):
        """What lint says about a tree of these files: "path:line: message"."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in dict({".bazelrc": BAZELRC}, **files).items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return ["%s:%d: %s" % (f.path, f.line, f.message)
                    for f in lint.Lint(root).run() if f.level == level]

    def assert_finds(self, files, *patterns):
        found = self.findings(files)
        self.assertEqual(len(found), len(patterns), found)
        for text, pattern in zip(found, patterns):
            self.assertRegex(text, pattern)

    def test_good_files_pass(self):
        self.assert_finds({
            "base/x.h": header("base/x.h", "int F();\n"),
            "base/x.cc": SPDX + '#include "rill/base/x.h"\n#include "absl/status/status.h"\n'
                         "// throw exit(1) TODO(#3)\nint F() { return 'a'; }\n",
            "base/BUILD": 'rill_cc_library(name = "base", deps = [":x"])\nrill_cc_library(name = "x")\n'
                          'rill_cc_library(name = "odd")\n',
            "tools/layering/laws.bzl": LAWS,
            "tools/go.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
        })

    def test_spdx_line_is_wanted_first(self):
        self.assert_finds({"base/x.cc": "int x;\n"}, r"base/x.cc:1: wants the line \"// SPDX")
        self.assert_finds({"tools/x.sh": "#!/bin/sh\necho\n"}, r"tools/x.sh:2: wants the line \"# SPDX")

    def test_tests_that_are_named_are_there(self):
        tests = SPDX + "TEST(XTest, A_B) {}\nTEST_P(\n    YTest, C) {}\n"
        self.assert_finds({
            "base/x_test.cc": tests,
            "docs/x.md": "`XTest.A_B` `YTest.C`\n`XTest.D` XTest.E\n",
            "base/x.h": header("base/x.h", "// Example (XTest.Example runs it):\n"),
        }, r"base/x.h:\d+: there is no test XTest.Example", r"docs/x.md:2: there is no test XTest.D$")

    def test_names_beside_torchrls_are_in_headers(self):
        self.assert_finds({
            "base/x.h": header("base/x.h", "class Here { void Do(); };  // Gone\n"),
            "docs/torchrl_names.md": "| TorchRL | Rill | |\n|---|---|---|\n| `Gone` | `Here::Do`, `Here` | `No` |\n"
                                     "| `x` | `Here::Gone` | |\n",
        }, r"docs/torchrl_names.md:4: no header has the name Here::Gone$")

    def test_header_guard_carries_the_path(self):
        wrong = header("base/y.h")
        self.assert_finds({"base/x.h": wrong}, r"base/x.h:1: wants the header guard RILL_BASE_X_H_")
        self.assert_finds({"base/x-inl.h": header("base/x-inl.h")}, r"base/x-inl.h:1: wants the header guard RILL_BASE_X_INL_H_")

    def test_sizes(self):
        lines = "int a;\n"
        self.assert_finds({"base/x.cc": SPDX + lines * 700}, r"base/x.cc has 701 lines, want <= 700")
        self.assert_finds({"base/x_test.cc": SPDX + lines * 700})
        self.assert_finds({"base/x.h": header("base/x.h", lines * 400)}, "want <= 400")
        long = SPDX + "namespace rill {\nclass A {\n int F() const {\n" + " G();\n" * 81 + "}\n};\n}\n"
        self.assert_finds({"base/x.cc": long}, r"base/x.cc:4: base/x.cc:F has 82 lines, want <= 80")

    def test_size_allow_list_wants_a_reason(self):
        long = {"base/x.cc": SPDX + "int a;\n" * 700}
        self.assert_finds(dict(long, **{
            "tools/lint/size_allow.txt": "source base/x.cc one table\n"}))
        self.assert_finds(dict(long, **{"tools/lint/size_allow.txt": "source base/x.cc\n"}),
                          "wants KEY PATTERN REASON", "want <= 700")

    def test_comments_and_blank_lines_do_not_make_a_function_long(self):
        body = "\n  // why\n" * 60 + "  /* more\n why */\n" * 30
        self.assert_finds({"base/x.cc": SPDX + "int F() {\n" + body + "return 1;\n}\n"})

    def test_includes(self):
        def found(include, path="base/x.cc"):
            return self.findings({path: SPDX + include + "\n", "base/y.h": header("base/y.h")})
        self.assertEqual(found('#include "rill/base/y.h"'), [])
        self.assertRegex(found('#include "rill/base/z.h"')[0], "is not in the tree")
        self.assertRegex(found('#include "base/y.h"')[0], "wants its full path")
        self.assertRegex(found('#include <gtest/gtest.h>')[0], "in quotes")
        self.assertRegex(found('#include <iostream>')[0], "static constructors")
        self.assertRegex(found('#include "Eigen/Core"')[0], "may not include")
        self.assertRegex(found('#include <cuda_runtime.h>')[0], "may not include")
        self.assertRegex(found('#include "nlohmann/json.hpp"')[0], "may not include")

    def test_restricted_include_is_allowed_by_its_list(self):
        self.assert_finds({
            "base/x.cc": SPDX + '#include "Eigen/Core"\n',
            "tools/lint/include_allow.txt": "Eigen/ base/*.cc it multiplies\n"})

    def test_libraries_neither_throw_nor_end_the_program(self):
        for code in ("throw 1;", "exit(1);", "std::abort();", "std::quick_exit(0);"):
            self.assert_finds({"base/x.cc": SPDX + "void F() { " + code + " }\n"}, "in a library")
            self.assert_finds({"examples/x.cc": SPDX + "void F() { " + code + " }\n"})
        self.assert_finds({"base/x.cc": SPDX + "void F() { _exit(1); on_exit_(2); rethrow(); }\n"})

    def test_tests_do_not_sleep(self):
        self.assert_finds({"base/x_test.cc": SPDX + "void F() { absl::SleepFor(d); }\n"}, "in a test")

    def test_time_and_entropy_come_from_base(self):
        self.assert_finds({"samplers/x.cc": SPDX + "std::random_device d;\n"}, "base/clock and base/rng")
        self.assert_finds({"samplers/x.cc": SPDX + "auto t = absl::Now();\n"}, "base/clock and base/rng")
        self.assert_finds({"base/clock.cc": SPDX + "auto t = absl::Now();\n"})

    def test_cuda_conditions_stay_in_device_cuda(self):
        self.assert_finds({"base/cuda.h": header("base/cuda.h"), ".bazelrc": BAZELRC})
        text = SPDX + "#if defined(RILL_CUDA)\n#endif\n"
        self.assert_finds({"base/x.cc": text}, "chosen by link")
        self.assert_finds({"device/cuda/x.cc": text, ".bazelrc": BAZELRC.replace("base", "device")})

    def test_todo_wants_an_issue(self):
        self.assert_finds({"base/x.cc": SPDX + "// TODO: later\n"}, r"base/x.cc:2: TODO wants an issue")

    def test_build_files(self):
        self.assert_finds({"base/BUILD": 'cc_library(\n    name = "x",\n)\n'}, "use the rill_ macro")
        self.assert_finds({"base/BUILD": 'rill_cc_binary(\n    srcs = glob(["*.cc"]),\n)\n'}, "not by glob")
        self.assert_finds({"base/BUILD": 'rill_cc_component(\n    benchmark_srcs = glob(["*.cc"]),\n)\n'}, "not by glob")
        self.assert_finds({"base/BUILD": 'filegroup(\n    srcs = glob(["testdata/*"]),\n)\n'})
        self.assert_finds({"base/BUILD": "rill_cc_library(name = \n"}, "not readable")
        self.assert_finds({"base/BUILD": 'package(default_visibility = ["//visibility:public"])\n'},
                          "say so one by one")

    def test_joined_tests_are_run(self):
        for tests in 'rill_cc_test(\n    name = "x_test",\n)\n', 'rill_cc_component(\n    test_deps = [],\n)\n':
            self.assert_finds({"tools/BUILD": tests + "rill_joined_tests()\n"})
            self.assert_finds({"tools/BUILD": "rill_joined_tests()\n" + tests}, "tools/BUILD:4: the last line is not")

    def test_pages_are_compared_with_targets(self):
        tree = {"tools/BUILD": 'rill_cc_library(name = "x")\n', "docs/x.md": "`@rill//tools:x`\n",
                "testing/consumer/labels.bzl": "old"}
        self.assert_finds(tree, "docs/x.md:1: //tools:x is not public", "labels.bzl:1: pages name other targets")

    def test_bundle_leaves_no_library_out(self):
        def build(*lines):
            odd = 'rill_cc_library(name = "odd")'
            return {"base/BUILD": "\n".join(lines + (odd,)), "tools/layering/laws.bzl": LAWS}
        bundle = 'rill_cc_library(name = "base", deps = [":x"])'
        x = 'rill_cc_library(name = "x", deps = ["//base:y"] + select({"a": ["//base/z"]}))'
        self.assert_finds(build(bundle, x, 'rill_cc_library(name = "y")'))
        self.assert_finds(build(bundle, x, 'rill_cc_library(name = "t", testonly = True)'))
        self.assert_finds(build(bundle, x, 'rill_cc_library(name = "w")'), "//base:w is in no deps")
        component = 'rill_cc_component(name = "w", deps = [":y"], test_deps = [":z"])'
        self.assert_finds(build(bundle, x, component), "//base:w is in no deps")

    def test_what_only_a_library_beside_the_bundle_needs_is_not_left_out(self):
        self.assert_finds({"base/BUILD": 'rill_cc_library(name = "base")\n'
                                         'rill_cc_library(name = "odd", deps = [":part"])\n'
                                         'rill_cc_library(name = "part")\n',
                           "tools/layering/laws.bzl": LAWS})

    def test_library_beside_the_bundle_must_exist(self):
        self.assert_finds({"tools/layering/laws.bzl": LAWS}, "names //base:odd, which is not in the tree")

    def test_package_without_a_law_is_found(self):
        self.assert_finds({"samplers/BUILD": 'rill_cc_library(name = "samplers")\n',
                           "tools/layering/laws.bzl": 'LAWS = {"base": []}\n'}, "no law for samplers")

    def test_warnings_are_errors_in_every_package(self):
        self.assert_finds({"storage/BUILD": ""}, r"does not name the package storage")

    def test_functions_of_a_class_are_counted(self):
        code = lint.strip_code(
            "class A : public B {\n public:\n  A();\n  ~A() override;\n  int F() const { return G(1); }\n"
            "  template <typename T, int n = (1 > 0)>\n  void G(T t) ABSL_LOCKS_EXCLUDED(m_);\n"
            "  A& operator=(const A&) = delete;\n  using P = int (*)(int);\n  struct Inner { void H(); };\n"
            " private:\n  std::function<void(int)> f_ = nullptr;\n  int a_ ABSL_GUARDED_BY(m_) = 0;\n"
            "  int b_{1};\n};\n")
        found = {c.name: c.functions for c in classes.classes(code)}
        self.assertEqual(found, {"A": 3, "Inner": 1})

    def test_wide_interfaces_and_classes_are_found(self):
        def tree(what, count):
            body = "class A {\n%s};\n" % "".join(what % i for i in range(count))
            return {"base/x.h": header("base/x.h", body)}
        wide = "  virtual int F%d(int a) = 0;\n"
        self.assert_finds(tree(wide, 8))
        self.assert_finds(tree(wide, 9), "x.h:5: A has 9 virtual functions, want <= 8")
        self.assert_finds(dict(tree(wide, 9), **{"tools/lint/size_allow.txt": "virtual base/x.h:A a reason\n"}))
        self.assert_finds(tree("  int F%d();\n", 41), "A has 41 functions, want <= 40")
        self.assert_finds(tree("  int F%d() override;\n", 40))

    def test_bodies_of_a_class_are_added_over_its_files(self):
        def source(count):
            return SPDX + "".join("int A::F%d() {\n%s}\n" % (i, "  g();\n" * 70) for i in range(count))
        files = {"base/x.h": header("base/x.h", "class A {\n  int F();\n};\n"),
                 "base/x.cc": source(4), "base/y.cc": source(4)}
        self.assert_finds(files)
        self.assert_finds(dict(files, **{"base/y.cc": source(5)}), "A has 6.. lines of function bodies")

    def test_targets_with_many_deps_are_found(self):
        deps = ", ".join('":d%d"' % i for i in range(26))
        x = 'rill_cc_library(name = "x", deps = [%s], testonly = %s)\nrill_cc_library(name = "odd")\n'
        laws = {"tools/layering/laws.bzl": LAWS}
        self.assert_finds(dict(laws, **{"base/BUILD": x % (deps, "True")}))
        bundle = 'rill_cc_library(name = "base", deps = [":x"])\n'
        self.assert_finds(dict(laws, **{"base/BUILD": bundle + (x % (deps, "")).replace(", testonly = ", "")}),
                          "//base:x has 26 deps, want <= 25")

    def test_fault_points_without_a_test_of_the_package_are_found(self):
        files = {"base/x.cc": SPDX + 'int F() { return FaultPoint("file.x", path); }\n'}
        test = {"base/x_test.cc": SPDX + 'bool b = point == "file.x";\n'}
        self.assert_finds(dict(files, **test))
        self.assert_finds(files, r'x.cc:2: no test of base/ makes the fault point "file.x" fail')

    def test_implementations_without_their_suite_are_found(self):
        files = {"storage/storage.cc": SPDX + "class Storage : public RowReader {};\n"
                                              "class Rows : public n::RequestReader<n::Storage> {};\n"
                                              "class FastStorageImpl final\n    : public Rows {};\n"}
        test = (SPDX + "INSTANTIATE_TEST_SUITE_P(Fast, RowReaderConformanceTest,\n    Values(1));\n"
                "INSTANTIATE_TEST_SUITE_P(%s, StorageConformanceTest, Values(1));\n")
        self.assert_finds(dict(files, **{"storage/fast_test.cc": test % "Fast"}))
        self.assert_finds(dict(files, **{"storage/fast_test.cc": test % "Slow"}),
                          r"storage.cc:4: FastStorageImpl wants INSTANTIATE_TEST_SUITE_P\(Fast, StorageConf")

    def test_suites_without_wrong_parts_are_found(self):
        suite = {"base/conformance/x.h": SPDX + "#ifndef RILL_BASE_CONFORMANCE_X_H_\n#define RILL_BASE_CONFORMANCE_X_H_\n"
                                                "class XConformanceTest : public Test {};\n#endif\n"}
        test = SPDX + "RILL_REFUSES_WRONG_PARTS(%sConformanceTest, WrongXs);\n"
        self.assert_finds(dict(suite, **{"base/x_test.cc": test % "X"}))
        self.assert_finds(dict(suite, **{"base/x_test.cc": test % "Y"}),
                          r"x.h:4: XConformanceTest wants RILL_REFUSES_WRONG_PARTS\(XConformanceTest, ")

    def test_deps_name_who_has_the_headers(self):
        files = {
            "base/x.h": header("base/x.h", '#include "absl/strings/match.h"\n'),
            "base/y.cc": SPDX + '#include "rill/base/x.h"\n#include "absl/status/statusor.h"\n',
            "base/y_test.cc": SPDX + '#include "rill/base/x.h"\n',
            "tools/layering/laws.bzl": LAWS,
        }
        build = ('A = [%s]\nrill_cc_library(name = "base", deps = [":y"])\n'
                 'rill_cc_library(name = "odd")\n'
                 'rill_cc_library(name = "x", hdrs = ["x.h"], deps = A)\n'
                 'rill_cc_component(name = "y", srcs = ["y.cc"], deps = [%s], test_deps = [%s])\n')
        good = ('"@com_google_absl//absl/strings"', '":x", "@com_google_absl//absl/status:statusor"', '"//base:x"')
        self.assert_finds(dict(files, **{"base/BUILD": build % good}))
        for part, want in enumerate((r"BUILD:4: //base:x: base/x.h includes absl/strings/match.h.*absl/strings\"$",
                                     r"BUILD:5: //base:y: base/y.cc includes absl/status/statusor.h",
                                     r"BUILD:5: //base:y_test: base/y_test.cc includes rill/base/x.h.*//base:x\"$")):
            bad = list(good)
            bad[part] = '":x"' if part == 1 else ""
            self.assert_finds(dict(files, **{"base/BUILD": build % tuple(bad)}), want)

    def test_long_files_warn_before_they_fail(self):
        self.assertRegex(self.findings({"base/x.cc": SPDX + "int a;\n" * 500}, "warning")[0], "aim <= 450")

    def test_functions_are_told_from_classes_and_tables(self):
        code = lint.strip_code(
            "namespace a {\nstruct S { int x{f(1)}; };\nS::S(int n) : x(n) { if (n) { g(); } }\n"
            "TEST(Suite, Case) {\n  EXPECT_EQ(\"}\", '{');\n}\n}\n")
        self.assertEqual([name for name, _, _ in lint.functions(code)], ["S::S", "Suite.Case"])
