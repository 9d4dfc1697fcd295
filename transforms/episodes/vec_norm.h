// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_VEC_NORM_H_
#define RILL_TRANSFORMS_EPISODES_VEC_NORM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// Normalises leaves beside an environment by their own running statistics: each
// element becomes (x - mean) / max(standard deviation, eps), over all lanes
// and steps so far, those of this call included. TorchRL's VecNorm.
//
// "observation" is the leaf of the root after resets, where the masked lanes
// count, and the one below next after steps, with one statistic for both.
// "next/reward" is below next alone. Each call weighs what was before by
// `decay`; with 1 all rows weigh the same.
//
// Shapes: float32 or float64 of any shape, which `shapes` says beforehand.
// State: a tensor for each of in_keys, under it, for n elements of a row. To
//   save, load and share it: the environment's state.
//   decay 1: int64 [1 + 11 n], the number of rows and sums of the elements'
//     digits (docs/formats/saved_state.md).
//   Else float64 [1 + 2 n]: the weight of all rows, the elements' means, and
//     their sums of squared deviations.
// Numerics: with decay 1 the state depends on the rows alone, to the bit.
//   Lanes, calls, threads and processes may part them in any way, and merges
//   may come in any order. Sums of digits do not round (Demmel and Nguyen,
//   2015). Each mean and deviation is that of all rows to within 2^-50 of the
//   element's largest absolute value. With another decay, which makes the order
//   of rows count: Welford's method for many rows in double (Chan, Golub,
//   LeVeque 1979), with the same bits for the same calls.
// Errors: INVALID_ARGUMENT where a value is not finite, or with decay 1 beyond
//   2^493; the state stays. FAILED_PRECONDITION where a state has another
//   layout, as that of another decay may have, or with decay 1 behind 2^36 rows.
// Thread-safety: immutable, but for state tensors that nobody holds any more,
//   which are used again under a lock.
// Cost: two vector passes over [lanes, n], and with decay 1 several times as
//   much; no allocation once states come and go. Statistics of up to 512
//   elements, and all sums, are written in place where nobody else holds the
//   state's tensor.
//
// Example (VecNormTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto norm, VecNorm::Create({.in_keys = {"observation", "next/reward"},
//                                   .shapes = {{4}, {1}}}));
struct VecNorm {
  struct Options {
    std::vector<std::string> in_keys = {"observation"};
    std::vector<Shape> shapes = {};  // Of each of in_keys, without the lanes.
    // For each of in_keys; empty: in_keys.
    std::vector<std::string> out_keys = {};
    // In (0, 1]. With 1 the statistics are exact, see Numerics.
    double decay = 0.9999;
    double eps = 1e-4;  // > 0
    // Normalises by the statistics that its state holds and learns nothing:
    // load the state of one that has learned with this decay. Without any,
    // leaves stay.
    bool frozen = false;
  };

  // INVALID_ARGUMENT names the option, or a key whose twin below next is listed
  // too.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

// The statistics of the rows of both states: of environments in other lanes,
// threads or processes. Any order and grouping of merges gives one result. With
// decay 1 that is to the bit the state of one environment that has seen all
// rows. Else it is so to rounding, and swapped arguments give the same bits.
// States that have a start in common count it twice, so let each start from
// InitialState.
// FAILED_PRECONDITION names the leaf in which they differ in layout, or which
// would have more than 2^36 rows with decay 1. INVALID_ARGUMENT names one that
// is no VecNorm's, or has numbers that no rows have.
absl::StatusOr<TensorDict> MergeVecNorm(const TensorDict& a,
                                        const TensorDict& b);

// For workers that all go on from one state, which a merge must count once.
// VecNormSince: what `state` has learned since it was `start`. With decay 1
// that is to the bit the state of its rows since, but for a window as high as
// that of `state`. With another decay nobody can tell, and it is no row.
// MergeVecNormSince: `start`, and what each of `states` has learned since. With
// decay 1 that is to the bit the state of one environment that goes on from
// `start` and sees all rows. Else it is MergeVecNorm of them; where `start` has
// rows, its weight is then divided by their number. So a state that is merged
// and handed out again and again gains no weight by that.
// Errors: as MergeVecNorm; FAILED_PRECONDITION where a state did not begin with
// `start`.
absl::StatusOr<TensorDict> VecNormSince(const TensorDict& state,
                                        const TensorDict& start);
absl::StatusOr<TensorDict> MergeVecNormSince(
    const TensorDict& start, absl::Span<const TensorDict> states);

// The moments of one leaf in a state: for an ObservationNorm, or to look at.
struct VecNormMoments {
  double count = 0;   // The weight of all rows.
  Tensor loc = {};    // float64 [n], means.
  Tensor scale = {};  // float64 [n], standard deviations.
};
// NOT_FOUND lists the keys there are; INVALID_ARGUMENT as MergeVecNorm.
absl::StatusOr<VecNormMoments> ReadVecNorm(const TensorDict& state,
                                           absl::string_view key);

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_VEC_NORM_H_
