// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/row_shapes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/rows/device_rows.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/structure/key_paths.h"
#include "rill/transforms/structure/strided_rows.h"

namespace rill {
namespace {

using ShapeFunction = std::function<absl::StatusOr<Shape>(const Shape&)>;

absl::Status Misfit(const Shape& got, absl::string_view want) {
  return InvalidArgument("got rows of shape ", got.ToString(), ", want ", want);
}

absl::Status BadDim(absl::string_view caller, absl::string_view option, int got,
                    absl::string_view want) {
  return InvalidArgument(caller, "::Create: ", option, ": got ", got, ", want ",
                         want, ": a dimension of a row counts from the back");
}

// Bounds of each element go along in the same order. A domain that the other
// shape cannot have, as that of one-hot rows, is lost.
std::shared_ptr<const RowMap> ReshapeTo(ShapeFunction shape_of) {
  return MakeReshape([shape_of = std::move(shape_of)](
                         const LeafSpec& leaf) -> absl::StatusOr<LeafSpec> {
    RILL_ASSIGN_OR_RETURN(const Shape shape, shape_of(leaf.shape));
    absl::StatusOr<LeafSpec> same = leaf.Reshape(shape);
    if (same.ok()) return same;
    return LeafSpec::Unbounded(leaf.dtype, shape);
  });
}

// A new dimension of size 1; dim = -1 is the last of the new shape.
absl::StatusOr<Shape> WithDim(const Shape& shape, int dim) {
  const int at = shape.rank() + 1 + dim;
  if (at < 0 || shape.rank() == Shape::kMaxRank) {
    return Misfit(shape, absl::StrCat("a place for a new dimension ", dim));
  }
  return shape.Prefix(at).Concat({1}).Concat(shape.Suffix(at));
}

// The shape without the dimension, whose size has to be 1.
absl::StatusOr<Shape> WithoutDim(const Shape& shape, int dim) {
  const int at = shape.rank() + dim;
  if (at < 0 || shape[at] != 1) {
    return Misfit(shape, absl::StrCat("size 1 of dimension ", dim));
  }
  return shape.WithoutDim(at);
}

// Dimensions first_dim to last_dim as one. Both are < 0 and in order, so only
// the first can be missing.
absl::StatusOr<Shape> Flattened(const Shape& shape, int first_dim,
                                int last_dim) {
  const int first = shape.rank() + first_dim;
  const int last = shape.rank() + last_dim;
  if (first < 0) {
    return Misfit(shape, absl::StrCat("a dimension ", first_dim));
  }
  const int64_t size = shape.Prefix(last + 1).Suffix(first).num_elements();
  return shape.Prefix(first).Concat({size}).Concat(shape.Suffix(last + 1));
}

class PermuteMap final : public RowMap {
 public:
  explicit PermuteMap(std::vector<int> dims) : dims_(std::move(dims)) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    const int kept = leaf.shape.rank() - static_cast<int>(dims_.size());
    if (kept < 0) {
      return Misfit(leaf.shape,
                    absl::StrCat("at least ", dims_.size(), " dimensions"));
    }
    const Shape shape = Permuted(leaf.shape);
    if (leaf.lows() != nullptr) {
      // The dimensions before those that dims names stay.
      std::vector<int> order;
      for (int d = 0; d < kept; ++d) order.push_back(d);
      for (const int dim : dims_) order.push_back(leaf.shape.rank() + dim);
      RILL_ASSIGN_OR_RETURN(const Tensor low, leaf.lows()->Permute(order));
      RILL_ASSIGN_OR_RETURN(const Tensor high, leaf.highs()->Permute(order));
      return LeafSpec::Bounded(low, high);
    }
    return transforms_internal::WithShape(leaf, shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    // Strides of the old row, read in the new order.
    std::array<int64_t, Shape::kMaxRank> strides = {};
    int64_t run = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      strides[static_cast<size_t>(d)] = run;
      run *= shape[d];
    }
    transforms_internal::StridedRows rows = {.dtype = dtype,
                                             .shape = Permuted(shape),
                                             .from_width = run,
                                             .strides = strides};
    const size_t rank = static_cast<size_t>(shape.rank());
    // dims[i] is negative: it counts from the back of the old row.
    for (size_t i = 0; i < dims_.size(); ++i) {
      rows.strides[rank - dims_.size() + i] =
          strides[rank - static_cast<size_t>(-dims_[i])];
    }
    transforms_internal::CopyStridedRows(rows, count, from, to);
    return absl::OkStatus();
  }

