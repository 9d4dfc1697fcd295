// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_BOUND_ROWS_H_
#define RILL_SPECS_BOUND_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/specs/spec_tree.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The use of a leaf.
enum class LeafUse {
  kRead,    // Reads the values.
  kUpdate,  // Reads the values and changes some of them.
  kWrite,   // Writes all values; the old ones are lost.
};

// The memory of leaves, and which of them may be written in place.
struct ReuseRules {
  // The memory of new leaves, and of those that are written: kPageable takes
  // any memory of the host, kPinned pinned memory, kDevice that of the device.
  Tensor::Options memory = {};
  // The caller passed the tensors in to be written, so that other holders of
  // the bytes want to see the result.
  bool is_passed_in = false;
  // Rows may lie at any distance from one another.
  bool allow_strides = false;
  // Files are not written: a tensor in a mapped one does not do.
  bool keep_files = false;
};

// The one rule of reuse: `tensor` may be written in place of a new one if
// - its dtype and shape are the wanted ones,
// - it is writable, no storage lent it (Storage::Lease), and it lies in memory
//   that `rules` names,
// - it is contiguous; or, where strides are allowed, each row is, and rows
//   share no byte,
// - nobody else holds its buffer, or the caller passed it in.
// BoundRows adds: its bytes are no other leaf's of the batch.
bool MayReuse(const Tensor& tensor, DType dtype, const Shape& batch_shape,
              const Shape& row_shape, const ReuseRules& rules);

// The part of that rule about the bytes: they are writable, no storage lent
// them, and nobody else holds the buffer, or the caller passed the tensor in.
inline bool MayOverwrite(const Tensor& tensor, bool is_passed_in) {
  // A count of one holder is exact: nobody else has the tensor, so that nobody
  // can copy it meanwhile.
  return tensor.is_writable() && !tensor.buffer()->is_lent() &&
         (is_passed_in || tensor.buffer().use_count() == 1);
}

// The dimensions behind the first `batch_rank` are row-major without gaps.
bool HasDenseRows(const Tensor& tensor, int batch_rank);

// The addresses of a tensor's bytes: [begin, end), and, where it is [n, ...],
// how far apart its rows are and how wide.
struct ByteExtent {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  int64_t stride = 0;
  int64_t width = 0;
  friend bool operator==(const ByteExtent&, const ByteExtent&) = default;

  // Rows are those behind the first `batch_rank` dimensions. Empty where the
  // tensor has no elements.
  static ByteExtent Of(const Tensor& tensor, int batch_rank);
  // Some byte is in both; never said of fields of records, which lie between
  // one another.
  bool Overlaps(const ByteExtent& other) const {
    return begin < other.end && other.begin < end && SharesBytes(other);
  }

 private:
  bool SharesBytes(const ByteExtent& other) const;  // Where the ranges meet.
};

// A leaf whose rows are found. Row i of a batch [n] is the `width` bytes at
// data + i * strides[0]. Row (i, j) of a batch [n, m] is those at
// data + i * strides[0] + j * strides[1]. The bytes of one row have no gaps.
// Storages gather into such leaves of any owner (Storage::ReadInto).
// Thread-safety: thread-compatible; the bytes are the users' to synchronise.
struct BoundLeaf {
  std::byte* data = nullptr;
  int64_t strides[2] = {0, 0};
  int64_t width = 0;
  // Rows of all batch dimensions follow one another without gaps.
  bool is_flat = true;
  DType dtype = DType::kFloat32;
  Device device = Device::Cpu();
  bool is_writable = false;
  int64_t rows = 0;  // Over all batch dimensions.
  Shape shape = {};  // Of a row.

  // All elements of a flat leaf in host memory. T is the leaf's dtype, which
  // its BoundRows has checked.
  template <typename T>
  absl::Span<T> As() const {
    return absl::MakeSpan(reinterpret_cast<T*>(data),
                          static_cast<size_t>(rows * width) / sizeof(T));
  }
};

