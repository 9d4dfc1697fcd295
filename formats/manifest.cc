// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/manifest.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/json_text.h"
#include "rill/formats/plain_path.h"
#include "rill/formats/utf8.h"

namespace rill {
namespace {

using formats_internal::LookAt;
using formats_internal::PathKind;

constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;
constexpr int kMaxDepth = 64;
// How the file ends: the checksum of all bytes before.
constexpr absl::string_view kSealStart = ",\"crc32c\":\"";
constexpr absl::string_view kSealEnd = "\"}\n";
constexpr size_t kSealBytes = kSealStart.size() + 8 + kSealEnd.size();

struct FileEntry {
  std::string path;  // Below the directory.
  int64_t bytes = 0;
  uint32_t crc = 0;
};

std::string Hex(uint32_t crc) { return absl::StrFormat("%08x", crc); }

std::string Seal(absl::string_view text) {
  return absl::StrCat(kSealStart,
                      Hex(static_cast<uint32_t>(absl::ComputeCrc32c(text))),
                      kSealEnd);
}

absl::StatusOr<uint32_t> FileCrc(const std::string& path, int64_t bytes) {
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<MappedFile> file,
      MappedFile::Open(path, MappedFile::Mode::kReadOnly, bytes));
  return static_cast<uint32_t>(absl::ComputeCrc32c(absl::string_view(
      reinterpret_cast<const char*>(file->data()), file->size_bytes())));
}

// --- Writing -----------------------------------------------------------------

absl::Status ListTree(const std::string& root, const std::string& below,
                      int depth, std::vector<FileEntry>* files) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("WriteManifest: \"", JoinPath(root, below),
                     "\": depth: want at most ", kMaxDepth));
  }
  RILL_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      ListDirectory(below.empty() ? root : JoinPath(root, below)));
  for (const std::string& name : names) {
    if (below.empty() && name == kManifestFile) continue;
    const std::string path = below.empty() ? name : JoinPath(below, name);
    const std::string full = JoinPath(root, path);
    if (!formats_internal::IsUtf8(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("WriteManifest: name of \"", full, "\": want UTF-8"));
    }
    RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt("WriteManifest", full));
    if (kind == PathKind::kDirectory) {
      RILL_RETURN_IF_ERROR(ListTree(root, path, depth + 1, files));
      continue;
    }
    FileEntry entry;
    entry.path = path;
    RILL_ASSIGN_OR_RETURN(entry.bytes, FileSize(full));
    RILL_ASSIGN_OR_RETURN(entry.crc, FileCrc(full, entry.bytes));
    files->push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(const Manifest& manifest) {
  bool is_utf8 = formats_internal::IsUtf8(manifest.kind);
  for (const auto& [name, value] : manifest.fields) {
    is_utf8 = is_utf8 && formats_internal::IsUtf8(name) &&
              formats_internal::IsUtf8(value);
  }
  if (is_utf8 && !manifest.kind.empty() && manifest.version >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "WriteManifest: got kind \"", manifest.kind, "\" version ",
      manifest.version, ", want a kind, a version >= 1 and texts in UTF-8"));
}

// --- Reading -----------------------------------------------------------------

absl::Status Broken(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("ReadManifest: \"", path, "\": ", what));
}

// A value of type T at `name`, or null.
template <typename T>
const T* Member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : found->template get_ptr<const T*>();
}

absl::StatusOr<nlohmann::json> ParseSealed(const std::string& path,
                                           const std::string& text) {
  const size_t body = text.size() < kSealBytes ? 0 : text.size() - kSealBytes;
  const absl::string_view seal = absl::string_view(text).substr(body);
  const std::string want = Seal(absl::string_view(text).substr(0, body));
  if (seal != want) {
    return Broken(path,
                  "the seal at its end is not that of its text; the file "
                  "was changed or cut short");
  }
  if (formats_internal::JsonDepth(text) > formats_internal::kMaxJsonDepth) {
    return Broken(path, "brackets are too deep");
  }
  nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Broken(path, "got no JSON object");
  return json;
}

absl::StatusOr<Manifest> ParseManifest(const std::string& path,
                                       const nlohmann::json& json) {
  using Json = nlohmann::json;
  Manifest manifest;
  const auto* kind = Member<Json::string_t>(json, "kind");
  const auto* version = Member<Json::number_unsigned_t>(json, "version");
  const auto* fields = Member<Json::object_t>(json, "fields");
  if (kind == nullptr || version == nullptr || *version < 1 ||
      *version > INT64_MAX || fields == nullptr) {
    return Broken(path, "want \"kind\", \"version\" >= 1 and \"fields\"");
  }
  manifest.kind = *kind;
  manifest.version = static_cast<int64_t>(*version);
  for (const auto& [name, value] : *fields) {
    if (!value.is_string()) {
      return Broken(path, absl::StrCat("field \"", name, "\": want a string"));
    }
    manifest.fields[name] = value.get<std::string>();
  }
  return manifest;
}

