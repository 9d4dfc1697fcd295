// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_PACKET_H_
#define RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_PACKET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/message.h"
#include "rill/flow/frames/frame.h"

namespace rill::ranks_internal {

// A message from rank to rank: a frame (flow/frames/frame.h) with the batch.
// Its header is kind, stream and number, int64 each, the length of the text,
// the text, and the values (base/state/saved_state.h).
// Thread-safety: thread-compatible.
// Cost: that of the frame, and of the values as text.
struct RankPacket {
  enum Kind : int64_t {
    // From clients. `stream` is the client's number of it.
    kOpen,     // `number`: the window. `text`: name of the server, a zero,
               // the method.
    kAsk,      // Whether the server is there: kReply, or kEnded.
    kRequest,  // `number`: nanoseconds until the deadline, or kNoDeadline.
    kEnd,      // The client has ended the stream.
    // From servers.
    kReply,  // `number`: code of the status; `text`: its message.
    kEnded,  // The server has ended the stream. As kReply.
  };
  static constexpr int64_t kNumKinds = kEnded + 1;
  static constexpr int64_t kNoDeadline = INT64_MAX;

  Kind kind = kOpen;
  int64_t stream = 0;
  int64_t number = 0;
  std::string text = {};
  Message message = {};
};

// Large columns stay where they are (EncodeFramePieces). Errors as EncodeFrame;
// INVALID_ARGUMENT for values that are too many or too deep (value_limits.h).
absl::StatusOr<FramePieces> EncodePacket(const RankPacket& packet);
// The batch is a view of `bytes`. DATA_LOSS for bytes of no packet.
absl::StatusOr<RankPacket> DecodePacket(std::shared_ptr<Buffer> bytes);

}  // namespace rill::ranks_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_RANKS_RANK_PACKET_H_