  bool maps_on_device() const override { return true; }
  absl::Status MapOnDevice(DeviceRows* rows) const override {
    const int rank = rows->shape().rank();
    absl::InlinedVector<int, Shape::kMaxRank> order;
    for (int d = 0; d < rank - static_cast<int>(dims_.size()); ++d) {
      order.push_back(d);
    }
    for (const int dim : dims_) order.push_back(rank + dim);
    return rows->Permute(order);
  }

 private:
  Shape Permuted(const Shape& shape) const {
    Shape result = shape;
    const int rank = shape.rank();
    int at = rank - static_cast<int>(dims_.size());
    for (const int dim : dims_)
      result = result.WithSize(at++, shape[rank + dim]);
    return result;
  }

  const std::vector<int> dims_;
};

// A leaf as `map` shapes it: a view where strides allow it. Invalid, once it is
// checked, where MapLeaf is to copy it to another key, or it lies on a device.
absl::StatusOr<Tensor> Reshaped(absl::string_view caller, const RowMap& map,
                                absl::string_view in, absl::string_view out,
                                const TensorDict& batch) {
  absl::StatusOr<Tensor> leaf = batch.Get(in);
  RILL_RETURN_IF_ERROR(leaf.status()) << "in " << caller;
  const Shape row = leaf->shape().Suffix(batch.batch_shape().rank());
  const absl::StatusOr<LeafSpec> after =
      map.MapSpec(LeafSpec::Unbounded(leaf->dtype(), row));
  if (!after.ok()) {
    return absl::Status(
        after.status().code(),
        absl::StrCat(caller, ": \"", in, "\": ", after.status().message()));
  }
  if (in != out) {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckMaySet(caller, out, batch));
  }
  const absl::StatusOr<Shape> shape = after->FullShape(batch.batch_shape());
  RILL_RETURN_IF_ERROR(shape.status()) << "in " << caller << ": " << in;
  const Tensor* const found = batch.Find(in);
  if (found != nullptr && (in != out || !found->is_host())) return Tensor();
  return leaf->Reshape(*shape);
}

// Unsqueeze's map, and the inverse of Squeeze.
std::shared_ptr<const RowMap> UnsqueezeMap(int dim) {
  return ReshapeTo([dim](const Shape& shape) { return WithDim(shape, dim); });
}

std::shared_ptr<const RowMap> SqueezeMap(int dim) {
  return ReshapeTo(
      [dim](const Shape& shape) { return WithoutDim(shape, dim); });
}

// The base of those that make views.
class ReshapeRows final : public RowwiseTransform {
 public:
  ReshapeRows(Rows rows, absl::string_view name, const OptionValues& options)
      : RowwiseTransform(std::move(rows), name, options) {}

  absl::Status Forward(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    return ReshapeAll(
        *rows().map, rows().in_keys,
        rows().out_keys.empty() ? rows().in_keys : rows().out_keys, batch);
  }
  absl::Status Inverse(TensorDict* batch,
                       TensorDict* /*state*/) const override {
    if (rows().inverse == nullptr) return absl::OkStatus();
    return ReshapeAll(*rows().inverse, rows().in_keys_inv, rows().in_keys_inv,
                      batch);
  }

