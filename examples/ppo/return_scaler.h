// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_RETURN_SCALER_H_
#define RILL_EXAMPLES_PPO_RETURN_SCALER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rill::ppo {

// Divides rewards by the running deviation of the discounted return, then clips
// them to [-10, 10]. The mean stays, as a shift would change what is best.
//
// Source: Gymnasium's NormalizeReward (1.4.0), over all lanes at once, and
//   CleanRL's clip behind it.
// Thread-safety: thread-compatible.
class ReturnScaler {
 public:
  ReturnScaler(int64_t lanes, double gamma);

  // Rewards and ends of [lanes, time], in order of time; writes scaled rewards
  // of the same shape.
  void Scale(absl::Span<const float> reward, absl::Span<const bool> done,
             absl::Span<float> scaled);

  double deviation() const;

 private:
  void Learn();

  double gamma_;
  std::vector<double> returns_;  // Of each lane, so far.
  double count_ = 1e-4;
  double mean_ = 0;
  double variance_ = 1;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_RETURN_SCALER_H_
