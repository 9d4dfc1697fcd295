// SPDX-License-Identifier: Apache-2.0
// Positions and histories: what is accepted is what its bytes say, and what is
// left of a position lies within the storage.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/slots/slot.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/directory/row_history.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::storage_internal {
namespace {

constexpr Lanes kLanes = {.count = 2, .capacity = 7};

void CheckFound(const RowLine& position, const std::vector<RowLine>& history,
                const LaneRings& now) {
  const auto found = FindPosition("fuzz", position, history, now);
  if (!found.ok()) return;
  int64_t kept = 0;
  Slot end = 0;
  for (const SlotRange& range : found->kept) {
    RILL_FUZZ_CHECK(range.first >= end && range.count > 0);
    end = range.first + range.count;
    kept += range.count;
    for (Slot slot = range.first; slot < end; ++slot) {
      RILL_FUZZ_CHECK(now.IsLive(slot) && found->rings.IsLive(slot));
    }
  }
  RILL_FUZZ_CHECK(end <= kLanes.num_slots());
  RILL_FUZZ_CHECK(kept + found->missing == found->rings.size());
  RILL_FUZZ_CHECK(!found->history.empty());
}

}  // namespace
}  // namespace rill::storage_internal

// As it comes, and lines of (name, marks) from it with the right head and
// checksum.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using rill::storage_internal::DecodeLines;
  using rill::storage_internal::EncodeLines;
  using rill::storage_internal::kLanes;
  using rill::storage_internal::RowLine;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto lines = DecodeLines("fuzz", bytes, kLanes); lines.ok()) {
    RILL_FUZZ_CHECK(EncodeLines(kLanes, *lines) == bytes);
  }
  rill::FuzzInput input(data, size);
  std::vector<RowLine> lines;
  for (int i = 0; i < 4; ++i) {
    RowLine& line = lines.emplace_back();
    line.name[0] = static_cast<uint8_t>(input.TakeSmall(0, 2));
    for (int64_t lane = 0; lane < kLanes.count; ++lane) {
      const int64_t written = input.TakeHostile();
      line.marks.push_back({written, input.TakeSmall(0, 9)});
    }
  }
  const auto read = DecodeLines("fuzz", EncodeLines(kLanes, lines), kLanes);
  if (!read.ok()) return 0;
  RILL_FUZZ_CHECK(*read == lines);
  const rill::storage_internal::LaneRings now =
      rill::storage_internal::RingsOf(kLanes, lines[3].marks);
  lines.pop_back();
  const RowLine position = lines.back();
  lines.pop_back();
  rill::storage_internal::CheckFound(position, lines, now);
  return 0;
}
