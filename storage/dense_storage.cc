// SPDX-License-Identifier: Apache-2.0
// The reading side of DenseStorage, and what a spec decides: table, window
// sizes, and how readers find them.
//
// A read takes no lock where it can. Inside an epoch it loads the table and the
// slot below which all rows are live, copies a bounded number of bytes, and
// leaves. Writes are in dense_storage_write.cc, the order between both in
// sharing/epoch_windows.cc.
#include "rill/storage/dense_storage.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
          .asks_before_overwriting = !WritesAlone(options) && !in_files};
}

// The window that a reader waits for at most: so many rows within these bounds.
// Behind each window that is written past the caches a fence waits for the
// memory, and the wider rows are the longer a batch of them takes to read
// anyway.
constexpr int64_t kWindowRows = 128;
constexpr int64_t kMinWindowBytes = int64_t{64} << 10;
constexpr int64_t kMaxWindowBytes = int64_t{512} << 10;
// The bytes that a reader copies in one epoch, for which a writer waits.
constexpr int64_t kReadBytes = int64_t{64} << 10;
// More at a time where starting a copy costs. That is so on a device, where
// readers and writers do not wait. It is so too for rows from this width on,
// whose first lines nobody has fetched ahead.
constexpr int64_t kLongReadBytes = int64_t{1} << 20;
constexpr int64_t kWideRowBytes = int64_t{4} << 10;
// Windows that are announced together.
constexpr int64_t kAnnouncedWindows = 64;

// Leaves whose values events tell stay in their rows.
std::vector<NextPair> PairsOf(const TensorDictSpec& spec,
                              const EventLeaves& events) {
  std::vector<size_t> kept = events.ends;
  for (const std::optional<size_t>& leaf :
       {events.trajectory, events.priority, events.policy_version}) {
    if (leaf.has_value()) kept.push_back(*leaf);
  }
  return FindNextPairs(spec, kept);
}

}  // namespace

DenseStorageImpl::Rows::Rows(std::unique_ptr<RowTable> rows)
    : table(std::move(rows)),
      overwrites(
          table->layout().lanes(),
          ChunkShape::Of(table->layout().lanes(), table->layout().row_bytes())),
      tree(table->spec()) {
  const auto most = [](int64_t of, int64_t row_bytes) {
    return std::max<int64_t>(of / std::max<int64_t>(row_bytes, 1), 1);
  };
  const int64_t stored_row_bytes = table->layout().stored_row_bytes();
  // A window lasts as long as its bytes are stored, so leaves that dedup_next
  // does not store do not count. A read copies all leaves.
  window_rows = most(std::clamp(kWindowRows * stored_row_bytes, kMinWindowBytes,
                                kMaxWindowBytes),
                     stored_row_bytes);
  announced_rows = kAnnouncedWindows * window_rows;
  const int64_t row_bytes = table->layout().row_bytes();
  const bool is_long = !table->device().is_cpu() || row_bytes >= kWideRowBytes;
  read_rows = static_cast<size_t>(
      most(is_long ? kLongReadBytes : kReadBytes, row_bytes));
}

bool DenseStorageImpl::Rows::PassesCaches(int64_t count) const {
  // A copy past the caches moves two bytes for each byte of rows: it reads the
  // batch and stores the row. Through the caches it moves three, as each line
  // of the table is read before it is overwritten.
  //
  // x86 does not order such stores with later ones, so the row copy ends with a
  // store fence in the thread that made them. A mutex, a release store or the
  // commit record then publishes the rows like plain bytes. No fence is needed
  // before the copy: no store overtakes an older load, and such a load saw that
  // the last reader of the rows had left. A race detector takes these stores
  // for plain ones and does not report a fence that is missing.
  // Smaller tables may stay in a cache, and fewer bytes take less time than the
  // fence behind them.
  constexpr int64_t kTableBytes = int64_t{64} << 20;
  constexpr int64_t kWrittenBytes = int64_t{16} << 10;
  const RowLayout& layout = table->layout();
  return layout.size_bytes() >= kTableBytes &&
         count * layout.stored_row_bytes() >= kWrittenBytes;
}

