// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STEPS_LANE_KERNELS_H_
#define RILL_TRANSFORMS_STEPS_LANE_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

// Rows of lanes that are copied or set, for host and devices
// (device/kernels/kernel.h). `mask` names the lanes, one byte each; null: all.

namespace rill::transforms_internal {

using LaneByte [[gnu::may_alias]] = uint8_t;
using LaneWord [[gnu::may_alias]] = uint32_t;

// Rows of several leaves. No leaf is written that another copy reads or writes.
struct LaneCopyKernel {
  static constexpr const char* kName = "lane_copy";
  static constexpr int kMostCopies = 48;
  using Shared = NoState;
  using Local = NoState;

  struct Copy {
    const LaneByte* from = nullptr;
    LaneByte* to = nullptr;
    int64_t width = 0;  // Bytes of a row.
    int64_t unit = 1;   // Bytes that a thread copies: 4 where all is aligned.
    int64_t end = 0;    // Units of this copy and those before it.
    bool repeats = false;  // `from` is one row.
  };

  Copy copies[kMostCopies] = {};
  const uint8_t* mask = nullptr;
  int64_t lanes = 0;
  int num_copies = 0;

  constexpr int64_t num_phases() const { return 1; }
  constexpr int64_t units() const {
    return num_copies == 0 ? 0 : copies[num_copies - 1].end;
  }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    int at = 0;
    for (int64_t i = thread.index(); i < units(); i += thread.grid_size()) {
      while (i >= copies[at].end) ++at;
      const Copy& copy = copies[at];
      const int64_t unit = at == 0 ? i : i - copies[at - 1].end;
      const int64_t byte = unit * copy.unit;
      if (mask != nullptr && mask[byte / copy.width] == 0) continue;
      const int64_t from = copy.repeats ? byte % copy.width : byte;
      if (copy.unit == 1) {
        copy.to[byte] = copy.from[from];
      } else {
        *static_cast<LaneWord*>(static_cast<void*>(copy.to + byte)) =
            *static_cast<const LaneWord*>(
                static_cast<const void*>(copy.from + from));
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int i = 0; i < num_copies; ++i) {
      visit(copies[i].from, (copies[i].repeats ? 1 : lanes) * copies[i].width);
      visit(copies[i].to, lanes * copies[i].width);
    }
    if (mask != nullptr) visit(mask, lanes);
  }
};

// Sets each element of the rows to one value.
struct LaneFillKernel {
  static constexpr const char* kName = "lane_fill";
  using Shared = NoState;
  using Local = NoState;

  LaneByte* to = nullptr;
  const uint8_t* mask = nullptr;
  int64_t lanes = 0;
  int64_t width = 0;  // Bytes of a row.
  LaneByte value[16] = {};
  int64_t element_bytes = 1;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < lanes * width;
         i += thread.grid_size()) {
      if (mask == nullptr || mask[i / width] != 0) {
        to[i] = value[i % element_bytes];
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(to, lanes * width);
    if (mask != nullptr) visit(mask, lanes);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STEPS_LANE_KERNELS_H_
