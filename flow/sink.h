// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_SINK_H_
#define RILL_FLOW_SINK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Where a batch of steps comes from.
struct WriteInfo {
  int64_t producer = 0;        // Number of the collector or worker.
  int64_t first_lane = 0;      // The batch's lane 0 is this lane of the target.
  int64_t policy_version = 0;  // Newest that took part.
  // Of the producer's batches, counted from 1; a batch that was refused is
  // offered again under its number (flow/exactly_once_sink.h). 0: not numbered.
  int64_t sequence = 0;
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
  // Everything written so far is where it belongs when this returns.
  virtual absl::Status Flush() = 0;
};

// Calls `write` for each batch. Thread-safety: that of the function.
class FunctionSink final : public Sink {
 public:
  using Function =
      std::function<absl::Status(const TensorDict&, const WriteInfo&)>;

  explicit FunctionSink(Function write) : write_(std::move(write)) {}

  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    return write_(batch, info);
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  Function write_;
};

}  // namespace rill

#endif  // RILL_FLOW_SINK_H_
