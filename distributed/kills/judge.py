# SPDX-License-Identifier: Apache-2.0
"""What became of every row of a run whose programs were killed.

Each program leaves a ledger, <role>-<number>-<start>, of lines
"<nanoseconds> <word> <numbers>":

  all        begin PID
  collector  rows ACKNOWLEDGED LOST VERSION; end WRITTEN
  shard      has PRODUCER START FIRST LAST, of what its checkpoint holds, in the
             order of its rows, then has_all; serving; saving, saved; has and
             has_all again at the end, then end
  learner    resumed BATCHES; serving; batches BATCHES; saved BATCHES; end BATCHES

A collector numbers its rows from 0, and they are acknowledged in that order.
"""
import collections
import pathlib
import re

Line = collections.namedtuple("Line", "time word numbers")
Ledger = collections.namedtuple("Ledger", "role number start lines")
Report = collections.namedtuple("Report", "collectors written stored lost said_lost")

_NAME = re.compile(r"(collector|shard|learner)-(\d+)-(\d+)")


def parse(text):
    """Whole lines; a kill may have cut the last one."""
    lines = []
    for line in text.split("\n")[:-1]:
        words = line.split(" ")
        lines.append(Line(int(words[0]), words[1], [int(word) for word in words[2:]]))
    return lines


def read_ledgers(directory):
    ledgers = []
    for path in pathlib.Path(directory).iterdir():
        name = _NAME.fullmatch(path.name)
        if name:
            ledgers.append(Ledger(name[1], int(name[2]), int(name[3]), parse(path.read_text())))
    return sorted(ledgers, key=lambda one: one[:3])


def minus(numbers, taken):
    """Half-open ranges of `numbers` that are in none of the sorted ranges `taken`."""
    left = []
    for first, end in numbers:
        for low, high in taken:
            if high <= first or low >= end:
                continue
            if low > first:
                left.append((first, low))
            first = high
        if first < end:
            left.append((first, end))
    return left


def count(ranges):
    return sum(end - first for first, end in ranges)


class Shard:
    """One start of a shard."""

    def __init__(self, ledger):
        self.number, self.start = ledger.number, ledger.start
        self.saves, self.began, self.holds = [], None, []
        rows, saving = collections.defaultdict(list), None
        for line in ledger.lines:
            if line.word == "has":
                producer, start, first, last = line.numbers
                rows[producer, start].append((first, last + 1))
            elif line.word == "has_all":
                self.holds.append(rows)
                rows = collections.defaultdict(list)
            elif line.word == "serving":
                self.began = line.time
            elif line.word == "saving":
                saving = line.time
            elif line.word == "saved":
                self.saves.append(saving)
        self.has_ended = ledger.lines[-1:] != [] and ledger.lines[-1].word == "end"

    def __str__(self):
        return f"start {self.start} of shard {self.number}"


class Collector:
    """One start of a collector."""

    def __init__(self, ledger):
        self.client = (ledger.number, ledger.start)
        self.reports = [(line.time, *line.numbers) for line in ledger.lines if line.word == "rows"]
        ends = [line.numbers[0] for line in ledger.lines if line.word == "end"]
        self.written = ends[0] if ends else None  # None: it was killed.

    def __str__(self):
        return "start %d of collector %d" % self.client[::-1]

    def acknowledged(self, time):
        return max((rows for at, rows, _, _ in self.reports if at <= time), default=0)

    def last(self):
        return self.reports[-1][1:3] if self.reports else (0, 0)

    def told_by(self, time):
        """How many rows were acknowledged when it first said that a shard, which
        began at `time`, had lost some."""
        before = max((lost for at, _, lost, _ in self.reports if at <= time), default=0)
        return min((rows for at, rows, lost, _ in self.reports if at > time and lost > before),
                   default=float("inf"))


def end_of(rows):
    return rows[-1][1] if rows else 0


def judge_order(shard, faults):
    """No row is there twice."""
    for holds in shard.holds:
        for client, rows in holds.items():
            for (_, end), (first, _) in zip(rows, rows[1:]):
                if first < end:
                    faults.append(f"{shard} has row {first} of producer {client[0]}, start {client[1]}, "
                                  f"behind row {end - 1}: it is there twice, or out of order")


