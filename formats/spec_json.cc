// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/spec_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/json/json_text.h"
#include "rill/formats/json/utf8.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// The text is put together here, as equal specs must have equal texts and
// numbers must read back exactly. It is read with a parser, as texts come from
// outside. The form is strict: a member that is missing, unknown or there twice
// is an error, so that a misspelt one is not taken for its default.

namespace rill {
namespace {

using Json = nlohmann::ordered_json;
using Domain = LeafSpec::Domain;
using formats_internal::ShownJson;

constexpr absl::string_view kFormat = "rill_spec";
// The domains in the order of LeafSpec::Domain.
constexpr absl::string_view kDomains[] = {
    "unbounded", "bounded",           "categorical",  "binary",
    "one_hot",   "multi_categorical", "multi_one_hot"};

bool HasNvec(Domain domain) {
  return domain == Domain::kMultiCategorical || domain == Domain::kMultiOneHot;
}
bool HasN(Domain domain) {
  return domain == Domain::kCategorical || domain == Domain::kOneHot;
}

// --- Writing -----------------------------------------------------------------

absl::StatusOr<std::string> Quoted(absl::string_view text) {
  const std::string quoted = Json(std::string(text))
                                 .dump(-1, ' ', /*ensure_ascii=*/false,
                                       Json::error_handler_t::replace);
  if (formats_internal::IsUtf8(text)) return quoted;
  return InvalidArgument("SpecToJson: text: got ", quoted, ", want UTF-8");
}

// The shortest text that reads back as the same value.
std::string Number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (value == 0 && std::signbit(value)) return "-0.0";  // "-0" is an integer.
  char text[32];
  return std::string(text, std::to_chars(text, text + 32, value).ptr);
}

std::string List(absl::Span<const int64_t> values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

// Bounds by element: exact, as double where the dtype is real.
absl::StatusOr<std::string> Bounds(const Tensor& tensor) {
  const auto join = [](const auto& values, auto text) {
    return absl::StrCat("[",
                        absl::StrJoin(values, ",",
                                      [&](std::string* out, auto value) {
                                        out->append(text(value));
                                      }),
                        "]");
  };
  if (IsFloatingPoint(tensor.dtype())) {
    RILL_ASSIGN_OR_RETURN(const Tensor wide, Cast(tensor, DType::kFloat64));
    RILL_ASSIGN_OR_RETURN(const auto values, wide.Flat<double>());
    return join(values, [](double value) { return Number(value); });
  }
  RILL_ASSIGN_OR_RETURN(const Tensor wide, Cast(tensor, DType::kInt64));
  RILL_ASSIGN_OR_RETURN(const auto values, wide.Flat<int64_t>());
  return join(values, [](int64_t value) { return absl::StrCat(value); });
}

// The members in a fixed order, those of the leaf's domain behind the common
// ones. One bound for all elements is a number, several are a list.
absl::Status AppendLeaf(const TensorDictSpec::Leaf& leaf, std::string* out) {
  const LeafSpec& spec = leaf.spec;
  RILL_ASSIGN_OR_RETURN(const std::string key, Quoted(leaf.key));
  absl::StrAppend(out, "{\"key\":", key, ",\"dtype\":\"", DTypeName(spec.dtype),
                  "\",\"shape\":", List(spec.shape.sizes()), ",\"domain\":\"",
                  kDomains[static_cast<int>(spec.domain)], "\"");
  if (spec.domain == Domain::kBounded) {
    std::string low = Number(spec.low);
    std::string high = Number(spec.high);
    if (spec.lows() != nullptr) {
      RILL_ASSIGN_OR_RETURN(low, Bounds(*spec.lows()));
      RILL_ASSIGN_OR_RETURN(high, Bounds(*spec.highs()));
    }
    absl::StrAppend(out, ",\"low\":", low, ",\"high\":", high);
  }
  if (HasN(spec.domain)) absl::StrAppend(out, ",\"n\":", spec.num_categories);
  if (HasNvec(spec.domain)) {
    absl::StrAppend(out, ",\"nvec\":", List(spec.nvec()));
  }
  if (const Tensor* mask = spec.mask(); mask != nullptr) {
    RILL_ASSIGN_OR_RETURN(const auto allowed, mask->Flat<bool>());
    absl::StrAppend(out, ",\"mask\":{\"shape\":", List(mask->shape().sizes()),
                    ",\"allowed\":\"");
    for (const bool one : allowed) out->push_back(one ? '1' : '0');
    absl::StrAppend(out, "\"}");
  }
  absl::StrAppend(out, "}");
  return absl::OkStatus();
}

// --- Reading -----------------------------------------------------------------

absl::Status Broken(absl::string_view what) {
  return DataLoss("SpecFromJson: ", what);
}

absl::Status Unfit(absl::string_view where, const Json& got,
                   absl::string_view want) {
  return Broken(absl::StrCat(where, ": got ", ShownJson(got), ", want ", want));
}

// Parses, with few members in an object and none twice. The parser would keep
// one of two members of a name in silence, so names are seen as they come. Few,
// as each is compared with all before it.
absl::StatusOr<Json> Parse(absl::string_view text) {
  if (static_cast<int64_t>(text.size()) > kMaxSpecJsonBytes) {
    return ResourceExhausted("SpecFromJson: text: got ", text.size(),
                             " bytes, want at most ", kMaxSpecJsonBytes);
  }
  const int depth = formats_internal::JsonDepth(text);
  if (depth > formats_internal::kMaxJsonDepth) {
    return ResourceExhausted("SpecFromJson: brackets: got a depth of ", depth,
                             ", want at most ",
                             formats_internal::kMaxJsonDepth);
  }
  constexpr size_t kMaxMembers = 16;
  std::vector<std::vector<std::string>> open(static_cast<size_t>(depth) +
                                             2);  // Names by depth.
  bool is_refused = false;
  const auto see = [&](int at, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      open[static_cast<size_t>(at) + 1].clear();
    }
    if (event != Json::parse_event_t::key) return true;
    std::vector<std::string>& names = open[static_cast<size_t>(at)];
    const std::string name = value.get<std::string>();
    if (names.size() == kMaxMembers ||
        std::find(names.begin(), names.end(), name) != names.end()) {
      is_refused = true;
    }
    if (!is_refused) names.push_back(name);
    return !is_refused;
  };
  Json json = Json::parse(text, see, /*allow_exceptions=*/false);
  if (is_refused) return Broken("a member stands twice, or there are too many");
  if (!json.is_object()) return Broken("got no JSON object");
  return json;
}

// Exactly these names. None is there twice (Parse), so equal counts suffice
// once each was found.
absl::Status CheckMembers(absl::string_view where, const Json& json,
                          std::initializer_list<const char*> names) {
  if (!json.is_object()) return Unfit(where, json, "an object");
  const std::vector<const char*> wanted(names);
  for (const char* name : wanted) {
    if (json.contains(name)) continue;
    return Unfit(where, json, absl::StrCat("a member \"", name, "\""));
  }
  if (json.size() == wanted.size()) return absl::OkStatus();
  return Unfit(where, json,
               absl::StrCat("no members but ", absl::StrJoin(wanted, ", ")));
}

absl::StatusOr<std::string> Text(absl::string_view where, const Json& json) {
  if (!json.is_string()) return Unfit(where, json, "a string");
  return json.get<std::string>();
}

absl::StatusOr<int64_t> Int(absl::string_view where, const Json& json) {
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() &&
       json.get<uint64_t>() >
           static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
    return Unfit(where, json, "an integer of 64 bits");
  }
  return json.get<int64_t>();
}

absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view where,
                                          const Json& json) {
  if (!json.is_array()) return Unfit(where, json, "a list of integers");
  std::vector<int64_t> values;
  values.reserve(json.size());
  for (const Json& value : json) {
    RILL_ASSIGN_OR_RETURN(values.emplace_back(), Int(where, value));
  }
  return values;
}

// JSON has no infinities; NaN is no bound.
absl::StatusOr<double> Real(absl::string_view where, const Json& json) {
  if (json.is_number()) return json.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json == "inf") return kInfinity;
  if (json == "-inf") return -kInfinity;
  return Unfit(where, json, "a number, \"inf\" or \"-inf\"");
}

absl::StatusOr<Shape> ShapeFrom(absl::string_view where, const Json& json) {
  RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, Ints(where, json));
  absl::StatusOr<Shape> shape = Shape::Create(sizes);
  if (!shape.ok()) {
    return Broken(absl::StrCat(where, ": ", shape.status().message()));
  }
  return shape;
}

absl::StatusOr<Tensor> BoundsFrom(absl::string_view where, DType dtype,
                                  const Shape& shape, const Json& json) {
  const LeafSpec any = LeafSpec::Unbounded(dtype, shape);
  if (!IsFloatingPoint(dtype)) {
    RILL_ASSIGN_OR_RETURN(const std::vector<int64_t> values, Ints(where, json));
    return any.EncodeInts(values);
  }
  std::vector<double> values;
  values.reserve(json.size());
  for (const Json& value : json) {
    RILL_ASSIGN_OR_RETURN(values.emplace_back(), Real(where, value));
  }
  return any.Encode(values);
}

