// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_packet.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/value_limits.h"
#include "rill/flow/frames/frame.h"

namespace rill::ranks_internal {
namespace {

struct Front {
  int64_t kind = RankPacket::kNumKinds;
  int64_t stream = 0;
  int64_t number = 0;
  int64_t text_bytes = 0;
};

// From here on a block of its own costs less than a copy.
constexpr int64_t kMinPieceBytes = 64 << 10;

constexpr auto kMaxCode =
    static_cast<int64_t>(absl::StatusCode::kUnauthenticated);

}  // namespace

absl::StatusOr<FramePieces> EncodePacket(const RankPacket& packet) {
  RILL_RETURN_IF_ERROR(CheckValues(packet.message.values));
  const Front front = {packet.kind, packet.stream, packet.number,
                       static_cast<int64_t>(packet.text.size())};
  return EncodeFramePieces(
      absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&front),
                                     sizeof(front)),
                   packet.text, packet.message.values.Encode()),
      packet.message.batch, kMinPieceBytes);
}

absl::StatusOr<RankPacket> DecodePacket(std::shared_ptr<Buffer> bytes) {
  const std::byte* const data = bytes->data();
  const auto size = static_cast<size_t>(bytes->size_bytes());
  RILL_ASSIGN_OR_RETURN(Frame frame,
                        DecodeFrame(std::move(bytes), {data, size}));
  absl::string_view header = frame.header;
  Front front;
  if (header.size() >= sizeof(front)) {
    std::memcpy(&front, header.data(), sizeof(front));
    header.remove_prefix(sizeof(front));
  }
  if (front.kind < 0 || front.kind >= RankPacket::kNumKinds ||
      front.text_bytes < 0 ||
      front.text_bytes > static_cast<int64_t>(header.size())) {
    return DataLoss("RankTransport: got a header of ", frame.header.size(),
                    " bytes that is none, of kind ", front.kind);
  }
  if (front.kind >= RankPacket::kReply &&
      (front.number < 0 || front.number > kMaxCode)) {
    return DataLoss("RankTransport: code of a status: got ", front.number,
                    ", want one in [0, ", kMaxCode, "]");
  }
  RankPacket packet = {.kind = static_cast<RankPacket::Kind>(front.kind),
                       .stream = front.stream,
                       .number = front.number};
  const auto text_bytes = static_cast<size_t>(front.text_bytes);
  packet.text = std::string(header.substr(0, text_bytes));
  RILL_ASSIGN_OR_RETURN(packet.message.values,
                        SavedState::Decode(header.substr(text_bytes)));
  packet.message.batch = std::move(frame.batch);
  return packet;
}

}  // namespace rill::ranks_internal
