// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CALL_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_CALL_STREAM_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// Calls of one method, one behind the other. Requests may be sent ahead: the
// server carries them out in order, and replies come in that order.
//
// Errors of Send and Receive are the engine's:
// - DEADLINE_EXCEEDED: nothing has happened. The same call may be made again,
//   and a later Receive gets the reply.
// - UNAVAILABLE: the server or the way to it is gone. The stream has ended, and
//   what was sent and has no reply may have been carried out or not.
// - DATA_LOSS, FAILED_PRECONDITION: a message arrived damaged, or is of another
//   version. The stream has ended, and another one would not help.
// Errors of the service are in the reply, and the stream goes on.
//
// Cost: the engine's; Send does not wait for the server.
// Thread-safety: one thread may send while another one receives.
// The destructor ends the stream at once. A request that the server is at is
// carried out, and its reply is lost.
class CallStream {
 public:
  virtual ~CallStream() = default;

  // Sends a request; the service is not called for it after `deadline`. Waits
  // until that time while as many replies as the stream's window are not
  // received yet: that is the flow control. INVALID_ARGUMENT, and the stream
  // goes on, where the engine cannot carry the message.
  virtual absl::Status Send(const Message& request, absl::Time deadline) = 0;

  // The reply to the oldest request whose reply was not received yet.
  // FAILED_PRECONDITION where there is no such request. Replies that came
  // before the stream ended may still be received.
  virtual absl::StatusOr<Reply> Receive(absl::Time deadline) = 0;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CALL_STREAM_H_
