// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/devices/testing/cart_pole_collector.h"

#include <utility>

#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/device/testing/copy_simulator.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env_spec.h"

namespace rill {
namespace {

constexpr int64_t kDelayBytes = 64 << 20;  // Some 30 us of a GPU.

absl::StatusOr<std::unique_ptr<DeviceSimulator>> MakeSimulator(
    std::unique_ptr<Env> host, Device device) {
  if (device.type == Device::Type::kFake) {
    return MakeFakeSimulator(std::move(host));
  }
  return MakeCopySimulator(std::move(host), device, kDelayBytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Env>> MakeCartPoleOn(Device device) {
  RILL_ASSIGN_OR_RETURN(
      auto host, MakeCartPole({.lanes = kLanes, .max_episode_steps = 40}));
  if (device.is_cpu()) return host;
  EnvSpec spec = host->spec();
  spec.device = device;
  RILL_ASSIGN_OR_RETURN(auto simulator, MakeSimulator(std::move(host), device));
  return MakeDeviceEnv(std::move(spec), std::move(simulator),
                       {.check_actions = false});
}

SyncCollector::Options CartPoleCollectorOptions(Policy* policy) {
  SyncCollector::Options options;
  options.producer = 0;
  options.policy = policy;
  options.frames_per_batch = kFrames;
  options.init_random_frames = 3 * kLanes;
  options.set_truncated = true;
  options.seed = 5;
  return options;
}

absl::StatusOr<std::unique_ptr<SyncCollector>> CollectCartPole(
    Device env, SyncCollector::Options options) {
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPoleOn(env));
  return SyncCollector::Create(std::move(options));
}

absl::StatusOr<std::vector<TensorDict>> HostCartPoleBatches(int64_t count) {
  AsyncPolicy policy;
  RILL_ASSIGN_OR_RETURN(
      auto collector,
      CollectCartPole(Device::Cpu(), CartPoleCollectorOptions(&policy)));
  std::vector<TensorDict> batches;
  for (int64_t i = 0; i < count; ++i) {
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, collector->Next());
    RILL_ASSIGN_OR_RETURN(batches.emplace_back(), batch.Clone());
  }
  return batches;
}

}  // namespace rill
