// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_COMPOSE_H_
#define RILL_TRANSFORMS_COMPOSE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
// Errors of Forward and Inverse leave the state, and a batch of another layout
//   than the eight that have passed last. A layout is its shape, keys and kinds
//   of entries, and dtypes, shapes and devices of leaves; LazyStacks and ragged
//   rows are not looked into. In a batch of such a layout an error of values
//   leaves the leaves as the transforms before it have made them.
//
// Thread-safety: thread-compatible; immutable but for Insert and Remove.
// Cost: that of the transforms. Forward of two or more looks at all keys, and
//   copies a batch whose layout is new, as that of another number of rows is.
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
  // Forward for an owner that drops batch and state where it fails, as both may
  // be half changed then. It does not look at the layout. So too InverseAt.
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

  bool HasSeen(size_t layout) const;

  std::vector<std::unique_ptr<BatchTransform>> transforms_;
  // The layouts of the batches that have passed last, as hashes.
  mutable std::array<std::atomic<size_t>, 8> seen_ = {};
  mutable std::atomic<size_t> next_seen_ = 0;
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_COMPOSE_H_
