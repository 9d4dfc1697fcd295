// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated/consolidated_meta.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/json/utf8.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_meta.h"

// The text is parsed into nlohmann's tree first (bounded_json.h keeps that
// cheap), then walked by Parser, which checks each number before it becomes
// part of the result. A contradiction is DATA_LOSS. An entry that is well
// formed but has no form here is kRefused: the caller decides whether the rest
// is loaded.

namespace rill::formats_internal {
namespace {

using Json = nlohmann::ordered_json;
using Entry = ConsolidatedMeta::Entry;
using Kind = ConsolidatedMeta::Kind;
using Type = ConsolidatedMeta::Type;

constexpr char kDictClass[] = "TensorDict";
constexpr char kLazyStackClass[] = "LazyStackedTensorDict";
constexpr char kValueStackClass[] = "NonTensorStack";
// Members of an object beside the dictionaries and stacks in it; TorchRL's
// reader drops a "size".
constexpr absl::string_view kReserved[] = {"cls", "non_tensors", "leaves",
                                           "cls_metadata", "size"};
// Names that start so are parts of jagged tensors.
constexpr absl::string_view kJaggedPrefix = "<NJT";
constexpr absl::string_view kJaggedValues = "<NJT_VALUES>";
constexpr absl::string_view kJaggedOffsets = "<NJT_OFFSETS>";
constexpr absl::string_view kJaggedLengths = "<NJT_LENGTHS>";

bool IsReserved(absl::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) !=
         std::end(kReserved);
}

// One walk over one JSON. ranges_ collects the bytes of all leaves on the way,
// for CheckOverlaps at its end.
class Parser {
 public:
  Parser(absl::string_view where, int64_t data_bytes)
      : where_(where), data_bytes_(data_bytes) {}

  absl::StatusOr<ConsolidatedMeta> ParseObject(const Json& json, int depth);
  absl::Status CheckOverlaps();

 private:
  absl::Status Broken(absl::string_view what) const {
    return DataLoss(where_, ": ", what);
  }
  absl::StatusOr<const Json*> Field(const Json& json, absl::string_view name,
                                    Json::value_t type) const;
  absl::StatusOr<std::vector<std::string>> ParseNames(const Json& about,
                                                      int rank) const;
  absl::StatusOr<Entry> ParseLeaf(const std::string& name, const Json& json);
  absl::StatusOr<Entry> ParseJagged(const std::string& name,
                                    const Json& leaves);
  absl::StatusOr<Entry> ParseValue(const std::string& name,
                                   const Json& json) const;
  absl::StatusOr<Entry> ParseInner(const std::string& name, const Json& json,
                                   int depth);
  absl::Status ParseRange(absl::string_view what, const Json& json,
                          Entry* leaf) const;
  absl::Status ParseLeaves(const Json& leaves, ConsolidatedMeta* meta);
  absl::Status ParseDict(const Json& json, const Json& about,
                         ConsolidatedMeta* meta);
  absl::Status ParseStack(const Json& json, const Json& about,
                          ConsolidatedMeta* meta);

