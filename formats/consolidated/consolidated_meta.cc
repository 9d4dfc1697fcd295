// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated_meta.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_meta.h"

namespace rill::formats_internal {
namespace {

using Json = nlohmann::ordered_json;
using Entry = ConsolidatedMeta::Entry;
using Kind = ConsolidatedMeta::Kind;

constexpr char kDictClass[] = "TensorDict";
// What the object of a dictionary has beside the dictionaries in it; the reader
// of the peer drops a "size".
constexpr absl::string_view kReserved[] = {"cls", "non_tensors", "leaves",
                                           "cls_metadata", "size"};
// Names that start so are parts of jagged tensors there.
constexpr absl::string_view kJaggedPrefix = "<NJT";

bool IsReserved(absl::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) !=
         std::end(kReserved);
}

class Parser {
 public:
  Parser(absl::string_view where, int64_t data_bytes)
      : where_(where), data_bytes_(data_bytes) {}

  absl::StatusOr<ConsolidatedMeta> ParseDict(const Json& json, int depth);
  absl::Status CheckOverlaps();

 private:
  absl::Status Broken(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(where_, ": ", what));
  }
  absl::StatusOr<const Json*> Field(const Json& json, absl::string_view name,
                                    Json::value_t type) const;
  absl::StatusOr<std::vector<std::string>> ParseNames(const Json& about,
                                                      int rank) const;
  absl::StatusOr<Entry> ParseLeaf(const std::string& name, const Json& json);
  absl::StatusOr<Entry> ParseValue(const std::string& name,
                                   const Json& json) const;
  absl::StatusOr<Entry> ParseInner(const std::string& name, const Json& json,
                                   int depth);
  absl::Status ParseRange(absl::string_view what, const Json& json,
                          Entry* leaf) const;

  absl::string_view where_;
  int64_t data_bytes_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // Of leaves with bytes.
};

absl::StatusOr<const Json*> Parser::Field(const Json& json,
                                          absl::string_view name,
                                          Json::value_t type) const {
  const auto field = json.find(std::string(name));
  if (field == json.end() || field->type() != type) {
    return Broken(absl::StrCat("\"", name, "\": got ",
                               field == json.end() ? "none" : ShownJson(*field),
                               ", want ", Json(type).type_name()));
  }
  return &*field;
}

