// SPDX-License-Identifier: Apache-2.0
// The writing side of TieredStorage: the storage below first, then the fast
// tier, which starts anew where it fails.
#include <algorithm>
#include <utility>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/tiered/tiered_storage_state.h"

namespace rill {

using storage_internal::BatchAssembly;
using storage_internal::BatchRows;
using storage_internal::TierMap;

absl::Status TieredStorage::State::LearnSpec() {
  {
    absl::ReaderMutexLock lock(&assembly_mutex);
    if (assembly != nullptr) return absl::OkStatus();
  }
  const TensorDictSpec spec = below->spec();
  if (spec.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto made, BatchAssembly::Create(spec, fast->device()));
  absl::MutexLock lock(&assembly_mutex);
  assembly = std::move(made);
  return absl::OkStatus();
}

absl::Status TieredStorage::State::StartAnew() {
  // A reader that is between SplitRead and FindLost then finds its rows lost.
  map.Forget();
  RILL_RETURN_IF_ERROR(fast->Clear());
  map.Restart(below->cursors());
  return absl::OkStatus();
}

void TieredStorage::State::Note(const absl::Status& status, int64_t bytes) {
  if (status.ok()) {
    bytes_written += bytes;
    return;
  }
  {
    absl::MutexLock lock(&failure_mutex);
    ++failed_writes;
    last_failure = status;
  }
  // Where not even that works the map has nothing, so nothing is asked for.
  StartAnew().IgnoreError();
}

absl::StatusOr<ExtendResult> TieredStorage::Extend(const TensorDict& batch,
                                                   const WriteInfo& info) {
  State& state = *state_;
  absl::MutexLock turn(&state.write_mutex);
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, state.lent.OwnRows(batch));
  const auto extent = BatchRows::Find(state.lanes, batch, info);
  // The storage below refuses it, or takes nothing.
  if (!extent.ok() || batch.batch_shape().num_elements() == 0) {
    return state.below->Extend(rows, info);
  }
  const int64_t first = info.first_lane;
  // The storage below publishes and notifies first. Until EndAppend a read
  // takes the new rows from there, so it finds them as soon as observers know
  // of them.
  state.map.BeginAppend(first, extent->num_lanes, extent->steps);
  absl::StatusOr<ExtendResult> result = state.below->Extend(rows, info);
  if (!result.ok()) {
    state.map.CancelAppend(first);
    return result;
  }
  absl::Status status = state.LearnSpec();
  if (status.ok()) status = state.fast->Extend(rows, info).status();
  if (status.ok()) {
    state.map.EndAppend(first, extent->num_lanes, extent->steps);
  }
  state.Note(status, extent->num_lanes *
                         std::min(extent->steps, state.fast_lane_rows) *
                         state.RowBytes());
  return result;
}

absl::Status TieredStorage::State::PatchFast(const TierMap::Split& split,
                                             const TensorDict& rows,
                                             InPlace kind) {
  if (split.hits.empty()) return absl::OkStatus();
  if (split.missing.empty()) {
    return fast->WriteInPlace(split.fast_slots, rows, kind);
  }
  std::vector<int64_t> places;
  std::vector<Slot> fast_slots;
  for (const TierMap::Split::Hit& hit : split.hits) {
    places.push_back(hit.place);
    fast_slots.push_back(split.fast_slots[hit.place]);
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict hits, rows.Gather(places));
  return fast->WriteInPlace(fast_slots, hits, kind);
}

absl::Status TieredStorage::WriteInPlace(absl::Span<const Slot> slots,
                                         const TensorDict& given,
                                         InPlace kind) {
  State& state = *state_;
  absl::MutexLock turn(&state.write_mutex);
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, state.lent.OwnRows(given));
  TierMap::Split split;
  state.map.SplitRead(slots, &split);
  // Readers take both tiers' rows from below while they may differ.
  state.map.BeginPatch();
  absl::Status status = state.below->WriteInPlace(slots, rows, kind);
  if (status.ok()) {
    const auto hits = static_cast<int64_t>(split.hits.size());
    const auto n = std::max<int64_t>(static_cast<int64_t>(slots.size()), 1);
    state.Note(state.PatchFast(split, rows, kind),
               rows.size_bytes() / n * hits);
  } else if (!split.hits.empty()) {
    // Rows may have changed before it failed.
    state.StartAnew().IgnoreError();
  }
  state.map.EndPatch();
  return status;
}

absl::Status TieredStorage::Clear() {
  absl::MutexLock turn(&state_->write_mutex);
  state_->map.Forget();
  RILL_RETURN_IF_ERROR(state_->below->Clear());
  return state_->StartAnew();
}

// --- Filling -----------------------------------------------------------------

absl::Status TieredStorage::State::FillLane(int64_t lane, int64_t first,
                                            int64_t end) {
  constexpr int64_t kPiece = 1024;
  std::vector<Slot> slots;
  TensorDict rows;
  for (int64_t step = first; step < end; step += kPiece) {
    slots.clear();
    for (int64_t i = step; i < std::min(step + kPiece, end); ++i) {
      slots.push_back(lanes.SlotOf(lane, i % lanes.capacity));
    }
    const auto count = static_cast<int64_t>(slots.size());
    RILL_RETURN_IF_ERROR(below->Read(slots, &rows));
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, rows.Unsqueeze(0));
    map.BeginAppend(lane, 1, count);
    RILL_RETURN_IF_ERROR(fast->Extend(batch, {.first_lane = lane}).status());
    map.EndAppend(lane, 1, count);
    bytes_written += count * RowBytes();
  }
  return absl::OkStatus();
}

absl::Status TieredStorage::State::Fill() {
  const std::vector<Cursor> ends = below->cursors();
  std::vector<Cursor> starts = ends;
  for (Cursor& cursor : starts) {
    cursor.written -= std::min(cursor.written, fast_lane_rows);
  }
  map.Restart(starts);
  absl::Status status;
  for (int64_t lane = 0; lane < lanes.count && status.ok(); ++lane) {
    status = FillLane(lane, starts[lane].written, ends[lane].written);
  }
  if (status.ok()) return status;
  RILL_RETURN_IF_ERROR(StartAnew());
  // Rows that a killed writer was about to overwrite: then it starts empty.
  return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
}

absl::Status TieredStorage::State::LoadBelow(
    absl::FunctionRef<absl::Status()> load) {
  absl::MutexLock turn(&write_mutex);
  map.Forget();
  const absl::Status loaded = load();
  RILL_RETURN_IF_ERROR(LearnSpec());
  RILL_RETURN_IF_ERROR(StartAnew());
  RILL_RETURN_IF_ERROR(loaded);
  if (fill) {
    const absl::Status filled = Fill();
    if (!filled.ok()) Note(filled, 0);
  }
  return absl::OkStatus();
}

absl::Status TieredStorage::Load(const std::string& directory,
                                 const StorageLoadOptions& options) {
  return state_->LoadBelow(
      [&] { return state_->below->Load(directory, options); });
}

absl::Status TieredStorage::LoadPosition(absl::string_view position,
                                         bool accept_newer,
                                         AcceptPosition accept) {
  return state_->LoadBelow([&] {
    return state_->below->LoadPosition(position, accept_newer, accept);
  });
}

}  // namespace rill