 private:
  // Leaves of two keys do not share bytes, as later transforms work in place:
  // the new key gets a copy.
  absl::Status ReshapeAll(const RowMap& map,
                          const std::vector<std::string>& in_keys,
                          const std::vector<std::string>& out_keys,
                          TensorDict* batch) const {
    absl::InlinedVector<Tensor, 16> views;
    for (size_t i = 0; i < in_keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(
          views.emplace_back(),
          Reshaped(name(), map, in_keys[i], out_keys[i], *batch));
    }
    for (size_t i = 0; i < in_keys.size(); ++i) {
      if (!views[i].is_valid()) {
        RILL_RETURN_IF_ERROR(MapLeaf(map, in_keys[i], out_keys[i], batch));
        continue;
      }
      absl::StatusOr<Tensor> made = std::move(views[i]);
      if (in_keys[i] != out_keys[i]) made = made->Clone();
      RILL_RETURN_IF_ERROR(made.status()) << "in " << name();
      RILL_RETURN_IF_ERROR(batch->Set(out_keys[i], *std::move(made)))
          << "in " << name();
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<RowwiseTransform>> MakeReshapeRows(
    absl::string_view name, RowwiseTransform::Rows rows,
    const OptionValues& options) {
  RILL_RETURN_IF_ERROR(
      RowwiseTransform::CheckRows(absl::StrCat(name, "::Create"), rows));
  return std::make_unique<ReshapeRows>(std::move(rows), name, options);
}

// Unsqueeze and Squeeze: one is the other's inverse.
absl::StatusOr<std::unique_ptr<RowwiseTransform>> MakeWithDim(
    absl::string_view name, std::shared_ptr<const RowMap> map,
    std::shared_ptr<const RowMap> inverse, const Unsqueeze::Options& options) {
  if (options.dim >= 0) return BadDim(name, "dim", options.dim, "< 0");
  return MakeReshapeRows(name,
                         {.map = std::move(map),
                          .in_keys = options.in_keys,
                          .out_keys = options.out_keys,
                          .inverse = std::move(inverse),
                          .in_keys_inv = options.in_keys_inv},
                         OptionValues().Int("dim", options.dim));
}

}  // namespace

// --- Views -------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> FlattenObservation::Create(
    const Options& options) {
  const int first = options.first_dim;
  const int last = options.last_dim;
  if (last >= 0) return BadDim("FlattenObservation", "last_dim", last, "< 0");
  if (first > last) {
    return BadDim("FlattenObservation", "first_dim", first,
                  absl::StrCat("at most last_dim, ", last));
  }
  return MakeReshapeRows(
      "FlattenObservation",
      {.map = ReshapeTo(
           [=](const Shape& shape) { return Flattened(shape, first, last); }),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys},
      OptionValues().Int("first_dim", first).Int("last_dim", last));
}

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Unsqueeze::Create(
    const Options& options) {
  return MakeWithDim("Unsqueeze", UnsqueezeMap(options.dim),
                     SqueezeMap(options.dim), options);
}

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Squeeze::Create(
    const Options& options) {
  return MakeWithDim("Squeeze", SqueezeMap(options.dim),
                     UnsqueezeMap(options.dim), options);
}

// --- Copies ------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Permute::Create(
    const Options& options) {
  const std::vector<int>& dims = options.dims;
  const int size = static_cast<int>(dims.size());
  // undone[j] is the new place of old dimension j, so that permuting by it goes
  // back. Places are < 0: a 0 that is left marks a dimension that is missing.
  std::vector<int> undone(dims.size(), 0);
  for (int i = 0; i < size && size <= Shape::kMaxRank; ++i) {
    const int dim = dims[static_cast<size_t>(i)];
    if (dim < 0 && dim >= -size)
      undone[static_cast<size_t>(size + dim)] = i - size;
  }
  if (size < 1 || std::count(undone.begin(), undone.end(), 0) > 0) {
    return InvalidArgument(
        "Permute::Create: dims: got [", absl::StrJoin(dims, ", "),
        "], want each of -", std::max(size, 1), " to -1 once, at most ",
        Shape::kMaxRank, ": dimensions of a row count from the back");
  }
  return RowwiseTransform::Make(
      "Permute",
      {.map = std::make_shared<PermuteMap>(dims),
       .in_keys = options.in_keys,
       .out_keys = options.out_keys,
       .inverse = std::make_shared<PermuteMap>(std::move(undone)),
       .in_keys_inv = options.in_keys_inv},
      OptionValues().Choice("dims", absl::StrJoin(dims, ",")));
}

}  // namespace rill
