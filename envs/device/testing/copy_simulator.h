// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_COPY_SIMULATOR_H_
#define RILL_ENVS_DEVICE_TESTING_COPY_SIMULATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/env.h"

namespace rill {

// A simulator on a device of any kind. The host steps an environment in host
// memory. Copies on a stream of the simulator's own bring its leaves to the
// lent arrays, in place. So a test knows each value.
//
// `delay_bytes` of device memory are filled before the copies, so that they
// come late: without a wait or an order of streams a reader gets older arrays.
absl::StatusOr<std::unique_ptr<DeviceSimulator>> MakeCopySimulator(
    std::unique_ptr<Env> env, Device device, int64_t delay_bytes = 0);

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_COPY_SIMULATOR_H_
