// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_STATE_H_
#define RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/ensemble/ensemble_observers.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/sharing/lent_buffers.h"
#include "rill/storage/tiered/batch_assembly.h"

namespace rill {

// EnsembleStorage's body. Writers share alone_mutex, which comes before the
// members' locks; under these come those of `observers`. Readers take none of
// it.
struct EnsembleStorage::State {
  // Those of some slots that one member has. Reusable.
  struct Part {
    std::vector<Slot> slots;      // The member's own numbers.
    std::vector<int64_t> places;  // Of the slots that were asked for.
    TensorDict rows;
  };
  // Those of a call, one a member, and what a read works with.
  struct Parts {
    Part& operator[](size_t member) { return members[member]; }
    const Part& operator[](size_t member) const { return members[member]; }

    std::vector<Part> members;
    storage_internal::ReadPlaces places;
    storage_internal::BoundPlaces bound;
  };

  State(std::vector<std::unique_ptr<Storage>> all, const Lanes& all_lanes);
  absl::Status AttachRelays();

  // Which lanes of which members.
  size_t size() const { return members.size(); }
  Slot FirstSlot(size_t member) const {
    return first_lanes[member] * lanes.capacity;
  }
  size_t MemberOf(Slot slot) const {
    return members_of_lanes[lanes.LaneOf(slot)];
  }
  std::string Label(size_t member) const;
  // A member's error, with what its numbers mean.
  absl::Status Explained(size_t member, const absl::Status& status) const;
  // OUT_OF_RANGE where a slot is none.
  absl::Status CheckSlots(absl::string_view caller,
                          absl::Span<const Slot> slots) const;
  // The same where it has no row, for members' parts; the first that is asked
  // for. OK where all are live.
  absl::Status CheckLive(absl::string_view caller, absl::Span<const Slot> slots,
                         const Parts& parts) const;
  // Number of members that have any, and the last of those.
  size_t Split(absl::Span<const Slot> slots, Parts* parts, size_t* only) const;

  // The assembly for the spec; null before the spec is known.
  std::shared_ptr<const storage_internal::BatchAssembly> Assembly() const {
    absl::ReaderMutexLock lock(&assembly_mutex);
    return assembly;
  }
  absl::Status LearnSpec() ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex);
  // The first whose spec is known, or the first.
  size_t KnownMember() const;

  // Reading.
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const storage_internal::ReadRequest& request) const;
  absl::Status ReadParts(absl::Span<const Slot> slots,
                         const storage_internal::ReadRequest& request,
                         Parts* parts) const;
  // The assembly, also where the first write is published and not returned.
  absl::StatusOr<std::shared_ptr<const storage_internal::BatchAssembly>>
  KnownAssembly() const;
  Parts TakeParts() const;
  void GiveBack(Parts parts) const;

  // Writing.
  absl::StatusOr<ExtendResult> Append(const TensorDict& batch,
                                      const storage_internal::LaneSteps& append,
                                      const WriteInfo& info) const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex);
  absl::Status CheckAppend(const TensorDict& batch,
                           const storage_internal::LaneSteps& append) const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex);
  // Checks a batch against the row layout, as far as that is known.
  absl::Status CheckLeaves(const TensorDict& batch) const;
  absl::Status WriteParts(absl::Span<const Slot> slots, const TensorDict& rows,
                          InPlace kind, const Parts& parts) const
      ABSL_SHARED_LOCKS_REQUIRED(alone_mutex);

  // As a whole.
  absl::StatusOr<storage_internal::LiveRows> Collect() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex);
  // Notifies observers of all rows anew.
  absl::Status Retell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex);
  // The same after a write, where a member did so on its own.
  void RetellIfBroken() ABSL_LOCKS_EXCLUDED(alone_mutex);
  absl::Status WriteMemberSaves(const storage_internal::StoredRows& stored,
                                const std::string& directory) const;
  // Tells what is left, for an error.
  std::string ClearMembers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex);
  absl::Status LoadMembers(const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(alone_mutex);

  const Lanes lanes;
  std::vector<int64_t> first_lanes;      // One a member.
  std::vector<size_t> members_of_lanes;  // One a lane.
  storage_internal::EnsembleObservers observers;
  std::vector<std::unique_ptr<storage_internal::MemberRelay>> relays;
  const std::vector<std::unique_ptr<Storage>> members;

  mutable absl::Mutex alone_mutex;
  std::atomic<bool> all_know_spec = false;

  mutable absl::Mutex assembly_mutex;
  std::shared_ptr<const storage_internal::BatchAssembly> assembly
      ABSL_GUARDED_BY(assembly_mutex);

  mutable absl::Mutex parts_mutex;
  mutable std::vector<Parts> unused ABSL_GUARDED_BY(parts_mutex);

  // The memory of members' leases.
  storage_internal::LentBuffers lent;
};

}  // namespace rill

#endif  // RILL_STORAGE_ENSEMBLE_ENSEMBLE_STORAGE_STATE_H_