absl::StatusOr<std::vector<FileEntry>> ParseFiles(const std::string& path,
                                                  const nlohmann::json& json) {
  using Json = nlohmann::json;
  const auto* list = Member<Json::array_t>(json, "files");
  if (list == nullptr) return Broken(path, "want a list \"files\"");
  std::vector<FileEntry> files;
  for (const Json& file : *list) {
    FileEntry entry;
    const auto* name = Member<Json::string_t>(file, "path");
    const auto* bytes = Member<Json::number_unsigned_t>(file, "bytes");
    const auto* crc = Member<Json::string_t>(file, "crc32c");
    if (name == nullptr || bytes == nullptr || *bytes > INT64_MAX ||
        crc == nullptr || crc->size() != 8 ||
        !absl::SimpleHexAtoi(*crc, &entry.crc)) {
      return Broken(path, "files: want \"path\", \"bytes\" and \"crc32c\"");
    }
    if (!formats_internal::IsPlainRelativePath(*name)) {
      return Broken(path, absl::StrCat("files: got path \"", *name,
                                       "\", want one below the directory"));
    }
    entry.path = *name;
    entry.bytes = static_cast<int64_t>(*bytes);
    files.push_back(std::move(entry));
  }
  return files;
}

absl::Status CheckFile(const std::string& directory, const FileEntry& want) {
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
  RILL_ASSIGN_OR_RETURN(const uint32_t crc, FileCrc(path, bytes));
  if (crc != want.crc) {
    return Broken(path, absl::StrCat("CRC32C: got ", Hex(crc), ", want ",
                                     Hex(want.crc), "; the file was changed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Manifest::Text(const std::string& name) const {
  const auto found = fields.find(name);
  if (found != fields.end()) return found->second;
  return absl::DataLossError(absl::StrCat("Manifest::Text: field \"", name,
                                          "\" of a ", kind,
                                          ": got none, want one"));
}

absl::StatusOr<int64_t> Manifest::Int(const std::string& name) const {
  RILL_ASSIGN_OR_RETURN(const std::string text, Text(name));
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return absl::DataLossError(
      absl::StrCat("Manifest::Int: field \"", name, "\" of a ", kind,
                   ": got \"", text.substr(0, 80), "\", want an integer"));
}

void Manifest::SetInt(const std::string& name, int64_t value) {
  fields[name] = absl::StrCat(value);
}

absl::Status WriteManifest(const Manifest& manifest,
                           const std::string& directory) {
  RILL_RETURN_IF_ERROR(CheckTexts(manifest));
  std::vector<FileEntry> files;
  RILL_RETURN_IF_ERROR(ListTree(directory, "", /*depth=*/1, &files));
  std::sort(
      files.begin(), files.end(),
      [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  nlohmann::ordered_json json;
  json["kind"] = manifest.kind;
  json["version"] = manifest.version;
  json["fields"] = nlohmann::ordered_json::object();
  // Not by operator[]: an ordered object looks names up one by one.
  auto& fields = json["fields"].get_ref<nlohmann::ordered_json::object_t&>();
  for (const auto& [name, value] : manifest.fields) {
    fields.emplace_back(name, value);
  }
  json["files"] = nlohmann::ordered_json::array();
  for (const FileEntry& file : files) {
    json["files"].push_back({{"path", file.path},
                             {"bytes", file.bytes},
                             {"crc32c", Hex(file.crc)}});
  }
  std::string text = json.dump();
  text.pop_back();  // The closing brace comes back with the seal.
  text += Seal(text);
  return WriteFileAtomically(JoinPath(directory, kManifestFile), text);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      absl::string_view kind,
                                      int64_t max_version) {
  const std::string path = JoinPath(directory, kManifestFile);
  RILL_ASSIGN_OR_RETURN(const PathKind found, LookAt("ReadManifest", path));
  if (found != PathKind::kFile) {
    return absl::NotFoundError(absl::StrCat(
        "ReadManifest: \"", path, "\": got none, want that of a ", kind));
  }
  RILL_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(path, kMaxManifestBytes));
  RILL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseSealed(path, text));
  RILL_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(path, json));
  if (manifest.kind != kind || manifest.version > max_version) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ReadManifest: \"", path, "\": got a ", manifest.kind, " of version ",
        manifest.version, ", want a ", kind, " of version at most ",
        max_version, manifest.kind == kind ? "; a newer Rill wrote it" : ""));
  }
  RILL_ASSIGN_OR_RETURN(const std::vector<FileEntry> files,
                        ParseFiles(path, json));
  for (const FileEntry& file : files) {
    RILL_RETURN_IF_ERROR(CheckFile(directory, file));
  }
  return manifest;
}

}  // namespace rill
