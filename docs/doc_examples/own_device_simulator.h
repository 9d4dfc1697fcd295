// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DOCS_DOC_EXAMPLES_OWN_DEVICE_SIMULATOR_H_
#define RILL_DOCS_DOC_EXAMPLES_OWN_DEVICE_SIMULATOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/device_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dlpack/dlpack.h"
#include "rill/tensors/dlpack/dlpack_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

// The library of a simulator, as docs/environments.md takes it for granted. It
// fills arrays on a device in place: obs_buf float32 [lanes, 2], rew_buf
// float32 [lanes], reset_buf and time_out_buf int64 [lanes].
namespace slide {

struct World;
struct DeleteWorld {
  void operator()(World* world) const;
};
using WorldPtr = std::unique_ptr<World, DeleteWorld>;

WorldPtr MakeWorld(int64_t lanes);
void* Stream(World* world);
void Seed(World* world, uint64_t seed);
void ResetLanes(World* world, const uint8_t* mask);
void Step(World* world, const float* action);
rill::DLManagedTensor* ToDLPack(World* world, absl::string_view array);

}  // namespace slide

// The environment that docs/environments.md shows.
absl::StatusOr<std::unique_ptr<rill::Env>> MakeSlide(int64_t lanes,
                                                     rill::Device device);

#endif  // RILL_DOCS_DOC_EXAMPLES_OWN_DEVICE_SIMULATOR_H_
