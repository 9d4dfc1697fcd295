# SPDX-License-Identifier: Apache-2.0
"""What check_tensorboard.py compares."""
import unittest

import check_tensorboard

ROWS = [{"frames": "64", "loss": "0.5", "return": ""}, {"frames": "128", "loss": "0.25", "return": "7"}]


class CompareTest(unittest.TestCase):

    def test_the_first_column_counts_steps_whatever_its_name(self):
        self.assertEqual(check_tensorboard.compare(
            ROWS, {"loss": [(64, 0.5), (128, 0.25)], "return": [(128, 7.0000001)]}), 3)

    def test_other_steps_and_values_are_named(self):
        for scalars, text in (({"loss": [(64, 0.5)]}, "loss: steps differ"),
                              ({"loss": [(64, 0.5), (128, 0.3)]}, "loss at step 128: got 0.3, want 0.25")):
            with self.assertRaisesRegex(SystemExit, text):
                check_tensorboard.compare(ROWS, scalars)
