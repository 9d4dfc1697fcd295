# SPDX-License-Identifier: Apache-2.0
"""One participant of benchmarks/compare: answers requests as compare_main.cc does.

usage: worker.py numpy|rill|torchrl|cpprb|stable_baselines3|flashbax|gymnasium|envpool
"""
import importlib
import os
import sys
import time
import traceback
import warnings

from prepared import Missing, Prepared

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
warnings.filterwarnings("ignore")


def measure(prepared, seconds):
    """Microseconds a call, over at least `seconds` of them."""
    taken, calls = 0.0, 0
    clock = time.perf_counter
    while calls == 0 or taken < seconds:
        if prepared.before is not None:
            prepared.before()
        # Twenty between two looks at the clock, where nothing comes between.
        number = 1 if prepared.before is not None or calls < 3 else 20
        number = 1 if calls and taken / calls > seconds / 40 else number
        begin = clock()
        for _ in range(number):
            prepared.run()
        taken += clock() - begin
        calls += number
    return taken / calls * 1e6


def answer(participant, line, held):
    request, *words = line.split()
    if request == "prepare":
        held.clear()
        operation, *arguments = words
        maker = getattr(participant, operation, None)
        if maker is None:
            return "missing it has none"
        made = maker(*(int(word) if word.isdigit() else word for word in arguments))
        held.append(made if isinstance(made, Prepared) else Prepared(made))
        # The first call compiles, or touches fresh memory.
        measure(held[0], 0)
        return "ready"
    return "us %.9g" % measure(held[0], float(words[0]))


def main():
    # What a library prints is not an answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name = sys.argv[1]
    try:
        participant = importlib.import_module("peer_" + name).Participant()
    except Exception as error:  # Whatever it is, there is nothing to measure.
        print("missing", " ".join(str(error).split())[:200] or type(error).__name__, file=out, flush=True)
        return
    print("ready", participant.version, file=out, flush=True)
    held = []
    for line in sys.stdin:
        try:
            said = answer(participant, line, held)
        except Missing as error:
            said = "missing %s" % error
        except Exception as error:  # One case fails, the others go on.
            traceback.print_exc()
            said = "missing it failed: %s" % (" ".join(str(error).split())[:200] or type(error).__name__)
        print(said, file=out, flush=True)


if __name__ == "__main__":
    main()
