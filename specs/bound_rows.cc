// SPDX-License-Identifier: Apache-2.0
// Bind resolves keys once a batch. Errors may come until the last leaf is
// checked, so tensors that replace others wait in `replaced_` and go into the
// batch at the end. Leaves that are only read and do not fit are copied into
// `copies_`, which the batch never sees.
#include "rill/specs/bound_rows.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"

namespace rill {
namespace {

// BoundLeaf has strides for two batch dimensions.
constexpr int kMaxStridedRank = 2;

// No two rows share a byte. From the closest rows outwards, each dimension has
// to step over all that lies inside it: `width` grows to the extent so far. A
// stride of 0 or below 0 is taken to share.
bool HasRowsApart(const Tensor& tensor, int batch_rank) {
  int64_t width = DTypeSize(tensor.dtype());
  for (int d = batch_rank; d < tensor.rank(); ++d) width *= tensor.shape()[d];
  // From the closest rows outwards.
  absl::InlinedVector<std::pair<int64_t, int64_t>, kMaxStridedRank> dimensions;
  for (int d = 0; d < batch_rank; ++d) {
    const int64_t size = tensor.shape()[d];
    if (size > 1) dimensions.emplace_back(tensor.strides_bytes()[d], size);
  }
  std::sort(dimensions.begin(), dimensions.end());
  for (const auto& [stride, size] : dimensions) {
    if (stride < width) return false;
    width += stride * (size - 1);
  }
  return true;
}

// Rows that may be read: the bytes of one have no gaps.
bool HasFittingLayout(const Tensor& tensor, int batch_rank,
                      bool allow_strides) {
  return tensor.is_contiguous() ||
         (allow_strides && batch_rank <= kMaxStridedRank &&
          HasDenseRows(tensor, batch_rank));
}

// Rows that may be written: no two of them share a byte.
bool HasWritableLayout(const Tensor& tensor, int batch_rank,
                       bool allow_strides) {
  return tensor.is_contiguous() ||
         (HasFittingLayout(tensor, batch_rank, allow_strides) &&
          HasRowsApart(tensor, batch_rank));
}

// Host memory of any kind, or that of the device.
bool IsReached(const Tensor& tensor, const Tensor::Options& memory) {
  return memory.memory_kind == MemoryKind::kDevice
             ? tensor.memory_kind() == MemoryKind::kDevice &&
                   tensor.device() == memory.device
             : tensor.is_host();
}

// The dtype, and the shape batch_shape + row_shape. Compared size by size,
// since joining the shapes would cost more.
bool HasLayout(const Tensor& tensor, DType dtype, const Shape& batch_shape,
               const Shape& row_shape) {
  const int rank = batch_shape.rank();
  if (tensor.dtype() != dtype || tensor.rank() != rank + row_shape.rank()) {
    return false;
  }
  for (int d = 0; d < tensor.rank(); ++d) {
    const int64_t want = d < rank ? batch_shape[d] : row_shape[d - rank];
    if (tensor.shape()[d] != want) return false;
  }
  return true;
}

}  // namespace

bool HasDenseRows(const Tensor& tensor, int batch_rank) {
  int64_t stride = DTypeSize(tensor.dtype());
  for (int d = tensor.rank() - 1; d >= batch_rank; --d) {
    // The stride of a dimension of size 1 is never used, so any will do.
    if (tensor.shape()[d] != 1 && tensor.strides_bytes()[d] != stride) {
      return false;
    }
    stride *= tensor.shape()[d];
  }
  return true;
}

bool MayReuse(const Tensor& tensor, DType dtype, const Shape& batch_shape,
              const Shape& row_shape, const ReuseRules& rules) {
  // Pinned memory is asked for by name: pageable memory would make copies to a
  // device wait.
  const bool lies_right =
      IsReached(tensor, rules.memory) &&
      (rules.memory.memory_kind != MemoryKind::kPinned || tensor.is_pinned());
  return HasLayout(tensor, dtype, batch_shape, row_shape) &&
         MayOverwrite(tensor, rules.is_passed_in) && lies_right &&
         !(rules.keep_files &&
           tensor.memory_kind() == MemoryKind::kMappedFile) &&
         HasWritableLayout(tensor, batch_shape.rank(), rules.allow_strides);
}

ByteExtent ByteExtent::Of(const Tensor& tensor, int batch_rank) {
  const Shape& shape = tensor.shape();
  const absl::Span<const int64_t> strides = tensor.strides_bytes();
  int64_t width = DTypeSize(tensor.dtype());
  int64_t first = 0;  // From the first element on.
  int64_t last = width;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    if (shape[d] == 0) return {};  // There may be no memory.
    if (d >= batch_rank) width *= shape[d];
    // A negative stride reaches below the first element.
    const int64_t reach = strides[d] * (shape[d] - 1);
    (reach < 0 ? first : last) += reach;
  }
  const std::byte* const data = tensor.raw_data();
  // Rows at one distance are known for batches of one dimension only.
  if (batch_rank != 1) return {data + first, data + last};
  return {.begin = data + first,
          .end = data + last,
          .stride = shape[0] == 1 ? width : strides[0],
          .width = width};
}

