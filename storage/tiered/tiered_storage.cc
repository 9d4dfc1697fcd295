// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/tiered_storage.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/tiered/tiered_storage_state.h"

namespace rill {

using storage_internal::BatchAssembly;
using storage_internal::BoundPlaces;
using storage_internal::LeafBatch;
using storage_internal::LeafKeys;
using storage_internal::ReadFrom;
using storage_internal::ReadRequest;
using storage_internal::TierMap;

namespace {

constexpr absl::string_view kCreate = "TieredStorage::Create";

absl::Status BadOption(absl::string_view option, const absl::AlphaNum& got,
                       const absl::AlphaNum& want) {
  return InvalidArgument(kCreate, ": Options::", option, ": got ", got,
                         ", want ", want);
}

absl::Status CheckOptions(const TieredStorage::Options& options) {
  if (options.below == nullptr) {
    return BadOption("below", "null",
                     "a storage of all rows, as a MemmapStorage");
  }
  if (!options.below->device().is_cpu()) {
    return BadOption(
        "below",
        absl::StrCat("a storage on ", options.below->device().ToString()),
        "one in host memory or in files");
  }
  if (options.below->traits().ragged_leaves) {
    return BadOption("below", "a storage of rows with ragged leaves",
                     "one of rows of one shape; use it without tiers, or pad "
                     "the rows before they are stored");
  }
  const Lanes& lanes = options.below->lanes();
  if (options.fast_capacity <= 0 || options.fast_capacity % lanes.count != 0 ||
      options.fast_capacity > lanes.num_slots()) {
    return BadOption(
        "fast_capacity", options.fast_capacity,
        absl::StrCat("a multiple of lanes = ", lanes.count, " in [",
                     lanes.count, ", ", lanes.num_slots(), "]"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TieredStorage>> TieredStorage::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  absl::StatusOr<std::unique_ptr<Storage>> fast =
      // The storage below reports events; the fast tier has no observers.
      DenseStorage::Create({.capacity = options.fast_capacity,
                            .lanes = options.below->lanes().count,
                            .layout = options.layout,
                            .device = options.device,
                            .memory_kind = options.memory_kind,
                            .spec = options.below->spec(),
                            .event_keys = {.ends = {},
                                           .trajectories = {},
                                           .priority = "",
                                           .policy_version = ""}});
  RILL_RETURN_IF_ERROR(fast.status()) << kCreate << ": fast tier";
  auto state = std::make_unique<State>(std::move(options), *std::move(fast));
  {
    absl::MutexLock turn(&state->write_mutex);
    RILL_RETURN_IF_ERROR(state->LearnSpec());
    RILL_RETURN_IF_ERROR(state->StartAnew());
    if (state->fill) {
      RILL_RETURN_IF_ERROR(state->Fill()) << kCreate << ": fill";
    }
  }
  return std::unique_ptr<TieredStorage>(new TieredStorage(std::move(state)));
}

TieredStorage::TieredStorage(std::unique_ptr<State> state)
    : RequestReader({.lanes = state->lanes,
                     .device = state->fast->device(),
                     .event_keys = state->below->traits().event_keys}),
      state_(std::move(state)) {}

TieredStorage::~TieredStorage() = default;

// --- Reading -----------------------------------------------------------------

absl::Status TieredStorage::State::ReadBelow(absl::Span<const Slot> slots,
                                             const ReadRequest& request) const {
  RILL_RETURN_IF_ERROR(ReadFrom(*below, slots, request));
  slow_rows += static_cast<int64_t>(slots.size());
  if (request.out != nullptr) {
    bytes_fetched += request.out->size_bytes();
  } else {
    for (const BoundLeaf& leaf : request.places) {
      bytes_fetched += leaf.width * leaf.rows;
    }
  }
  return absl::OkStatus();
}

absl::Status TieredStorage::State::ReadRows(absl::Span<const Slot> slots,
                                            const ReadRequest& request) const {
  std::shared_ptr<const BatchAssembly> known = Assembly();
  if (known == nullptr && request.out != nullptr) {
    RILL_RETURN_IF_ERROR(ReadBelow(slots, request));
    TensorDict* const out = request.out;
    if (fast->device().is_cpu() || out->empty()) return absl::OkStatus();
    // The first write is published, and the fast tier does not know it yet.
    RILL_ASSIGN_OR_RETURN(*out, out->To(fast->device()));
    return absl::OkStatus();
  }
  if (known == nullptr) {
    RILL_ASSIGN_OR_RETURN(known,
                          BatchAssembly::Create(below->spec(), fast->device()));
  }
  Scratch scratch = TakeScratch();
  map.SplitRead(slots, &scratch.split);
  const absl::Status status = ReadSplit(*known, slots, request, &scratch);
  GiveBack(std::move(scratch));
  return status;
}

absl::Status TieredStorage::State::ReadSplit(const BatchAssembly& known,
                                             absl::Span<const Slot> slots,
                                             const ReadRequest& request,
                                             Scratch* scratch) const {
  if (scratch->split.hits.empty() && fast->device().is_cpu()) {
    return ReadBelow(slots, request);
  }
  const auto n = static_cast<int64_t>(slots.size());
  RILL_RETURN_IF_ERROR(scratch->places.Find(known.source(), n, request));
  // The fast tier reads straight into the batch; rows from below are scattered
  // between its rows.
  scratch->places.Bind(known.source(), n, &scratch->bound);
  RILL_RETURN_IF_ERROR(Assemble(known, request, scratch));
  scratch->places.Finish(request);
  return absl::OkStatus();
}

absl::Status TieredStorage::State::Assemble(const BatchAssembly& known,
                                            const ReadRequest& request,
                                            Scratch* scratch) const {
  TierMap::Split* const split = &scratch->split;
  const absl::Span<const LeafBatch> places = scratch->places.leaves;
  const BoundPlaces& bound = scratch->bound;
  const LeafKeys keys = bound.wanted();
  const auto fetch = [&](TensorDict* rows) {
    const auto count = static_cast<int64_t>(split->missing.size());
    *rows = known.HostRows(count, keys, &scratch->staging);
    return ReadBelow(split->missing_slots,
                     {.caller = request.caller, .out = rows, .keys = keys});
  };
  // First what may fail for the caller's mistakes: the batch is his.
  TensorDict rows;
  const bool has_missing = !split->missing.empty() || split->hits.empty();
  if (has_missing) {
    RILL_RETURN_IF_ERROR(fetch(&rows));
  }
  if (split->hits.empty()) return known.Put(rows, split->missing, places);
  const absl::Status read =
      fast->ReadInto(split->fast_slots, bound.leaves, bound.places);
  if (has_missing) {
    RILL_RETURN_IF_ERROR(known.Put(rows, split->missing, places));
  }
  // Rows that the fast tier lost while they were copied are read from below,
  // which still has them or refuses the slot.
  map.FindLost(split, /*all=*/!read.ok());
  fast_rows += static_cast<int64_t>(split->hits.size() - split->missing.size());
  if (split->missing.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(fetch(&rows));
  return known.Put(rows, split->missing, places);
}

absl::Status TieredStorage::ReadRows(absl::Span<const Slot> slots,
                                     const ReadRequest& request) const {
  return state_->ReadRows(slots, request);
}

absl::StatusOr<SlotLease> TieredStorage::Lease(SlotRange range) const {
  RILL_ASSIGN_OR_RETURN(SlotLease lease, state_->below->Lease(range));
  state_->lent.Add(lease.rows());
  return lease;
}

// --- What the storage below says ---------------------------------------------

TieredStorage::Stats TieredStorage::GetStats() const {
  const State& state = *state_;
  absl::MutexLock lock(&state.failure_mutex);
  return {.fast_rows = state.fast_rows,
          .slow_rows = state.slow_rows,
          .bytes_written = state.bytes_written,
          .bytes_fetched = state.bytes_fetched,
          .failed_writes = state.failed_writes,
          .last_failure = state.last_failure};
}

int64_t TieredStorage::size() const { return state_->below->size(); }

std::vector<Cursor> TieredStorage::cursors() const {
  return state_->below->cursors();
}

TensorDictSpec TieredStorage::spec() const { return state_->below->spec(); }

StorageUsage TieredStorage::MemoryUsage() const {
  StorageUsage usage = state_->below->MemoryUsage();
  const StorageUsage fast = state_->fast->MemoryUsage();
  usage.memory += fast.memory;
  usage.device += fast.device;
  usage.full += fast.full;
  return usage;
}

absl::Status TieredStorage::AddObserver(WriteObserver* observer) {
  return state_->below->AddObserver(observer);
}

void TieredStorage::RemoveObserver(WriteObserver* observer) {
  state_->below->RemoveObserver(observer);
}

absl::Status TieredStorage::Sync() { return state_->below->Sync(); }

absl::StatusOr<std::string> TieredStorage::SavePosition() {
  return state_->below->SavePosition();
}

absl::Status TieredStorage::Save(const std::string& directory) const {
  return state_->below->Save(directory);
}

}  // namespace rill
