// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TIERED_TIERED_STORAGE_STATE_H_
#define RILL_STORAGE_TIERED_TIERED_STORAGE_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/sharing/lent_buffers.h"
#include "rill/storage/tiered/batch_assembly.h"
#include "rill/storage/tiered/tier_map.h"
#include "rill/storage/tiered/tiered_storage.h"

namespace rill {

// TieredStorage's body. write_mutex is held by one write at a time, over both
// tiers, before the locks of either. Readers need only its `map`.
struct TieredStorage::State {
  // Memory of one read, reused.
  struct Scratch {
    storage_internal::TierMap::Split split;
    storage_internal::BatchAssembly::Staging staging;
    storage_internal::ReadPlaces places;
    storage_internal::BoundPlaces bound;  // The same, for the tiers.
  };

  State(Options options, std::unique_ptr<Storage> fast_tier)
      : below(std::move(options.below)),
        fast(std::move(fast_tier)),
        lanes(below->lanes()),
        fast_lane_rows(fast->lanes().capacity),
        fill(options.fill),
        map(lanes, fast_lane_rows) {}

  // The assembly for the spec; null before the spec is known.
  std::shared_ptr<const storage_internal::BatchAssembly> Assembly() const {
    absl::ReaderMutexLock lock(&assembly_mutex);
    return assembly;
  }
  absl::Status LearnSpec() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);

  // Writing.
  absl::Status StartAnew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // `load` replaces the rows below.
  absl::Status LoadBelow(absl::FunctionRef<absl::Status()> load);
  absl::Status Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  absl::Status FillLane(int64_t lane, int64_t first, int64_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // The fast tier took so many bytes, or starts anew without its rows.
  void Note(const absl::Status& status, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // Writes those of `rows` that the fast tier has.
  absl::Status PatchFast(const storage_internal::TierMap::Split& split,
                         const TensorDict& rows, InPlace kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);

  int64_t RowBytes() const {
    const auto known = Assembly();
    return known == nullptr ? 0 : known->row_bytes();
  }

  // Reading.
  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const storage_internal::ReadRequest& request) const;
  absl::Status ReadSplit(const storage_internal::BatchAssembly& known,
                         absl::Span<const Slot> slots,
                         const storage_internal::ReadRequest& request,
                         Scratch* scratch) const;
  absl::Status ReadBelow(absl::Span<const Slot> slots,
                         const storage_internal::ReadRequest& request) const;
  // The rows of `scratch->split`, from both tiers, to `scratch->places`.
  absl::Status Assemble(const storage_internal::BatchAssembly& known,
                        const storage_internal::ReadRequest& request,
                        Scratch* scratch) const;
  Scratch TakeScratch() const {
    absl::MutexLock lock(&scratch_mutex);
    if (unused.empty()) return {};
    Scratch scratch = std::move(unused.back());
    unused.pop_back();
    return scratch;
  }
  void GiveBack(Scratch scratch) const {
    absl::MutexLock lock(&scratch_mutex);
    unused.push_back(std::move(scratch));
  }

  const std::unique_ptr<Storage> below;
  const std::unique_ptr<Storage> fast;
  const Lanes lanes;
  const int64_t fast_lane_rows;
  const bool fill;

  absl::Mutex write_mutex;
  storage_internal::TierMap map;

  mutable absl::Mutex assembly_mutex;
  std::shared_ptr<const storage_internal::BatchAssembly> assembly
      ABSL_GUARDED_BY(assembly_mutex);

  mutable absl::Mutex scratch_mutex;
  mutable std::vector<Scratch> unused ABSL_GUARDED_BY(scratch_mutex);

  // The memory of leases of the storage below.
  storage_internal::LentBuffers lent;

  mutable std::atomic<int64_t> fast_rows = 0;
  mutable std::atomic<int64_t> slow_rows = 0;
  mutable std::atomic<int64_t> bytes_fetched = 0;
  std::atomic<int64_t> bytes_written = 0;
  mutable absl::Mutex failure_mutex;
  int64_t failed_writes ABSL_GUARDED_BY(failure_mutex) = 0;
  absl::Status last_failure ABSL_GUARDED_BY(failure_mutex);
};

}  // namespace rill

#endif  // RILL_STORAGE_TIERED_TIERED_STORAGE_STATE_H_
