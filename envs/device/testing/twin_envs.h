// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_DEVICE_TESTING_TWIN_ENVS_H_
#define RILL_ENVS_DEVICE_TESTING_TWIN_ENVS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/transformed_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"

namespace rill {

// Transforms beside an environment of random steps, with actions of a spec.
struct TransformsUnderTest {
  std::function<TransformedEnv::Transforms()> make;
  LeafSpec action = LeafSpec::Categorical(3);
  // Those of another TransformedEnv around the first; null: there is none.
  std::function<TransformedEnv::Transforms()> make_outer = nullptr;
};

// Takes functions that each return a StatusOr of a transform.
template <typename... Makers>
std::function<TransformedEnv::Transforms()> ChainOf(Makers... makers) {
  return [makers...] {
    TransformedEnv::Transforms transforms;
    (transforms.push_back(*makers()), ...);
    return transforms;
  };
}

// Two environments of one RandomEnv and equal transforms, one in host memory
// and one on a device, which are driven in step.
class TwinEnvs {
 public:
  static constexpr int64_t kLanes = 5;

  // The leaves of their observations: `observation` float32 [4], `wide` float64
  // [3], `pixels` uint8 [6, 5, 3], `planes` float32 [3, 6, 5], `lives` int16
  // [1] and `legal` bool [3].
  static TensorDictSpec Observation();
  // One on fake:0 of a FakeSimulator, without transforms.
  static absl::StatusOr<std::unique_ptr<Env>> OnDevice(
      const LeafSpec& action, const DeviceEnvOptions& options);

  // With that as the second one. `stream`: of its driver.
  static absl::StatusOr<TwinEnvs> Create(const TransformsUnderTest& transforms,
                                         const DeviceEnvOptions& options,
                                         const Stream* stream = nullptr);
  // With a CopySimulator on any device.
  static absl::StatusOr<TwinEnvs> CreateOn(
      Device device, const TransformsUnderTest& transforms,
      const Stream* stream = nullptr);

  TransformedEnv& host() { return *host_; }
  TransformedEnv& there() { return *there_; }

  // Each compares the steps afterwards. An error names the difference.
  absl::Status ResetAll();
  // By random actions, a function of `i`.
  absl::Status Step(uint64_t i);
  // Carries next over, and resets lanes that are done and at times others.
  absl::Status Reset(uint64_t i);

  // The leaves of step(), those below next where `has_stepped`: a simulator
  // that fills them in place writes there in a reset too.
  absl::Status Compare(bool has_stepped);
  // Those of SaveTransforms.
  absl::Status CompareStates();

 private:
  static absl::StatusOr<TwinEnvs> CreateWith(
      std::unique_ptr<Env> there, const TransformsUnderTest& transforms,
      const Stream* stream);

  std::unique_ptr<TransformedEnv> host_;
  std::unique_ptr<TransformedEnv> there_;
  std::vector<StepDriver> drivers_;
};

}  // namespace rill

#endif  // RILL_ENVS_DEVICE_TESTING_TWIN_ENVS_H_
