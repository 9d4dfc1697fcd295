# SPDX-License-Identifier: Apache-2.0
"""Each block of Python of the pages runs, in a process of its own, word for word."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PAGES = ("README.md", "docs/python.md", "python/README.md")

# What a block takes for granted, by words of its own. Without such a line it takes nothing.
NUMPY = "import numpy as np\nimport rill\n"
CONTEXTS = {
    "sample_unit=rill.Transition(": (NUMPY, ""),
    "alpha=0.6, beta=0.4, storage=rill.LazyTensorStorage(1000)": (NUMPY, ""),
    "good = buffer.query(": (NUMPY, "assert [len(trajectory) for trajectory in good] == [3, 3] and good[0].slots.tolist() == [0, 1, 2]\n"),
    "rill.ReplayBufferEnsemble(filled(100)": (NUMPY, 'assert batch["buffer_ids"].tolist() == [0] * 24 + [1] * 8\n'),
    "def scale(batch)": (NUMPY, """
buffer.extend({"observation": np.full((4, 2), 255.0, np.float32), "next": {"reward": np.full((4, 1), 9, np.float32)}})
batch = buffer.sample(8)
assert batch["observation"].max() == 1 and batch["next"]["reward"].max() == 1
"""),
    "def work(writer, env_name)": (NUMPY + """
import multiprocessing, sys, types
multiprocessing.set_start_method("fork")
class Env:
    action_space = types.SimpleNamespace(sample=lambda: 1)
    def reset(self):
        self.steps = 0
        return np.zeros(4, np.float32), {}
    def step(self, action):
        self.steps += 1
        return np.ones(4, np.float32), 1.0, self.steps == 20, False, {}
gymnasium = types.SimpleNamespace(make=lambda name: Env())
def row_of(observation, action, following, reward, terminated, truncated):
    return {"observation": observation, "action": action,
            "next": {"observation": following, "reward": [reward], "done": [terminated or truncated],
                     "truncated": [truncated]}}
first_row = row_of(np.zeros(4, np.float32), 1, np.zeros(4, np.float32), 1.0, False, False)
def range(count, real=range):
    return real(min(count, 300))  # A short run.
def learn(batch):
    assert batch["observation"].shape == (256, 4)
""", "", "UnavailableError: every writer has gone"),
    "writer.extend(rows_of_lane_0(batch))": (NUMPY, """
import itertools
class Policy:
    def __init__(self, weights):
        pass
    def __call__(self, root):
        return np.ones(1, np.int64)
def rows_of_lane_0(batch):
    return {key: rows_of_lane_0(value) if isinstance(value, dict) else value[0] for key, value in batch.items()}
class Writer:
    def __enter__(self):
        pass
    def __exit__(self, *exc):
        pass
    def extend(self, rows):
        assert rows["next"]["observation"].shape == (200, 4)
        raise StopIteration
try:
    work(Writer(), 0, None)
except StopIteration:
    pass
else:
    assert False
"""),
    "init_random_frames=10_000, replay_buffer=buffer": (NUMPY + """
def policy(root):
    return (root["observation"][:, 2] > 0).astype(np.int64)
def learn(batch):
    assert batch["observation"].shape == (256, 4)
""", "assert collector.frames >= 1_000_000\n"),
    "class Line:": (NUMPY, 'assert collector.next()["observation"].shape == (4, 16, 1)\n'),
    "gymnasium.spaces.Discrete(3)": (NUMPY + """
import types
class Discrete:
    def __init__(self, n):
        self.n, self.start = n, 0
gymnasium = types.SimpleNamespace(spaces=types.SimpleNamespace(Discrete=Discrete))
""", 'assert spec.is_in(batch) and batch["action"].shape == (32, 4)\n'),
    'replay_buffer_class=rill.sb3.ReplayBuffer': ("""
from stable_baselines3 import DQN
import rill.sb3
""", "model.learn(200)\nassert type(model.replay_buffer) is rill.sb3.ReplayBuffer\n"),
}
PACKAGES = {"replay_buffer_class=": ("stable_baselines3", "torch")}


def blocks(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


def of(table, block):
    found = [value for words, value in table.items() if words in block]
    return found[0] if found else None


class PagesTest(unittest.TestCase):

    def test_each_block_runs(self):
        used = set()
        for page in PAGES:
            found = blocks(page)
            self.assertTrue(found, page)
            for block in found:
                with self.subTest(page=page, block=block.splitlines()[-1]):
                    used.update(words for words in CONTEXTS if words in block)
                    missing = [name for name in of(PACKAGES, block) or () if importlib.util.find_spec(name) is None]
                    if missing:
                        self.skipTest("there is no " + ", ".join(missing))
                    self.run_block(block, *of(CONTEXTS, block) or ("", ""))
        self.assertEqual(used, set(CONTEXTS))

    def run_block(self, block, before, after, ends_with=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "block.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(before + block + after)
            done = subprocess.run([sys.executable, "-B", path], cwd=folder, capture_output=True, text=True, timeout=120)
        if ends_with is None:
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        else:
            self.assertRegex(done.stderr.strip().splitlines()[-1], ends_with)

    def test_the_readmes_lines_are_ten_and_its_command_is_there(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            command = re.search(r"^(tools/wheel) (--\w+=)", file.read(), re.MULTILINE)
        with open(os.path.join(ROOT, command[1]), encoding="utf-8") as file:
            self.assertIn(command[2], file.read())
        lines = [line for line in blocks("README.md")[0].splitlines() if line]
        self.assertEqual(len(lines), 10)


if __name__ == "__main__":
    unittest.main()
