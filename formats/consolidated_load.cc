// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/consolidated/consolidated_meta.h"
#include "rill/formats/consolidated/jagged.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap/refusal.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill {
namespace {

using formats_internal::ConsolidatedMeta;
using formats_internal::kMaxConsolidatedJsonBytes;
using Entry = ConsolidatedMeta::Entry;
using Kind = ConsolidatedMeta::Kind;
using Mode = LoadMemmapOptions::Mode;
using Type = ConsolidatedMeta::Type;

constexpr int64_t kLengthBytes = 8;  // Of the JSON's length at the end.
// Values of one stack, of which a JSON may ask for more than it has bytes.
constexpr int64_t kMaxValues = kMaxConsolidatedJsonBytes;

// Makes the dictionaries that a checked JSON describes. `prefix` and `whole`
// are keys from the top of the file, for messages and refusals.
class Loader {
 public:
  Loader(std::string where, std::shared_ptr<MappedFile> file,
         const LoadMemmapOptions& options)
      : where_(std::move(where)), file_(std::move(file)), options_(options) {}

  // The content of the JSON at the end.
  absl::StatusOr<ConsolidatedMeta> ReadMeta() const;
  absl::StatusOr<TensorDict> LoadDict(const ConsolidatedMeta& meta,
                                      absl::string_view prefix);
  absl::StatusOr<LazyStack> LoadStack(const ConsolidatedMeta& meta,
                                      absl::string_view prefix);

 private:
  absl::Status LoadEntry(const Entry& entry, absl::string_view prefix,
                         TensorDict* dict);
  absl::Status LoadInner(const std::string& key, const std::string& whole,
                         const std::string& where,
                         const ConsolidatedMeta& inner, TensorDict* dict);
  absl::StatusOr<NonTensorStack> LoadValues(const ConsolidatedMeta& meta) const;
  absl::StatusOr<RaggedTensor> LoadJagged(const std::string& where,
                                          const Entry& entry) const;

