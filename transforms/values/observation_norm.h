// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_OBSERVATION_NORM_H_
#define RILL_TRANSFORMS_VALUES_OBSERVATION_NORM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Observations become observation * scale + loc; with standard_normal
// (observation - loc) / scale. With in_keys_inv the other formula undoes it
// before a write, and for an action. TorchRL's ObservationNorm.
//
// Shapes: float32 or float64, any shape; where there are several numbers, of as
//   many elements a row.
// Thread-safety: immutable.
// Numerics: those of RowStep.
// Cost: one pass; in place after reads where the key stays.
//
// Example (ObservationNormTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto stats, ObservationNorm::InitStats([&] { return Rollout(); },
//                                              {.standard_normal = true}));
//   RILL_ASSIGN_OR_RETURN(
//       auto norm, ObservationNorm::Create({.loc = stats.loc,
//                                           .scale = stats.scale,
//                                           .standard_normal = true}));
struct ObservationNorm {
  struct Options {
    // One number for all elements of a row, or one for each.
    std::vector<double> loc = {};    // Finite.
    std::vector<double> scale = {};  // Finite, not 0.
    std::vector<std::string> in_keys = {"observation"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
    bool standard_normal = false;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);

  struct Stats {
    std::vector<double> loc;
    std::vector<double> scale;
  };
  struct StatsOptions {
    int64_t num_iter = 1;  // Batches, at least 1.
    std::string key = "observation";
    // Dimensions of a row, < 0, whose elements share numbers. Those of the
    // batch always do.
    std::vector<int> reduce_dim = {};
    bool standard_normal = false;  // As in Options.
    double eps = 1e-6;             // The least deviation; > 0.
  };

  // Numbers that make values like those of `next_batch` standard normal: mean
  // and deviation (of n - 1) by Welford's method in double, one for each
  // element of a row. INVALID_ARGUMENT names the option, or a leaf that is not
  // float32 or float64 or of another row shape than before. So too where the
  // numbers are not finite, as with fewer than two values, or NaN.
  // FAILED_PRECONDITION where the leaf lies on a device.
  static absl::StatusOr<Stats> InitStats(
      absl::FunctionRef<absl::StatusOr<TensorDict>()> next_batch,
      const StatsOptions& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_OBSERVATION_NORM_H_
