// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_NON_TENSOR_ENTRY_H_
#define RILL_TENSORDICT_NON_TENSOR_ENTRY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// The inside of TensorDict, for the .cc files of this package: what an entry
// holds. A tensor and a dictionary are walked by TensorDict's operations; every
// other kind is a NonTensorEntry, in a file of its own (*_entry.cc).
namespace rill::tensor_internal {

class NonTensorEntry;
using NonTensorPointer = std::shared_ptr<const NonTensorEntry>;
using EntryValue =
    std::variant<Tensor, std::unique_ptr<TensorDict>, NonTensorPointer>;

// The way to an entry, on the stack: made into a text only for an error.
struct EntryPath {
  const EntryPath* up;
  absl::string_view name;
  std::string ToString() const {
    return up == nullptr ? std::string(name)
                         : absl::StrCat(up->ToString(), "/", name);
  }
};

// The status, which names the key if it is an error.
absl::Status WithKey(const absl::Status& status, const EntryPath& path);

// The effect of an operation on batch dimensions. It decides what becomes of
// non-tensor entries, dimension names and devices.
struct ShapeOp {
  enum Kind {
    kCopy,       // The shape stays; every tensor inside is mapped.
    kSelect,     // Drops `dim`, taking `begin` of it.
    kSlice,      // [begin, end) of `dim`.
    kUnsqueeze,  // A new dimension `dim`.
    kOpaque,     // Another shape, by a function on tensors.
    kRows,       // As kStack, with the same dimensions.
    kStack,      // A new dimension `dim`; non-tensor entries are put in place
                 // later (Internal::Changes), till then null.
  };
  Kind kind = kCopy;
  // `prefix` stands in the place of the first `old_rank` dimensions of every
  // leaf and (nested) batch shape.
  Shape prefix = {};
  int old_rank = 0;
  int dim = -1;
  int64_t begin = 0;
  int64_t end = 0;
  bool checked = false;      // Leaves of the result may have a wrong shape.
  bool sets_device = false;  // On all levels, to `device`.
  std::optional<Device> device = std::nullopt;

  Shape Of(const Shape& shape) const {
    return prefix.Concat(shape.Suffix(old_rank));
  }
};

using LeafFn = absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor& leaf,
                                                        const EntryPath& path)>;

// Stack, which makes dimension `dim`, or Cat.
struct JoinOp {
  absl::string_view caller;
  int dim;
  bool new_dim;
};
struct JoinPart {
  const NonTensorEntry* entry;
  const Shape* batch_shape;  // Of the dictionary that holds it.
};

// CheckEqual and CheckClose: FAILED_PRECONDITION names the first difference.
struct Comparison {
  struct Tolerance {
    double absolute;
    double relative;
  };
  absl::string_view caller;
  std::optional<Tolerance> tolerance = std::nullopt;  // None: bits count.

  // CheckClose; INVALID_ARGUMENT unless both are >= 0.
  static absl::StatusOr<Comparison> Close(absl::string_view caller,
                                          double absolute, double relative);
  absl::Status Tensors(const Tensor& got, const Tensor& want,
                       const EntryPath& path) const;
  // The errors; `flat` is a row-major number in `shape`.
  absl::Status Differs(const EntryPath& path, absl::string_view got,
                       absl::string_view want) const;
  absl::Status DiffersAt(const EntryPath& path, const Shape& shape,
                         int64_t flat, absl::string_view text) const;
};

// An entry that is neither a tensor nor a dictionary. It never changes but for
// the bytes of its tensors, so copies of a dictionary share it. "Like it" is an
// entry of the same family, which has the same class.
class NonTensorEntry : public std::enable_shared_from_this<NonTensorEntry> {
 public:
  virtual ~NonTensorEntry() = default;
  NonTensorEntry(const NonTensorEntry&) = delete;
  NonTensorEntry& operator=(const NonTensorEntry&) = delete;

  EntryKind kind() const { return kind_; }

  // INVALID_ARGUMENT where it cannot be `key` of a dictionary of this shape.
  virtual absl::Status CheckFits(absl::string_view key,
                                 const Shape& batch_shape) const = 0;
  // The tensors inside, in the order of Map. Allocates nothing.
  virtual void VisitTensors(
      absl::FunctionRef<void(const Tensor&)> fn) const = 0;
  // The result of an operation but kRows and kStack; `fn` makes the tensors. An
  // error has the key.
  virtual absl::StatusOr<EntryValue> Map(const ShapeOp& op, LeafFn fn,
                                         const EntryPath& path) const = 0;
  // These rows of dimension 0, copied.
  virtual absl::StatusOr<NonTensorPointer> Gather(
      absl::Span<const int64_t> rows) const = 0;
  // All parts, like this one, which is the first.
  virtual absl::StatusOr<NonTensorPointer> Join(
      const JoinOp& op, absl::Span<const JoinPart> parts) const = 0;
  // Checks or, with `copies`, writes the elements of `from`, like this one, to
  // this one's tensors. True where it has none and is replaced by `from`, in a
  // dictionary of `batch_shape`. An error has the key.
  virtual absl::StatusOr<bool> CopyFrom(const NonTensorEntry& from,
                                        const Shape& batch_shape, bool copies,
                                        const EntryPath& path) const = 0;
  // That `want`, of the same kind, is equal or close.
  virtual absl::Status Compare(const NonTensorEntry& want,
                               const Comparison& comparison,
                               const EntryPath& path) const = 0;
  virtual std::string DebugString() const = 0;

 protected:
  explicit NonTensorEntry(EntryKind kind) : kind_(kind) {}

 private:
  const EntryKind kind_;
};

}  // namespace rill::tensor_internal

#endif  // RILL_TENSORDICT_NON_TENSOR_ENTRY_H_
