// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_H_
#define RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/storage.h"

namespace rill {

// Several storages seen as one, their lanes side by side: member i's lanes, and
// so its slots, follow those of member i - 1. For rows in several directories
// or disks, for data sets beside fresh rows, for more lanes than one storage
// was made with. One sampler then draws over all of them; where each is to have
// a share of its own use ReplayBufferEnsemble.
//
// Members have lanes of the same capacity, lie on the same device, and hold the
// same keys, dtypes and shapes: those of the member that knows them first. None
// has ragged leaves (ListStorage).
// Their event keys must be the same. They may hold rows already. Nobody else
// writes to them.
//
// A call for lanes or slots of one member is that member's: all or nothing, as
// fast, side by side with others. One for several members goes to them one
// after the other, in their order, and observers are notified of as many
// writes. Lanes, cursors, keys, shapes and that slots are live are checked
// before the first of them. A lack of memory or disk, or a device that fails,
// at a later member leaves what those before it have written; the error names
// it. If members have their spec, Extend of rows in memory cannot fail in this
// way.
//
// Save has the form of any storage's. Load checks it whole first. It then
// writes the members' parts beside `directory`, a chunk at a time; this takes
// as much room again on the disk until the end. A later error at the first
// member leaves the content, or says that the member is empty now. At another
// member it leaves the whole storage empty, and says so.
//
// Thread-safety: thread-safe. AddObserver, Save, Load and Clear keep writers
//   out, and so does a write while members do not know their spec.
// Cost: on a device the host waits once in a WriteAt to several members (once
//   for each 32 leaves), and for flags where an observer reads them (WriteObserver::values_read). Read of
//   several members takes one pass over the rows and one more over
//   those read, through memory that is kept. A Read of one member adds only a
//   division a slot.
//
// Example (EnsembleStorageTest.Example runs it):
//   std::vector<std::unique_ptr<Storage>> members;
//   RILL_ASSIGN_OR_RETURN(members.emplace_back(),
//                         DenseStorage::Create({.capacity = 10, .lanes = 2}));
//   RILL_ASSIGN_OR_RETURN(members.emplace_back(),
//                         DenseStorage::Create({.capacity = 5}));
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         EnsembleStorage::Create(std::move(members)));
//   RILL_RETURN_IF_ERROR(storage->Extend(batch).status());  // [3, time]
//   RILL_RETURN_IF_ERROR(storage->Read({0, 5, 10}, &rows));
class EnsembleStorage final : public storage_internal::RequestReader<Storage> {
 public:
  // INVALID_ARGUMENT names the member and both sides.
  static absl::StatusOr<std::unique_ptr<EnsembleStorage>> Create(
      std::vector<std::unique_ptr<Storage>> members);
  ~EnsembleStorage() override;

  int64_t num_members() const;
  const Storage& member(int64_t i) const;
  // The member of a slot, in [0, lanes().num_slots()), or of a lane, in [0,
  // lanes().count).
  int64_t MemberOfSlot(Slot slot) const;
  int64_t MemberOfLane(int64_t lane) const;

  int64_t size() const override;
  std::vector<Cursor> cursors() const override;
  TensorDictSpec spec() const override;
  StorageUsage MemoryUsage() const override;
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

 private:
  struct State;

  absl::Status ReadRows(
      absl::Span<const Slot> slots,
      const storage_internal::ReadRequest& request) const override;
  explicit EnsembleStorage(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace rill

#endif  // RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_H_
