// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/manifest_text.h"

#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/json_text.h"
#include "rill/formats/plain_path.h"

namespace rill::formats_internal {
namespace {

// How the file ends: the checksum of all bytes before. At the end, so that it
// is checked on the raw text, before a parser sees a byte. A text that was cut
// short has lost it.
constexpr absl::string_view kSealStart = ",\"crc32c\":\"";
constexpr absl::string_view kSealEnd = "\"}\n";
constexpr size_t kSealBytes = kSealStart.size() + 8 + kSealEnd.size();

std::string Hex(uint32_t crc) { return absl::StrFormat("%08x", crc); }

std::string Seal(absl::string_view text) {
  return absl::StrCat(kSealStart,
                      Hex(static_cast<uint32_t>(absl::ComputeCrc32c(text))),
                      kSealEnd);
}

absl::Status Broken(absl::string_view path, absl::string_view what) {
  return DataLoss("ReadManifest: \"", path, "\": ", what);
}

// A value of type T at `name`, or null.
template <typename T>
const T* Member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : found->template get_ptr<const T*>();
}

absl::StatusOr<nlohmann::json> ParseSealed(absl::string_view path,
                                           absl::string_view text) {
  const size_t body = text.size() < kSealBytes ? 0 : text.size() - kSealBytes;
  const absl::string_view seal = text.substr(body);
  const std::string want = Seal(text.substr(0, body));
  if (seal != want) {
    return Broken(path,
                  "the seal at its end is not that of its text; the file "
                  "was changed or cut short");
  }
  if (JsonDepth(text) > kMaxJsonDepth) {
    return Broken(path, "brackets are too deep");
  }
  nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Broken(path, "got no JSON object");
  return json;
}

// Kind, version and fields, which every version of the format has: enough to
// say that a newer program wrote it. The files come after that check.
absl::StatusOr<ManifestText> ParseHead(absl::string_view path,
                                       const nlohmann::json& json) {
  using Json = nlohmann::json;
  ManifestText manifest;
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

absl::StatusOr<std::vector<ManifestFile>> ParseFiles(
    absl::string_view path, const nlohmann::json& json) {
  using Json = nlohmann::json;
  const auto* list = Member<Json::array_t>(json, "files");
  if (list == nullptr) return Broken(path, "want a list \"files\"");
  std::vector<ManifestFile> files;
  for (const Json& file : *list) {
    ManifestFile entry;
    const auto* name = Member<Json::string_t>(file, "path");
    const auto* bytes = Member<Json::number_unsigned_t>(file, "bytes");
    const auto* crc = Member<Json::string_t>(file, "crc32c");
    if (name == nullptr || bytes == nullptr || *bytes > INT64_MAX ||
        crc == nullptr || crc->size() != 8 ||
        !absl::SimpleHexAtoi(*crc, &entry.crc)) {
      return Broken(path, "files: want \"path\", \"bytes\" and \"crc32c\"");
    }
    // The seal is no signature. A text from elsewhere could list "../x", and a
    // reader would look at files outside.
    if (!IsPlainRelativePath(*name)) {
      return Broken(path, absl::StrCat("files: got path \"", *name,
                                       "\", want one below the directory"));
    }
    entry.path = *name;
    entry.bytes = static_cast<int64_t>(*bytes);
    files.push_back(std::move(entry));
  }
  return files;
}

}  // namespace

absl::StatusOr<ManifestText> ParseManifestText(
    absl::string_view path, absl::string_view text,
    std::optional<absl::string_view> kind, int64_t max_version) {
  RILL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseSealed(path, text));
  RILL_ASSIGN_OR_RETURN(ManifestText manifest, ParseHead(path, json));
  if (kind && (manifest.kind != *kind || manifest.version > max_version)) {
    return FailedPrecondition(
        "ReadManifest: \"", path, "\": got a ", manifest.kind, " of version ",
        manifest.version, ", want a ", *kind, " of version at most ",
        max_version, manifest.kind == *kind ? "; a newer Rill wrote it" : "");
  }
  RILL_ASSIGN_OR_RETURN(manifest.files, ParseFiles(path, json));
  return manifest;
}

std::string FormatManifestText(const ManifestText& manifest) {
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
  for (const ManifestFile& file : manifest.files) {
    json["files"].push_back({{"path", file.path},
                             {"bytes", file.bytes},
                             {"crc32c", Hex(file.crc)}});
  }
  std::string result = json.dump();
  result.pop_back();  // The closing brace comes back with the seal.
  return result + Seal(result);
}

}  // namespace rill::formats_internal
