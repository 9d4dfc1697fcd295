// SPDX-License-Identifier: Apache-2.0
// The reading side of DenseStorage, and how readers find the table.
//
// A read takes no lock where it can. Inside an epoch it loads the table and the
// slot below which all rows are live, copies a bounded number of bytes, and
// leaves. Writes are in ring/ring_storage_write.cc and dense/dense_rows.cc, the
// order between both in sharing/epoch_windows.cc.
#include "rill/storage/dense_storage.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/storage/dense_storage_impl.h"
#include "rill/storage/ring/ring_options.h"
#include "rill/storage/rows/read_places.h"

namespace rill {
namespace storage_internal {
namespace {

// A device's storage lies in device memory unless it is asked to be pinned.
MemoryKind KindOf(const DenseStorage::Options& options) {
  return !options.device.is_cpu() &&
                 options.memory_kind == MemoryKind::kPageable
             ? MemoryKind::kDevice
             : options.memory_kind;
}

bool WritesAlone(const DenseStorage::Options& options) {
  return KindOf(options) == MemoryKind::kDevice || options.dedup_next;
}

StorageTraits TraitsOf(const DenseStorage::Options& options, bool in_files) {
  return {.lanes = {options.lanes, options.capacity / options.lanes},
          .device = KindOf(options) == MemoryKind::kDevice ? options.device
                                                           : Device::Cpu(),
          // Files have announced an append by the time that observers would be
          // asked, and their readers would wait for it.
          .asks_before_overwriting = !WritesAlone(options) && !in_files,
          .shows_tables = KindOf(options) == MemoryKind::kDevice,
          .event_keys = options.event_keys};
}

}  // namespace

DenseStorageImpl::DenseStorageImpl(const DenseStorage::Options& options,
                                   std::unique_ptr<RowsOnDisk> directory,
                                   absl::Duration hold_timeout)
    : RingStorage(
          TraitsOf(options, /*in_files=*/directory != nullptr),
          WritesAlone(options) ? WriteOrder::kInTurn : WriteOrder::kSideBySide),
      options_(options),
      directory_(std::move(directory)),
      hold_timeout_(hold_timeout) {
  if (directory_ == nullptr) return;
  absl::MutexLock state(&state_mutex_);
  if (auto found = directory_->FoundRings(lanes())) rings_ = *std::move(found);
}

void DenseStorageImpl::Publish() {
  if (rows_ == nullptr) return;
  DenseRows* const rows = DenseOf(rows_);
  // Only what changed is stored: all readers load these words, and each store
  // takes the cache line from them. The count comes before the table, so that a
  // reader of the new table finds it.
  //
  // Sequential consistency: WaitForReaders looks at the readers' counters after
  // these stores. A reader that it does not wait for entered later, and so
  // loads what is stored here.
  rows->set_live_below(rings_.live_below());
  if (shown_rows_.load(std::memory_order_relaxed) != rows) {
    read_rows_.store(rows->read_rows(), std::memory_order_relaxed);
    shown_rows_.store(rows);
  }
}

bool DenseStorageImpl::MayBegin(bool is_append) const {
  if (directory_ == nullptr) return true;
  // The commit record names each append in flight and has room for three; a
  // fourth waits. Only a few changes in place may join one that is under way,
  // so that readers in other processes find an even generation in time.
  return is_append
             ? writes_.appends().size() < directory_->max_appends_in_flight()
             : directory_->MayBeginInPlace();
}

absl::StatusOr<ExtendResult> DenseStorageImpl::Extend(const TensorDict& batch,
                                                      const WriteInfo& info) {
  absl::StatusOr<ExtendResult> result = RingStorage::Extend(batch, info);
  if (!absl::IsDeadlineExceeded(result.status())) return result;
  // Another process holds rows, and cannot wake this one. No lock is held.
  const absl::Time deadline = Clock::Steady().Now() + hold_timeout_;
  for (absl::Duration pause = absl::Microseconds(100);
       absl::IsDeadlineExceeded(result.status()) &&
       Clock::Steady().Now() < deadline;
       pause = std::min(2 * pause, absl::Milliseconds(10))) {
    absl::SleepFor(pause);
    result = RingStorage::Extend(batch, info);
  }
  return result;
}

absl::StatusOr<std::shared_ptr<RingRows>> DenseStorageImpl::MakeRows(
    const TensorDictSpec& spec, EventLeaves events) const {
  return DenseRows::Create(
      spec, std::move(events), lanes(),
      {.layout = options_.layout,
       .order = options_.order,
       .device = options_.device,
       .memory_kind = KindOf(options_),
       .dedup_next = options_.dedup_next},
      {.windows = &windows_,
       .directory = directory_.get(),
       .asks_before_overwriting = traits().asks_before_overwriting});
}

StorageUsage DenseStorageImpl::MemoryUsage() const {
  StorageUsage usage;
  // A system call, so it comes before the lock.
  if (directory_ != nullptr) usage.disk_free = directory_->FreeDiskBytes();
  absl::ReaderMutexLock lock(&state_mutex_);
  if (rows_ == nullptr) return usage;
  const DenseRows::Bytes bytes = DenseOf(rows_)->CountBytes();
  usage.row = rows_->row_bytes;
  usage.full = bytes.all;
  usage.saved = bytes.saved;
  if (directory_ != nullptr) {
    usage.disk = directory_->DiskBytes();
  } else {
    usage.memory = bytes.all;
    if (!device().is_cpu()) usage.device = bytes.all;
  }
  return usage;
}

absl::StatusOr<const DenseRows*> DenseStorageImpl::FindLive(
    absl::string_view caller, absl::Span<const Slot> slots) const {
  // Where lanes are partly filled, and for errors, the rings decide. A table
  // that a Load replaces lives until the readers that are inside have left, so
  // the result outlasts the lock.
  const DenseRows* const shown = shown_rows_.load();
  if (shown != nullptr && AllInRange(slots, shown->live_below())) {
    return shown;
  }
  absl::ReaderMutexLock lock(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive(caller, slots));
  return DenseOf(rows_);
}

absl::Status DenseStorageImpl::ReadRows(absl::Span<const Slot> slots,
                                        const ReadRequest& request) const {
  const auto n = static_cast<int64_t>(slots.size());
  // All at once before it is known how wide a row is.
  const size_t step = read_rows_.load(std::memory_order_relaxed);
  const auto next = [&] { return slots.first(std::min(step, slots.size())); };
  EpochWindows::Reading reading = windows_.Enter(next());
  RILL_ASSIGN_OR_RETURN(const DenseRows* rows, FindLive(request.caller, slots));
  ReadPlaces& places = ReadPlaces::OfThread();
  if (rows == nullptr) {
    places.FindNone();
    places.Finish(request);
    return absl::OkStatus();
  }
  const ReadPlaces::Drop drop(&places);
  RILL_RETURN_IF_ERROR(
      places.Find({rows->spec, rows->tree, rows->device}, n, request));
  absl::Span<const Slot> batch = slots;  // Until the disk has heard of it.
  // A writer waits for this reader until it leaves, so no stay copies more than
  // `step` rows. The table may be another one after each stay. Its spec is the
  // same, so the places still fit.
  while (slots.size() > step) {
    RILL_RETURN_IF_ERROR(rows->Read(next(), batch, places.leaves));
    batch = {};
    for (LeafBatch& place : places.leaves) {
      place.data += static_cast<int64_t>(step) * place.stride;
    }
    slots.remove_prefix(step);
    // A writer that waits goes first.
    reading.Leave();
    reading = windows_.Enter(next());
    RILL_ASSIGN_OR_RETURN(rows, FindLive(request.caller, next()));
  }
  RILL_RETURN_IF_ERROR(rows->Read(slots, batch, places.leaves));
  places.Finish(request);
  return absl::OkStatus();
}

absl::StatusOr<bool> DenseStorageImpl::ShowRows(absl::Span<const Slot> slots,
                                                size_t leaf,
                                                ShowRowFn fn) const {
  // A writer waits as long as so many calls take.
  constexpr size_t kShownRows = 8;
  size_t first = 0;
  // Once even without slots: the result says whether the leaf can be shown.
  do {
    const absl::Span<const Slot> next =
        slots.subspan(first, std::min(kShownRows, slots.size() - first));
    const EpochWindows::Reading reading = windows_.Enter(next);
    // All that are left at first, so that none that is fetched ahead lies
    // outside the table.
    RILL_ASSIGN_OR_RETURN(
        const DenseRows* rows,
        FindLive("Storage::ShowRows", first == 0 ? slots : next));
    // A row in a file may fault while fn reads it, with a writer waiting.
    // ReadInto announces the rows to the kernel first.
    if (rows == nullptr || rows->lie_in_files() ||
        !rows->table()->Shows(leaf)) {
      return false;
    }
    RILL_RETURN_IF_ERROR(rows->table()->Show(
        slots.subspan(first), next.size(), leaf,
        [&](size_t i, const std::byte* row) { return fn(first + i, row); }));
    first += next.size();
  } while (first < slots.size());
  return true;
}

absl::Status DenseStorageImpl::Enqueue(absl::Span<const Slot> slots,
                                       const Stream& stream,
                                       const EnqueuedPlaces& to) const {
  const bool has_tables =
      std::any_of(to.lists.begin(), to.lists.end(),
                  [](const ListRead& list) { return list.table != nullptr; });
  // The copy of one list is the backend's.
  if (device().is_cpu() ||
      (to.lists.size() == 1 && !has_tables && to.graph == nullptr)) {
    return Storage::Enqueue(slots, stream, to);
  }
  if (to.uploads != nullptr) {
    return EnqueueLists(to.lists, to.uploads, *to.launch, to.graph);
  }
  const ReadRequest request = {.caller = to.out != nullptr
                                             ? "Storage::EnqueueRead"
                                             : "Storage::EnqueueReadInto",
                               .out = to.out,
                               .leaves = to.leaves,
                               .places = to.places};
  // No window is ever open on a device: its stream orders the copies. The epoch
  // keeps a Load from freeing the table.
  const EpochWindows::Reading reading = windows_.Enter(slots);
  RILL_ASSIGN_OR_RETURN(const DenseRows* rows, FindLive(request.caller, slots));
  ReadPlaces& places = ReadPlaces::OfThread();
  const ReadPlaces::Drop drop(&places);
  if (rows == nullptr) {
    places.FindNone();
    if (to.end != nullptr) {
      RILL_ASSIGN_OR_RETURN(*to.end, Event::Record(stream));
    }
  } else {
    RILL_RETURN_IF_ERROR(places.Find({rows->spec, rows->tree, rows->device},
                                     static_cast<int64_t>(slots.size()),
                                     request));
    RILL_ASSIGN_OR_RETURN(
        Event end, rows->table()->EnqueueRead(slots, places.leaves, stream));
    if (to.end != nullptr) *to.end = std::move(end);
  }
  places.Finish(request);
  return absl::OkStatus();
}

absl::Status DenseStorageImpl::EnqueueLists(absl::Span<const ListRead> lists,
                                            StreamUploads* uploads,
                                            LaunchFn launch,
                                            ReadGraph* graph) const {
  // As Enqueue says.
  const EpochWindows::Reading reading = windows_.Enter({});
  const DenseRows* rows = nullptr;
  ReadPlaces& places = ReadPlaces::OfThread();
  const ReadPlaces::Drop drop(&places);
  std::vector<LeafBatch> leaves;
  std::vector<RowTable::ListRead> reads;
  for (const ListRead& list : lists) {
    const ReadRequest request = {.caller = "Storage::EnqueueReadsInto",
                                 .leaves = list.leaves,
                                 .places = list.places};
    RILL_ASSIGN_OR_RETURN(rows, FindLive(request.caller, list.slots));
    if (rows == nullptr) return absl::OkStatus();
    if (list.table != nullptr) {
      list.table->count = static_cast<int64_t>(list.slots.size());
      RILL_ASSIGN_OR_RETURN(
          list.table->table,
          rows->table()->ViewLeaf(list.leaves[0], 0, 1, capacity()));
      reads.push_back({.slots = list.slots, .shown_rows = &list.table->rows});
      continue;
    }
    RILL_RETURN_IF_ERROR(places.Find({rows->spec, rows->tree, rows->device},
                                     static_cast<int64_t>(list.slots.size()),
                                     request));
    leaves.insert(leaves.end(), places.leaves.begin(), places.leaves.end());
    reads.push_back({.slots = list.slots, .num_leaves = places.leaves.size()});
  }
  return rows == nullptr ? launch()
                         : rows->table()->EnqueueReads(reads, leaves, uploads,
                                                       launch, graph);
}

absl::StatusOr<SlotLease> DenseStorageImpl::Lease(SlotRange range) const {
  absl::MutexLock lock(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::Lease", range));
  // Checked again after each wait, which gives the lock up.
  // Rows that are being written are no rows to lend.
  WritesInFlight::Write wanted = {.ranges = absl::MakeConstSpan(&range, 1)};
  while (!writes_.empty() && writes_.Meets(&wanted)) {
    write_ended_.Wait(&state_mutex_);
    RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::Lease", range));
  }
  TensorDict view({0});
  if (rows_ != nullptr) {
    RILL_ASSIGN_OR_RETURN(view, DenseOf(rows_)->table()->View(range));
  }
  return SlotLease(std::move(view), leases_.Add(range));
}

absl::Status CheckOptions(absl::string_view caller,
                          const DenseStorage::Options& options) {
  RILL_RETURN_IF_ERROR(
      CheckRingOptions(caller, options.capacity, options.lanes));
  const auto refuse = [&](absl::string_view option, const auto& got,
                          absl::string_view want) {
    return InvalidArgument(caller, ": Options::", option, ": got ", got,
                           ", want ", want);
  };
  const bool is_cpu = options.device.is_cpu();
  if (options.dedup_next && KindOf(options) == MemoryKind::kDevice) {
    return refuse("dedup_next",
                  absl::StrCat("true on ", options.device.ToString()),
                  "false where rows lie in a device's memory, or rows on the "
                  "cpu or pinned");
  }
  if (options.memory_kind == MemoryKind::kMappedFile ||
      (is_cpu && options.memory_kind != MemoryKind::kPageable)) {
    return refuse("memory_kind",
                  absl::StrCat(MemoryKindName(options.memory_kind), " of ",
                               options.device.ToString()),
                  is_cpu ? "pageable; name a device for pinned memory"
                         : "device or pinned");
  }
  return absl::OkStatus();
}

}  // namespace storage_internal

absl::StatusOr<std::unique_ptr<Storage>> DenseStorage::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(
      storage_internal::CheckOptions("DenseStorage::Create", options));
  if (!options.device.is_cpu()) {
    RILL_RETURN_IF_ERROR(GetBackend(options.device).status())
        << "DenseStorage::Create: Options::device";
  }
  auto storage = std::make_unique<storage_internal::DenseStorageImpl>(options);
  RILL_RETURN_IF_ERROR(storage->Init(options.spec));
  return storage;
}

}  // namespace rill
