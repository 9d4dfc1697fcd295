// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_LAZY_STACK_H_
#define RILL_TENSORDICT_LAZY_STACK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

namespace tensor_internal {
class LazyStackEntry;  // lazy_stack_entry.cc
}  // namespace tensor_internal

// Dictionaries of one batch rank, seen as if they were stacked along a new
// batch dimension, but kept apart. Leaves and batch shapes may have different
// sizes, and a key may be missing in some. TorchRL's LazyStackedTensorDict.
//
// Keys that all members have are visible. Reading one stacks it anew; members
// come out without a copy, and bytes are theirs: what is written in place
// reaches everybody who shares them.
//
// Members of different batch shapes are the usual form of episodes of different
// lengths: [3], [1] and [4] are a stack of batch shape [3, -1]
// (ragged_shape.h). Operations go member by member, so SelectDim and Slice of a
// ragged dimension must fit into each. Whatever needs one size is
// INVALID_ARGUMENT: Get of a leaf, Set, ToDense and all that TensorDict makes
// dense. ToPadded makes one.
//
// A value: copying shares bytes, and is O(1). A copy is not locked.
// Thread-safety: as TensorDict.
//
// Example (LazyStackTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto episodes, LazyStack::Create({first, second}));
//   RILL_ASSIGN_OR_RETURN(Tensor ids, episodes.Get("id"));   // stacked, [2]
//   RILL_ASSIGN_OR_RETURN(TensorDict padded, episodes.ToPadded());
class LazyStack {
 public:
  // INVALID_ARGUMENT without members, where the ranks of their batch shapes
  // differ, or if `stack_dim` is not in [0, rank of them].
  static absl::StatusOr<LazyStack> Create(std::vector<TensorDict> members,
                                          int stack_dim = 0);

  int64_t size() const { return static_cast<int64_t>(members_->size()); }
  int stack_dim() const { return stack_dim_; }
  // The members' with size() inserted at stack_dim(); ragged where theirs
  // differ. Without members no dimension is.
  const RaggedShape& batch_shape() const { return batch_shape_; }
  // A member; OUT_OF_RANGE. Its bytes are shared, its structure is a copy.
  absl::StatusOr<TensorDict> Member(int64_t index) const;
  absl::Span<const TensorDict> members() const { return *members_; }

  // Keys of this level / of tensors on all levels that every member has.
  std::vector<std::string> Keys() const;
  std::vector<std::string> LeafKeys() const;
  bool Contains(absl::string_view key) const;

  // All members' tensors, stacked into a new one. NOT_FOUND lists the common
  // keys, and says whether some members have it; INVALID_ARGUMENT where dtypes,
  // devices or shapes (a ragged leaf) differ, naming both.
  absl::StatusOr<Tensor> Get(absl::string_view key) const;
  // The members' dictionaries under `key`, along the same dimension.
  absl::StatusOr<LazyStack> GetDict(absl::string_view key) const;
  // The members' non-tensor values.
  absl::StatusOr<NonTensorStack> GetNonTensorStack(absl::string_view key) const;

  // Gives each member its part of `tensor`, whose shape starts with
  // batch_shape(), without a copy; all members or, with an error (as
  // TensorDict::Set), none. FAILED_PRECONDITION if locked.
  absl::Status Set(absl::string_view key, const Tensor& tensor);
  absl::Status Set(absl::string_view key, const NonTensor& value);
  // From every member; NOT_FOUND where one has no such key.
  absl::Status Delete(absl::string_view key);
  // Copies elements into the members' tensors, also if locked; all or none.
  absl::Status SetInPlace(absl::string_view key, const Tensor& tensor) const;

  // --- Shape; results share bytes -------------------------------------------
  // Drops batch dimension `dim`, not stack_dim(): that is Member. OUT_OF_RANGE
  // names the member that has no such index.
  absl::StatusOr<LazyStack> SelectDim(int dim, int64_t index) const;
  // Along stack_dim() this takes members, none too; else OUT_OF_RANGE names the
  // member that is shorter.
  absl::StatusOr<LazyStack> Slice(int dim, int64_t begin, int64_t end) const;
  absl::StatusOr<LazyStack> Unsqueeze(int dim) const;
  // Rows of dimension 0: members (shared, also with one another where a row is
  // named twice) if that is stack_dim(), else copies of their rows.
  absl::StatusOr<LazyStack> Gather(absl::Span<const int64_t> rows) const;
  // fn(member) of each, stacked along `stack_dim`. Without members `fn` sees an
  // empty dictionary, for the batch shape.
  absl::StatusOr<LazyStack> MapMembers(
      int stack_dim,
      absl::FunctionRef<absl::StatusOr<TensorDict>(const TensorDict&)> fn)
      const;

  // --- As one dictionary ----------------------------------------------------
  // rill::Stack of the members. INVALID_ARGUMENT names the batch shape if it is
  // ragged, every leaf that is and every key that some members do not have.
  absl::StatusOr<TensorDict> ToDense() const;
  // The same with ragged leaves as StackPadded (ragged_tensor.h) makes them.
  // Each has its bool mask under `mask_key` joined with its own key; no mask
  // where no leaf is ragged. A ragged batch shape gets the largest sizes;
  // values that are not tensors become null where a member has no row, lazy
  // stacks and ragged tensors are then INVALID_ARGUMENT. INVALID_ARGUMENT where
  // keys, kinds, dtypes or ranks differ, or `mask_key` is taken.
  absl::StatusOr<TensorDict> ToPadded(
      double pad_value = 0, absl::string_view mask_key = "mask") const;

  absl::StatusOr<LazyStack> Clone() const;
  absl::StatusOr<LazyStack> To(Device device) const;
  absl::StatusOr<LazyStack> Pin(Device device) const;

  // Locked: Set and Delete are refused; bytes may change.
  void Lock() { locked_ = true; }
  void Unlock() { locked_ = false; }
  bool is_locked() const { return locked_; }

  // As TensorDict's, member by member; stack_dim() counts too.
  absl::Status CheckEqual(const LazyStack& other) const;
  absl::Status CheckClose(const LazyStack& other, double absolute,
                          double relative) const;
  std::string DebugString() const;

 private:
  friend class tensor_internal::LazyStackEntry;
  using Members = std::vector<TensorDict>;

  // `member_shape` is that of a stack without members.
  LazyStack(Members members, const Shape& member_shape, int stack_dim);
  // For that: 0 in a dimension that is ragged.
  Shape member_shape() const;
  absl::Status CheckTensor(absl::string_view caller, absl::string_view key,
                           const Tensor& tensor) const;
  absl::Status MissingKey(absl::string_view caller,
                          absl::string_view key) const;
  absl::Status ChangeMembers(
      absl::string_view caller,
      absl::FunctionRef<absl::Status(int64_t index, TensorDict* member)> fn);

  std::shared_ptr<const Members> members_;  // Never changed, only replaced.
  RaggedShape batch_shape_;
  int stack_dim_;
  bool locked_ = false;
};

}  // namespace rill

#endif  // RILL_TENSORDICT_LAZY_STACK_H_
