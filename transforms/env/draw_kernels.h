// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ENV_DRAW_KERNELS_H_
#define RILL_TRANSFORMS_ENV_DRAW_KERNELS_H_

#include <cstdint>

#include "Random123/philox.h"
#include "rill/device/kernels/kernel.h"

// Draws of LaneDraws (lane_draws.h) for host and devices
// (device/kernels/kernel.h), to the bit.

namespace rill::transforms_internal {

// A state on a device, and how a kernel draws by it.
struct DrawSource {
  uint64_t seed = 0;    // The transform's.
  uint32_t stream = 0;  // Rng::stream().
  const int64_t* env_seed = nullptr;
  const int64_t* before = nullptr;  // Draws of each lane.
  int64_t* after = nullptr;
  int64_t lanes = 0;

  // 64 bits of draw number `draw` of the lane's batch number `count`. A
  // template as Philox is no constexpr function.
  template <typename = void>
  constexpr uint64_t Bits(int64_t lane, int64_t count, uint32_t draw) const {
    // MixedSeed, and LaneDraws::Next.
    const uint64_t mixed =
        seed ^ (static_cast<uint64_t>(*env_seed) * 0x9E3779B97F4A7C15);
    const uint64_t batch =
        (static_cast<uint64_t>(lane) << 40) + static_cast<uint64_t>(count);
    const philox4x32_ctr_t counter = {{draw, stream,
                                       static_cast<uint32_t>(batch),
                                       static_cast<uint32_t>(batch >> 32)}};
    const philox4x32_key_t key = {
        {static_cast<uint32_t>(mixed), static_cast<uint32_t>(mixed >> 32)}};
    const philox4x32_ctr_t bits = philox4x32_R(10, counter, key);
    return bits.v[0] | (static_cast<uint64_t>(bits.v[1]) << 32);
  }
  // UnitDouble and BoundedInt (base/rng.h).
  static constexpr double Unit(uint64_t bits) {
    return static_cast<double>(bits >> 11) * (1.0 / (uint64_t{1} << 53));
  }
  static constexpr int64_t Bounded(uint64_t bits, int64_t bound) {
    const auto by = static_cast<uint64_t>(bound);
    const uint64_t low = (bits & UINT32_MAX) * (by & UINT32_MAX);
    const uint64_t first = (bits >> 32) * (by & UINT32_MAX) + (low >> 32);
    const uint64_t second =
        (bits & UINT32_MAX) * (by >> 32) + (first & UINT32_MAX);
    return static_cast<int64_t>((bits >> 32) * (by >> 32) + (first >> 32) +
                                (second >> 32));
  }

  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    if (before == nullptr) return;
    visit(env_seed, int64_t{sizeof(int64_t)});
    visit(before, lanes * int64_t{sizeof(int64_t)});
    visit(after, lanes * int64_t{sizeof(int64_t)});
  }
};

// RandomTruncation: the lengths of episodes that begin.
struct HorizonKernel {
  static constexpr const char* kName = "horizons";
  using Shared = NoState;
  using Local = NoState;

  DrawSource draws;
  const uint8_t* mask = nullptr;
  const int64_t* before = nullptr;
  int64_t* after = nullptr;
  int64_t min_horizon = 1;
  int64_t max_horizon = 1;
  double prob = 0;
  double second_prob = 0;  // Of the second episode.

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t lane = thread.index(); lane < draws.lanes;
         lane += thread.grid_size()) {
      const int64_t episode = draws.before[lane];
      const bool begins = mask[lane] != 0;
      after[lane] = begins ? Draw(lane, episode) : before[lane];
      draws.after[lane] = episode + (begins ? 1 : 0);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    draws.VisitMemory(visit);
    visit(mask, draws.lanes);
    visit(before, draws.lanes * int64_t{sizeof(int64_t)});
    visit(after, draws.lanes * int64_t{sizeof(int64_t)});
  }

 private:
  constexpr int64_t Draw(int64_t lane, int64_t episode) const {
    const uint64_t length = draws.Bits(lane, episode, 0);
    if (episode == 0) return 1 + DrawSource::Bounded(length, max_horizon);
    const double share = DrawSource::Unit(draws.Bits(lane, episode, 1));
    if (share >= (episode == 1 ? second_prob : prob)) return max_horizon;
    return min_horizon +
           DrawSource::Bounded(length, max_horizon - min_horizon + 1);
  }
};

// Flags where a count has got to the lane's length.
struct CutKernel {
  static constexpr const char* kName = "cut_episodes";
  static constexpr int kFlags = 2;
  using Shared = NoState;
  using Local = NoState;

  const int64_t* counts = nullptr;
  const int64_t* horizons = nullptr;
  uint8_t* flags[kFlags] = {};
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes; i += thread.grid_size()) {
      if (counts[i] < horizons[i]) continue;
      for (int k = 0; k < kFlags; ++k) flags[k][i] = 1;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(counts, lanes * int64_t{sizeof(int64_t)});
    visit(horizons, lanes * int64_t{sizeof(int64_t)});
    for (int k = 0; k < kFlags; ++k) visit(flags[k], lanes);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ENV_DRAW_KERNELS_H_
