// SPDX-License-Identifier: Apache-2.0
// MemmapStorage::OpenReader: the rows of a directory that another process
// writes. The commit record says which rows are live. Rows are copied, and then
// the record is read again. Rows that were touched meanwhile are copied anew.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/storage/directory/commit_record.h"
#include "rill/storage/directory/directory_lock.h"
#include "rill/storage/directory/directory_reader.h"
#include "rill/storage/directory/storage_directory.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/read_ahead.h"
#include "rill/storage/rows/read_places.h"
#include "rill/storage/sharing/epoch_windows.h"

namespace rill {
namespace storage_internal {
namespace {

// Some tenths of a second.
constexpr int kMaxRounds = 3000;

// The first step of a lane that the appends in flight leave whole.
int64_t FirstWhole(const CommitView& view, const Lanes& lanes, int64_t lane) {
  const LaneMark& mark = view.state.marks[lane];
  return std::max(mark.first_live,
                  mark.written - lanes.capacity +
                      StepsInFlight(view.state.in_flight, lane));
}

// Which step a slot holds, -1 where none.
int64_t StepIn(const CommitView& view, const Lanes& lanes, Slot slot) {
  const LaneMark& mark = view.state.marks[lanes.LaneOf(slot)];
  const int64_t newest = mark.written - 1;
  const int64_t position = lanes.PositionOf(slot);
  if (newest < position) return -1;
  const int64_t step = newest - (newest - position) % lanes.capacity;
  return step < mark.first_live ? -1 : step;
}

// Memory for a copy of some rows, kept so that a thread's reads stop
// allocating.
struct Scratch {
  CommitView view;
  CommitView after;
  std::vector<size_t> pending;  // Places that have no whole row yet.
  std::vector<size_t> copied;
  std::vector<int64_t> steps;  // A place each.
  std::vector<LeafBatch> leaves;
};

class MemmapReader final : public RequestReader<RowReader> {
 public:
  static absl::StatusOr<std::unique_ptr<RowReader>> Make(
      std::unique_ptr<DirectoryReader> directory) {
    RILL_ASSIGN_OR_RETURN(RowLayout layout, LayoutOf(directory->description()));
    RILL_ASSIGN_OR_RETURN(
        auto table,
        RowTable::Create(std::move(layout), directory->rows().buffer()));
    return std::unique_ptr<RowReader>(
        new MemmapReader(std::move(directory), std::move(table)));
  }

  int64_t size() const override {
    const CommitView view = Seen();
    int64_t size = 0;
    for (int64_t lane = 0; lane < lanes().count; ++lane) {
      const int64_t written = view.state.marks[lane].written;
      size += std::max<int64_t>(
          written - std::max<int64_t>(FirstWhole(view, lanes(), lane), 0), 0);
    }
    return size;
  }
  std::vector<Cursor> cursors() const override {
    const CommitView view = Seen();
    std::vector<Cursor> cursors;
    for (const LaneMark& mark : view.state.marks) {
      cursors.push_back({mark.written});
    }
    return cursors;
  }
  TensorDictSpec spec() const override {
    return directory_->description().spec;
  }

  // Nobody tells a reader of writes, so it would not know when one ends.
  absl::StatusOr<SlotLease> Lease(SlotRange range) const override {
    RILL_RETURN_IF_ERROR(RingsOf(lanes(), Seen().state.marks)
                             .CheckLive("Storage::Lease", range));
    return FailedPrecondition("Storage::Lease: got a reader of \"",
                              directory_->path(), "\", want its owner, ",
                              OwnerOf(directory_->path()),
                              ", which knows when a lease ends; Read the rows");
  }

 private:
  MemmapReader(std::unique_ptr<DirectoryReader> directory,
               std::unique_ptr<RowTable> table)
      : RequestReader({.lanes = directory->description().lanes}),
        directory_(std::move(directory)),
        table_(std::move(table)),
        tree_(table_->spec()),
        ahead_(table_.get(), directory_->rows().range()) {}

  absl::Status ReadRows(absl::Span<const Slot> slots,
                        const ReadRequest& request) const override;

  // The record as it is now, or as it was last where the writer is too fast. No
  // row where the directory is another one now.
  CommitView Seen() const {
    absl::MutexLock lock(&mutex_);
    CommitView now;
    const bool is_gone = !directory_->CheckIsSame().ok();
    // Until a look has succeeded the lanes are reported as empty.
    if (is_gone || directory_->Look(&now).ok() || seen_.state.marks.empty()) {
      now.state.marks.resize(lanes().count);
      seen_ = std::move(now);
    }
    return seen_;
  }

  absl::Status CheckLive(absl::string_view caller, absl::Span<const Slot> slots,
                         const CommitView& view) const;
  // Copies the rows of `scratch->copied`.
  absl::Status Copy(absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> leaves, Scratch* scratch) const;
  // One turn: copies what is pending and whole, keeps what is not.
  absl::Status Turn(absl::string_view caller, absl::Span<const Slot> slots,
                    absl::Span<const LeafBatch> leaves, Scratch* scratch) const;

