// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_VALUE_CLIPS_H_
#define RILL_TRANSFORMS_VALUES_VALUE_CLIPS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// Transforms that bound each element by itself: after reads and beside an
// environment; Clip and Sign with in_keys_inv before writes and of actions,
// too. NaN stays NaN in all but BinarizeReward.
//
// Shapes: any. Dtypes: numbers but bool, float16 and bfloat16; BinarizeReward
//   float32 and float64. Integers are clipped to whole numbers inside the
//   bounds.
// Errors: INVALID_ARGUMENT names the leaf of another dtype.
// Thread-safety: immutable.
// Cost: one pass; in place after reads where the key stays.

// Values below `low` become low, those above `high` high. TorchRL's
// ClipTransform.
//
// Example (ClipTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto clip, Clip::Create({.in_keys = {"observation"},
//                                                  .low = -5,
//                                                  .high = 5}));
struct Clip {
  struct Options {
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
    // At least one; low <= high.
    std::optional<double> low = std::nullopt;
    std::optional<double> high = std::nullopt;
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// A Clip of rewards. TorchRL's RewardClipping.
//
// Example (RewardClippingTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto clipping, RewardClipping::Create({.clamp_min = -1,
//                                              .clamp_max = 1}));
struct RewardClipping {
  struct Options {
    // At least one; clamp_min <= clamp_max.
    std::optional<double> clamp_min = std::nullopt;
    std::optional<double> clamp_max = std::nullopt;
    std::vector<std::string> in_keys = {"next/reward"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// 1 for a reward that is positive, 0 for every other, NaN too. TorchRL's
// BinarizeReward, which makes int8 of it; here the dtype stays.
//
// Example (BinarizeRewardTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto binarize, BinarizeReward::Create({}));
struct BinarizeReward {
  struct Options {
    std::vector<std::string> in_keys = {"next/reward"};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

// -1, 0 or 1. TorchRL's SignTransform.
//
// Example (SignTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto sign,
//                         Sign::Create({.in_keys = {"next/reward"}}));
struct Sign {
  struct Options {
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    std::vector<std::string> in_keys_inv = {};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_VALUE_CLIPS_H_
