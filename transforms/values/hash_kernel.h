// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_HASH_KERNEL_H_
#define RILL_TRANSFORMS_VALUES_HASH_KERNEL_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/values/sip_hash_state.h"

namespace rill::transforms_internal {

// The SipHash of each row (sip_hash.h), for host and devices, a row a thread.
struct HashKernel {
  static constexpr const char* kName = "hash";
  using Shared = NoState;
  using Local = NoState;

  const uint8_t* from = nullptr;
  uint64_t* to = nullptr;
  int64_t rows = 0;
  int64_t width = 0;  // Bytes of a row.
  uint64_t key0 = 0;
  uint64_t key1 = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t row = thread.index(); row < rows; row += thread.grid_size()) {
      const uint8_t* const bytes = from + row * width;
      SipHashState state(key0, key1);
      int64_t at = 0;
      for (; at + 8 <= width; at += 8) state.Absorb(Word(bytes + at, 8));
      to[row] =
          state.End(Word(bytes + at, width - at), static_cast<uint64_t>(width));
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(from, rows * width);
    visit(to, rows * int64_t{sizeof(uint64_t)});
  }

 private:
  // Up to 8 bytes, the first lowest.
  static constexpr uint64_t Word(const uint8_t* bytes, int64_t size) {
    uint64_t word = 0;
    for (int64_t i = 0; i < size; ++i) {
      word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    }
    return word;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_VALUES_HASH_KERNEL_H_
