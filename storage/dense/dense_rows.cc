// SPDX-License-Identifier: Apache-2.0
// Copies to and from the table of a DenseStorage: their windows, the caches
// that they pass, and the directory's notices of them.
#include "rill/storage/dense/dense_rows.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "rill/base/sparse_file.h"
#include "rill/base/status_macros.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/storage_layout.h"

namespace rill::storage_internal {
namespace {

// The window that a reader waits for at most: so many rows within these bounds.
// Behind each window that is written past the caches a fence waits for the
// memory, and the wider rows are the longer a batch of them takes to read
// anyway.
constexpr int64_t kWindowRows = 128;
constexpr int64_t kMinWindowBytes = int64_t{64} << 10;
constexpr int64_t kMaxWindowBytes = int64_t{512} << 10;
// The bytes that a reader copies in one epoch, for which a writer waits.
constexpr int64_t kReadBytes = int64_t{64} << 10;
// More at a time where starting a copy costs: rows from this width on, whose
// first lines nobody has fetched ahead. On a device, where a copy of all rows
// takes no longer than a launch or two, all at a time.
constexpr int64_t kLongReadBytes = int64_t{1} << 20;
constexpr int64_t kWideRowBytes = int64_t{4} << 10;
// Windows that are announced together.
constexpr int64_t kAnnouncedWindows = 64;

// How far a leaf's steps, and its lanes, are apart in a batch.
struct BatchStrides {
  int64_t lane = 0;
  int64_t step = 0;
};

BatchStrides StridesOf(const Tensor& tensor, const BatchRows& extent) {
  const auto strides = tensor.strides_bytes();
  if (extent.batch_rank == 1) return {0, strides[0]};
  return {strides[0], strides[1]};
}

// One stride goes over all kept rows of all leaves.
bool IsFlat(absl::Span<const BatchLeaf> leaves, const BatchRows& extent) {
  if (extent.num_lanes == 1) return true;
  if (extent.steps == 1) return true;
  return std::all_of(leaves.begin(), leaves.end(), [&](const BatchLeaf& leaf) {
    const BatchStrides strides = StridesOf(*leaf.ready, extent);
    return strides.lane == strides.step * extent.steps;
  });
}

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

absl::StatusOr<std::unique_ptr<DenseRows>> DenseRows::Create(
    const TensorDictSpec& spec, EventLeaves events, const Lanes& lanes,
    const Form& form, const Shared& shared) {
  RowsOnDisk* const directory = shared.directory;
  RILL_ASSIGN_OR_RETURN(
      RowLayout layout,
      // Columns begin on cache lines, in files on pages, since each file is
      // mapped by itself.
      RowLayout::Create(
          spec, lanes, form.layout, form.order,
          directory == nullptr ? 64 : AddressRange::PageBytes(),
          form.dedup_next ? PairsOf(spec, events) : std::vector<NextPair>()));
  std::unique_ptr<RowTable> table;
  if (directory == nullptr) {
    RILL_ASSIGN_OR_RETURN(
        table,
        RowTable::Create(std::move(layout), form.device, form.memory_kind));
  } else {
    RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> files,
                          directory->MapRows(layout, lanes));
    RILL_ASSIGN_OR_RETURN(
        table, RowTable::Create(std::move(layout), std::move(files)));
  }
  return std::unique_ptr<DenseRows>(
      new DenseRows(std::move(table), std::move(events), shared));
}

DenseRows::DenseRows(std::unique_ptr<RowTable> table, EventLeaves event_leaves,
                     const Shared& shared)
    : RingRows(table->spec(), std::move(event_leaves), table->layout().lanes(),
               table->device(), table->lent()),
      table_(std::move(table)),
      shared_(shared) {
  if (shared.directory != nullptr) {
    ahead_.emplace(table_.get(), shared.directory->row_addresses());
    // Others may write into columns in files.
    hears_all = table_->layout().layout() == StorageLayout::kRows;
  }
  const auto most = [](int64_t of, int64_t row) {
    return std::max<int64_t>(of / std::max<int64_t>(row, 1), 1);
  };
  const int64_t stored_row_bytes = table_->layout().stored_row_bytes();
  // A window lasts as long as its bytes are stored, so leaves that dedup_next
  // does not store do not count. A read copies all leaves.
  window_rows_ = most(std::clamp(kWindowRows * stored_row_bytes,
                                 kMinWindowBytes, kMaxWindowBytes),
                      stored_row_bytes);
  announced_rows_ = kAnnouncedWindows * window_rows_;
  const int64_t read_bytes =
      row_bytes >= kWideRowBytes ? kLongReadBytes : kReadBytes;
  read_rows_ = device.is_cpu()
                   ? static_cast<size_t>(most(read_bytes, row_bytes))
                   : std::numeric_limits<size_t>::max();
}

DenseRows::Bytes DenseRows::CountBytes() const {
  Bytes bytes = {.all = table_->layout().size_bytes()};
  if (const NextRows* const next = table_->next()) {
    bytes.all += next->memory_bytes();
    bytes.saved = next->saved_bytes();
  }
  return bytes;
}

void DenseRows::Forget() {
  if (NextRows* const next = table_->next()) next->Clear();
}

bool DenseRows::PassesCaches(int64_t count) const {
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
  const RowLayout& layout = table_->layout();
  return layout.size_bytes() >= kTableBytes &&
         count * layout.stored_row_bytes() >= kWrittenBytes;
}

// --- Appends -----------------------------------------------------------------

absl::Status DenseRows::StageAppend(const LaneSteps& append,
                                    const BatchRows& kept,
                                    WriteScratch* scratch) {
  if (NextRows* const next = table_->next()) {
    RILL_RETURN_IF_ERROR(next->PlanAppend(
        scratch->slots, kept.num_lanes, kept.steps,
        [&](size_t leaf) -> NextRows::Steps {
          const Tensor& tensor = *scratch->leaves.Find(leaf)->ready;
          const BatchStrides strides = StridesOf(tensor, kept);
          return {tensor.raw_data(), strides.lane, strides.step};
        }));
  }
  if (!device.is_cpu()) {
    return table_->PrepareWrite(kept.num_lanes * kept.steps,
                                scratch->leaves.leaves());
  }
  if (shared_.directory != nullptr) {
    RILL_RETURN_IF_ERROR(shared_.directory->Reserve(scratch->plan.written));
    return shared_.directory->Announce(append);
  }
  return absl::OkStatus();
}

absl::Status DenseRows::CopyAppend(const BatchRows& kept,
                                   absl::Span<WriteObserver* const> observers,
                                   WriteScratch* scratch) {
  const absl::Span<const BatchLeaf> leaves = scratch->leaves.leaves();
  if (!device.is_cpu()) {
    return table_->EnqueueWrite(scratch->slots, leaves, kept.batch_rank);
  }
  std::vector<LeafBatch>& places = scratch->places;
  const bool is_flat = IsFlat(leaves, kept);
  // Where one stride does not reach all rows, one copy a lane; scratch->slots
  // has the lanes in this order.
  const int64_t pieces = is_flat ? 1 : kept.num_lanes;
  const int64_t rows_each = kept.num_lanes * kept.steps / pieces;
  const bool past_caches = PassesCaches(pieces * rows_each);
  RunCutter runs(scratch->plan.written);
  for (int64_t lane = 0; lane < pieces; ++lane) {
    places.clear();
    for (const BatchLeaf& leaf : leaves) {
      if (leaf.ready->num_elements() == 0) continue;  // And no address.
      const BatchStrides strides = StridesOf(*leaf.ready, kept);
      const bool goes_by_lane = is_flat && kept.steps == 1;
      places.push_back({leaf.leaf, leaf.ready->raw_data() + lane * strides.lane,
                        goes_by_lane ? strides.lane : strides.step,
                        past_caches});
    }
    RILL_RETURN_IF_ERROR(
        WriteInWindows(absl::MakeConstSpan(scratch->slots)
                           .subspan(lane * rows_each, rows_each),
                       &runs, observers, scratch));
  }
  return absl::OkStatus();
}

// --- In place ----------------------------------------------------------------

absl::Status DenseRows::StageOverwrite(absl::Span<const Slot> slots,
                                       WriteScratch* scratch) {
  if (NextRows* const next = table_->next()) {
    // Cells are reserved for each row once.
    std::vector<Slot>& once = scratch->slots;
    once.assign(slots.begin(), slots.end());
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    RILL_RETURN_IF_ERROR(next->PlanOverwrite(once, [&](size_t leaf) {
      return scratch->leaves.Find(leaf) != nullptr;
    }));
  }
  if (!device.is_cpu()) {
    return table_->PrepareWrite(static_cast<int64_t>(slots.size()),
                                scratch->leaves.leaves());
  }
  // Space was reserved when the rows were appended.
  if (shared_.directory != nullptr) shared_.directory->BeginInPlace();
  return absl::OkStatus();
}

absl::Status DenseRows::CopyOverwrite(absl::Span<const Slot> slots,
                                      WriteScratch* scratch) {
  if (!device.is_cpu()) {
    return table_->EnqueueWrite(slots, scratch->leaves.leaves(),
                                /*batch_rank=*/1);
  }
  if (ahead_) ahead_->BeforeRows(slots);
  const bool past_caches = PassesCaches(static_cast<int64_t>(slots.size()));
  scratch->leaves.PlaceRows(/*first=*/0, past_caches, &scratch->places);
  return WriteInWindows(slots, /*runs=*/nullptr, /*observers=*/{}, scratch);
}

void DenseRows::Commit(const WritesInFlight::Write& write) {
  if (shared_.directory == nullptr) return;
  if (write.append.steps > 0) {
    shared_.directory->Commit(write.append);
  } else {
    shared_.directory->EndInPlace();
  }
}

absl::StatusOr<TensorDict> DenseRows::ReadToHost(
    absl::Span<const Slot> slots) const {
  const auto n = static_cast<int64_t>(slots.size());
  if (device.is_cpu()) {
    std::vector<LeafBatch> places;
    RILL_ASSIGN_OR_RETURN(TensorDict rows, MakeHostRows(spec, n, &places));
    RILL_RETURN_IF_ERROR(table_->Read(slots, places));
    return rows;
  }
  TensorDict rows({n});
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, ReadToHost(slots, i));
    RILL_RETURN_IF_ERROR(rows.Set(spec.leaves()[i].key, std::move(leaf)));
  }
  return rows;
}

