// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/manifest.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/manifest_text.h"
#include "rill/formats/plain_path.h"

namespace rill {
namespace {

using formats_internal::LookAt;
using formats_internal::ManifestFile;
using formats_internal::ManifestText;
using formats_internal::PathKind;

constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;
constexpr int kMaxDepth = 64;

// Mapped, not read: a file may be larger than memory. One that has shrunk since
// its size was taken is DATA_LOSS.
absl::StatusOr<uint32_t> FileCrc(const std::string& path, int64_t bytes) {
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<MappedFile> file,
      MappedFile::Open(path, MappedFile::Mode::kReadOnly, bytes));
  return static_cast<uint32_t>(absl::ComputeCrc32c(absl::string_view(
      reinterpret_cast<const char*>(file->data()), file->size_bytes())));
}

// --- Writing -----------------------------------------------------------------

// All files below root/below into `files`, by paths relative to `root`, without
// the manifest itself. A file whose size `known` has is not read: a save that
// links unchanged files need not sum them again.
absl::Status ListTree(const std::string& root, const std::string& below,
                      int depth, const FileSums& known,
                      std::vector<ManifestFile>* files) {
  if (depth > kMaxDepth) {
    return InvalidArgument("WriteManifest: \"", JoinPath(root, below),
                           "\": depth: want at most ", kMaxDepth);
  }
  RILL_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      ListDirectory(below.empty() ? root : JoinPath(root, below)));
  for (const std::string& name : names) {
    if (below.empty() && name == kManifestFile) continue;
    const std::string path = below.empty() ? name : JoinPath(below, name);
    const std::string full = JoinPath(root, path);
    if (!formats_internal::IsUtf8(name)) {
      return InvalidArgument("WriteManifest: name of \"", full,
                             "\": want UTF-8");
    }
    RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt("WriteManifest", full));
    if (kind == PathKind::kDirectory) {
      RILL_RETURN_IF_ERROR(ListTree(root, path, depth + 1, known, files));
      continue;
    }
    ManifestFile entry;
    entry.path = path;
    RILL_ASSIGN_OR_RETURN(entry.bytes, FileSize(full));
    const auto sum = known.find(path);
    if (sum != known.end() && sum->second.bytes == entry.bytes) {
      entry.crc = sum->second.crc32c;
    } else {
      RILL_ASSIGN_OR_RETURN(entry.crc, FileCrc(full, entry.bytes));
    }
    files->push_back(std::move(entry));
  }
  return absl::OkStatus();
}

// A text that is not UTF-8 would make the manifest no JSON.
absl::Status CheckTexts(const Manifest& manifest) {
  bool is_utf8 = formats_internal::IsUtf8(manifest.kind);
  for (const auto& [name, value] : manifest.fields) {
    is_utf8 = is_utf8 && formats_internal::IsUtf8(name) &&
              formats_internal::IsUtf8(value);
  }
  if (is_utf8 && !manifest.kind.empty() && manifest.version >= 1) {
    return absl::OkStatus();
  }
  return InvalidArgument("WriteManifest: got kind \"", manifest.kind,
                         "\" version ", manifest.version,
                         ", want a kind, a version >= 1 and texts in UTF-8");
}

// --- Reading -----------------------------------------------------------------

absl::Status Broken(const std::string& path, absl::string_view what) {
  return DataLoss("ReadManifest: \"", path, "\": ", what);
}

std::string Hex(uint32_t crc) { return absl::StrFormat("%08x", crc); }

FileSum SumOf(const ManifestFile& file) {
  return {.bytes = file.bytes, .crc32c = file.crc};
}

// Size before checksum: a file that was cut short is found without reading it.
absl::Status CheckFile(const std::string& directory, const ManifestFile& want,
                       const FileSums& known) {
  const std::string path = JoinPath(directory, want.path);
  // No folder on the way may be a link.
  for (size_t slash = want.path.find('/'); slash != std::string::npos;
       slash = want.path.find('/', slash + 1)) {
    RILL_RETURN_IF_ERROR(
        LookAt("ReadManifest", JoinPath(directory, want.path.substr(0, slash)))
            .status());
  }
  RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt("ReadManifest", path));
  if (kind != PathKind::kFile) {
    return Broken(path, absl::StrCat("file: got none, want one of ", want.bytes,
                                     " bytes"));
  }
  RILL_ASSIGN_OR_RETURN(const int64_t bytes, FileSize(path));
  if (bytes != want.bytes) {
    return Broken(
        path, absl::StrCat("size: got ", bytes, " bytes, want ", want.bytes));
  }
  const auto sum = known.find(want.path);
  if (sum != known.end() && sum->second == SumOf(want)) {
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(const uint32_t crc, FileCrc(path, bytes));
  if (crc != want.crc) {
    return Broken(path, absl::StrCat("CRC32C: got ", Hex(crc), ", want ",
                                     Hex(want.crc), "; the file was changed"));
  }
  return absl::OkStatus();
}

