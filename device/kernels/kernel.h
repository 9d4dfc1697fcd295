// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_KERNELS_KERNEL_H_
#define RILL_DEVICE_KERNELS_KERNEL_H_

#include <cstdint>

namespace rill {

// Kernels that have one source for the host and for devices. nvcc compiles this
// header too, so it includes no Abseil. The headers of kernels neither.
//
// A kernel is a struct of numbers and pointers, copied byte by byte into a
// launch (at most kMaxKernelBytes), with these members:
//
//   // Of this struct alone in a program.
//   static constexpr const char* kName = "scale";
//   // What the threads of a block share, and what a thread keeps from a phase
//   // to the next. Both begin undefined.
//   using Shared = NoState;
//   using Local = NoState;
//   // How many phases there are, at least 1; the same for all threads. All
//   // threads of a block have ended a phase before one of them begins the next.
//   constexpr int64_t num_phases() const { return 1; }
//   // One thread's part of a phase. A Thread is a KernelThread with
//   // AtomicMax(int64_t* at, int64_t value), which sets *at to the larger. It
//   // has AtomicAdd, with the same arguments, too.
//   template <typename Thread>
//   constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
//                      Local& local) const;
//   // visit(pointer, bytes) for each pointer of the struct, by reference, and
//   // how much behind it is read or written.
//   template <typename Visit>
//   void VisitMemory(const Visit& visit);
//
// Functions are constexpr, which is what nvcc compiles for a device too; none
// of them is evaluated by a compiler. A barrier is the end of a phase and not a
// call, so that the host runs threads in turn, in any order (host_grid.h).
//
// Correct kernels: no two threads touch a byte, one of them to write but by one
//   of these, in one phase of a block. In two blocks no two threads do so at
//   all. Then results depend on no order.
// Numerics: devices compile without fused multiply-add, so that + - * / and
//   sqrt round as the host does. exp, log and pow may differ in the last place.

// Where a thread stands.
struct KernelThread {
  int64_t block = 0;
  int64_t num_blocks = 1;
  int thread = 0;  // In its block.
  int num_threads = 1;

  // Its number among all threads of the grid, and how many they are.
  constexpr int64_t index() const { return block * num_threads + thread; }
  constexpr int64_t grid_size() const { return num_blocks * num_threads; }
};

struct NoState {};

struct KernelGrid {
  int64_t blocks = 1;  // [1, 2^31)
  int threads = 256;   // Of a block; [1, 1024].
};

// So many blocks that each of `items` has a thread, but no more than fill any
// GPU: threads go on by grid_size().
constexpr KernelGrid GridFor(int64_t items, int threads = 256) {
  constexpr int64_t kMostBlocks = 4096;
  const int64_t blocks = (items + threads - 1) / threads;
  return {blocks < 1             ? 1
          : blocks < kMostBlocks ? blocks
                                 : kMostBlocks,
          threads};
}

// The least that all GPUs take as parameters of a launch.
inline constexpr int64_t kMaxKernelBytes = 4096;

}  // namespace rill

#endif  // RILL_DEVICE_KERNELS_KERNEL_H_
