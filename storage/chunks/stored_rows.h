// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_CHUNKS_STORED_ROWS_H_
#define RILL_STORAGE_CHUNKS_STORED_ROWS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/formats/manifest.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/rows/row_table.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::storage_internal {

// The content of a save, the same from every storage: live rows in chunks
// (saved_chunks.h), and the cursors. docs/formats/storage.md has every byte.
struct StoredRows {
  // Rows of lanes [first_lane, end_lane) and steps [first_step, end_step) that
  // were live when they were saved: lane after lane, oldest first.
  struct Part {
    TensorDict rows;  // [n], mapped read-only.
    int64_t first_lane = 0;
    int64_t end_lane = 0;
    int64_t first_step = 0;
    int64_t end_step = 0;
  };

  explicit StoredRows(const Lanes& lanes) : saved(lanes), rings(lanes) {}

  std::vector<Part> parts;
  TensorDict ragged;    // [], what a RaggedFn wrote, mapped too.
  TensorDictSpec spec;  // Empty where the storage that was saved had none.
  LaneRings saved;      // Those that were saved,
  LaneRings rings;      // and those of the storage that loads them.
  ChunkShape shape;     // Of parts, which `chunks` and `sums` tell of;
  std::vector<Chunk> chunks;  // none in an older version.
  FileSums sums;
  // The directory that they came from, whatever its name leads to meanwhile;
  // null where there are no chunks.
  std::unique_ptr<SavedChunks> files;
};

// The rings of `lanes` that a save's manifest tells of. DATA_LOSS, starting
// with `caller`, names the field that is none of as many steps as there are
// lanes.
absl::StatusOr<LaneRings> ReadRings(absl::string_view caller,
                                    const Manifest& manifest,
                                    const Lanes& lanes);

// Rows [row, row + end_step - first_step) of a part.
struct StoredRun {
  int64_t lane = 0;
  int64_t first_step = 0;
  int64_t end_step = 0;
  int64_t row = 0;
};

// Calls `fn` for the rows of `part` that are live in stored.rings: one run a
// lane, lane after lane.
using RunFn = absl::FunctionRef<absl::Status(const StoredRun& run)>;
absl::Status ForEachRun(const StoredRows& stored, const StoredRows::Part& part,
                        RunFn fn);

// Gives rows [slots.size()] with all leaves of a spec, in host memory.
using ReadRowsFn =
    absl::FunctionRef<absl::StatusOr<TensorDict>(absl::Span<const Slot> slots)>;
// Makes the memmap directory `directory` of what rows hold beside the leaves
// of their spec: lane after lane, oldest first.
using RaggedFn = std::function<absl::Status(const std::string& directory)>;
// The chunks that a save need not write, and those it leaves for the next one.
struct ChunkLinks {
  const OverwriteCounts* overwrites;   // Of the rows.
  std::unique_ptr<SavedChunks>* last;  // May hold null.
};

// Writes the rows that are live to `directory`, which is replaced. Rows without
// keys are none. Chunks that *links->last still has are linked, not written;
// afterwards it is of this save. Null links: all is written. With `ragged`,
// only a load that asks for it reads them.
absl::Status SaveStoredRows(const std::string& directory,
                            const LaneRings& rings, const TensorDictSpec& spec,
                            ReadRowsFn read, const ChunkLinks* links = nullptr,
                            const RaggedFn& ragged = nullptr);

// New tensors for n rows in host memory, and where to put their leaves.
absl::StatusOr<TensorDict> MakeHostRows(const TensorDictSpec& spec, int64_t n,
                                        std::vector<LeafBatch>* places);

// Checks and maps what SaveStoredRows wrote: one save, also where another
// process replaces the directory meanwhile; it is read anew then.
// FAILED_PRECONDITION where lanes differ, or keys, dtypes and shapes differ
// from `spec` (unless one of both is empty); it names both sides. The same
// where it was saved with a RaggedFn and not `has_ragged`, or the other way.
// DATA_LOSS where files are damaged, or the directory is replaced again and
// again.
absl::StatusOr<StoredRows> LoadStoredRows(const std::string& directory,
                                          const Lanes& lanes,
                                          const TensorDictSpec& spec,
                                          const StorageLoadOptions& options,
                                          bool has_ragged = false);

// The chunks that a save of the rows as they were loaded need not write; null
// where it must write all.
std::unique_ptr<SavedChunks> ChunksOf(StoredRows stored,
                                      const OverwriteCounts& overwrites);

// Rows `slots`, [n], which are live in stored.rings: a copy. Cost: the copy,
// and a look at each part; slots of steps that follow one another go together.
absl::StatusOr<TensorDict> ReadStored(const StoredRows& stored,
                                      absl::Span<const Slot> slots);

// Copies the rows that are live in stored.rings to their slots there, a piece
// at a time.
absl::Status FillTable(const StoredRows& stored, RowTable* table);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_CHUNKS_STORED_ROWS_H_
