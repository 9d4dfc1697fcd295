// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_
#define RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Drives one StepTransform as an environment does: resets, steps of random
// values of a spec, and the carrying over of next's leaves to the next root.
// Values are the same in each.
// Thread-safety: thread-compatible.
class FakeEnvironment {
 public:
  // `spec` is that of steps before the transform, which must outlive the
  // result. Errors of PlanSteps; INTERNAL where a leaf of the plan is not as
  // the specs say.
  static absl::StatusOr<FakeEnvironment> Create(const TensorDictSpec& spec,
                                                int64_t lanes,
                                                const StepTransform* transform);

  const StepPlan& plan() const { return plan_; }

  // Goes on with another transform, which is equal to the first, and a state
  // that was saved: what a load does. The transform must outlive the result.
  void Load(const StepTransform* transform, TensorDict state) {
    transform_ = transform;
    state_ = std::move(state);
  }

  // Next becomes the root, then the masked lanes are reset.
  absl::Status Reset(const std::vector<uint8_t>& mask);
  // A random action, a random step; step() is whole then.
  absl::Status Step();
  // The same with these leaves of the environment in place of random ones.
  absl::Status Step(const TensorDict& made);

  // The step as the policy sees it; after Step with the action and next.
  const TensorDict& step() const { return after_; }
  // The step as the environment got and gave it.
  const TensorDict& environment_step() const { return before_; }
  TensorDict& state() { return state_; }

 private:
  absl::Status Bind();
  void CopyShared(absl::string_view prefix, const std::vector<uint8_t>* mask);
  void Carry();

  TensorDictSpec spec_;
  int64_t lanes_ = 0;
  const StepTransform* transform_ = nullptr;
  StepPlan plan_;
  uint64_t batch_ = 0;
  bool has_stepped_ = false;  // Next is not at the root yet.
  TensorDict before_;         // The environment's leaves.
  TensorDict after_;          // The policy's.
  TensorDict state_;
  std::vector<BoundLeaf> leaves_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_CONFORMANCE_FAKE_ENVIRONMENT_H_
