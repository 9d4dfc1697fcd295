// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_FUNCTION_TRANSFORM_H_
#define RILL_TRANSFORMS_FUNCTION_TRANSFORM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// A user's lambdas as a transform of batches. `inverse` is handed tensors whose
// bytes are the writer's: it sets new ones and changes none in place. A
// function that changes keys, dtypes or shapes comes with one that says so of
// the spec; without it the spec is taken to stay.
//
// Thread-safety: that of the functions. A buffer calls them from all of its
//   threads at once, unless is_stateful.
//
// Example (FunctionTransformTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto binarize,
//       FunctionTransform::Create({.forward = [](TensorDict* batch) {
//         auto rewards = batch->Flat<float>("next/reward");
//         if (!rewards.ok()) return rewards.status();
//         for (float& reward : *rewards) reward = reward > 0 ? 1.0f : 0.0f;
//         return absl::OkStatus();
//       }}));
class FunctionTransform {
 public:
  using Function = std::function<absl::Status(TensorDict* batch)>;
  using SpecFunction =
      std::function<absl::StatusOr<TensorDictSpec>(const TensorDictSpec&)>;

  struct Options {
    std::string name = "FunctionTransform";  // In errors and checkpoints.
    // At least one of the two; an empty one does nothing.
    Function forward = nullptr;
    Function inverse = nullptr;
    SpecFunction forward_spec = nullptr;
    SpecFunction inverse_spec = nullptr;
    // The functions remember something: they are called one at a time, in the
    // order of batches.
    bool is_stateful = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<BatchTransform>> Create(
      Options options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_FUNCTION_TRANSFORM_H_
