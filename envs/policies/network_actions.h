// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_POLICIES_NETWORK_ACTIONS_H_
#define RILL_ENVS_POLICIES_NETWORK_ACTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill {

// How the first outputs of a network are an action.
enum class ActionKind {
  // One: the action itself, of its leaf's dtype and shape.
  kDeterministic,
  // One: values float32 [lanes, ..., n]. The action is the number of the
  // largest, int64. Exploration (envs/policies/exploration.h) goes around it.
  kGreedy,
  // One: logits float32 [lanes, ..., n]. The action is int64.
  kCategorical,
  // Two: mean and standard deviation float32 [lanes, ..., d] of a normal x. The
  // action has as many numbers, float32: low + (high - low) (tanh(x) + 1) / 2.
  kTanhNormal,
};

// For each number of an action, or one for all.
struct ActionBounds {
  std::vector<float> low = {-1};
  std::vector<float> high = {1};
};

// INVALID_ARGUMENT, beginning with `who`, where there are other than 1 or
// `width` of each, one is not finite, or low is not below high.
absl::Status CheckBounds(absl::string_view who, const ActionBounds& bounds,
                         size_t width);

// Actions by what a network gave, in host memory: what the policies of
// libtorch/ and onnx/ have in common. A row is one action. Draws are a function
// of (Draws::rng, Draws::step, number of the row or of the element).
//
// Errors are INVALID_ARGUMENT and begin with `who`: NaN, a row without a legal
// action, a standard deviation that is not above 0, bounds that CheckBounds
// refuses. Thread-safety: thread-compatible.
// Cost: an exp for each action of kCategorical, a tanh and a draw for each
//   number of kTanhNormal. Allocates where rows become more.
class NetworkActions {
 public:
  struct Draws {
    Rng rng;
    uint64_t step;
    bool explore;  // False: the likeliest action.
  };

  // `mask_key` is where `legal` came from, for errors.
  NetworkActions(absl::string_view who, ActionKind kind,
                 absl::string_view mask_key);

  ActionKind kind() const { return kind_; }
  bool is_discrete() const {
    return kind_ == ActionKind::kGreedy || kind_ == ActionKind::kCategorical;
  }
  // Whether there is a log-probability.
  bool is_stochastic() const {
    return kind_ == ActionKind::kCategorical ||
           kind_ == ActionKind::kTanhNormal;
  }
  // Outputs of the network that are the action's.
  size_t num_parameters() const {
    return kind_ == ActionKind::kTanhNormal ? 2 : 1;
  }

  // kGreedy and kCategorical: rows of `n` values, and as many flags, or null:
  // all are legal. The actions are indices().
  absl::Status ChooseDiscrete(absl::Span<const float> values, size_t n,
                              const bool* legal, const Draws& draws);
  // kTanhNormal: rows of `width` numbers, as many of each. The actions are
  // numbers().
  absl::Status ChooseTanhNormal(absl::Span<const float> loc,
                                absl::Span<const float> scale, size_t width,
                                const ActionBounds& bounds, const Draws& draws);

  // The last call made these. log_probs(), one a row, where is_stochastic().
  const std::vector<int64_t>& indices() const { return indices_; }
  const std::vector<float>& numbers() const { return numbers_; }
  const std::vector<float>& log_probs() const { return log_probs_; }

 private:
  // Makes the row's log-probability, and its index where one is drawn.
  void DrawCategorical(size_t row, absl::Span<const float> values,
                       const bool* legal, const Draws& draws);

  std::string who_, mask_key_;
  ActionKind kind_;
  std::vector<int64_t> indices_;
  std::vector<float> numbers_, log_probs_;
  std::vector<double> weights_;  // Of one row's actions.
};

}  // namespace rill

#endif  // RILL_ENVS_POLICIES_NETWORK_ACTIONS_H_
