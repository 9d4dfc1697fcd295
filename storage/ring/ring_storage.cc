// SPDX-License-Identifier: Apache-2.0
// All storages of rings share this: their facts, observers and loads. Writes
// are in ring_storage_write.cc.
#include "rill/storage/ring/ring_storage.h"

#include <algorithm>
#include <utility>

#include "absl/log/absl_log.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/status_macros.h"

namespace rill::storage_internal {

absl::Status RingStorage::Init(const TensorDictSpec& spec) {
  if (spec.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto rows, NewRows(spec));
  absl::MutexLock state(&state_mutex_);
  rows_ = std::move(rows);
  Publish();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RingRows>> RingStorage::NewRows(
    const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(EventLeaves events,
                        EventLeaves::Find(spec, traits().event_keys));
  return MakeRows(spec, std::move(events));
}

int64_t RingStorage::size() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rings_.size();
}

std::vector<Cursor> RingStorage::cursors() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rings_.cursors();
}

TensorDictSpec RingStorage::spec() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rows_ == nullptr ? TensorDictSpec() : rows_->spec;
}

// --- Observers ---------------------------------------------------------------

absl::Status RingStorage::BuildLiveEvent(const LaneRings& rings,
                                         const RingRows* rows,
                                         const ValuesRead& read,
                                         WriteScratch* scratch) const {
  scratch->event.Clear();
  rings.LiveRanges(&scratch->plan.written);
  ExpandRanges(scratch->plan.written, &scratch->slots);
  if (rows == nullptr) return absl::OkStatus();
  return scratch->event.FromStored(
      rows->events, read, rings.size(),
      [&](size_t leaf) { return rows->ReadToHost(scratch->slots, leaf); });
}

bool RingStorage::TellOne(WriteObserver* observer,
                          absl::FunctionRef<void(WriteObserver*)> tell) {
  const auto call = [&] {
    tell(observer);
    return absl::OkStatus();
  };
  const absl::Status told = CatchExceptions(call, "WriteObserver");
  if (told.ok()) return true;
  ABSL_LOG(ERROR) << "Storage: " << told.message()
                  << "; until it is attached anew it knows no row";
  const auto clear = [&] {
    observer->OnClear();
    return absl::OkStatus();
  };
  CatchExceptions(clear, "WriteObserver").IgnoreError();
  return false;
}

bool RingStorage::Attach(WriteObserver* observer,
                         const WriteScratch& scratch) const {
  const std::vector<Cursor> cursors = HeldRings().cursors();
  return TellOne(observer, [&](WriteObserver* each) {
    each->OnAttach(lanes(), cursors);
    if (scratch.plan.written.empty()) return;
    each->OnWrite(
        scratch.event.Event(/*is_append=*/true, {}, scratch.plan.written));
  });
}

void RingStorage::AttachAllAgain(WriteScratch* scratch) {
  last_save_.reset();  // Whatever rows a device has damaged.
  // Where the rows cannot be read, observers learn of the slots only.
  if (!BuildLiveEvent(HeldRings(), HeldRows().get(), values_read(), scratch)
           .ok()) {
    scratch->event.Clear();
  }
  deaf_.clear();
  for (WriteObserver* observer : observers_) {
    if (!Attach(observer, *scratch)) deaf_.push_back(observer);
  }
}

absl::Status RingStorage::AddObserver(WriteObserver* observer) {
  if (observer == nullptr) {
    return InvalidArgument(
        "Storage::AddObserver: observer: got null, want an observer");
  }
  absl::MutexLock alone(&alone_mutex_);
  if (std::find(observers_.begin(), observers_.end(), observer) !=
      observers_.end()) {
    return FailedPrecondition(
        "Storage::AddObserver: observer: got one that is there already, "
        "want another; remove it first");
  }
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  RILL_RETURN_IF_ERROR(BuildLiveEvent(HeldRings(), HeldRows().get(),
                                      observer->values_read(), &scratch));
  if (!Attach(observer, scratch)) {
    return Internal(
        "Storage::AddObserver: observer: got one that throws, as the log says");
  }
  observers_.push_back(observer);
  return absl::OkStatus();
}

void RingStorage::RemoveObserver(WriteObserver* observer) {
  absl::MutexLock alone(&alone_mutex_);
  std::erase(observers_, observer);
  std::erase(deaf_, observer);
}

// --- Other rows --------------------------------------------------------------

void RingStorage::Replace(const LaneRings& rings,
                          std::shared_ptr<RingRows> rows) {
  last_save_.reset();
  // Samplers forget the old rows before a reader can find others in their
  // slots.
  for (WriteObserver* observer : observers_) {
    TellOne(observer, [](WriteObserver* each) { each->OnClear(); });
  }
  absl::MutexLock state(&state_mutex_);
  leases_.EndAll();
  rows_.swap(rows);  // Which go behind the lock.
  rings_ = rings;
  Publish();
}

absl::Status RingStorage::Save(const std::string& directory) const {
  // Keeps writers out; readers go on.
  absl::MutexLock alone(&alone_mutex_);
  const RingRows* const rows = HeldRows().get();
  if (rows != nullptr && !rows->hears_all) last_save_.reset();
  const ChunkLinks links = {
      .overwrites = rows == nullptr ? nullptr : &rows->overwrites,
      .last = &last_save_};
  return SaveStoredRows(
      directory, HeldRings(), rows == nullptr ? TensorDictSpec() : rows->spec,
      [rows](absl::Span<const Slot> slots) { return rows->ReadToHost(slots); },
      &links, RaggedOf(HeldRings(), rows));
}

absl::Status RingStorage::Load(const std::string& directory,
                               const StorageLoadOptions& options) {
  absl::MutexLock alone(&alone_mutex_);
  RILL_ASSIGN_OR_RETURN(
      StoredRows stored,
      LoadStoredRows(
          directory, lanes(),
          HeldRows() == nullptr ? TensorDictSpec() : HeldRows()->spec, options,
          /*has_ragged=*/traits().ragged_leaves));
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  RILL_RETURN_IF_ERROR(Take(stored, &scratch));
  if (HeldRows() != nullptr) {
    last_save_ = ChunksOf(std::move(stored), HeldRows()->overwrites);
  }
  return absl::OkStatus();
}

absl::Status RingStorage::Take(const StoredRows& stored,
                               WriteScratch* scratch) {
  std::shared_ptr<RingRows> rows = HeldRows();
  // Rows that are live stay whole until all that can fail is over.
  const TensorDictSpec spec = rows == nullptr ? stored.spec : rows->spec;
  if (!spec.empty()) {
    RILL_ASSIGN_OR_RETURN(rows, LoadInto(stored, spec));
  }
  if (!observers_.empty()) {
    RILL_RETURN_IF_ERROR(
        BuildLiveEvent(stored.rings, rows.get(), values_read(), scratch));
  }
  Replace(stored.rings, std::move(rows));
  for (WriteObserver* observer : observers_) Attach(observer, *scratch);
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
