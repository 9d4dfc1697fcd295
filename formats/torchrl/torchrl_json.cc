// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/torchrl/torchrl_json.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/tensordict/key.h"

namespace rill::formats_internal {
namespace {

using Json = nlohmann::ordered_json;

// Numbers that were floats once are exact up to here.
constexpr double kMaxExact = 9007199254740992.0;  // 2^53

// One object, its fields by name.
class Fields {
 public:
  static absl::StatusOr<Fields> Parse(absl::string_view where,
                                      absl::string_view text) {
    RILL_ASSIGN_OR_RETURN(Json json, ParseBoundedJson(where, text));
    if (!json.is_object()) {
      return DataLoss(where, ": got ", ShownJson(json), ", want an object");
    }
    return Fields(where, std::move(json));
  }

  // Null where it is missing or null.
  const Json* Find(absl::string_view name) const {
    const auto found = json_.find(std::string(name));
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  absl::Status Broken(absl::string_view name, absl::string_view want) const {
    const Json* got = Find(name);
    return DataLoss(where_, ": ", name, ": got ",
                    got == nullptr ? std::string("none") : ShownJson(*got),
                    ", want ", want);
  }

  // TorchRL writes some integers as floats.
  absl::StatusOr<std::optional<int64_t>> MaybeInt(
      absl::string_view name) const {
    const Json* got = Find(name);
    if (got == nullptr) return std::nullopt;
    if (got->is_number_float()) {
      const double value = got->get<double>();
      if (std::abs(value) <= kMaxExact && value == std::trunc(value)) {
        return static_cast<int64_t>(value);
      }
    } else if (got->is_number_integer() && !IsTooLarge(*got)) {
      return got->get<int64_t>();
    }
    return Broken(name, "an integer");
  }
  absl::StatusOr<int64_t> Int(absl::string_view name) const {
    RILL_ASSIGN_OR_RETURN(const std::optional<int64_t> got, MaybeInt(name));
    if (!got) return Broken(name, "an integer");
    return *got;
  }
  absl::StatusOr<double> Double(absl::string_view name) const {
    const Json* got = Find(name);
    if (got == nullptr || !got->is_number()) return Broken(name, "a number");
    return got->get<double>();
  }
  absl::StatusOr<bool> Bool(absl::string_view name) const {
    const Json* got = Find(name);
    if (got == nullptr || !got->is_boolean()) {
      return Broken(name, "true or false");
    }
    return got->get<bool>();
  }
  absl::StatusOr<Shape> ShapeOf(absl::string_view name) const {
    const Json* got = Find(name);
    if (got == nullptr) return Broken(name, "a list of sizes");
    return ParseJsonShape(where_, name, *got);
  }
  absl::StatusOr<DType> DTypeOf(absl::string_view name) const {
    const Json* got = Find(name);
    if (got == nullptr || !got->is_string()) return Broken(name, "a dtype");
    const std::string text = got->get<std::string>();
    absl::string_view bare = text;
    if (!absl::ConsumePrefix(&bare, "torch.")) {
      return Broken(name, "\"torch.<name>\"");
    }
    const auto dtype = DTypeFromName(bare);
    if (!dtype.ok()) {
      return InvalidArgument(where_, ": ", name, ": ",
                             dtype.status().message());
    }
    return *dtype;
  }

 private:
  Fields(absl::string_view where, Json json)
      : where_(where), json_(std::move(json)) {}

  static bool IsTooLarge(const Json& json) {
    return json.is_number_unsigned() &&
           json.get<uint64_t>() >
               static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }

  std::string where_;
  Json json_;
};

Json OrNull(const std::optional<int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::vector<int64_t> SizesOf(const Shape& shape) {
  return {shape.sizes().begin(), shape.sizes().end()};
}

std::string TorchName(DType dtype) {
  return absl::StrCat("torch.", DTypeName(dtype));
}

// A component, or a list of them.
absl::StatusOr<std::string> ParseKey(const Fields& fields,
                                     absl::string_view name) {
  std::vector<std::string> components;
  const Json* json = fields.Find(name);
  if (json != nullptr && json->is_string()) {
    components.push_back(json->get<std::string>());
  } else if (json != nullptr && json->is_array()) {
    for (const Json& component : *json) {
      if (!component.is_string()) return fields.Broken(name, "strings");
      components.push_back(component.get<std::string>());
    }
  }
  if (components.empty()) return fields.Broken(name, "a key");
  for (const std::string& component : components) {
    if (component.empty()) return fields.Broken(name, "no empty component");
  }
  return JoinKey(
      std::vector<absl::string_view>(components.begin(), components.end()));
}

// As TorchRL: a name, or a list where the key is nested.
Json KeyJson(absl::string_view key) {
  const auto components = SplitKey(key);
  if (!components.ok()) return Json(std::string(key));
  if (components->size() == 1) return Json(components->front());
  return Json(*components);
}

}  // namespace

// --- buffer_metadata.json ----------------------------------------------------

absl::StatusOr<TorchRlBufferJson> ParseTorchRlBuffer(absl::string_view where,
                                                     absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(where, text));
  TorchRlBufferJson json;
  RILL_ASSIGN_OR_RETURN(json.batch_size, fields.MaybeInt("batch_size"));
  RILL_ASSIGN_OR_RETURN(json.consume_after_n_samples,
                        fields.MaybeInt("consume_after_n_samples"));
  if (json.batch_size && *json.batch_size <= 0) {
    return fields.Broken("batch_size", "> 0");
  }
  return json;
}

std::string FormatTorchRlBuffer(const TorchRlBufferJson& json) {
  return JsonText(
      {{"batch_size", OrNull(json.batch_size)},
       {"consume_after_n_samples", OrNull(json.consume_after_n_samples)}});
}

// --- storage/storage_metadata.json -------------------------------------------

absl::StatusOr<TorchRlStorageJson> ParseTorchRlStorage(absl::string_view where,
                                                       absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(where, text));
  TorchRlStorageJson json;
  RILL_ASSIGN_OR_RETURN(json.len, fields.Int("len"));
  if (json.len < 0) return fields.Broken("len", ">= 0");
  RILL_ASSIGN_OR_RETURN(json.is_pytree, fields.Bool("is_pytree"));
  if (!json.is_pytree) return json;
  const Json* leaves = fields.Find("metadata");
  if (leaves == nullptr || !leaves->is_object()) {
    return fields.Broken("metadata", "an object of leaves");
  }
  for (const auto& [path, value] : leaves->items()) {
    const std::string leaf_where =
        absl::StrCat(where, ": leaf ", ShownJson(path));
    RILL_ASSIGN_OR_RETURN(const Fields leaf,
                          Fields::Parse(leaf_where, JsonText(value)));
    TorchRlStorageJson::Leaf parsed{.path = path};
    RILL_ASSIGN_OR_RETURN(parsed.dtype, leaf.DTypeOf("dtype"));
    RILL_ASSIGN_OR_RETURN(parsed.shape, leaf.ShapeOf("shape"));
    json.leaves.push_back(std::move(parsed));
  }
  return json;
}

std::string FormatTorchRlStorage(const TorchRlStorageJson& json) {
  Json leaves = Json::object();
  for (const TorchRlStorageJson::Leaf& leaf : json.leaves) {
    leaves[leaf.path] = {{"dtype", TorchName(leaf.dtype)},
                         {"shape", SizesOf(leaf.shape)}};
  }
  return JsonText({{"metadata", std::move(leaves)},
                   {"is_pytree", json.is_pytree},
                   {"len", json.len}});
}

// --- sampler/sampler_metadata.json -------------------------------------------

absl::StatusOr<TorchRlPrioritiesJson> ParseTorchRlPriorities(
    absl::string_view where, absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(where, text));
  TorchRlPrioritiesJson json;
  const std::pair<absl::string_view, double*> numbers[] = {
      {"_alpha", &json.alpha}, {"_beta", &json.beta}, {"_eps", &json.epsilon}};
  for (const auto& [name, number] : numbers) {
    RILL_ASSIGN_OR_RETURN(*number, fields.Double(name));
    if (!(*number >= 0)) return fields.Broken(name, ">= 0");
  }
  RILL_ASSIGN_OR_RETURN(json.capacity, fields.Int("_max_capacity"));
  if (json.capacity <= 0 || json.capacity > static_cast<int64_t>(kMaxExact)) {
    return fields.Broken("_max_capacity", "in [1, 2^53]");
  }
  RILL_ASSIGN_OR_RETURN(const std::optional<int64_t> version,
                        fields.MaybeInt("_schema_version"));
  // Older saves have no such number.
  json.version = version.value_or(0);
  if (json.version < 0 || json.version > 1) {
    return fields.Broken("_schema_version", "0 or 1");
  }
  const Json* max = fields.Find("_max_priority");
  if (max == nullptr || !max->is_array() || max->size() != 2) {
    return fields.Broken("_max_priority", "[priority, row]");
  }
  const Json& priority = (*max)[0];
  const Json& row = (*max)[1];
  // No row was ever written.
  if (priority.is_null() && row.is_null()) return json;
  if (!priority.is_number() || !(priority.get<double>() >= 0)) {
    return fields.Broken("_max_priority", "a priority >= 0");
  }
  json.max_priority = priority.get<double>();
  if (row.is_null()) return json;
  // A float in the file, hence the checks for a whole number and for 2^53. NaN
  // fails the first comparison.
  const double at = row.is_number() ? row.get<double>() : -1;
  if (!(at >= 0 && at < static_cast<double>(json.capacity)) ||
      at != std::trunc(at) || at > kMaxExact) {
    return fields.Broken("_max_priority", "a row below the capacity");
  }
  json.max_row = static_cast<int64_t>(at);
  return json;
}

