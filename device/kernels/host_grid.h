// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_KERNELS_HOST_GRID_H_
#define RILL_DEVICE_KERNELS_HOST_GRID_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "rill/base/rng.h"
#include "rill/device/kernels/kernel.h"

namespace rill {

struct HostThread : KernelThread {
  static void AtomicMax(int64_t* at, int64_t value) {
    const std::atomic_ref<int64_t> there(*at);
    int64_t found = there.load(std::memory_order_relaxed);
    while (found < value && !there.compare_exchange_weak(
                                found, value, std::memory_order_relaxed)) {
    }
  }
  static void AtomicAdd(int64_t* at, int64_t value) {
    std::atomic_ref<int64_t>(*at).fetch_add(value, std::memory_order_relaxed);
  }
};

// Runs a kernel (kernel.h) on the host: blocks in turn, the threads of a block
// in turn between barriers. Shared and Local begin as the byte 0xCD.
//
// `order` 0 is the natural order of blocks and threads; any other number
// shuffles both, the threads anew in each phase. A kernel whose results depend
// on the order has a race. Thread-safety: thread-safe, as far as the kernel's
// memory is not shared. Cost: that of the threads, one after the other.
template <typename Kernel>
void RunGridOnHost(const Kernel& kernel, const KernelGrid& grid,
                   uint64_t order = 0) {
  using Shared = typename Kernel::Shared;
  using Local = typename Kernel::Local;
  static_assert(std::is_trivially_copyable_v<Shared> &&
                std::is_trivially_copyable_v<Local>);
  constexpr int kUndefined = 0xCD;
  const Rng rng(order);
  // Fisher and Yates, 1938, with draws of `round`.
  const auto shuffle = [&](auto& numbers, uint64_t round) {
    if (order == 0) return;
    for (auto i = static_cast<int64_t>(numbers.size()) - 1; i > 0; --i) {
      const int64_t other =
          rng.UniformInt(round, static_cast<uint32_t>(i), i + 1);
      std::swap(numbers[i], numbers[other]);
    }
  };
  std::vector<int64_t> blocks(grid.blocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  uint64_t round = 0;
  shuffle(blocks, round++);
  std::vector<int> threads(grid.threads);
  std::iota(threads.begin(), threads.end(), 0);
  std::vector<Local> locals(grid.threads);
  Shared shared;
  const int64_t num_phases = kernel.num_phases();
  for (const int64_t block : blocks) {
    std::memset(&shared, kUndefined, sizeof(shared));
    std::memset(locals.data(), kUndefined, sizeof(Local) * locals.size());
    for (int64_t phase = 0; phase < num_phases; ++phase) {
      shuffle(threads, round++);
      for (const int thread : threads) {
        const HostThread here = {{.block = block,
                                  .num_blocks = grid.blocks,
                                  .thread = thread,
                                  .num_threads = grid.threads}};
        kernel.Run(phase, here, shared, locals[thread]);
      }
    }
  }
}

}  // namespace rill

#endif  // RILL_DEVICE_KERNELS_HOST_GRID_H_
