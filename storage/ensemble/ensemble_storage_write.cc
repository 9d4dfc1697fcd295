// SPDX-License-Identifier: Apache-2.0
// Writing rows of an EnsembleStorage: what fails for all members is found
// before the first of them is written.
#include <algorithm>
#include <utility>
#include <vector>

#include "rill/base/status_macros.h"
#include "rill/storage/ensemble/ensemble_storage_state.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/tensors/shape.h"

namespace rill {

using storage_internal::LaneSteps;

absl::Status EnsembleStorage::State::CheckAppend(
    const TensorDict& batch, const LaneSteps& append) const {
  const size_t first = members_of_lanes[append.first];
  const size_t last = members_of_lanes[append.first + append.count - 1];
  bool is_learning = false;
  for (size_t i = first; i <= last; ++i) {
    is_learning = is_learning || (!all_know_spec && members[i]->spec().empty());
    if (first == last) continue;  // It sees for itself.
    const std::vector<Cursor> cursors = members[i]->cursors();
    for (size_t lane = 0; lane < cursors.size(); ++lane) {
      const int64_t number = first_lanes[i] + static_cast<int64_t>(lane);
      if (!append.HasLane(number) ||
          append.steps <= kMaxWritten - cursors[lane].written) {
        continue;
      }
      return FailedPrecondition("Storage::Extend: cursor of lane ", number,
                                ": got ", append.steps, " steps after ",
                                cursors[lane].written, ", want at most ",
                                kMaxWritten, " in all; Clear first");
    }
  }
  return is_learning ? CheckLeaves(batch) : absl::OkStatus();
}

absl::Status EnsembleStorage::State::CheckLeaves(
    const TensorDict& batch) const {
  const TensorDictSpec spec = members[KnownMember()]->spec();
  if (spec.empty()) return absl::OkStatus();
  storage_internal::BatchLeaves leaves;
  return leaves.Bind("Storage::Extend", spec, SpecTree(spec), batch,
                     /*allow_part=*/false);
}

absl::StatusOr<ExtendResult> EnsembleStorage::State::Append(
    const TensorDict& batch, const LaneSteps& append,
    const WriteInfo& info) const {
  WriteInfo own = info;
  if (append.count * append.steps == 0) {
    // Only looked at, where it is known what rows hold.
    own.first_lane = 0;
    if (batch.batch_shape().rank() == 1) return members[0]->Extend(batch, own);
    RILL_ASSIGN_OR_RETURN(const TensorDict none, batch.Slice(0, 0, 0));
    return members[KnownMember()]->Extend(none, own);
  }
  RILL_RETURN_IF_ERROR(CheckAppend(batch, append));
  const size_t first = members_of_lanes[append.first];
  const size_t last = members_of_lanes[append.first + append.count - 1];
  if (first == last) {
    own.first_lane -= first_lanes[first];
    auto result = members[first]->Extend(batch, own);
    if (!result.ok()) return Explained(first, result.status());
    return result;
  }
  // Rows that lie in a lease of a member would change under the write to it,
  // before the members behind it have read theirs.
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, lent.OwnRows(batch));
  ExtendResult all;
  int64_t lane = 0;  // Of the batch.
  for (size_t i = first; i <= last; ++i) {
    own.first_lane = std::max(append.first - first_lanes[i], int64_t{0});
    const int64_t end = std::min(
        lane + members[i]->lanes().count - own.first_lane, append.count);
    RILL_ASSIGN_OR_RETURN(const TensorDict part, rows.Slice(0, lane, end));
    const auto result = members[i]->Extend(part, own);
    if (!result.ok()) {
      // The whole batch is checked, not a part.
      if (i == first) {
        RILL_RETURN_IF_ERROR(CheckLeaves(batch));
      }
      RILL_RETURN_IF_ERROR(Explained(i, result.status()))
          << (i == first ? "" : "; the members before it took their lanes");
    }
    all.rows_written += result->rows_written;
    all.rows_dropped += result->rows_dropped;
    lane = end;
  }
  return all;
}

absl::StatusOr<ExtendResult> EnsembleStorage::Extend(const TensorDict& batch,
                                                     const WriteInfo& info) {
  State& state = *state_;
  RILL_ASSIGN_OR_RETURN(
      const storage_internal::BatchRows extent,
      storage_internal::BatchRows::Find(state.lanes, batch, info));
  const LaneSteps append = {info.first_lane, extent.num_lanes, extent.steps};
  absl::StatusOr<ExtendResult> result;
  // Until every member knows its spec a write may teach it to one, which must
  // then hold for all: such writes come one at a time.
  if (state.all_know_spec) {
    absl::ReaderMutexLock together(&state.alone_mutex);
    result = state.Append(batch, append, info);
  } else {
    absl::MutexLock alone(&state.alone_mutex);
    result = state.Append(batch, append, info);
    const absl::Status learned = state.LearnSpec();
    if (result.ok() && !learned.ok()) result = learned;
  }
  state.RetellIfBroken();
  return result;
}

absl::Status EnsembleStorage::State::WriteParts(absl::Span<const Slot> slots,
                                                const TensorDict& given,
                                                InPlace kind,
                                                const Parts& parts) const {
  const auto n = static_cast<int64_t>(slots.size());
  if (!(given.batch_shape() == Shape{n})) {
    return InvalidArgument("Storage::WriteAt: batch shape of rows: got ",
                           given.batch_shape().ToString(), ", want [", n, "]");
  }
  RILL_RETURN_IF_ERROR(CheckLive("Storage::WriteAt", slots, parts));
  // Copied once, member after member: a device is waited for once, and rows of
  // a lease are read before one of them changes.
  std::vector<int64_t> places;
  places.reserve(slots.size());
  for (const Part& part : parts.members) {
    places.insert(places.end(), part.places.begin(), part.places.end());
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, given.Gather(places));
  int64_t begin = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (parts[i].slots.empty()) continue;
    const int64_t end = begin + static_cast<int64_t>(parts[i].slots.size());
    RILL_ASSIGN_OR_RETURN(const TensorDict own, rows.Slice(0, begin, end));
    RILL_RETURN_IF_ERROR(
        Explained(i, members[i]->WriteInPlace(parts[i].slots, own, kind)))
        << (begin == 0 ? "" : "; the members before it took their rows");
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status EnsembleStorage::WriteInPlace(absl::Span<const Slot> slots,
                                           const TensorDict& rows,
                                           InPlace kind) {
  State& state = *state_;
  RILL_RETURN_IF_ERROR(state.CheckSlots("Storage::WriteAt", slots));
  State::Parts parts = state.TakeParts();
  size_t only = state.KnownMember();
  const size_t used = state.Split(slots, &parts, &only);
  absl::Status status;
  {
    absl::ReaderMutexLock together(&state.alone_mutex);
    if (used <= 1) {
      status = state.members[only]->WriteInPlace(parts[only].slots, rows, kind);
      if (absl::IsOutOfRange(status) && state.size() > 1) {
        const absl::Status named =
            state.CheckLive("Storage::WriteAt", slots, parts);
        if (!named.ok()) status = named;
      }
    } else {
      status = state.WriteParts(slots, rows, kind, parts);
    }
  }
  state.GiveBack(std::move(parts));
  state.RetellIfBroken();
  return status;
}

}  // namespace rill
