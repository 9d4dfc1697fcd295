// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_EPISODE_KERNELS_H_
#define RILL_TRANSFORMS_STEPS_EPISODE_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/rows/element_kernels.h"

// TrajCounter, TargetReturn and EndOfLife for host and devices
// (device/kernels/kernel.h).

namespace rill::transforms_internal {

// Numbers for the lanes of the mask in their order, from `count` on. One block.
struct TrajNumberKernel {
  static constexpr const char* kName = "traj_number";
  static constexpr int kMostThreads = 1024;
  struct Shared {
    int64_t counts[kMostThreads];  // Of a thread's lanes; then of those before.
  };
  using Local = NoState;

  const uint8_t* mask = nullptr;
  int64_t* numbers = nullptr;
  const int64_t* count = nullptr;
  int64_t* new_count = nullptr;
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 3; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
                     Local& /*local*/) const {
    if (phase == 1) {
      if (thread.thread == 0) Accumulate(thread.num_threads, shared);
      return;
    }
    const int64_t each = (lanes + thread.num_threads - 1) / thread.num_threads;
    const int64_t begin = each * thread.thread;
    const int64_t end = begin + each < lanes ? begin + each : lanes;
    int64_t found = phase == 0 ? 0 : shared.counts[thread.thread];
    for (int64_t lane = begin; lane < end; ++lane) {
      if (mask[lane] == 0) continue;
      if (phase == 2) numbers[lane] = found;
      ++found;
    }
    if (phase == 0) shared.counts[thread.thread] = found;
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(mask, lanes);
    visit(numbers, lanes * int64_t{sizeof(int64_t)});
    visit(count, int64_t{sizeof(int64_t)});
    visit(new_count, int64_t{sizeof(int64_t)});
  }

 private:
  constexpr void Accumulate(int num_threads, Shared& shared) const {
    int64_t next = *count;
    for (int i = 0; i < num_threads; ++i) {
      const int64_t own = shared.counts[i];
      shared.counts[i] = next;
      next += own;
    }
    *new_count = next;
  }
};

// after = before, less the rewards where it reduces.
template <typename T>
struct TargetReturnKernel {
  static constexpr const char* kName =
      sizeof(T) == sizeof(float) ? "target_return_4" : "target_return_8";
  using Shared = NoState;
  using Local = NoState;

  const T* before = nullptr;
  const T* rewards = nullptr;
  T* after = nullptr;
  bool reduces = true;
  int64_t elements = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < elements; i += thread.grid_size()) {
      after[i] = reduces ? before[i] - rewards[i] : before[i];
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(before, elements * int64_t{sizeof(T)});
    visit(rewards, elements * int64_t{sizeof(T)});
    visit(after, elements * int64_t{sizeof(T)});
  }
};

// Flags where a lane is done or has fewer lives than before.
struct EndOfLifeKernel {
  static constexpr const char* kName = "end_of_life";
  using Shared = NoState;
  using Local = NoState;

  // Whole numbers, one a lane.
  struct Lives {
    const void* data = nullptr;
    ElementType type = ElementType::kInt64;
    int64_t bytes = 0;  // Of all lanes.
    constexpr int64_t At(int64_t lane) const {
      return LoadElement(type, data, lane).bits;
    }
  };
  Lives before;
  Lives after;
  const uint8_t* done = nullptr;
  uint8_t* ends = nullptr;
  int64_t lanes = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes; i += thread.grid_size()) {
      ends[i] = done[i] != 0 || after.At(i) < before.At(i) ? 1 : 0;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(before.data, before.bytes);
    visit(after.data, after.bytes);
    visit(done, lanes);
    visit(ends, lanes);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STEPS_EPISODE_KERNELS_H_
