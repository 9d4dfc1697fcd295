# SPDX-License-Identifier: Apache-2.0
"""Functions that call what calls them: refused where that would wait for itself."""
import subprocess
import sys
import unittest

COMMON = """
import threading
import numpy as np
import rill
from rill import envs

def buffer_of(**options):
    return rill.ReplayBuffer(storage=rill.LazyTensorStorage(100), batch_size=4, **options)

def rows(count=20):
    return {"x": np.arange(count), "desired_goal": np.zeros((count, 1)),
            "next": {"achieved_goal": np.zeros((count, 1)), "reward": np.zeros((count, 1), np.float32),
                     "done": np.zeros((count, 1), bool)}}

def row():
    return {"x": np.int64(1), "desired_goal": np.zeros(1),
            "next": {"achieved_goal": np.zeros(1), "reward": np.zeros(1, np.float32), "done": np.zeros(1, bool)}}

def show(call):
    try:
        call()
        print("done")
    except rill.FailedPreconditionError as error:
        print("refused" if "it would wait for itself" in str(error) else error)
"""

# What a function of the buffer does, once.
BUFFER = """
shown, once = threading.Event(), threading.Lock()

def work(*given):
    if have_begun.is_set() and once.acquire(blocking=False):
        for call in (buffer.sample, lambda: buffer.sample(out=batch), lambda: buffer.extend(rows()),
                     lambda: buffer.add(row()), lambda: buffer.update_priority(batch, 1.0), buffer.empty,
                     lambda: buffer.append_transform(lambda batch: None), lambda: buffer.dumps("/nowhere"),
                     lambda: channel.drain(buffer), lambda: len(buffer), lambda: buffer[:3], other.sample):
            show(call)
        shown.set()
    return np.zeros(given[0].shape, np.float32) if len(given) == 2 else None

have_begun = threading.Event()
channel = rill.Channel(row(), producers=1)
buffer, other = make(), buffer_of()
buffer.extend(rows())
other.extend(rows())
batch = buffer.sample()
have_begun.set()
"""
OF_BUFFER = ["refused"] * 9 + ["done"] * 3


class OwnCallsTest(unittest.TestCase):

    def lines_of(self, text):
        done = subprocess.run([sys.executable, "-c", COMMON + text], timeout=120, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split("\n")[:-1]

    def test_of_a_sample(self):
        self.assertEqual(self.lines_of("make = lambda: buffer_of(transform=work)" + BUFFER + "buffer.sample()"), OF_BUFFER)

    def test_of_a_batch_that_is_made_ahead(self):
        self.assertEqual(self.lines_of("make = lambda: buffer_of(transform=work, prefetch=2)" + BUFFER + """
while not shown.is_set():
    buffer.sample()
"""), OF_BUFFER)

    def test_of_a_write(self):
        make = "make = lambda: buffer_of(transform=rill.transforms.FunctionTransform(None, work))"
        self.assertEqual(self.lines_of(make + BUFFER + "buffer.extend(rows())"), OF_BUFFER)
        self.assertEqual(self.lines_of(make + BUFFER + """
with channel.writer(0) as writer:
    writer.extend(rows())
    channel.drain(buffer)
"""), OF_BUFFER)
        self.assertEqual(self.lines_of("""
def work(batch):
    show(lambda: channel.drain(other))

channel, other = rill.Channel(row(), producers=1), buffer_of()
with channel.writer(0) as writer:
    writer.extend(rows())
    channel.drain(buffer_of(transform=rill.transforms.FunctionTransform(None, work)))
"""), ["refused"])

    def test_of_a_reward(self):
        self.assertEqual(self.lines_of("make = lambda: buffer_of(sample_unit=rill.Hindsight(work))" + BUFFER + """
while not shown.is_set():
    buffer.sample()
"""), OF_BUFFER)

    def test_of_an_ensemble(self):
        self.assertEqual(self.lines_of("""
def work(batch):
    if have_begun.is_set():
        show(lambda: ensemble.set_p([0.5, 0.5]))
        have_begun.clear()

have_begun = threading.Event()
members = buffer_of(transform=work), buffer_of()
for member in members:
    member.extend(rows())
ensemble = rill.ReplayBufferEnsemble(*members, batch_size=8)
have_begun.set()
members[0].sample()
"""), ["refused"])
        ahead = "{'transform': work, 'prefetch': 1}, {}"
        for functions, calls, lines in (("{}, {'transform': work}", "ensemble", ["refused", "refused"]),
                                        ("{'transform': work}, {}", "ensemble", ["refused", "refused"]),
                                        ("{'transform': work}, {}", "members[0]", ["refused", "refused"]),
                                        (ahead, "members[0]", ["refused", "refused"]),
                                        ("{}, {'offline_fraction': work}", "ensemble", ["refused", "done"])):
            with self.subTest(functions, calls=calls):
                # Of a buffer that makes batches ahead its own thread is to call.
                self.assertEqual(self.lines_of("""
def work(batch):
    is_wanted = threading.get_ident() != main if %r else True
    if have_begun.is_set() and is_wanted and once.acquire(blocking=False):
        show(ensemble.sample)
        show(members[0].sample)
        shown.set()
    return 0.5 if isinstance(batch, int) else None

main = threading.get_ident()
have_begun, shown, once = threading.Event(), threading.Event(), threading.Lock()
of_member, options = %s
members = buffer_of(**of_member), buffer_of()
for member in members:
    member.extend(rows())
ensemble = rill.OfflineToOnlineReplayBuffer(*members, batch_size=8, **options)
have_begun.set()
while not shown.is_set():
    %s.sample()
    ensemble.sample()
""" % (functions == ahead, functions, calls)), lines)

    def test_of_a_collector(self):
        for make in ("SyncDataCollector(envs.CartPole(2)", "MultiSyncDataCollector([envs.CartPole(2)]",
                     "MultiaSyncDataCollector([envs.CartPole(2)]"):
            with self.subTest(make):
                # A worker of the last one goes on while nobody is in a call.
                self.assertEqual(self.lines_of("""
def policy(root):
    is_ahead = len(calls) >= 4
    if is_ahead and is_outside.wait() and not shown.is_set():
        show(collector.next)
        show(lambda: buffer._buffer.collect(collector._collector))
        show(other.next)
        collector.shutdown()
        shown.set()
    calls.append(root)
    return np.zeros(2, np.int64)

calls, is_outside, shown = [], threading.Event(), threading.Event()
buffer, other = buffer_of(), rill.SyncDataCollector(envs.CartPole(2), frames_per_batch=8)
collector = rill.%s, policy, frames_per_batch=8)
collector.next()
is_outside.set()
if type(collector) is rill.MultiaSyncDataCollector:
    shown.wait()
try:
    collector.next()
except rill.Error:
    pass
""" % make), ["refused", "refused", "done"])


if __name__ == "__main__":
    unittest.main()
