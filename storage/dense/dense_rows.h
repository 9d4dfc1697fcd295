// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_DENSE_DENSE_ROWS_H_
#define RILL_STORAGE_DENSE_DENSE_ROWS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/on_disk/rows_on_disk.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/rows/read_ahead.h"
#include "rill/storage/rows/row_table.h"
#include "rill/storage/sharing/epoch_windows.h"
#include "rill/storage/sharing/writes_in_flight.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// Rows in a table: at their slots' places, in memory or in files.
//
// Writes copy a few rows at a time, a window, and keep readers from those
// (EpochWindows). A device's copies are serialised on its stream instead.
class DenseRows final : public RingRows {
 public:
  // These parts outlive the rows of one spec.
  struct Shared {
    EpochWindows* windows = nullptr;
    RowsOnDisk* directory = nullptr;  // Null: in memory.
    bool asks_before_overwriting = false;
  };

  // How rows lie; see DenseStorage::Options.
  struct Form {
    StorageLayout layout = StorageLayout::kAuto;
    StorageOrder order = StorageOrder::kLaneMajor;
    Device device = Device::Cpu();
    MemoryKind memory_kind = MemoryKind::kPageable;
    bool dedup_next = false;
  };

  struct Bytes {
    int64_t all = 0;    // Of the table, and of what dedup_next adds.
    int64_t saved = 0;  // By dedup_next.
  };

  static absl::StatusOr<std::unique_ptr<DenseRows>> Create(
      const TensorDictSpec& spec, EventLeaves events, const Lanes& lanes,
      const Form& form, const Shared& shared);

  // `batch` as in ReadAhead::Read.
  absl::Status Read(absl::Span<const Slot> slots, absl::Span<const Slot> batch,
                    absl::Span<const LeafBatch> leaves) const {
    return ahead_ ? ahead_->Read(slots, batch, leaves)
                  : table_->Read(slots, leaves);
  }
  bool lie_in_files() const { return ahead_.has_value(); }
  RowTable* table() const { return table_.get(); }
  Bytes CountBytes() const;
  // Leaves lie in other rows. Forget gives back what they hold besides.
  bool shares_rows() const { return table_->next() != nullptr; }
  void Forget();
  // So many rows may be copied in one epoch.
  size_t read_rows() const { return read_rows_; }

  // The slots below are live in this table.
  int64_t live_below() const { return live_below_.load(); }
  void set_live_below(int64_t slot) {
    // Only what changed is stored: all readers load this word, and each store
    // takes the cache line from them.
    if (live_below_.load(std::memory_order_relaxed) != slot) {
      live_below_.store(slot);
    }
  }

  absl::Status StageAppend(const LaneSteps& append, const BatchRows& kept,
                           WriteScratch* scratch) override;
  absl::Status CopyAppend(const BatchRows& kept,
                          absl::Span<WriteObserver* const> observers,
                          WriteScratch* scratch) override;
  absl::Status StageOverwrite(absl::Span<const Slot> slots,
                              WriteScratch* scratch) override;
  absl::Status CopyOverwrite(absl::Span<const Slot> slots,
                             WriteScratch* scratch) override;
  void Commit(const WritesInFlight::Write& write) override;
  absl::StatusOr<Tensor> ReadToHost(absl::Span<const Slot> slots,
                                    size_t leaf) const override {
    return table_->ReadToHost(slots, leaf);
  }
  absl::StatusOr<TensorDict> ReadToHost(
      absl::Span<const Slot> slots) const override;

 private:
  DenseRows(std::unique_ptr<RowTable> table, EventLeaves events,
            const Shared& shared);

  // A write of `count` rows is more than a cache keeps until they are read.
  bool PassesCaches(int64_t count) const;
  // Place i -> row slots[i], a window at a time: those of an append, which
  // `runs` cuts off, or as the slots come. Moves `places` on.
  absl::Status WriteInWindows(absl::Span<const Slot> slots, RunCutter* runs,
                              absl::Span<WriteObserver* const> observers,
                              WriteScratch* scratch);
  // How many rows behind the first `done` of `ranges` observers let change.
  int64_t AskObservers(absl::Span<WriteObserver* const> observers,
                       absl::Span<const SlotRange> ranges, size_t done) const;

  const std::unique_ptr<RowTable> table_;
  const Shared shared_;
  std::optional<ReadAhead> ahead_;  // Where rows lie in files.
  // Rows of one window, of those announced together, and of one stay inside an
  // epoch.
  int64_t window_rows_ = 0;
  int64_t announced_rows_ = 0;
  size_t read_rows_ = 0;
  std::atomic<int64_t> live_below_{0};
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_DENSE_DENSE_ROWS_H_
