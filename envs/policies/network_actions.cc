// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/policies/network_actions.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/standard_normal.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

// log(2 pi) / 2.
const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);

}  // namespace

absl::Status CheckBounds(absl::string_view who, const ActionBounds& bounds,
                         size_t width) {
  if (bounds.low.size() != bounds.high.size() ||
      (bounds.low.size() != 1 && bounds.low.size() != width)) {
    return InvalidArgument(who, ": bounds: got ", bounds.low.size(),
                           " low and ", bounds.high.size(), " high, want 1 or ",
                           width, " of each");
  }
  for (size_t i = 0; i < bounds.low.size(); ++i) {
    const float low = bounds.low[i], high = bounds.high[i];
    if (std::isfinite(low) && std::isfinite(high) && low < high) continue;
    return InvalidArgument(who, ": bounds: got [", low, ", ", high,
                           "] for number ", i,
                           ", want finite ones with low below high");
  }
  return absl::OkStatus();
}

NetworkActions::NetworkActions(absl::string_view who, ActionKind kind,
                               absl::string_view mask_key)
    : who_(who), mask_key_(mask_key), kind_(kind) {}

absl::Status NetworkActions::ChooseDiscrete(absl::Span<const float> values,
                                            size_t n, const bool* legal,
                                            const Draws& draws) {
  const size_t rows = n == 0 ? 0 : values.size() / n;
  indices_.resize(rows);
  log_probs_.resize(rows);
  weights_.resize(n);
  for (size_t row = 0; row < rows; ++row) {
    const auto row_values = values.subspan(row * n, n);
    const bool* const row_legal = legal == nullptr ? nullptr : legal + row * n;
    size_t best = n;
    for (size_t i = 0; i < n; ++i) {
      if (row_legal != nullptr && !row_legal[i]) continue;
      if (std::isnan(row_values[i])) {
        return InvalidArgument(who_,
                               ": output 0 of the model: got NaN for action ",
                               i, " of row ", row, ", want numbers");
      }
      if (best == n || row_values[i] > row_values[best]) best = i;
    }
    if (best == n) {
      return InvalidArgument(who_, ": \"", mask_key_, "\": row ", row,
                             " has no legal action");
    }
    indices_[row] = static_cast<int64_t>(best);
    if (is_stochastic()) DrawCategorical(row, row_values, row_legal, draws);
  }
  return absl::OkStatus();
}

void NetworkActions::DrawCategorical(size_t row, absl::Span<const float> values,
                                     const bool* legal, const Draws& draws) {
  const double max = values[static_cast<size_t>(indices_[row])];
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    weights_[i] = legal != nullptr && !legal[i]
                      ? 0
                      : std::exp(static_cast<double>(values[i]) - max);
    sum += weights_[i];
  }
  if (draws.explore) {
    // The action where the sum of probabilities passes the draw.
    double left =
        sum * draws.rng.UniformDouble(draws.step, static_cast<uint32_t>(row));
    for (size_t i = 0; i < values.size(); ++i) {
      left -= weights_[i];
      if (left < 0 && weights_[i] > 0) {
        indices_[row] = static_cast<int64_t>(i);
        break;
      }
    }
  }
  log_probs_[row] = static_cast<float>(
      values[static_cast<size_t>(indices_[row])] - max - std::log(sum));
}

absl::Status NetworkActions::ChooseTanhNormal(absl::Span<const float> loc,
                                              absl::Span<const float> scale,
                                              size_t width,
                                              const ActionBounds& bounds,
                                              const Draws& draws) {
  RILL_RETURN_IF_ERROR(CheckBounds(who_, bounds, width));
  const size_t rows = width == 0 ? 0 : loc.size() / width;
  numbers_.resize(loc.size());
  log_probs_.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    double log_prob = 0;
    for (size_t i = 0; i < width; ++i) {
      const size_t element = row * width + i;
      const double deviation = scale[element];
      if (!(deviation > 0) || std::isnan(loc[element])) {
        return InvalidArgument(who_, ": outputs of the model: got mean ",
                               loc[element], " and standard deviation ",
                               deviation, " for number ", i, " of row ", row,
                               ", want numbers, the latter above 0");
      }
      const double noise =
          draws.explore ? StandardNormal(draws.rng.Bits(
                              draws.step, static_cast<uint32_t>(element)))
                        : 0;
      const double x = loc[element] + deviation * noise;
      const size_t bound = bounds.low.size() == 1 ? 0 : i;
      const double half =
          (static_cast<double>(bounds.high[bound]) - bounds.low[bound]) / 2;
      numbers_[element] =
          static_cast<float>(bounds.low[bound] + half * (1 + std::tanh(x)));
      // log(1 - tanh(x)^2), without the difference of two numbers near 1.
      const double log_slope = 2 * (std::numbers::ln2 - std::abs(x) -
                                    std::log1p(std::exp(-2 * std::abs(x))));
      log_prob -= 0.5 * noise * noise + std::log(deviation * half) +
                  kLogRootTwoPi + log_slope;
    }
    log_probs_[row] = static_cast<float>(log_prob);
  }
  return absl::OkStatus();
}

}  // namespace rill
