// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/tiered/tiered_storage.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/tiered/batch_assembly.h"
#include "rill/storage/tiered/tier_map.h"

namespace rill {

using storage_internal::BatchAssembly;
using storage_internal::SomeLeaves;
using storage_internal::TierMap;

// write_mutex_ is held by one write at a time, over both tiers, before the
// locks of either. What readers need of it is in `map`.
struct TieredStorage::State {
  // What one read works with, reused.
  struct Scratch {
    TierMap::Split split;
    BatchAssembly::Staging staging;
  };

  State(Options options, std::unique_ptr<Storage> fast_tier)
      : below(std::move(options.below)),
        fast(std::move(fast_tier)),
        lanes(below->lanes()),
        fast_lane_rows(fast->lanes().capacity),
        fill(options.fill),
        map(lanes, fast_lane_rows) {}

  // What is known with the spec; null before.
  std::shared_ptr<const BatchAssembly> Assembly() const {
    absl::ReaderMutexLock lock(&assembly_mutex);
    return assembly;
  }
  absl::Status LearnSpec() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);

  // Writing.
  absl::Status StartAnew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  absl::Status Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  absl::Status FillLane(int64_t lane, int64_t first, int64_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // The fast tier took so many bytes, or starts anew without its rows.
  void Note(const absl::Status& status, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // Writes those of `rows` that the fast tier has.
  absl::Status PatchFast(const TierMap::Split& split, const TensorDict& rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex);
  // Rows that were lent change under a write that reads them twice.
  absl::StatusOr<TensorDict> OwnRows(const TensorDict& rows) const;

  int64_t RowBytes() const {
    const auto known = Assembly();
    return known == nullptr ? 0 : known->row_bytes();
  }

  // Reading.
  absl::Status ReadSome(absl::Span<const Slot> slots, const SomeLeaves& keys,
                        TensorDict* out) const;
  absl::Status ReadBelow(absl::Span<const Slot> slots, const SomeLeaves& keys,
                         TensorDict* out) const;
  // The rows of `scratch->split`, from both tiers, into a batch that fits.
  absl::Status Assemble(const BatchAssembly& known, const SomeLeaves& keys,
                        Scratch* scratch, TensorDict* batch) const;
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
  std::vector<const Buffer*> Lent() const {
    absl::ReaderMutexLock lock(&lent_mutex);
    return lent;
  }

  const std::unique_ptr<Storage> below;
  const std::unique_ptr<Storage> fast;
  const Lanes lanes;
  const int64_t fast_lane_rows;
  const bool fill;

  absl::Mutex write_mutex;
  TierMap map;

  mutable absl::Mutex assembly_mutex;
  std::shared_ptr<const BatchAssembly> assembly ABSL_GUARDED_BY(assembly_mutex);

  mutable absl::Mutex scratch_mutex;
  mutable std::vector<Scratch> unused ABSL_GUARDED_BY(scratch_mutex);

  // Where leases of the storage below lie.
  mutable absl::Mutex lent_mutex;
  mutable std::vector<const Buffer*> lent ABSL_GUARDED_BY(lent_mutex);

  mutable std::atomic<int64_t> fast_rows = 0;
  mutable std::atomic<int64_t> slow_rows = 0;
  mutable std::atomic<int64_t> bytes_fetched = 0;
  std::atomic<int64_t> bytes_written = 0;
  mutable absl::Mutex failure_mutex;
  int64_t failed_writes ABSL_GUARDED_BY(failure_mutex) = 0;
  absl::Status last_failure ABSL_GUARDED_BY(failure_mutex);
};

namespace {

constexpr absl::string_view kCreate = "TieredStorage::Create";

absl::Status BadOption(absl::string_view option, const absl::AlphaNum& got,
                       const absl::AlphaNum& want) {
  return absl::InvalidArgumentError(absl::StrCat(
      kCreate, ": Options::", option, ": got ", got, ", want ", want));
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
  const Lanes& lanes = options.below->lanes();
  if (options.fast_capacity <= 0 || options.fast_capacity % lanes.count != 0 ||
      options.fast_capacity > lanes.num_slots()) {
    return BadOption(
        "fast_capacity", options.fast_capacity,
        absl::StrCat("a multiple of lanes = ", lanes.count, " in [",
                     lanes.count, ", ", lanes.num_slots(), "]"));
  }
  const absl::Status probe = options.below->WriteAt({}, TensorDict({0}));
  if (!absl::IsFailedPrecondition(probe)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(kCreate,
                   ": Options::below: got a storage that takes no "
                   "writes, want one that does: ",
                   probe.message()));
}

// What an Extend appends; nothing where the storage below refuses it.
struct Append {
  int64_t first = 0;
  int64_t lanes = 0;
  int64_t steps = 0;
};
std::optional<Append> AppendOf(const Lanes& lanes, const Shape& shape,
                               int64_t first) {
  if (shape.rank() != 1 && shape.rank() != 2) return std::nullopt;
  const int64_t count = shape.rank() == 2 ? shape[0] : 1;
  const int64_t steps = shape[shape.rank() - 1];
  if (first < 0 || first > lanes.count || count > lanes.count - first ||
      count * steps == 0) {
    return std::nullopt;
  }
  return Append{first, count, steps};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TieredStorage>> TieredStorage::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  absl::StatusOr<std::unique_ptr<Storage>> fast =
      DenseStorage::Create({.capacity = options.fast_capacity,
                            .lanes = options.below->lanes().count,
                            .layout = options.layout,
                            .device = options.device,
                            .memory_kind = options.memory_kind,
                            .spec = options.below->spec(),
                            .event_keys = {.ends = {},
                                           .trajectory = "",
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
    : state_(std::move(state)) {}

TieredStorage::~TieredStorage() = default;

// --- Writing -----------------------------------------------------------------

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

absl::StatusOr<TensorDict> TieredStorage::State::OwnRows(
    const TensorDict& rows) const {
  const std::vector<const Buffer*> buffers = Lent();
  bool is_lent = false;
  if (!buffers.empty()) {
    rows.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
      is_lent = is_lent || std::find(buffers.begin(), buffers.end(),
                                     leaf.buffer().get()) != buffers.end();
    });
  }
  if (is_lent) return rows.Clone();
  return rows;
}

absl::StatusOr<ExtendResult> TieredStorage::Extend(const TensorDict& batch,
                                                   const WriteInfo& info) {
  State& state = *state_;
  absl::MutexLock turn(&state.write_mutex);
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, state.OwnRows(batch));
  const std::optional<Append> append =
      AppendOf(state.lanes, batch.batch_shape(), info.first_lane);
  if (!append.has_value()) return state.below->Extend(rows, info);
  state.map.BeginAppend(append->first, append->lanes, append->steps);
  absl::StatusOr<ExtendResult> result = state.below->Extend(rows, info);
  if (!result.ok()) {
    state.map.CancelAppend(append->first);
    return result;
  }
  absl::Status status = state.LearnSpec();
  if (status.ok()) status = state.fast->Extend(rows, info).status();
  if (status.ok()) {
    state.map.EndAppend(append->first, append->lanes, append->steps);
  }
  state.Note(status, append->lanes *
                         std::min(append->steps, state.fast_lane_rows) *
                         state.RowBytes());
  return result;
}

absl::Status TieredStorage::State::PatchFast(const TierMap::Split& split,
                                             const TensorDict& rows) {
  if (split.hits.empty()) return absl::OkStatus();
  if (split.missing.empty()) return fast->WriteAt(split.fast_slots, rows);
  std::vector<int64_t> places;
  std::vector<Slot> fast_slots;
  for (const TierMap::Split::Hit& hit : split.hits) {
    places.push_back(hit.place);
    fast_slots.push_back(split.fast_slots[hit.place]);
  }
  RILL_ASSIGN_OR_RETURN(const TensorDict hits, rows.Gather(places));
  return fast->WriteAt(fast_slots, hits);
}

absl::Status TieredStorage::WriteAt(absl::Span<const Slot> slots,
                                    const TensorDict& given) {
  State& state = *state_;
  absl::MutexLock turn(&state.write_mutex);
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, state.OwnRows(given));
  TierMap::Split split;
  state.map.SplitRead(slots, &split);
  state.map.BeginPatch();
  absl::Status status = state.below->WriteAt(slots, rows);
  if (status.ok()) {
    const auto hits = static_cast<int64_t>(split.hits.size());
    const auto n = std::max<int64_t>(static_cast<int64_t>(slots.size()), 1);
    state.Note(state.PatchFast(split, rows), rows.size_bytes() / n * hits);
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

absl::Status TieredStorage::Load(const std::string& directory) {
  State& state = *state_;
  absl::MutexLock turn(&state.write_mutex);
  state.map.Forget();
  const absl::Status loaded = state.below->Load(directory);
  RILL_RETURN_IF_ERROR(state.LearnSpec());
  RILL_RETURN_IF_ERROR(state.StartAnew());
  RILL_RETURN_IF_ERROR(loaded);
  if (state.fill) {
    const absl::Status filled = state.Fill();
    if (!filled.ok()) state.Note(filled, 0);
  }
  return absl::OkStatus();
}

// --- Reading -----------------------------------------------------------------

absl::Status TieredStorage::State::ReadBelow(absl::Span<const Slot> slots,
                                             const SomeLeaves& keys,
                                             TensorDict* out) const {
  RILL_RETURN_IF_ERROR(keys ? below->ReadLeaves(slots, *keys, out)
                            : below->Read(slots, out));
  slow_rows += static_cast<int64_t>(slots.size());
  bytes_fetched += out->size_bytes();
  return absl::OkStatus();
}

absl::Status TieredStorage::State::ReadSome(absl::Span<const Slot> slots,
                                            const SomeLeaves& keys,
                                            TensorDict* out) const {
  const auto known = Assembly();
  if (out == nullptr || known == nullptr) return ReadBelow(slots, keys, out);
  Scratch scratch = TakeScratch();
  map.SplitRead(slots, &scratch.split);
  absl::Status status;
  if (scratch.split.hits.empty() && fast->device().is_cpu()) {
    status = ReadBelow(slots, keys, out);
  } else if (const auto n = static_cast<int64_t>(slots.size());
             known->Fits(n, keys, Lent(), *out)) {
    status = Assemble(*known, keys, &scratch, out);
  } else {
    absl::StatusOr<TensorDict> fresh = known->MakeBatch(n, keys);
    status =
        fresh.ok() ? Assemble(*known, keys, &scratch, &*fresh) : fresh.status();
    if (status.ok()) *out = *std::move(fresh);
  }
  GiveBack(std::move(scratch));
  return status;
}

absl::Status TieredStorage::State::Assemble(const BatchAssembly& known,
                                            const SomeLeaves& keys,
                                            Scratch* scratch,
                                            TensorDict* batch) const {
  TierMap::Split* const split = &scratch->split;
  const auto fetch = [&](TensorDict* rows) {
    const auto count = static_cast<int64_t>(split->missing.size());
    *rows = known.HostRows(count, keys, &scratch->staging);
    return ReadBelow(split->missing_slots, keys, rows);
  };
  // First what may fail for the caller's mistakes: the batch is his.
  TensorDict rows;
  const bool has_missing = !split->missing.empty() || split->hits.empty();
  if (has_missing) {
    RILL_RETURN_IF_ERROR(fetch(&rows));
  }
  if (split->hits.empty()) return known.Put(rows, split->missing, keys, batch);
  absl::Status read = keys ? fast->ReadLeaves(split->fast_slots, *keys, batch)
                           : fast->Read(split->fast_slots, batch);
  if (has_missing) {
    RILL_RETURN_IF_ERROR(known.Put(rows, split->missing, keys, batch));
  }
  map.FindLost(split, /*all=*/!read.ok());
  fast_rows += static_cast<int64_t>(split->hits.size() - split->missing.size());
  if (split->missing.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(fetch(&rows));
  return known.Put(rows, split->missing, keys, batch);
}

absl::Status TieredStorage::Read(absl::Span<const Slot> slots,
                                 TensorDict* out) const {
  return state_->ReadSome(slots, std::nullopt, out);
}

absl::Status TieredStorage::ReadLeaves(absl::Span<const Slot> slots,
                                       absl::Span<const std::string> keys,
                                       TensorDict* out) const {
  return state_->ReadSome(slots, keys, out);
}

absl::StatusOr<SlotLease> TieredStorage::Lease(SlotRange range) const {
  RILL_ASSIGN_OR_RETURN(SlotLease lease, state_->below->Lease(range));
  std::vector<const Buffer*> found;
  lease.rows().ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    if (leaf.is_valid()) found.push_back(leaf.buffer().get());
  });
  absl::MutexLock lock(&state_->lent_mutex);
  std::vector<const Buffer*>& lent = state_->lent;
  for (const Buffer* buffer : found) {
    if (std::find(lent.begin(), lent.end(), buffer) != lent.end()) continue;
    lent.push_back(buffer);
  }
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

const Lanes& TieredStorage::lanes() const { return state_->lanes; }

int64_t TieredStorage::size() const { return state_->below->size(); }

std::vector<Cursor> TieredStorage::cursors() const {
  return state_->below->cursors();
}

TensorDictSpec TieredStorage::spec() const { return state_->below->spec(); }

Device TieredStorage::device() const { return state_->fast->device(); }

StorageUsage TieredStorage::MemoryUsage() const {
  StorageUsage usage = state_->below->MemoryUsage();
  const StorageUsage fast = state_->fast->MemoryUsage();
  usage.memory += fast.memory;
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

absl::Status TieredStorage::Save(const std::string& directory) const {
  return state_->below->Save(directory);
}

}  // namespace rill
