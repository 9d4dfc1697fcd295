# SPDX-License-Identifier: Apache-2.0
"""What the participants of benchmarks/compare hand to worker.py."""


class Missing(Exception):
    """The participant has nothing of the kind."""


class Prepared:
    """`run` is measured; `before` is called before each run, and is not."""

    def __init__(self, run, before=None):
        self.run = run
        self.before = before
