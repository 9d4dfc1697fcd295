// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_COMPOSE_H_
#define RILL_TRANSFORMS_COMPOSE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/transforms/transform.h"

namespace rill {

// Transforms one after another: Forward, OnReset and OnStep in order, Inverse
// in reverse. Errors name the transform and its place. TorchRL's Compose.
//
// State: a dictionary with the state of transform i under "i", for those that
// have one. With an error all transforms are as before: those that had done
// their part already get back the state that they had.
//
// Thread-safety: thread-compatible.
// Cost: that of the transforms, and a copy of each state a call.
//
// Example (ComposeTest.Example runs it):
//   std::vector<std::unique_ptr<Transform>> transforms;
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), StepCounter::Create({}));
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(), RewardSum::Create({}));
//   RILL_ASSIGN_OR_RETURN(auto both, Compose::Create(std::move(transforms)));
class Compose final : public Transform {
 public:
  // Any number, also none. INVALID_ARGUMENT names the place of a null one.
  static absl::StatusOr<std::unique_ptr<Compose>> Create(
      std::vector<std::unique_ptr<Transform>> transforms);

  absl::Span<const std::unique_ptr<Transform>> transforms() const {
    return transforms_;
  }

  // Puts a transform before the one at `place`, in [0, number of them]; the
  // states of those behind it are named by their new places from then on.
  // INVALID_ARGUMENT where it is null or there is no such place.
  absl::Status Insert(int64_t place, std::unique_ptr<Transform> transform);
  // Takes out the transform at `place`, in [0, number of them).
  absl::StatusOr<std::unique_ptr<Transform>> Remove(int64_t place);

  absl::string_view name() const override { return "Compose"; }
  OptionValues option_values() const override;
  absl::Status Forward(TensorDict* batch) override;
  absl::Status Inverse(TensorDict* batch) override;
  absl::Status OnReset(absl::Span<const uint8_t> mask,
                       TensorDict* root) override;
  absl::Status OnStep(TensorDict* step) override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> StepSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 private:
  explicit Compose(std::vector<std::unique_ptr<Transform>> transforms)
      : transforms_(std::move(transforms)) {}

  std::vector<std::unique_ptr<Transform>> transforms_;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_COMPOSE_H_
