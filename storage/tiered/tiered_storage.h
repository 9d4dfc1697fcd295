// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TIERED_TIERED_STORAGE_H_
#define RILL_STORAGE_TIERED_TIERED_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {

// Recent rows in fast memory above a storage that has them all: the newest
// steps of each lane on a GPU, say, and all in the files of a MemmapStorage.
// Writes go to both. Batches land where the fast tier is, whichever tier a row
// came from. A row that only the storage below has goes straight to its place
// in the batch, through pinned memory.
//
// Everything else is that of the storage below: slots, observers, cursors,
// leases (whose rows are in host memory, and read-only for Read's `out`), Save,
// Load, Sync. The fast tier is a copy: what it has lost, or could not take, is
// read from below, and the count of failed_writes tells. It is empty at first,
// unless `fill`.
//
// Thread-safety: thread-safe. Writers take turns. Readers wait for nobody
//   longer than the storage of either tier makes them; a Read that meets a
//   WriteAt, a Clear or a Load goes to the storage below. A Read that starts
//   after observers were notified of a write finds it, as elsewhere.
// Device/Stream: every call is complete when it returns.
// Cost: Read takes one pass over the rows of each tier and one over those from
//   below again. Each thread that reads keeps staging memory for as many rows
//   as were missing (pinned for a device), up to 64 MiB; more is allocated
//   anew.
//
// Example (TieredStorageTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto files,
//                         MemmapStorage::Create({.directory = directory,
//                                                .capacity = 1 << 26}));
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         TieredStorage::Create({.below = std::move(files),
//                                                .fast_capacity = 1 << 20,
//                                                .device = Device::Cuda(0)}));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());
//   RILL_RETURN_IF_ERROR(storage->Read(slots, &rows));  // On the GPU.
class TieredStorage final : public storage_internal::RequestReader<Storage> {
 public:
  struct Options {
    // All rows, in host memory and without ragged leaves (ListStorage); nobody
    // else may write to it. Required.
    std::unique_ptr<Storage> below = nullptr;
    // Rows of the fast tier in all: > 0, a multiple of the lanes, at most
    // those of `below`.
    int64_t fast_capacity = 0;
    Device device = Device::Cpu();
    MemoryKind memory_kind = MemoryKind::kPageable;  // As DenseStorage.
    StorageLayout layout = StorageLayout::kAuto;     // Of the fast tier.
    // Create and Load copy the newest rows up.
    bool fill = false;
  };

  struct Stats {
    int64_t fast_rows = 0;      // Read from the fast tier,
    int64_t slow_rows = 0;      // and from below.
    int64_t bytes_written = 0;  // To the fast tier, by writes and `fill`.
    int64_t bytes_fetched = 0;  // From below, by reads.
    int64_t failed_writes = 0;  // After which the fast tier started anew,
    absl::Status last_failure;  // and why, the last time.
  };

  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED where the spec of
  // `below` is known and the fast tier does not fit.
  static absl::StatusOr<std::unique_ptr<TieredStorage>> Create(Options options);
  ~TieredStorage() override;

  // Since the start. Each of its own moment.
  Stats GetStats() const;

  int64_t size() const override;
  std::vector<Cursor> cursors() const override;
  TensorDictSpec spec() const override;
  StorageUsage MemoryUsage() const override;  // Of both.
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info = {}) override;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override;
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override;
  absl::Status Clear() override;
  absl::Status AddObserver(WriteObserver* observer) override;
  void RemoveObserver(WriteObserver* observer) override;
  absl::Status Sync() override;
  absl::Status Save(const std::string& directory) const override;
  absl::Status Load(const std::string& directory,
                    const StorageLoadOptions& options = {}) override;
  absl::StatusOr<std::string> SavePosition() override;
  absl::Status LoadPosition(absl::string_view position, bool accept_newer,
                            AcceptPosition accept) override;

 private:
  struct State;

  absl::Status ReadRows(
      absl::Span<const Slot> slots,
      const storage_internal::ReadRequest& request) const override;

  // On the device of the fast tier.
  explicit TieredStorage(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace rill

#endif  // RILL_STORAGE_TIERED_TIERED_STORAGE_H_