// The ranges [begin, end) meet. Rows at the same distance, as fields of records
// have, may still lie between one another: one field's rows begin `offset`
// bytes behind the other's. Unknown or different distances count as shared.
bool ByteExtent::SharesBytes(const ByteExtent& other) const {
  if (stride <= 0 || stride != other.stride) return true;
  const int64_t gap = (other.begin - begin) % stride;
  const int64_t offset = gap < 0 ? gap + stride : gap;
  return offset < width || stride - offset < other.width;
}

absl::StatusOr<BoundRows> BoundRows::Create(std::string caller,
                                            std::vector<Leaf> leaves,
                                            const ReuseRules& rules) {
  BoundRows rows;
  std::vector<std::string> keys;
  for (Leaf& leaf : leaves) {
    RILL_RETURN_IF_ERROR(CheckKey(leaf.key)) << caller;
    keys.push_back(leaf.key);
    // A binding that only reads may be given a const batch.
    rows.writes_ = rows.writes_ || leaf.use != LeafUse::kRead;
    if (!leaf.rules) leaf.rules = rules;
  }
  const std::set<std::string> distinct(keys.begin(), keys.end());
  if (distinct.size() != keys.size()) {
    return InvalidArgument(caller, ": leaves: got a key twice, want each once");
  }
  rows.caller_ = std::move(caller);
  rows.leaves_ = std::move(leaves);
  rows.tree_.emplace(keys);
  rows.bound_.resize(rows.leaves_.size());
  rows.Unbind();
  rows.extents_.resize(rows.leaves_.size());
  rows.overlaps_.resize(rows.leaves_.size());
  return rows;
}

void BoundRows::Unbind() {
  for (size_t i = 0; i < bound_.size(); ++i) {
    bound_[i] = {.shape = leaves_[i].shape};
  }
}

absl::Status BoundRows::CheckLeaf(size_t i, const Tensor* found,
                                  const TensorDict& batch) const {
  const Leaf& leaf = leaves_[i];
  if (found == nullptr) {
    const absl::Status status = batch.Get(leaf.key).status();
    return absl::Status(status.code(),
                        absl::StrCat(caller_, ": ", status.message()));
  }
  if (!HasLayout(*found, leaf.dtype, batch_shape_, leaf.shape)) {
    return InvalidArgument(caller_, ": \"", leaf.key, "\": got ",
                           DTypeName(found->dtype()), found->shape().ToString(),
                           ", want ", DTypeName(leaf.dtype),
                           batch_shape_.Concat(leaf.shape).ToString());
  }
  const Tensor::Options& memory = RulesOf(i).memory;
  if (IsReached(*found, memory)) return absl::OkStatus();
  return FailedPrecondition(caller_, ": \"", leaf.key, "\" lies on ",
                            found->device().ToString(), ", want ",
                            memory.memory_kind == MemoryKind::kDevice
                                ? memory.device.ToString()
                                : "host memory; copy it there first");
}

// Finds the leaves whose bytes are another leaf's too: writing one would change
// the other. Pairs are compared only if some tensor has moved since the last
// call. Loops bind the same tensors again and again, and the comparison is
// O(leaves^2).
void BoundRows::FindOverlaps() {
  bool has_moved = false;
  for (size_t i = 0; i < found_.size(); ++i) {
    const ByteExtent extent =
        found_[i] == nullptr ? ByteExtent()
                             : ByteExtent::Of(*found_[i], batch_shape_.rank());
    has_moved = has_moved || !(extent == extents_[i]);
    extents_[i] = extent;
  }
  if (!has_moved) return;
  std::fill(overlaps_.begin(), overlaps_.end(), 0);
  for (size_t i = 0; i < extents_.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (extents_[i].Overlaps(extents_[k])) {
        overlaps_[i] = 1;
        overlaps_[k] = 1;
      }
    }
  }
}