DenseStorageImpl::DenseStorageImpl(const DenseStorage::Options& options,
                                   std::unique_ptr<RowsOnDisk> directory)
    : Storage(TraitsOf(options, /*in_files=*/directory != nullptr)),
      options_(options),
      directory_(std::move(directory)),
      writes_alone_(WritesAlone(options)),
      rings_(lanes()) {
  if (directory_ == nullptr) return;
  if (auto found = directory_->FoundRings(lanes())) rings_ = *std::move(found);
}

absl::Status DenseStorageImpl::MakeRowsFromOptions() {
  if (options_.spec.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto rows, MakeRows(options_.spec));
  absl::MutexLock lock(&state_mutex_);
  rows_ = std::move(rows);
  Publish();
  return absl::OkStatus();
}

void DenseStorageImpl::Publish() {
  if (rows_ == nullptr) return;
  // Only what changed is stored: all readers load these words, and each store
  // takes the cache line from them. The count comes before the table, so that a
  // reader of the new table finds it.
  //
  // Sequential consistency: WaitForReaders looks at the readers' counters after
  // these stores. A reader that it does not wait for entered later, and so
  // loads what is stored here.
  if (rows_->live_below.load(std::memory_order_relaxed) !=
      rings_.live_below()) {
    rows_->live_below.store(rings_.live_below());
  }
  if (shown_rows_.load(std::memory_order_relaxed) != rows_.get()) {
    read_rows_.store(rows_->read_rows, std::memory_order_relaxed);
    shown_rows_.store(rows_.get());
  }
}

absl::StatusOr<std::unique_ptr<DenseStorageImpl::Rows>>
DenseStorageImpl::MakeRows(const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(EventLeaves events,
                        EventLeaves::Find(spec, options_.event_keys));
  RILL_ASSIGN_OR_RETURN(
      RowLayout layout,
      // Columns begin on cache lines, in files on pages, since each file is
      // mapped by itself.
      RowLayout::Create(spec, lanes(), options_.layout, options_.order,
                        directory_ == nullptr ? 64 : AddressRange::PageBytes(),
                        options_.dedup_next ? PairsOf(spec, events)
                                            : std::vector<NextPair>()));
  std::unique_ptr<RowTable> table;
  if (directory_ == nullptr) {
    RILL_ASSIGN_OR_RETURN(
        table,
        RowTable::Create(std::move(layout), options_.device, KindOf(options_)));
  } else {
    RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> files,
                          directory_->MapRows(layout, lanes()));
    RILL_ASSIGN_OR_RETURN(
        table, RowTable::Create(std::move(layout), std::move(files)));
  }
  auto rows = std::make_unique<Rows>(std::move(table));
  rows->events = std::move(events);
  if (directory_ != nullptr) {
    rows->ahead.emplace(rows->table.get(), directory_->row_addresses());
  }
  return rows;
}

int64_t DenseStorageImpl::size() const {
  absl::ReaderMutexLock lock(&state_mutex_);
  return rings_.size();
}

std::vector<Cursor> DenseStorageImpl::cursors() const {
  absl::ReaderMutexLock lock(&state_mutex_);
  return rings_.cursors();
}

TensorDictSpec DenseStorageImpl::spec() const {
  absl::ReaderMutexLock lock(&state_mutex_);
  return rows_ == nullptr ? options_.spec : rows_->spec();
}

StorageUsage DenseStorageImpl::MemoryUsage() const {
  StorageUsage usage;
  // A system call, so it comes before the lock.
  if (directory_ != nullptr) usage.disk_free = directory_->FreeDiskBytes();
  absl::ReaderMutexLock lock(&state_mutex_);
  if (rows_ == nullptr) return usage;
  const RowLayout& layout = rows_->table->layout();
  const NextRows* const next = rows_->table->next();
  const int64_t bytes =
      layout.size_bytes() + (next == nullptr ? 0 : next->memory_bytes());
  usage.row = layout.row_bytes();
  usage.full = bytes;
  if (directory_ != nullptr) {
    usage.disk = directory_->DiskBytes();
  } else {
    usage.memory = bytes;
    if (!device().is_cpu()) usage.device = bytes;
  }
  if (next != nullptr) usage.saved = next->saved_bytes();
  return usage;
}

