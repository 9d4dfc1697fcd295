// SPDX-License-Identifier: Apache-2.0
// Texts as names of dtypes.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view name(reinterpret_cast<const char*>(data), size);
  const auto dtype = rill::DTypeFromName(name);
  if (!dtype.ok()) return 0;
  RILL_FUZZ_CHECK(rill::DTypeName(*dtype) == name);
  RILL_FUZZ_CHECK(rill::DTypeSize(*dtype) >= 1 &&
                  rill::DTypeSize(*dtype) <= 16);
  return 0;
}
