// SPDX-License-Identifier: Apache-2.0
// Texts as names of devices.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rill/device/device.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto device = rill::Device::Parse(text);
  if (!device.ok()) return 0;
  RILL_FUZZ_CHECK(device->index >= 0);
  RILL_FUZZ_CHECK(!device->is_cpu() || device->index == 0);
  const auto again = rill::Device::Parse(device->ToString());
  RILL_FUZZ_CHECK(again.ok() && *again == *device);
  return 0;
}
