// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/values/value_clips.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "rill/base/status_macros.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether a bound is one, or there is none.
absl::Status CheckBound(absl::string_view option, std::optional<double> bound) {
  // One that float32 rounds to infinity is none.
  if (!bound.has_value() || std::isfinite(static_cast<float>(*bound))) {
    return absl::OkStatus();
  }
  return InvalidArgument(option, ": got ", *bound,
                         ", want a finite float32, or none for no bound");
}

// A clip with an infinity where there is no bound. Options are named in
// messages as each class calls them.
absl::StatusOr<std::shared_ptr<const RowMap>> MakeClip(
    absl::string_view low_option, std::optional<double> low,
    absl::string_view high_option, std::optional<double> high) {
  RILL_RETURN_IF_ERROR(CheckBound(low_option, low));
  RILL_RETURN_IF_ERROR(CheckBound(high_option, high));
  if (!low.has_value() && !high.has_value()) {
    return InvalidArgument(low_option, " and ", high_option,
                           ": got none, want at least one of them");
  }
  // A missing `low` compares less than any bound, a missing `high` is excluded.
  if (low > high && high.has_value()) {
    return InvalidArgument(low_option, " and ", high_option, ": got ", *low,
                           " and ", *high, ", want the first to be no more");
  }
  return MakeRowStep({.kind = RowStep::Kind::kClip,
                      .low = low.value_or(-kInfinity),
                      .high = high.value_or(kInfinity)});
}

// The bounds as they were given, read back from the map: infinite ones are
// none.
OptionValues BoundsOf(absl::string_view low_option,
                      absl::string_view high_option, const RowMap& map) {
  const RowStep& step = map.steps()[0];
  OptionValues values;
  const auto add = [&](absl::string_view option, double bound) {
    std::isinf(bound) ? values.None(option) : values.Double(option, bound);
  };
  add(low_option, step.low);
  add(high_option, step.high);
  return values;
}

}  // namespace

// --- Clip --------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Clip::Create(
    const Options& options) {
  auto map = MakeClip("low", options.low, "high", options.high);
  RILL_RETURN_IF_ERROR(map.status()) << "in Clip::Create";
  // Before writes the same clip applies: what it cut off cannot come back.
  return RowwiseTransform::Make("Clip",
                                {.map = *map,
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys,
                                 .inverse = *map,
                                 .in_keys_inv = options.in_keys_inv},
                                BoundsOf("low", "high", **map));
}

// --- Rewards -----------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> RewardClipping::Create(
    const Options& options) {
  auto map =
      MakeClip("clamp_min", options.clamp_min, "clamp_max", options.clamp_max);
  RILL_RETURN_IF_ERROR(map.status()) << "in RewardClipping::Create";
  return RowwiseTransform::Make(
      "RewardClipping",
      {.map = *map, .in_keys = options.in_keys, .out_keys = options.out_keys},
      BoundsOf("clamp_min", "clamp_max", **map));
}

absl::StatusOr<std::unique_ptr<RowwiseTransform>> BinarizeReward::Create(
    const Options& options) {
  RILL_ASSIGN_OR_RETURN(auto map,
                        MakeRowStep({.kind = RowStep::Kind::kIsPositive}));
  return RowwiseTransform::Make("BinarizeReward",
                                {.map = std::move(map),
                                 .in_keys = options.in_keys,
                                 .out_keys = options.out_keys});
}

// --- Sign --------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<RowwiseTransform>> Sign::Create(
    const Options& options) {
  RILL_ASSIGN_OR_RETURN(auto map, MakeRowStep({.kind = RowStep::Kind::kSign}));
  return RowwiseTransform::Make("Sign", {.map = map,
                                         .in_keys = options.in_keys,
                                         .out_keys = options.out_keys,
                                         .inverse = map,
                                         .in_keys_inv = options.in_keys_inv});
}

}  // namespace rill
