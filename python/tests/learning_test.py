# SPDX-License-Identifier: Apache-2.0
"""The collector, a policy in Python and the buffer together: a short run of an example learns."""
import importlib.util
import os
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../examples/python/collector_dqn/dqn.py")


class LearningTest(unittest.TestCase):
    def test_dqn_learns(self):
        spec = importlib.util.spec_from_file_location("dqn", PROGRAM)
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        returns = program.train(seed=0, total_steps=4200)
        self.assertEqual(len(returns), 2)
        # Untrained it is 10, and random actions have 22.
        self.assertGreater(returns[-1], 60)


if __name__ == "__main__":
    unittest.main()
