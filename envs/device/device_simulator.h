// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_DEVICE_SIMULATOR_H_
#define RILL_ENVS_DEVICE_DEVICE_SIMULATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/backend.h"
#include "rill/envs/env.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// A simulator that steps all lanes on a device, on a stream of its own, and
// lends the arrays of its state: Isaac Lab, Brax, MJX. MakeDeviceEnv
// (device_env.h) makes an Env of one.
//
// Each call enqueues its work and returns; it waits for nothing. The caller
// orders what it reads and writes with the stream.
// Thread-safety: thread-compatible.
class DeviceSimulator {
 public:
  virtual ~DeviceSimulator() = default;

  // Where all of its work is enqueued: {.value = cudaStream_t}, or {} for the
  // device's default stream. The same stream as long as the simulator lives.
  virtual StreamHandle stream() const = 0;

  // As Env::Seed.
  virtual absl::Status Seed(uint64_t seed) = 0;

  // Begins episodes in the lanes and groups of the mask, which is gone when the
  // call returns. The state of other lanes stays.
  virtual absl::Status Reset(const ResetMask& mask) = 0;

  // One step of all lanes, which must not reset those that end: Lend gives the
  // true final observation. `action` has the leaves of EnvSpec::action, the
  // same tensors at each call, unchanged until the stream got there.
  virtual absl::Status Step(const TensorDict& action) = 0;

  // The arrays [lanes] that hold the state after the last Reset or Step once
  // the stream got there. Keys, dtypes and shapes: DeviceEnvOptions. FromDLPack
  // (tensors/dlpack) makes a tensor of a capsule without a copy; the
  // capsule's deleter is called when the Env needs the array no more.
  virtual absl::StatusOr<TensorDict> Lend() = 0;

  // The whole state of all lanes, random streams included: a copy [lanes] on
  // the device, which holds it once the stream got there. Lent arrays need not
  // be part of it. UNIMPLEMENTED where the simulator cannot.
  virtual absl::StatusOr<TensorDict> SaveState() {
    return absl::UnimplementedError("the simulator cannot save its state");
  }
  // `state` has the keys, dtypes and shapes of SaveState, on the device, and is
  // unchanged until the stream got there. An error changes nothing.
  virtual absl::Status LoadState(const TensorDict& /*state*/) {
    return absl::UnimplementedError("the simulator cannot load a state");
  }
};

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_DEVICE_SIMULATOR_H_
