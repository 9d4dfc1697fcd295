// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_
#define RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensordict/non_tensor_entry.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

// The inside of TensorDict, for the .cc files of this package.
namespace rill {

struct TensorDict::Entry {
  using Value = tensor_internal::EntryValue;

  template <typename V>
  Entry(absl::string_view name, V&& value)
      : name(name), value(std::forward<V>(value)) {}
  Entry(const Entry& other) : name(other.name), value(CopyOf(other.value)) {}
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) noexcept = default;

  static Value CopyOf(const Value& value) {
    if (const Tensor* tensor = std::get_if<Tensor>(&value)) return *tensor;
    if (const auto* other =
            std::get_if<tensor_internal::NonTensorPointer>(&value)) {
      return *other;
    }
    return std::make_unique<TensorDict>(*std::get<1>(value));
  }
  static absl::string_view KindText(EntryKind kind);

  EntryKind kind() const {
    return value.index() < 2 ? static_cast<EntryKind>(value.index())
                             : other()->kind();
  }
  // Entries of one family are joined and copied to one another.
  EntryKind family() const {
    const EntryKind own = kind();
    return own == EntryKind::kNonTensorStack ? EntryKind::kNonTensor : own;
  }
  // The value, or null if it is none.
  const Tensor* tensor() const { return std::get_if<Tensor>(&value); }
  TensorDict* dict() const {
    const auto* held = std::get_if<std::unique_ptr<TensorDict>>(&value);
    return held == nullptr ? nullptr : held->get();
  }
  const tensor_internal::NonTensorEntry* other() const {
    const auto* held = std::get_if<tensor_internal::NonTensorPointer>(&value);
    return held == nullptr ? nullptr : held->get();
  }

  std::string name;  // One component, escaped, so that texts compare as such.
  Value value;
};

// A deleted entry leaves this to the next one of its name, which then allocates
// nothing: a name too long for a string's own bytes, and a dictionary without
// entries.
struct TensorDict::Spare {
  std::string name;
  std::unique_ptr<TensorDict> dict;  // Null: none.
};

struct TensorDict::Internal {
  struct Joiner;  // Stack and Cat.
  using Path = tensor_internal::EntryPath;
  using ShapeOp = tensor_internal::ShapeOp;
  using Comparison = tensor_internal::Comparison;

  // Non-tensor entries to put in place once nothing can fail any more.
  struct Change {
    Entry* entry;
    tensor_internal::NonTensorPointer value;
  };
  using Changes = absl::InlinedVector<Change, 2>;

  // Dimension names after `op`.
  using Names = std::shared_ptr<const std::vector<std::string>>;
  static Names NamesAfter(const Names& names, const ShapeOp& op) {
    switch (names == nullptr ? ShapeOp::kCopy : op.kind) {
      case ShapeOp::kCopy:
      case ShapeOp::kSlice:
      case ShapeOp::kRows:
        return names;  // As they are: shared.
      default:
        return ChangedNames(*names, op);
    }
  }
  static Names ChangedNames(std::vector<std::string> names, const ShapeOp& op);

