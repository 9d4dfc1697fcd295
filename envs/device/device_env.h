// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_DEVICE_ENV_H_
#define RILL_ENVS_DEVICE_DEVICE_ENV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"

namespace rill {

// An environment of a simulator that works on EnvSpec::device.
//
// Lent arrays. DeviceSimulator::Lend has a leaf for each observation and each
//   reward, of the dtype and shape [lanes, ...] in the specs, contiguous, on
//   the device. A last dimension of 1 may be missing: [lanes] for [lanes, 1].
//   Other leaves are ignored.
// Flags. Lend has some of `done`, `terminated` and `truncated`, for the lane
//   and for each group, in any dtype that Cast takes; not 0 is true. They are
//   copied to the host and written to the step as bool. A simulator that lends
//   `done` and one of the others gets the third from them. `done` alone means
//   terminated: a time limit must be lent as `truncated`. After Reset no flag
//   and no reward is read.
// Streams. Before Reset and BeginStep enqueue anything, the simulator's stream
//   waits for the default stream of the device. There the caller's work on
//   leaves belongs: a policy that enqueues actions on another stream orders it
//   before the default one. Reset and EndStep block the host until the
//   simulator's stream is done: all leaves are complete when they return.
// Errors. A reward that is not finite fails its lane, as Env::BeginStep says. A
//   lent array that does not fit and an error of the simulator or the device
//   fail all lanes. EndStep returns these errors.
// State. SaveState copies that of the simulator to the host: entries
//   "simulator", and "running" bool [lanes, 1]. UNIMPLEMENTED where the
//   simulator cannot save; a collector then begins fresh episodes.
// Thread-safety: thread-compatible.
// Cost: a step blocks the host twice. It copies flags and rewards to the host
//   and flags back; a reset is one gather and one scatter of its lanes' rows.
//
// Example (DeviceEnvTest.Example runs it):
//   EnvSpec spec = {.name = "Ant", .lanes = 4096, .device = Device::Cuda()};
//   RILL_RETURN_IF_ERROR(spec.observation.Set(
//       "observation", LeafSpec::Unbounded(DType::kFloat32, {60})));
//   RILL_RETURN_IF_ERROR(spec.action.Set(
//       "action", LeafSpec::Bounded(DType::kFloat32, {8}, -1, 1)));
//   RILL_ASSIGN_OR_RETURN(auto env,
//                         MakeDeviceEnv(spec, std::move(simulator)));
struct DeviceEnvOptions {
  // True (Isaac): Lend gives the same arrays at each call, which the simulator
  // fills in place, from before the first Reset on. They are leaves of the step
  // below `next`, without a copy, so that a reset changes rows there too. An
  // array that moves is an error.
  // False (Brax, MJX): Lend gives new arrays, which are copied to the leaves
  // on the simulator's stream and given back then.
  bool fills_in_place = true;
  // Actions are copied to the host and checked against their specs, which waits
  // for the default stream; an unbounded spec needs none of it. False: the
  // simulator gets what the policy wrote, and says itself what is wrong.
  bool check_actions = true;
};

// INVALID_ARGUMENT: the errors of StepSpec, no simulator, and with
// fills_in_place lent arrays that do not fit; each names the leaf. An error of
// Lend as it is; FAILED_PRECONDITION where the device is not linked in.
absl::StatusOr<std::unique_ptr<Env>> MakeDeviceEnv(
    EnvSpec spec, std::unique_ptr<DeviceSimulator> simulator,
    const DeviceEnvOptions& options = {});

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_DEVICE_ENV_H_
