// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_PRIORITIZED_PRIORITY_MASS_H_
#define RILL_SAMPLERS_PRIORITIZED_PRIORITY_MASS_H_

#include <atomic>

namespace rill {

// The values v = (priority + epsilon) ^ alpha of all rows that may be drawn
// (prioritized_selector.h). With those of several buffers one can draw from all
// as from one: P(i) = v_i / (sum of all), and weights are relative to the
// smallest v of all.
struct PriorityMass {
  double sum = 0;
  double min = 0;   // 0 where no row may be drawn.
  double beta = 0;  // Weights are (v / min) ^ -beta.
};

// A sampler's mass for other threads (SamplerTraits::priority_mass).
// Thread-safety: thread-safe. Beside a change each value is that of before or
//   after.
class PriorityMassGauge {
 public:
  void Set(const PriorityMass& mass) {
    sum_.store(mass.sum, std::memory_order_relaxed);
    min_.store(mass.min, std::memory_order_relaxed);
    beta_.store(mass.beta, std::memory_order_relaxed);
  }
  // As the last draw, write or update left it. A new beta or alpha shows with
  // the next one of these.
  PriorityMass Get() const {
    return {.sum = sum_.load(std::memory_order_relaxed),
            .min = min_.load(std::memory_order_relaxed),
            .beta = beta_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<double> sum_ = 0, min_ = 0, beta_ = 0;
};

}  // namespace rill

#endif  // RILL_SAMPLERS_PRIORITIZED_PRIORITY_MASS_H_
