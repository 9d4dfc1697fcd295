// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DENSE_STORAGE_H_
#define RILL_STORAGE_DENSE_STORAGE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "rill/device/device.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {

// Storage in memory: RAM, pinned RAM, or a device's.
//
// Thread-safety: thread-safe. Readers and writers run side by side. A Read
//   waits for at most one window that has rows it wants. A window is 128 rows,
//   but at least 64 and at most 512 KiB. Where a WriteAt names slots in no
//   order, it spans all rows between the lowest and the highest. A writer waits
//   for reads that are under way, a MiB each at most, and for a writer of a row
//   that it wants too. Appends to one lane are copied together and become
//   visible in their order. On a device, and with dedup_next, writers take
//   turns.
// Device/Stream: calls are complete when they return, but for writes to rows on
//   a device, and EnqueueRead. A write from host memory has taken its rows when
//   it returns. Its copies go on, on a stream of the storage's, and the host
//   waits only where all pinned memory is in use. A batch on the device is
//   scattered by the thread's CurrentStream, which has its values, and is held
//   until then. Each call sees the writes before it. A device that fails in the
//   middle of a write may damage the rows that were about to go; size and
//   cursors stay, and observers are attached anew. A failure after the
//   write returned is the error of the next write, which does nothing, and of
//   reads of its rows until they are written again.
// Cost: Read one pass a leaf over the rows, Extend one over the batch. No
//   allocation once buffers have been used. On a device up to 16 MiB of pinned
//   memory and 16 MiB of the device's serve writes. A write of at most 64 KiB is
//   one launch. A larger one is a copy and a launch for each part of 2 to 8 MiB,
//   which up to four threads fill. Load needs memory for both contents where
//   rows are live.
//
// Example (DenseStorageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto storage, DenseStorage::Create({.capacity = 5}));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());  // [time]
//   TensorDict rows;
//   RILL_RETURN_IF_ERROR(storage->Read({0, 3, 1}, &rows));
//   // With wide observations, half of the memory:
//   storage = *DenseStorage::Create({.capacity = 1 << 20, .dedup_next = true});
class DenseStorage {
 public:
  // dedup_next: for leaves K and next/K of one dtype and shape. next/K is
  //   stored only for rows where its bytes differ from K of the row behind in
  //   the lane. These are ends of trajectories, the newest row of a lane, and
  //   rows before a step that a collector skipped. Half of the memory where
  //   observations are wide, and every row still reads as it was written,
  //   patched or not, whatever its flags say. Flags and rewards (done,
  //   terminated, truncated, reward), leaves that events report and those of at
  //   most 4 bytes a row are stored as ever. Own copies are taken when they are
  //   needed, and given back. So Extend, WriteAt and Load may be
  //   RESOURCE_EXHAUSTED later than at the first write; Extend and WriteAt have
  //   changed nothing then. There is no view of next/K: Lease is
  //   FAILED_PRECONDITION and names it; Read, or leave dedup_next off. A save
  //   is that of any storage. For rows in host memory.
  struct Options {
    // Slots in all, in [1, 2^40]; a multiple of `lanes`.
    int64_t capacity = 0;
    int64_t lanes = 1;  // In [1, 2^24].
    StorageLayout layout = StorageLayout::kAuto;
    StorageOrder order = StorageOrder::kLaneMajor;
    Device device = Device::Cpu();
    MemoryKind memory_kind = MemoryKind::kPageable;  // kDevice off the CPU.
    TensorDictSpec spec = {};  // Empty: taken from the first write.
    EventKeys event_keys = {};
    bool dedup_next = false;
  };

  // Memory is taken at once where the spec is given, else at the first write.
  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED asked and free bytes;
  // FAILED_PRECONDITION where there is no such device: no backend in this
  // build, no driver, no hardware.
  static absl::StatusOr<std::unique_ptr<Storage>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_STORAGE_DENSE_STORAGE_H_
