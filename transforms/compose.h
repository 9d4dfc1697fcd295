// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_COMPOSE_H_
#define RILL_TRANSFORMS_COMPOSE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/lane_transform.h"

namespace rill {

// Transforms one after another: Forward in order, Inverse in reverse. Errors
// name the transform and its place. TorchRL's Compose.
//
// A transform may make a new dictionary of the batch: one without a device is
// brought to the batch's, and one without names of its dimensions gets those.
//
// State: a dictionary with the state of transform i under "i", for those that
// have one.
//
// Errors: batch and state are unchanged if the batch has another layout (keys,
//   dtypes, shapes of rows) than the one before: its transforms work on a copy.
//   In a batch of the same layout, an error by values leaves the leaves as the
//   transforms before it have made them.
//
// Thread-safety: thread-compatible; immutable but for Insert and Remove.
// Cost: that of the transforms; with two or more a pass over the keys, and a
//   copy of the batch where its layout is new.
//
// Example (ComposeTest.Example runs it):
//   std::vector<std::unique_ptr<BatchTransform>> transforms;
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
//                         RewardScaling::Create({.scale = 0.1}));
//   RILL_ASSIGN_OR_RETURN(transforms.emplace_back(),
//                         NextStateReconstructor::Create({}));
//   RILL_ASSIGN_OR_RETURN(auto both, Compose::Create(std::move(transforms)));
class Compose final : public LaneTransform {
 public:
  // Any number, also none. INVALID_ARGUMENT names the place of a null one.
  static absl::StatusOr<std::unique_ptr<Compose>> Create(
      std::vector<std::unique_ptr<BatchTransform>> transforms);

  absl::Span<const std::unique_ptr<BatchTransform>> transforms() const {
    return transforms_;
  }

  // Puts a transform before the one at `place`, in [0, number of them].
  // INVALID_ARGUMENT where it is null or there is no such place.
  absl::Status Insert(int64_t place, std::unique_ptr<BatchTransform> transform);
  // Takes out the transform at `place`, in [0, number of them).
  absl::StatusOr<std::unique_ptr<BatchTransform>> Remove(int64_t place);

  absl::string_view name() const override { return "Compose"; }
  OptionValues option_values() const override;
  bool is_stateful() const override;
  absl::StatusOr<TensorDict> InitialState() const override;
  absl::Status Forward(TensorDict* batch, TensorDict* state) const override;
  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override;
  // Both, for an owner that drops a batch which fails: they do not look at its
  // layout and copy nothing.
  absl::Status ForwardOwned(TensorDict* batch, TensorDict* state) const;
  absl::Status InverseAt(int64_t first_lane, TensorDict* batch,
                         TensorDict* state) const override;
  absl::Status CutLanes(int64_t first, int64_t count,
                        TensorDict* state) const override;
  absl::Status Clear(TensorDict* state) const override;
  absl::Status Upgrade(TensorDict* state) const override;
  absl::StatusOr<TensorDictSpec> ForwardSpec(
      const TensorDictSpec& spec) const override;
  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override;

 private:
  explicit Compose(std::vector<std::unique_ptr<BatchTransform>> transforms)
      : transforms_(std::move(transforms)) {}

  using Run = absl::FunctionRef<absl::Status(TensorDict*, TensorDict*)>;

  // All or nothing where `seen` does not have the layout of the batch.
  // `clones`: `run` changes bytes.
  absl::Status RunAll(bool clones, Run run, std::atomic<size_t>* seen,
                      TensorDict* batch, TensorDict* state) const;
  void Forget() {
    seen_forward_ = 0;
    seen_inverse_ = 0;
  }

  std::vector<std::unique_ptr<BatchTransform>> transforms_;
  // The layouts that have passed last, as hashes.
  mutable std::atomic<size_t> seen_forward_ = 0;
  mutable std::atomic<size_t> seen_inverse_ = 0;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_COMPOSE_H_