  const std::unique_ptr<DirectoryReader> directory_;
  const std::unique_ptr<RowTable> table_;
  const SpecTree tree_;
  const ReadAhead ahead_;
  mutable absl::Mutex mutex_;
  mutable CommitView seen_ ABSL_GUARDED_BY(mutex_);
};

absl::Status MemmapReader::CheckLive(absl::string_view caller,
                                     absl::Span<const Slot> slots,
                                     const CommitView& view) const {
  for (const Slot slot : slots) {
    if (slot >= 0 && slot < capacity() && StepIn(view, lanes(), slot) >= 0) {
      continue;
    }
    // The rings give the error, in the words of any storage.
    return RingsOf(lanes(), view.state.marks)
        .CheckLive(caller, absl::MakeConstSpan(&slot, 1));
  }
  return absl::OkStatus();
}

absl::Status MemmapReader::Copy(absl::Span<const Slot> slots,
                                absl::Span<const LeafBatch> leaves,
                                Scratch* scratch) const {
  const std::vector<size_t>& copied = scratch->copied;
  for (size_t i = 0; i < copied.size();) {
    const size_t first = copied[i];
    size_t count = 1;
    while (i + count < copied.size() && copied[i + count] == first + count) {
      ++count;
    }
    // Places that follow one another are one read.
    scratch->leaves.assign(leaves.begin(), leaves.end());
    for (LeafBatch& leaf : scratch->leaves) {
      leaf.data += static_cast<int64_t>(first) * leaf.stride;
    }
    const absl::Span<const Slot> run = slots.subspan(first, count);
    RILL_RETURN_IF_ERROR(ahead_.Read(run, run, scratch->leaves));
    i += count;
  }
  return absl::OkStatus();
}

absl::Status MemmapReader::Turn(absl::string_view caller,
                                absl::Span<const Slot> slots,
                                absl::Span<const LeafBatch> leaves,
                                Scratch* scratch) const {
  CommitView& view = scratch->view;
  // The record serves as a sequence lock over rows: look, copy, look again.
  RILL_RETURN_IF_ERROR(directory_->Look(&view));
  RILL_RETURN_IF_ERROR(CheckLive(caller, slots, view));
  // Any live row may be half written. The next turn looks again.
  if (view.is_in_place()) return absl::OkStatus();
  std::vector<size_t>& pending = scratch->pending;
  const auto is_whole = [&](size_t place, const CommitView& in) {
    return scratch->steps[place] >=
           FirstWhole(in, lanes(), lanes().LaneOf(slots[place]));
  };
  // A row of a step that an append in flight retires may be half overwritten;
  // it stays pending until the append is over.
  scratch->copied.clear();
  for (const size_t place : pending) {
    scratch->steps[place] = StepIn(view, lanes(), slots[place]);
    if (is_whole(place, view)) scratch->copied.push_back(place);
  }
  if (scratch->copied.empty()) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(Copy(slots, leaves, scratch));
  // No newer state: nothing that was copied has changed. This is the common
  // case, and costs one more look at two headers.
  const bool is_same = directory_->IsNewest(view.number);
  if (is_same && scratch->copied.size() == pending.size()) {
    pending.clear();
    return absl::OkStatus();
  }
  CommitView& after = scratch->after;
  RILL_RETURN_IF_ERROR(directory_->Look(&after));
  // Rows were written in place, cleared or loaded: no copy of this turn counts.
  if (after.generation != view.generation) return absl::OkStatus();
  // Only appends came between. They overwrite the oldest steps, so a row is
  // whole where its step is whole before the copy and after it.
  const auto is_done = [&](size_t place) {
    return is_whole(place, view) && is_whole(place, after);
  };
  pending.erase(std::remove_if(pending.begin(), pending.end(), is_done),
                pending.end());
  return absl::OkStatus();
}

absl::Status MemmapReader::ReadRows(absl::Span<const Slot> slots,
                                    const ReadRequest& request) const {
  RILL_RETURN_IF_ERROR(directory_->CheckIsSame());
  thread_local Scratch scratch;
  ReadPlaces& places = ReadPlaces::OfThread();
  RILL_RETURN_IF_ERROR(places.Find({table_->spec(), tree_, Device::Cpu()},
                                   static_cast<int64_t>(slots.size()),
                                   request));
  scratch.steps.resize(slots.size());
  scratch.pending.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) scratch.pending[i] = i;
  for (int round = 0; !scratch.pending.empty(); ++round) {
    if (round == kMaxRounds) {
      return Unavailable(
          request.caller, ": slot: got ", slots[scratch.pending[0]], " and ",
          scratch.pending.size() - 1, " others, which ",
          OwnerOf(directory_->path()),
          " is writing over, or was when it died, want rows that are whole; "
          "draw again");
    }
    RILL_RETURN_IF_ERROR(Turn(request.caller, slots, places.leaves, &scratch));
    if (!scratch.pending.empty()) EpochSync::Wait(round);
  }
  places.Finish(request);
  return absl::OkStatus();
}

}  // namespace
}  // namespace storage_internal

absl::StatusOr<std::unique_ptr<RowReader>> MemmapStorage::OpenReader(
    const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(auto reader,
                        storage_internal::DirectoryReader::Open(
                            "MemmapStorage::OpenReader", directory));
  return storage_internal::MemmapReader::Make(std::move(reader));
}

}  // namespace rill
