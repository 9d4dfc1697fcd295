// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_
#define RILL_TENSORDICT_TENSOR_DICT_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
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
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

// The inside of TensorDict, for the .cc files of this package.
namespace rill {

struct TensorDict::Entry {
  // In the order of EntryKind.
  using Value = std::variant<Tensor, std::unique_ptr<TensorDict>, NonTensor,
                             std::shared_ptr<const NonTensorStack>,
                             std::shared_ptr<const LazyStack>,
                             std::shared_ptr<const RaggedTensor>>;

  template <typename V>
  Entry(absl::string_view name, V&& value)
      : name(name), value(std::forward<V>(value)) {}
  Entry(const Entry& other) : name(other.name), value(CopyOf(other.value)) {}
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) noexcept = default;

  static Value CopyOf(const Value& value) {
    return std::visit(
        [](const auto& held) -> Value {
          if constexpr (std::is_same_v<decltype(held),
                                       const std::unique_ptr<TensorDict>&>) {
            return std::make_unique<TensorDict>(*held);
          } else {
            return held;
          }
        },
        value);
  }

  static EntryKind KindOf(const Value& value) {
    return static_cast<EntryKind>(value.index());
  }
  static absl::string_view KindText(EntryKind kind);

  EntryKind kind() const { return KindOf(value); }
  // The value, or null if it is of another kind.
  const Tensor* tensor() const { return std::get_if<Tensor>(&value); }
  const NonTensor* non_tensor() const { return std::get_if<NonTensor>(&value); }
  TensorDict* dict() const { return Held<std::unique_ptr<TensorDict>>(); }
  const NonTensorStack* non_tensor_stack() const {
    return Held<std::shared_ptr<const NonTensorStack>>();
  }
  const LazyStack* lazy_stack() const {
    return Held<std::shared_ptr<const LazyStack>>();
  }
  const RaggedTensor* ragged() const {
    return Held<std::shared_ptr<const RaggedTensor>>();
  }
  bool is_non_tensor() const {
    return kind() == EntryKind::kNonTensor ||
           kind() == EntryKind::kNonTensorStack;
  }

  template <typename Pointer>
  typename Pointer::element_type* Held() const {
    const Pointer* held = std::get_if<Pointer>(&value);
    return held == nullptr ? nullptr : held->get();
  }

  std::string name;  // One component, escaped, so that texts compare as such.
  Value value;
};

// The change of batch dimensions by an operation on shapes. Decides what
// becomes of entries that are neither tensors nor dictionaries, and of
// dimension names.
struct TensorDict::ShapeOp {
  enum Kind {
    kCopy,       // The shape stays; every tensor inside is mapped.
    kSelect,     // Drops `dim`, taking `begin` of it.
    kSlice,      // [begin, end) of `dim`.
    kUnsqueeze,  // A new dimension `dim`.
    kOpaque,     // Another shape, by a function on tensors.
    kRows,       // As kStack, with the same dimensions.
    kStack,      // A new dimension `dim`; the rare entries are put in place
                 // later (Internal::Changes), till then a NonTensor.
  };
  Kind kind = kCopy;
  int dim = -1;
  int64_t begin = 0;
  int64_t end = 0;
};

struct TensorDict::Internal {
  struct Joiner;      // Stack and Cat.
  struct Comparison;  // CheckEqual and CheckClose.

  // Values to put into entries once nothing can fail any more.
  struct Change {
    Entry* entry;
    Entry::Value value;
  };
  using Changes = std::vector<Change>;

