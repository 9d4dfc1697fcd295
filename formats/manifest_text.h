// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MANIFEST_TEXT_H_
#define RILL_FORMATS_MANIFEST_TEXT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rill::formats_internal {

// The content of a "rill.json", without a look at the files that it lists.
// docs/formats/manifest.md. Thread-safety: thread-compatible.
struct ManifestFile {
  std::string path;  // Below the directory; IsPlainRelativePath.
  int64_t bytes = 0;
  uint32_t crc = 0;
};
struct ManifestText {
  std::string kind;
  int64_t version = 1;
  std::map<std::string, std::string> fields;
  std::vector<ManifestFile> files;
};

// `path` names the file in errors: DATA_LOSS where the seal is not that of the
// text, or the text is no manifest. FAILED_PRECONDITION where it is one of
// another kind or a newer version, whose files may be listed in another way.
// Without a `kind`, any kind and version will do.
absl::StatusOr<ManifestText> ParseManifestText(
    absl::string_view path, absl::string_view text,
    std::optional<absl::string_view> kind, int64_t max_version);

// Sealed. The texts are UTF-8.
std::string FormatManifestText(const ManifestText& text);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MANIFEST_TEXT_H_
