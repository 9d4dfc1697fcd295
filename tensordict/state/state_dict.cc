// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/state/state_dict.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"

namespace rill {
namespace {

constexpr absl::string_view kType = "type";
constexpr absl::string_view kVersion = "version";

std::string Described(absl::string_view dtype,
                      const std::optional<Shape>& shape) {
  return absl::StrCat(dtype,
                      shape.has_value() ? shape->ToString() : " of rank 1");
}

// The state's own entries are taken.
absl::Status CheckIsFree(absl::string_view caller, absl::string_view key) {
  if (key != kType && key != kVersion) return absl::OkStatus();
  return InvalidArgument(caller, ": \"", key,
                         "\": got an entry of a part, want another name: "
                         "every state has this one of its own");
}

}  // namespace

NonTensor JsonString(absl::string_view text) {
  return {absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"")};
}

StateWriter::StateWriter(absl::string_view type, int64_t version,
                         const Shape& batch_shape)
    : dict_(batch_shape), status_(dict_.Set(kType, JsonString(type))) {
  status_.Update(dict_.Set(kVersion, NonTensor{absl::StrCat(version)}));
}

absl::Status StateWriter::CheckKey(absl::string_view key) {
  return CheckIsFree("StateWriter", key);
}

void StateWriter::Bytes(absl::string_view key, DType dtype, const void* values,
                        size_t count, const Shape& shape) {
  absl::StatusOr<Tensor> tensor = Tensor::Empty(dtype, shape);
  if (tensor.ok() && tensor->num_elements() != static_cast<int64_t>(count)) {
    tensor = Internal("StateWriter::List: \"", key, "\": got ", count,
                      ", want ", tensor->num_elements());
  }
  if (tensor.ok() && count > 0) {
    std::memcpy(tensor->raw_data(), values, count * DTypeSize(dtype));
  }
  Entry(key, std::move(tensor));
}

absl::StatusOr<TensorDict> StateWriter::Finish() && {
  RILL_RETURN_IF_ERROR(status_);
  return std::move(dict_);
}

absl::StatusOr<StateReader> StateReader::Open(absl::string_view type,
                                              int64_t max_version,
                                              const TensorDict& dict) {
  if (!dict.Contains(kType)) return StateReader(type, 0, dict);
  const absl::StatusOr<NonTensor> got = dict.GetNonTensor(kType);
  const absl::StatusOr<NonTensor> number = dict.GetNonTensor(kVersion);
  int64_t version = 0;
  if (got.ok() && *got == JsonString(type) && number.ok() &&
      absl::SimpleAtoi(number->json, &version) && version >= 1 &&
      version <= max_version) {
    return StateReader(type, version, dict);
  }
  return StateReader(type, 0, dict)
      .DoesNotFit(absl::StrCat(
          "got the state of ", got.ok() ? got->json : "something else",
          " version ", number.ok() ? number->json : "none", ", want that of ",
          JsonString(type).json, " version <= ", max_version));
}

absl::StatusOr<Tensor> StateReader::Leaf(
    absl::string_view key, DType dtype,
    const std::optional<Shape>& shape) const {
  asked_.emplace_back(key.substr(0, key.find('/')));
  const Tensor* const tensor = dict_.Find(key);
  if (tensor == nullptr || tensor->dtype() != dtype ||
      !(shape.has_value() ? tensor->shape() == *shape : tensor->rank() == 1)) {
    return DoesNotFit(absl::StrCat(
        "\"", key, "\": got ",
        tensor == nullptr
            ? "none"
            : Described(DTypeName(tensor->dtype()), tensor->shape()),
        ", want ", Described(DTypeName(dtype), shape), "; load what ", type_,
        "::SaveState wrote"));
  }
  // A state may come from a file, a slice or a device.
  RILL_ASSIGN_OR_RETURN(const Tensor on_host, tensor->To(Device::Cpu()));
  return on_host.Contiguous();
}

absl::StatusOr<const TensorDict*> StateReader::Dict(
    absl::string_view key) const {
  asked_.emplace_back(key.substr(0, key.find('/')));
  const TensorDict* const dict = dict_.FindDict(key);
  if (dict != nullptr) return dict;
  return DoesNotFit(absl::StrCat("\"", key,
                                 "\": got none, want a dictionary; load what ",
                                 type_, "::SaveState wrote"));
}

absl::StatusOr<std::string> StateReader::Text(absl::string_view key) const {
  asked_.emplace_back(key.substr(0, key.find('/')));
  const absl::StatusOr<NonTensor> value = dict_.GetNonTensor(key);
  const std::string got = value.ok() ? value->json : "none";
  absl::string_view text = got;
  if (absl::ConsumePrefix(&text, "\"") && absl::ConsumeSuffix(&text, "\"")) {
    return absl::StrReplaceAll(text, {{"\\\\", "\\"}, {"\\\"", "\""}});
  }
  return DoesNotFit(absl::StrCat("\"", key, "\": got ", got, ", want a text"));
}

absl::Status StateReader::CheckNothingElse() const {
  for (const std::string& key : dict_.Keys()) {
    if (key == kType || key == kVersion ||
        std::find(asked_.begin(), asked_.end(), key) != asked_.end()) {
      continue;
    }
    return DoesNotFit(
        absl::StrCat("\"", key, "\": got an entry, want none of that name"));
  }
  return absl::OkStatus();
}

absl::Status StateReader::DoesNotFit(absl::string_view what) const {
  return FailedPrecondition(type_, "::LoadState: ", what);
}

absl::StatusOr<TensorDict> ToDict(const SavedState& state) {
  StateWriter writer(state.type(), state.version());
  RILL_ASSIGN_OR_RETURN(TensorDict dict, std::move(writer).Finish());
  const auto set = [&dict](absl::string_view key,
                           const auto& value) -> absl::Status {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      return dict.Set(key, JsonString(value));
    } else if constexpr (std::is_same_v<T, std::vector<SavedState>>) {
      TensorDict parts;
      for (size_t i = 0; i < value.size(); ++i) {
        RILL_ASSIGN_OR_RETURN(TensorDict part, ToDict(value[i]));
        if (value.size() == 1) return dict.Set(key, std::move(part));
        RILL_RETURN_IF_ERROR(parts.Set(absl::StrCat(i), std::move(part)));
      }
      return dict.Set(key, std::move(parts));
    } else if constexpr (std::is_arithmetic_v<T>) {
      RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::From<T>({value}, Shape({})));
      return dict.Set(key, std::move(tensor));
    } else {
      RILL_ASSIGN_OR_RETURN(Tensor tensor,
                            Tensor::From<typename T::value_type>(
                                value, {static_cast<int64_t>(value.size())}));
      return dict.Set(key, std::move(tensor));
    }
  };
  for (const SavedState::Field& field : state.fields()) {
    RILL_RETURN_IF_ERROR(CheckIsFree(state.type(), field.name));
    RILL_RETURN_IF_ERROR(
        std::visit([&](const auto& value) { return set(field.name, value); },
                   field.value));
  }
  return dict;
}

}  // namespace rill
