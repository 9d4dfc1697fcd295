// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_EPISODES_VEC_NORM_H_
#define RILL_TRANSFORMS_EPISODES_VEC_NORM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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
// State: for each of in_keys, under it, float64 [1 + 2 n] for n elements of a
//   row: the weight of all rows, the elements' means, and their sums of squared
//   deviations. To save, load and share it: the environment's state.
// Numerics: moments of the rows of a call around the mean so far, then merged
//   (Chan, Golub, LeVeque 1979), in double: Welford's method for many rows.
//   With decay 1 lanes, calls and states may part the rows in any way, and
//   merges may come in any order. The count is exact. Each mean and deviation
//   is that of all rows to within 2^-52 (m + k) x. Here m is the rows of the
//   largest call, k the number of calls and merges, and x the largest absolute
//   value. The same parts in the same order give the same bits; other parts do
//   not. For that floats and their squares would want exact sums: some 15 words
//   an element, and several times the time.
// Errors: INVALID_ARGUMENT where a value is not finite; the state stays.
//   FAILED_PRECONDITION where a state has another layout.
// Thread-safety: immutable, but for state tensors that nobody holds any more,
//   which are used again under a lock.
// Cost: two vector passes over [lanes, n]; no allocation once states come and
//   go. Statistics of up to 512 elements are written in place where nobody else
//   holds the state's tensor.
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
    double decay = 0.9999;  // In (0, 1].
    double eps = 1e-4;      // > 0
    // Normalises by the statistics that its state holds and learns nothing:
    // load the state of one that has learned. Without any, leaves stay.
    bool frozen = false;
  };

  // INVALID_ARGUMENT names the option, or a key whose twin below next is listed
  // too.
  static absl::StatusOr<std::unique_ptr<StepTransform>> Create(
      const Options& options);
};

// The statistics of the rows of both states: of environments in other lanes,
// threads or processes. Any order and grouping of merges gives one result, to
// the rounding that VecNorm's Numerics say; swapped arguments the same bits.
// States that have a start in common count it twice, so let each start from
// InitialState. FAILED_PRECONDITION names the leaf in which they differ in
// layout.
absl::StatusOr<TensorDict> MergeVecNorm(const TensorDict& a,
                                        const TensorDict& b);

// What a state says of the leaf `key`: for an ObservationNorm, or to look at.
struct VecNormMoments {
  double count = 0;   // The weight of all rows.
  Tensor loc = {};    // float64 [n], means.
  Tensor scale = {};  // float64 [n], standard deviations.
};
// NOT_FOUND lists the keys there are.
absl::StatusOr<VecNormMoments> ReadVecNorm(const TensorDict& state,
                                           absl::string_view key);

}  // namespace rill

#endif  // RILL_TRANSFORMS_EPISODES_VEC_NORM_H_
