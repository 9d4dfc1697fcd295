// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/lenient_manifest.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/manifest_text.h"

namespace rill::inspect {
namespace {

using formats_internal::ManifestFile;
using formats_internal::ManifestText;

absl::StatusOr<ManifestText> ReadText(const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestFile);
  RILL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  // Any kind and version: people want to see what is there.
  return formats_internal::ParseManifestText(path, text, std::nullopt,
                                             /*max_version=*/0);
}

absl::Status CheckFile(const std::string& path, const ManifestFile& want) {
  RILL_ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
  if (bytes != want.bytes) {
    return DataLoss("\"", path, "\": size: got ", bytes, ", want ", want.bytes,
                    " bytes");
  }
  // Nothing can be mapped of it, and its size was all it had.
  if (bytes == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<MappedFile> file,
      // Mapped: a file of any size is checked without memory for it.
      MappedFile::Open(path, MappedFile::Mode::kReadOnly, bytes));
  const auto crc = static_cast<uint32_t>(absl::ComputeCrc32c(
      absl::string_view(reinterpret_cast<const char*>(file->data()),
                        static_cast<size_t>(bytes))));
  if (crc == want.crc) return absl::OkStatus();
  return DataLoss("\"", path, "\": CRC32C: got ", absl::Hex(crc), ", want ",
                  absl::Hex(want.crc));
}

}  // namespace

Manifest ReadLenientManifest(const std::string& directory,
                             std::vector<std::string>* damage) {
  absl::StatusOr<ManifestText> text = ReadText(directory);
  if (!text.ok()) {
    damage->push_back(std::string(text.status().message()));
    return {};
  }
  for (const ManifestFile& file : text->files) {
    const absl::Status status = CheckFile(JoinPath(directory, file.path), file);
    if (!status.ok()) damage->push_back(std::string(status.message()));
  }
  return {text->kind, text->version, std::move(text->fields)};
}

}  // namespace rill::inspect
