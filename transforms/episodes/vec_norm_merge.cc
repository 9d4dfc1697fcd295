// SPDX-License-Identifier: Apache-2.0
// Uses of a VecNorm's states: MergeVecNorm and ReadVecNorm.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/episodes/vec_norm_statistics.h"
#include "rill/transforms/episodes/vec_norm_sums.h"
#include "rill/transforms/leaves.h"

namespace rill {

using transforms_internal::kMostVecNormRows;
using transforms_internal::kVecNormWords;
using transforms_internal::VecNormElement;
using transforms_internal::VecNormStatistics;
using transforms_internal::VecNormSumsView;

namespace {

// Adds the rows of `other` to `sum`.
absl::Status MergeExactly(absl::string_view key, const VecNormSumsView& other,
                          const Tensor& sum) {
  const VecNormSumsView out(sum);
  if (*other.rows > kMostVecNormRows - *out.rows) {
    return FailedPrecondition(
        "MergeVecNorm: \"", key, "\": got states of ", *out.rows, " and ",
        *other.rows, " rows, want at most ", kMostVecNormRows, " together");
  }
  for (int64_t i = 0; i < out.n; ++i) MergeSums(other.sums[i], &out.sums[i]);
  *out.rows += *other.rows;
  return absl::OkStatus();
}

void MergeRounded(const VecNormStatistics& a, const VecNormStatistics& b,
                  const Tensor& sum) {
  const VecNormStatistics out(sum);
  // Merge is symmetric in its arguments, so swapped states give the same bits.
  for (int64_t i = 0; i < out.n; ++i) {
    const VecNormElement both = Merge(a.At(i), b.At(i));
    out.mean(i) = both.mean;
    out.squares(i) = both.squares;
  }
  out.weight() = a.weight() + b.weight();
}

// The statistics of each element, of sums or of a decayed state.
template <typename View>
void ReadElements(const View& view, VecNormMoments* moments) {
  for (int64_t i = 0; i < view.n; ++i) {
    const VecNormElement element = view.At(i);
    // Before the first row there is no mean: zeros.
    if (element.weight == 0) return;
    moments->loc.data<double>()[i] = element.mean;
    // Divided by the weight and not by weight - 1: as VecNorm normalises.
    moments->scale.data<double>()[i] =
        std::sqrt(element.squares / element.weight);
  }
}

}  // namespace

absl::StatusOr<TensorDict> MergeVecNorm(const TensorDict& a,
                                        const TensorDict& b) {
  const std::string difference =
      LayoutDifference(TensorDictSpec::Of(b), TensorDictSpec::Of(a));
  if (!difference.empty()) {
    return FailedPrecondition("MergeVecNorm: ", difference);
  }
  TensorDict merged;
  for (const std::string& key : a.LeafKeys()) {
    // Check the leaves of both.
    RILL_RETURN_IF_ERROR(ReadVecNorm(a, key).status()) << "MergeVecNorm";
    RILL_RETURN_IF_ERROR(ReadVecNorm(b, key).status()) << "MergeVecNorm";
    RILL_ASSIGN_OR_RETURN(const Tensor first, a.Find(key)->Contiguous());
    RILL_ASSIGN_OR_RETURN(const Tensor second, b.Find(key)->Contiguous());
    RILL_ASSIGN_OR_RETURN(Tensor both, first.Clone());
    if (first.dtype() == DType::kInt64) {
      RILL_RETURN_IF_ERROR(MergeExactly(key, VecNormSumsView(second), both));
    } else {
      MergeRounded(VecNormStatistics(first), VecNormStatistics(second), both);
    }
    RILL_RETURN_IF_ERROR(merged.Set(key, std::move(both)));
  }
  return merged;
}

absl::StatusOr<VecNormMoments> ReadVecNorm(const TensorDict& state,
                                           absl::string_view key) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, transforms_internal::ReadLeaf(
                                               "ReadVecNorm", key, state));
  const int64_t words = leaf.rank() == 1 ? leaf.num_elements() - 1 : -1;
  const bool is_exact =
      leaf.dtype() == DType::kInt64 && words >= 0 && words % kVecNormWords == 0;
  const bool is_rounded =
      leaf.dtype() == DType::kFloat64 && words >= 0 && words % 2 == 0;
  if (!is_exact && !is_rounded) {
    return InvalidArgument(
        "ReadVecNorm: \"", key, "\": got ", DTypeName(leaf.dtype()),
        leaf.shape().ToString(), ", want a VecNorm's state: int64[1 + ",
        kVecNormWords, " n] of its sums, or float64[1 + 2 n]");
  }
  if (!(is_exact ? VecNormSumsView(leaf).IsSound()
                 : VecNormStatistics(leaf).IsSound())) {
    return InvalidArgument("ReadVecNorm: \"", key,
                           "\": got numbers that no rows have, want the counts "
                           "and finite statistics of some");
  }
  const Shape elements = {words / (is_exact ? kVecNormWords : 2)};
  VecNormMoments moments;
  RILL_ASSIGN_OR_RETURN(moments.loc, Tensor::Zeros(DType::kFloat64, elements));
  RILL_ASSIGN_OR_RETURN(moments.scale,
                        Tensor::Zeros(DType::kFloat64, elements));
  if (is_exact) {
    const VecNormSumsView view(leaf);
    moments.count = static_cast<double>(*view.rows);
    ReadElements(view, &moments);
  } else {
    const VecNormStatistics view(leaf);
    moments.count = view.weight();
    ReadElements(view, &moments);
  }
  return moments;
}

}  // namespace rill
