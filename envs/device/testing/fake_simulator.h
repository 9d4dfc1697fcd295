// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_FAKE_SIMULATOR_H_
#define RILL_ENVS_DEVICE_TESTING_FAKE_SIMULATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/env.h"
#include "rill/tensors/dtype.h"

namespace rill {

// A simulator on fake:0 whose kernels step an environment in host memory: what
// it computes is known, and the fake device shows each wait that is missing.
// All of its work is on a stream of its own, and what it lends are DLPack
// capsules.
struct FakeSimulatorOptions {
  // False: new arrays at each call, which it keeps no longer than Lend.
  bool fills_in_place = true;
  // The flags of lanes and groups that it lends.
  std::vector<std::string> flags = {"terminated", "truncated"};
  DType flag_dtype = DType::kBool;  // Bool, uint8, int64 or float32.
  // Lends [lanes] for [lanes, 1].
  bool drops_last_one = false;
  bool saves_state = false;
};

// `env` is in host memory; kernels step it, and nobody else may then. Errors of
// its steps and resets come from Lend after the kernel has run.
absl::StatusOr<std::unique_ptr<DeviceSimulator>> MakeFakeSimulator(
    std::unique_ptr<Env> env, const FakeSimulatorOptions& options = {});

// The environment of such a simulator of `env`.
absl::StatusOr<std::unique_ptr<Env>> MakeFakeDeviceEnv(
    absl::StatusOr<std::unique_ptr<Env>> env,
    const FakeSimulatorOptions& options = {}, bool check_actions = true);

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_FAKE_SIMULATOR_H_