def judge_client(collector, starts, stored, faults):
    """One client of the shard whose starts these are, and which has `stored` at
    the end. Returns the ranges that are lost."""
    client = collector.client
    acknowledged, said_lost = collector.last()
    lost = minus([(0, max(acknowledged, end_of(stored)))], stored)
    explained = []  # (start of the shard, range)
    for first, end in lost:
        # The shard came back without what was behind its checkpoint.
        by = [start for start in starts[1:] if end_of(start.holds[0][client]) == first]
        if not by:
            faults.append(f"{collector}: rows {first} to {end - 1} are lost, though no checkpoint ended there")
        explained += [(start, (first, min(end, collector.told_by(start.began)))) for start in by]
    for i, start in enumerate(starts):
        saves = [time for earlier in starts[:i] for time in earlier.saves]
        wanted = collector.acknowledged(max(saves)) if saves else 0
        known = [rows for by, rows in explained if by.start < start.start]
        missing = minus(minus([(0, wanted)], start.holds[0][client]), sorted(known))
        if missing:
            faults.append(f"{start} has not rows {missing} of {collector}, "
                          f"{wanted} of which were acknowledged before its last checkpoint")
    if collector.written is None:
        if count(lost) < said_lost:
            faults.append(f"{collector} says that {said_lost} rows were lost, but {count(lost)} are")
    elif acknowledged != collector.written or said_lost != count(lost) or end_of(stored) > acknowledged:
        faults.append(f"{collector} wrote {collector.written} rows, and says that {acknowledged} were "
                      f"acknowledged and {said_lost} lost; {count(lost)} are, and the newest is {end_of(stored) - 1}")
    return lost


def judge_others(ledgers, faults):
    """Learners go on from their checkpoints; weights never get older."""
    saved = collections.defaultdict(int)
    for one in ledgers:
        versions = [line.numbers[2] for line in one.lines if line.word == "rows"]
        if versions != sorted(versions):
            faults.append(f"start {one.start} of collector {one.number} took older weights")
        if one.role != "learner":
            continue
        for line in one.lines:
            if line.word == "resumed" and line.numbers[0] < saved[one.number]:
                faults.append(f"start {one.start} of learner {one.number} goes on from batch {line.numbers[0]}, "
                              f"though {saved[one.number]} was saved")
            if line.word == "saved":
                saved[one.number] = line.numbers[0]


def judge(ledgers, is_ring=False):
    """What is wrong, as sentences, and the sums. In a ring, where old rows go,
    only order and the other parts can be judged."""
    faults = []
    shards = collections.defaultdict(list)
    for one in ledgers:
        if one.role == "shard":
            shard = Shard(one)
            judge_order(shard, faults)
            if shard.began is not None:
                shards[one.number].append(shard)
    judge_others(ledgers, faults)
    collectors = [Collector(one) for one in ledgers if one.role == "collector"]
    totals = collections.Counter()
    for number, starts in shards.items():
        if not starts[-1].has_ended:
            faults.append(f"shard {number} did not end in order")
            continue
        at_end = starts[-1].holds[-1]
        totals["stored"] += sum(count(rows) for rows in at_end.values())
        if is_ring:
            continue
        holds = [start.holds[0] for start in starts] + [at_end]
        for before, after in zip(holds, holds[1:]):
            for client, rows in before.items():
                gone = minus(rows, after[client])
                if gone:
                    faults.append(f"rows {gone} of producer {client[0]}, start {client[1]}, were in a checkpoint "
                                  f"of shard {number}, and are gone")
        for collector in collectors:
            if collector.client[0] % len(shards) == number:
                totals["lost"] += count(judge_client(collector, starts, at_end[collector.client], faults))
    return faults, Report(collectors=len(collectors), written=sum(one.last()[0] for one in collectors),
                          stored=totals["stored"], lost=totals["lost"],
                          said_lost=sum(one.last()[1] for one in collectors))


def sentence(report, is_ring=False):
    text = f"{report.collectors} starts of collectors had {report.written} rows acknowledged; "
    if is_ring:
        return text + f"the last {report.stored} are stored, each once"
    return text + (f"{report.stored} are stored, each once; {report.lost} were lost behind checkpoints, "
                   f"{report.said_lost} of which collectors that lived said so")
