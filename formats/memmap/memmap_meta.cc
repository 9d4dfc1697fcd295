// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_meta.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/json/json_text.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/memmap/memmap_key.h"

namespace rill::formats_internal {
namespace {

using Json = nlohmann::ordered_json;

// Python's texts of the classes: nothing else in a file says what it is.
constexpr char kTensorDictType[] = "<class 'tensordict._td.TensorDict'>";
constexpr char kNonTensorType[] =
    "<class 'tensordict.tensorclass.NonTensorData'>";
constexpr char kMetaDataType[] = "<class 'tensordict.tensorclass.MetaData'>";
constexpr char kValueStackType[] =
    "<class 'tensordict.tensorclass.NonTensorStack'>";
constexpr char kLazyStackType[] =
    "<class 'tensordict._lazy.LazyStackedTensorDict'>";
// TorchRL puts values that are no JSON there.
constexpr char kValuePickle[] = "other.pickle";
constexpr char kStackPickle[] = "pickle.pkl";

absl::Status Broken(absl::string_view where, absl::string_view what) {
  return DataLoss(where, ": ", what);
}

// One entry of a dictionary. A folder's entry only names it: its own meta.json
// says what it is.
absl::StatusOr<MemmapMeta::Entry> ParseEntry(absl::string_view where,
                                             const std::string& name,
                                             const Json& json) {
  MemmapMeta::Entry entry;
  entry.name = name;
  const std::string what = absl::StrCat("entry ", ShownJson(name));
  if (const auto type = json.find("type"); type != json.end()) {
    entry.is_leaf = false;
    entry.type =
        type->is_string() ? type->get<std::string>() : ShownJson(*type);
    return entry;
  }
  const auto nested = json.find("is_nested");
  entry.is_ragged =
      nested != json.end() && nested->is_boolean() && nested->get<bool>();
  const auto dtype = json.find("dtype");
  const auto shape = json.find("shape");
  if (dtype == json.end() || !dtype->is_string() || shape == json.end()) {
    return Broken(where, absl::StrCat(what, ": got ", ShownJson(json),
                                      ", want \"dtype\" and \"shape\""));
  }
  RILL_ASSIGN_OR_RETURN(entry.shape, ParseJsonShape(where, what, *shape));
  if (entry.is_ragged && entry.shape.rank() != 2) {
    return Broken(where, absl::StrCat(what, ": shape: got ", ShownJson(*shape),
                                      ", want the two sizes of a table of "
                                      "shapes"));
  }
  const std::string dtype_name = dtype->get<std::string>();
  absl::string_view bare = dtype_name;
  const bool is_torch = absl::ConsumePrefix(&bare, "torch.");
  const auto parsed = DTypeFromName(bare);
  if (is_torch && parsed.ok()) {
    entry.dtype = *parsed;
  } else {
    entry.refusal = absl::StrCat(
        "dtype: got ", ShownJson(*dtype), "; ",
        is_torch ? parsed.status().message() : "want \"torch.<name>\"");
  }
  return entry;
}

// TorchRL writes the attributes of a dictionary beside its entries, in one
// object. An entry differs from them by its form.
// Members that are no objects, and the three reserved names, are no entries.
absl::StatusOr<MemmapMeta> ParseDict(absl::string_view where,
                                     const Json& json) {
  MemmapMeta meta;
  const auto shape = json.find("shape");
  if (shape == json.end()) return Broken(where, "got no \"shape\"");
  RILL_ASSIGN_OR_RETURN(meta.batch_shape,
                        ParseJsonShape(where, "shape", *shape));
  for (const auto& [name, value] : json.items()) {
    if (!value.is_object() || IsReservedMemmapName(name)) continue;
    RILL_ASSIGN_OR_RETURN(MemmapMeta::Entry entry,
                          ParseEntry(where, name, value));
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

MemmapMeta ParseValue(const Json& json) {
  MemmapMeta meta;
  meta.kind = MemmapMeta::Kind::kValue;
  if (const auto data = json.find("data"); data != json.end()) {
    meta.json = JsonText(*data);
  } else {
    meta.pickle = kValuePickle;
  }
  return meta;
}

// A number of 2^63 and more reads as a negative one, and is refused as such.
absl::StatusOr<int> ParseStackDim(absl::string_view where, const Json& json) {
  const auto dim = json.find("stack_dim");
  if (dim == json.end() || !dim->is_number_integer() ||
      dim->get<int64_t>() < 0 || dim->get<int64_t>() > Shape::kMaxRank) {
    return Broken(where,
                  absl::StrCat("stack_dim: got ",
                               dim == json.end() ? "none" : ShownJson(*dim),
                               ", want one in [0, ", Shape::kMaxRank, "]"));
  }
  return dim->get<int>();
}

// Values of rows. The name of a pickle in place of the list is kept, for the
// refusal.
absl::StatusOr<MemmapMeta> ParseValueStack(absl::string_view where,
                                           const Json& json) {
  MemmapMeta meta;
  meta.kind = MemmapMeta::Kind::kValueStack;
  meta.type = kValueStackType;
  RILL_ASSIGN_OR_RETURN(meta.stack_dim, ParseStackDim(where, json));
  const auto data = json.find("data");
  if (data != json.end() && data->is_array()) {
    meta.json = JsonText(*data);
  } else if (data != json.end() && *data == kStackPickle) {
    meta.pickle = kStackPickle;
  } else {
    return Broken(where,
                  absl::StrCat("data: got ",
                               data == json.end() ? "none" : ShownJson(*data),
                               ", want a list"));
  }
  return meta;
}

// A class that is not known: its fields are kept as JSON, in case a folder of
// tensors is beside them (ReadOther decides).
MemmapMeta ParseOther(const Json& json) {
  MemmapMeta meta;
  meta.kind = MemmapMeta::Kind::kOther;
  for (const auto& [name, value] : json.items()) {
    if (name == "_type") {
      meta.type = ShownJson(value);
    } else {
      meta.fields.emplace_back(name, JsonText(value));
    }
  }
  return meta;
}

absl::Status CheckName(absl::string_view caller, absl::string_view name) {
  if (IsUtf8(name)) return absl::OkStatus();
  return InvalidArgument(caller, ": key: got ",
                         ShownJson(Json(std::string(name))), ", want UTF-8");
}

// Parsed, as a text that is no JSON would break the file around it.
absl::StatusOr<Json> ValueJson(absl::string_view caller,
                               absl::string_view text) {
  auto json = ParseBoundedJson(absl::StrCat(caller, ": value"), text);
  if (json.ok()) return json;
  return InvalidArgument(json.status().message());
}

Json ShapeJson(const Shape& shape) {
  return std::vector<int64_t>(shape.sizes().begin(), shape.sizes().end());
}

absl::StatusOr<Json> DictJson(absl::string_view caller,
                              const MemmapMeta& meta) {
  if (static_cast<int64_t>(meta.entries.size()) > kMaxMemmapEntries) {
    return InvalidArgument(caller, ": entries of one dictionary: got ",
                           meta.entries.size(), ", want at most ",
                           kMaxMemmapEntries);
  }
  Json json = Json::object();
  for (const MemmapMeta::Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(CheckName(caller, entry.name));
    Json& value = json[entry.name];
    if (!entry.is_leaf) {
      value["type"] = entry.type;
      continue;
    }
    // In this order: the text is the one that TorchRL writes, byte for byte.
    value["device"] = "cpu";
    value["shape"] = ShapeJson(entry.shape);
    value["dtype"] = absl::StrCat("torch.", DTypeName(entry.dtype));
    value["is_nested"] = entry.is_ragged;
  }
  json["shape"] = ShapeJson(meta.batch_shape);
  json["device"] = "cpu";
  json["_type"] = kTensorDictType;
  return json;
}

}  // namespace

absl::StatusOr<MemmapMeta> ParseMemmapMeta(absl::string_view where,
                                           absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseBoundedJson(where, text));
  if (!json.is_object()) return Broken(where, "got no JSON object");
  const auto type = json.find("_type");
  if (type == json.end() || !type->is_string()) {
    return Broken(where, "got no \"_type\"");
  }
  if (*type == kTensorDictType) return ParseDict(where, json);
  if (*type == kNonTensorType || *type == kMetaDataType) {
    return ParseValue(json);
  }
  if (*type == kValueStackType) return ParseValueStack(where, json);
  if (*type == kLazyStackType) {
    MemmapMeta meta;
    meta.kind = MemmapMeta::Kind::kLazyStack;
    meta.type = ShownJson(*type);
    RILL_ASSIGN_OR_RETURN(meta.stack_dim, ParseStackDim(where, json));
    return meta;
  }
  return ParseOther(json);
}

absl::StatusOr<std::string> FormatMemmapMeta(absl::string_view caller,
                                             const MemmapMeta& meta) {
  Json json = Json::object();
  switch (meta.kind) {
    case MemmapMeta::Kind::kDict: {
      RILL_ASSIGN_OR_RETURN(json, DictJson(caller, meta));
      break;
    }
    case MemmapMeta::Kind::kValue: {
      json["_type"] = kNonTensorType;
      RILL_ASSIGN_OR_RETURN(json["data"], ValueJson(caller, meta.json));
      json["_is_non_tensor"] = true;
      json["_metadata"] = nullptr;
      break;
    }
    case MemmapMeta::Kind::kValueStack: {
      json["_type"] = kValueStackType;
      json["stack_dim"] = meta.stack_dim;
      json["device"] = nullptr;
      RILL_ASSIGN_OR_RETURN(json["data"], ValueJson(caller, meta.json));
      break;
    }
    case MemmapMeta::Kind::kLazyStack: {
      json["_type"] = kLazyStackType;
      json["stack_dim"] = meta.stack_dim;
      break;
    }
    case MemmapMeta::Kind::kOther:
      return InvalidArgument(caller, ": type: got ", meta.type);
  }
  std::string text = JsonText(json);
  // A value is deeper in the file than by itself, and must be readable there.
  if (const int depth = JsonDepth(text); depth > kMaxJsonDepth) {
    return InvalidArgument(caller, ": value: got brackets of a depth of ",
                           depth - 1, ", want at most ", kMaxJsonDepth - 1);
  }
  return text;
}

}  // namespace rill::formats_internal
