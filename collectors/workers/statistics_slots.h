// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_WORKERS_STATISTICS_SLOTS_H_
#define RILL_COLLECTORS_WORKERS_STATISTICS_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/collectors/workers/shared_area.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::workers_internal {

// Where workers leave the statistics of their transforms for the collector,
// those of each batch before the batch itself. So a batch that arrives has
// them, also where its worker has died since.
//
// A worker has places for `depth` batches, in turn. It begins no other before
// one of those was read, which is why nothing waits here.
//
// Thread-safety: thread-safe for different batches, also across processes. The
//   batch's own way orders the write before the read.
// Cost: one copy of the bytes a call; Read also allocates its result.
class StatisticsSlots {
 public:
  // `layout`: statistics of a worker (SyncCollector::TransformStates).
  // RESOURCE_EXHAUSTED where there is no memory or no descriptor left.
  static absl::StatusOr<std::unique_ptr<StatisticsSlots>> Create(
      const TensorDict& layout, int64_t workers, int64_t depth);
  // By the descriptor of another one of the same arguments, which is now this
  // one's. INVALID_ARGUMENT where it is something else.
  static absl::StatusOr<std::unique_ptr<StatisticsSlots>> Attach(
      int fd, const TensorDict& layout, int64_t workers, int64_t depth);

  int fd() const { return area_->fd(); }

  // FAILED_PRECONDITION where they are of another layout.
  absl::Status Write(int64_t worker, int64_t sequence,
                     const TensorDict& statistics);
  absl::StatusOr<TensorDict> Read(int64_t worker, int64_t sequence) const;

 private:
  StatisticsSlots(std::unique_ptr<SharedArea> area, TensorDict layout,
                  int64_t depth)
      : area_(std::move(area)), layout_(std::move(layout)), depth_(depth) {}

  std::byte* SlotOf(int64_t worker, int64_t sequence) const;

  const std::unique_ptr<SharedArea> area_;
  const TensorDict layout_;
  const int64_t depth_;
};

}  // namespace rill::workers_internal

#endif  // RILL_COLLECTORS_WORKERS_STATISTICS_SLOTS_H_
