// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_MEMMAP_STORAGE_H_
#define RILL_STORAGE_MEMMAP_STORAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/device/device.h"
#include "rill/specs/spec.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {

// Storage in files of a directory, mapped: more rows than memory, and they
// outlive the process. docs/formats/storage_directory.md has every byte.
//
// Reads, writes, observers and guarantees are DenseStorage's; on top of those:
// - Space is reserved on the disk ahead of every write. A full disk is
//   RESOURCE_EXHAUSTED with asked and free bytes. Stored rows stay readable and
//   writable in place, and there is no SIGBUS. (Files that somebody else cuts
//   short while they are mapped are beyond that.)
// - A process that is killed (SIGKILL) at any instruction of an Extend leaves
//   whole rows. Open finds all that were acknowledged, less those which Extends
//   in flight were about to overwrite. Up to three go side by side. A WriteAt
//   that is killed may leave the rows it names half written; a Load that is
//   killed, none.
// - Sync makes that hold for a loss of power too, for the rows of which no slot
//   is written after it.
// - SavePosition says which rows there are, and LoadPosition, of this or a
//   later process, goes back to them, as long as none was overwritten.
// - One owner: a second Create or Open is FAILED_PRECONDITION and names the
//   process; a killed owner blocks nobody. Readers may look at any time, ours
//   by OpenReader. With kColumns the directory is a memmap directory.
//   LoadMemmapDirectory and TorchRL's TensorDict.load_memmap open it while it
//   is written. They see all slots: [C] with one lane, [C, L] in time-major
//   order, else [L, C]. Python programs read live rows by
//   python/rill_reader.py.
// - Rows that Clear, Load and LoadPosition discard read as zeros to programs
//   that do not ask which rows are live. They keep their space on the disk. A
//   process that is killed in the middle leaves all rows, or those that were to
//   stay.
//
// Thread-safety: thread-safe.
// Cost: as DenseStorage, and 0.2 us an Extend. Opening reads no row. Clear,
//   Load and LoadPosition wait for a sync of the record, and for zeros: system
//   calls where the file system can zero, else writes.
//
// Example (MemmapStorageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         MemmapStorage::Create({.directory = directory,
//                                                .capacity = 1000}));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
//   storage.reset();  // Or killed.
//   RILL_ASSIGN_OR_RETURN(storage,
//                         MemmapStorage::Open({.directory = directory}));
class MemmapStorage {
 public:
  struct Options {
    std::string directory = {};
    // Slots in all, in [1, 2^40]; a multiple of `lanes`.
    int64_t capacity = 0;
    int64_t lanes = 1;  // In [1, 2^24].
    StorageLayout layout = StorageLayout::kAuto;
    StorageOrder order = StorageOrder::kLaneMajor;
    Device device = Device::Cpu();  // Files are mapped for the CPU only.
    TensorDictSpec spec = {};       // Empty: taken from the first write.
    EventKeys event_keys = {};
    // With it appends overwrite no steps that readers of other processes hold
    // (`hold` of python/rill_reader.py, 16 at a time). Extend waits for them at
    // most so long, then it is DEADLINE_EXCEEDED and nothing has changed. So
    // long Save and Clear of a buffer may wait too. A reader that dies holds
    // nothing. Clear, Load and LoadPosition go by no hold, nor do writes in
    // place.
    // None: readers hold nothing.
    std::optional<absl::Duration> hold_timeout = std::nullopt;
  };

  // A new storage in a directory that is empty or not there yet; then it is
  // made, and its parent where only that is missing too (base/new_directory.h;
  // NOT_FOUND, PERMISSION_DENIED). Files are made at once where the spec is
  // given, else at the first write. INVALID_ARGUMENT names the option;
  // FAILED_PRECONDITION where something is there already or another owner has
  // it.
  static absl::StatusOr<std::unique_ptr<Storage>> Create(
      const Options& options);

  // Opens a storage that was created before, as it was left. It takes the
  // options `directory`, `event_keys` and `hold_timeout`. Where `capacity` is
  // not 0, or the spec not empty, these and `lanes` must be those of the
  // directory: FAILED_PRECONDITION names both sides. NOT_FOUND where no storage
  // is; DATA_LOSS where files are missing, of other sizes, or changed.
  static absl::StatusOr<std::unique_ptr<Storage>> Open(const Options& options);

  // The rows of a directory, for reading, while its owner goes on writing.
  // Results of size(), cursors() and Read go by the commit record as it is at
  // the call:
  // - Rows that appends in flight are about to overwrite do not count as
  //   live. Cursors never go back but by Clear and Load.
  // - Read copies whole rows, each the newest of its slot at a moment of the
  //   call: it copies again what was touched meanwhile, and waits for what is
  //   in flight. UNAVAILABLE after some tenths of a second. So also for slots
  //   that a killed Extend had begun to overwrite (they are not live). So for
  //   all while a WriteAt is in flight or rows are discarded, or where the
  //   writer was killed in the middle of that.
  // - Lease is FAILED_PRECONDITION and names the owner.
  // - A directory that is removed, or made anew, is another one: size() and
  //   cursors() are 0 then, and Read is FAILED_PRECONDITION. Open it again.
  // Needs no right to write there. NOT_FOUND before the rows' spec is known;
  // DATA_LOSS as Open.
  // Cost: Read as of a storage, two looks at the record, O(lanes), and a stat.
  static absl::StatusOr<std::unique_ptr<RowReader>> OpenReader(
      const std::string& directory);
};

}  // namespace rill

#endif  // RILL_STORAGE_MEMMAP_STORAGE_H_