  // Looks `name` (one escaped component) up on one level. `hint` is where it
  // stands if the dictionaries have the same order.
  static const Entry* FindHere(const TensorDict& dict, absl::string_view name,
                               size_t hint = 0) {
    const std::vector<Entry>& entries = dict.entries_;
    if (hint < entries.size() && SameName(entries[hint].name, name)) {
      return &entries[hint];
    }
    for (const Entry& entry : entries) {
      if (SameName(entry.name, name)) return &entry;
    }
    return nullptr;
  }
  // Names are short: the call of memcmp would take most of the time.
  static bool SameName(absl::string_view a, absl::string_view b) {
    const size_t size = a.size();
    if (size != b.size()) return false;
    if (size > 16) return std::memcmp(a.data(), b.data(), size) == 0;
    const auto same = [&]<typename Word>(Word x, Word y, size_t at) {
      std::memcpy(&x, a.data() + at, sizeof(Word));
      std::memcpy(&y, b.data() + at, sizeof(Word));
      return x == y;
    };
    if (size >= 8) {
      return same(uint64_t{}, uint64_t{}, 0) &&
             same(uint64_t{}, uint64_t{}, size - 8);
    }
    if (size >= 4) {
      return same(uint32_t{}, uint32_t{}, 0) &&
             same(uint32_t{}, uint32_t{}, size - 4);
    }
    for (size_t i = 0; i < size; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
  // Aligned, as elsewhere its loop may lie across two lines of code: a look-up
  // of 3.5 ns then takes 5.
  [[gnu::aligned(64)]] static const Entry* FindEntry(const TensorDict& dict,
                                                     absl::string_view key);
  // Adds a dictionary without entries, made of a spare one if any.
  static TensorDict* AddDict(TensorDict* dict, absl::string_view name);
  // The spare of this name or, without one, the name alone.
  static Spare TakeSpare(TensorDict* dict, absl::string_view name);
  // Keeps what is to be kept of an entry that goes. At most a few: dictionaries
  // with ever new keys do not grow.
  static void KeepSpare(TensorDict* dict, std::string name,
                        Entry::Value&& value);
  // With and without a look at the lock.
  static absl::Status CheckAndSet(TensorDict* dict, absl::string_view key,
                                  Entry::Value&& value);
  static absl::Status SetValue(TensorDict* dict, absl::string_view key,
                               Entry::Value&& value);
  static absl::Status CheckStart(const Shape& batch_shape,
                                 absl::string_view what, absl::string_view key,
                                 const RaggedShape& shape);
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

  static std::string EntryText(const Entry& entry);
  static absl::Status CompareDicts(const TensorDict& got,
                                   const TensorDict& want, const Path* up,
                                   const Comparison& comparison);
  static absl::Status CompareEntries(const Entry& got, const Entry& want,
                                     const Path& path,
                                     const Comparison& comparison);
  // A key that a walk makes and takes back, name by name. Most keys fit in it.
  class WalkedKey {
   public:
    size_t size() const { return text_.size(); }
    // The first `size` letters and `name`.
    absl::string_view Replace(size_t size, absl::string_view name) {
      text_.resize(size);
      text_.insert(text_.end(), name.begin(), name.end());
      return {text_.data(), text_.size()};
    }

   private:
    absl::InlinedVector<char, 128> text_;
  };
  static void VisitLeaves(
      const TensorDict& dict, WalkedKey* key,
      absl::FunctionRef<void(absl::string_view, const Tensor&)> fn);
  static void DeleteIf(
      TensorDict* dict, WalkedKey* key,
      absl::FunctionRef<bool(absl::string_view, const TensorDict*)> drops);
  // All tensors, also those inside non-tensor entries, in the order of Map with
  // kCopy. Allocates nothing.
  static void VisitTensors(const TensorDict& dict,
                           absl::FunctionRef<void(const Tensor&)> fn);
  static void VisitTensors(const Entry::Value& value,
                           absl::FunctionRef<void(const Tensor&)> fn);
  // The lazy stack that `key` leads into, and the key inside; null for none.
  static const LazyStack* FindLazyStack(const TensorDict& dict,
                                        absl::string_view key,
                                        absl::string_view* rest);
  static const LazyStack* StackOf(const Entry& entry);  // Null for none.
  static Entry::Value ValueOf(LazyStack stack);
  // The entry of this kind (or of one value for all rows where a stack of them
  // is wanted), or the error of a Get.
  static absl::StatusOr<const Entry*> FindKind(const TensorDict& dict,
                                               absl::string_view caller,
                                               absl::string_view key,
                                               EntryKind kind);
  // The dictionary in which the entry `key` stands.
  static const TensorDict* LevelOf(const TensorDict& dict,
                                   absl::string_view key);
  static bool CopyEntry(const TensorDict& from, absl::string_view key,
                        TensorDict* to);
  static void SetLocked(TensorDict* dict, bool locked);
  // CopyFrom of `from`, a part of the dictionary at `up`: checks and collects
  // entries to be replaced, or copies. Without `changes`, in lazy stacks, whose
  // members are shared, those entries must be equal.
  static absl::Status CopyElements(const TensorDict& from, const TensorDict& to,
                                   const Path* up, bool copies,
                                   Changes* changes);
  // A dictionary with those leaves copied into memory of `options` for which
  // `needs_copy` says so.
  static absl::StatusOr<TensorDict> Moved(
      const TensorDict& dict, const Tensor::Options& options, const ShapeOp& op,
      absl::FunctionRef<bool(const Tensor&)> needs_copy,
      const Stream* stream = nullptr, std::vector<Tensor>* in_flight = nullptr);

  // True if `out` has just the leaves of a result of `op`, ready to be written,
  // and shares no buffer with `like`.
  static bool CanHold(const TensorDict& out, const TensorDict& like,
                      const ShapeOp& op);
  // A new one, uninitialised, on the same devices. Pinned and mapped memory
  // become pageable.
  static absl::StatusOr<TensorDict> MakeLike(const TensorDict& like,
                                             const ShapeOp& op);
  // One with leaves fn(leaf, path), the others as `op` says.
  // `fn`: absl::StatusOr<Tensor>(const Tensor&, const Path&).
  template <typename Fn>
  static absl::StatusOr<TensorDict> Map(const TensorDict& dict,
                                        const ShapeOp& op, Fn&& fn,
                                        const Path* up = nullptr);
  // That a leaf of Map starts with the batch shape, if `op` is checked.
  static absl::Status CheckMapped(const TensorDict& result, const Tensor& leaf,
                                  const Path& path);

  static void Commit(Changes changes);
  // Rows `rows` of the non-tensor entries of `from`, for those of `to`.
  static absl::Status GatherOthers(const TensorDict& from,
                                   absl::Span<const int64_t> rows,
                                   const TensorDict& to, const Path* up,
                                   Changes* changes);
  // Device and dimension names of a result that was reused, on all levels.
  static void CopyLabels(const TensorDict& from, const ShapeOp& op,
                         TensorDict* to);

  // fn(leaf, leaf of the same key in `other`) for each leaf of `dict`; `other`
  // has them all. `fn`: absl::Status(const Tensor&, const Tensor&).
  template <typename Fn>
  static absl::Status ForEachPair(const TensorDict& dict,
                                  const TensorDict& other, Fn&& fn);
};

template <typename Fn>
absl::StatusOr<TensorDict> TensorDict::Internal::Map(const TensorDict& dict,
                                                     const ShapeOp& op, Fn&& fn,
                                                     const Path* up) {
  TensorDict result(op.Of(dict.batch_shape_));
  result.device_ = op.sets_device ? op.device : dict.device_;
  result.dim_names_ = NamesAfter(dict.dim_names_, op);
  result.entries_.reserve(dict.entries_.size());
  for (const Entry& entry : dict.entries_) {
    const Path path = {up, entry.name};
    if (const Tensor* tensor = entry.tensor()) {
      absl::StatusOr<Tensor> mapped = fn(*tensor, path);
      if (!mapped.ok()) return WithKey(mapped.status(), path);
      if (op.checked) {
        RILL_RETURN_IF_ERROR(CheckMapped(result, *mapped, path));
      }
      result.entries_.emplace_back(entry.name, *std::move(mapped));
    } else if (const TensorDict* nested = entry.dict()) {
      absl::StatusOr<TensorDict> mapped = Map(*nested, op, fn, &path);
      if (!mapped.ok()) return mapped;
      result.entries_.emplace_back(
          entry.name, std::make_unique<TensorDict>(*std::move(mapped)));
    } else if (op.kind == ShapeOp::kRows || op.kind == ShapeOp::kStack) {
      result.entries_.emplace_back(entry.name,
                                   tensor_internal::NonTensorPointer());
    } else {
      absl::StatusOr<Entry::Value> mapped = entry.other()->Map(op, fn, path);
      if (!mapped.ok()) return mapped.status();
      result.entries_.emplace_back(entry.name, *std::move(mapped));
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
    const Entry* pair = FindHere(other, entry.name, i);
    absl::Status status;
    if (const Tensor* leaf = entry.tensor()) {
      status = fn(*leaf, *pair->tensor());
    } else if (const TensorDict* nested = entry.dict()) {
      status = ForEachPair(*nested, *pair->dict(), fn);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace rill

#endif  // RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_
