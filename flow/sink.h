// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_SINK_H_
#define RILL_FLOW_SINK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// Where a batch of steps comes from.
struct WriteInfo {
  int64_t producer = 0;        // Number of the collector or worker.
  int64_t first_lane = 0;      // The batch's lane 0 is this lane of the target.
  int64_t policy_version = 0;  // Newest that took part.
  // The number of the batch among the producer's, from 1. A batch that was
  // refused is offered again under its number (flow/exactly_once_sink.h). 0:
  // not numbered.
  int64_t sequence = 0;
  // Tells sources of one number apart (flow/producers.h). 0: hand-written,
  // so that the number alone tells.
  uint64_t source = 0;
};

// Lanes [first, first + count) of a sink.
struct LaneRange {
  int64_t first = 0;
  int64_t count = 0;
  friend bool operator==(const LaneRange&, const LaneRange&) = default;
};

// Where batches of steps go: collectors fill one; a replay buffer is one; so is
// a user's lambda (FunctionSink).
//
// Shapes: batches are [lanes, time]; bytes may be reused by the caller when
//   Write returns.
// Thread-safety: an implementation says whether Write may be called from
//   several threads.
class Sink {
 public:
  virtual ~Sink() = default;

  // Takes the whole batch or, with an error, nothing of it.
  virtual absl::Status Write(const TensorDict& batch,
                             const WriteInfo& info) = 0;
  // The trajectories that a producer has open in these lanes have ended without
  // a last step: it died, or its environment was reset on the way. Their newest
  // steps count as truncated, and no slice and no n-step return goes on from
  // there into what is written next. Calling it twice is calling it once.
  // - With an error nothing has changed: call again before the next Write.
  // - No Write to these lanes runs meanwhile.
  // - OK where nothing is open.
  // - In a lane that producers share, the newest step is cut, of any producer.
  virtual absl::Status Cut(int64_t producer, LaneRange lanes) = 0;
  // Everything written so far is where it belongs when this returns.
  virtual absl::Status Flush() = 0;
  // A batch of `shape` whose leaves lie in the sink's own memory. The caller
  // fills them all and hands the batch to Write, which then copies nothing. It
  // may leave it at that: nothing has happened before the Write. Values are
  // arbitrary; the next Write, Cut or Reserve ends the loan.
  // UNIMPLEMENTED where the sink lends no memory.
  virtual absl::StatusOr<TensorDict> Reserve(const Shape& /*shape*/) {
    return absl::UnimplementedError("this sink lends no memory");
  }
};

// Calls `write` for each batch, and `cut`, if there is one, for each Cut: give
// one where the batches go on to another sink. Thread-safety: that of the
// functions.
class FunctionSink final : public Sink {
 public:
  using WriteFunction =
      std::function<absl::Status(const TensorDict&, const WriteInfo&)>;
  using CutFunction = std::function<absl::Status(int64_t, LaneRange)>;

  explicit FunctionSink(WriteFunction write, CutFunction cut = nullptr)
      : write_(std::move(write)), cut_(std::move(cut)) {}

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    return write_(batch, info);
  }
  absl::Status Cut(int64_t producer, LaneRange lanes) override {
    return cut_ == nullptr ? absl::OkStatus() : cut_(producer, lanes);
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  WriteFunction write_;
  CutFunction cut_;
};

}  // namespace rill

#endif  // RILL_FLOW_SINK_H_