// The replacement of a leaf that may not be used as it is.
absl::StatusOr<Tensor> BoundRows::MakeFit(size_t i, const Tensor* found) {
  const Leaf& leaf = leaves_[i];
  // A leaf that is updated keeps its values, one that is written needs none.
  if (leaf.use != LeafUse::kWrite) return found->Clone();
  return Tensor::Empty(leaf.dtype, batch_shape_.Concat(leaf.shape),
                       RulesOf(i).memory);
}

void BoundRows::Set(size_t i, const Tensor& tensor) {
  const int rank = batch_shape_.rank();
  BoundLeaf& bound = bound_[i];
  bound.data = tensor.raw_data();
  bound.dtype = tensor.dtype();
  bound.device = tensor.device();
  bound.is_writable = tensor.is_writable();
  bound.rows = rows_;
  bound.width = leaves_[i].shape.num_elements() * DTypeSize(tensor.dtype());
  // Tensors without gaps may have other strides in dimensions of size 1, so
  // their strides are computed and not read.
  bound.is_flat = tensor.is_contiguous();
  if (bound.is_flat) {
    bound.strides[1] = bound.width;
    bound.strides[0] =
        rank == kMaxStridedRank ? bound.width * batch_shape_[1] : bound.width;
    return;
  }
  for (int d = 0; d < kMaxStridedRank; ++d) {
    bound.strides[d] = d < rank ? tensor.strides_bytes()[d] : 0;
  }
}

absl::Status BoundRows::BindLeaf(size_t i, const TensorDict& batch) {
  const Leaf& leaf = leaves_[i];
  const Tensor* const found = found_[i];
  const int rank = batch_shape_.rank();
  if (leaf.use != LeafUse::kWrite) {
    RILL_RETURN_IF_ERROR(CheckLeaf(i, found, batch));
  }
  BoundLeaf& bound = bound_[i];
  // The common case of a loop: the same tensor as in the call before. Address,
  // layout and shape decide; a new tensor at an old address is as good. The two
  // that may differ are set anew.
  if (leaf.use == LeafUse::kRead && is_same_shape_ && bound.is_flat &&
      bound.data != nullptr && bound.data == found->raw_data() &&
      found->is_contiguous()) {
    bound.is_writable = found->is_writable();
    bound.device = found->device();
    return absl::OkStatus();
  }
  const ReuseRules& rules = RulesOf(i);
  // A leaf that is written must be its own: MayReuse asks for the holders of
  // its buffer, overlaps_ for other leaves of this batch.
  const bool fits =
      leaf.use == LeafUse::kRead
          ? HasFittingLayout(*found, rank, rules.allow_strides)
          : found != nullptr &&
                MayReuse(*found, leaf.dtype, batch_shape_, leaf.shape, rules) &&
                overlaps_[i] == 0;
  if (fits) {
    Set(i, *found);
  } else {
    RILL_ASSIGN_OR_RETURN(Tensor made, MakeFit(i, found));
    Set(i, made);
    if (leaf.use == LeafUse::kRead) {
      copies_.push_back(std::move(made));
    } else {
      replaced_.emplace_back(i, std::move(made));
    }
  }
  return absl::OkStatus();
}

absl::Status BoundRows::BindAll(const TensorDict& batch) {
  has_others_ = !tree_->Find(batch, &found_);
  if (writes_) FindOverlaps();
  for (size_t i = 0; i < leaves_.size(); ++i) {
    RILL_RETURN_IF_ERROR(BindLeaf(i, batch));
  }
  return absl::OkStatus();
}

absl::Status BoundRows::Resolve(const TensorDict& batch) {
  is_same_shape_ = batch_shape_ == batch.batch_shape();
  batch_shape_ = batch.batch_shape();
  rows_ = batch_shape_.num_elements();
  // Nothing stays of the call before, so that its tensors are free for reuse.
  copies_.clear();
  replaced_.clear();
  const absl::Status status = BindAll(batch);
  // A failed call leaves null pointers and not those of another batch.
  if (!status.ok()) Unbind();
  return status;
}

absl::Status BoundRows::Bind(const TensorDict& batch) {
  if (writes_) {
    return FailedPrecondition(
        caller_, ": batch: got one that may only be read, want one to write");
  }
  return Resolve(batch);
}

absl::Status BoundRows::Bind(TensorDict* batch) {
  if (!writes_) return Resolve(*batch);
  // New tensors come in when nothing can fail any more.
  RILL_RETURN_IF_ERROR(Resolve(*batch));
  for (const auto& [i, tensor] : replaced_) {
    RILL_RETURN_IF_ERROR(batch->Set(leaves_[i].key, tensor)) << caller_;
  }
  replaced_.clear();
  return absl::OkStatus();
}

}  // namespace rill