  absl::string_view where_;
  int64_t data_bytes_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // Of leaves with bytes.
};

// The member `name` of an object, of this type exactly; DATA_LOSS without.
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

// Names of the batch dimensions, null for none.
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

// [dtype, shape, start, stop, pad]. The bytes must be those of dtype and shape
// exactly, so that a leaf can be mapped without a further check. The order of
// the checks keeps the differences from overflowing: all three are >= 0, and
// start <= stop, before one is taken.
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

// A leaf of a dtype that is not here is refused, not broken: its numbers are
// then not looked at, as its size is not known.
absl::StatusOr<Entry> Parser::ParseLeaf(const std::string& name,
                                        const Json& json) {
  Entry leaf{.name = name};
  const std::string what = absl::StrCat("leaf ", ShownJson(name));
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

// Two or three leaves, named after what they are; in the list of the offsets
// comes behind the usual which dimension of the tensor is the ragged one.
absl::StatusOr<Entry> Parser::ParseJagged(const std::string& name,
                                          const Json& leaves) {
  const std::string what = absl::StrCat("jagged tensor ", ShownJson(name));
  std::vector<Entry> parts;
  int64_t ragged_idx = 1;
  for (const absl::string_view part :
       {kJaggedValues, kJaggedOffsets, kJaggedLengths}) {
    const auto found = leaves.find(absl::StrCat(part, name));
    if (found == leaves.end() && part == kJaggedLengths) break;
    if (found == leaves.end()) {
      return Broken(absl::StrCat(what, ": got no \"", part, "\", want one"));
    }
    // A copy, from which the sixth number is taken: ParseLeaf wants five.
    Json leaf = *found;
    if (part == kJaggedOffsets && leaf.is_array() && leaf.size() == 6) {
      if (!leaf[5].is_number_integer()) {
        return Broken(absl::StrCat(what, ": got ", ShownJson(leaf),
                                   ", want an integer at its end"));
      }
      ragged_idx = leaf[5].get<int64_t>();
      leaf.erase(5);
    }
    RILL_ASSIGN_OR_RETURN(Entry entry, ParseLeaf(found.key(), leaf));
    parts.push_back(std::move(entry));
  }
  Entry jagged = std::move(parts[0]);
  jagged.name = name;
  parts.erase(parts.begin());
  for (const Entry& part : parts) {
    if (jagged.kind == Kind::kLeaf && part.kind == Kind::kRefused) {
      jagged.kind = Kind::kRefused;
      jagged.refusal = part.refusal;
    }
  }
  if (jagged.kind == Kind::kRefused) return jagged;
  // FromJagged checks the offsets' values, once they are mapped; here only how
  // many there are.
  const int64_t rows = parts[0].shape.num_elements() - 1;
  for (const Entry& part : parts) {
    const int64_t want = rows + (&part == &parts[0] ? 1 : 0);
    if ((part.dtype != DType::kInt64 && part.dtype != DType::kInt32) ||
        rows < 0 || part.shape.rank() != 1 || part.shape[0] != want) {
      return Broken(absl::StrCat(what, ": ", ShownJson(part.name), ": got ",
                                 DTypeName(part.dtype), part.shape.ToString(),
                                 ", want int64 or int32, [rows + 1] offsets "
                                 "and [rows] lengths"));
    }
  }
  if (ragged_idx < 1 || ragged_idx > jagged.shape.rank()) {
    return Broken(absl::StrCat(what, ": ragged dimension: got ", ragged_idx,
                               ", want one in [1, ", jagged.shape.rank(), "]"));
  }
  jagged.kind = Kind::kJagged;
  jagged.ragged_dim = static_cast<int>(ragged_idx) - 1;
  jagged.parts = std::move(parts);
  return jagged;
}

// [value, batch shape, device]. The device is not read.
absl::StatusOr<Entry> Parser::ParseValue(const std::string& name,
                                         const Json& json) const {
  const std::string what = absl::StrCat("value ", ShownJson(name));
  if (!json.is_array() || json.empty()) {
    return Broken(absl::StrCat(what, ": got ", ShownJson(json),
                               ", want [value, batch shape, device]"));
  }
  Entry value{.name = name, .kind = Kind::kValue, .json = JsonText(json[0])};
  if (json.size() > 1) {
    RILL_ASSIGN_OR_RETURN(value.shape, ParseJsonShape(where_, what, json[1]));
  }
  return value;
}

// A dictionary or stack inside. A refusal of it as a whole becomes the entry's,
// so that the dictionary around it can be loaded without it.
absl::StatusOr<Entry> Parser::ParseInner(const std::string& name,
                                         const Json& json, int depth) {
  Entry entry{.name = name, .kind = Kind::kInner};
  RILL_ASSIGN_OR_RETURN(ConsolidatedMeta inner, ParseObject(json, depth + 1));
  if (!inner.refusal.empty()) {
    entry.kind = Kind::kRefused;
    entry.refusal = std::move(inner.refusal);
    return entry;
  }
  entry.inner.push_back(std::move(inner));
  return entry;
}

constexpr int64_t kNoBytes = std::numeric_limits<int64_t>::max();

// Where an entry's bytes begin.
int64_t FirstByte(const Entry& entry) {
  if (entry.kind == Kind::kLeaf || entry.kind == Kind::kJagged) {
    return entry.start;
  }
  // A dictionary's own entries are sorted when this is called, so its first one
  // has the answer. A stack's stand by their numbers, so all are asked.
  int64_t first = kNoBytes;
  if (entry.kind != Kind::kInner) return first;
  for (const Entry& inner : entry.inner[0].entries) {
    first = std::min(first, FirstByte(inner));
    if (entry.inner[0].type == Type::kDict) break;  // Sorted already.
  }
  return first;
}

// The order that TorchRL's dictionary had is that of the bytes. Entries without
// bytes come last, but dictionaries and stacks keep their order in the JSON. So
// each of those gets the smallest key of its own and of those behind it. The
// walk is from the back for that, and the sort is stable.
void SortByBytes(std::vector<Entry>* entries) {
  std::vector<std::pair<int64_t, Entry>> sorted;
  int64_t next = kNoBytes;
  for (; !entries->empty(); entries->pop_back()) {
    Entry& entry = entries->back();
    int64_t first = FirstByte(entry);
    if (entry.kind == Kind::kInner) next = first = std::min(first, next);
    sorted.emplace_back(first, std::move(entry));
  }
  std::reverse(sorted.begin(), sorted.end());
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [first, entry] : sorted) entries->push_back(std::move(entry));
}

absl::Status Parser::ParseLeaves(const Json& leaves, ConsolidatedMeta* meta) {
  for (const auto& [name, leaf] : leaves.items()) {
    absl::string_view bare = name;
    if (!absl::StartsWith(name, kJaggedPrefix)) {
      RILL_ASSIGN_OR_RETURN(Entry entry, ParseLeaf(name, leaf));
      meta->entries.push_back(std::move(entry));
    } else if (absl::ConsumePrefix(&bare, kJaggedValues)) {
      RILL_ASSIGN_OR_RETURN(Entry entry,
                            ParseJagged(std::string(bare), leaves));
      meta->entries.push_back(std::move(entry));
    } else if ((!absl::ConsumePrefix(&bare, kJaggedOffsets) &&
                !absl::ConsumePrefix(&bare, kJaggedLengths)) ||
               !leaves.contains(absl::StrCat(kJaggedValues, bare))) {
      return Broken(absl::StrCat("leaf ", ShownJson(name),
                                 ": got no values for it, want \"",
                                 kJaggedValues, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::ParseDict(const Json& json, const Json& about,
                               ConsolidatedMeta* meta) {
  RILL_ASSIGN_OR_RETURN(const Json* const batch,
                        Field(about, "batch_size", Json::value_t::array));
  RILL_ASSIGN_OR_RETURN(meta->batch_shape,
                        ParseJsonShape(where_, "batch_size", *batch));
  RILL_ASSIGN_OR_RETURN(meta->dim_names,
                        ParseNames(about, meta->batch_shape.rank()));
  RILL_ASSIGN_OR_RETURN(const Json* const leaves,
                        Field(json, "leaves", Json::value_t::object));
  // Tensors before dictionaries and values: among entries of equal keys the
  // stable sort keeps this order.
  std::vector<Entry> inner = std::exchange(meta->entries, {});
  RILL_RETURN_IF_ERROR(ParseLeaves(*leaves, meta));
  std::move(inner.begin(), inner.end(), std::back_inserter(meta->entries));
  SortByBytes(&meta->entries);
  return absl::OkStatus();
}

// Members of a stack are named "0", "1", ... .
absl::Status Parser::ParseStack(const Json& json, const Json& about,
                                ConsolidatedMeta* meta) {
  const auto leaves = json.find("leaves");
  if (leaves != json.end() && !leaves->empty()) {
    return Broken("got a stack with tensors of its own, want none");
  }
  const auto dim = about.find("stack_dim");
  if (dim == about.end() || !dim->is_number_integer() || *dim < 0 ||
      *dim > Shape::kMaxRank) {
    return Broken(absl::StrCat("stack_dim: got ",
                               dim == about.end() ? "none" : ShownJson(*dim),
                               ", want one in [0, ", Shape::kMaxRank, "]"));
  }
  meta->stack_dim = dim->get<int>();
  const size_t size = meta->entries.size();
  std::vector<Entry> members(size);
  size_t num_values = 0;
  for (Entry& entry : meta->entries) {
    size_t at;
    // SimpleAtoi takes signs, blanks and leading zeros; the comparison does
    // not.
    if (!absl::SimpleAtoi(entry.name, &at) || at >= size ||
        entry.name != absl::StrCat(at) || !members[at].name.empty()) {
      return Broken(absl::StrCat("member of a stack: got ",
                                 ShownJson(entry.name), ", want \"0\" to \"",
                                 size - 1, "\", each once"));
    }
    num_values += entry.kind == Kind::kValue ||
                  (entry.kind == Kind::kInner &&
                   entry.inner[0].type == Type::kValueStack);
    members[at] = std::move(entry);
  }
  meta->entries = std::move(members);
  if (size == 0 && meta->type == Type::kLazyStack) {
    return Broken("got a lazy stack without members, want some");
  }
  // A stack of nothing but values may be of either class.
  if (size > 0) {
    meta->type = num_values == size ? Type::kValueStack : Type::kLazyStack;
  }
  if (meta->type == Type::kValueStack) return absl::OkStatus();
  for (const Entry& member : meta->entries) {
    if (member.kind == Kind::kInner && member.inner[0].type == Type::kDict) {
      continue;
    }
    meta->refusal =
        absl::StrCat("a lazy stack whose member ", member.name, " is ",
                     member.kind == Kind::kRefused ? member.refusal
                     : member.kind == Kind::kValue ? "a value"
                                                   : "a stack",
                     ", want a TensorDict");
    break;
  }
  return absl::OkStatus();
}

// Members first, then what is said of the whole: ParseStack tells the type of a
// stack from its members.
absl::StatusOr<ConsolidatedMeta> Parser::ParseObject(const Json& json,
                                                     int depth) {
  if (depth > kMaxMemmapDepth) {
    return InvalidArgument(where_, ": depth: got ", depth, ", want at most ",
                           kMaxMemmapDepth);
  }
  if (!json.is_object()) {
    return Broken(absl::StrCat("got ", ShownJson(json), ", want a dictionary"));
  }
  ConsolidatedMeta meta;
  RILL_ASSIGN_OR_RETURN(const Json* const cls,
                        Field(json, "cls", Json::value_t::string));
  if (*cls == kLazyStackClass) meta.type = Type::kLazyStack;
  if (*cls == kValueStackClass) meta.type = Type::kValueStack;
  if (meta.type == Type::kDict && *cls != kDictClass) {
    meta.refusal = absl::StrCat("cls: got ", ShownJson(*cls), ", want \"",
                                kDictClass, "\", \"", kLazyStackClass,
                                "\" or \"", kValueStackClass, "\"");
    return meta;
  }
  RILL_ASSIGN_OR_RETURN(const Json* const about,
                        Field(json, "cls_metadata", Json::value_t::object));
  const auto locked = about->find("is_locked");
  meta.is_locked = locked != about->end() && *locked == true;
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
  RILL_RETURN_IF_ERROR(meta.type == Type::kDict
                           ? ParseDict(json, *about, &meta)
                           : ParseStack(json, *about, &meta));
  return meta;
}

// No two leaves share bytes: no writer does that, and a file whose leaves do
// could ask for much more memory than it has. After sorting by their
// beginnings, only neighbours need to be compared.
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

// Leaves and values are in objects of their own, so reserved names are free
// there.
absl::Status CheckName(absl::string_view caller, const Entry& entry) {
  if (IsUtf8(entry.name) && !absl::StartsWith(entry.name, kJaggedPrefix) &&
      !(entry.kind == Kind::kInner && IsReserved(entry.name))) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      caller, ": key: got ", ShownJson(entry.name),
      ", want UTF-8 that does not start with \"", kJaggedPrefix,
      "\", and for dictionaries and stacks none of \"cls\", "
      "\"non_tensors\", \"leaves\", \"cls_metadata\", \"size\"; rename "
      "the entry");
}

Json ShapeJson(const Shape& shape) {
  return std::vector<int64_t>(shape.sizes().begin(), shape.sizes().end());
}

Json LeafJson(const Entry& leaf) {
  return Json::array({absl::StrCat("torch.", DTypeName(leaf.dtype)),
                      ShapeJson(leaf.shape), leaf.start, leaf.stop, leaf.pad});
}

// Values, lengths, offsets: the order in which TorchRL writes them.
void AddJagged(const Entry& entry, Json* leaves) {
  (*leaves)[absl::StrCat(kJaggedValues, entry.name)] = LeafJson(entry);
  if (entry.parts.size() > 1) {
    (*leaves)[absl::StrCat(kJaggedLengths, entry.name)] =
        LeafJson(entry.parts[1]);
  }
  Json& offsets = (*leaves)[absl::StrCat(kJaggedOffsets, entry.name)] =
      LeafJson(entry.parts[0]);
  offsets.push_back(entry.ragged_dim + 1);
}

absl::StatusOr<Json> ValueJson(absl::string_view caller, const Entry& entry,
                               const Shape& shape) {
  auto value = ParseBoundedJson(
      absl::StrCat(caller, ": value ", ShownJson(entry.name)), entry.json);
  if (!value.ok()) return InvalidArgument(value.status().message());
  return Json::array({*std::move(value), ShapeJson(shape), nullptr});
}

// "cls_metadata".
Json AboutJson(const ConsolidatedMeta& meta) {
  Json about = Json::object();
  if (meta.type == Type::kDict) {
    about["device"] = nullptr;
    Json& names = about["names"] = Json::array();
    for (int dim = 0; dim < meta.batch_shape.rank(); ++dim) {
      names.push_back(meta.dim_names.empty() || meta.dim_names[dim].empty()
                          ? Json(nullptr)
                          : Json(meta.dim_names[dim]));
    }
    about["batch_size"] = ShapeJson(meta.batch_shape);
  } else {
    about["stack_dim"] = meta.stack_dim;
    about["stack_dim_name"] = nullptr;
  }
  about["is_locked"] = meta.is_locked;
  return about;
}

absl::StatusOr<Json> ObjectJson(absl::string_view caller,
                                const ConsolidatedMeta& meta) {
  if (static_cast<int64_t>(meta.entries.size()) > kMaxMemmapEntries) {
    return InvalidArgument(caller, ": entries of one dictionary or stack: got ",
                           meta.entries.size(), ", want at most ",
                           kMaxMemmapEntries,
                           "; use SaveTdz or SaveMemmapDirectory");
  }
  Json values = Json::object();
  Json leaves = Json::object();
  Json inner = Json::object();
  for (const Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(CheckName(caller, entry));
    switch (entry.kind) {
      case Kind::kLeaf:
        leaves[entry.name] = LeafJson(entry);
        break;
      case Kind::kJagged:
        AddJagged(entry, &leaves);
        break;
      case Kind::kInner: {
        RILL_ASSIGN_OR_RETURN(inner[entry.name],
                              ObjectJson(caller, entry.inner[0]));
        break;
      }
      default: {
        RILL_ASSIGN_OR_RETURN(
            values[entry.name],
            ValueJson(
                caller, entry,
                meta.type == Type::kDict ? meta.batch_shape : entry.shape));
      }
    }
  }
  Json json = Json::object();
  json["cls"] = meta.type == Type::kDict        ? kDictClass
                : meta.type == Type::kLazyStack ? kLazyStackClass
                                                : kValueStackClass;
  json["non_tensors"] = std::move(values);
  json["leaves"] = std::move(leaves);
  json["cls_metadata"] = AboutJson(meta);
  for (auto& [name, object] : inner.items()) json[name] = std::move(object);
  return json;
}

}  // namespace

absl::StatusOr<ConsolidatedMeta> ParseConsolidatedMeta(absl::string_view where,
                                                       absl::string_view text,
                                                       int64_t data_bytes) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseBoundedJson(where, text));
  Parser parser(where, data_bytes);
  RILL_ASSIGN_OR_RETURN(ConsolidatedMeta meta,
                        parser.ParseObject(json, /*depth=*/1));
  if (!meta.refusal.empty()) {
    return InvalidArgument(where, ": ", meta.refusal);
  }
  RILL_RETURN_IF_ERROR(parser.CheckOverlaps());
  return meta;
}

absl::StatusOr<std::string> FormatConsolidatedMeta(
    absl::string_view caller, const ConsolidatedMeta& meta) {
  RILL_ASSIGN_OR_RETURN(const Json json, ObjectJson(caller, meta));
  std::string text = JsonText(json);
  // All that is written can be read again.
  auto again =
      ParseConsolidatedMeta(caller, text, std::numeric_limits<int64_t>::max());
  if (!again.ok()) return InvalidArgument(again.status().message());
  return text;
}

}  // namespace rill::formats_internal
