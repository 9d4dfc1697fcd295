// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_ENSEMBLE_OFFLINE_TO_ONLINE_H_
#define RILL_REPLAY_ENSEMBLE_OFFLINE_TO_ONLINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/flow/sink.h"
#include "rill/replay/ensemble/replay_buffer_ensemble.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/schedule.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/batch_transform.h"

namespace rill {

// Batches of a data set and of what a collector writes meanwhile, in a
// proportion that changes over training. It is a ReplayBufferEnsemble of two,
// with its errors, threads and cost: `buffer_ids` is 0 for offline rows and 1
// for online ones. Shares are exact over the whole run, also while they change
// (never more than half an item off). It is a Sink: writes go to the online
// buffer; nothing writes to the other (make it with MakeImmutableWriter, over a
// storage that was filled or opened before).
//
// While the online buffer has fewer than `min_online_rows` rows a batch is all
// offline; those batches count for the schedule, and nothing is made up for
// later. With 0 such a batch is the online buffer's error.
//
// Thread-safety: thread-safe; samples take turns.
//
// Example (OfflineToOnlineTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(Schedule fraction, LinearSchedule(0.9, 0.1, 100));
//   RILL_ASSIGN_OR_RETURN(
//       auto buffer,
//       OfflineToOnlineReplayBuffer::Create({.offline = dataset,
//                                            .online = fresh,
//                                            .offline_fraction = fraction,
//                                            .batch_size = 32}));
//   RILL_RETURN_IF_ERROR(buffer->Extend(steps).status());  // To `fresh`.
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, buffer->Sample());
class OfflineToOnlineReplayBuffer final : public Sink {
 public:
  struct Options {
    std::shared_ptr<ReplayBuffer> offline = nullptr;  // Required.
    std::shared_ptr<ReplayBuffer> online = nullptr;   // Required.
    // Takes the number of batches drawn before, gives a share in [0, 1]. Null:
    // always 0.5.
    Schedule offline_fraction = nullptr;
    int64_t batch_size = 0;       // Of Sample() without a number; 0: none.
    int64_t min_online_rows = 1;  // >= 0.
    // Forward in order on batches, after what the two buffers' own have done.
    std::vector<std::unique_ptr<BatchTransform>> transforms = {};
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<OfflineToOnlineReplayBuffer>> Create(
      Options options);

  // The online buffer's.
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info = {});
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override;
  absl::Status Cut(int64_t producer, LaneRange lanes) override;
  absl::Status Flush() override;

  // As ReplayBufferEnsemble. INVALID_ARGUMENT, and no batch number is used up,
  // where the schedule leaves [0, 1].
  absl::StatusOr<TensorDict> Sample();
  absl::StatusOr<TensorDict> Sample(int64_t batch_size);
  absl::Status SampleInto(TensorDict* out);
  absl::Status SampleInto(int64_t batch_size, TensorDict* out);
  absl::Status UpdatePriorities(const TensorDict& batch,
                                absl::Span<const float> priorities);

  // Items are [offline, online]; shares those of the last batch.
  ReplayBufferEnsemble::Stats GetStats() const;
  ReplayBuffer& offline() const { return ensemble_->member(0); }
  ReplayBuffer& online() const { return ensemble_->member(1); }

  // As ReplayBufferEnsemble, whose state it is: the schedule goes on where it
  // was.
  absl::StatusOr<TensorDict> SaveState() const;
  absl::Status LoadState(const TensorDict& state,
                         const ReplayBuffer::OpenOptions& options = {});

 private:
  OfflineToOnlineReplayBuffer(std::unique_ptr<ReplayBufferEnsemble> ensemble,
                              Schedule offline_fraction, int64_t batch_size,
                              int64_t min_online_rows);
  absl::Status SetShares();

  const std::unique_ptr<ReplayBufferEnsemble> ensemble_;
  const Schedule offline_fraction_;
  const int64_t batch_size_;
  const int64_t min_online_rows_;
  absl::Mutex mutex_;  // Shares are set and used in one go.
};

}  // namespace rill

#endif  // RILL_REPLAY_ENSEMBLE_OFFLINE_TO_ONLINE_H_