  std::string where_;
  std::shared_ptr<MappedFile> file_;
  const LoadMemmapOptions& options_;
};

// Stacks of values and of such stacks. kMaxValues bounds the size that a JSON
// of few bytes may ask for.
absl::StatusOr<NonTensorStack> Loader::LoadValues(
    const ConsolidatedMeta& meta) const {
  std::vector<NonTensorStack> parts;
  int64_t total = 0;
  for (const Entry& entry : meta.entries) {
    // Filled expands one element and takes no memory for rows, so the bound
    // below comes before Stack makes them.
    auto part = entry.kind == Kind::kInner
                    ? LoadValues(entry.inner[0])
                    : NonTensorStack::Filled(entry.shape, {entry.json});
    RILL_RETURN_IF_ERROR(part.status());
    if (__builtin_add_overflow(total, part->size(), &total) ||
        total > kMaxValues) {
      return InvalidArgument(where_, ": values of one stack: got more than ",
                             kMaxValues, ", want at most that");
    }
    parts.push_back(*std::move(part));
  }
  auto stack = parts.empty() ? NonTensorStack::Create({0}, {})
                             : NonTensorStack::Stack(parts, meta.stack_dim);
  if (stack.ok()) return stack;
  return DataLoss(where_, ": ", stack.status().message());
}

// Offsets and lengths are copied in any mode, as they are checked once and must
// not change afterwards. A file mapped shared could.
absl::StatusOr<RaggedTensor> Loader::LoadJagged(const std::string& where,
                                                const Entry& entry) const {
  std::vector<int64_t> numbers[2];
  for (size_t i = 0; i < entry.parts.size(); ++i) {
    const Entry& part = entry.parts[i];
    RILL_ASSIGN_OR_RETURN(Tensor leaf, formats_internal::MappedLeaf(
                                           where, file_, part.start, part.dtype,
                                           part.shape, Mode::kCopy));
    RILL_ASSIGN_OR_RETURN(leaf, Cast(leaf, DType::kInt64));
    numbers[i].assign(leaf.data<int64_t>(),
                      leaf.data<int64_t>() + leaf.num_elements());
  }
  RILL_ASSIGN_OR_RETURN(
      const Tensor values,
      formats_internal::MappedLeaf(where, file_, entry.start, entry.dtype,
                                   entry.shape, options_.mode));
  auto rows = formats_internal::FromJagged(values, numbers[0], numbers[1],
                                           entry.ragged_dim);
  if (!rows.ok()) {
    return DataLoss(where, ": ", rows.status().message());
  }
  // Rows that had to be copied would take writes that never reach the file.
  if (options_.mode == Mode::kMapShared && values.num_elements() > 0 &&
      rows->values().raw_data() != values.raw_data()) {
    return InvalidArgument(
        where,
        ": got jagged rows that do not lie one behind the other, want that to "
        "map them writable; load it read-only and save it again");
  }
  return rows;
}

absl::Status Loader::LoadInner(const std::string& key, const std::string& whole,
                               const std::string& where,
                               const ConsolidatedMeta& inner,
                               TensorDict* dict) {
  const std::string prefix = absl::StrCat(whole, "/");
  if (inner.type == Type::kDict) {
    RILL_ASSIGN_OR_RETURN(TensorDict value, LoadDict(inner, prefix));
    return dict->Set(key, std::move(value));
  }
  if (inner.type == Type::kLazyStack) {
    RILL_ASSIGN_OR_RETURN(LazyStack stack, LoadStack(inner, prefix));
    return dict->Set(key, std::move(stack));
  }
  RILL_ASSIGN_OR_RETURN(NonTensorStack values, LoadValues(inner));
  if (values.size() == 0) {  // Its shape is not in the JSON.
    auto none = NonTensorStack::Create(dict->batch_shape(), {});
    if (none.ok()) values = *std::move(none);
  }
  if (values.shape() != dict->batch_shape()) {
    return formats_internal::RefuseEntry(
        options_, whole, where,
        absl::StrCat("a stack of values: got shape ", values.shape().ToString(),
                     ", want the batch shape ",
                     dict->batch_shape().ToString()));
  }
  return dict->Set(key, std::move(values));
}

absl::Status Loader::LoadEntry(const Entry& entry, absl::string_view prefix,
                               TensorDict* dict) {
  const std::string key = EscapeKeyComponent(entry.name);
  const std::string whole = absl::StrCat(prefix, key);
  const std::string where = absl::StrCat(where_, ": entry \"", whole, "\"");
  if (entry.kind == Kind::kRefused || entry.name.empty()) {
    return formats_internal::RefuseEntry(
        options_, whole, where,
        entry.refusal.empty() ? "name: got none" : entry.refusal);
  }
  // Tensors, values and dictionaries are in objects of their own, so a name may
  // come twice.
  if (dict->Contains(key)) {
    return DataLoss(where, ": got it twice");
  }
  if (entry.kind == Kind::kValue) {
    return dict->Set(key, NonTensor{entry.json});
  }
  if (entry.kind == Kind::kInner) {
    return LoadInner(key, whole, where, entry.inner[0], dict);
  }
  if (entry.kind == Kind::kJagged) {
    const Shape rows({entry.parts[0].shape[0] - 1});
    if (dict->batch_shape() != rows) {
      return formats_internal::RefuseEntry(
          options_, whole, where,
          absl::StrCat("jagged tensor: got ", rows[0],
                       " rows, want a batch shape ", rows.ToString(),
                       " around them, not ", dict->batch_shape().ToString()));
    }
    RILL_ASSIGN_OR_RETURN(RaggedTensor jagged, LoadJagged(where, entry));
    return dict->Set(key, std::move(jagged));
  }
  RILL_ASSIGN_OR_RETURN(Tensor leaf, formats_internal::MappedLeaf(
                                         where, file_, entry.start, entry.dtype,
                                         entry.shape, options_.mode));
  return dict->Set(key, std::move(leaf));
}

absl::StatusOr<LazyStack> Loader::LoadStack(const ConsolidatedMeta& meta,
                                            absl::string_view prefix) {
  std::vector<TensorDict> members;
  for (const Entry& entry : meta.entries) {
    RILL_ASSIGN_OR_RETURN(
        TensorDict member,
        LoadDict(entry.inner[0], absl::StrCat(prefix, entry.name, "/")));
    members.push_back(std::move(member));
  }
  auto stack = LazyStack::Create(std::move(members), meta.stack_dim);
  if (!stack.ok()) {
    return DataLoss(where_, ": ", stack.status().message());
  }
  if (meta.is_locked) stack->Lock();
  return stack;
}

absl::StatusOr<TensorDict> Loader::LoadDict(const ConsolidatedMeta& meta,
                                            absl::string_view prefix) {
  TensorDict dict(meta.batch_shape);
  for (const Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(LoadEntry(entry, prefix, &dict))
        << "while loading " << where_;
  }
  if (!meta.dim_names.empty()) {
    if (const absl::Status status = dict.SetDimNames(meta.dim_names);
        !status.ok()) {
      return DataLoss(where_, ": names: ", status.message());
    }
  }
  // Last, as a locked dictionary takes no entries.
  if (meta.is_locked) dict.Lock();
  return dict;
}

absl::StatusOr<ConsolidatedMeta> Loader::ReadMeta() const {
  const int64_t size = file_->size_bytes();
  const char* const bytes = reinterpret_cast<const char*>(file_->data());
  if (size < kLengthBytes) {
    return DataLoss(where_, ": got ", size, " bytes, want at least ",
                    kLengthBytes);
  }
  const int64_t json_bytes =
      formats_internal::LoadLittle<int64_t>(bytes + size - kLengthBytes);
  if (json_bytes <= 0 || json_bytes > size - kLengthBytes) {
    return DataLoss(where_, ": length of the JSON at the end: got ", json_bytes,
                    ", want one in [1, ", size - kLengthBytes,
                    "]; it is no consolidated file or was cut short");
  }
  if (json_bytes > kMaxConsolidatedJsonBytes) {
    return InvalidArgument(where_, ": length of the JSON at the end: got ",
                           json_bytes, ", want <= ", kMaxConsolidatedJsonBytes);
  }
  // From the end: length, JSON, and what is before them are the tensors. So the
  // file can be written in one pass, and read with one look at its end.
  const int64_t data_bytes = size - kLengthBytes - json_bytes;
  return formats_internal::ParseConsolidatedMeta(
      where_, absl::string_view(bytes + data_bytes, json_bytes), data_bytes);
}

absl::StatusOr<Loader> Open(absl::string_view caller, const std::string& path,
                            const LoadMemmapOptions& options) {
  RILL_ASSIGN_OR_RETURN(
      std::shared_ptr<MappedFile> file,
      MappedFile::Open(path, options.mode == Mode::kMapShared
                                 ? MappedFile::Mode::kReadWrite
                                 : MappedFile::Mode::kReadOnly));
  return Loader(absl::StrCat(caller, ": \"", path, "\""), std::move(file),
                options);
}

absl::Status WrongType(absl::string_view caller, const std::string& path,
                       absl::string_view got, absl::string_view want) {
  return InvalidArgument(caller, ": \"", path, "\": got ", got, ", want ",
                         want);
}

}  // namespace

