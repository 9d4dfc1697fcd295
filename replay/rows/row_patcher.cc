// SPDX-License-Identifier: Apache-2.0
// A write in place is a replacement or a patch. After a replacement draws of
// the old rows are stale, after a patch they are not. So UpdateIfPresent
// changes rows of a batch that is in flight, and its priorities still arrive.
#include "rill/replay/rows/row_patcher.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/tensordict/finite_check.h"

namespace rill::replay_internal {
namespace {

constexpr absl::string_view kCaller = "ReplayBuffer::UpdateIfPresent";

// The version of each of n rows, from leaf `key`.
absl::StatusOr<std::vector<int64_t>> VersionsOf(const TensorDict& rows,
                                                const std::string& key,
                                                size_t n) {
  RILL_ASSIGN_OR_RETURN(const Tensor versions, NumbersOf(kCaller, rows, key));
  if (versions.num_elements() != static_cast<int64_t>(n)) {
    return InvalidArgument(kCaller, ": version_key \"", key, "\": got ",
                           versions.shape().ToString(), " for ", n,
                           " rows, want one a row");
  }
  const int64_t* const begin = versions.data<int64_t>();
  return std::vector<int64_t>(begin, begin + n);
}

}  // namespace

absl::Status RowPatcher::KeepNewest(const PatchOptions& options,
                                    absl::Span<const int64_t> versions,
                                    absl::Span<const Draw> draws,
                                    std::vector<int64_t>* places,
                                    PatchResult* result) const {
  std::vector<Slot> slots;
  for (const int64_t place : *places) slots.push_back(draws[place].slot);
  TensorDict stored;
  RILL_RETURN_IF_ERROR(
      storage_->ReadLeaves(slots, {options.version_key}, &stored));
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> have,
                        VersionsOf(stored, options.version_key, slots.size()));
  absl::flat_hash_map<Slot, int64_t> winners;  // Their places.
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t place = (*places)[i];
    result->version_rejected[place] = 1;
    if (versions[place] < have[i]) continue;
    if (options.require_newer && versions[place] == have[i]) continue;
    // The highest version wins where several patches go to one row, the last
    // one of equal ones.
    const auto [winner, is_first] = winners.try_emplace(slots[i], place);
    if (!is_first && versions[place] >= versions[winner->second]) {
      winner->second = place;
    }
  }
  for (const auto& [slot, place] : winners) result->version_rejected[place] = 0;
  std::erase_if(*places, [&](int64_t place) {
    return result->version_rejected[place] != 0;
  });
  return absl::OkStatus();
}

absl::StatusOr<PatchResult> RowPatcher::PatchWithTicket(
    const TensorDict& patch, const PatchOptions& options) const {
  RILL_ASSIGN_OR_RETURN(const std::vector<Draw> draws, DrawsOf(kCaller, patch));
  const size_t n = draws.size();
  if (!(patch.batch_shape() == Shape({static_cast<int64_t>(n)}))) {
    return InvalidArgument(kCaller, ": batch shape: got ",
                           patch.batch_shape().ToString(), ", want [", n,
                           "], one row an index");
  }
  TensorDict rows = patch;
  RILL_RETURN_IF_ERROR(rows.Delete(kIndexKey));
  RILL_RETURN_IF_ERROR(rows.Delete(kGenerationKey));
  std::vector<int64_t> versions;
  if (!options.version_key.empty()) {
    RILL_ASSIGN_OR_RETURN(versions, VersionsOf(rows, options.version_key, n));
  }

  PatchResult result;
  result.updated.resize(n);
  result.version_rejected.resize(n);
  std::vector<uint8_t> is_current(n);
  // In the ticket of DrawnRows, so no other write of this buffer retires one of
  // the rows before this one has written it.
  sampler_->FindCurrent(draws, absl::MakeSpan(is_current));
  std::vector<int64_t> places;
  std::vector<Slot> slots;
  for (size_t i = 0; i < n; ++i) {
    if (is_current[i] == 0) continue;
    places.push_back(static_cast<int64_t>(i));
    slots.push_back(draws[i].slot);
  }
  if (!versions.empty() && !slots.empty()) {
    RILL_RETURN_IF_ERROR(
        KeepNewest(options, versions, draws, &places, &result));
    slots.clear();
    for (const int64_t place : places) slots.push_back(draws[place].slot);
  }
  // Also with no row: an error of the patch is reported whichever rows are
  // there.
  RILL_ASSIGN_OR_RETURN(const TensorDict kept, rows.Gather(places));
  drawn_rows_->WaitForRows(slots);
  RILL_RETURN_IF_ERROR(writer_->WriteInPlace(slots, kept, InPlace::kPatch));
  for (const int64_t place : places) result.updated[place] = 1;
  result.num_updated = static_cast<int64_t>(places.size());
  return result;
}

absl::StatusOr<PatchResult> RowPatcher::Patch(const TensorDict& patch,
                                              const PatchOptions& options) {
  RILL_RETURN_IF_ERROR(CheckFiniteIfAsked(kCaller, patch, {"row"}));
  absl::MutexLock lock(&mutex_);
  // The lock before the ticket: a patch that waits for another one must not
  // hold the ticket.
  drawn_rows_->BeginWrite();
  absl::StatusOr<PatchResult> result = CatchExceptions(
      [&] {
        mutex_.AssertHeld();
        return PatchWithTicket(patch, options);
      },
      kCaller);
  drawn_rows_->EndWrite(0);
  return result;
}

}  // namespace rill::replay_internal
