// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_KERNELS_TESTING_THREAD_GRID_H_
#define RILL_DEVICE_KERNELS_TESTING_THREAD_GRID_H_

#include <barrier>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "rill/device/kernels/host_grid.h"
#include "rill/device/kernels/kernel.h"

namespace rill {

// Runs a kernel (kernel.h) on threads of the host that have no order but its
// barriers, so that TSan sees a race of the kernel. Two threads take the blocks
// of even number, two the others. One of each two takes the kernel's threads of
// even number.
template <typename Kernel>
void RunGridOnThreads(const Kernel& kernel, const KernelGrid& grid) {
  struct Team {
    std::barrier<> barrier{2};
    typename Kernel::Shared shared;
  };
  std::vector<Team> teams(2);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&kernel, &grid, &team = teams[number / 2], number] {
      const int first_block = number / 2;
      const int first_thread = number % 2;
      const int64_t num_phases = kernel.num_phases();
      for (int64_t block = first_block; block < grid.blocks; block += 2) {
        std::vector<typename Kernel::Local> locals(grid.threads);
        for (int64_t phase = 0; phase < num_phases; ++phase) {
          team.barrier.arrive_and_wait();
          for (int thread = first_thread; thread < grid.threads; thread += 2) {
            const HostThread here = {{.block = block,
                                      .num_blocks = grid.blocks,
                                      .thread = thread,
                                      .num_threads = grid.threads}};
            kernel.Run(phase, here, team.shared, locals[thread]);
          }
        }
        // Shared is the next block's.
        team.barrier.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace rill

#endif  // RILL_DEVICE_KERNELS_TESTING_THREAD_GRID_H_
