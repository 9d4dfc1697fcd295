// SPDX-License-Identifier: Apache-2.0
// TensorDict's entries: look-up, change, enumeration.
#include "rill/tensordict/tensor_dict.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/tensor_dict_entry.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {

namespace tensor_internal {

absl::Status WithKey(const absl::Status& status, const EntryPath& path) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; at key \"", path.ToString(), "\""));
}

}  // namespace tensor_internal

absl::string_view TensorDict::Entry::KindText(EntryKind kind) {
  static constexpr absl::string_view kTexts[] = {
      "a tensor",           "a dictionary",
      "a non-tensor value", "a stack of non-tensor values",
      "a lazy stack",       "a ragged tensor"};
  return kTexts[static_cast<size_t>(kind)];
}

TensorDict::TensorDict() = default;
TensorDict::TensorDict(const Shape& batch_shape) : batch_shape_(batch_shape) {}
TensorDict::~TensorDict() = default;
// A copy shares tensors and copies nested dictionaries; it is not locked.
TensorDict::TensorDict(const TensorDict& other)
    : batch_shape_(other.batch_shape_),
      entries_(other.entries_),
      device_(other.device_),
      dim_names_(other.dim_names_) {}
TensorDict& TensorDict::operator=(const TensorDict& other) {
  // By way of a temporary: `other` may lie below this dictionary.
  if (this != &other) *this = TensorDict(other);
  return *this;
}
TensorDict::TensorDict(TensorDict&&) noexcept = default;
TensorDict& TensorDict::operator=(TensorDict&&) noexcept = default;

absl::StatusOr<TensorDict> TensorDict::Create(
    const Shape& batch_shape,
    std::initializer_list<std::pair<absl::string_view, Tensor>> entries) {
  TensorDict dict(batch_shape);
  dict.entries_.reserve(entries.size());
  for (const auto& [key, tensor] : entries) {
    RILL_RETURN_IF_ERROR(dict.Set(key, tensor));
  }
  return dict;
}

int64_t TensorDict::num_entries() const {
  return static_cast<int64_t>(entries_.size());
}

int64_t TensorDict::num_leaves() const {
  int64_t count = 0;
  for (const Entry& entry : entries_) {
    if (entry.tensor() != nullptr) ++count;
    if (entry.dict() != nullptr) count += entry.dict()->num_leaves();
  }
  return count;
}

const TensorDict::Entry* TensorDict::Internal::FindEntry(
    const TensorDict& dict, absl::string_view key) {
  const TensorDict* level = &dict;
  while (level != nullptr) {
    // Names of entries keep their escapes and have no other "/". So a hit for
    // the whole text is the last component, and keys of one component are not
    // split at all.
    if (const Entry* last = FindHere(*level, key)) return last;
    absl::string_view head, rest;
    SplitKeyHead(key, &head, &rest);
    if (rest.empty()) return nullptr;
    const Entry* const entry = FindHere(*level, head);
    if (entry == nullptr) return nullptr;
    level = entry->dict();
    key = rest;
  }
  return nullptr;
}

// The keys of all levels.
std::string TensorDict::Internal::KeysText(const TensorDict& dict) {
  std::vector<std::string> keys;
  const auto add = [&](auto&& self, const TensorDict& level,
                       const std::string& prefix) -> void {
    for (const Entry& entry : level.entries_) {
      keys.push_back(absl::StrCat(prefix, entry.name));
      if (entry.dict() == nullptr || entry.dict()->empty()) continue;
      const std::string below = absl::StrCat(keys.back(), "/");
      keys.pop_back();
      self(self, *entry.dict(), below);
    }
  };
  add(add, dict, "");
  return ListKeys(keys);
}

absl::Status TensorDict::Internal::MissingKey(const TensorDict& dict,
                                              absl::string_view caller,
                                              absl::string_view key) {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  return NotFound(caller, ": no key \"", key,
                  "\", there are: ", KeysText(dict));
}

