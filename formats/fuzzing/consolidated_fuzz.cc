// SPDX-License-Identifier: Apache-2.0
// Bytes as consolidated files, as they are and with the JSON's length put right
// behind them: all modes load the same, or fail the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/fuzzing/fuzz_file.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

using Mode = LoadMemmapOptions::Mode;

void Try(absl::string_view bytes) {
  const formats_internal::FuzzFile file(bytes);
  const auto dict = LoadConsolidated(file.path());
  const auto copy = LoadConsolidated(file.path(), {.mode = Mode::kCopy});
  const auto shared = LoadConsolidated(file.path(), {.mode = Mode::kMapShared});
  RILL_FUZZ_CHECK(dict.ok() == copy.ok());
  RILL_FUZZ_CHECK(dict.ok() || !shared.ok());
  std::vector<RefusedEntry> refused;
  const auto rest = LoadConsolidated(file.path(), {.refused = &refused});
  if (!dict.ok()) return;
  RILL_FUZZ_CHECK(rest.ok() && refused.empty());
  // Reads every element.
  RILL_FUZZ_CHECK(dict->CheckEqual(*copy).ok());
  if (shared.ok()) RILL_FUZZ_CHECK(dict->CheckEqual(*shared).ok());
  RILL_FUZZ_CHECK(dict->size_bytes() <= static_cast<int64_t>(bytes.size()));
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  rill::Try(bytes);
  // The JSON starts at the first brace.
  const size_t brace = bytes.find('{');
  if (brace == bytes.npos) return 0;
  std::string whole(bytes);
  rill::formats_internal::AppendLittle<int64_t>(
      static_cast<int64_t>(size - brace), &whole);
  rill::Try(whole);
  return 0;
}