// The leaves of a batch, resolved: from keys, dtypes and row shapes to a flat
// array of pointers and strides. Look-ups, checks and the decision whether a
// tensor may be reused happen in Bind; loops over rows need no dictionary.
//
// Shapes: batches of any rank. With `allow_strides` of rank 1 or 2, where rows
//   may have any outer stride (a slice of a [lanes, time] batch). Else leaves
//   are flat, and others are copied.
// Thread-safety: thread-compatible. Valid while the dictionary holds the
//   tensors.
// Cost: Bind is O(leaves) and allocates nothing for tensors that fit; it
//   compares the memory of leaves that are written pairwise if they moved.
//
// Example (BoundRowsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       BoundRows rows,
//       BoundRows::Create("Discount",
//                         {{"reward", DType::kFloat32, {1}, LeafUse::kRead},
//                          {"value", DType::kFloat32, {1}, LeafUse::kWrite}}));
//   TensorDict valued = batch;
//   RILL_RETURN_IF_ERROR(rows.Bind(&valued));
//   const absl::Span<const float> reward = rows[0].As<float>();
//   const absl::Span<float> value = rows[1].As<float>();
//   for (size_t i = 0; i < value.size(); ++i) value[i] = 0.99f * reward[i];
class BoundRows {
 public:
  struct Leaf {
    std::string key;
    DType dtype = DType::kFloat32;
    Shape shape = {};  // Of a row.
    LeafUse use = LeafUse::kRead;
    // Its own; without them those of the batch.
    std::optional<ReuseRules> rules = std::nullopt;
  };

  BoundRows() = default;

  // `caller` starts the messages of errors. INVALID_ARGUMENT names a key that
  // is malformed or stands twice.
  static absl::StatusOr<BoundRows> Create(std::string caller,
                                          std::vector<Leaf> leaves,
                                          const ReuseRules& rules = {});

  // Resolves the leaves of `batch`; any further entries are ignored. A leaf to
  // update or write that may not be reused is replaced in `batch` by a copy or
  // by a new tensor. NOT_FOUND lists the keys there are; INVALID_ARGUMENT
  // names both sides of a leaf to read or update with another dtype or shape;
  // FAILED_PRECONDITION where such a leaf lies on another device. With an error
  // nothing is bound; `batch` keeps its values.
  absl::Status Bind(TensorDict* batch);
  // The same where all leaves are read.
  absl::Status Bind(const TensorDict& batch);

  const BoundLeaf& operator[](size_t i) const { return bound_[i]; }
  absl::Span<const BoundLeaf> leaves() const { return bound_; }
  // The batch that was bound last has entries beside the leaves.
  bool has_others() const { return has_others_; }
  // The number of rows of the batch, over all its dimensions.
  int64_t rows() const { return rows_; }

 private:
  absl::Status Resolve(const TensorDict& batch);
  absl::Status BindAll(const TensorDict& batch);
  absl::Status BindLeaf(size_t i, const TensorDict& batch);
  absl::Status CheckLeaf(size_t i, const Tensor* found,
                         const TensorDict& batch) const;
  absl::StatusOr<Tensor> MakeFit(size_t i, const Tensor* found);
  void FindOverlaps();
  void Unbind();
  void Set(size_t i, const Tensor& tensor);
  const ReuseRules& RulesOf(size_t i) const { return *leaves_[i].rules; }

  std::string caller_;
  std::vector<Leaf> leaves_;  // Each with rules.
  std::optional<SpecTree> tree_;
  bool writes_ = false;  // There is a leaf that is not only read.
  bool has_others_ = false;
  Shape batch_shape_ = {};
  bool is_same_shape_ = false;  // As in the Bind before.
  int64_t rows_ = 0;
  std::vector<BoundLeaf> bound_;
  std::vector<const Tensor*> found_;
  std::vector<ByteExtent> extents_;
  std::vector<uint8_t> overlaps_;
  std::deque<Tensor> copies_;  // Of leaves to read that could not be bound.
  std::vector<std::pair<size_t, Tensor>> replaced_;  // On their way in.
};

}  // namespace rill

#endif  // RILL_SPECS_BOUND_ROWS_H_