absl::Status TensorDict::Internal::CheckUnlocked(const TensorDict& dict,
                                                 absl::string_view caller) {
  if (!dict.locked_) return absl::OkStatus();
  return FailedPrecondition(
      caller, ": the dictionary is locked; Unlock it, or change a copy");
}

TensorDict::Spare TensorDict::Internal::TakeSpare(TensorDict* dict,
                                                  absl::string_view name) {
  for (Spare& spare : dict->spares_) {
    if (!SameName(spare.name, name)) continue;
    std::swap(spare, dict->spares_.back());
    Spare taken = std::move(dict->spares_.back());
    dict->spares_.pop_back();
    return taken;
  }
  return {std::string(name), nullptr};
}

void TensorDict::Internal::KeepSpare(TensorDict* dict, std::string name,
                                     Entry::Value&& value) {
  constexpr size_t kMost = 32;
  Spare spare = {std::move(name), nullptr};
  if (auto* const nested = std::get_if<std::unique_ptr<TensorDict>>(&value)) {
    spare.dict = std::move(*nested);
    for (Entry& below : spare.dict->entries_) {
      KeepSpare(spare.dict.get(), std::move(below.name),
                std::move(below.value));
    }
    spare.dict->entries_.clear();
    spare.dict->device_.reset();
    spare.dict->dim_names_ = nullptr;
  } else if (spare.name.capacity() == std::string().capacity()) {
    return;
  }
  if (dict->spares_.size() == kMost) {
    dict->spares_.erase(dict->spares_.begin());  // The oldest.
  }
  dict->spares_.push_back(std::move(spare));
}

TensorDict* TensorDict::Internal::AddDict(TensorDict* dict,
                                          absl::string_view name) {
  Spare spare = TakeSpare(dict, name);
  if (spare.dict == nullptr) spare.dict = std::make_unique<TensorDict>();
  TensorDict* const made = spare.dict.get();
  made->batch_shape_ = dict->batch_shape_;
  dict->entries_.emplace_back("", std::move(spare.dict)).name =
      std::move(spare.name);
  return made;
}

// One walk from the root to the last dictionary that is there, then the checks,
// then the changes: with an error nothing has changed. `rest` is what is left
// of the key behind `head`.
absl::Status TensorDict::Internal::SetValue(TensorDict* dict,
                                            absl::string_view key,
                                            Entry::Value&& value) {
  const bool is_plain = IsPlainKey(key);
  if (!is_plain) {
    RILL_RETURN_IF_ERROR(CheckKey(key));
  }
  const absl::string_view whole = key;
  absl::string_view head = key, rest;
  const Tensor* const tensor = std::get_if<Tensor>(&value);
  std::optional<Device> device;
  Entry* entry = nullptr;
  for (;;) {
    // The nearest dictionary with a device decides for the new entry.
    if (dict->device_.has_value()) device = dict->device_;
    if (!is_plain) SplitKeyHead(key, &head, &rest);
    entry = const_cast<Entry*>(FindHere(*dict, head));
    if (entry == nullptr || rest.empty()) break;
    if (entry->dict() == nullptr) {
      // A key below a lazy stack is one of its members'.
      const LazyStack* stack = StackOf(*entry);
      if (stack != nullptr && tensor != nullptr) {
        LazyStack changed = *stack;
        RILL_RETURN_IF_ERROR(changed.Set(rest, *tensor))
            << "at key \"" << whole << "\"";
        entry->value = ValueOf(std::move(changed));
        return absl::OkStatus();
      }
      return InvalidArgument("TensorDict::Set: key \"", whole, "\": \"",
                             entry->name, "\" is ",
                             Entry::KindText(entry->kind()),
                             ", want a dictionary; Delete it first");
    }
    dict = entry->dict();
    key = rest;
  }
  // Checked here for the common case, so that it costs no call: a tensor that
  // starts with the batch shape, where no device is asked for.
  if (tensor == nullptr || device.has_value() ||
      !tensor->shape().StartsWith(dict->batch_shape_)) {
    RILL_RETURN_IF_ERROR(CheckFits(*dict, device, whole, value));
  }
  // An entry that comes from outside is not locked.
  if (auto* nested = std::get_if<std::unique_ptr<TensorDict>>(&value)) {
    (*nested)->Unlock();
  }
  // The dictionaries on the way that are missing, each inside the one before.
  while (!rest.empty()) {
    dict = AddDict(dict, head);
    key = rest;
    SplitKeyHead(key, &head, &rest);
    entry = nullptr;
  }
  if (entry != nullptr) {
    entry->value = std::move(value);
  } else {
    // Most dictionaries have few entries: one allocation serves them.
    if (dict->entries_.capacity() == 0) dict->entries_.reserve(8);
    if (dict->spares_.empty()) {
      dict->entries_.emplace_back(head, std::move(value));
    } else {
      dict->entries_.emplace_back("", std::move(value)).name =
          TakeSpare(dict, head).name;
    }
  }
  return absl::OkStatus();
}

