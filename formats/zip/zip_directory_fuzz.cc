// SPDX-License-Identifier: Apache-2.0
// Bytes as zip files: contents lie inside the file, apart from each other, and
// under names that do not lead out; packed again they are found again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/formats/zip/zip_layout.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

void CheckEntries(std::vector<ZipEntry> entries, int64_t size) {
  std::sort(
      entries.begin(), entries.end(),
      [](const ZipEntry& a, const ZipEntry& b) { return a.offset < b.offset; });
  std::set<std::string> names;
  int64_t end = 0;
  for (const ZipEntry& entry : entries) {
    RILL_FUZZ_CHECK(IsPlainRelativePath(entry.name) && IsUtf8(entry.name));
    RILL_FUZZ_CHECK(names.insert(entry.name).second);
    RILL_FUZZ_CHECK(entry.packed_size >= 0 && entry.offset >= end);
    RILL_FUZZ_CHECK(entry.offset <= size &&
                    entry.packed_size <= size - entry.offset);
    RILL_FUZZ_CHECK(entry.is_deflated || entry.size == entry.packed_size);
    RILL_FUZZ_CHECK(entry.size >= 0 && entry.size / 1032 <= entry.packed_size);
    end = entry.offset + entry.packed_size;
  }
}

void CheckPackedAgain(const std::vector<ZipEntry>& entries,
                      absl::string_view zip) {
  ZipLayout layout;
  for (const ZipEntry& entry : entries) {
    RILL_FUZZ_CHECK(
        layout.Add(entry.name, entry.packed_size, entry.size % 2 == 0).ok());
  }
  std::string packed;
  for (int i = 0; i < layout.size(); ++i) {
    layout.SetCrc(i, entries[i].crc);
    RILL_FUZZ_CHECK(static_cast<int64_t>(packed.size()) ==
                    layout.header_offset(i));
    packed += layout.Header(i);
    packed += zip.substr(entries[i].offset, entries[i].packed_size);
  }
  packed += layout.End();
  RILL_FUZZ_CHECK(static_cast<int64_t>(packed.size()) == layout.total_bytes());
  const auto again = ParseZipDirectory("Fuzz", packed);
  RILL_FUZZ_CHECK(again.ok() && again->size() == entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    RILL_FUZZ_CHECK((*again)[i].name == entries[i].name);
    RILL_FUZZ_CHECK((*again)[i].crc == entries[i].crc);
    RILL_FUZZ_CHECK(packed.substr((*again)[i].offset, (*again)[i].size) ==
                    zip.substr(entries[i].offset, entries[i].packed_size));
  }
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::formats_internal;  // NOLINT: the target's only user.
  const absl::string_view zip(reinterpret_cast<const char*>(data), size);
  const auto entries = ParseZipDirectory("Fuzz", zip);
  if (!entries.ok()) return 0;
  CheckEntries(*entries, static_cast<int64_t>(size));
  CheckPackedAgain(*entries, zip);
  return 0;
}
