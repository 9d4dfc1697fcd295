// SPDX-License-Identifier: Apache-2.0
// Uses of a VecNorm's states: MergeVecNorm and ReadVecNorm.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/episodes/vec_norm_statistics.h"
#include "rill/transforms/leaves.h"

namespace rill {

using transforms_internal::VecNormElement;
using transforms_internal::VecNormStatistics;

absl::StatusOr<TensorDict> MergeVecNorm(const TensorDict& a,
                                        const TensorDict& b) {
  const std::string difference =
      LayoutDifference(TensorDictSpec::Of(b), TensorDictSpec::Of(a));
  if (!difference.empty()) {
    return FailedPrecondition("MergeVecNorm: ", difference);
  }
  TensorDict merged;
  for (const std::string& key : a.LeafKeys()) {
    // Checks the layout of a state's leaf in `a`; `b` has the same layout.
    RILL_RETURN_IF_ERROR(ReadVecNorm(a, key).status()) << "MergeVecNorm";
    RILL_ASSIGN_OR_RETURN(const Tensor first, a.Find(key)->Contiguous());
    RILL_ASSIGN_OR_RETURN(const Tensor second, b.Find(key)->Contiguous());
    RILL_ASSIGN_OR_RETURN(Tensor both, first.Clone());
    const VecNormStatistics of_a(first);
    const VecNormStatistics of_b(second);
    const VecNormStatistics out(both);
    // Merge is symmetric in its arguments, so swapped states give the same
    // bits.
    for (int64_t i = 0; i < out.n; ++i) {
      const VecNormElement sum = Merge(of_a.At(i), of_b.At(i));
      out.mean(i) = sum.mean;
      out.squares(i) = sum.squares;
    }
    out.weight() = of_a.weight() + of_b.weight();
    RILL_RETURN_IF_ERROR(merged.Set(key, std::move(both)));
  }
  return merged;
}

absl::StatusOr<VecNormMoments> ReadVecNorm(const TensorDict& state,
                                           absl::string_view key) {
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, transforms_internal::ReadLeaf(
                                               "ReadVecNorm", key, state));
  if (leaf.dtype() != DType::kFloat64 || leaf.rank() != 1 ||
      leaf.num_elements() % 2 != 1) {
    return InvalidArgument("ReadVecNorm: \"", key, "\": got ",
                           DTypeName(leaf.dtype()), leaf.shape().ToString(),
                           ", want float64[1 + 2 n], a VecNorm's state");
  }
  const VecNormStatistics statistics(leaf);
  VecNormMoments moments = {.count = statistics.weight()};
  RILL_ASSIGN_OR_RETURN(moments.loc,
                        Tensor::Zeros(DType::kFloat64, {statistics.n}));
  RILL_ASSIGN_OR_RETURN(moments.scale,
                        Tensor::Zeros(DType::kFloat64, {statistics.n}));
  // Before the first row there is no mean: zeros.
  if (moments.count == 0) return moments;
  for (int64_t i = 0; i < statistics.n; ++i) {
    moments.loc.data<double>()[i] = statistics.mean(i);
    // Divided by the weight and not by weight - 1: as VecNorm normalises.
    moments.scale.data<double>()[i] =
        std::sqrt(statistics.squares(i) / moments.count);
  }
  return moments;
}

}  // namespace rill
