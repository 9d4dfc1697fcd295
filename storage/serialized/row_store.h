// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_SERIALIZED_ROW_STORE_H_
#define RILL_STORAGE_SERIALIZED_ROW_STORE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/slots/slot.h"
#include "rill/storage/chunks/stored_rows.h"
#include "rill/storage/ring/ring_rows.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/row_layout.h"

namespace rill::storage_internal {

// Steps of one lane that follow one another in its ring, not around its end.
struct LaneRun {
  int64_t lane = 0;
  int64_t position = 0;
  int64_t steps = 0;
  // Which row of the batch the first one is: [lanes, time] counted lane after
  // lane, dropped steps too.
  int64_t first_row = 0;
};

// The rows of a SerializedStorage. A write is staged first, with all that can
// fail, then committed or dropped as a whole.
//
// Rows lie in host memory. The place of a leaf without bytes may have any
// address.
//
// Thread-safety: Stage*, Drop and Commit come from one thread at a time. Read
//   runs beside Stage* and Drop; beside Commit and Clear only once it has
//   called `release`.
class RowStore : public RingRows {
 public:
  struct Usage {
    int64_t memory = 0;
    int64_t full = 0;   // An upper bound.
    int64_t saved = 0;  // What the rows it holds would take beyond `memory`.
  };

  // Forgets all rows.
  virtual void Clear() = 0;
  // Row slots[i] -> place i. Calls `release`, at most once, when what is left
  // to do needs nothing that Commit changes.
  virtual absl::Status Read(absl::Span<const Slot> slots,
                            absl::Span<const LeafBatch> places,
                            absl::FunctionRef<void()> release) const = 0;
  virtual Usage GetUsage() const = 0;

  // A run of rows of a save, [n].
  absl::Status StageStored(const StoredRun& run, const BatchLeaves& rows);
  void Commit() { Commit({}); }

  void Commit(const WritesInFlight::Write& write) override = 0;
  void Drop() override = 0;
  absl::Status StageAppend(const LaneSteps& append, const BatchRows& kept,
                           WriteScratch* scratch) final;
  absl::Status StageOverwrite(absl::Span<const Slot> slots,
                              WriteScratch* scratch) final;
  absl::Status CopyOverwrite(absl::Span<const Slot>, WriteScratch*) final {
    Commit();
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> ReadToHost(absl::Span<const Slot> slots,
                                    size_t leaf) const final;
  absl::StatusOr<TensorDict> ReadToHost(
      absl::Span<const Slot> slots) const final;

 protected:
  RowStore(const TensorDictSpec& spec, EventLeaves events, const Lanes& lanes)
      : RingRows(spec, std::move(events), lanes), lanes_(lanes) {}

  const Lanes lanes_;

 private:
  // Step i of leaf `place.leaf` is at place i, and stays there until the write
  // is over. A write stages its runs one by one, those of a lane in its order:
  // two at most, of which the second begins at position 0. A lane's first run
  // since Clear may begin anywhere (a Load), all others where the last ended.
  virtual absl::Status StageRun(const LaneRun& run,
                                absl::Span<const LeafBatch> places) = 0;
  // Place i -> row slots[i] of these leaves; of a slot that is named twice the
  // later place wins. Once a write.
  virtual absl::Status StagePatch(absl::Span<const Slot> slots,
                                  absl::Span<const LeafBatch> places) = 0;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_SERIALIZED_ROW_STORE_H_
