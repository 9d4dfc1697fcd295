// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CHUNKS_SAVED_CHUNKS_H_
#define RILL_STORAGE_CHUNKS_SAVED_CHUNKS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "rill/base/file_error.h"
#include "rill/formats/manifest.h"
#include "rill/slots/slot.h"
#include "rill/storage/ring/lane_rings.h"

namespace rill::storage_internal {

// How a save cuts rows into files. Chunk (g, k) has the live steps in
// [k * steps, (k + 1) * steps) of lanes [g * lanes, (g + 1) * lanes). So a
// chunk that is full and not written over stays as it is.
struct ChunkShape {
  int64_t lanes = 1;
  int64_t steps = 1;

  // The same for all storages of such rows: 4 MiB or a 1024th of all slots,
  // whatever is more. Where that is less than all slots, a chunk has at most a
  // 16th of a lane's steps.
  static ChunkShape Of(const Lanes& lanes, int64_t row_bytes);

  friend bool operator==(const ChunkShape&, const ChunkShape&) = default;
};

struct Chunk {
  int64_t group = 0;   // g
  int64_t number = 0;  // k
  int64_t rows = 0;
};

// Those with live rows: group after group, oldest first. Stops where there are
// more than `limit`.
std::vector<Chunk> LiveChunks(const LaneRings& rings, const ChunkShape& shape,
                              size_t limit = SIZE_MAX);
// The first and the end of the steps of a lane that are in the chunk.
struct StepSpan {
  int64_t first = 0;
  int64_t end = 0;
  friend bool operator==(const StepSpan&, const StepSpan&) = default;
};
StepSpan LiveSteps(const LaneRings& rings, int64_t lane,
                   const ChunkShape& shape, int64_t number);
// "0-17.bin".
std::string ChunkName(const Chunk& chunk);

// How often rows were written over in place, by blocks of slots as large as
// chunks. Appends need no count: cursors tell of them.
// Thread-safety: thread-compatible. Cost: 8 bytes a chunk.
class OverwriteCounts {
 public:
  OverwriteCounts(const Lanes& lanes, const ChunkShape& shape);
  const ChunkShape& shape() const { return shape_; }

  void Add(absl::Span<const Slot> slots);
  // A count over all slots that a chunk's rows may lie in. Two equal counts say
  // that none of them was written over in between.
  uint64_t Of(const Chunk& chunk) const;

 private:
  const Lanes lanes_;
  const ChunkShape shape_;
  const int64_t blocks_;  // Of a lane.
  std::vector<uint64_t> counts_;
};

// The chunks that a storage's last save (or its load) has left on the disk, for
// the next save to link what has not changed. They are known by the directory
// itself, wherever it was moved, and by inode, size and time: a file that
// somebody has touched is not taken for ours.
// Thread-safety: thread-compatible.
class SavedChunks {
 public:
  // Opens `directory`, which holds chunks of `rings`.
  SavedChunks(const std::string& directory, const LaneRings& rings,
              const ChunkShape& shape);
  // The chunk as it lies there now, with the sum that it was written with.
  void Add(const Chunk& chunk, uint64_t overwrites, const FileSum& sum);

  // Gives the chunk the name `path` too, where its rows are those that were
  // saved. Null where it has to be written: other rows, another file system, a
  // file that is gone.
  const FileSum* Link(const Chunk& chunk, const LaneRings& rings,
                      const OverwriteCounts& overwrites,
                      const std::string& path) const;

 private:
  struct File {
    uint64_t overwrites = 0;
    FileSum sum;
    dev_t device = 0;
    ino_t inode = 0;
    timespec changed = {};
  };
  bool IsAt(const std::string& name, const File& file) const;

  const base_internal::FileDescriptor directory_;
  const LaneRings rings_;
  const ChunkShape shape_;
  absl::flat_hash_map<std::string, File> files_;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_CHUNKS_SAVED_CHUNKS_H_
