// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap_meta.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json_text.h"
#include "rill/formats/memmap_key.h"
#include "rill/formats/utf8.h"

namespace rill::formats_internal {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kReservedNames = 3;
constexpr char kTensorDictType[] = "<class 'tensordict._td.TensorDict'>";
constexpr char kNonTensorType[] =
    "<class 'tensordict.tensorclass.NonTensorData'>";

absl::Status Broken(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("LoadMemmapDirectory: \"", path, "\": ", what));
}

absl::Status Refused(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("LoadMemmapDirectory: \"", path, "\": ", what));
}

// A string for messages, of bounded length and without control characters.
std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > 80) text = absl::StrCat(text.substr(0, 77), "...");
  return text;
}

absl::StatusOr<Shape> ParseShape(absl::string_view path, absl::string_view what,
                                 const Json& json) {
  if (!json.is_array()) {
    return Broken(path, absl::StrCat(what, ": got ", Shown(json),
                                     ", want a list of sizes"));
  }
  std::vector<int64_t> sizes;
  for (const Json& size : json) {
    if (!size.is_number_integer()) {
      return Broken(
          path, absl::StrCat(what, ": got ", Shown(json), ", want integers"));
    }
    if (size.is_number_unsigned() &&
        size.get<uint64_t>() >
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Refused(path, absl::StrCat(what, ": got ", Shown(json),
                                        ", want sizes below 2^63"));
    }
    sizes.push_back(size.get<int64_t>());
    if (sizes.size() > Shape::kMaxRank) break;  // Shape::Create says so.
  }
  auto shape = Shape::Create(sizes);
  if (!shape.ok()) {
    return Refused(path, absl::StrCat(what, ": ", shape.status().message()));
  }
  return shape;
}

absl::StatusOr<MemmapMeta::Entry> ParseEntry(absl::string_view path,
                                             const std::string& name,
                                             const Json& json) {
  MemmapMeta::Entry entry;
  entry.name = name;
  const std::string what = absl::StrCat("entry ", Shown(name));
  if (const auto type = json.find("type"); type != json.end()) {
    entry.is_leaf = false;
    entry.type = type->is_string() ? type->get<std::string>() : Shown(*type);
    return entry;
  }
  const auto nested = json.find("is_nested");
  if (nested != json.end() && nested->is_boolean() && nested->get<bool>()) {
    return Refused(path, absl::StrCat(what,
                                      ": a ragged tensor, want one of a shape; "
                                      "pad it or store lists"));
  }
  const auto dtype = json.find("dtype");
  const auto shape = json.find("shape");
  if (dtype == json.end() || !dtype->is_string() || shape == json.end()) {
    return Broken(path, absl::StrCat(what, ": got ", Shown(json),
                                     ", want \"dtype\" and \"shape\""));
  }
  const std::string dtype_name = dtype->get<std::string>();
  absl::string_view bare = dtype_name;
  const bool is_torch = absl::ConsumePrefix(&bare, "torch.");
  auto parsed = DTypeFromName(bare);
  if (!is_torch || !parsed.ok()) {
    return Refused(path,
                   absl::StrCat(what, ": dtype: got ", Shown(*dtype), "; ",
                                is_torch ? parsed.status().message()
                                         : "want \"torch.<name>\""));
  }
  entry.dtype = *parsed;
  RILL_ASSIGN_OR_RETURN(entry.shape, ParseShape(path, what, *shape));
  return entry;
}

