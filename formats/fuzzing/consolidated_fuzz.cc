// SPDX-License-Identifier: Apache-2.0
// Bytes as consolidated files, as they are and with the right length of the
// JSON behind them. All modes load the same, as a dictionary or a lazy stack,
// or fail the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/fuzzing/fuzz_file.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

using Mode = LoadMemmapOptions::Mode;

int64_t Size(const TensorDict& dict) { return dict.size_bytes(); }

int64_t Size(const LazyStack& stack) {
  int64_t bytes = 0;
  for (const TensorDict& member : stack.members()) bytes += Size(member);
  return bytes;
}

template <typename T>
void TryAs(const formats_internal::FuzzFile& file, size_t size,
           absl::StatusOr<T> (*load)(const std::string&,
                                     const LoadMemmapOptions&)) {
  const auto saved = load(file.path(), {});
  const auto copy = load(file.path(), {.mode = Mode::kCopy});
  const auto shared = load(file.path(), {.mode = Mode::kMapShared});
  RILL_FUZZ_CHECK(saved.ok() == copy.ok());
  RILL_FUZZ_CHECK(saved.ok() || !shared.ok());
  std::vector<RefusedEntry> refused;
  const auto rest = load(file.path(), {.refused = &refused});
  if (!saved.ok()) return;
  RILL_FUZZ_CHECK(rest.ok() && refused.empty());
  // Reads every element.
  RILL_FUZZ_CHECK(saved->CheckEqual(*copy).ok());
  if (shared.ok()) RILL_FUZZ_CHECK(saved->CheckEqual(*shared).ok());
  RILL_FUZZ_CHECK(Size(*saved) <= static_cast<int64_t>(size));
}

void Try(absl::string_view bytes) {
  const formats_internal::FuzzFile file(bytes);
  TryAs(file, bytes.size(), LoadConsolidated);
  TryAs(file, bytes.size(), LoadConsolidatedLazyStack);
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
