// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_UNITS_STACK_FRAMES_KERNELS_H_
#define RILL_TRANSFORMS_UNITS_STACK_FRAMES_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// What StackFrames makes on a device: a block copies a frame to its place in a
// stack. Frames and pieces are so many words.
template <typename T>
struct StackFramesKernel {
  static constexpr const char* kName =
      sizeof(T) == 8 ? "stack_frames_64" : "stack_frames_8";
  static constexpr int kMostThreads = 256;
  static constexpr int kLists = 4;
  static constexpr int64_t kPadBytes = 16;
  // Frames that are padded by a value.
  static constexpr int64_t kPad = -1;
  using Shared = NoState;
  using Local = NoState;
  // Elements of any dtype.
  using Word [[gnu::may_alias]] = T;

  struct List {
    const Word* frames = nullptr;
    int64_t count = 0;
  };
  List lists[kLists] = {};
  // Of each frame of each stack: kLists * its number in a list + which list.
  const int64_t* sources = nullptr;
  int64_t num_frames = 0;  // Of all stacks.
  int64_t stack = 1;       // Frames of a stack.
  int64_t outer = 1;       // Pieces of a frame,
  int64_t piece = 0;       // and words of a piece.
  // One value after the other; a multiple of all dtypes' sizes.
  Word pad[kPadBytes / sizeof(T)] = {};
  Word* stacks = nullptr;

  constexpr KernelGrid grid() const {
    constexpr int64_t kMostBlocks = int64_t{1} << 20;
    int threads = 32;
    while (threads < kMostThreads && threads < outer * piece) threads *= 2;
    return {num_frames < kMostBlocks ? num_frames : kMostBlocks, threads};
  }
  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    const int64_t words = outer * piece;
    for (int64_t i = thread.block; i < num_frames; i += thread.num_blocks) {
      const int64_t source = sources[i];
      const Word* const from = source == kPad ? nullptr
                                              : lists[source % kLists].frames +
                                                    source / kLists * words;
      Word* const to = stacks + i / stack * stack * words + i % stack * piece;
      for (int64_t word = thread.thread; word < words;
           word += thread.num_threads) {
        const int64_t at = outer == 1 ? 0 : word / piece;
        const int64_t in_piece = word - at * piece;
        to[at * stack * piece + in_piece] =
            from == nullptr
                ? pad[in_piece % (kPadBytes / static_cast<int64_t>(sizeof(T)))]
                : from[word];
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t bytes = outer * piece * static_cast<int64_t>(sizeof(T));
    for (List& list : lists) visit(list.frames, list.count * bytes);
    visit(sources, num_frames * static_cast<int64_t>(sizeof(int64_t)));
    visit(stacks, num_frames * bytes);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_UNITS_STACK_FRAMES_KERNELS_H_
