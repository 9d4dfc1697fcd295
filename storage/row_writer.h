// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROW_WRITER_H_
#define RILL_STORAGE_ROW_WRITER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/event_keys.h"  // IWYU pragma: export
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The result of an Extend.
struct ExtendResult {
  int64_t rows_written = 0;
  // Oldest rows of a batch longer than a lane. Cursors count them, as if the
  // batch had been written step by step.
  int64_t rows_dropped = 0;
};

// The memory and disk that a storage takes, in bytes. Room for rows counts
// whether they are live or not. All fields but `disk_free` are 0 until it is
// known what a row holds.
struct StorageUsage {
  int64_t row = 0;     // One row as it is read: the sum of its leaves.
  int64_t memory = 0;  // Taken in RAM, pinned RAM or a device's memory.
  int64_t device = 0;  // Of `memory`, what is a device's.
  int64_t disk = 0;    // Taken on the disk.
  // Memory and disk once every slot has been written: what to plan for.
  int64_t full = 0;
  // What every slot would take beyond `full` if each row held all its leaves;
  // below 0 where sharing them costs more than it gives.
  int64_t saved = 0;
  // Free bytes of the file system that holds the rows' files; of several, the
  // fullest. nullopt where rows lie in no file, or the system does not tell.
  std::optional<int64_t> disk_free = std::nullopt;
};

// How a write in place treats the rows it names.
enum class InPlace {
  kReplace,  // Others: what was drawn of the old ones is stale.
  kPatch,    // The same rows with other values: their generations stay.
};

// Writes rows of steps to a ring, or to one ring a lane, and notifies
// observers. Samplers learn of rows in this way alone.
//
// Shapes: a batch to append is [lanes, time] (or [time] where there is one
//   lane); one whose dimensions are named the other way round is refused. Rows
//   to write in place are [n].
// Thread-safety: thread-safe.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  // Appends a batch at the cursors of lanes [info.first_lane, ...), overwriting
  // the oldest rows. All or nothing: with an error rows, length, cursors and
  // observers are as they were. INVALID_ARGUMENT names the key and both sides
  // where the batch does not fit the spec or the lanes; RESOURCE_EXHAUSTED
  // where memory cannot be had. The batch may be strided and may lie on any
  // device; it is read before this returns.
  virtual absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                              const WriteInfo& info = {}) = 0;

  // Overwrites live rows in place; `rows` is [n] and may hold a part of the
  // keys. Where a slot is named twice, the later row wins. OUT_OF_RANGE where a
  // slot is not live. Observers receive a retire without values and a write
  // with the values of those keys that `rows` holds, both in the order of
  // `slots`. Where it holds all of them these count as new rows
  // (is_replacement).
  //
  // An error leaves all as it was, with these exceptions. In a DenseStorage or
  // MemmapStorage a device's copy may fail, or memory for the observers' event
  // may be missing: rows may then be changed, and observers are attached again.
  // The same holds for storages above one. EnsembleStorage has its own rule.
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kReplace);
  }
  // The same; the rows stay the ones that were drawn.
  absl::Status Patch(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kPatch);
  }
  virtual absl::Status WriteInPlace(absl::Span<const Slot> slots,
                                    const TensorDict& rows, InPlace kind) = 0;

  // Forgets all rows; memory and spec stay.
  virtual absl::Status Clear() = 0;

  // Observers are not owned, and must outlive the storage or be removed. Adding
  // attaches at once (WriteObserver::OnAttach, then OnWrite of all live rows).
  virtual absl::Status AddObserver(WriteObserver* observer) = 0;
  virtual void RemoveObserver(WriteObserver* observer) = 0;

  // Cost: O(leaves); waits for no row to be copied.
  virtual StorageUsage MemoryUsage() const = 0;
};

}  // namespace rill

#endif  // RILL_STORAGE_ROW_WRITER_H_
