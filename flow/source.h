// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_SOURCE_H_
#define RILL_FLOW_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Where batches of steps come from, the counterpart of Sink: every collector is
// one.
//
// Shapes: batches are [lanes, time] of spec(), unless the source says of an
//   option that its batches have more. Where they have `collector/mask`, bool
//   of the batch's shape, it is false where there is no step.
// Thread-safety: Stop is thread-safe, the rest thread-compatible.
class Source {
 public:
  // Where the time went so far, for reports.
  struct Times {
    absl::Duration env;
    absl::Duration policy;
    absl::Duration other;
  };

  virtual ~Source() = default;

  // The leaves of a batch.
  virtual const TensorDictSpec& spec() const = 0;
  // Steps collected so far, over all lanes.
  virtual int64_t frames() const = 0;
  virtual const Times& times() const = 0;

  // The next batch. Its bytes may be reused by the next call: clone what must
  // stay. CANCELLED after Stop; OUT_OF_RANGE where there are no more.
  virtual absl::StatusOr<TensorDict> Next() = 0;
  // Next, into `sink`, under the next number (WriteInfo::sequence). A batch
  // that the sink refuses is kept: its error comes back, and the next call
  // offers that batch again under its number before another is collected.
  // A step that failed and a loaded state may end trajectories that the sink
  // holds: their lanes are cut (Sink::Cut) before the next Write. An error of
  // Cut comes back, and the next call cuts them.
  virtual absl::Status CollectInto(Sink& sink) = 0;

  // One call of Next or CollectInto is CANCELLED: the next one to begin, as
  // batches under way come to their end. Nothing is lost; the call after that
  // goes on. No part of the state.
  virtual void Stop() = 0;

  // Everything that the next batch depends on, a refused batch and its number
  // included, but for the policy. Load: FAILED_PRECONDITION, unchanged, where
  // the state does not fit.
  virtual absl::StatusOr<TensorDict> SaveState() const = 0;
  virtual absl::Status LoadState(const TensorDict& state) = 0;
};

}  // namespace rill

#endif  // RILL_FLOW_SOURCE_H_
