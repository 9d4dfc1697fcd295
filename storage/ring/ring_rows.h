// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_RING_RING_ROWS_H_
#define RILL_STORAGE_RING_RING_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/specs/spec_tree.h"
#include "rill/storage/chunks/saved_chunks.h"
#include "rill/storage/ring/lane_rings.h"
#include "rill/storage/ring/write_event_builder.h"
#include "rill/storage/ring/write_scratch.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/sharing/writes_in_flight.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// The rows of a RingStorage: where bytes lie, and everything else that a spec
// decides. A storage calls it once a batch, never once a row.
//
// A write goes through Stage, Copy and Commit (End). Only Stage may fail with
// nothing changed; observers are notified of rows that go after it. Copy may
// fail where a device does. Where a storage lets writers in one at a time, all
// they do may be left to Commit.
//
// A write's `scratch` holds its `leaves`, ready to be copied from, its slots in
// `plan`, and in `slots` those of an append one by one.
//
// Thread-safety: as the storage's WriteOrder says.
class RingRows {
 public:
  // Tensors that rows are copied from lie on `device`, and not in `lent`,
  // memory of the rows themselves, which may be null.
  RingRows(const TensorDictSpec& rows_spec, EventLeaves event_leaves,
           const Lanes& lanes, Device rows_device = Device::Cpu(),
           const Buffer* lent_buffer = nullptr)
      : spec(rows_spec),
        tree(spec),
        events(std::move(event_leaves)),
        device(rows_device),
        lent(lent_buffer),
        row_bytes(RowBytes(spec)),
        overwrites(lanes, ChunkShape::Of(lanes, row_bytes)) {}
  virtual ~RingRows() = default;
  RingRows(const RingRows&) = delete;
  RingRows& operator=(const RingRows&) = delete;

  // `kept` are the newest rows of a batch; the others are not stored.
  virtual absl::Status StageAppend(const LaneSteps& append,
                                   const BatchRows& kept,
                                   WriteScratch* scratch) = 0;
  virtual absl::Status CopyAppend(const BatchRows& /*kept*/,
                                  absl::Span<WriteObserver* const>,
                                  WriteScratch* /*scratch*/) {
    return absl::OkStatus();
  }
  // Place i of each leaf -> row slots[i]. The later place of a slot that is
  // named twice wins.
  virtual absl::Status StageOverwrite(absl::Span<const Slot> slots,
                                      WriteScratch* scratch) = 0;
  virtual absl::Status CopyOverwrite(absl::Span<const Slot> slots,
                                     WriteScratch* scratch) = 0;
  // Comes before readers can find the rows of an append, and after a
  // CopyOverwrite, even with an error.
  virtual void Commit(const WritesInFlight::Write& write) = 0;
  // Forgets what is staged.
  virtual void Drop() {}

  // New tensors in host memory: of one leaf, of all.
  virtual absl::StatusOr<Tensor> ReadToHost(absl::Span<const Slot> slots,
                                            size_t leaf) const = 0;
  virtual absl::StatusOr<TensorDict> ReadToHost(
      absl::Span<const Slot> slots) const = 0;

  const TensorDictSpec spec;
  const SpecTree tree;
  const EventLeaves events;
  const Device device;
  const Buffer* const lent;
  const int64_t row_bytes;  // The sum of the leaves.
  // Under the publish lock.
  OverwriteCounts overwrites;
  // False: others may write over rows too, so a save links no chunk.
  bool hears_all = true;
};

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_RING_RING_ROWS_H_
