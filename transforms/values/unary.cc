// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/unary.h"

#include <cstdint>
#include <utility>

#include "rill/base/status_macros.h"

namespace rill {
namespace {

// Rows as the user's function gets them. BoundLeaf has no form for bytes that
// are only read; is_writable stays false for these.
BoundLeaf Bound(const LeafSpec& leaf, int64_t rows, const std::byte* data) {
  const int64_t width = leaf.shape.num_elements() * DTypeSize(leaf.dtype);
  return {.data = const_cast<std::byte*>(data),
          .strides = {width, width},
          .width = width,
          .dtype = leaf.dtype,
          .rows = rows,
          .shape = leaf.shape};
}

class FunctionMap final : public RowMap {
 public:
  FunctionMap(Unary::Function fn, Unary::SpecFunction spec_fn)
      : fn_(std::move(fn)), spec_fn_(std::move(spec_fn)) {}

  absl::StatusOr<LeafSpec> MapSpec(const LeafSpec& leaf) const override {
    if (spec_fn_ != nullptr) return spec_fn_(leaf);
    return LeafSpec::Unbounded(leaf.dtype, leaf.shape);
  }

  absl::Status MapRows(DType dtype, const Shape& shape, int64_t count,
                       const std::byte* from, std::byte* to) const override {
    const LeafSpec before = LeafSpec::Unbounded(dtype, shape);
    // The layout after the function is asked anew: spec_fn is said to depend on
    // dtype and shape alone.
    RILL_ASSIGN_OR_RETURN(const LeafSpec after, MapSpec(before));
    BoundLeaf result = Bound(after, count, to);
    result.is_writable = true;
    return fn_(Bound(before, count, from), result);
  }

 private:
  const Unary::Function fn_;
  const Unary::SpecFunction spec_fn_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Unary::Create(
    Options options) {
  constexpr absl::string_view kCaller = "Unary::Create";
  if (options.fn == nullptr) {
    return InvalidArgument(kCaller, ": fn: got none, want a function of rows");
  }
  // A function without keys would never be called, and keys without one have no
  // meaning.
  if ((options.inv_fn == nullptr) != options.in_keys_inv.empty()) {
    return InvalidArgument(
        kCaller, ": inv_fn: got ", options.inv_fn == nullptr ? "none" : "one",
        ", want a function where there are in_keys_inv, and only there");
  }
  RowwiseTransform::Rows rows = {
      .map = std::make_shared<FunctionMap>(std::move(options.fn),
                                           std::move(options.spec_fn)),
      .in_keys = std::move(options.in_keys),
      .out_keys = std::move(options.out_keys)};
  if (options.inv_fn != nullptr) {
    rows.inverse = std::make_shared<FunctionMap>(std::move(options.inv_fn),
                                                 /*spec_fn=*/nullptr);
    rows.in_keys_inv = std::move(options.in_keys_inv);
  }
  OptionValues values;
  values.Function("fn", true).Function("inv_fn", rows.inverse != nullptr);
  // Without an inverse too: saves have it.
  if (rows.inverse == nullptr) values.Texts("in_keys_inv", {});
  return RowwiseTransform::Make("Unary", std::move(rows), values);
}

}  // namespace rill
