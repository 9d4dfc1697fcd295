# SPDX-License-Identifier: Apache-2.0
"""A stand-in for gymnasium: its spaces, and environments that misbehave."""
import os
import signal
import sys
import time

import numpy as np


class Box:
    def __init__(self, low, high, shape, dtype=np.float32):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.low = np.full(shape, low, dtype)
        self.high = np.full(shape, high, dtype)


class Discrete:
    def __init__(self, n, start=0):
        self.n, self.start = n, start


class MultiDiscrete:
    def __init__(self, nvec, start=None):
        self.nvec = np.asarray(nvec)
        self.start = np.zeros_like(self.nvec) if start is None else np.asarray(start)


class MultiBinary:
    def __init__(self, n):
        self.shape = (n,)


class Text:
    pass


class Dict:
    def __init__(self, spaces):
        self.spaces = spaces


class Tuple:
    def __init__(self, spaces):
        self.spaces = spaces


def living_children_of(parent):
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                state, of = file.read().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue  # It has ended meanwhile.
        count += int(of) == parent and state != "Z"
    return count


class Count:
    """Counts steps; the action is one of 5, 6, 7.

    `faults`: what a lane does at its step 3, "*" for all lanes; "again_..." at
    its second reset. With "count" a reset shows how many there were.
    `closed`: where close() writes how many children its parent has.
    """

    observation_space = Box(-np.inf, np.inf, (2,))
    action_space = Discrete(3, start=5)

    made = 0

    def __init__(self, end=1000, faults=None, closed=None):
        lane = int(sys.argv[4]) + Count.made
        Count.made += 1
        self.end, self.steps, self.base, self.resets, self.closed = end, 0, 0, 0, closed
        faults = faults or {}
        self.fault = faults.get(str(lane), faults.get("*", ""))
        if self.fault == "make":
            raise RuntimeError("cannot make it")

    def reset(self, seed):
        if self.fault == "reset":
            raise RuntimeError("cannot reset")
        self.steps, self.base = 0, seed % 1000
        self.resets += 1
        observation = np.array([self.base, 0], np.float32)
        if self.fault == "count":
            observation[1] = self.resets
        if self.resets == 2 and self.fault.startswith("again_"):
            observation = self.fail(self.fault[len("again_"):], observation)
        return observation, {}

    def step(self, action):
        assert action in (5, 6, 7), action
        self.steps += 1
        observation = np.array([self.base + self.steps, action], np.float32)
        reward = float(self.steps)
        if self.steps == 3:
            observation = self.fail(self.fault, observation)
            if self.fault == "nan":
                reward = float("nan")
        if self.fault == "garbage":
            sys.stdout.write("garbage " * 4000)
            sys.stderr.write("garbage " * 4000)
        return observation, reward, False, self.steps >= self.end, {}

    @staticmethod
    def fail(fault, observation):
        if fault == "exit":
            print("the last words", flush=True)
            os._exit(7)
        if fault == "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "loud":
            print("loud " * 20000 + "the end", flush=True)
            os._exit(3)
        if fault == "hang":
            while True:
                time.sleep(1)
        if fault == "write":
            os.write(3, b"garbage ")
        if fault == "raise":
            raise ValueError("no such step")
        if fault == "shape":
            return np.zeros(3, np.float32)
        return observation

    def close(self):
        if self.closed:
            with open(self.closed, "w") as file:
                file.write(str(living_children_of(os.getppid())))


class Nested(Count):
    """All spaces; observations and actions show the same numbers."""

    observation_space = Dict({
        "a/b": MultiDiscrete([3, 4], start=[1, 0]),
        "pair": Tuple((MultiBinary(3), Box(0, 255, (2, 2), np.uint8))),
        "move": Discrete(3, start=-1),
    })
    action_space = observation_space

    def value(self, k):
        return {
            "a/b": np.array([1 + k % 3, k % 4]),
            "pair": (np.array([k % 2, 0, 1], np.int8), np.full((2, 2), k % 256, np.uint8)),
            "move": k % 3 - 1,
        }

    def reset(self, seed):
        self.steps = 0
        return self.value(seed), {}

    def step(self, action):
        self.steps += 1
        assert isinstance(action["pair"], tuple)
        return action, float(action["move"]), self.steps >= 9, False, {}


class Words(Count):
    observation_space = Dict({"words": Text()})


def make(name, disable_env_checker, **kwargs):
    assert disable_env_checker
    return {"Count-v0": Count, "Nested-v0": Nested, "Words-v0": Words}[name](**kwargs)
