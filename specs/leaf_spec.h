// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SPECS_LEAF_SPEC_H_
#define RILL_SPECS_LEAF_SPEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

// The values of one leaf: dtype, the shape behind the batch shape, and a
// domain. A value: make one with a factory, change it with the members that
// return another. Bounds for each element, masks and several choices are shared
// by copies and never change.
//
// Choices. The last four domains but Binary are made of choices among options
// 0 .. n - 1. A row is the choices that lie together. Categorical has one
// element, the index; OneHot has n, a 1 among 0. MultiCategorical has one for
// each of nvec, MultiOneHot the sum of nvec, one 1 a group. All but Categorical
// keep a row in the last dimension; `lead` are the dimensions before it (all of
// them for Categorical).
//
// Thread-safety: thread-compatible.
// Device/Stream: tensors on a device are copied to the host to be read.
// Cost: copies O(1); what reads or makes values O(elements).
//
// Example (LeafSpecTest.Example runs it):
//   const LeafSpec move = LeafSpec::OneHot(3);
//   RILL_ASSIGN_OR_RETURN(const LeafSpec legal, move.WithMask(mask));  // 1 0 1
//   RILL_ASSIGN_OR_RETURN(Tensor moves, legal.Random({32}, Rng(1), 0));
//   RILL_ASSIGN_OR_RETURN(Tensor stay, legal.EncodeInts({2}));  // 0 0 1
struct LeafSpec {
  enum class Domain : uint8_t {
    kUnbounded,
    kBounded,
    kCategorical,
    kBinary,
    kOneHot,
    kMultiCategorical,
    kMultiOneHot,
  };
  struct Tables;  // The inside; read it through the members.

  DType dtype = DType::kFloat32;
  Shape shape;  // Trailing: without the batch dimensions.
  Domain domain = Domain::kUnbounded;
  double low = 0;   // kBounded: inclusive. Where elements have bounds of their
  double high = 0;  // own, the least low and the greatest high.
  int64_t num_categories = 0;  // kCategorical, kOneHot: options 0 .. n - 1.
  std::shared_ptr<const Tables> tables = nullptr;

  // --- Making ---------------------------------------------------------------
  // Wrong arguments are found by CheckDomain, which TensorDictSpec::Set asks.
  // Bounds count as rounded to the dtype: 0.1 admits the float32 that is
  // nearest to 0.1.
  static LeafSpec Unbounded(DType dtype, const Shape& shape);
  static LeafSpec Bounded(DType dtype, const Shape& shape, double low,
                          double high);
  // Each element its own bounds; dtype and shape are theirs. INVALID_ARGUMENT
  // if those of `low` and `high` differ, or names the element where low > high
  // or one is NaN. Bounds that are all the same are kept as scalars.
  static absl::StatusOr<LeafSpec> Bounded(const Tensor& low,
                                          const Tensor& high);
  static LeafSpec Categorical(int64_t num_categories,
                              DType dtype = DType::kInt64,
                              const Shape& shape = {});
  static LeafSpec Binary(const Shape& shape, DType dtype = DType::kBool);
  // Shape lead + [num_categories].
  static LeafSpec OneHot(int64_t num_categories, DType dtype = DType::kBool,
                         const Shape& lead = {});
  // Shape lead + [nvec.size()].
  static LeafSpec MultiCategorical(absl::Span<const int64_t> nvec,
                                   DType dtype = DType::kInt64,
                                   const Shape& lead = {});
  // Shape lead + [sum of nvec].
  static LeafSpec MultiOneHot(absl::Span<const int64_t> nvec,
                              DType dtype = DType::kBool,
                              const Shape& lead = {});

  // The same with only those options allowed where `mask` (bool) is true. Its
  // last dimension has one element for each option of a row ([n] or [sum of
  // nvec]). Those before it are aligned to the right with batch shape + lead,
  // each of the same size or 1. So [n] is for every row, and batch shape + lead
  // + [n] for batches of that shape only. INVALID_ARGUMENT for domains without
  // choices, another dtype or shape, or a choice without an allowed option.
  // Dimensions along which the mask repeats are dropped (so it may then be for
  // other batch shapes too), and one that allows everything is no mask.
  absl::StatusOr<LeafSpec> WithMask(const Tensor& mask) const;
  LeafSpec WithoutMask() const;
  // kBounded: the same with `fn`, monotonic either way, of every bound.
  absl::StatusOr<LeafSpec> MapBounds(
      absl::FunctionRef<double(double)> fn) const;

  // kMultiCategorical, kMultiOneHot: options of each choice of a row.
  absl::Span<const int64_t> nvec() const;
  // Null where there is none: the mask; bounds of each element, of dtype and
  // shape. Not to be written to.
  const Tensor* mask() const;
  const Tensor* lows() const;
  const Tensor* highs() const;

