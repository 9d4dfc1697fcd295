// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/read_places.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::storage_internal {
namespace {

// The leaf numbers of `keys`, in their order. Linear in keys times leaves: a
// read names few.
absl::Status NumbersOf(const TensorDictSpec& spec,
                       absl::Span<const std::string> keys,
                       std::vector<size_t>* numbers) {
  numbers->clear();
  const auto& leaves = spec.leaves();
  for (const std::string& key : keys) {
    size_t i = 0;
    while (i < leaves.size() && leaves[i].key != key) ++i;
    if (i == leaves.size()) {
      return NotFound(
          "Storage::ReadLeaves: keys: got \"", key, "\", want some of {",
          absl::StrJoin(
              leaves, ", ",
              [](std::string* text, const TensorDictSpec::Leaf& leaf) {
                text->append(leaf.key);
              }),
          "}");
    }
    if (std::find(numbers->begin(), numbers->end(), i) != numbers->end()) {
      return InvalidArgument("Storage::ReadLeaves: keys: got \"", key,
                             "\" twice, want it once");
    }
    numbers->push_back(i);
  }
  return absl::OkStatus();
}

// `leaf` has n rows of these bytes, of one dimension or without gaps, where
// `device` reaches them.
bool Takes(const BoundLeaf& leaf, DType dtype, int64_t width, int64_t n,
           Device device) {
  return leaf.is_writable && leaf.dtype == dtype && leaf.width == width &&
         leaf.rows == n && leaf.device == device &&
         (leaf.is_flat || leaf.strides[1] == 0);
}

// The error where a bound place cannot take a leaf: both sides in full.
absl::Status Unfit(const BoundLeaf& got, const TensorDictSpec::Leaf& leaf,
                   int64_t width, int64_t n, Device device) {
  return InvalidArgument(
      "Storage::ReadInto: place of \"", leaf.key, "\": got ", got.rows,
      got.is_writable ? " writable" : " read-only", " rows of ", got.width,
      " bytes of ", DTypeName(got.dtype), " on ", got.device.ToString(),
      got.is_flat || got.strides[1] == 0 ? "" : " in two dimensions", ", want ",
      n, " writable rows of ", width, " bytes of ", DTypeName(leaf.spec.dtype),
      " on ", device.ToString(), " in one; bind a batch [", n, "] to write");
}

}  // namespace

ReadPlaces& ReadPlaces::OfThread() {
  thread_local ReadPlaces places;
  return places;
}

void ReadPlaces::Add(size_t leaf, std::byte* data, int64_t stride,
                     int64_t width) {
  leaves.push_back({leaf, data, stride});
  widths_.push_back(width);
}

void ReadPlaces::PassCaches(int64_t rows) {
  // From here on the next batch has pushed this one out of the caches before it
  // is read, where several are used in turn. Copy and a pass over the batch
  // were measured together (docs/lab/2026-11-performance-notebook.md).
  constexpr int64_t kBatchBytes = int64_t{8} << 20;
  constexpr int64_t kRowBytes = int64_t{4} << 10;
  const int64_t row_bytes =
      std::accumulate(widths_.begin(), widths_.end(), int64_t{0});
  if (row_bytes * rows < kBatchBytes) return;
  for (size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].past_caches =
        widths_[i] >= kRowBytes && leaves[i].stride == widths_[i];
  }
}

// Leaves `leaves` unusable where they do not fit.
bool ReadPlaces::UseTensors(const Source& source, const Shape& batch_shape,
                            absl::Span<const size_t> numbers) {
  leaves.clear();
  widths_.clear();
  extents_.clear();
  const ReuseRules rules = RulesToTakeRows(source.device);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor* const tensor = tensors_[i];
    const size_t leaf = numbers.empty() ? i : numbers[i];
    const LeafSpec& want = source.spec.leaves()[leaf].spec;
    if (tensor == nullptr ||
        !MayReuse(*tensor, want.dtype, batch_shape, want.shape, rules)) {
      return false;
    }
    // The caller's rows may lie at any distance, so the copy goes by this
    // stride.
    const ByteExtent extent = ByteExtent::Of(*tensor, 1);
    Add(leaf, tensor->raw_data(), extent.stride, extent.width);
    extents_.push_back(extent);
  }
  PassCaches(batch_shape[0]);
  // Rows of two leaves that overlap would overwrite each other in the copy.
  return LieApart(extents_);
}

bool ReadPlaces::FindIn(const Source& source, int64_t n,
                        const TensorDict& out) {
  const Shape batch_shape = {n};
  return out.batch_shape() == batch_shape && source.tree.Find(out, &tensors_) &&
         UseTensors(source, batch_shape, {});
}

