# SPDX-License-Identifier: Apache-2.0
"""Short runs of the programs here, with Rill's buffer and with the original.

tools/dropins runs it, with rill and the real packages. A program whose package is
missing is skipped by name. CleanRL is no package: RILL_CLEANRL is a checkout of it.
Its programs want tyro, tensorboard and gymnasium 0.29, which is to be the first one
on PYTHONPATH.
"""

import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))


def run(program, *flags):
    """What a program says of its run, its last line."""
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, program), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    if done.returncode:
        raise AssertionError(f"{program} {' '.join(flags)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


# Runs a program of CleanRL and prints a digest of its networks' weights.
DIGEST = """
import hashlib, json, runpy, sys
program, names = sys.argv[1], sys.argv[2].split(",")
sys.argv = sys.argv[1:2] + sys.argv[3:]
left = runpy.run_path(program, run_name="__main__")
digest = hashlib.sha256()
for name in names:
    for weights in left[name].state_dict().values():
        digest.update(weights.numpy().tobytes())
print(json.dumps([type(left["rb"]).__module__, digest.hexdigest()]))
"""


class DropinsTest(unittest.TestCase):
    def needs(self, *names):
        missing = [name for name in names if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"there is no {', '.join(missing)}")

    def check_learns(self, returns, first, last):
        """The last episodes are better than the first ones."""
        self.assertTrue(all(map(math.isfinite, returns)))
        self.assertGreater(statistics.fmean(returns[-last:]), statistics.fmean(returns[:first]), returns)

    def returns(self, program, buffer, steps):
        return run(program, "--buffer", buffer, "--total_steps", str(steps))["returns"]

    def same_returns(self, program, steps):
        """The returns of a run, which are the same with both buffers."""
        returns, original = (self.returns(program, buffer, steps) for buffer in ("rill", "original"))
        self.assertEqual(returns, original)
        return returns

    def check_fits(self, program, *flags):
        """With both buffers the loss falls to the same."""
        losses = {
            buffer: run(program, "--buffer", buffer, *flags)["losses"] for buffer in ("rill", "original")
        }
        for buffer, values in losses.items():
            self.assertLess(values[-1], values[0] / 2, buffer)
        self.assertLess(abs(math.log(losses["rill"][-1] / losses["original"][-1])), math.log(2), losses)

    def test_torchrl_dqn(self):
        self.needs("torchrl", "gymnasium")
        for buffer in ("rill", "original"):
            with self.subTest(buffer=buffer):
                self.check_learns(self.returns("torchrl_dqn/dqn.py", buffer, 3000), first=30, last=5)

    def test_torchrl_sac(self):
        self.needs("torchrl", "gymnasium")
        # To learn takes minutes: see its README.
        for buffer in ("rill", "original"):
            with self.subTest(buffer=buffer):
                returns = self.returns("torchrl_sac/sac.py", buffer, 1000)
                self.assertEqual(len(returns), 5)
                self.assertTrue(all(-2000 < value < 0 for value in returns), returns)

    def test_stable_baselines3(self):
        self.needs("stable_baselines3", "torch")
        self.check_learns(self.same_returns("stable_baselines3/dqn.py", 10_000), first=30, last=10)

    def test_plain_dqn(self):
        self.needs("stable_baselines3", "torch")
        self.check_learns(self.same_returns("plain_dqn/dqn.py", 6000), first=30, last=5)

    def test_plain_sac(self):
        self.needs("stable_baselines3", "torch")
        # To learn takes minutes: see its README.
        returns = self.same_returns("plain_sac/sac.py", 1000)
        self.assertEqual(len(returns), 5)
        self.assertTrue(all(-2000 < value < 0 for value in returns), returns)

    def test_cleanrl(self):
        if not os.environ.get("RILL_CLEANRL"):
            self.skipTest("RILL_CLEANRL names no checkout of CleanRL")
        self.needs("stable_baselines3", "torch", "tyro", "tensorboard")
        checkout = os.path.realpath(os.environ["RILL_CLEANRL"])
        line = "from cleanrl_utils.buffers import ReplayBuffer"
        for name, networks, *flags in (
            ("dqn.py", "q_network,target_network", "--total-timesteps=12000", "--learning-starts=2000"),
            ("sac_continuous_action.py", "actor,qf1,qf2", "--env-id=Pendulum-v1", "--total-timesteps=1000",
             "--learning-starts=500"),
        ):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(checkout, "cleanrl", name), encoding="utf-8") as file:
                    original = file.read()
                self.assertEqual(original.count(line), 1)
                digests = {}
                for text in (original, original.replace(line, "from rill.sb3 import ReplayBuffer")):
                    program = os.path.join(folder, name)
                    with open(program, "w", encoding="utf-8") as file:
                        file.write(text)
                    done = subprocess.run(
                        [sys.executable, "-B", "-c", DIGEST, program, networks, "--no-cuda", *flags],
                        stdout=subprocess.PIPE,
                        check=True,
                        cwd=folder,
                        env=dict(os.environ, OMP_NUM_THREADS="1",
                                 PYTHONPATH=os.pathsep.join([checkout, os.environ.get("PYTHONPATH", "")])),
                    )
                    module, digest = json.loads(done.stdout.splitlines()[-1])
                    digests[module] = digest
                self.assertEqual(set(digests), {"cleanrl_utils.buffers", "rill.sb3"})
                self.assertEqual(len(set(digests.values())), 1, digests)

    def test_curves_have_a_line_for_each_run(self):
        spec = importlib.util.spec_from_file_location("compare", os.path.join(HERE, "compare.py"))
        compare = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compare)
        curves = {
            "rill": [compare.curve({"returns": [float(i) for i in range(30)]})],
            "original": [compare.curve({"losses": [3.0, math.inf, 2.0]}), [1.0]],
        }
        self.assertEqual(curves["rill"][0][-1], 24.5)
        picture = xml.etree.ElementTree.fromstring(compare.draw(curves, "episode"))
        lines = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
        self.assertEqual([len(line.get("points").split()) for line in lines], [2, 1, 30])
        self.assertTrue(lines[2].get("points").startswith("60.0,260.0 "), lines[2].get("points"))

    def test_dataloader(self):
        self.needs("torch", "gymnasium")
        self.check_fits("dataloader/train.py", "--total_steps", "5000", "--epochs", "5")

    def test_jax(self):
        self.needs("jax", "gymnasium")
        self.check_fits("jax/train.py", "--total_steps", "2000", "--updates", "500")

    def test_workers(self):
        self.needs("gymnasium")
        report = run("workers/collect.py", "--total_steps", "2000")
        self.assertEqual(report["rows"], 2000)
        self.assertGreater(report["samples"], 0)


if __name__ == "__main__":
    unittest.main()
