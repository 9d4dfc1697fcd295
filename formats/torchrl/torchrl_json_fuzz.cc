// SPDX-License-Identifier: Apache-2.0
// Texts as the JSON files of a saved TorchRL buffer: what is read can be
// written, reads the same, and has one text.
// Input: a byte that chooses the file, then its text.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rill/formats/torchrl/torchrl_json.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

template <typename Parse, typename Format>
void Try(Parse parse, Format format, absl::string_view text) {
  const auto json = parse("Fuzz", text);
  if (!json.ok()) return;
  const auto written = format(*json);
  const auto again = parse("Fuzz", written);
  RILL_FUZZ_CHECK(again.ok() && *again == *json);
  RILL_FUZZ_CHECK(format(*again) == written);
}

void Choose(uint8_t file, absl::string_view text) {
  switch (file % 5) {
    case 0:
      return Try(ParseTorchRlBuffer, FormatTorchRlBuffer, text);
    case 1:
      return Try(ParseTorchRlStorage, FormatTorchRlStorage, text);
    case 2:
      return Try(ParseTorchRlPriorities, FormatTorchRlPriorities, text);
    case 3:
      return Try(ParseTorchRlWriter, FormatTorchRlWriter, text);
    default:
      (void)ParseTorchRlInt("Fuzz", text);
      (void)ParseTorchRlBool("Fuzz", text);
      const auto shape = ParseTorchRlShape("Fuzz", text);
      RILL_FUZZ_CHECK(!shape.ok() || (shape->rank() > 0 && (*shape)[0] > 0));
  }
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rill::formats_internal::Choose(
      data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
