// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_CARRIER_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_CARRIER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rill/device/buffer.h"
#include "rill/flow/frames/frame.h"

namespace rill {

// Carries blocks of bytes between ranks, which are numbered processes: all that
// an engine for a RankTransport has to be. Blocks of one rank for another
// arrive whole, once, and in order.
// Thread-safety: Send and Help are thread-safe.
class RankCarrier {
 public:
  struct Events {
    // A block has come. Returns soon.
    std::function<void(int rank, std::shared_ptr<Buffer> bytes)> receive;
    // Nothing is sent or received any more. At most once.
    std::function<void(const absl::Status& why)> fail;
  };

  virtual ~RankCarrier() = default;

  // Once, before all else. `events` are called one at a time until Finish
  // returns, on a thread of the engine's, or on one that is in Help or Send.
  // Callers of these two hold no mutex that `events` take.
  virtual absl::Status Start(Events events) = 0;
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;

  // The longest block; at least kLeastMaxBytes, for what has to go always.
  virtual int64_t max_bytes() const = 0;
  static constexpr int64_t kLeastMaxBytes = 8 << 10;
  // Waits for nobody. `frame` has at most max_bytes(), which nobody writes to
  // any more.
  virtual void Send(int rank, FramePieces frame) = 0;

  // Lends the caller's thread to the engine while it has nothing else to do:
  // until `is_done`, or until nothing has come for `patience`. Blocks that come
  // meanwhile pass no other thread. The caller holds no mutex that is_done
  // takes.
  virtual void Help(absl::Duration /*patience*/,
                    absl::FunctionRef<bool()> /*is_done*/) {}

  // Once, behind the last Send of others than `events`. The engine says for
  // whom this waits.
  virtual void Finish() = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_CARRIER_H_
