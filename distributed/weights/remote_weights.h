// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_WEIGHTS_REMOTE_WEIGHTS_H_
#define RILL_DISTRIBUTED_WEIGHTS_REMOTE_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/flow/weights/weight_store.h"

namespace rill {

// Weights of a WeightService in a WeightStore of this program: policies and
// workers read that, and do not know where the learner is. A pull takes the
// newest snapshot, under its version at the learner; those that came between
// two pulls are skipped.
//
// Thread-safety: thread-safe; pulls come one at a time. Readers of the store
//   never wait for one.
// Cost: a pull is a call, and one that is newer carries all weights, which the
//   store copies.
//
// Example (RemoteWeightsTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto weights,
//       RemoteWeights::Create({.server = {.transport = transport,
//                                         .address = address}}));
//   RILL_ASSIGN_OR_RETURN(auto reader, weights->store().OpenReader());
//   RILL_RETURN_IF_ERROR(weights->Pull().status());  // Between two batches.
class RemoteWeights {
 public:
  struct Options {
    RemoteServer server = {};
    std::string name = "policy";
    int64_t max_readers = 64;  // WeightStore::Options.
  };

  // Waits for the first snapshot. INVALID_ARGUMENT names the option; else
  // errors as Pull.
  static absl::StatusOr<std::unique_ptr<RemoteWeights>> Create(
      const Options& options);

  const WeightStore& store() const { return *store_; }

  // The version that is the latest here now. With an error that one stays.
  // UNAVAILABLE or DEADLINE_EXCEEDED where the learner is away for
  // RemoteServer::timeout. INVALID_ARGUMENT where its weights have other leaves
  // than before, and FAILED_PRECONDITION where its version is older than the
  // one here, as that of a learner that began anew: make another.
  absl::StatusOr<int64_t> Pull();

 private:
  explicit RemoteWeights(const Options& options);

  // The reply to one request, over as many connections as it takes.
  absl::StatusOr<Message> Fetch(int64_t have)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Message> TryFetch(int64_t have)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  absl::Mutex mu_;
  RetryingStream link_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<WeightStore> store_;  // Set by Create.
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_WEIGHTS_REMOTE_WEIGHTS_H_
