// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/serialized/serialized_storage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/storage/rows/read_places.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"

namespace rill::storage_internal {
namespace {

// A lock that its holder may end early.
class ReaderLock {
 public:
  explicit ReaderLock(absl::Mutex* mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderLock() { Release(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

  void Release() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->ReaderUnlock();
  }

 private:
  absl::Mutex* mutex_;
};

}  // namespace

SerializedStorage::Rows::Rows(const TensorDictSpec& rows_spec)
    : spec(rows_spec), tree(spec) {
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    row_bytes += leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
  }
}

absl::Status SerializedStorage::Init(const TensorDictSpec& spec) {
  if (spec.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(auto rows, MakeRows(spec));
  absl::MutexLock state(&state_mutex_);
  rows_ = std::move(rows);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SerializedStorage::Rows>>
SerializedStorage::MakeRows(const TensorDictSpec& spec) const {
  RILL_ASSIGN_OR_RETURN(EventLeaves events,
                        EventLeaves::Find(spec, event_keys_));
  RILL_ASSIGN_OR_RETURN(auto store, MakeStore(spec));
  auto rows = std::make_shared<Rows>(spec);
  rows->events = std::move(events);
  rows->store = std::move(store);
  return rows;
}

int64_t SerializedStorage::size() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rings_.size();
}

std::vector<Cursor> SerializedStorage::cursors() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rings_.cursors();
}

TensorDictSpec SerializedStorage::spec() const {
  absl::ReaderMutexLock state(&state_mutex_);
  return rows_ == nullptr ? TensorDictSpec() : rows_->spec;
}

StorageUsage SerializedStorage::MemoryUsage() const {
  absl::ReaderMutexLock state(&state_mutex_);
  if (rows_ == nullptr) return {};
  const RowStore::Usage usage = rows_->store->GetUsage();
  return {.row = rows_->row_bytes,
          .memory = usage.memory,
          .full = usage.full,
          .saved = usage.saved};
}

absl::Status SerializedStorage::WithLive(
    absl::string_view caller, absl::Span<const Slot> slots,
    absl::FunctionRef<absl::Status(const std::shared_ptr<Rows>&)> fn) const {
  absl::ReaderMutexLock state(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive(caller, slots));
  return fn(rows_);
}

// --- Reading -----------------------------------------------------------------

absl::Status SerializedStorage::ReadRows(absl::Span<const Slot> slots,
                                         const ReadRequest& request) const {
  // Whatever a Load does, these rows stay until they have been read.
  std::shared_ptr<Rows> rows;
  ReaderLock lock(&state_mutex_);
  // Rows and rings under one lock: slots are checked against the rings of the
  // very rows that are read.
  const auto find = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS -> absl::Status {
    rows = rows_;
    return rings_.CheckLive(request.caller, slots);
  };
  RILL_RETURN_IF_ERROR(find());
  ReadPlaces& places = ReadPlaces::OfThread();
  if (rows == nullptr) {
    places.FindNone();
  } else {
    RILL_RETURN_IF_ERROR(places.Find({rows->spec, rows->tree, Device::Cpu()},
                                     static_cast<int64_t>(slots.size()),
                                     request));
    RILL_RETURN_IF_ERROR(
        rows->store->Read(slots, places.leaves, [&lock] { lock.Release(); }));
  }
  places.Finish(request);
  return absl::OkStatus();
}

absl::Status SerializedStorage::ReadKeys(absl::Span<const Slot> slots,
                                         LeafKeys keys, TensorDict* out) const {
  return ReadRows(slots, ReadRequest::Of(keys, out));
}

absl::Status SerializedStorage::ReadInto(
    absl::Span<const Slot> slots, absl::Span<const size_t> leaves,
    absl::Span<const BoundLeaf> places) const {
  if (traits().ragged_leaves) {
    return absl::FailedPreconditionError(
        "Storage::ReadInto: rows: got ones with ragged leaves, want rows of "
        "one shape; Read them");
  }
  return ReadRows(
      slots,
      {.caller = "Storage::ReadInto", .leaves = leaves, .places = places});
}

absl::StatusOr<SlotLease> SerializedStorage::Lease(SlotRange range) const {
  absl::ReaderMutexLock state(&state_mutex_);
  RILL_RETURN_IF_ERROR(rings_.CheckLive("Storage::Lease", range));
  return absl::FailedPreconditionError(
      absl::StrCat("Storage::Lease: rows: got ", kind_of_rows(),
                   " ones, want rows that lie in place; Read them, or keep "
                   "them in a DenseStorage"));
}

// --- Observers ---------------------------------------------------------------

absl::Status SerializedStorage::BuildEvent(absl::Span<const Slot> slots,
                                           const BatchLeaves* written,
                                           WriteScratch* scratch) const {
  scratch->event.Clear();
  const Rows* const rows = HeldRows().get();
  if (rows == nullptr) return absl::OkStatus();
  const auto n = static_cast<int64_t>(slots.size());
  return scratch->event.FromStored(
      rows->events, n,
      [&](size_t leaf) -> absl::StatusOr<Tensor> {
        const LeafSpec& spec = rows->spec.leaves()[leaf].spec;
        RILL_ASSIGN_OR_RETURN(const Shape shape, spec.FullShape({n}));
        RILL_ASSIGN_OR_RETURN(Tensor values, Tensor::Empty(spec.dtype, shape));
        const LeafBatch place = {leaf, values.raw_data(),
                                 DTypeSize(spec.dtype)};
        RILL_RETURN_IF_ERROR(rows->store->Read(slots, {place}, [] {}));
        return values;
      },
      written);
}

absl::Status SerializedStorage::BuildLiveEvent(WriteScratch* scratch) const {
  HeldRings().LiveRanges(&scratch->plan.written);
  ExpandRanges(scratch->plan.written, &scratch->slots);
  return BuildEvent(scratch->slots, /*written=*/nullptr, scratch);
}

void SerializedStorage::Attach(WriteObserver* observer,
                               const WriteScratch& scratch) const {
  observer->OnAttach(lanes(), HeldRings().cursors());
  if (scratch.plan.written.empty()) return;
  observer->OnWrite(
      scratch.event.Event(/*is_append=*/true, {}, scratch.plan.written));
}

void SerializedStorage::AttachAllAgain(WriteScratch* scratch) const {
  // Where there is no memory for the values, observers learn of the slots only.
  if (!BuildLiveEvent(scratch).ok()) scratch->event.Clear();
  for (WriteObserver* observer : observers_) Attach(observer, *scratch);
}

absl::Status SerializedStorage::AddObserver(WriteObserver* observer) {
  if (observer == nullptr) {
    return absl::InvalidArgumentError(
        "Storage::AddObserver: observer: got null, want an observer");
  }
  absl::MutexLock write_lock(&write_mutex_);
  if (std::find(observers_.begin(), observers_.end(), observer) !=
      observers_.end()) {
    return absl::FailedPreconditionError(
        "Storage::AddObserver: observer: got one that is there already, "
        "want another; remove it first");
  }
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  RILL_RETURN_IF_ERROR(BuildLiveEvent(&scratch));
  observers_.push_back(observer);
  Attach(observer, scratch);
  return absl::OkStatus();
}

void SerializedStorage::RemoveObserver(WriteObserver* observer) {
  absl::MutexLock write_lock(&write_mutex_);
  observers_.erase(std::remove(observers_.begin(), observers_.end(), observer),
                   observers_.end());
}

// --- Files -------------------------------------------------------------------

absl::Status SerializedStorage::Save(const std::string& directory) const {
  absl::MutexLock write_lock(&write_mutex_);
  const Rows* const rows = HeldRows().get();
  return SaveRows(directory, HeldRings(), rows);
}

absl::Status SerializedStorage::SaveRowsWith(const std::string& directory,
                                             const LaneRings& rings,
                                             const Rows* rows,
                                             const RaggedFn& ragged) const {
  return SaveStoredRows(
      directory, rings, rows == nullptr ? TensorDictSpec() : rows->spec,
      [rows](absl::Span<const Slot> slots) -> absl::StatusOr<TensorDict> {
        std::vector<LeafBatch> places;
        RILL_ASSIGN_OR_RETURN(
            TensorDict read,
            MakeHostRows(rows->spec, static_cast<int64_t>(slots.size()),
                         &places));
        RILL_RETURN_IF_ERROR(rows->store->Read(slots, places, [] {}));
        return read;
      },
      ragged);
}

absl::Status SerializedStorage::Load(const std::string& directory,
                                     const StorageLoadOptions& options) {
  absl::MutexLock write_lock(&write_mutex_);
  std::shared_ptr<Rows> rows = HeldRows();
  RILL_ASSIGN_OR_RETURN(
      const StoredRows stored,
      LoadRows(directory, rows == nullptr ? TensorDictSpec() : rows->spec,
               options));
  LaneRings rings = stored.rings;
  // Rows that are live stay whole until all that can fail is over.
  const TensorDictSpec spec = rows == nullptr ? stored.spec : rows->spec;
  if (!spec.empty()) {
    const std::shared_ptr<Rows> old = rows;
    RILL_ASSIGN_OR_RETURN(rows, MakeRows(spec));
    RILL_ASSIGN_OR_RETURN(const PrepareRunFn prepare,
                          PrepareLoad(stored, old.get(), rows.get()));
    RILL_RETURN_IF_ERROR(FillWith(stored, prepare, rows.get()));
  }
  // Nothing fails from here on.
  for (WriteObserver* observer : observers_) observer->OnClear();
  {
    absl::MutexLock state(&state_mutex_);
    rows_.swap(rows);
    rings_ = std::move(rings);
  }
  if (observers_.empty()) return absl::OkStatus();
  WriteScratch scratch;  // As large as all rows, so not the thread's.
  AttachAllAgain(&scratch);
  return absl::OkStatus();
}

absl::StatusOr<StoredRows> SerializedStorage::LoadRows(
    const std::string& directory, const TensorDictSpec& spec,
    const StorageLoadOptions& options) const {
  return LoadStoredRows(directory, lanes(), spec, options);
}

absl::Status SerializedStorage::FillWith(const StoredRows& stored,
                                         const PrepareRunFn& prepare,
                                         Rows* rows) const {
  BatchLeaves leaves;
  for (const StoredRows::Part& part : stored.parts) {
    if (part.rows.batch_shape()[0] == 0) continue;
    RILL_RETURN_IF_ERROR(leaves.Bind("Storage::Load", rows->spec, rows->tree,
                                     part.rows, /*allow_part=*/false));
    RILL_RETURN_IF_ERROR(leaves.PrepareOnHost(/*batch_rank=*/1));
    const auto stage = [&](const StoredRun& run) -> absl::Status {
      if (prepare != nullptr) {
        RILL_RETURN_IF_ERROR(prepare(run));
      }
      return StageStored(run, leaves, rows);
    };
    RILL_RETURN_IF_ERROR(ForEachRun(stored, part, stage));
    // A part at a time, so that no more than a part is staged.
    rows->store->Commit();
  }
  return absl::OkStatus();
}

absl::Status SerializedStorage::StageStored(const StoredRun& run,
                                            const BatchLeaves& leaves,
                                            Rows* rows) const {
  std::vector<LeafBatch> places;
  int64_t next = 0;
  for (int64_t step = run.first_step; step < run.end_step; step += next) {
    const int64_t first = step - run.first_step;
    places.clear();
    for (const BatchLeaf& leaf : leaves.leaves()) {
      if (leaf.ready->num_elements() == 0) continue;
      const int64_t stride = leaf.ready->strides_bytes()[0];
      places.push_back({leaf.leaf,
                        leaf.ready->raw_data() + (run.row + first) * stride,
                        stride});
    }
    const int64_t position = step % lanes().capacity;
    // A run of a save may go around the end of the ring; a LaneRun does not.
    next = std::min(run.end_step - step, lanes().capacity - position);
    RILL_RETURN_IF_ERROR(rows->store->StageAppend({.lane = run.lane,
                                                   .position = position,
                                                   .steps = next,
                                                   .first_row = first},
                                                  places));
  }
  return absl::OkStatus();
}

}  // namespace rill::storage_internal
