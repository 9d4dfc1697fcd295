// SPDX-License-Identifier: Apache-2.0
// Bytes as .tdz archives, as they are and packed again, stored and with
// checksums that are right: all modes load the same, or fail the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/formats/fuzzing/fuzz_file.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/inflate.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/formats/zip/zip_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

using Mode = LoadMemmapOptions::Mode;

void Try(absl::string_view bytes) {
  const formats_internal::FuzzFile file(bytes);
  const auto dict = LoadTdz(file.path());
  const auto copy = LoadTdz(file.path(), {.mode = Mode::kCopy});
  const auto shared = LoadTdz(file.path(), {.mode = Mode::kMapShared});
  RILL_FUZZ_CHECK(dict.ok() == copy.ok());
  RILL_FUZZ_CHECK(dict.ok() || !shared.ok());
  std::vector<RefusedEntry> refused;
  const auto rest = LoadTdz(file.path(), {.refused = &refused});
  if (!dict.ok()) return;
  RILL_FUZZ_CHECK(rest.ok() && refused.empty());
  // Reads every element.
  RILL_FUZZ_CHECK(dict->CheckEqual(*copy).ok());
  if (shared.ok()) RILL_FUZZ_CHECK(dict->CheckEqual(*shared).ok());
}

// The content of `entry`; where that cannot be inflated, its bytes as they are.
std::string Content(const formats_internal::ZipEntry& entry,
                    absl::string_view bytes) {
  const absl::string_view packed =
      bytes.substr(entry.offset, entry.packed_size);
  if (!entry.is_deflated) return std::string(packed);
  std::string whole(entry.size, '\0');
  std::string head(entry.size / 2, '\0');
  const absl::Status status = formats_internal::InflateEntry(
      "Fuzz", entry, bytes, absl::MakeSpan(whole));
  const absl::Status again = formats_internal::InflateEntry(
      "Fuzz", entry, bytes, absl::MakeSpan(head));
  RILL_FUZZ_CHECK(again.code() == status.code());
  if (!status.ok()) return std::string(packed);
  RILL_FUZZ_CHECK(absl::StartsWith(whole, head));
  return whole;
}

std::string Repacked(absl::string_view bytes) {
  const auto entries = formats_internal::ParseZipDirectory("Fuzz", bytes);
  if (!entries.ok()) return "";
  formats_internal::ZipLayout layout;
  std::string packed;
  for (const formats_internal::ZipEntry& entry : *entries) {
    const std::string content = Content(entry, bytes);
    RILL_FUZZ_CHECK(
        layout.Add(entry.name, content.size(), /*is_aligned=*/true).ok());
    const int i = layout.size() - 1;
    layout.SetCrc(i, formats_internal::ExtendCrc32(0, content));
    packed += layout.Header(i);
    packed += content;
  }
  return packed + layout.End();
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  rill::Try(bytes);
  const std::string packed = rill::Repacked(bytes);
  if (!packed.empty()) rill::Try(packed);
  return 0;
}
