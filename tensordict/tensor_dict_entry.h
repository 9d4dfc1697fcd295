// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_
#define RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_

#include <cstddef>
#include <cstdint>
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
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

// The inside of TensorDict, for the .cc files of this package.
namespace rill {

struct TensorDict::Entry {
  using Value = std::variant<Tensor, std::unique_ptr<TensorDict>, NonTensor>;

  Entry(absl::string_view name, Value value)
      : name(name), value(std::move(value)) {}
  Entry(const Entry& other) : name(other.name), value(CopyOf(other.value)) {}
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) noexcept = default;

  static Value CopyOf(const Value& value) {
    if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
    if (const auto* other = std::get_if<NonTensor>(&value)) return *other;
    return std::make_unique<TensorDict>(
        *std::get<std::unique_ptr<TensorDict>>(value));
  }

  const Tensor* tensor() const { return std::get_if<Tensor>(&value); }
  const NonTensor* non_tensor() const { return std::get_if<NonTensor>(&value); }
  TensorDict* dict() const {
    const auto* dict = std::get_if<std::unique_ptr<TensorDict>>(&value);
    return dict == nullptr ? nullptr : dict->get();
  }
  absl::string_view kind() const {
    return tensor() != nullptr ? "a tensor"
           : dict() != nullptr ? "a dictionary"
                               : "a non-tensor value";
  }

  std::string name;  // One component, escaped, so that texts compare as such.
  Value value;
};

struct TensorDict::Internal {
  struct Joiner;      // Stack and Cat.
  struct Comparison;  // CheckEqual and CheckClose.

  // The way to an entry, on the stack: made into a text only for an error.
  struct Path {
    const Path* up;
    absl::string_view name;
    std::string ToString() const {
      return up == nullptr ? std::string(name)
                           : absl::StrCat(up->ToString(), "/", name);
    }
  };

  // Looks `name` (one escaped component) up on one level. `hint` is where it
  // stands if the dictionaries have the same order.
  static const Entry* FindHere(const TensorDict& dict, absl::string_view name,
                               size_t hint = 0);
  static const Entry* FindEntry(const TensorDict& dict, absl::string_view key);
  // Set without a look at the lock.
  static absl::Status SetValue(TensorDict* dict, absl::string_view key,
                               Entry::Value value);
  // Shape and device of a value that is to stand in `dict` as `key`.
  static absl::Status CheckFits(const TensorDict& dict,
                                const std::optional<Device>& device,
                                absl::string_view key,
                                const Entry::Value& value);
  static absl::Status CheckUnlocked(const TensorDict& dict,
                                    absl::string_view caller);
  // NOT_FOUND with the keys there are, or INVALID_ARGUMENT for a bad key.
  static absl::Status MissingKey(const TensorDict& dict,
                                 absl::string_view caller,
                                 absl::string_view key);
  // All keys but those of dictionaries that have entries, shortened.
  static std::string KeysText(const TensorDict& dict);

  static void VisitLeaves(
      const TensorDict& dict, std::string* prefix,
      absl::FunctionRef<void(absl::string_view, const Tensor&)> fn);

  static bool CopyEntry(const TensorDict& from, absl::string_view key,
                        TensorDict* to);
  static void SetDevice(TensorDict* dict, std::optional<Device> device);
  // A dictionary with those leaves copied into memory of `options` for which
  // `needs_copy` says so.
  static absl::StatusOr<TensorDict> Moved(
      const TensorDict& dict, const Tensor::Options& options,
      absl::FunctionRef<bool(const Tensor&)> needs_copy);

  // Results with another batch shape: `prefix` stands in the place of the first
  // `old_rank` dimensions of every leaf and (nested) batch shape.
  static Shape WithPrefix(const Shape& shape, const Shape& prefix,
                          int old_rank) {
    return prefix.Concat(shape.Suffix(old_rank));
  }
  // Whether `out` has just the leaves of such a result, ready to be written,
  // and shares no buffer with `like`.
  static bool CanHold(const TensorDict& out, const TensorDict& like,
                      const Shape& prefix, int old_rank);
  // A new one, uninitialised, on the same devices. Pinned and mapped memory
  // become pageable.
  static absl::StatusOr<TensorDict> MakeLike(const TensorDict& like,
                                             const Shape& prefix, int old_rank);
  // One with leaves fn(leaf).
  // `fn`: absl::StatusOr<Tensor>(const Tensor&).
  template <typename Fn>
  static absl::StatusOr<TensorDict> Map(const TensorDict& dict,
                                        const Shape& prefix, int old_rank,
                                        Fn&& fn, const Path* up = nullptr);

  // fn(leaf, leaf of the same key in `other`) for each leaf of `dict`; `other`
  // has them all. `fn`: absl::Status(const Tensor&, const Tensor&).
  template <typename Fn>
  static absl::Status ForEachPair(const TensorDict& dict,
                                  const TensorDict& other, Fn&& fn);
};

template <typename Fn>
absl::StatusOr<TensorDict> TensorDict::Internal::Map(const TensorDict& dict,
                                                     const Shape& prefix,
                                                     int old_rank, Fn&& fn,
                                                     const Path* up) {
  TensorDict result(WithPrefix(dict.batch_shape_, prefix, old_rank));
  result.device_ = dict.device_;
  result.entries_.reserve(dict.entries_.size());
  for (const Entry& entry : dict.entries_) {
    const Path path = {up, entry.name};
    if (const Tensor* tensor = entry.tensor()) {
      absl::StatusOr<Tensor> mapped = fn(*tensor);
      if (!mapped.ok()) {
        return absl::Status(mapped.status().code(),
                            absl::StrCat(mapped.status().message(),
                                         "; at key \"", path.ToString(), "\""));
      }
      result.entries_.emplace_back(entry.name, *std::move(mapped));
    } else if (const TensorDict* nested = entry.dict()) {
      absl::StatusOr<TensorDict> mapped =
          Map(*nested, prefix, old_rank, fn, &path);
      if (!mapped.ok()) return mapped;
      result.entries_.emplace_back(
          entry.name, std::make_unique<TensorDict>(*std::move(mapped)));
    } else {
      result.entries_.push_back(entry);
    }
  }
  return result;
}

template <typename Fn>
absl::Status TensorDict::Internal::ForEachPair(const TensorDict& dict,
                                               const TensorDict& other,
                                               Fn&& fn) {
  for (size_t i = 0; i < dict.entries_.size(); ++i) {
    const Entry& entry = dict.entries_[i];
    if (entry.non_tensor() != nullptr) continue;
    const Entry* pair = FindHere(other, entry.name, i);
    absl::Status status;
    if (const Tensor* leaf = entry.tensor()) {
      status = fn(*leaf, *pair->tensor());
    } else {
      status = ForEachPair(*entry.dict(), *pair->dict(), fn);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace rill

#endif  // RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_
