// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_POLICY_H_
#define RILL_COLLECTORS_POLICY_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Where a policy stands in a run: enough to draw from a counter-based stream
// without a generator of its own.
struct ActContext {
  int64_t frames = 0;  // Frames collected before this step, over all lanes.
  int64_t step = 0;    // Steps of the collector before this one.
};

// Chooses actions. Thread-safety: an implementation's own; a collector calls it
// from the thread that calls the collector.
class Policy {
 public:
  virtual ~Policy() = default;

  // Reads `root` [lanes] and fills `action` [lanes, ...] in place.
  virtual absl::Status Act(const TensorDict& root, const ActContext& context,
                           Tensor* action) = 0;

  // Of the weights in use; every frame carries it.
  virtual int64_t version() const { return 0; }
};

// A policy from a function.
class FunctionPolicy final : public Policy {
 public:
  using Function = std::function<absl::Status(
      const TensorDict& root, const ActContext& context, Tensor* action)>;
  explicit FunctionPolicy(Function act) : act_(std::move(act)) {}

  absl::Status Act(const TensorDict& root, const ActContext& context,
                   Tensor* action) override {
    return act_(root, context, action);
  }

 private:
  Function act_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_POLICY_H_
