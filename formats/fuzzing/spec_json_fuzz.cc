// SPDX-License-Identifier: Apache-2.0
// Texts as specs: what is read can be written, reads the same, and has one
// text.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rill/formats/spec_json.h"
#include "rill/specs/spec.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = rill::SpecFromJson(text);
  if (!spec.ok()) return 0;
  (void)spec->ToString();
  const auto written = rill::SpecToJson(*spec);
  RILL_FUZZ_CHECK(written.ok());
  const auto again = rill::SpecFromJson(*written);
  RILL_FUZZ_CHECK(again.ok() && *again == *spec);
  const auto written_again = rill::SpecToJson(*again);
  RILL_FUZZ_CHECK(written_again.ok() && *written_again == *written);
  return 0;
}
