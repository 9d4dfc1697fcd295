// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_TENSOR_DICT_H_
#define RILL_TENSORDICT_TENSOR_DICT_H_

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

class LazyStack;     // lazy_stack.h
class RaggedTensor;  // ragged_tensor.h

// The entry of a key.
enum class EntryKind {
  kTensor,
  kDict,
  kNonTensor,       // One value for all rows.
  kNonTensorStack,  // One value a row.
  kLazyStack,       // Dictionaries that may differ in keys and shapes.
  kRagged,          // Rows of different shapes.
};

// An ordered dictionary of tensors and nested dictionaries that share a batch
// shape: every leaf's shape starts with it. TorchRL's users know it as
// TensorDict. The rarer kinds of entries (EntryKind) are no leaves; operations
// say what becomes of them, and none drops them.
//
// A value: copying copies the structure and shares the bytes; Clone copies the
// bytes too. A copy is not locked. Keys are texts as in key.h
// ("next/observation").
//
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
// Cost: look-up O(entries of each level) without allocation; entries are few.
//   Operations that copy (Clone, Gather, Stack, ...) put all leaves of up to
//   64 KiB into one allocation, which lives as long as one of them does.
//
// Example (TensorDictTest.Example runs it):
//   TensorDict step({2});
//   RILL_RETURN_IF_ERROR(step.Set("next/reward", reward));   // shape [2, 1]
//   RILL_ASSIGN_OR_RETURN(Tensor r, step.Get("next/reward"));
class TensorDict {
 public:
  TensorDict();
  explicit TensorDict(const Shape& batch_shape);
  ~TensorDict();
  TensorDict(const TensorDict& other);
  TensorDict& operator=(const TensorDict& other);
  TensorDict(TensorDict&&) noexcept;
  TensorDict& operator=(TensorDict&&) noexcept;

  // All entries at once; errors as Set.
  static absl::StatusOr<TensorDict> Create(
      const Shape& batch_shape,
      std::initializer_list<std::pair<absl::string_view, Tensor>> entries);

  const Shape& batch_shape() const { return batch_shape_; }
  // Entries of this level / leaves (tensors) of all levels.
  int64_t num_entries() const;
  int64_t num_leaves() const;
  bool empty() const { return num_entries() == 0; }

  // --- Access ---------------------------------------------------------------
  // Adds or replaces an entry, making the dictionaries on the way. Nothing is
  // cast or moved. INVALID_ARGUMENT, dictionary unchanged, if the shape does
  // not start with the batch shape, the key is malformed, a tensor stands where
  // the key wants a dictionary, or device() is set and the tensor is elsewhere;
  // a dictionary's or lazy stack's batch shape must start with this one's, a
  // NonTensorStack's shape must be this one, and a RaggedTensor wants a batch
  // shape [its rows]. FAILED_PRECONDITION if locked.
  // A tensor's key may lead into a LazyStack (LazyStack::Set).
  absl::Status Set(absl::string_view key, Tensor tensor);
  absl::Status Set(absl::string_view key, TensorDict dict);
  absl::Status Set(absl::string_view key, NonTensor value);
  absl::Status Set(absl::string_view key, NonTensorStack values);
  absl::Status Set(absl::string_view key, LazyStack stack);
  absl::Status Set(absl::string_view key, RaggedTensor rows);

  // NOT_FOUND lists the keys there are; INVALID_ARGUMENT where the entry is of
  // another kind. Get may lead into a LazyStack, where it stacks.
  absl::StatusOr<Tensor> Get(absl::string_view key) const;
  // A value of its own: unlocked, with the device and dimension names of the
  // nearest dictionary around it where it has none.
  absl::StatusOr<TensorDict> GetDict(absl::string_view key) const;
  absl::StatusOr<NonTensor> GetNonTensor(absl::string_view key) const;
  // Also for one value for all rows.
  absl::StatusOr<NonTensorStack> GetNonTensorStack(absl::string_view key) const;
  absl::StatusOr<LazyStack> GetLazyStack(absl::string_view key) const;
  absl::StatusOr<RaggedTensor> GetRagged(absl::string_view key) const;
  // Null where there is no such tensor / dictionary. Valid until the next
  // change of this dictionary's structure.
  const Tensor* Find(absl::string_view key) const;
  const TensorDict* FindDict(absl::string_view key) const;
  bool Contains(absl::string_view key) const;
  // Nothing where there is no entry.
  std::optional<EntryKind> Kind(absl::string_view key) const;
  // As Get, but `fallback` where the key is missing.
  absl::StatusOr<Tensor> GetOr(absl::string_view key, Tensor fallback) const;

  // Get, then Flat<T>: all elements of a contiguous leaf.
  template <typename T>
  absl::StatusOr<absl::Span<T>> Flat(absl::string_view key) const {
    const Tensor* tensor = Find(key);
    if (tensor == nullptr) return Get(key).status();
    absl::StatusOr<absl::Span<T>> flat = tensor->Flat<T>();
    if (!flat.ok()) return NotFlat(key, flat.status());
    return flat;
  }