// Of the batch dimensions, null for none.
absl::StatusOr<std::vector<std::string>> Parser::ParseNames(const Json& about,
                                                            int rank) const {
  std::vector<std::string> names;
  const auto field = about.find("names");
  if (field == about.end() || !field->is_array()) return names;
  bool has_any = false;
  for (const Json& name : *field) {
    has_any = has_any || name.is_string();
    names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  if (!has_any) return std::vector<std::string>();
  if (static_cast<int>(names.size()) == rank) return names;
  return Broken(
      absl::StrCat("names: got ", ShownJson(*field), ", want ", rank));
}

// [dtype, shape, start, stop, pad].
absl::Status Parser::ParseRange(absl::string_view what, const Json& json,
                                Entry* leaf) const {
  for (int i = 2; i < 5; ++i) {
    const Json& number = json[i];
    if (!number.is_number_integer() || number < 0 ||
        number > std::numeric_limits<int64_t>::max()) {
      return Broken(absl::StrCat(what, ": got ", ShownJson(json),
                                 ", want offsets in bytes"));
    }
  }
  leaf->start = json[2].get<int64_t>();
  leaf->stop = json[3].get<int64_t>();
  leaf->pad = json[4].get<int64_t>();
  RILL_ASSIGN_OR_RETURN(
      const int64_t bytes,
      LeafBytes(absl::StrCat(where_, ": ", what), leaf->dtype, leaf->shape));
  if (leaf->start > leaf->stop || leaf->stop > data_bytes_) {
    return Broken(absl::StrCat(what, ": got bytes [", leaf->start, ", ",
                               leaf->stop, "), want what lies in [0, ",
                               data_bytes_, "]"));
  }
  if (leaf->pad > leaf->stop - leaf->start ||
      leaf->stop - leaf->start - leaf->pad != bytes) {
    return Broken(absl::StrCat(what, ": got ", leaf->stop - leaf->start,
                               " bytes, ", leaf->pad, " of them padding, want ",
                               bytes, " for ", DTypeName(leaf->dtype),
                               leaf->shape.ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Entry> Parser::ParseLeaf(const std::string& name,
                                        const Json& json) {
  Entry leaf{.name = name};
  const std::string what = absl::StrCat("leaf ", ShownJson(name));
  if (absl::StartsWith(name, kJaggedPrefix)) {
    leaf.kind = Kind::kRefused;
    leaf.refusal = "a part of a jagged tensor";
    return leaf;
  }
  if (!json.is_array() || json.size() != 5 || !json[0].is_string()) {
    return Broken(absl::StrCat(what, ": got ", ShownJson(json),
                               ", want [dtype, shape, start, stop, pad]"));
  }
  const std::string dtype_name = json[0].get<std::string>();
  absl::string_view bare = dtype_name;
  const bool is_torch = absl::ConsumePrefix(&bare, "torch.");
  const auto dtype = DTypeFromName(bare);
  if (!is_torch || !dtype.ok()) {
    leaf.kind = Kind::kRefused;
    leaf.refusal = absl::StrCat(
        "dtype: got ", ShownJson(json[0]), "; ",
        is_torch ? dtype.status().message() : "want \"torch.<name>\"");
    return leaf;
  }
  leaf.dtype = *dtype;
  RILL_ASSIGN_OR_RETURN(leaf.shape, ParseJsonShape(where_, what, json[1]));
  RILL_RETURN_IF_ERROR(ParseRange(what, json, &leaf));
  if (leaf.stop > leaf.start) ranges_.emplace_back(leaf.start, leaf.stop);
  return leaf;
}

// [value, batch shape, device]; only the value is taken.
absl::StatusOr<Entry> Parser::ParseValue(const std::string& name,
                                         const Json& json) const {
  if (!json.is_array() || json.empty()) {
    return Broken(absl::StrCat("value ", ShownJson(name), ": got ",
                               ShownJson(json), ", want [value, ...]"));
  }
  return Entry{.name = name, .kind = Kind::kValue, .json = JsonText(json[0])};
}

absl::StatusOr<Entry> Parser::ParseInner(const std::string& name,
                                         const Json& json, int depth) {
  Entry entry{.name = name, .kind = Kind::kDict};
  const auto cls = json.is_object() ? json.find("cls") : json.end();
  if (json.is_object() && cls != json.end() && *cls != kDictClass) {
    entry.kind = Kind::kRefused;
    entry.refusal = absl::StrCat("cls: got ", ShownJson(*cls), ", want \"",
                                 kDictClass, "\"");
    return entry;
  }
  RILL_ASSIGN_OR_RETURN(ConsolidatedMeta dict, ParseDict(json, depth + 1));
  entry.dict.push_back(std::move(dict));
  return entry;
}

// Where an entry's bytes begin; at the end where it has none.
int64_t FirstByte(const Entry& entry) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  if (entry.kind == Kind::kLeaf) return entry.start;
  if (entry.kind != Kind::kDict || entry.dict[0].entries.empty()) return kNone;
  return FirstByte(entry.dict[0].entries.front());  // Sorted already.
}

absl::StatusOr<ConsolidatedMeta> Parser::ParseDict(const Json& json,
                                                   int depth) {
  if (depth > kMaxMemmapDepth) {
    return absl::InvalidArgumentError(absl::StrCat(
        where_, ": depth: got ", depth, ", want at most ", kMaxMemmapDepth));
  }
  if (!json.is_object()) {
    return Broken(absl::StrCat("got ", ShownJson(json), ", want a dictionary"));
  }
  ConsolidatedMeta meta;
  RILL_ASSIGN_OR_RETURN(const Json* const cls,
                        Field(json, "cls", Json::value_t::string));
  if (*cls != kDictClass) {
    return absl::InvalidArgumentError(absl::StrCat(
        where_, ": cls: got ", ShownJson(*cls), ", want \"", kDictClass, "\""));
  }
  RILL_ASSIGN_OR_RETURN(const Json* const about,
                        Field(json, "cls_metadata", Json::value_t::object));
  RILL_ASSIGN_OR_RETURN(const Json* const batch,
                        Field(*about, "batch_size", Json::value_t::array));
  RILL_ASSIGN_OR_RETURN(meta.batch_shape,
                        ParseJsonShape(where_, "batch_size", *batch));
  RILL_ASSIGN_OR_RETURN(meta.dim_names,
                        ParseNames(*about, meta.batch_shape.rank()));
  const auto locked = about->find("is_locked");
  meta.is_locked = locked != about->end() && *locked == true;
  RILL_ASSIGN_OR_RETURN(const Json* const leaves,
                        Field(json, "leaves", Json::value_t::object));
  for (const auto& [name, leaf] : leaves->items()) {
    RILL_ASSIGN_OR_RETURN(Entry entry, ParseLeaf(name, leaf));
    meta.entries.push_back(std::move(entry));
  }
  for (const auto& [name, inner] : json.items()) {
    if (IsReserved(name)) continue;
    RILL_ASSIGN_OR_RETURN(Entry entry, ParseInner(name, inner, depth));
    meta.entries.push_back(std::move(entry));
  }
  RILL_ASSIGN_OR_RETURN(const Json* const values,
                        Field(json, "non_tensors", Json::value_t::object));
  for (const auto& [name, value] : values->items()) {
    RILL_ASSIGN_OR_RETURN(Entry entry, ParseValue(name, value));
    meta.entries.push_back(std::move(entry));
  }
  // The order that the peer's dictionary had is that of the bytes.
  std::stable_sort(meta.entries.begin(), meta.entries.end(),
                   [](const Entry& a, const Entry& b) {
                     return FirstByte(a) < FirstByte(b);
                   });
  return meta;
}

// No two leaves share bytes: no writer does that, and a file whose leaves do
// could ask for much more memory than it has.
absl::Status Parser::CheckOverlaps() {
  std::sort(ranges_.begin(), ranges_.end());
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].first < ranges_[i - 1].second) {
      return Broken(absl::StrCat(
          "leaves overlap: got [", ranges_[i].first, ", ", ranges_[i].second,
          ") and [", ranges_[i - 1].first, ", ", ranges_[i - 1].second, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckName(absl::string_view caller, const Entry& entry) {
  if (IsUtf8(entry.name) && !absl::StartsWith(entry.name, kJaggedPrefix) &&
      !(entry.kind == Kind::kDict && IsReserved(entry.name))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      caller, ": key: got ", ShownJson(entry.name),
      ", want UTF-8 that does not start with \"", kJaggedPrefix,
      "\", and for dictionaries none of \"cls\", \"non_tensors\", \"leaves\", "
      "\"cls_metadata\", \"size\"; rename the entry"));
}

Json ShapeJson(const Shape& shape) {
  return std::vector<int64_t>(shape.sizes().begin(), shape.sizes().end());
}

absl::StatusOr<Json> DictJson(absl::string_view caller,
                              const ConsolidatedMeta& meta) {
  if (static_cast<int64_t>(meta.entries.size()) > kMaxMemmapEntries) {
    return absl::InvalidArgumentError(absl::StrCat(
        caller, ": entries of one dictionary: got ", meta.entries.size(),
        ", want at most ", kMaxMemmapEntries));
  }
  Json values = Json::object();
  Json leaves = Json::object();
  Json inner = Json::object();
  for (const Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(CheckName(caller, entry));
    if (entry.kind == Kind::kLeaf) {
      leaves[entry.name] = Json::array(
          {absl::StrCat("torch.", DTypeName(entry.dtype)),
           ShapeJson(entry.shape), entry.start, entry.stop, entry.pad});
    } else if (entry.kind == Kind::kDict) {
      RILL_ASSIGN_OR_RETURN(inner[entry.name], DictJson(caller, entry.dict[0]));
    } else {
      auto value = ParseBoundedJson(
          absl::StrCat(caller, ": value ", ShownJson(entry.name)), entry.json);
      if (!value.ok()) {
        return absl::InvalidArgumentError(value.status().message());
      }
      values[entry.name] = Json::array(
          {*std::move(value), ShapeJson(meta.batch_shape), nullptr});
    }
  }
  Json json = Json::object();
  json["cls"] = kDictClass;
  json["non_tensors"] = std::move(values);
  json["leaves"] = std::move(leaves);
  json["cls_metadata"]["device"] = nullptr;
  Json& names = json["cls_metadata"]["names"] = Json::array();
  for (int dim = 0; dim < meta.batch_shape.rank(); ++dim) {
    names.push_back(meta.dim_names.empty() || meta.dim_names[dim].empty()
                        ? Json(nullptr)
                        : Json(meta.dim_names[dim]));
  }
  json["cls_metadata"]["batch_size"] = ShapeJson(meta.batch_shape);
  json["cls_metadata"]["is_locked"] = meta.is_locked;
  for (auto& [name, dict] : inner.items()) json[name] = std::move(dict);
  return json;
}

}  // namespace

absl::StatusOr<ConsolidatedMeta> ParseConsolidatedMeta(absl::string_view where,
                                                       absl::string_view text,
                                                       int64_t data_bytes) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseBoundedJson(where, text));
  Parser parser(where, data_bytes);
  RILL_ASSIGN_OR_RETURN(ConsolidatedMeta meta,
                        parser.ParseDict(json, /*depth=*/1));
  RILL_RETURN_IF_ERROR(parser.CheckOverlaps());
  return meta;
}

absl::StatusOr<std::string> FormatConsolidatedMeta(
    absl::string_view caller, const ConsolidatedMeta& meta) {
  RILL_ASSIGN_OR_RETURN(const Json json, DictJson(caller, meta));
  std::string text = JsonText(json);
  // What is written can be read again.
  auto again =
      ParseConsolidatedMeta(caller, text, std::numeric_limits<int64_t>::max());
  if (!again.ok()) return absl::InvalidArgumentError(again.status().message());
  return text;
}

}  // namespace rill::formats_internal
