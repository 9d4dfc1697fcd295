// SPDX-License-Identifier: Apache-2.0
// Any text as the header of a message: what is accepted can be written, and
// reads the same; its values other engines carry as well.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "rill/base/state/saved_state.h"
#include "rill/distributed/transport/message_header.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<rill::MessageHeader> header =
      rill::DecodeMessageHeader(text);
  if (!header.ok()) {
    RILL_FUZZ_CHECK(absl::IsInvalidArgument(header.status()));
    return 0;
  }
  RILL_FUZZ_CHECK(rill::SavedState::Decode(header->values.Encode()).ok());
  const absl::StatusOr<std::string> own = rill::EncodeMessageHeader(*header);
  RILL_FUZZ_CHECK(own.ok());
  RILL_FUZZ_CHECK(!absl::StrContains(*own, "\n"));
  const absl::StatusOr<rill::MessageHeader> again =
      rill::DecodeMessageHeader(*own);
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK(again->error == header->error);
  RILL_FUZZ_CHECK(again->values.Encode() == header->values.Encode());
  RILL_FUZZ_CHECK(again->timeout == header->timeout);
  RILL_FUZZ_CHECK(again->sent == header->sent);
  RILL_FUZZ_CHECK(again->batch_shape == header->batch_shape);
  RILL_FUZZ_CHECK(again->dim_names == header->dim_names);
  return 0;
}