std::string FormatTorchRlPriorities(const TorchRlPrioritiesJson& json) {
  Json max = Json::array({nullptr, nullptr});
  if (json.max_priority) {
    // As floats, which is how TorchRL writes them.
    max = Json::array({*json.max_priority, static_cast<double>(json.max_row)});
  }
  Json all = {{"_alpha", json.alpha},
              {"_beta", json.beta},
              {"_eps", json.epsilon},
              {"_max_priority", std::move(max)},
              {"_max_capacity", static_cast<double>(json.capacity)}};
  if (json.version > 0) all["_schema_version"] = json.version;
  return JsonText(all);
}

// --- writer/metadata.json ----------------------------------------------------

absl::StatusOr<TorchRlWriterJson> ParseTorchRlWriter(absl::string_view where,
                                                     absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Fields fields, Fields::Parse(where, text));
  TorchRlWriterJson json;
  RILL_ASSIGN_OR_RETURN(json.cursor, fields.Int("cursor"));
  if (json.cursor < 0) return fields.Broken("cursor", ">= 0");
  RILL_ASSIGN_OR_RETURN(json.write_count, fields.MaybeInt("write_count"));
  if (fields.Find("generation_shape") != nullptr) {
    RILL_ASSIGN_OR_RETURN(json.generation_shape,
                          fields.ShapeOf("generation_shape"));
    RILL_ASSIGN_OR_RETURN(const DType dtype,
                          fields.DTypeOf("generation_dtype"));
    if (dtype != DType::kInt64) {
      return fields.Broken("generation_dtype", "\"torch.int64\"");
    }
  }
  if (fields.Find("rank_key") == nullptr) return json;
  RILL_ASSIGN_OR_RETURN(json.rank_key, ParseKey(fields, "rank_key"));
  RILL_ASSIGN_OR_RETURN(json.heap_dtype, fields.DTypeOf("dtype"));
  RILL_ASSIGN_OR_RETURN(json.heap_shape, fields.ShapeOf("shape"));
  return json;
}

