// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_MEMORY_POLICY_H_
#define RILL_COLLECTORS_TESTING_MEMORY_POLICY_H_

#include <cstddef>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"

namespace rill {

// A recurrent policy that acts row by row, for int64 actions 0 and 1 [lanes]
// and a float observation [lanes, n]. The memory is the halved memory before +
// the sum of the observation; the action is whether that is positive.
class MemoryPolicy final : public Policy {
 public:
  MemoryPolicy() {
    CHECK_OK(spec_.Set("score", LeafSpec::Unbounded(DType::kFloat32, {2})));
    CHECK_OK(
        spec_.Set("next/memory", LeafSpec::Unbounded(DType::kFloat32, {1})));
  }

  const TensorDictSpec& output_spec() const override { return spec_; }

  absl::StatusOr<int64_t> Act(const TensorDict& root,
                              const ActContext& /*context*/,
                              TensorDict* step) override {
    RILL_ASSIGN_OR_RETURN(const auto observation,
                          root.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(const auto before, root.Flat<float>("memory"));
    RILL_ASSIGN_OR_RETURN(const auto memory, step->Flat<float>("next/memory"));
    RILL_ASSIGN_OR_RETURN(const auto score, step->Flat<float>("score"));
    RILL_ASSIGN_OR_RETURN(const auto action, step->Flat<int64_t>("action"));
    const size_t width = observation.size() / action.size();
    for (size_t lane = 0; lane < action.size(); ++lane) {
      float sum = before[lane] / 2;
      for (size_t i = 0; i < width; ++i) sum += observation[lane * width + i];
      memory[lane] = sum;
      score[2 * lane] = sum;
      score[2 * lane + 1] = -sum;
      action[lane] = sum > 0;
    }
    return 0;
  }

 private:
  TensorDictSpec spec_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_MEMORY_POLICY_H_
