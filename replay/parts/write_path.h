// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_PARTS_WRITE_PATH_H_
#define RILL_REPLAY_PARTS_WRITE_PATH_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/replay/rate_limiter.h"
#include "rill/replay/row_patch.h"
#include "rill/replay/rows/drawn_rows.h"
#include "rill/replay/rows/lane_sources.h"
#include "rill/replay/rows/row_patcher.h"
#include "rill/replay/rows/write_counter.h"
#include "rill/replay/sampling/transform_stage.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::replay_internal {

// The way of a batch into a replay buffer: rate limiter, inverse transforms,
// drawn_rows, writer. From Create on, the storage's events reach the sampler
// and the counts here; the destructor takes both off the storage.
//
// Thread-safety: thread-safe, but Clear, which goes alone. It has no lock of
//   its own: writes take tickets of DrawnRows, patches in RowPatcher.
// Cost: that of the writer; without transforms nothing is copied or allocated.
class WritePath {
 public:
  // All but the null limiter required; pointers outlive this.
  struct Options {
    std::shared_ptr<Storage> storage = nullptr;
    std::unique_ptr<Writer> writer = nullptr;
    Sampler* sampler = nullptr;
    TransformStage* transforms = nullptr;
    DrawnRows* drawn_rows = nullptr;
    std::shared_ptr<RateLimiter> rate_limiter = nullptr;  // Null: none.
    absl::Duration rate_limit_timeout = absl::InfiniteDuration();
  };

  // INVALID_ARGUMENT where the sampler needs an order that the writer does not
  // keep; errors of Writer::Attach and Storage::AddObserver.
  static absl::StatusOr<std::unique_ptr<WritePath>> Create(Options options);
  ~WritePath();
  WritePath(const WritePath&) = delete;
  WritePath& operator=(const WritePath&) = delete;

  using Permit = std::optional<RateLimiter::Permit>;
  // Waits until the limiter lets `rows` in / lets `items` out: before a call
  // does anything else, so that no other call waits for this one. Without a
  // limiter, and for no rows, none. Errors as RateLimiter::AwaitInsert.
  absl::StatusOr<Permit> AwaitInsert(int64_t rows) const;
  absl::StatusOr<Permit> AwaitSample(int64_t items) const;

  // Appends [lanes, time], or [time] where the storage has one lane. Open
  // trajectories are cut before, where the batch does not follow on them
  // (lane_sources.h). All or nothing but for that, also of what the transforms
  // learn. `batches_drawn`: number of the
  // batch that is drawn next. `rows`, unless null, becomes those that were
  // written (ReplayBuffer::Extend).
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info,
                                      uint64_t batches_drawn,
                                      std::vector<Draw>* rows = nullptr);
  // Storage::WriteAt, once no batch that was drawn has one of `slots`. Not
  // through the transforms.
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows);
  // ReplayBuffer::UpdateIfPresent.
  absl::StatusOr<PatchResult> Patch(const TensorDict& patch,
                                    const PatchOptions& options) {
    return patcher_.Patch(patch, options);
  }
  // Sink::Cut, of rows that transforms hold too; stored ones stay where the
  // writer keeps no order.
  absl::Status Cut(LaneRange lanes);
  // Forgets all rows, also in transforms, and what the rate limiter has
  // counted.
  absl::Status Clear();

  // Events of the storage: equal counts have no write between them.
  int64_t events() const { return counter_.count(); }
  int64_t clears() const { return counter_.clears(); }
  const WriteCounter& counter() const { return counter_; }
  int64_t rows_written() const { return rows_written_; }
  Writer& writer() const { return *writer_; }
  // Null: none.
  RateLimiter* rate_limiter() const { return rate_limiter_.get(); }

 private:
  explicit WritePath(Options options);

  absl::Status Attach();
  absl::StatusOr<TensorDict> Unsqueezed(const TensorDict& batch) const;
  absl::StatusOr<ExtendResult> TransformAndStore(const TensorDict& batch,
                                                 const WriteInfo& info,
                                                 uint64_t batches_drawn);
  absl::StatusOr<ExtendResult> Store(const TensorDict& rows,
                                     const WriteInfo& info);
  // With a ticket of DrawnRows.
  absl::Status CutWithTicket(LaneRange lanes);

  const std::shared_ptr<Storage> storage_;
  const std::unique_ptr<Writer> writer_;
  Sampler* const sampler_;
  TransformStage* const transforms_;
  DrawnRows* const drawn_rows_;
  const std::shared_ptr<RateLimiter> rate_limiter_;
  const absl::Duration rate_limit_timeout_;
  WriteCounter counter_;
  RowPatcher patcher_;
  LaneSources sources_;
  bool is_sampler_attached_ = false;
  bool is_counter_attached_ = false;
  bool are_sources_attached_ = false;
  std::atomic<int64_t> rows_written_ = 0;
};

}  // namespace rill::replay_internal

#endif  // RILL_REPLAY_PARTS_WRITE_PATH_H_
