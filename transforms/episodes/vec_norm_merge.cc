// SPDX-License-Identifier: Apache-2.0
// Uses of a VecNorm's states: merges and ReadVecNorm.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/statistics/vec_norm_statistics.h"
#include "rill/transforms/statistics/vec_norm_sums.h"

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

// Takes the rows of `other` away from `sum`.
absl::Status SubtractExactly(absl::string_view key,
                             const VecNormSumsView& other, const Tensor& sum) {
  const VecNormSumsView out(sum);
  bool began_there = *other.rows <= *out.rows;
  for (int64_t i = 0; i < out.n; ++i) {
    began_there &= SubtractSums(other.sums[i], &out.sums[i]);
  }
  if (!began_there) {
    return FailedPrecondition("VecNormSince: \"", key, "\": got a state of ",
                              *out.rows, " rows and a start of ", *other.rows,
                              ", want the one to have begun with the other");
  }
  *out.rows -= *other.rows;
  return absl::OkStatus();
}

// Both leaves of one key in both states, `first` to be written.
struct LeafPair {
  Tensor first;
  Tensor second;
  bool is_exact() const { return first.dtype() == DType::kInt64; }
};

// Calls fn(key, pair) for each leaf, and collects the written ones. What is no
// tensor comes from `a`.
template <typename Fn>
absl::StatusOr<TensorDict> MapPairs(absl::string_view caller,
                                    const TensorDict& a, const TensorDict& b,
                                    const Fn& fn) {
  const std::string difference =
      LayoutDifference(TensorDictSpec::Of(b), TensorDictSpec::Of(a));
  if (!difference.empty()) return FailedPrecondition(caller, ": ", difference);
  TensorDict made = a;
  for (const std::string& key : a.LeafKeys()) {
    // Check the leaves of both.
    RILL_RETURN_IF_ERROR(ReadVecNorm(a, key).status()) << caller;
    RILL_RETURN_IF_ERROR(ReadVecNorm(b, key).status()) << caller;
    LeafPair pair;
    RILL_ASSIGN_OR_RETURN(pair.first, a.Find(key)->Clone());
    RILL_ASSIGN_OR_RETURN(pair.second, b.Find(key)->Contiguous());
    RILL_RETURN_IF_ERROR(fn(key, pair));
    RILL_RETURN_IF_ERROR(made.Set(key, std::move(pair.first)));
  }
  return made;
}

bool HasEqualBytes(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw_data(), b.raw_data(),
                     static_cast<size_t>(a.size_bytes())) == 0;
}

}  // namespace

absl::StatusOr<TensorDict> MergeVecNorm(const TensorDict& a,
                                        const TensorDict& b) {
  return MapPairs(
      "MergeVecNorm", a, b,
      [](absl::string_view key, const LeafPair& pair) -> absl::Status {
        if (pair.is_exact()) {
          return MergeExactly(key, VecNormSumsView(pair.second), pair.first);
        }
        RILL_ASSIGN_OR_RETURN(const Tensor first, pair.first.Clone());
        MergeRounded(VecNormStatistics(first), VecNormStatistics(pair.second),
                     pair.first);
        return absl::OkStatus();
      });
}

absl::StatusOr<TensorDict> VecNormSince(const TensorDict& state,
                                        const TensorDict& start) {
  return MapPairs(
      "VecNormSince", state, start,
      [](absl::string_view key, const LeafPair& pair) -> absl::Status {
        if (pair.is_exact()) {
          return SubtractExactly(key, VecNormSumsView(pair.second), pair.first);
        }
        std::memset(pair.first.raw_data(), 0,
                    static_cast<size_t>(pair.first.size_bytes()));
        return absl::OkStatus();
      });
}

absl::StatusOr<TensorDict> MergeVecNormSince(
    const TensorDict& start, absl::Span<const TensorDict> states) {
  TensorDict merged = start;
  for (const TensorDict& state : states) {
    RILL_ASSIGN_OR_RETURN(const TensorDict since, VecNormSince(state, start));
    RILL_ASSIGN_OR_RETURN(merged, MergeVecNorm(merged, since));
  }
  // With a decay nothing was added up to here.
  TensorDict sum = states.empty() ? start : states[0];
  for (size_t i = 1; i < states.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(sum, MergeVecNorm(sum, states[i]));
  }
  for (const std::string& key : start.LeafKeys()) {
    RILL_ASSIGN_OR_RETURN(const Tensor before, start.Find(key)->Contiguous());
    bool has_learned = false;
    for (const TensorDict& state : states) {
      RILL_ASSIGN_OR_RETURN(const Tensor leaf, state.Find(key)->Contiguous());
      has_learned |= !HasEqualBytes(leaf, before);
    }
    // Those of frozen ones stay as they are, to the bit.
    if (before.dtype() == DType::kInt64 || !has_learned) continue;
    RILL_ASSIGN_OR_RETURN(Tensor leaf, sum.Find(key)->Clone());
    if (VecNormStatistics(before).weight() > 0) {
      const VecNormStatistics mean(leaf);
      const auto number = static_cast<double>(states.size());
      mean.weight() /= number;
      for (int64_t i = 0; i < mean.n; ++i) mean.squares(i) /= number;
    }
    RILL_RETURN_IF_ERROR(merged.Set(key, std::move(leaf)));
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