  // --- Checks ---------------------------------------------------------------
  // INVALID_ARGUMENT if the domain is empty (low > high, NaN, no category, no
  // member of the dtype) or the dtype has no arithmetic where it needs it.
  absl::Status CheckDomain() const;
  // OK if dtype and the shape behind `batch_shape` fit. Does not read values.
  absl::Status CheckLayout(absl::string_view key, const Shape& batch_shape,
                           const Tensor& tensor) const;
  // CheckLayout, then every value against domain and mask; names the first that
  // is outside. NaN is outside every domain but Unbounded.
  absl::Status CheckValues(absl::string_view key, const Shape& batch_shape,
                           const Tensor& tensor) const;
  // CheckValues for the batch shape that the tensor shows.
  bool Contains(const Tensor& tensor) const;
  // batch_shape + shape. INVALID_ARGUMENT past the limits of Shape.
  absl::StatusOr<Shape> FullShape(const Shape& batch_shape) const;

  // --- Values of shape batch_shape + shape ----------------------------------
  // A random member: uniform over the domain, over the allowed options under a
  // mask. Unbounded floating point: standard normal. Unbounded integer: uniform
  // over [-100, 100], as far as the dtype goes. Bounded on one side: the bound
  // and a standard exponential away from it. Element i (of choices: choice i)
  // is a function of (rng, batch, i) alone. INVALID_ARGUMENT for dtypes without
  // arithmetic, and masks of another batch shape. RandomInto reuses `out`,
  // without allocation, where it is contiguous host memory of dtype and shape;
  // it is unchanged by errors.
  absl::StatusOr<Tensor> Random(const Shape& batch_shape, const Rng& rng,
                                uint64_t batch) const;
  absl::Status RandomInto(const Shape& batch_shape, const Rng& rng,
                          uint64_t batch, Tensor* out) const;
  // Zeros / ones, whether the domain has them or not.
  absl::StatusOr<Tensor> Zero(const Shape& batch_shape) const;
  absl::StatusOr<Tensor> One(const Shape& batch_shape) const;

  // A copy with every value moved into the domain; members stay as they are.
  // Bounded: clamped. Categorical, Binary: rounded half to even, clamped, then
  // the nearest allowed option, the lower one of two. One-hot: a 1 at the
  // largest allowed element, the first of equals, a NaN being the least. Other
  // NaNs are taken as 0. Unbounded: unchanged. INVALID_ARGUMENT as CheckLayout
  // for the batch shape that the tensor shows.
  absl::StatusOr<Tensor> Project(const Tensor& tensor) const;

  // Values as a tensor: an element each, row-major; for one-hot domains an
  // option each choice. INVALID_ARGUMENT names the value that is outside, not a
  // whole number where the dtype wants one, or the number of values. Floating
  // point is rounded to the dtype.
  absl::StatusOr<Tensor> Encode(absl::Span<const double> values,
                                const Shape& batch_shape = {}) const;
  absl::StatusOr<Tensor> EncodeInts(absl::Span<const int64_t> values,
                                    const Shape& batch_shape = {}) const;

  // From (Multi)Categorical to (Multi)OneHot and back, masks kept; the value
  // forms check their argument. INVALID_ARGUMENT from other domains.
  absl::StatusOr<LeafSpec> ToOneHotSpec(DType to = DType::kBool) const;
  absl::StatusOr<LeafSpec> ToCategoricalSpec(DType to = DType::kInt64) const;
  absl::StatusOr<Tensor> ToOneHot(const Tensor& categorical,
                                  DType to = DType::kBool) const;
  absl::StatusOr<Tensor> ToCategorical(const Tensor& one_hot,
                                       DType to = DType::kInt64) const;

  // Number of members for an empty batch shape. None where it is infinite or
  // past int64, the mask differs from row to row of a batch, or the shape has
  // more than 2^20 elements. Floating point counts as infinite but for choices
  // and Binary.
  std::optional<int64_t> Cardinality() const;
  // All of them, [cardinality] + shape, the last choice or element fastest.
  // INVALID_ARGUMENT where there are none or more than `max_members`.
  absl::StatusOr<Tensor> Enumerate(int64_t max_members = 1 << 16) const;

  // --- Another shape --------------------------------------------------------
  // The same domain; bounds and masks of elements go with their elements. A
  // row's dimension stays last and as it is. INVALID_ARGUMENT names dimension
  // or shape, OUT_OF_RANGE the index.
  absl::StatusOr<LeafSpec> Index(int64_t index) const;  // Drops dimension 0.
  absl::StatusOr<LeafSpec> Unsqueeze(int dim) const;
  // Sizes of 1 (or new leading dimensions) repeat.
  absl::StatusOr<LeafSpec> Expand(const Shape& to) const;
  absl::StatusOr<LeafSpec> Reshape(const Shape& to) const;
  // Specs that differ in nothing but bounds and masks, along a new dimension.
  static absl::StatusOr<LeafSpec> Stack(absl::Span<const LeafSpec> specs,
                                        int dim = 0);

  std::string ToString() const;  // "float32[4] in [-1, 1]"
  // Equal layouts and domains, bounds and masks bit for bit.
  friend bool operator==(const LeafSpec& a, const LeafSpec& b);
};

// Immutable; tensors are contiguous, on the host, and no one else's.
struct LeafSpec::Tables {
  std::vector<int64_t> nvec;
  Tensor low;  // is_valid() both or neither.
  Tensor high;
  Tensor mask;
};

}  // namespace rill

#endif  // RILL_SPECS_LEAF_SPEC_H_