absl::StatusOr<TensorDict> LoadConsolidated(const std::string& path,
                                            const LoadMemmapOptions& options) {
  constexpr absl::string_view kCaller = "LoadConsolidated";
  RILL_ASSIGN_OR_RETURN(Loader loader, Open(kCaller, path, options));
  RILL_ASSIGN_OR_RETURN(const ConsolidatedMeta meta, loader.ReadMeta());
  if (meta.type == Type::kDict) return loader.LoadDict(meta, "");
  return WrongType(
      kCaller, path,
      meta.type == Type::kLazyStack ? "a lazy stack" : "a stack of values",
      "a TensorDict; LoadConsolidatedLazyStack loads lazy stacks");
}

absl::StatusOr<LazyStack> LoadConsolidatedLazyStack(
    const std::string& path, const LoadMemmapOptions& options) {
  constexpr absl::string_view kCaller = "LoadConsolidatedLazyStack";
  RILL_ASSIGN_OR_RETURN(Loader loader, Open(kCaller, path, options));
  RILL_ASSIGN_OR_RETURN(const ConsolidatedMeta meta, loader.ReadMeta());
  if (meta.type == Type::kLazyStack) return loader.LoadStack(meta, "");
  return WrongType(kCaller, path, "no lazy stack", "one; use LoadConsolidated");
}

}  // namespace rill