  // NOT_FOUND where the key is missing, FAILED_PRECONDITION if locked. Rename
  // replaces the entry at `to`; Pop is Get, then Delete. The next entry of the
  // key takes over the name and the memory of dictionaries, but no tensor. So a
  // dictionary that loses and gains the same entries allocates nothing.
  absl::Status Delete(absl::string_view key);
  // Deletes the entries of all levels for which `drops` is true. Those of a
  // nested dictionary come before itself, which is `dict`, null for others.
  absl::Status DeleteIf(
      absl::FunctionRef<bool(absl::string_view key, const TensorDict* dict)>
          drops);
  absl::StatusOr<Tensor> Pop(absl::string_view key);
  absl::Status Rename(absl::string_view from, absl::string_view to);
  // Sets every entry of `other` (nested ones merged) here, all or none; errors
  // as Set.
  absl::Status Update(const TensorDict& other);
  // The entry at `key`; `fallback`, which is Set, where there is none.
  absl::StatusOr<Tensor> SetDefault(absl::string_view key, Tensor fallback);

  // --- In place: bytes change, also if locked -------------------------------
  // Copies the elements of every leaf of `other` into the leaf of the same key
  // here, also in lazy stacks and ragged tensors. NonTensor values are
  // replaced, but must be equal inside lazy stacks. NOT_FOUND or
  // INVALID_ARGUMENT, nothing copied, unless all keys, kinds, shapes and dtypes
  // fit (Tensor::CopyFrom).
  absl::Status CopyFrom(const TensorDict& other);
  // Copies elements into the tensor at `key`, or into its row `row` of
  // dimension 0, a batch dimension (OUT_OF_RANGE). Errors as CopyFrom; the key
  // may lead into a LazyStack.
  absl::Status SetInPlace(absl::string_view key, const Tensor& tensor) const;
  absl::Status SetAt(absl::string_view key, int64_t row,
                     const Tensor& tensor) const;

  // Texts of all leaves' keys (tensors, not NonTensor), depth first in order.
  std::vector<std::string> LeafKeys() const;
  void ForEachLeaf(
      absl::FunctionRef<void(absl::string_view key, const Tensor&)> fn) const;
  // This level's entries in order, of any kind: their texts; with their kinds.
  std::vector<std::string> Keys() const;
  void ForEachEntry(
      absl::FunctionRef<void(absl::string_view key, EntryKind kind)> fn) const;

  // --- Shape and key operations (results share bytes where they can) --------
  // These entries (whole dictionaries where a key names one), in this order.
  // NOT_FOUND if `strict` and a key is missing.
  absl::StatusOr<TensorDict> Select(absl::Span<const absl::string_view> keys,
                                    bool strict = true) const;
  // All but these; keys that are missing are ignored.
  absl::StatusOr<TensorDict> Exclude(
      absl::Span<const absl::string_view> keys) const;
  // Without entries, or with nested dictionaries without entries.
  TensorDict EmptyLike(bool recurse = false) const;
  // One row of dimension 0; drops it. OUT_OF_RANGE names index and size.
  absl::StatusOr<TensorDict> Index(int64_t index) const;
  // [begin, end) of batch dimension `dim`. Here and below INVALID_ARGUMENT
  // where `dim` is not a batch dimension.
  absl::StatusOr<TensorDict> Slice(int dim, int64_t begin, int64_t end) const;
  absl::StatusOr<TensorDict> SelectDim(int dim, int64_t index) const;
  absl::StatusOr<TensorDict> Squeeze(int dim) const;
  absl::StatusOr<TensorDict> Unsqueeze(int dim) const;
  // Another batch shape with the same number of rows; copies only leaves whose
  // layout does not allow a view.
  absl::StatusOr<TensorDict> Reshape(const Shape& batch_shape) const;
  // Applies `fn` to every leaf; the results keep the keys and must start with
  // the batch shape. NonTensor values are kept, the device is unset. A lazy
  // stack's members' leaves are leaves here, a ragged tensor's values are one
  // of shape [total].
  absl::StatusOr<TensorDict> Apply(absl::FunctionRef<absl::StatusOr<Tensor>(
                                       absl::string_view key, const Tensor&)>
                                       fn) const;
  // Operations on shapes are made of this: `fn` on every leaf, where it turns
  // the batch dimensions into those of `batch_shape` and leaves the rest as it
  // is. Nested dictionaries' longer batch shapes keep their tails; NonTensor
  // values and the device are kept. An error gains the key. `fn` is called for
  // NonTensorStack's indices too (NonTensorStack::MapIndex); a lazy stack along
  // one of these dimensions becomes a dictionary (LazyStack::ToDense); a ragged
  // tensor is refused. Dimension names are dropped: SetDimNames the result's.
  // INVALID_ARGUMENT where a result does not start with the batch shape.
  absl::StatusOr<TensorDict> MapShape(
      const Shape& batch_shape,
      absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn) const;
  // Rows `rows` of dimension 0, copied. OUT_OF_RANGE names the row. GatherInto
  // reuses `out`, without allocation, where keys, shapes, dtypes and devices
  // fit and its leaves are contiguous. It makes it anew where they do not, or
  // where there are lazy stacks and ragged tensors (FAILED_PRECONDITION if
  // locked). NonTensorStacks are replaced. `out` is unchanged by any error but
  // a device's, which copies on the current stream and is waited for.
  absl::StatusOr<TensorDict> Gather(absl::Span<const int64_t> rows) const;
  absl::Status GatherInto(absl::Span<const int64_t> rows,
                          TensorDict* out) const;
  absl::StatusOr<TensorDict> Clone() const;

