# SPDX-License-Identifier: Apache-2.0
"""SAC on Pendulum with TorchRL's collector, actor, SACLoss and SoftUpdate.

The replay buffer is Rill's or TorchRL's own: take_buffer() is all that differs.
"""

import argparse
import json
import time

import torch
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, TransformedEnv
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import SACLoss, SoftUpdate


def take_buffer(name):
    if name == "rill":
        from rill import LazyTensorStorage, TensorDictReplayBuffer
    else:
        from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    return LazyTensorStorage, TensorDictReplayBuffer


def make_actor(env):
    spec = env.action_spec
    network = torch.nn.Sequential(
        MLP(in_features=3, out_features=2, num_cells=[64, 64], activation_class=torch.nn.ReLU),
        NormalParamExtractor(scale_lb=0.01),
    )
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": spec.space.low, "high": spec.space.high},
        return_log_prob=False,
    )


def train(buffer, seed, total_steps):
    """Returns of all episodes, in order."""
    torch.manual_seed(seed)
    LazyTensorStorage, TensorDictReplayBuffer = take_buffer(buffer)
    env = TransformedEnv(GymEnv("Pendulum-v1"), RewardSum())
    env.set_seed(seed)
    actor = make_actor(env)
    value = ValueOperator(
        MLP(in_features=4, out_features=1, num_cells=[64, 64], activation_class=torch.nn.ReLU),
        in_keys=["observation", "action"],
    )
    loss_module = SACLoss(actor, value, num_qvalue_nets=2, delay_qvalue=True)
    loss_module.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss_module, tau=0.005)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-3)

    replay = TensorDictReplayBuffer(storage=LazyTensorStorage(50_000), batch_size=128)
    collector = Collector(
        env, actor, frames_per_batch=50, total_frames=total_steps, init_random_frames=500
    )
    returns = []
    for data in collector:
        replay.extend(data)
        ended = data["next", "done"].squeeze(-1)
        returns += data["next", "episode_reward"][ended].flatten().tolist()
        if len(replay) < 500:
            continue
        for _ in range(50):
            losses = loss_module(replay.sample())
            loss = losses["loss_actor"] + losses["loss_qvalue"] + losses["loss_alpha"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            target.step()
    collector.shutdown()
    return returns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--buffer", choices=["rill", "original"], default="rill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_steps", type=int, default=6000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    returns = train(options.buffer, options.seed, options.total_steps)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "returns": returns}))


if __name__ == "__main__":
    main()
