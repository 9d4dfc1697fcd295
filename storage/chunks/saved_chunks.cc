// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/chunks/saved_chunks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rill/base/fault_point.h"

namespace rill::storage_internal {
namespace {

// Chunks of at least 4 MiB, and at most about 1024 of them: a save of little
// makes few files, one of much writes few of them anew. A 16th of a lane at
// most, so that the chunk that a cursor is in is a small part of it.
constexpr int64_t kChunkBytes = int64_t{4} << 20;
constexpr int64_t kChunksOfAll = 1024;
constexpr int64_t kChunksOfALane = 16;

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t NumGroups(const Lanes& lanes, const ChunkShape& shape) {
  return DivideUp(lanes.count, shape.lanes);
}

}  // namespace

ChunkShape ChunkShape::Of(const Lanes& lanes, int64_t row_bytes) {
  const int64_t rows =
      std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1),
                        DivideUp(lanes.num_slots(), kChunksOfAll));
  ChunkShape shape = {.lanes = lanes.count, .steps = lanes.capacity};
  if (rows >= lanes.num_slots()) return shape;
  shape.steps =
      std::clamp<int64_t>(rows, 1, DivideUp(lanes.capacity, kChunksOfALane));
  shape.lanes = std::clamp<int64_t>(rows / shape.steps, 1, lanes.count);
  return shape;
}

StepSpan LiveSteps(const LaneRings& rings, int64_t lane,
                   const ChunkShape& shape, int64_t number) {
  const int64_t written = rings.cursors()[lane].written;
  const int64_t begin = number * shape.steps;
  const int64_t first = std::max(written - rings.live(lane), begin);
  // Not min(written, begin + steps): a chunk of all steps would overflow.
  const int64_t end = std::min(written - begin, shape.steps) + begin;
  return first < end ? StepSpan{first, end} : StepSpan{};
}

std::vector<Chunk> LiveChunks(const LaneRings& rings, const ChunkShape& shape,
                              size_t limit) {
  std::vector<Chunk> chunks;
  std::vector<StepSpan> numbers;  // Of the lanes of a group.
  const Lanes& lanes = rings.lanes();
  for (int64_t group = 0; group < NumGroups(lanes, shape); ++group) {
    const int64_t first_lane = group * shape.lanes;
    const int64_t end_lane = std::min(first_lane + shape.lanes, lanes.count);
    numbers.clear();
    for (int64_t lane = first_lane; lane < end_lane; ++lane) {
      if (rings.live(lane) == 0) continue;
      const int64_t written = rings.cursors()[lane].written;
      numbers.push_back({(written - rings.live(lane)) / shape.steps,
                         (written - 1) / shape.steps + 1});
    }
    // The union of the lanes' ranges of numbers. Cursors may lie far apart, so
    // the numbers between ranges are not visited.
    std::sort(
        numbers.begin(), numbers.end(),
        [](const StepSpan& a, const StepSpan& b) { return a.first < b.first; });
    int64_t next = 0;
    for (const StepSpan& span : numbers) {
      for (next = std::max(next, span.first); next < span.end; ++next) {
        if (chunks.size() > limit) return chunks;
        Chunk chunk = {.group = group, .number = next};
        for (int64_t lane = first_lane; lane < end_lane; ++lane) {
          const StepSpan steps = LiveSteps(rings, lane, shape, next);
          chunk.rows += steps.end - steps.first;
        }
        chunks.push_back(chunk);
      }
    }
  }
  return chunks;
}

std::string ChunkName(const Chunk& chunk) {
  return absl::StrCat(chunk.group, "-", chunk.number, ".bin");
}

// --- OverwriteCounts ---------------------------------------------------------

OverwriteCounts::OverwriteCounts(const Lanes& lanes, const ChunkShape& shape)
    : lanes_(lanes),
      shape_(shape),
      blocks_(DivideUp(lanes.capacity, shape.steps)),
      counts_(NumGroups(lanes, shape) * blocks_) {}

void OverwriteCounts::Add(absl::Span<const Slot> slots) {
  // Divisions are what this takes: one instead of four.
  if (lanes_.count == 1) {
    for (const Slot slot : slots) ++counts_[slot / shape_.steps];
    return;
  }
  for (const Slot slot : slots) {
    ++counts_[lanes_.LaneOf(slot) / shape_.lanes * blocks_ +
              lanes_.PositionOf(slot) / shape_.steps];
  }
}

uint64_t OverwriteCounts::Of(const Chunk& chunk) const {
  // Counts only grow, so two equal sums of the same blocks mean that none of
  // them has changed.
  const int64_t position = chunk.number * shape_.steps % lanes_.capacity;
  const uint64_t* const blocks = counts_.data() + chunk.group * blocks_;
  uint64_t sum = 0;
  // Around the end of the lane a chunk may meet four blocks.
  const int64_t meets = std::min<int64_t>(blocks_, 4);
  for (int64_t i = 0; i < meets; ++i) {
    sum += blocks[(position / shape_.steps + i) % blocks_];
  }
  return sum;
}

// --- SavedChunks -------------------------------------------------------------

SavedChunks::SavedChunks(const std::string& directory, const LaneRings& rings,
                         const ChunkShape& shape)
    // O_PATH: only names below it are looked up, and it stays valid through
    // renames.
    : directory_(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      rings_(rings),
      shape_(shape) {}

void SavedChunks::Add(const Chunk& chunk, uint64_t overwrites,
                      const FileSum& sum) {
  const std::string name = ChunkName(chunk);
  struct stat info;
  if (fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) !=
      0) {
    return;
  }
  if (info.st_uid != geteuid()) return;  // Its owner may change it.
  files_[name] = {.overwrites = overwrites,
                  .sum = sum,
                  .device = info.st_dev,
                  .inode = info.st_ino,
                  .changed = info.st_mtim};
}

bool SavedChunks::IsAt(const std::string& name, const File& file) const {
  struct stat info;
  return fstatat(directory_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) ==
             0 &&
         S_ISREG(info.st_mode) && info.st_dev == file.device &&
         info.st_ino == file.inode && info.st_size == file.sum.bytes &&
         info.st_mtim.tv_sec == file.changed.tv_sec &&
         info.st_mtim.tv_nsec == file.changed.tv_nsec;
}

const FileSum* SavedChunks::Link(const Chunk& chunk, const LaneRings& rings,
                                 const OverwriteCounts& overwrites,
                                 const std::string& path) const {
  const std::string name = ChunkName(chunk);
  const auto found = files_.find(name);
  if (found == files_.end() || !(overwrites.shape() == shape_)) return nullptr;
  const File& file = found->second;
  // Rows are the same where nothing was written in place and every lane has the
  // same steps live: a step is one row within a lineage.
  if (file.overwrites != overwrites.Of(chunk)) return nullptr;
  const int64_t first_lane = chunk.group * shape_.lanes;
  const int64_t end_lane =
      std::min(first_lane + shape_.lanes, rings.lanes().count);
  for (int64_t lane = first_lane; lane < end_lane; ++lane) {
    if (!(LiveSteps(rings, lane, shape_, chunk.number) ==
          LiveSteps(rings_, lane, shape_, chunk.number))) {
      return nullptr;
    }
  }
  // A hard link shares the file, so what somebody else has changed is written
  // anew instead.
  if (!IsAt(name, file) || !FaultPoint("file.link", path).ok()) return nullptr;
  return linkat(directory_.get(), name.c_str(), AT_FDCWD, path.c_str(),
                /*flags=*/0) == 0
             ? &file.sum
             : nullptr;
}

}  // namespace rill::storage_internal