absl::StatusOr<LeafSpec> BoundedFrom(absl::string_view where, DType dtype,
                                     const Shape& shape, const Json& json) {
  const Json& low = json["low"];
  const Json& high = json["high"];
  if (low.is_array() && high.is_array()) {
    RILL_ASSIGN_OR_RETURN(const Tensor lows,
                          BoundsFrom(where, dtype, shape, low));
    RILL_ASSIGN_OR_RETURN(const Tensor highs,
                          BoundsFrom(where, dtype, shape, high));
    return LeafSpec::Bounded(lows, highs);
  }
  RILL_ASSIGN_OR_RETURN(const double least, Real(where, low));
  RILL_ASSIGN_OR_RETURN(const double most, Real(where, high));
  return LeafSpec::Bounded(dtype, shape, least, most);
}

absl::StatusOr<LeafSpec> MaskedFrom(absl::string_view where,
                                    const LeafSpec& spec, const Json& json) {
  RILL_RETURN_IF_ERROR(CheckMembers(where, json, {"shape", "allowed"}));
  RILL_ASSIGN_OR_RETURN(const Shape shape, ShapeFrom(where, json["shape"]));
  RILL_ASSIGN_OR_RETURN(const std::string allowed,
                        Text(where, json["allowed"]));
  if (allowed.find_first_not_of("01") != std::string::npos ||
      static_cast<int64_t>(allowed.size()) != shape.num_elements()) {
    return Unfit(where, json["allowed"], "a 0 or 1 for each element");
  }
  RILL_ASSIGN_OR_RETURN(const Tensor mask, Tensor::Empty(DType::kBool, shape));
  for (size_t i = 0; i < allowed.size(); ++i) {
    mask.data<bool>()[i] = allowed[i] == '1';
  }
  return spec.WithMask(mask);
}

absl::Status CheckLeafMembers(absl::string_view where, const Json& json,
                              Domain domain) {
  // The mask is the one member that may be missing, where choices have one.
  const Json bare = [&] {
    Json without = json;
    if (HasN(domain) || HasNvec(domain)) without.erase("mask");
    return without;
  }();
  if (domain == Domain::kBounded) {
    return CheckMembers(where, bare,
                        {"key", "dtype", "shape", "domain", "low", "high"});
  }
  if (HasN(domain)) {
    return CheckMembers(where, bare, {"key", "dtype", "shape", "domain", "n"});
  }
  if (HasNvec(domain)) {
    return CheckMembers(where, bare,
                        {"key", "dtype", "shape", "domain", "nvec"});
  }
  return CheckMembers(where, bare, {"key", "dtype", "shape", "domain"});
}