std::string FormatTorchRlWriter(const TorchRlWriterJson& json) {
  Json all = {{"cursor", json.cursor}};
  if (json.write_count) all["write_count"] = *json.write_count;
  if (json.generation_shape) {
    all["generation_shape"] = SizesOf(*json.generation_shape);
    all["generation_dtype"] = TorchName(DType::kInt64);
  }
  if (json.rank_key) {
    all["rank_key"] = KeyJson(*json.rank_key);
    all["dtype"] = TorchName(json.heap_dtype);
    all["shape"] = SizesOf(json.heap_shape);
  }
  return JsonText(all);
}

// --- Values ------------------------------------------------------------------

absl::StatusOr<int64_t> ParseTorchRlInt(absl::string_view where,
                                        absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseBoundedJson(where, text));
  if (!json.is_number_integer() ||
      !(std::abs(json.get<double>()) < kMaxExact)) {
    return DataLoss(where, ": got ", ShownJson(json), ", want an integer");
  }
  return json.get<int64_t>();
}

absl::StatusOr<bool> ParseTorchRlBool(absl::string_view where,
                                      absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(const Json json, ParseBoundedJson(where, text));
  if (!json.is_boolean()) {
    return DataLoss(where, ": got ", ShownJson(json), ", want true or false");
  }
  return json.get<bool>();
}

absl::StatusOr<Shape> ParseTorchRlShape(absl::string_view where,
                                        absl::string_view text) {
  RILL_ASSIGN_OR_RETURN(Json json, ParseBoundedJson(where, text));
  if (json.is_number()) json = Json::array({json});
  RILL_ASSIGN_OR_RETURN(const Shape shape,
                        ParseJsonShape(where, "shape", json));
  if (shape.rank() == 0 || shape.num_elements() == 0) {
    return DataLoss(where, ": got ", ShownJson(json), ", want sizes above 0");
  }
  return shape;
}

}  // namespace rill::formats_internal
