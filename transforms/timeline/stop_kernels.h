// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TIMELINE_STOP_KERNELS_H_
#define RILL_TRANSFORMS_TIMELINE_STOP_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

namespace rill::transforms_internal {

// Where the lines of a batch stop (ReadStops), for host and devices, a row a
// thread.
struct StopKernel {
  static constexpr const char* kName = "stops";
  static constexpr int kMostFlags = 4;
  static constexpr int kMostPieces = 5;
  using Shared = NoState;
  using Local = NoState;

  // A leaf that differs between a piece and the next.
  struct Piece {
    const uint8_t* data = nullptr;
    int64_t width = 0;  // Bytes of a row.
  };

  const uint8_t* flags[kMostFlags] = {};
  Piece pieces[kMostPieces] = {};
  int num_flags = 0;
  int num_pieces = 0;
  bool all_stop = false;
  int64_t rows = 0;
  int64_t time = 1;  // Rows of a line.
  uint8_t* stops = nullptr;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < rows; i += thread.grid_size()) {
      bool stop = all_stop;
      for (int k = 0; k < num_flags && !stop; ++k) stop = flags[k][i] != 0;
      const bool is_last = (i + 1) % time == 0;
      for (int k = 0; k < num_pieces && !stop && !is_last; ++k) {
        stop = Changes(pieces[k], i);
      }
      stops[i] = stop ? 1 : 0;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int k = 0; k < num_flags; ++k) visit(flags[k], rows);
    for (int k = 0; k < num_pieces; ++k) {
      visit(pieces[k].data, rows * pieces[k].width);
    }
    visit(stops, rows);
  }

 private:
  static constexpr bool Changes(const Piece& piece, int64_t row) {
    const uint8_t* const at = piece.data + row * piece.width;
    for (int64_t i = 0; i < piece.width; ++i) {
      if (at[i] != at[i + piece.width]) return true;
    }
    return false;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_TIMELINE_STOP_KERNELS_H_
