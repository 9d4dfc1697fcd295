# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/torch measures: Rill's programs, and TorchRL in turns with them.

Figures are CPU time in us: means of a turn, medians of turns. The data part of an
update is the sample, the batch as tensors of torch, and the priorities. Without
TorchRL its lines are left out, with the reason.

usage: torch_peers.py DQN_UPDATE_BENCHMARK TORCH_POLICY_BENCHMARK [--quick]
"""
import json
import logging
import statistics
import subprocess
import sys
import time
import warnings

TASKS = (("128 rows of CartPole, 120 and 84 units", 0), ("32 rows of 4x84x84 uint8, Mnih et al.'s network", 1))
POLICIES = (("the module alone", "BM_Module"), ("greedy", "BM_TorchPolicy/actions:1"),
            ("draws, with log-probability", "BM_TorchPolicy/actions:2"))
LANES = 64


def benchmark_of(output, name):
    """The benchmark of that name in Google Benchmark's JSON, with its CPU time in us."""
    found = [of for of in json.loads(output)["benchmarks"] if of["name"] == name]
    if len(found) != 1:
        raise SystemExit("want one benchmark %s, got %d" % (name, len(found)))
    result = found[0]
    if result.get("error_occurred"):
        raise SystemExit("%s: %s" % (name, result["error_message"]))
    result["us"] = result["cpu_time"] * {"ns": 1e-3, "us": 1, "ms": 1e3}[result["time_unit"]]
    return result


def run_benchmark(program, name, seconds):
    output = subprocess.run(
        [program, "--benchmark_filter=^%s$" % name, "--benchmark_min_time=%gs" % seconds, "--benchmark_format=json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return benchmark_of(output, name)


def update_lines(ours, theirs=None):
    """Lines of a DQN update; each side is a list of turns (update, data)."""
    lines = []
    for name, turns in (("Rill", ours), ("TorchRL", theirs)):
        if turns:
            update, data = (statistics.median(part) for part in zip(*turns))
            lines.append("  %-8s update %10.1f us   data part %8.1f us   %5.1f %%" %
                         (name, update, data, 100 * data / update))
    if theirs:
        # Of each turn: both met the same machine in it.
        update, data = (statistics.median(b[i] / a[i] for a, b in zip(ours, theirs)) for i in (0, 1))
        lines.append("  times    update %10.2f      data part %8.1f" % (update, data))
    return lines


def policy_lines(ours, theirs=None):
    """Lines of 64 lanes; each side is, for each of POLICIES, a list of turns."""
    lines = []
    for side, turns in (("Rill", ours), ("TorchRL", theirs)):
        if turns:
            for (name, _), times in zip(POLICIES, turns):
                above = statistics.median(a - b for a, b in zip(times, turns[0]))
                lines.append("  %-8s %-30s %8.1f us   above it %7.1f us" % (side, name, statistics.median(times), above))
    return lines


class Peer:
    """TorchRL with one thread of torch, on the same rows and networks."""

    def __init__(self):
        import torch
        import torchrl
        torch.set_num_threads(1)
        self.torch = torch
        self.name = "TorchRL %s, torch %s" % (torchrl.__version__, torch.__version__)

    def network(self, is_images):
        nn = self.torch.nn
        if not is_images:
            return nn.Sequential(nn.Linear(4, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 2))
        return nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6))

    def update(self, is_images):
        """A function that makes one update and gives its time and its data part's, in us."""
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer
        torch = self.torch
        rows = 2_000 if is_images else 50_000
        observation = (rows, 4, 84, 84) if is_images else (rows, 4)
        dtype = torch.uint8 if is_images else torch.float32
        buffer = TensorDictPrioritizedReplayBuffer(
            alpha=0.6, beta=0.4, storage=LazyTensorStorage(rows), batch_size=32 if is_images else 128)
        buffer.extend(TensorDict({
            "observation": torch.zeros(observation, dtype=dtype),
            "action": torch.zeros(rows, dtype=torch.int64),
            "next": {"observation": torch.zeros(observation, dtype=dtype),
                     "reward": torch.zeros(rows, 1),
                     "terminated": torch.zeros(rows, 1, dtype=torch.bool),
                     "done": torch.zeros(rows, 1, dtype=torch.bool)},
        }, [rows]))
        network = self.network(is_images)
        adam = torch.optim.Adam(network.parameters(), 1e-4)

        def values(pixels):
            return network(pixels.float() / 255 if pixels.dtype == torch.uint8 else pixels)

        def learn(batch):
            goal = (batch["next", "reward"].flatten() +
                    0.99 * values(batch["next", "observation"]).detach().amax(-1) *
                    batch["next", "terminated"].flatten().logical_not())
            chosen = values(batch["observation"]).gather(-1, batch["action"].view(-1, 1)).flatten()
            adam.zero_grad()
            torch.nn.functional.huber_loss(chosen, goal).backward()
            adam.step()
            return (goal - chosen).detach().abs()

        def run():
            begin = time.process_time()
            batch = buffer.sample()
            sampled = time.process_time()
            errors = learn(batch)
            learned = time.process_time()
            buffer.update_priority(batch["index"], errors)
            end = time.process_time()
            return (end - begin) * 1e6, (end - learned + sampled - begin) * 1e6

        return run

    def policies(self):
        """For each of POLICIES a function that acts once."""
        from tensordict import TensorDict
        from tensordict.nn import TensorDictModule
        from torchrl.modules import ProbabilisticActor, QValueActor
        torch = self.torch
        nn = torch.nn
        network = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        greedy = QValueActor(network, in_keys=["observation"], action_space="categorical")
        draws = ProbabilisticActor(
            TensorDictModule(network, ["observation"], ["logits"]), in_keys=["logits"],
            distribution_class=torch.distributions.Categorical, return_log_prob=True)
        observation = torch.zeros(LANES, 4)
        root = TensorDict({"observation": observation}, [LANES])

        def acting(act):
            def run():
                with torch.inference_mode():
                    act()
            return run

        return [acting(act) for act in (lambda: network(observation), lambda: greedy(root), lambda: draws(root))]


