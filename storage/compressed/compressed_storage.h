// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_COMPRESSED_COMPRESSED_STORAGE_H_
#define RILL_STORAGE_COMPRESSED_COMPRESSED_STORAGE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage.h"

namespace rill {

// Storage in RAM whose rows are compressed with zstd: frames, masks and other
// bytes that repeat take a fraction of their room, and every row reads as it
// was written. Floats of noise gain nothing.
//
// Rows of a lane lie in blocks of `block_rows` steps that follow one another,
// each leaf of a block compressed by itself. The block that a lane is at is
// open: its new rows are plain until it is full, and the block whose place it
// takes stays until then. A leaf that does not get smaller is kept plain.
//
// MemoryUsage: `memory` is what is really held, and changes with what rows
//   hold; `full` is an upper bound, with rows that do not compress at all;
//   `saved` is what the sealed rows would take more if they were plain. Clear
//   gives the blocks back.
// Thread-safety: thread-safe. Writers take turns. A Read waits for nobody who
//   compresses and makes nobody wait while it decompresses.
// Cost: Read decompresses every leaf of each block that it meets once, whatever
//   the number of rows from it; ReadLeaves, those leaves only. Neighbours are
//   cheap, and random rows cost a block each. Extend compresses the blocks that
//   become full, about 64 KiB of rows a lane at a time unless `block_rows` is
//   given. WriteAt decompresses the leaves it names of each block and
//   compresses them again. Every thread that reads keeps room for a column.
//
// Lease is FAILED_PRECONDITION: Read instead. Save and Load are those of any
// storage.
//
// Example (CompressedStorageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         CompressedStorage::Create({.capacity = 1 << 20}));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());  // [time]
//   TensorDict rows;
//   RILL_RETURN_IF_ERROR(storage->Read({0, 3, 1}, &rows));
class CompressedStorage {
 public:
  struct Options {
    // Slots in all, in [1, 2^40]; a multiple of `lanes`.
    int64_t capacity = 0;
    int64_t lanes = 1;         // In [1, 2^24]; each has an open block.
    TensorDictSpec spec = {};  // Empty: taken from the first write.
    EventKeys event_keys = {};
    // Steps of a block, at most a lane. 0: about 64 KiB of rows, but at most an
    // eighth of a lane, so that what lies open is little. Smaller blocks make
    // random reads faster, larger ones compress better.
    int64_t block_rows = 0;
    // zstd's: up to 22, higher is smaller and slower to write; below 0 faster
    // and larger.
    int level = 3;
  };

  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED where the spec is
  // given and there is no memory for the open blocks.
  static absl::StatusOr<std::unique_ptr<Storage>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_STORAGE_COMPRESSED_COMPRESSED_STORAGE_H_
