// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/row_history.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "rill/base/rng_entropy.h"
#include "rill/base/status_macros.h"

namespace rill::storage_internal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr absl::string_view kMagic = "RILLPOS1";
constexpr size_t kHeadBytes = 8 + 3 * sizeof(int64_t);
constexpr size_t kCrcBytes = sizeof(uint32_t);
// A storage that went back often loses its oldest positions.
constexpr size_t kMaxLines = 64;

void AddInt(int64_t value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t CrcOf(absl::string_view bytes) {
  return static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
}

class Reader {
 public:
  explicit Reader(absl::string_view rest) : rest_(rest) {}
  // As many bytes as there are for sure.
  void Take(void* out, size_t bytes) {
    std::memcpy(out, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }
  int64_t Int() {
    int64_t value;
    Take(&value, sizeof(value));
    return value;
  }

 private:
  absl::string_view rest_;
};

bool IsSound(const LaneMark& mark) {
  return mark.first_live >= 0 && mark.first_live <= mark.written &&
         mark.written <= kMaxWritten;
}

}  // namespace

std::vector<LaneMark> MarksOf(const LaneRings& rings) {
  std::vector<LaneMark> marks(rings.cursors().size());
  for (size_t lane = 0; lane < marks.size(); ++lane) {
    marks[lane].written = rings.cursors()[lane].written;
    if (!rings.first_live().empty()) {
      marks[lane].first_live = rings.first_live()[lane];
    }
  }
  return marks;
}

LaneRings RingsOf(const Lanes& lanes, absl::Span<const LaneMark> marks) {
  LaneRings rings(lanes);
  std::vector<Cursor> cursors;
  std::vector<int64_t> first_live;
  for (const LaneMark& mark : marks) {
    cursors.push_back({mark.written});
    first_live.push_back(mark.first_live);
  }
  rings.Restore(cursors, first_live);
  return rings;
}

absl::StatusOr<RowLine> NewLine(const Lanes& lanes) {
  RowLine line;
  RILL_ASSIGN_OR_RETURN(line.name, RandomName());
  line.marks.assign(lanes.count, {.written = kMaxWritten, .first_live = 0});
  return line;
}

std::string EncodeLines(const Lanes& lanes, absl::Span<const RowLine> lines) {
  std::string bytes(kMagic);
  AddInt(lanes.count, &bytes);
  AddInt(lanes.capacity, &bytes);
  AddInt(static_cast<int64_t>(lines.size()), &bytes);
  for (const RowLine& line : lines) {
    bytes.append(reinterpret_cast<const char*>(line.name.data()),
                 line.name.size());
    for (const LaneMark& mark : line.marks) {
      AddInt(mark.written, &bytes);
      AddInt(mark.first_live, &bytes);
    }
  }
  const uint32_t crc = CrcOf(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return bytes;
}

absl::StatusOr<std::vector<RowLine>> DecodeLines(absl::string_view what,
                                                 absl::string_view bytes,
                                                 const Lanes& lanes) {
  const auto damaged = [&](const auto&... found) {
    return DataLoss(what, ": got ", found...);
  };
  if (bytes.size() < kHeadBytes + kCrcBytes ||
      bytes.substr(0, kMagic.size()) != kMagic) {
    return damaged(bytes.size(), " bytes that are no position, want one");
  }
  uint32_t crc;
  std::memcpy(&crc, bytes.data() + bytes.size() - kCrcBytes, kCrcBytes);
  bytes.remove_suffix(kCrcBytes);
  if (const uint32_t got = CrcOf(bytes); got != crc) {
    return damaged("checksum ", absl::Hex(got, absl::kZeroPad8), ", want ",
                   absl::Hex(crc, absl::kZeroPad8));
  }
  Reader reader(bytes.substr(kMagic.size()));
  const int64_t lane_count = reader.Int();
  const int64_t capacity = reader.Int();
  const int64_t num_lines = reader.Int();
  if (lanes != Lanes{.count = lane_count, .capacity = capacity}) {
    return FailedPrecondition(what, ": got that of ", lane_count, " lanes of ",
                              capacity, " slots, want ", lanes.count, " of ",
                              lanes.capacity);
  }
  // The number of lines is compared with the bytes that are there before any
  // memory is taken for it.
  const size_t line_bytes = sizeof(RowLine::name) +
                            sizeof(LaneMark) * static_cast<size_t>(lane_count);
  const size_t rest = bytes.size() - kHeadBytes;
  if (num_lines < 1 || rest % line_bytes != 0 ||
      static_cast<uint64_t>(num_lines) != rest / line_bytes) {
    return damaged(rest, " bytes of ", num_lines, " lines, want ", line_bytes,
                   " each");
  }
  std::vector<RowLine> lines(num_lines);
  for (RowLine& line : lines) {
    reader.Take(line.name.data(), line.name.size());
    line.marks.resize(lane_count);
    reader.Take(line.marks.data(), sizeof(LaneMark) * line.marks.size());
    for (const LaneMark& mark : line.marks) {
      if (IsSound(mark)) continue;
      return damaged("steps [", mark.first_live, ", ", mark.written,
                     ") of a lane, want some in [0, ", kMaxWritten, ")");
    }
  }
  return lines;
}

absl::StatusOr<FoundPosition> FindPosition(absl::string_view what,
                                           const RowLine& position,
                                           absl::Span<const RowLine> history,
                                           const LaneRings& now) {
  const auto line = std::find_if(
      history.begin(), history.end(),
      [&](const RowLine& each) { return each.name == position.name; });
  if (line == history.end()) {
    return FailedPrecondition(
        what,
        ": got that of another storage, or of rows that were "
        "cleared or loaded over since, want one of this");
  }
  const Lanes& lanes = now.lanes();
  FoundPosition found{.rings = RingsOf(lanes, position.marks)};
  found.is_here = true;
  int64_t kept = 0;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t written = position.marks[lane].written;
    const int64_t end = now.cursors()[lane].written;
    // Left of the position are steps [first, last): those that were live in it,
    // still belong to its line, and are live in the ring now.
    const int64_t last = std::min({written, line->marks[lane].written, end});
    const int64_t first =
        std::max(written - found.rings.live(lane), end - now.live(lane));
    const int64_t count = std::max<int64_t>(last - first, 0);
    now.AddRings(lane, lane + 1, first % lanes.capacity, count, &found.kept);
    kept += count;
    found.is_here = found.is_here && end == written;
  }
  found.missing = found.rings.size() - kept;
  std::sort(found.kept.begin(), found.kept.end(),
            [](SlotRange a, SlotRange b) { return a.first < b.first; });
  // Lines behind the position's are of rows that go.
  found.history.assign(history.begin(), line + 1);
  // The line ends at the position, so its later steps are nobody's.
  found.history.back().marks = position.marks;
  // WriteHistory adds a new line behind these.
  if (found.history.size() == kMaxLines) {
    found.history.erase(found.history.begin());
  }
  return found;
}

}  // namespace rill::storage_internal
