// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_COUNTER_KERNELS_H_
#define RILL_TRANSFORMS_STEPS_COUNTER_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

// A step of StepCounter and one of RewardSum, a lane a thread, for host and
// devices (device/kernels/kernel.h).

namespace rill::transforms_internal {

// counts = before + 1, and flags where a count has got to the limit.
struct StepCountKernel {
  static constexpr const char* kName = "step_count";
  static constexpr int kMostFlags = 2;
  using Shared = NoState;
  using Local = NoState;

  const int64_t* before = nullptr;
  int64_t* counts = nullptr;
  uint8_t* flags[kMostFlags] = {};
  int num_flags = 0;
  int64_t limit = INT64_MAX;
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes; i += thread.grid_size()) {
      // A count at the largest number stays there.
      const int64_t count = before[i] == INT64_MAX ? INT64_MAX : before[i] + 1;
      counts[i] = count;
      if (count < limit) continue;
      for (int k = 0; k < num_flags; ++k) flags[k][i] = 1;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(before, lanes * int64_t{sizeof(int64_t)});
    visit(counts, lanes * int64_t{sizeof(int64_t)});
    for (int k = 0; k < num_flags; ++k) visit(flags[k], lanes);
  }
};

// sums = before + rewards, in float32.
template <typename Reward>
struct RewardSumKernel {
  static constexpr const char* kName =
      sizeof(Reward) == sizeof(float) ? "reward_sum_4" : "reward_sum_8";
  using Shared = NoState;
  using Local = NoState;

  const float* before = nullptr;
  const Reward* rewards = nullptr;
  float* sums = nullptr;
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes; i += thread.grid_size()) {
      sums[i] = before[i] + static_cast<float>(rewards[i]);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(before, lanes * int64_t{sizeof(float)});
    visit(rewards, lanes * int64_t{sizeof(Reward)});
    visit(sums, lanes * int64_t{sizeof(float)});
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STEPS_COUNTER_KERNELS_H_
