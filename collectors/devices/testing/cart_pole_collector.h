// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_DEVICES_TESTING_CART_POLE_COLLECTOR_H_
#define RILL_COLLECTORS_DEVICES_TESTING_CART_POLE_COLLECTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/collectors/sync_collector.h"
#include "rill/device/device.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Collectors of CartPole for tests, in host memory or on a device.
inline constexpr int64_t kLanes = 128;
inline constexpr int64_t kTime = 10;
inline constexpr int64_t kFrames = kLanes * kTime;  // A batch.

// On fake:0 by a FakeSimulator, on another device by a CopySimulator whose
// copies come late.
absl::StatusOr<std::unique_ptr<Env>> MakeCartPoleOn(Device device);

// A collector in host memory.
SyncCollector::Options CartPoleCollectorOptions(Policy* policy);

absl::StatusOr<std::unique_ptr<SyncCollector>> CollectCartPole(
    Device env, SyncCollector::Options options);

// The first batches of AsyncPolicy in host memory, of which nothing touches a
// device.
absl::StatusOr<std::vector<TensorDict>> HostCartPoleBatches(int64_t count);

}  // namespace rill

#endif  // RILL_COLLECTORS_DEVICES_TESTING_CART_POLE_COLLECTOR_H_