// Without a `kind`, `max_version` is not looked at.
absl::StatusOr<ManifestText> ReadText(const std::string& directory,
                                      std::optional<absl::string_view> kind,
                                      int64_t max_version) {
  const std::string path = JoinPath(directory, kManifestFile);
  RILL_ASSIGN_OR_RETURN(const PathKind found, LookAt("ReadManifest", path));
  if (found != PathKind::kFile) {
    return NotFound("ReadManifest: \"", path, "\": got none, want that of ",
                    kind ? absl::StrCat("a ", *kind) : "any kind");
  }
  RILL_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(path, kMaxManifestBytes));
  return formats_internal::ParseManifestText(path, text, kind, max_version);
}

FileSums SumsOf(const ManifestText& manifest) {
  FileSums sums;
  for (const ManifestFile& file : manifest.files) {
    sums[file.path] = SumOf(file);
  }
  return sums;
}

}  // namespace

absl::StatusOr<std::string> Manifest::Text(const std::string& name) const {
  const auto found = fields.find(name);
  if (found != fields.end()) return found->second;
  return DataLoss("Manifest::Text: field \"", name, "\" of a ", kind,
                  ": got none, want one");
}

absl::StatusOr<int64_t> Manifest::Int(const std::string& name) const {
  RILL_ASSIGN_OR_RETURN(const std::string text, Text(name));
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return DataLoss("Manifest::Int: field \"", name, "\" of a ", kind, ": got \"",
                  text.substr(0, 80), "\", want an integer");
}

void Manifest::SetInt(const std::string& name, int64_t value) {
  fields[name] = absl::StrCat(value);
}

absl::Status WriteManifest(const Manifest& manifest,
                           const std::string& directory) {
  FileSums none;
  return WriteManifest(manifest, directory, &none);
}

absl::Status WriteManifest(const Manifest& manifest,
                           const std::string& directory, FileSums* sums) {
  RILL_RETURN_IF_ERROR(CheckTexts(manifest));
  ManifestText text = {manifest.kind, manifest.version, manifest.fields, {}};
  RILL_RETURN_IF_ERROR(
      ListTree(directory, "", /*depth=*/1, *sums, &text.files));
  // The walk goes through folders where they stand among the names, "a/b"
  // before "a.c". By whole paths the order does not depend on that.
  std::sort(text.files.begin(), text.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) {
              return a.path < b.path;
            });
  *sums = SumsOf(text);
  return WriteFileAtomically(JoinPath(directory, kManifestFile),
                             FormatManifestText(text));
}

absl::Status WriteManifestAlone(const Manifest& manifest,
                                const std::string& directory) {
  RILL_RETURN_IF_ERROR(CheckTexts(manifest));
  return WriteFileAtomically(
      JoinPath(directory, kManifestFile),
      formats_internal::FormatManifestText(
          {manifest.kind, manifest.version, manifest.fields, {}}));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      absl::string_view kind,
                                      int64_t max_version) {
  FileSums none;
  return ReadManifest(directory, kind, max_version, &none);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      absl::string_view kind,
                                      int64_t max_version, FileSums* sums) {
  RILL_ASSIGN_OR_RETURN(const ManifestText manifest,
                        ReadText(directory, kind, max_version));
  for (const ManifestFile& file : manifest.files) {
    RILL_RETURN_IF_ERROR(CheckFile(directory, file, *sums));
  }
  *sums = SumsOf(manifest);
  return Manifest{manifest.kind, manifest.version, manifest.fields};
}

absl::StatusOr<FileSums> ReadFileSums(const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(const ManifestText manifest,
                        ReadText(directory, std::nullopt, /*max_version=*/0));
  return SumsOf(manifest);
}

}  // namespace rill