  // --- Where it lies --------------------------------------------------------
  // Set only by To; a nested dictionary's unset one is its parent's. Unset says
  // nothing and is never a reason to skip work: what counts are the leaves.
  std::optional<Device> device() const { return device_; }
  void ClearDevice();  // Of nested dictionaries too.
  // Every leaf on `device`, copied where it must; complete on return.
  absl::StatusOr<TensorDict> To(Device device) const;
  // The same to the device of `stream`, whose work the copies of host leaves
  // are. `in_flight` gets what the caller keeps, unchanged, until the stream
  // got there.
  absl::StatusOr<TensorDict> ToAsync(const Stream& stream,
                                     std::vector<Tensor>* in_flight) const;
  // Every host leaf in page-locked memory for `device`.
  absl::StatusOr<TensorDict> Pin(Device device) const;
  // Every leaf of float16, bfloat16, float32 or float64 cast to `dtype`, one of
  // them (INVALID_ARGUMENT); the others are shared. Host memory only.
  absl::StatusOr<TensorDict> ToDType(DType dtype) const;
  // is_pinned(): there is at least one leaf, and all leaves are pinned.
  // size_bytes(): sum of element bytes. Both include members of lazy stacks and
  // values of ragged tensors.
  bool is_pinned() const;
  int64_t size_bytes() const;

  // --- Names of batch dimensions --------------------------------------------
  // One a batch dimension, "" for none; INVALID_ARGUMENT for another number or
  // a name twice. Copies and operations carry them: a new dimension has none,
  // Stack and Cat take dictionary 0's, Reshape and MapShape drop all. They are
  // not compared.
  absl::Status SetDimNames(std::vector<std::string> names);
  void ClearDimNames() { dim_names_ = nullptr; }
  // Empty where no dimension has a name.
  const std::vector<std::string>& dim_names() const;
  // NOT_FOUND lists the names there are.
  absl::StatusOr<int> DimNamed(absl::string_view name) const;

  // --- Locking --------------------------------------------------------------
  // Locked, with all nested dictionaries: the operations that change structure
  // (FAILED_PRECONDITION above) are refused; bytes, NonTensor values of a
  // reused result and names may change. Only the root can be unlocked: a nested
  // dictionary is reached through it alone, or as a copy.
  void Lock();
  void Unlock();
  bool is_locked() const { return locked_; }

  // --- Comparison and text --------------------------------------------------
  // OK if both have the same batch shape, keys, shapes, dtypes and bits. Else
  // FAILED_PRECONDITION names the first difference (key, index, values), this
  // as "got" and `other` as "want". The order of keys does not matter.
  absl::Status CheckEqual(const TensorDict& other) const;
  // The same up to |a - b| <= absolute + relative * |b| for floating point.
  // Equal bits are close, whatever they are.
  absl::Status CheckClose(const TensorDict& other, double absolute,
                          double relative) const;
  // True if CheckClose is OK.
  bool AllClose(const TensorDict& other, double absolute = 1e-8,
                double relative = 1e-5) const;
  std::string DebugString() const;
  friend std::ostream& operator<<(std::ostream& os, const TensorDict& dict);

  struct Internal;  // Helpers of this package's .cc files.

 private:
  struct Entry;
  struct Spare;

  static absl::Status NotFlat(absl::string_view key,
                              const absl::Status& status);

  Shape batch_shape_;
  std::vector<Entry> entries_;
  std::vector<Spare> spares_;  // Of entries that were deleted.
  std::optional<Device> device_;
  bool locked_ = false;
  std::shared_ptr<const std::vector<std::string>> dim_names_;  // Null: none.
};

// Joins at least one dictionary with equal keys, dtypes, devices and leaf
// shapes (but for `dim` in Cat) along a new batch dimension `dim` (Stack) or an
// existing one (Cat). INVALID_ARGUMENT names key and both sides. The Into forms
// reuse `out` like GatherInto.
// NonTensor values that are equal stay one, others become a NonTensorStack.
// Lazy stacks must agree in dimension and size, and are joined member by
// member, or as lists along their own dimension; ragged tensors by Cat alone.
absl::StatusOr<TensorDict> Stack(absl::Span<const TensorDict> dicts,
                                 int dim = 0);
absl::Status StackInto(absl::Span<const TensorDict> dicts, int dim,
                       TensorDict* out);
absl::StatusOr<TensorDict> Cat(absl::Span<const TensorDict> dicts, int dim = 0);
absl::Status CatInto(absl::Span<const TensorDict> dicts, int dim,
                     TensorDict* out);

}  // namespace rill

#endif  // RILL_TENSORDICT_TENSOR_DICT_H_
