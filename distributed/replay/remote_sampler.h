// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_REMOTE_SAMPLER_H_
#define RILL_DISTRIBUTED_REPLAY_REMOTE_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rill/distributed/client/resent_calls.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Batches of a table of a ReplayService, and their priorities back: to a
// learner what Sample and UpdatePriorities of a ReplayBuffer are.
//
// Batches are asked for ahead, so that the next one is on its way while the
// learner works. They are drawn when the request arrives, as with a buffer's
// `prefetch`. A connection that ends loses those that were asked for; others
// are drawn instead. Several small batches come in one message.
//
// A sample has `index_server` int64 beside `index` and `index_generation`: the
// start of the server that drew it. Priorities for rows of an earlier start are
// ignored, and counted.
//
// Errors: those of the buffer's call come back at once. While the server is
// away or held by its rate limiter, a call tries again until
// RemoteServer::timeout, and then the error comes back.
//
// Thread-safety: thread-safe. Samples and updates go side by side, each one at
// a
//   time.
//
// Example (RemoteSamplerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto sampler,
//       RemoteSampler::Create({.server = {.transport = transport,
//                                         .address = address},
//                              .batch_size = 256}));
//   RILL_ASSIGN_OR_RETURN(TensorDict batch, sampler->Sample());
//   RILL_RETURN_IF_ERROR(sampler->UpdatePriorities(batch, td_errors));
class RemoteSampler {
 public:
  struct Options {
    RemoteServer server = {};
    std::string table = "replay";
    int64_t batch_size = 0;  // 0: what the table's buffer has set.
    // Batches here or on their way between calls. Large ones are so many; where
    // several come in one message, there are at least about half. [0, 64].
    int64_t ahead = 2;
    // Updates without a reply; where there are more, UpdatePriorities waits.
    int64_t max_updates = 16;  // [1, 64].
  };
  struct Stats {
    int64_t batches = 0;
    int64_t stale_rows = 0;  // Of updates, drawn by an earlier start.
    int64_t connects = 0;    // For samples.
  };

  // INVALID_ARGUMENT names the option. Does not connect yet.
  static absl::StatusOr<std::unique_ptr<RemoteSampler>> Create(
      const Options& options);

  // Its tensors are the caller's, to read.
  absl::StatusOr<TensorDict> Sample();

  // Priorities as ReplayBuffer::UpdatePriorities takes them, on their way when
  // this returns. An update that the buffer refuses comes back as the error of
  // a later call, once.
  absl::Status UpdatePriorities(const TensorDict& sample,
                                absl::Span<const float> priorities);
  // All updates have arrived.
  absl::Status Flush();

  Stats GetStats() const;

 private:
  explicit RemoteSampler(const Options& options);

  absl::StatusOr<TensorDict> TakeBatch(absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  // Until `ahead` and one more are here or on their way, as far as whole
  // messages go.
  absl::Status Ask() ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  // Waits for the oldest reply, whose batches are here then.
  absl::Status TakeReply(absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  absl::Status Split(const Message& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  // How many batches a message has.
  int64_t GroupSize() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  absl::Status Drop(absl::Status why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(samples_mu_);
  // The error of an update that the buffer refused.
  absl::Status TakeUpdateReply(const Reply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(updates_mu_);

  const Options options_;
  mutable absl::Mutex samples_mu_;
  RetryingStream samples_ ABSL_GUARDED_BY(samples_mu_);
  struct Asked {
    absl::Time due;  // The reply.
    int64_t batches = 1;
  };
  std::deque<Asked> asked_ ABSL_GUARDED_BY(samples_mu_);  // The oldest first.
  std::deque<TensorDict> here_ ABSL_GUARDED_BY(samples_mu_);
  // The last batch that came; 0: it does not go into one message with others.
  int64_t bytes_ ABSL_GUARDED_BY(samples_mu_) = 0;
  int64_t batches_ ABSL_GUARDED_BY(samples_mu_) = 0;
  mutable absl::Mutex updates_mu_;
  ResentCalls updates_ ABSL_GUARDED_BY(updates_mu_);
  int64_t stale_rows_ ABSL_GUARDED_BY(updates_mu_) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_REMOTE_SAMPLER_H_