// The members as read, before anybody checked that they make sense.
absl::StatusOr<LeafSpec> SpecOfMembers(absl::string_view where, Domain domain,
                                       DType dtype, const Shape& shape,
                                       const Json& json) {
  // One-hot and multi specs make the last dimension themselves, of the choices.
  const Shape lead = shape.Prefix(std::max(shape.rank() - 1, 0));
  std::vector<int64_t> sizes;
  if (HasNvec(domain)) {
    RILL_ASSIGN_OR_RETURN(sizes, Ints(where, json["nvec"]));
  } else if (HasN(domain)) {
    RILL_ASSIGN_OR_RETURN(sizes.emplace_back(), Int(where, json["n"]));
  }
  switch (domain) {
    case Domain::kUnbounded:
      return LeafSpec::Unbounded(dtype, shape);
    case Domain::kBounded:
      return BoundedFrom(where, dtype, shape, json);
    case Domain::kCategorical:
      return LeafSpec::Categorical(sizes[0], dtype, shape);
    case Domain::kBinary:
      return LeafSpec::Binary(shape, dtype);
    case Domain::kOneHot:
      return LeafSpec::OneHot(sizes[0], dtype, lead);
    case Domain::kMultiCategorical:
      return LeafSpec::MultiCategorical(sizes, dtype, lead);
    case Domain::kMultiOneHot:
      return LeafSpec::MultiOneHot(sizes, dtype, lead);
  }
  return Broken(where);
}

absl::Status SetLeaf(absl::string_view where, const Json& json,
                     TensorDictSpec* spec) {
  if (!json.is_object() || !json.contains("domain")) {
    return Unfit(where, json, "an object with a member \"domain\"");
  }
  RILL_ASSIGN_OR_RETURN(const std::string name, Text(where, json["domain"]));
  const auto* found = std::find(std::begin(kDomains), std::end(kDomains), name);
  if (found == std::end(kDomains)) {
    return Unfit(where, json["domain"],
                 absl::StrCat("one of ", absl::StrJoin(kDomains, ", ")));
  }
  const auto domain = static_cast<Domain>(found - std::begin(kDomains));
  RILL_RETURN_IF_ERROR(CheckLeafMembers(where, json, domain));
  RILL_ASSIGN_OR_RETURN(const std::string key, Text(where, json["key"]));
  RILL_ASSIGN_OR_RETURN(const std::string type, Text(where, json["dtype"]));
  RILL_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(type));
  RILL_ASSIGN_OR_RETURN(const Shape shape, ShapeFrom(where, json["shape"]));
  RILL_ASSIGN_OR_RETURN(LeafSpec leaf,
                        SpecOfMembers(where, domain, dtype, shape, json));
  // One-hot domains give their own last size, and those of several choices too:
  // the text must say the same.
  if (leaf.shape != shape) {
    return Unfit(where, json["shape"], "the shape of the choices");
  }
  if (json.contains("mask")) {
    RILL_ASSIGN_OR_RETURN(leaf, MaskedFrom(where, leaf, json["mask"]));
  }
  if (spec->Find(key) != nullptr) return Unfit(where, key, "no key twice");
  return spec->Set(key, std::move(leaf));
}

absl::Status SetNonTensor(absl::string_view where, const Json& json,
                          TensorDictSpec* spec) {
  RILL_RETURN_IF_ERROR(CheckMembers(where, json, {"key", "example"}));
  RILL_ASSIGN_OR_RETURN(const std::string key, Text(where, json["key"]));
  RILL_ASSIGN_OR_RETURN(std::string example, Text(where, json["example"]));
  for (const TensorDictSpec::NonTensorLeaf& leaf : spec->non_tensors()) {
    if (leaf.key == key) return Unfit(where, key, "no key twice");
  }
  if (spec->Find(key) != nullptr) return Unfit(where, key, "no key twice");
  return spec->SetNonTensor(key, {std::move(example)});
}

