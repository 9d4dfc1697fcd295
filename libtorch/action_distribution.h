// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_LIBTORCH_ACTION_DISTRIBUTION_H_
#define RILL_LIBTORCH_ACTION_DISTRIBUTION_H_

#include <cstdint>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "c10/util/ArrayRef.h"
#include "rill/base/rng.h"
#include "rill/envs/policies/network_actions.h"

namespace rill {

// The distributions that a TorchPolicy acts by, for losses: differentiable in
// what a network gives. Everywhere the last dimension is that of an action, and
// results have the dimensions before it.
//
// No function throws. INVALID_ARGUMENT: shapes, dtypes or devices that do not
// go together, with torch's text or with got and want.
// Thread-safety: immutable.
// Device/Stream: where the tensors are, on torch's current stream.

// Discrete actions, by logits [..., n].
//
// Example (ActionDistributionTest.CategoricalExample runs it):
//   RILL_ASSIGN_OR_RETURN(const auto actions,
//                         Categorical::Create(logits, mask));
//   RILL_ASSIGN_OR_RETURN(at::Tensor log_prob, actions.LogProb(action));
class Categorical {
 public:
  // `mask`, bool as the logits, is true for legal actions: others have
  // probability 0 and no gradient. Undefined: all are legal.
  static absl::StatusOr<Categorical> Create(const at::Tensor& logits,
                                            const at::Tensor& mask = {});

  // The log-probability [...] of int64 actions [...] or [..., 1].
  absl::StatusOr<at::Tensor> LogProb(const at::Tensor& action) const;
  // In nats: [...].
  absl::StatusOr<at::Tensor> Entropy() const;
  // Normalised: [..., n].
  const at::Tensor& log_probs() const { return log_probs_; }

 private:
  explicit Categorical(at::Tensor log_probs)
      : log_probs_(std::move(log_probs)) {}
  at::Tensor log_probs_;
};

// Actions within bounds: low + (high - low) (tanh(x) + 1) / 2, where x is
// normal with mean `loc` and standard deviation `scale`, both [..., d]. Source:
// Haarnoja et al., "Soft actor-critic", ICML 2018, appendix C.
//
// Example (ActionDistributionTest.TanhNormalExample runs it):
//   RILL_ASSIGN_OR_RETURN(const auto actions, TanhNormal::Create(loc, scale));
//   RILL_ASSIGN_OR_RETURN(
//       const auto drawn,
//       actions.Draw(StandardNormals(Rng(7), /*batch=*/3, loc.sizes())));
//   (drawn.log_prob.sum() + drawn.action.sum()).backward();
class TanhNormal {
 public:
  // Errors of CheckBounds too.
  static absl::StatusOr<TanhNormal> Create(const at::Tensor& loc,
                                           const at::Tensor& scale,
                                           const ActionBounds& bounds = {});

  struct Drawn {
    at::Tensor action;    // [..., d].
    at::Tensor log_prob;  // [...].
  };
  // By the reparametrisation x = loc + scale * noise.
  absl::StatusOr<Drawn> Draw(const at::Tensor& noise) const;
  // The log-probability [...] of actions [..., d] within the bounds. One on a
  // bound, or too near for its float, counts as 1e-6 of half the range off it.
  absl::StatusOr<at::Tensor> LogProb(const at::Tensor& action) const;
  // The action of x = loc.
  absl::StatusOr<at::Tensor> Mode() const;

 private:
  TanhNormal(at::Tensor loc, at::Tensor scale, at::Tensor center,
             at::Tensor half)
      : loc_(std::move(loc)),
        scale_(std::move(scale)),
        center_(std::move(center)),
        half_(std::move(half)) {}
  // The one of x, which is `noise` standard deviations from loc.
  at::Tensor LogProbOf(const at::Tensor& noise, const at::Tensor& x) const;

  at::Tensor loc_, scale_;
  at::Tensor center_, half_;  // Of the range: [d] or [1].
};

// float32 `sizes` in host memory: element i is the standard normal of
// rng.Bits(batch, i). One number for one update gives the same on each machine.
// Cost: about 30 ns an element.
at::Tensor StandardNormals(const Rng& rng, uint64_t batch,
                           c10::IntArrayRef sizes);

}  // namespace rill

#endif  // RILL_LIBTORCH_ACTION_DISTRIBUTION_H_
