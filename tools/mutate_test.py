# SPDX-License-Identifier: Apache-2.0
"""What mutate.py changes, and what it leaves alone."""
import unittest

import mutate


def variants(text):
    return [text[:begin] + new + text[end:] for begin, end, new in mutate.mutations(text)]


class MutateTest(unittest.TestCase):

    def test_operators_constants_and_conditions_change(self):
        self.assertEqual(variants("if (a < b) return n + 1;\n"),
                         ["if (!(a < b)) return n + 1;\n", "if (a <= b) return n + 1;\n",
                          "if (a < b) return n - 1;\n", "if (a < b) return n + 2;\n"])
        self.assertEqual(variants("bool b = x && !y || true;\n"),
                         ["bool b = x || !y || true;\n", "bool b = x && !y && true;\n",
                          "bool b = x && !y || false;\n"])

    def test_statements_are_left_out(self):
        self.assertEqual(variants("{\n  rows_->Clear();\n  size_ = n;\n  return n;\n}\n"),
                         ["{\n  ;\n  size_ = n;\n  return n;\n}\n", "{\n  rows_->Clear();\n  ;\n  return n;\n}\n"])

    def test_text_templates_and_macros_stay(self):
        self.assertEqual(variants('// a < b\nstd::vector<std::pair<int, int>> v;\nLog("a + b");\n'
                                  "#if A == 1 && \\\n    B < 2\n#endif\nint n ABSL_GUARDED_BY(a == b);\n"), [])

    def test_condition_with_a_statement_stays(self):
        self.assertEqual(variants("if (const int n = F(); n) return;\n"), [])

    def test_equal_mutations_of_equal_lines_are_one(self):
        text = "  n += 1;\n  m = a;\n" * 3
        self.assertEqual(len(mutate.mutations(text)), 12)
        self.assertEqual(len(mutate.chosen(text, 100, seed=1)), 4)

    def test_choice_is_of_the_seed(self):
        text = "".join("int n%d = a + %d;\n" % (i, i) for i in range(100))
        self.assertEqual(len(mutate.chosen(text, 5, seed=1)), 5)
        self.assertEqual(mutate.chosen(text, 5, seed=1), mutate.chosen(text, 5, seed=1))
        self.assertNotEqual(mutate.chosen(text, 5, seed=1), mutate.chosen(text, 5, seed=2))

    def test_list_names_files_and_targets(self):
        self.assertEqual(mutate.listed_files("# why\n\na/b.cc //a:b_test //a:c_test\n"),
                         {"a/b.cc": ["//a:b_test", "//a:c_test"]})

    def test_mutation_is_shown_with_its_line(self):
        text = "int F() {\n  return a + b;\n}\n"
        self.assertEqual(mutate.shown(text, mutate.mutations(text)[0]), "2: return a + b;  [+ -> -]")


if __name__ == "__main__":
    unittest.main()
