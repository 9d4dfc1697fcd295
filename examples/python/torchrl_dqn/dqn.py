# SPDX-License-Identifier: Apache-2.0
"""DQN on CartPole with TorchRL's collector, actor, DQNLoss and SoftUpdate.

The replay buffer is Rill's or TorchRL's own: take_buffer() is all that differs.
"""

import argparse
import json
import time

import torch
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate


def take_buffer(name):
    if name == "rill":
        from rill import LazyTensorStorage, TensorDictReplayBuffer
    else:
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    return LazyTensorStorage, TensorDictReplayBuffer


def train(buffer, seed, total_steps):
    """Returns of all episodes, in order."""
    torch.manual_seed(seed)
    LazyTensorStorage, TensorDictReplayBuffer = take_buffer(buffer)
    env = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), RewardSum())
    env.set_seed(seed)
    actor = QValueActor(
        MLP(in_features=4, out_features=2, num_cells=[120, 84]),
        in_keys=["observation"],
        spec=env.action_spec,
    )
    explore = EGreedyModule(env.action_spec, eps_end=0.05, annealing_num_steps=total_steps // 4)
    loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=True)
    loss_module.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss_module, tau=0.005)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-3)

    replay = TensorDictReplayBuffer(storage=LazyTensorStorage(50_000), batch_size=128)
    collector = Collector(
        env,
        TensorDictSequential(actor, explore),
        frames_per_batch=100,
        total_frames=total_steps,
        init_random_frames=1000,
    )
    returns = []
    for data in collector:
        explore.step(data.numel())
        replay.extend(data)
        ended = data["next", "done"].squeeze(-1)
        returns += data["next", "episode_reward"][ended].flatten().tolist()
        if len(replay) < 1000:
            continue
        for _ in range(50):
            loss = loss_module(replay.sample())["loss"]
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(loss_module.parameters(), 10.0)
            optimizer.step()
            target.step()
    collector.shutdown()
    return returns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=20_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    returns = train(options.buffer, options.seed, options.total_steps)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "returns": returns}))


if __name__ == "__main__":
    main()