// That `shape` starts with the batch shape.
absl::Status TensorDict::Internal::CheckStart(const Shape& batch_shape,
                                              absl::string_view what,
                                              absl::string_view key,
                                              const RaggedShape& shape) {
  if (shape.StartsWith(batch_shape)) return absl::OkStatus();
  return InvalidArgument("TensorDict::Set: ", what, " of \"", key, "\": got ",
                         shape.ToString(),
                         ", want one that starts with the batch ", "shape ",
                         batch_shape.ToString());
}

absl::Status TensorDict::Internal::CheckFits(
    const TensorDict& dict, const std::optional<Device>& device,
    absl::string_view key, const Entry::Value& value) {
  absl::Status status;
  if (const Tensor* tensor = std::get_if<0>(&value)) {
    status = CheckStart(dict.batch_shape_, "shape", key, tensor->shape());
  } else if (const auto* nested = std::get_if<1>(&value)) {
    status = CheckStart(dict.batch_shape_, "batch shape", key,
                        (*nested)->batch_shape_);
  } else {
    status = std::get<2>(value)->CheckFits(key, dict.batch_shape_);
  }
  if (!device.has_value()) return status;
  VisitTensors(value, [&](const Tensor& tensor) {
    if (!status.ok() || tensor.device() == *device) return;
    status = InvalidArgument(
        "TensorDict::Set: device of \"", key, "\": got ",
        tensor.device().ToString(), ", want ", device->ToString(),
        " as the dictionary's; use Tensor::To, or ClearDevice");
  });
  return status;
}

absl::Status TensorDict::Internal::CheckAndSet(TensorDict* dict,
                                               absl::string_view key,
                                               Entry::Value&& value) {
  RILL_RETURN_IF_ERROR(CheckUnlocked(*dict, "TensorDict::Set"));
  return SetValue(dict, key, std::move(value));
}

absl::Status TensorDict::Set(absl::string_view key, Tensor tensor) {
  return Internal::CheckAndSet(this, key, std::move(tensor));
}

absl::Status TensorDict::Set(absl::string_view key, TensorDict dict) {
  return Internal::CheckAndSet(this, key,
                               std::make_unique<TensorDict>(std::move(dict)));
}

void TensorDict::Internal::VisitTensors(
    const Entry::Value& value, absl::FunctionRef<void(const Tensor&)> fn) {
  if (const Tensor* tensor = std::get_if<0>(&value)) {
    fn(*tensor);
  } else if (const auto* nested = std::get_if<1>(&value)) {
    VisitTensors(**nested, fn);
  } else {
    std::get<2>(value)->VisitTensors(fn);
  }
}

void TensorDict::Internal::VisitTensors(
    const TensorDict& dict, absl::FunctionRef<void(const Tensor&)> fn) {
  for (const Entry& entry : dict.entries_) {
    if (const Tensor* tensor = entry.tensor()) {
      fn(*tensor);  // Here too, as most are tensors.
    } else {
      VisitTensors(entry.value, fn);
    }
  }
}

}  // namespace rill
