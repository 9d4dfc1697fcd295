// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_EXACTLY_ONCE_SINK_H_
#define RILL_FLOW_EXACTLY_ONCE_SINK_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Stands before a sink: each numbered batch of a producer arrives there exactly
// once, in the order of its numbers (WriteInfo::sequence). Batches may be
// refused or offered again on the way. Batches without a number pass.
//
// The first number seen of a producer may be any. Its state and the rows of the
// sink behind it belong together: save and load both at once. A producer that
// starts again counts from 1: Forget the old one.
//
// Thread-safety: thread-safe; one Write or Cut at a time reaches the
//   sink.
//
// Example (ExactlyOnceSinkTest.Example runs it):
//   ExactlyOnceSink once(&buffer);
//   RILL_RETURN_IF_ERROR(once.Write(batch, {.producer = 1, .sequence = 7}));
//   // The answer was lost, so the producer offers it again: nothing happens.
//   RILL_RETURN_IF_ERROR(once.Write(batch, {.producer = 1, .sequence = 7}));
class ExactlyOnceSink final : public Sink {
 public:
  // `target` is not owned.
  explicit ExactlyOnceSink(Sink* target) : target_(target) {}

  // OK, without a call of the target, where the number has arrived before.
  // FAILED_PRECONDITION where numbers before it are missing, INVALID_ARGUMENT
  // where it is below 0; else what the target says: with an error the number
  // has not arrived.
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override;
  absl::Status Cut(int64_t producer, LaneRange lanes) override;
  absl::Status Flush() override;

  // The newest number that arrived from a producer; 0 where there is none.
  int64_t newest(int64_t producer) const;
  // Whatever number that producer sends next is its first.
  void Forget(int64_t producer);

  // `producers`, `newest` int64 [n], ascending. Load: FAILED_PRECONDITION,
  // unchanged, where it is another state.
  absl::StatusOr<TensorDict> SaveState() const;
  absl::Status LoadState(const TensorDict& state);

 private:
  Sink* const target_;
  mutable absl::Mutex mu_;
  std::map<int64_t, int64_t> newest_ ABSL_GUARDED_BY(mu_);  // By producer.
};

}  // namespace rill

#endif  // RILL_FLOW_EXACTLY_ONCE_SINK_H_