  // Dimension names after `op`.
  using Names = std::shared_ptr<const std::vector<std::string>>;
  static Names NamesAfter(const Names& names, const ShapeOp& op) {
    return names == nullptr ? nullptr : ChangedNames(*names, op);
  }
  static Names ChangedNames(std::vector<std::string> names, const ShapeOp& op);

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
  // Set without a look at the lock.
  static absl::Status SetValue(TensorDict* dict, absl::string_view key,
                               Entry::Value&& value);
  static absl::Status CheckStart(const TensorDict& dict, absl::string_view what,
                                 absl::string_view key,
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
  static void VisitLeaves(
      const TensorDict& dict, std::string* prefix,
      absl::FunctionRef<void(absl::string_view, const Tensor&)> fn);
  // Leaves, those of lazy stacks' members and values of ragged tensors, in the
  // order of Map with kCopy. Allocates nothing.
  static void VisitTensors(const TensorDict& dict,
                           absl::FunctionRef<void(const Tensor&)> fn);
  // The lazy stack that `key` leads into, and the key inside; null for none.
  static Entry* FindLazyStack(const TensorDict& dict, absl::string_view key,
                              absl::string_view* rest);
  // The entry of this kind (or of one value for all rows where a stack of them
  // is wanted), or the error of a Get.
  static absl::StatusOr<const Entry*> FindKind(const TensorDict& dict,
                                               absl::string_view caller,
                                               absl::string_view key,
                                               EntryKind kind);
  // The dictionary in which the entry `key` stands.
  static const TensorDict* LevelOf(const TensorDict& dict,
                                   absl::string_view key);
  static absl::Status WithKey(const absl::Status& status, const Path& path);

  static bool CopyEntry(const TensorDict& from, absl::string_view key,
                        TensorDict* to);
  static void SetDevice(TensorDict* dict, std::optional<Device> device);
  static void SetLocked(TensorDict* dict, bool locked);
  static bool SameNonTensor(const Entry& a, const Entry& b);
  // CopyFrom of `from`, a part of the dictionary at `up`: checks and collects
  // NonTensor values, or copies. Without `changes`, in lazy stacks, whose
  // members are shared, those values must be equal.
  static absl::Status CopyElements(const TensorDict& from, const TensorDict& to,
                                   const Path* up, bool copies,
                                   Changes* changes);
  // A dictionary with those leaves copied into memory of `options` for which
  // `needs_copy` says so.
  static absl::StatusOr<TensorDict> Moved(
      const TensorDict& dict, const Tensor::Options& options,
      absl::FunctionRef<bool(const Tensor&)> needs_copy,
      const Stream* stream = nullptr, std::vector<Tensor>* in_flight = nullptr);

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
                                             const Shape& prefix, int old_rank,
                                             const ShapeOp& op);
  // One with leaves fn(leaf), the others as `op` says.
  // `fn`: absl::StatusOr<Tensor>(const Tensor&).
  template <typename Fn>
  static absl::StatusOr<TensorDict> Map(const TensorDict& dict,
                                        const Shape& prefix, int old_rank,
                                        const ShapeOp& op, Fn&& fn,
                                        const Path* up = nullptr);
  // The entry at `path`, no tensor or dictionary, in a result of `batch_shape`.
  static absl::StatusOr<Entry::Value> MapRare(
      const Entry& entry, const Shape& batch_shape, const Shape& prefix,
      int old_rank, const ShapeOp& op,
      absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn,
      const Path& path);
  // Apply of the entry `key` of `from`, no tensor or dictionary, into `to`.
  static absl::Status ApplyRare(const Entry& entry, const std::string& key,
                                const TensorDict& from,
                                absl::FunctionRef<absl::StatusOr<Tensor>(
                                    absl::string_view, const Tensor&)>
                                    fn,
                                TensorDict* to);
  static absl::StatusOr<Entry::Value> MapLazyStack(
      const LazyStack& stack, const Shape& prefix, int old_rank,
      const ShapeOp& op,
      absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)> fn,
      const Path& path);
  static Entry::Value ValueOf(NonTensorStack values);
  static Entry::Value ValueOf(LazyStack stack);
  static Entry::Value ValueOf(RaggedTensor rows);

  static void Commit(Changes changes);
  // Rows `rows` of the rare entries of `from`, for those of `to`.
  static absl::Status GatherRare(const TensorDict& from,
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
                                                     const Shape& prefix,
                                                     int old_rank,
                                                     const ShapeOp& op, Fn&& fn,
                                                     const Path* up) {
  TensorDict result(WithPrefix(dict.batch_shape_, prefix, old_rank));
  result.device_ = dict.device_;
  result.dim_names_ = NamesAfter(dict.dim_names_, op);
  result.entries_.reserve(dict.entries_.size());
  for (const Entry& entry : dict.entries_) {
    const Path path = {up, entry.name};
    if (const Tensor* tensor = entry.tensor()) {
      absl::StatusOr<Tensor> mapped = fn(*tensor);
      if (!mapped.ok()) return WithKey(mapped.status(), path);
      result.entries_.emplace_back(entry.name, *std::move(mapped));
    } else if (const TensorDict* nested = entry.dict()) {
      absl::StatusOr<TensorDict> mapped =
          Map(*nested, prefix, old_rank, op, fn, &path);
      if (!mapped.ok()) return mapped;
      result.entries_.emplace_back(
          entry.name, std::make_unique<TensorDict>(*std::move(mapped)));
    } else {
      absl::StatusOr<Entry::Value> mapped =
          MapRare(entry, result.batch_shape_, prefix, old_rank, op, fn, path);
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
