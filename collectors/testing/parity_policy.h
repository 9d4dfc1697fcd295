// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_PARITY_POLICY_H_
#define RILL_COLLECTORS_TESTING_PARITY_POLICY_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {

// A policy that a test can predict, for int64 actions that may be 0 and 1: the
// parity of (100 times the lane's first observation) + the collector's step.
class ParityPolicy final : public Policy {
 public:
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    last_context_ = context;
    ++calls_;
    if (!next_status_.ok()) return std::exchange(next_status_, {});
    RILL_ASSIGN_OR_RETURN(auto observation, root.Flat<float>("observation"));
    const Tensor& action = *step->Find("action");
    const int64_t lanes = action.num_elements();
    const int64_t width = static_cast<int64_t>(observation.size()) / lanes;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const auto tenths =
          static_cast<int64_t>(100 * (observation[lane * width] + 10));
      action.data<int64_t>()[lane] = (tenths + context.step) % 2;
    }
    return version_;
  }

  void set_version(int64_t version) { version_ = version; }
  void FailOnce(absl::Status status) { next_status_ = std::move(status); }
  const ActContext& last_context() const { return last_context_; }
  int64_t calls() const { return calls_; }

 private:
  int64_t version_ = 0;
  int64_t calls_ = 0;
  ActContext last_context_;
  absl::Status next_status_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_PARITY_POLICY_H_
