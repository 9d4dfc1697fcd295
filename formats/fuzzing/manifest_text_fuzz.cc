// SPDX-License-Identifier: Apache-2.0
// Texts as rill.json, as they are and with the seal that they should have:
// what is read can be written and reads the same.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/crc/crc32c.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "rill/formats/manifest_text.h"
#include "rill/formats/plain_path.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

constexpr absl::string_view kKind = "storage";

void Try(absl::string_view text) {
  const auto manifest = ParseManifestText("rill.json", text, std::nullopt, 0);
  const auto of_kind = ParseManifestText("rill.json", text, kKind, 3);
  RILL_FUZZ_CHECK(of_kind.ok() == (manifest.ok() && manifest->kind == kKind &&
                                   manifest->version <= 3));
  if (!manifest.ok()) return;
  RILL_FUZZ_CHECK(manifest->version >= 1);
  for (const ManifestFile& file : manifest->files) {
    RILL_FUZZ_CHECK(IsPlainRelativePath(file.path) && file.bytes >= 0);
  }
  const std::string written = FormatManifestText(*manifest);
  const auto again = ParseManifestText("rill.json", written, manifest->kind,
                                       /*max_version=*/manifest->version);
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK(again->version == manifest->version);
  RILL_FUZZ_CHECK(again->fields == manifest->fields);
  RILL_FUZZ_CHECK(again->files.size() == manifest->files.size());
  for (size_t i = 0; i < again->files.size(); ++i) {
    RILL_FUZZ_CHECK(again->files[i].path == manifest->files[i].path);
    RILL_FUZZ_CHECK(again->files[i].bytes == manifest->files[i].bytes);
    RILL_FUZZ_CHECK(again->files[i].crc == manifest->files[i].crc);
  }
  // Any changed byte breaks the seal.
  std::string changed = written;
  changed[changed.size() / 2] ^= 1;
  RILL_FUZZ_CHECK(
      !ParseManifestText("rill.json", changed, std::nullopt, 0).ok());
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  rill::formats_internal::Try(text);
  const auto crc = static_cast<uint32_t>(absl::ComputeCrc32c(text));
  rill::formats_internal::Try(absl::StrCat(
      text, ",\"crc32c\":\"", absl::StrFormat("%08x", crc), "\"}\n"));
  return 0;
}