absl::StatusOr<const DenseStorageImpl::Rows*> DenseStorageImpl::FindLive(
    absl::string_view caller, absl::Span<const Slot> slots) const {
  // Where lanes are partly filled, and for errors, the rings decide. A table
  // that a Load replaces lives until the readers that are inside have left, so
  // the result outlasts the lock.
  const Rows* const shown = shown_rows_.load();
  if (shown != nullptr && AllInRange(slots, shown->live_below.load())) {
    return shown;
  }
  absl::ReaderMutexLock lock(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive(caller, slots));
  return rows_.get();
}

absl::Status DenseStorageImpl::ReadRows(absl::Span<const Slot> slots,
                                        const ReadRequest& request) const {
  const auto n = static_cast<int64_t>(slots.size());
  // All at once before it is known how wide a row is.
  const size_t step = read_rows_.load(std::memory_order_relaxed);
  const auto next = [&] { return slots.first(std::min(step, slots.size())); };
  EpochWindows::Reading reading = windows_.Enter(next());
  RILL_ASSIGN_OR_RETURN(const Rows* rows, FindLive(request.caller, slots));
  ReadPlaces& places = ReadPlaces::OfThread();
  if (rows == nullptr) {
    places.FindNone();
    places.Finish(request);
    return absl::OkStatus();
  }
  RILL_RETURN_IF_ERROR(places.Find(rows->source(), n, request));
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

absl::Status DenseStorageImpl::ReadKeys(absl::Span<const Slot> slots,
                                        LeafKeys keys, TensorDict* out) const {
  return ReadRows(slots, ReadRequest::Of(keys, out));
}

absl::Status DenseStorageImpl::ReadInto(
    absl::Span<const Slot> slots, absl::Span<const size_t> leaves,
    absl::Span<const BoundLeaf> places) const {
  return ReadRows(
      slots,
      {.caller = "Storage::ReadInto", .leaves = leaves, .places = places});
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
        const Rows* rows,
        FindLive("Storage::ShowRows", first == 0 ? slots : next));
    // A row in a file may fault while fn reads it, with a writer waiting.
    // ReadInto announces the rows to the kernel first.
    if (rows == nullptr || rows->ahead || !rows->table->Shows(leaf)) {
      return false;
    }
    RILL_RETURN_IF_ERROR(rows->table->Show(
        slots.subspan(first), next.size(), leaf,
        [&](size_t i, const std::byte* row) { return fn(first + i, row); }));
    first += next.size();
  } while (first < slots.size());
  return true;
}

absl::StatusOr<Event> DenseStorageImpl::EnqueueRead(
    absl::Span<const Slot> slots, const Stream& stream, TensorDict* out) const {
  if (device().is_cpu()) return Storage::EnqueueRead(slots, stream, out);
  RILL_RETURN_IF_ERROR(CheckStream(stream));
  const ReadRequest request = {.caller = "Storage::EnqueueRead", .out = out};
  RILL_RETURN_IF_ERROR(CheckOut(request.caller, out));
  // No window is ever open on a device: its stream orders the copies. The epoch
  // keeps a Load from freeing the table.
  const EpochWindows::Reading reading = windows_.Enter(slots);
  RILL_ASSIGN_OR_RETURN(const Rows* rows, FindLive(request.caller, slots));
  if (rows == nullptr) {
    *out = TensorDict({0});
    return Event::Record(stream);
  }
  ReadPlaces& places = ReadPlaces::OfThread();
  RILL_RETURN_IF_ERROR(
      places.Find(rows->source(), static_cast<int64_t>(slots.size()), request));
  RILL_ASSIGN_OR_RETURN(Event end,
                        rows->table->EnqueueRead(slots, places.leaves, stream));
  places.Finish(request);
  return end;
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
    RILL_ASSIGN_OR_RETURN(view, rows_->table->View(range));
  }
  return SlotLease(std::move(view), leases_.Add(range));
}

absl::Status CheckOptions(absl::string_view caller,
                          const DenseStorage::Options& options) {
  RILL_RETURN_IF_ERROR(
      CheckRingOptions(caller, options.capacity, options.lanes));
  const auto refuse = [&](absl::string_view option, const auto& got,
                          absl::string_view want) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": Options::", option, ": got ", got, ", want ", want));
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
  RILL_RETURN_IF_ERROR(storage->MakeRowsFromOptions());
  return storage;
}

}  // namespace rill