// --- Windows -----------------------------------------------------------------

absl::Status DenseRows::WriteInWindows(
    absl::Span<const Slot> slots, RunCutter* runs,
    absl::Span<WriteObserver* const> observers, WriteScratch* scratch) {
  RowTable& table = *table_;
  std::vector<LeafBatch>& places = scratch->places;
  std::vector<SlotRange>& announced = scratch->announced;
  const bool has_next = table.next() != nullptr;
  // Each range is announced with the slots before it.
  const size_t max_ranges =
      has_next ? EpochWindows::kMaxRanges / kRangesWithPredecessors
               : EpochWindows::kMaxRanges;
  // The windows of an announcement open in ascending order. Slots in any order,
  // and slots that are announced with their predecessors, are therefore
  // announced one window at a time.
  // Else what is announced is one window.
  const bool is_ascending = runs != nullptr && !has_next;
  const int64_t most = is_ascending ? announced_rows_ : window_rows_;
  while (!slots.empty()) {
    const int64_t cut =
        std::min<int64_t>(most, static_cast<int64_t>(slots.size()));
    size_t left = runs != nullptr
                      ? runs->Cut(cut, max_ranges, &announced)
                      : CutWindow(slots, cut, max_ranges, &announced);
    if (has_next) AddPredecessors(table.layout().lanes(), &announced);
    if (ahead_) ahead_->BeforeRuns(announced);
    const size_t all = left;
    int64_t may_change =
        is_ascending ? AskObservers(observers, announced, 0) : cut;
    const auto next = [&] {
      const int64_t window = std::min(window_rows_, may_change);
      return is_ascending ? std::min(left, static_cast<size_t>(window)) : left;
    };
    size_t count = next();
    auto open = is_ascending
                    ? shared_.windows->Open(announced, slots[count - 1] + 1)
                    : shared_.windows->Open(announced);
    for (;;) {
      RILL_RETURN_IF_ERROR(table.Write(slots.first(count), places));
      for (LeafBatch& place : places) {
        place.data += static_cast<int64_t>(count) * place.stride;
      }
      slots.remove_prefix(count);
      left -= count;
      if (left == 0) break;
      may_change -= static_cast<int64_t>(count);
      if (may_change <= 0) {
        // While observers wait no window is open. The gather that they wait for
        // could else wait for this window.
        open.Close();
        may_change = AskObservers(observers, announced, all - left);
      }
      count = next();
      open.Next(slots[count - 1] + 1);
    }
  }
  return absl::OkStatus();
}

int64_t DenseRows::AskObservers(absl::Span<WriteObserver* const> observers,
                                absl::Span<const SlotRange> ranges,
                                size_t done) const {
  int64_t rows = std::numeric_limits<int64_t>::max();
  if (!shared_.asks_before_overwriting) return rows;
  for (WriteObserver* observer : observers) {
    rows = std::min(
        rows, observer->BeforeOverwrite(ranges, static_cast<int64_t>(done)));
  }
  return rows;
}

}  // namespace rill::storage_internal
