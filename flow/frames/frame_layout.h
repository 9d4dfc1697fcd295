// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_FRAMES_FRAME_LAYOUT_H_
#define RILL_FLOW_FRAMES_FRAME_LAYOUT_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"
#include "rill/flow/frames/frame.h"

// Shared by writing and reading frames: docs/formats/frame.md.
namespace rill::frame_internal {

static_assert(std::endian::native == std::endian::little,
              "columns are little-endian and are read where they lie");

inline constexpr absl::string_view kMagic = "RILLFRAM";
inline constexpr uint32_t kForm = 1;
// Magic, form, checksum; lengths of the frame, the schema and the header.
inline constexpr int64_t kChecksumAt = 12;
inline constexpr int64_t kLengthsAt = 16;
inline constexpr int64_t kSchemaAt = 40;

// Limits of what bytes from outside may ask for.
inline constexpr int kMaxDepth = 32;
inline constexpr int64_t kMaxEntries = 16384;

enum class Kind : uint8_t {
  kTensor = 0,
  kDict = 1,
  kValue = 2,
  kValuesOfRows = 3,
  kRagged = 4,
  kLazyStack = 5,
};

// `bytes` >= 0 up to a multiple of kFrameAlignment; -1 past int64.
inline int64_t RoundUp(int64_t bytes) {
  if (bytes > std::numeric_limits<int64_t>::max() - kFrameAlignment) return -1;
  return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

}  // namespace rill::frame_internal

#endif  // RILL_FLOW_FRAMES_FRAME_LAYOUT_H_
