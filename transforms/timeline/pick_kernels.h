// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_TIMELINE_PICK_KERNELS_H_
#define RILL_TRANSFORMS_TIMELINE_PICK_KERNELS_H_

#include <cstdint>

#include "rill/device/kernels/kernel.h"

// Rows that are made of rows around them, for host and devices: one kernel
// finds which, a second copies them.

namespace rill::transforms_internal {

// A pick is a row, or kPad.
inline constexpr int64_t kPad = -1;

struct SixteenPickBytes {
  uint64_t half[2];
};

// A row of `to` is the picked rows, one behind the other. T is a word, of which
// a row of `from` has `width`; a word a thread.
template <typename T>
struct PickKernel {
  static constexpr const char* kName = sizeof(T) == 1   ? "pick_1"
                                       : sizeof(T) == 4 ? "pick_4"
                                                        : "pick_16";
  using Shared = NoState;
  using Local = NoState;

  const T* from = nullptr;
  T* to = nullptr;
  const int64_t* picks = nullptr;  // [rows, n]
  int64_t rows = 0;
  int64_t n = 1;
  int64_t width = 0;
  // What pads, repeated.
  SixteenPickBytes value = {};

  constexpr int64_t words() const { return rows * n * width; }
  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    constexpr int64_t kPeriod = int64_t{16} / int64_t{sizeof(T)};
    const T* const pad =
        static_cast<const T*>(static_cast<const void*>(&value));
    for (int64_t i = thread.index(); i < words(); i += thread.grid_size()) {
      const int64_t word = i % width;
      const int64_t pick = picks[i / width];
      to[i] = pick == kPad ? pad[word % kPeriod] : from[pick * width + word];
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const int64_t bytes = rows * width * int64_t{sizeof(T)};
    visit(from, bytes);
    visit(to, n * bytes);
    visit(picks, rows * n * int64_t{sizeof(int64_t)});
  }
};

// Rows of lines: where `stops`, null for nowhere, is set, the next row begins
// something else, and so does each line.
struct PickLines {
  const uint8_t* stops = nullptr;
  int64_t lines = 0;
  int64_t time = 1;
  int64_t n = 1;

  constexpr int64_t rows() const { return lines * time; }
  template <typename Visit>
  void VisitStops(const Visit& visit) {
    visit(stops, stops == nullptr ? 0 : rows());
  }
};

// The row and the n - 1 behind it; past the end the last one, which is marked.
// A line a thread.
struct ChunkPickKernel {
  static constexpr const char* kName = "chunk_picks";
  using Shared = NoState;
  using Local = NoState;

  PickLines lines = {};
  int64_t* picks = nullptr;   // [rows, n]
  uint8_t* is_pad = nullptr;  // [rows, n]

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t line = thread.index(); line < lines.lines;
         line += thread.grid_size()) {
      int64_t end = (line + 1) * lines.time - 1;
      for (int64_t i = end; i >= line * lines.time; --i) {
        if (lines.stops != nullptr && lines.stops[i] != 0) end = i;
        for (int64_t h = 0; h < lines.n; ++h) {
          const bool pads = h > end - i;
          picks[i * lines.n + h] = pads ? end : i + h;
          is_pad[i * lines.n + h] = pads ? 1 : 0;
        }
      }
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    lines.VisitStops(visit);
    visit(picks, lines.rows() * lines.n * int64_t{sizeof(int64_t)});
    visit(is_pad, lines.rows() * lines.n);
  }
};

// The row behind each, where it is the next step; else kPad. A row a thread.
struct NextPickKernel {
  static constexpr const char* kName = "next_picks";
  static constexpr int kMostMarkers = 10;
  using Shared = NoState;
  using Local = NoState;

  enum class Kind : uint8_t {
    kSame,   // A next step has the same bytes.
    kEnd,    // A row with a byte that is set has none.
    kValid,  // Nor has one with a byte that is not, nor the row before that.
    kCount,  // int64: a next step has the first number plus 1.
  };
  struct Marker {
    const uint8_t* data = nullptr;
    int64_t width = 0;  // Bytes of a row.
    Kind kind = Kind::kSame;
  };

  Marker markers[kMostMarkers] = {};
  int num_markers = 0;
  int64_t rows = 0;
  int64_t time = 1;          // Rows of a line.
  int64_t* picks = nullptr;  // [rows]

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    for (int64_t i = thread.index(); i < rows; i += thread.grid_size()) {
      bool has_next = (i + 1) % time != 0;
      for (int k = 0; k < num_markers && has_next; ++k) {
        has_next = Allows(markers[k], i);
      }
      picks[i] = has_next ? i + 1 : kPad;
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    for (int k = 0; k < num_markers; ++k) {
      visit(markers[k].data, rows * markers[k].width);
    }
    visit(picks, rows * int64_t{sizeof(int64_t)});
  }

 private:
  static constexpr bool Allows(const Marker& marker, int64_t row) {
    const uint8_t* const at = marker.data + row * marker.width;
    if (marker.kind == Kind::kCount) {
      if (marker.width == 0) return true;
      const auto* const count =
          static_cast<const int64_t*>(static_cast<const void*>(at));
      const int64_t next = count[marker.width / int64_t{sizeof(int64_t)}];
      return count[0] != INT64_MAX && next == count[0] + 1;
    }
    for (int64_t i = 0; i < marker.width; ++i) {
      const uint8_t here = at[i];
      const uint8_t behind = at[i + marker.width];
      if (marker.kind == Kind::kSame && here != behind) return false;
      if (marker.kind == Kind::kEnd && here != 0) return false;
      if (marker.kind == Kind::kValid && (here == 0 || behind == 0)) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_TIMELINE_PICK_KERNELS_H_