def mean_update(run, seconds):
    """The means (update, data part) of updates that take so long together."""
    end = time.monotonic() + seconds
    run()
    times = [run()]
    while time.monotonic() < end:
        times.append(run())
    return tuple(statistics.fmean(part) for part in zip(*times))


def mean_us(run, seconds):
    """As Google Benchmark measures: the mean of many calls."""
    end = time.monotonic() + seconds
    run()
    begin, calls = time.process_time(), 0
    while time.monotonic() < end or not calls:
        for _ in range(100):
            run()
        calls += 100
    return (time.process_time() - begin) / calls * 1e6


def main(dqn_update, torch_policy, *flags):
    is_quick = "--quick" in flags
    turns, seconds = (1, 0.1) if is_quick else (7, 2)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    peer = None
    try:
        peer = Peer()
        print("Rill and %s; one core, CPU time, medians of %d turns" % (peer.name, turns))
    except ImportError as error:
        print("TorchRL: skipped: %s" % error)
    for name, task in TASKS:
        theirs_update = peer and peer.update(task == 1)
        ours, theirs = [], []
        for _ in range(turns):
            result = run_benchmark(dqn_update, "BM_Update/images:%d" % task, seconds)
            ours.append((result["update_us"], result["data_us"]))
            if peer:
                theirs.append(mean_update(theirs_update, seconds))
        print("\n".join(["DQN update, " + name] + update_lines(ours, theirs)), flush=True)
    ours, theirs = ([[] for _ in POLICIES] for _ in range(2))
    acts = peer.policies() if peer else ()
    for _ in range(turns):
        for i, (_, name) in enumerate(POLICIES):
            ours[i].append(run_benchmark(torch_policy, name, seconds / 4)["us"])
        for i, act in enumerate(acts):
            theirs[i].append(mean_us(act, seconds / 4))
    print("\n".join(["Acting, %d lanes of CartPole, 64 units" % LANES] + policy_lines(ours, peer and theirs)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
