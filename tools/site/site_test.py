# SPDX-License-Identifier: Apache-2.0
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "lint"))
import api  # noqa: E402
import build  # noqa: E402
import check  # noqa: E402
import lint  # noqa: E402
import names  # noqa: E402


def converted(text):
    out = api.converted(text, lint.strip_code)
    assert out.count("\n") == text.count("\n"), out
    return out


class ApiTest(unittest.TestCase):

    def test_a_comment_above_a_declaration_is_its_documentation(self):
        self.assertEqual(converted("// What it is.\n// INVALID_ARGUMENT names it.\nclass A {\n  // One.\n  int a();\n};"),
                         "/// What it is.\n/// INVALID_ARGUMENT names it.\nclass A {\n  /// One.\n  int a();\n};")

    def test_a_comment_behind_a_declaration_goes_on_below(self):
        self.assertEqual(converted("struct A {\n  int a = 0;  // One,\n              // two.\n};"),
                         "struct A {\n  int a = 0;  ///< One,\n              ///< two.\n};")
        self.assertEqual(converted("enum A {\n  kB,  // One.\n  kC  // Two.\n};"),
                         "enum A {\n  kB,  ///< One.\n  kC  ///< Two.\n};")

    def test_other_comments_stay(self):
        for text in ("// SPDX-License-Identifier: Apache-2.0\n#ifndef A", "// A section.\n\nint a();",
                     "}  // namespace rill", "int A() {\n  // Why.\n  return 0;  // One.\n}",
                     "#include \"a.h\"  // IWYU pragma: export", "void A(int a,  // One.\n       int b);"):
            self.assertEqual(converted(text), text)

    def test_the_first_comment_that_stands_alone_is_of_the_header(self):
        self.assertEqual(converted("namespace a {\n\n// Whole.\n\n// Part.\n\nint b();"),
                         "namespace a {\n/// @file\n/// Whole.\n\n// Part.\n\nint b();")

    def test_words_are_no_commands(self):
        self.assertEqual(converted("// a@b, <c>, #d, `e<f>`, --g, ::h\nint a();"),
                         "/// a\\@b, \\<c\\>, \\#d, `e<f>`, \\--g, \\::h\nint a();")

    def test_an_example_is_code(self):
        self.assertEqual(converted("// What.\n//\n// Example (ATest.B runs it):\n//   int a = b<c>;\n//   d();\nint a();"),
                         "/// What.\n///\n/// Example (ATest.B runs it): @code{.cpp}\n///   int a = b<c>;\n"
                         "///   d(); @endcode\nint a();")

    def test_a_label_begins_a_paragraph(self):
        self.assertEqual(converted("// What.\n// Thread-safety: thread-safe.\nint a();"),
                         "/// What.\n/// @n Thread-safety: thread-safe.\nint a();")


class PagesTest(unittest.TestCase):

    def test_names_that_are_nowhere_are_found(self):
        text = "`Here::There` `rill::Here` `Gone`\n```\n`InCode`\n```\n`ATest.LooksAtIt` `lower` `Others` `b/c.cc` `b/gone.cc`"
        found = list(names.unknown("docs/a.md", text, {"Here", "There"}, {"Others"}, ["a/b/c.cc"]))
        self.assertEqual(len(found), 2)
        self.assertRegex(found[0], r"^docs/a.md:1: nothing in the tree is called Gone;")
        self.assertEqual(found[1], "docs/a.md:5: there is no file b/gone.cc")
        self.assertEqual(list(names.unknown("CHANGELOG.md", text, set(), set(), [])), [])

    def test_names_in_comments_that_are_nowhere_are_found(self):
        words = set(names.words_of("a.h", "int Here::There();  // Gone"))
        self.assertEqual(list(names.unknown_in_comments("a.h", "// `Here`, Here::There, OF_LINE\nint A::b();", words)), [])
        self.assertEqual(len(list(names.unknown_in_comments("a.h", "int a;  // `Gone`\n// Here::Gone", words))), 2)

    def test_figures_that_were_not_copied_are_found(self):
        found = list(names.strange_figures("a.md", "1.5 us, 2,000 rows\n`7` [x](y9.md) 3 of 4", ["1.5 and 2,000", "| 3 |"]))
        self.assertEqual(found, ["a.md:2: the pages that it copies from do not have 4"])

    def test_a_list_begins_behind_a_blank_line(self):
        self.assertEqual(build.page_text("a\n- b\n  c\n- d\n```\ne\n- f\n```"), "a\n\n- b\n  c\n- d\n```\ne\n- f\n```")

    def test_names_of_the_api_have_no_path_of_the_machine(self):
        with tempfile.TemporaryDirectory() as work:
            build.write(work + "/api.tag", """<tagfile>
                <compound kind="file"><name>b.h</name><path>/x/headers/rill/a/</path><filename>b_8h.html</filename></compound>
                <compound kind="class"><name>rill::A</name><filename>classA.html</filename>
                <member kind="function"><name>B</name><anchorfile>classA.html</anchorfile><anchor>c</anchor></member></compound>
                <compound kind="class"><name>Hidden</name><filename>classHidden.html</filename></compound></tagfile>""")
            links, found = build.names_of(work + "/api.tag")
            self.assertEqual(links, {"rill/a/b.h": "b_8h.html", "a/b.h": "b_8h.html", "rill::A": "classA.html",
                                     "A": "classA.html", "rill::A::B": "classA.html#c", "A::B": "classA.html#c"})
            self.assertEqual(found, [("rill/a/b.h", "b_8h.html"), ("rill::A", "classA.html")])

    def test_links_that_lead_nowhere_are_found(self):
        with tempfile.TemporaryDirectory() as site:
            build.write(site + "/a/b.html", '<h1 id="c">B</h1><a class="x" href="#c"></a><a href="../d.html#e"></a>'
                        '<a href="gone.html"></a><a href="../d.html#gone"></a><a href="https://a.b/c"></a>')
            build.write(site + "/d.html", '<a name="e"></a><img alt="f" src="f.svg">')
            self.assertEqual(list(check.pages_of(site)), ["d.html", "a/b.html"])
            links = check.Links(site)
            self.assertEqual(list(links.broken("a/b.html")),
                             ["a/b.html: ../d.html#gone has no such place", "a/b.html: there is no gone.html"])
            self.assertEqual(list(links.broken("d.html")), ["d.html: there is no f.svg"])


if __name__ == "__main__":
    unittest.main()