// A text that breaks the specs' own rules is at fault.
absl::Status AsBroken(absl::string_view where, const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return Broken(absl::StrCat(where, ": ", status.message()));
}

absl::Status CheckHead(const Json& json) {
  if (!json.contains("format") || json["format"] != kFormat) {
    return Broken("\"format\": want \"rill_spec\"");
  }
  if (!json.contains("version")) return Broken("got no \"version\"");
  RILL_ASSIGN_OR_RETURN(const int64_t version,
                        Int("\"version\"", json["version"]));
  if (version < 1) return Unfit("\"version\"", json["version"], "at least 1");
  if (version > kSpecJsonVersion) {
    return FailedPrecondition("SpecFromJson: version: got ", version,
                              ", want at most ", kSpecJsonVersion,
                              "; a newer program wrote it");
  }
  RILL_RETURN_IF_ERROR(CheckMembers(
      "the text", json, {"format", "version", "leaves", "non_tensors"}));
  for (const char* list : {"leaves", "non_tensors"}) {
    if (!json[list].is_array()) return Unfit(list, json[list], "a list");
  }
  const size_t leaves = json["leaves"].size() + json["non_tensors"].size();
  if (leaves <= kMaxSpecJsonLeaves) return absl::OkStatus();
  return ResourceExhausted("SpecFromJson: leaves: got ", leaves,
                           ", want at most ", kMaxSpecJsonLeaves);
}

}  // namespace

absl::StatusOr<std::string> SpecToJson(const TensorDictSpec& spec) {
  std::string text =
      absl::StrCat("{\"format\":\"", kFormat,
                   "\",\"version\":", kSpecJsonVersion, ",\"leaves\":[");
  const size_t leaves = spec.leaves().size() + spec.non_tensors().size();
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    // Behind "[" there is the first element; behind "}" another.
    if (text.back() == '}') text.push_back(',');
    RILL_RETURN_IF_ERROR(AppendLeaf(leaf, &text));
  }
  absl::StrAppend(&text, "],\"non_tensors\":[");
  for (const TensorDictSpec::NonTensorLeaf& leaf : spec.non_tensors()) {
    RILL_ASSIGN_OR_RETURN(const std::string key, Quoted(leaf.key));
    RILL_ASSIGN_OR_RETURN(const std::string json, Quoted(leaf.example.json));
    absl::StrAppend(&text, text.back() == '}' ? "," : "", "{\"key\":", key,
                    ",\"example\":", json, "}");
  }
  absl::StrAppend(&text, "]}");
  if (leaves <= kMaxSpecJsonLeaves &&
      static_cast<int64_t>(text.size()) <= kMaxSpecJsonBytes) {
    return text;
  }
  return InvalidArgument("SpecToJson: spec: got ", leaves, " leaves and ",
                         text.size(), " bytes, want at most ",
                         kMaxSpecJsonLeaves, " and ", kMaxSpecJsonBytes);
}

absl::StatusOr<TensorDictSpec> SpecFromJson(absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, Parse(text));
  RILL_RETURN_IF_ERROR(CheckHead(json));
  TensorDictSpec spec;
  for (size_t i = 0; i < json["leaves"].size(); ++i) {
    const std::string where = absl::StrCat("leaf ", i);
    RILL_RETURN_IF_ERROR(
        AsBroken(where, SetLeaf(where, json["leaves"][i], &spec)));
  }
  for (size_t i = 0; i < json["non_tensors"].size(); ++i) {
    const std::string where = absl::StrCat("non_tensor ", i);
    RILL_RETURN_IF_ERROR(
        AsBroken(where, SetNonTensor(where, json["non_tensors"][i], &spec)));
  }
  return spec;
}

}  // namespace rill
