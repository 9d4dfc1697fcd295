// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_STACKED_SPEC_H_
#define RILL_SPECS_STACKED_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// Specs along a new dimension: one spec for each agent of a team, say. Where
// all are the same, one is kept, and Uniform gives it as a spec whose leaves
// have a dimension more. Where they differ, in domains, shapes or keys, they
// stay a list. TorchRL's users know it as Stacked and StackedComposite.
//
// The new dimension is dimension `dim` behind the batch shape, in every leaf. A
// dictionary of the spec of one has batch shape B and leaves B + shape. Stacked
// it has leaves B + shape with size() put in at `dim`.
//
// Thread-safety: thread-compatible.
//
// Example (StackedSpecTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(const StackedSpec team,
//                         StackedSpec::Create({scout, tank}));
//   RILL_ASSIGN_OR_RETURN(std::vector<TensorDict> moves,
//                         team.RandomList({32}, Rng(1), 0));
class StackedSpec {
 public:
  // At least one spec. INVALID_ARGUMENT if `dim` is not a place in the shape of
  // every leaf before its choices, or a leaf's rank would be too large.
  static absl::StatusOr<StackedSpec> Create(
      absl::Span<const TensorDictSpec> specs, int dim = 0);

  int64_t size() const { return size_; }
  int dim() const { return dim_; }
  // All are equal.
  bool is_uniform() const { return specs_.size() == 1; }
  // All have the same keys, dtypes and shapes, so that their values stack.
  bool has_one_layout() const;
  // OUT_OF_RANGE names index and size.
  absl::StatusOr<TensorDictSpec> Index(int64_t index) const;
  // The one spec of stacked values, of leaves by LeafSpec::Stack: that of equal
  // specs, or of specs that differ in bounds and masks only. INVALID_ARGUMENT
  // names the first difference.
  absl::StatusOr<TensorDictSpec> Uniform() const;

  // A member for each; element `i` of the list has numbers of its own. Dense:
  // stacked. FAILED_PRECONDITION from dense forms where !has_one_layout().
  absl::StatusOr<std::vector<TensorDict>> RandomList(const Shape& batch_shape,
                                                     const Rng& rng,
                                                     uint64_t batch) const;
  absl::StatusOr<TensorDict> Random(const Shape& batch_shape, const Rng& rng,
                                    uint64_t batch) const;
  absl::StatusOr<std::vector<TensorDict>> ZeroList(
      const Shape& batch_shape) const;
  // A dictionary each, size() of them. Errors as TensorDictSpec::CheckValues,
  // with the index.
  absl::Status CheckList(absl::string_view caller,
                         absl::Span<const TensorDict> dicts) const;
  absl::Status CheckValues(absl::string_view caller,
                           const TensorDict& dict) const;
  absl::StatusOr<std::vector<TensorDict>> ProjectList(
      absl::Span<const TensorDict> dicts) const;
  absl::StatusOr<TensorDict> Project(const TensorDict& dict) const;

  // Stacked values as a list (sharing bytes) and back. Leaves that the spec
  // does not name must have the dimension too.
  absl::StatusOr<std::vector<TensorDict>> Unstack(const TensorDict& dict) const;
  absl::StatusOr<TensorDict> StackValues(
      absl::Span<const TensorDict> dicts) const;

  std::string ToString() const;  // "3 x {...}" or "[{...}, {...}]"
  friend bool operator==(const StackedSpec&, const StackedSpec&) = default;

 private:
  StackedSpec() = default;

  const TensorDictSpec& At(int64_t index) const {
    return specs_[is_uniform() ? 0 : static_cast<size_t>(index)];
  }
  absl::Status CheckOneLayout(absl::string_view caller) const;
  absl::Status CheckSize(absl::string_view caller, size_t size) const;

  std::vector<TensorDictSpec> specs_;  // One where all are equal.
  int64_t size_ = 0;
  int dim_ = 0;
};

}  // namespace rill

#endif  // RILL_SPECS_STACKED_SPEC_H_
