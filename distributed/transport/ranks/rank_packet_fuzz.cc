// SPDX-License-Identifier: Apache-2.0
// Any bytes as the header of a packet, in a frame that is right: flow/frames
// has its own target. A packet that is accepted is written as it was.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/device/buffer.h"
#include "rill/distributed/transport/ranks/rank_packet.h"
#include "rill/flow/frames/frame.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::ranks_internal {
namespace {

void Check(absl::string_view header) {
  const auto bytes = EncodeFrame(header, TensorDict());
  RILL_FUZZ_CHECK(bytes.ok());
  const absl::StatusOr<RankPacket> packet = DecodePacket(*bytes);
  if (!packet.ok()) {
    RILL_FUZZ_CHECK(absl::IsDataLoss(packet.status()) ||
                    absl::IsFailedPrecondition(packet.status()));
    return;
  }
  const auto pieces = EncodePacket(*packet);
  RILL_FUZZ_CHECK(pieces.ok());
  const auto again = JoinFrame(*pieces);
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK((*again)->size_bytes() == (*bytes)->size_bytes());
  RILL_FUZZ_CHECK(std::memcmp((*again)->data(), (*bytes)->data(),
                              static_cast<size_t>((*bytes)->size_bytes())) ==
                  0);
}

}  // namespace
}  // namespace rill::ranks_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::ranks_internal::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
