# SPDX-License-Identifier: Apache-2.0
"""The Python side of GymnasiumEnv: steps the lanes of one child process.

argv: id, kwargs as JSON, number of lanes, first lane, modules to import, number
of this child, number of children.
Descriptor 3 is the socket of commands. Descriptor 4 is a pipe that nobody
writes to: when its other end closes, the kernel kills this process.
"""
import fcntl
import importlib
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
import traceback

F_SETSIG = 10
fcntl.fcntl(4, F_SETSIG, signal.SIGKILL)
fcntl.fcntl(4, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(4, fcntl.F_SETFL, fcntl.fcntl(4, fcntl.F_GETFL) | os.O_ASYNC)

CONN = socket.socket(fileno=3)
FINE = struct.pack("<I", 0)


def reply(text):
    data = text.encode("utf-8", "replace")
    CONN.sendall(struct.pack("<I", len(data)) + data)


def read(count):
    data = b""
    while len(data) < count:
        part = CONN.recv(count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def reason(error):
    frames = traceback.extract_tb(error.__traceback__)
    at = " (%s:%d)" % (frames[-1].filename, frames[-1].lineno) if frames else ""
    text = "%s: %s" % (type(error).__name__, error)
    return " ".join(text.split())[:400] + at


try:
    import gymnasium
    import numpy as np

    for module in filter(None, sys.argv[5].split(",")):
        importlib.import_module(module)
    KWARGS = json.loads(sys.argv[2])
    LANES, FIRST = int(sys.argv[3]), int(sys.argv[4])
    ENVS = [gymnasium.make(sys.argv[1], disable_env_checker=True, **KWARGS) for _ in range(LANES)]
except Exception as caught:  # pylint: disable=broad-except
    reply("error\t" + reason(caught))
    sys.exit(1)


class Leaf:
    """One leaf of a space: its key, layout and domain, and how values move."""

    def __init__(self, key, space):
        self.key, self.start, self.size = key, 0, 0
        kind = type(space).__name__
        if kind == "Box":
            self.dtype, self.shape = np.dtype(space.dtype), tuple(space.shape)
            low = np.ascontiguousarray(np.broadcast_to(space.low, self.shape), self.dtype)
            high = np.ascontiguousarray(np.broadcast_to(space.high, self.shape), self.dtype)
            self.domain = "box\t%s\t%s" % (low.tobytes().hex(), high.tobytes().hex())
        elif kind == "Discrete":
            self.dtype, self.shape = np.dtype(np.int64), ()
            self.start, self.size = int(space.start), int(space.n)
            self.domain = "discrete\t%d" % self.size
        elif kind == "MultiDiscrete":
            if np.ndim(space.nvec) != 1:
                raise ValueError("%s: MultiDiscrete of %d dimensions, want 1" % (key, np.ndim(space.nvec)))
            self.dtype, self.shape = np.dtype(np.int64), tuple(np.shape(space.nvec))
            start = np.asarray(getattr(space, "start", 0), np.int64)
            self.start = start if start.any() else 0
            self.size = np.asarray(space.nvec, np.int64)
            self.domain = "multi_discrete\t" + ",".join(str(int(n)) for n in space.nvec)
        elif kind == "MultiBinary":
            self.dtype, self.shape = np.dtype(np.int8), tuple(space.shape)
            self.domain = "multi_binary"
        else:
            raise ValueError("%s: space %s, want Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple"
                             % (key, kind))
        self.is_scalar = kind == "Discrete"
        self.has_start = kind == "MultiDiscrete" or kind == "Discrete"

    def line(self):
        return "\t".join((self.key, self.dtype.name, ",".join(map(str, self.shape)), self.domain))

    def writer(self, rows, lane):
        """A function that checks a value and puts it into the row of `lane`."""
        row, shape, start, size, key = rows[lane : lane + 1].reshape(self.shape), self.shape, self.start, self.size, self.key
        asarray, copyto, ndarray, dtype = np.asarray, np.copyto, np.ndarray, row.dtype

        def put(value):
            if not isinstance(value, ndarray):
                value = asarray(value)
            if value.shape != shape:
                raise ValueError("%s: got shape %s, want %s" % (key, value.shape, shape))
            if value.dtype is dtype:
                row[...] = value  # Half the time of copyto.
            else:
                copyto(row, value, "same_kind")

        def put_choice(value):
            value = asarray(value)
            if value.shape != shape:
                raise ValueError("%s: got shape %s, want %s" % (key, value.shape, shape))
            value = value - start
            if (value < 0).any() or (value >= size).any():
                raise ValueError("%s: got %s, which is outside its space" % (key, value + start))
            copyto(row, value, "same_kind")

        return put_choice if self.has_start else put

    def reader(self, rows, lane):
        """A function that makes the value of the row of `lane`."""
        start = self.start
        if self.is_scalar:
            item = rows.item
            integer = np.int64
            return lambda: integer(item(lane) + start)
        row = rows[lane : lane + 1].reshape(self.shape)
        if self.has_start and np.any(start):
            return lambda: row + start
        return row.copy


class Tree:
    """A space as leaves, and its values put together and taken apart."""

    def __init__(self, key, space):
        self.items, self.leaf = None, None
        kind = type(space).__name__
        if kind == "Dict":
            self.items = [(k, Tree(key + "/" + self.component(k), s)) for k, s in space.spaces.items()]
        elif kind == "Tuple":
            self.items = [(i, Tree("%s/%d" % (key, i), s)) for i, s in enumerate(space.spaces)]
        else:
            self.leaf = Leaf(key, space)
        self.kind = kind

    @staticmethod
    def component(name):
        text = str(name)
        if "\t" in text or "\n" in text or not text:
            raise ValueError("key %r of a Dict: want text without tabs and line ends" % text)
        return text.replace("\\", "\\\\").replace("/", "\\/")

    def leaves(self):
        return [self.leaf] if self.leaf else [leaf for _, tree in self.items for leaf in tree.leaves()]

    def writer(self, rows_of, prefix, lane):
        if self.leaf:
            return self.leaf.writer(rows_of(prefix + self.leaf.key, self.leaf), lane)
        puts = [(k, tree.writer(rows_of, prefix, lane)) for k, tree in self.items]

        def put(value):
            for k, put_one in puts:
                put_one(value[k])

        return put

    def reader(self, rows_of, lane):
        if self.leaf:
            return self.leaf.reader(rows_of(self.leaf.key, self.leaf), lane)
        gets = [(k, tree.reader(rows_of, lane)) for k, tree in self.items]
        if self.kind == "Tuple":
            return lambda: tuple(get() for _, get in gets)
        return lambda: {k: get() for k, get in gets}


try:
    OBSERVATION = Tree("observation", ENVS[0].observation_space)
    ACTION = Tree("action", ENVS[0].action_space)
except Exception as caught:  # pylint: disable=broad-except
    reply("error\t" + reason(caught))
    sys.exit(1)
reply("\n".join(["ok"] + [leaf.line() for tree in (OBSERVATION, ACTION) for leaf in tree.leaves()]))

# The layout: one line a leaf of the step, with its offset in the memory.
DATA, FDS, _, _ = socket.recv_fds(CONN, 4, 1)
if not FDS:
    os._exit(0)
if len(DATA) < 4:
    DATA += read(4 - len(DATA))
OFFSETS = {}
for line in read(struct.unpack("<I", DATA)[0]).decode("utf-8").split("\n"):
    name, offset = line.split("\t")
    OFFSETS[name] = int(offset)
MEMORY = mmap.mmap(FDS[0], 0)
os.close(FDS[0])


def rows_of(name, dtype, shape=()):
    """The rows of this child's lanes."""
    count = int(np.prod(shape, dtype=np.int64))
    first = OFFSETS[name] + FIRST * count * dtype.itemsize
    return np.frombuffer(MEMORY, dtype, LANES * count, first).reshape((LANES,) + tuple(shape))


def leaf_rows(name, leaf):
    return rows_of(name, leaf.dtype, leaf.shape)


MASK = memoryview(rows_of("#mask", np.dtype(np.uint8)))
AHEAD = memoryview(rows_of("#ahead", np.dtype(np.uint8)))
SEEDS = memoryview(rows_of("#seed", np.dtype(np.uint64)))
REWARD = memoryview(rows_of("next/reward", np.dtype(np.float32)))
TERMINATED = memoryview(rows_of("next/terminated", np.dtype(np.bool_)))
TRUNCATED = memoryview(rows_of("next/truncated", np.dtype(np.bool_)))
# child_watch.h: the states of all children, and the host.
CHILD, CHILDREN = int(sys.argv[6]), int(sys.argv[7])
WATCH = memoryview(MEMORY)[OFFSETS["#watch"] :][: 4 * (CHILDREN + 1)].cast("i")
WORKS, ANSWERS, DONE = 1, 2, 3
OFF = -2
LOOK_NS = 50000
RESETS = [env.reset for env in ENVS]
PUT_ROOT = [OBSERVATION.writer(leaf_rows, "", lane) for lane in range(LANES)]
PUT_FIRST = [OBSERVATION.writer(leaf_rows, "#first/", lane) for lane in range(LANES)]
STEPS = [
    (lane, env.step, ACTION.reader(leaf_rows, lane), OBSERVATION.writer(leaf_rows, "next/", lane))
    for lane, env in enumerate(ENVS)
]


def step(errors):
    """Steps all lanes; returns those whose episode has ended."""
    ended = []
    for lane, step_env, action, put in STEPS:
        try:
            observation, reward, terminated, truncated, _ = step_env(action())
            put(observation)
            REWARD[lane] = reward
            TERMINATED[lane] = terminated
            TRUNCATED[lane] = truncated
            if terminated or truncated:
                ended.append(lane)
        except Exception as error:  # pylint: disable=broad-except
            errors.append("%d\t%s" % (FIRST + lane, reason(error)))
    return ended


def reset(lanes, puts, errors):
    for lane in lanes:
        try:
            observation, _ = RESETS[lane](seed=SEEDS[lane])
            puts[lane](observation)
        except Exception as error:  # pylint: disable=broad-except
            errors.append("%d\t%s" % (FIRST + lane, reason(error)))


def answer(errors):
    if errors:
        reply("\n".join(errors))
    else:
        CONN.send(FINE)


def sleep(errors):
    """Answers, and waits for the next command; empty at the end."""
    answer(errors)
    return CONN.recv(1)


def look(errors):
    """The same, where children have processors of their own.

    The parent goes on where the host has ended. So the host sleeps at once. Others
    answer after it, and look for the command before they sleep; each for a while.
    """
    WATCH[CHILD] = ANSWERS
    host, now = WATCH[CHILDREN], time.monotonic_ns
    if host == CHILD:
        answer(errors)
        WATCH[CHILD] = DONE
        return CONN.recv(1)
    if host >= 0:
        end = now() + LOOK_NS
        while WORKS <= WATCH[host] < DONE and WATCH[CHILDREN] == host and now() < end:
            pass
    answer(errors)
    end = now() + LOOK_NS
    while now() < end:
        try:
            return CONN.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
    return CONN.recv(1)


def serve():
    next_command = sleep if WATCH[CHILDREN] == OFF else look
    command = next_command([])
    while command:
        WATCH[CHILD] = WORKS
        errors = []
        if command == b"S":
            ended = step(errors)
            # Lanes that ended begin anew before anybody asks, which saves a round
            # trip; in rows of their own, since the root has their last step. AHEAD
            # also tells the other side that the step is there, if this one fails.
            if ended and not errors:
                for lane in ended:
                    AHEAD[lane] = 1
                reset(ended, PUT_FIRST, errors)
        else:
            reset([lane for lane in range(LANES) if MASK[lane]], PUT_ROOT, errors)
        command = next_command(errors)


try:
    serve()
except (BrokenPipeError, ConnectionResetError):
    pass  # The other side went while an answer was on its way.
for each in ENVS:
    each.close()