absl::StatusOr<MemmapMeta> ParseDict(absl::string_view path, const Json& json) {
  MemmapMeta meta;
  const auto shape = json.find("shape");
  if (shape == json.end()) return Broken(path, "got no \"shape\"");
  RILL_ASSIGN_OR_RETURN(meta.batch_shape, ParseShape(path, "shape", *shape));
  for (const auto& [name, value] : json.items()) {
    if (!value.is_object() || IsReservedMemmapName(name)) continue;
    RILL_ASSIGN_OR_RETURN(MemmapMeta::Entry entry,
                          ParseEntry(path, name, value));
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

absl::StatusOr<MemmapMeta> ParseNonTensor(absl::string_view path,
                                          const Json& json) {
  const auto data = json.find("data");
  if (data == json.end()) {
    return Refused(path,
                   "a Python object in \"other.pickle\"; pickles are not read, "
                   "as loading one runs code: save the value as JSON");
  }
  MemmapMeta meta;
  meta.is_dict = false;
  meta.json = data->dump(-1, ' ', /*ensure_ascii=*/false,
                         Json::error_handler_t::replace);
  return meta;
}

// Objects keep their order, and for that look a key up one by one: no object
// may have very many.
absl::StatusOr<Json> ParseJson(absl::string_view path, absl::string_view text) {
  if (const int depth = JsonDepth(text); depth > kMaxJsonDepth) {
    return Refused(path, absl::StrCat("brackets: got a depth of ", depth,
                                      ", want at most ", kMaxJsonDepth));
  }
  std::vector<int64_t> keys(kMaxJsonDepth + 2, 0);  // Of the open objects.
  bool has_too_many = false;
  const auto count = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::object_start) keys[depth + 1] = 0;
    if (event != Json::parse_event_t::key) return true;
    if (++keys[depth] <= kMaxMemmapEntries + kReservedNames) return true;
    has_too_many = true;
    return false;
  };
  Json json = Json::parse(text, count, /*allow_exceptions=*/false);
  if (has_too_many) {
    return Refused(path, absl::StrCat("keys of one object: want at most ",
                                      kMaxMemmapEntries));
  }
  if (!json.is_object()) return Broken(path, "got no JSON object");
  return json;
}

absl::Status CheckName(absl::string_view name) {
  if (IsUtf8(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("SaveMemmapDirectory: key: got ",
                   Shown(Json(std::string(name))), ", want UTF-8"));
}

}  // namespace

absl::StatusOr<MemmapMeta> ParseMemmapMeta(absl::string_view path,
                                           absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseJson(path, text));
  const auto type = json.find("_type");
  if (type == json.end() || !type->is_string()) {
    return Broken(path, "got no \"_type\"");
  }
  const std::string type_name = type->get<std::string>();
  if (type_name == kTensorDictType) return ParseDict(path, json);
  if (type_name == kNonTensorType) return ParseNonTensor(path, json);
  return Refused(path, absl::StrCat("_type: got ", Shown(*type), ", want ",
                                    kTensorDictType, " or ", kNonTensorType));
}

absl::StatusOr<std::string> FormatMemmapMeta(const MemmapMeta& meta) {
  Json json = Json::object();
  if (!meta.is_dict) {
    json["_type"] = kNonTensorType;
    json["data"] = JsonDepth(meta.json) > kMaxJsonDepth
                       ? Json(Json::value_t::discarded)
                       : Json::parse(meta.json, nullptr,
                                     /*allow_exceptions=*/false);
    if (json["data"].is_discarded()) {
      return absl::InvalidArgumentError(
          absl::StrCat("SaveMemmapDirectory: value: got ", Shown(meta.json),
                       ", want JSON text at most ", kMaxJsonDepth, " deep"));
    }
    json["_is_non_tensor"] = true;
    json["_metadata"] = nullptr;
    return json.dump(-1, ' ', /*ensure_ascii=*/false,
                     Json::error_handler_t::replace);
  }
  if (static_cast<int64_t>(meta.entries.size()) > kMaxMemmapEntries) {
    return absl::InvalidArgumentError(absl::StrCat(
        "SaveMemmapDirectory: entries of one dictionary: got ",
        meta.entries.size(), ", want at most ", kMaxMemmapEntries));
  }
  for (const MemmapMeta::Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(CheckName(entry.name));
    Json& value = json[entry.name];
    if (!entry.is_leaf) {
      value["type"] = entry.type;
      continue;
    }
    value["device"] = "cpu";
    value["shape"] = std::vector<int64_t>(entry.shape.sizes().begin(),
                                          entry.shape.sizes().end());
    value["dtype"] = absl::StrCat("torch.", DTypeName(entry.dtype));
    value["is_nested"] = false;
  }
  json["shape"] = std::vector<int64_t>(meta.batch_shape.sizes().begin(),
                                       meta.batch_shape.sizes().end());
  json["device"] = "cpu";
  json["_type"] = kTensorDictType;
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

}  // namespace rill::formats_internal
