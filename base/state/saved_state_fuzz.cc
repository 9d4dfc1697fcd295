// SPDX-License-Identifier: Apache-2.0
// Any bytes as a saved state, with the checksum put right. Bytes that are
// read are written as they were.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/crc/crc32c.h"
#include "absl/status/statusor.h"
#include "rill/base/state/saved_state.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto sum = static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(sum >> (8 * i)));
  }
  const absl::StatusOr<rill::SavedState> state =
      rill::SavedState::Decode(bytes);
  RILL_FUZZ_CHECK(!state.ok() || state->Encode() == bytes);
  return 0;
}
