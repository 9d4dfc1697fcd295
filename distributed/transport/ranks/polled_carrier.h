// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_POLLED_CARRIER_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_POLLED_CARRIER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/ranks/rank_carrier.h"
#include "rill/flow/frames/frame.h"

namespace rill {

// A library that carries frames between ranks while it is asked, as MPI does:
// all that an engine has to be for a PolledCarrier. Init, the barriers and the
// last call come on one thread, the others on any, one at a time. No call
// waits, but Init and Finalize. Behind an error, that of Init too, only Abandon
// is called. Frames of one rank for another arrive whole, once, and in order.
class PolledFrames {
 public:
  using Receive = std::function<void(int rank, std::shared_ptr<Buffer> frame)>;
  struct Place {
    int rank = 0;
    int num_ranks = 0;
    int64_t max_bytes = 0;  // The longest frame.
  };

  virtual ~PolledFrames() = default;

  // Send and Step alone call `receive`.
  virtual absl::StatusOr<Place> Init(Receive receive) = 0;
  // The owners of the pieces keep their bytes. Where these are needed for
  // longer than the call, so are the owners.
  virtual absl::Status Send(int rank, const FramePieces& frame) = 0;
  // Takes what has come and lets go of what has arrived; `moves`: whether there
  // was any.
  virtual absl::Status Step(bool* moves) = 0;
  // Whether frames are on their way, from here or to here.
  virtual bool has_transfers() const = 0;

  // This rank is at the barrier; whether all are.
  virtual absl::Status BeginBarrier() = 0;
  virtual absl::StatusOr<bool> TestBarrier() = 0;

  // The last call: nothing is on its way, and all ranks make it.
  virtual void Finalize() = 0;
  // The last call else. Frames that are on their way stay as they are.
  virtual void Abandon() = 0;
};

// A carrier on one thread that asks `frames`. Threads that wait for a reply or
// for a request ask as well, for a while. Without anything on its way the
// carrier asks less and less, at last each millisecond. Its thread rests while
// others ask, and for up to two milliseconds behind the last of them.
// Finish waits until all ranks are there, without a deadline. Meanwhile the
// rank still answers.
std::unique_ptr<RankCarrier> MakePolledCarrier(
    std::unique_ptr<PolledFrames> frames);

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_POLLED_CARRIER_H_