bool ReadPlaces::FindSomeIn(const Source& source, int64_t n,
                            const TensorDict& out) {
  const Shape batch_shape = {n};
  if (!(out.batch_shape() == batch_shape) ||
      out.num_leaves() != static_cast<int64_t>(numbers_.size())) {
    return false;
  }
  tensors_.clear();
  for (const size_t i : numbers_) {
    tensors_.push_back(out.Find(source.spec.leaves()[i].key));
  }
  return UseTensors(source, batch_shape, numbers_);
}

absl::Status ReadPlaces::Find(const Source& source, int64_t n,
                              const ReadRequest& request) {
  fresh_.reset();
  if (request.out == nullptr) {
    return UseBound(source, n, request.leaves, request.places);
  }
  return request.keys ? FindSome(source, n, *request.keys, *request.out)
                      : FindAll(source, n, *request.out);
}

absl::Status ReadPlaces::FindAll(const Source& source, int64_t n,
                                 const TensorDict& out) {
  if (FindIn(source, n, out)) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(fresh_,
                        source.spec.Empty({n}, RowMemory(source.device)));
  if (FindIn(source, n, *fresh_)) return absl::OkStatus();
  return Internal("Storage::Read: made an unfit batch");
}

absl::Status ReadPlaces::FindSome(const Source& source, int64_t n,
                                  absl::Span<const std::string> keys,
                                  const TensorDict& out) {
  RILL_RETURN_IF_ERROR(NumbersOf(source.spec, keys, &numbers_));
  if (FindSomeIn(source, n, out)) return absl::OkStatus();
  TensorDictSpec some;
  for (const size_t i : numbers_) {
    const TensorDictSpec::Leaf& leaf = source.spec.leaves()[i];
    RILL_RETURN_IF_ERROR(some.Set(leaf.key, leaf.spec));
  }
  RILL_ASSIGN_OR_RETURN(fresh_, some.Empty({n}, RowMemory(source.device)));
  if (FindSomeIn(source, n, *fresh_)) return absl::OkStatus();
  return Internal("Storage::ReadLeaves: made an unfit batch");
}

absl::Status ReadPlaces::UseBound(const Source& source, int64_t n,
                                  absl::Span<const size_t> numbers,
                                  absl::Span<const BoundLeaf> bound) {
  leaves.clear();
  widths_.clear();
  const auto& all = source.spec.leaves();
  if (bound.size() != numbers.size()) {
    return InvalidArgument("Storage::ReadInto: places: got ", bound.size(),
                           ", want one for each of ", numbers.size(),
                           " leaves");
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    const size_t leaf = numbers[i];
    if (leaf >= all.size()) {
      return InvalidArgument("Storage::ReadInto: leaves: got number ", leaf,
                             ", want one below ", all.size());
    }
    const int64_t width =
        all[leaf].spec.shape.num_elements() * DTypeSize(all[leaf].spec.dtype);
    if (!Takes(bound[i], all[leaf].spec.dtype, width, n, source.device)) {
      return Unfit(bound[i], all[leaf], width, n, source.device);
    }
    Add(leaf, bound[i].data, bound[i].is_flat ? width : bound[i].strides[0],
        width);
  }
  PassCaches(n);
  return absl::OkStatus();
}

void ReadPlaces::Bind(const Source& source, int64_t n,
                      BoundPlaces* bound) const {
  bound->leaves.clear();
  bound->places.clear();
  bound->keys.resize(leaves.size());
  bound->has_all = leaves.size() == source.spec.leaves().size();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafBatch& place = leaves[i];
    const TensorDictSpec::Leaf& leaf = source.spec.leaves()[place.leaf];
    bound->leaves.push_back(place.leaf);
    bound->places.push_back({.data = place.data,
                             .strides = {place.stride, 0},
                             .width = widths_[i],
                             .is_flat = place.stride == widths_[i],
                             .dtype = leaf.spec.dtype,
                             .device = source.device,
                             .is_writable = true,
                             .rows = n});
    bound->keys[i] = leaf.key;
  }
}

void ReadPlaces::FindNone() {
  leaves.clear();
  widths_.clear();
  fresh_.emplace(Shape({0}));
}

void ReadPlaces::Finish(const ReadRequest& request) {
  // A new batch is handed out here only, so after an error `out` still has its
  // own.
  if (fresh_ && request.out != nullptr) *request.out = *std::move(fresh_);
  fresh_.reset();
}

absl::Status ReadFrom(const RowReader& reader, absl::Span<const Slot> slots,
                      const ReadRequest& request) {
  if (request.out == nullptr) {
    return reader.ReadInto(slots, request.leaves, request.places);
  }
  return request.keys ? reader.ReadLeaves(slots, *request.keys, request.out)
                      : reader.Read(slots, request.out);
}

}  // namespace rill::storage_internal
