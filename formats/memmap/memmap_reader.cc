// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_reader.h"

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/json/bounded_json.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/formats/memmap/memmap_meta.h"
#include "rill/formats/memmap/refusal.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

// A walk from meta.json to meta.json. A folder's own meta.json says what it is;
// the entry in the one above only names it. Three kinds of errors are kept
// apart. Contradictions and missing files are DATA_LOSS; depths and sizes that
// are too large are INVALID_ARGUMENT. An entry that is whole but has no form
// here goes through Refuse, so that the rest can be loaded.

namespace rill::formats_internal {
namespace {

using Kind = MemmapMeta::Kind;

// The content of a folder; nothing where it was refused and left out.
using Folder = std::variant<std::monostate, TensorDict, NonTensor,
                            NonTensorStack, LazyStack>;

// A place in the tree.
struct Place {
  std::string path = {};  // Of the folder.
  std::string key = {};   // "" for the top.
  int depth = 1;

  std::string KeyOf(absl::string_view name) const {
    const std::string component = EscapeKeyComponent(name);
    return key.empty() ? component : absl::StrCat(key, "/", component);
  }
};

// Elements of all rows that a table of shapes has. The table is from outside:
// each product and the sum are checked for overflow.
absl::StatusOr<int64_t> CountElements(absl::string_view where,
                                      const Tensor& table) {
  const int64_t rows = table.shape()[0];
  const int64_t rank = table.shape()[1];
  // An element a row. Such a table has no bytes, so nothing bounds `rows`.
  if (rank == 0) return rows;
  const int64_t* const sizes = table.data<int64_t>();
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t elements = 1;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = sizes[row * rank + d];
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
        return DataLoss(where, ": shape of row ", row, ": got size ", size,
                        ", want sizes >= 0 whose product fits in int64");
      }
    }
    if (__builtin_add_overflow(total, elements, &total)) {
      return DataLoss(where, ": elements up to row ", row,
                      " do not fit in int64");
    }
  }
  return total;
}

class Reader {
 public:
  Reader(const MemmapSource& source, const LoadMemmapOptions& options)
      : source_(source), options_(options) {}

  absl::StatusOr<TensorDict> ReadTopDict();
  absl::StatusOr<LazyStack> ReadTopLazyStack();

 private:
  absl::Status Refuse(absl::string_view key, absl::string_view where,
                      absl::string_view reason) const {
    return RefuseEntry(options_, key, where, reason);
  }
  // `missing` is the code where there is none: NOT_FOUND at the top, where a
  // user gave a wrong path; DATA_LOSS below it.
  absl::StatusOr<MemmapMeta> ReadMeta(const std::string& folder,
                                      absl::StatusCode missing) const;
  absl::StatusOr<std::string> FindEntry(const std::string& folder,
                                        const std::string& name,
                                        absl::string_view suffix,
                                        PathKind want);
  absl::Status Missing(const std::string& folder, const std::string& name,
                       absl::string_view what, absl::string_view want) const;

  absl::StatusOr<Folder> ReadFolder(const Place& place, const MemmapMeta& meta,
                                    const Shape& batch_shape);
  absl::StatusOr<Folder> ReadValue(const Place& place, const MemmapMeta& meta,
                                   const Shape& batch_shape);
  absl::StatusOr<Folder> ReadLazyStack(const Place& place,
                                       const MemmapMeta& meta);
  absl::StatusOr<Folder> ReadOther(const Place& place, const MemmapMeta& meta);
  absl::StatusOr<TensorDict> ReadDict(const Place& place,
                                      const MemmapMeta& meta);
  absl::Status ReadEntry(const Place& place, const MemmapMeta::Entry& entry,
                         TensorDict* dict);
  absl::StatusOr<Tensor> ReadLeaf(const Place& place,
                                  const MemmapMeta::Entry& entry);
  absl::StatusOr<RaggedTensor> ReadRagged(const Place& place,
                                          const MemmapMeta::Entry& entry);

  const MemmapSource& source_;
  const LoadMemmapOptions& options_;
  std::set<std::string> taken_;  // What FindEntry gave.
};

absl::StatusOr<MemmapMeta> Reader::ReadMeta(const std::string& folder,
                                            absl::StatusCode missing) const {
  const std::string path = JoinPath(folder, "meta.json");
  RILL_ASSIGN_OR_RETURN(const PathKind kind, source_.LookAt(path));
  if (kind != PathKind::kFile) {
    return absl::Status(
        missing, absl::StrCat(source_.Where(folder),
                              ": got no \"meta.json\", want one; no TensorDict "
                              "was saved there"));
  }
  RILL_ASSIGN_OR_RETURN(const std::string text,
                        source_.ReadText(path, kMaxMetaBytes));
  return ParseMemmapMeta(source_.Where(path), text);
}

// The path of an entry: its encoded name, or the bare one as older files have
// it. Empty where neither is there. DATA_LOSS where it is another entry's too
// ("a/b" and "a%2Fb"): a few such folders in one another would be read for
// hours.
absl::StatusOr<std::string> Reader::FindEntry(const std::string& folder,
                                              const std::string& name,
                                              absl::string_view suffix,
                                              PathKind want) {
  for (const bool is_encoded : {true, false}) {
    if (!is_encoded && !MayNameFileItself(name)) break;
    const std::string path = JoinPath(
        folder, absl::StrCat(is_encoded ? MemmapFileName(name) : name, suffix));
    RILL_ASSIGN_OR_RETURN(const PathKind kind, source_.LookAt(path));
    if (kind != want) continue;
    if (taken_.insert(path).second) return path;
    return DataLoss(source_.Where(path), ": got it for two entries, want one");
  }
  return std::string();
}

absl::Status Reader::Missing(const std::string& folder, const std::string& name,
                             absl::string_view what,
                             absl::string_view want) const {
  return DataLoss(source_.Where(folder), ": entry \"", EscapeKeyComponent(name),
                  "\": got no ", what, " \"", MemmapFileName(name),
                  what == "file" ? ".memmap" : "", "\", want ", want);
}

absl::StatusOr<Tensor> Reader::ReadLeaf(const Place& place,
                                        const MemmapMeta::Entry& entry) {
  RILL_ASSIGN_OR_RETURN(
      const int64_t bytes,
      LeafBytes(absl::StrCat(source_.Where(place.path), ": entry \"",
                             EscapeKeyComponent(entry.name), "\""),
                entry.dtype, entry.shape));
  if (bytes == 0) return Tensor::Empty(entry.dtype, entry.shape);
  RILL_ASSIGN_OR_RETURN(
      const std::string path,
      FindEntry(place.path, entry.name, ".memmap", PathKind::kFile));
  if (path.empty()) {
    return Missing(place.path, entry.name, "file",
                   absl::StrCat("one of ", bytes, " bytes"));
  }
  return source_.OpenLeaf(path, entry.dtype, entry.shape, bytes);
}

// A table of shapes in one file, all rows in another, maybe with some slack
// behind them.
absl::StatusOr<RaggedTensor> Reader::ReadRagged(
    const Place& place, const MemmapMeta::Entry& entry) {
  const std::string where =
      absl::StrCat(source_.Where(place.path), ": entry \"",
                   EscapeKeyComponent(entry.name), "\"");
  RILL_ASSIGN_OR_RETURN(const int64_t table_bytes,
                        LeafBytes(where, DType::kInt64, entry.shape));
  RILL_ASSIGN_OR_RETURN(Tensor table,
                        Tensor::Empty(DType::kInt64, Shape({0, 0})));
  if (table_bytes == 0) {
    RILL_ASSIGN_OR_RETURN(table, Tensor::Empty(DType::kInt64, entry.shape));
  } else {
    RILL_ASSIGN_OR_RETURN(
        const std::string path,
        FindEntry(place.path, entry.name, ".shape.memmap", PathKind::kFile));
    if (path.empty()) {
      return Missing(place.path, entry.name, "table of shapes",
                     absl::StrCat("one of ", table_bytes, " bytes"));
    }
    RILL_ASSIGN_OR_RETURN(
        table, source_.OpenLeaf(path, DType::kInt64, entry.shape, table_bytes));
  }
  RILL_ASSIGN_OR_RETURN(const int64_t total, CountElements(where, table));
  MemmapMeta::Entry values = entry;
  RILL_ASSIGN_OR_RETURN(values.shape, Shape::Create({total}));
  RILL_ASSIGN_OR_RETURN(const Tensor leaf, ReadLeaf(place, values));
  return RaggedTensor::Create(leaf, table);
}

// The value of each row out of lists in one another. They are as deep as the
// batch; what is in them may be lists too.
absl::Status Flatten(absl::string_view where,
                     const nlohmann::ordered_json& json,
                     absl::Span<const int64_t> sizes,
                     std::vector<std::string>* values) {
  if (sizes.empty()) {
    values->push_back(JsonText(json));
    return absl::OkStatus();
  }
  if (!json.is_array() || static_cast<int64_t>(json.size()) != sizes[0]) {
    return DataLoss(where, ": data: got ", ShownJson(json), ", want a list of ",
                    sizes[0]);
  }
  for (const nlohmann::ordered_json& part : json) {
    RILL_RETURN_IF_ERROR(Flatten(where, part, sizes.subspan(1), values));
  }
  return absl::OkStatus();
}

// `batch_shape` is that of the dictionary around it: it says how deep the lists
// of a stack are. No pickle is opened, as that would run its code.
absl::StatusOr<Folder> Reader::ReadValue(const Place& place,
                                         const MemmapMeta& meta,
                                         const Shape& batch_shape) {
  if (!meta.pickle.empty()) {
    RILL_RETURN_IF_ERROR(
        Refuse(place.key, source_.Where(JoinPath(place.path, meta.pickle)),
               "a Python object; pickles are not read, as loading one runs "
               "code: save the value as JSON"));
    return Folder();
  }
  if (meta.kind == Kind::kValue || batch_shape.rank() == 0) {
    return Folder(NonTensor{meta.json});
  }
  const std::string where = source_.Where(JoinPath(place.path, "meta.json"));
  RILL_ASSIGN_OR_RETURN(const auto json, ParseBoundedJson(where, meta.json));
  std::vector<std::string> values;
  RILL_RETURN_IF_ERROR(Flatten(where, json, batch_shape.sizes(), &values));
  RILL_ASSIGN_OR_RETURN(NonTensorStack stack,
                        NonTensorStack::Create(batch_shape, values));
  return Folder(std::move(stack));
}

// The number of members is written nowhere.
// Folders "0", "1", ... while there are any. Refused as a whole where a member
// is a stack itself, which a LazyStack cannot have, or refused.
absl::StatusOr<Folder> Reader::ReadLazyStack(const Place& place,
                                             const MemmapMeta& meta) {
  std::vector<TensorDict> members;
  for (;;) {
    const std::string name = absl::StrCat(members.size());
    const Place inner = {.path = JoinPath(place.path, name),
                         .key = place.KeyOf(name),
                         .depth = place.depth + 1};
    RILL_ASSIGN_OR_RETURN(const PathKind kind, source_.LookAt(inner.path));
    if (kind != PathKind::kDirectory) break;
    RILL_ASSIGN_OR_RETURN(const MemmapMeta inner_meta,
                          ReadMeta(inner.path, absl::StatusCode::kDataLoss));
    // Before the member is read: its tensors would be mapped for nothing.
    if (inner_meta.kind == Kind::kLazyStack) {
      RILL_RETURN_IF_ERROR(
          Refuse(place.key, source_.Where(place.path),
                 absl::StrCat("a lazy stack whose member ", name,
                              " is a stack, want a TensorDict")));
      return Folder();
    }
    RILL_ASSIGN_OR_RETURN(Folder folder,
                          ReadFolder(inner, inner_meta, Shape()));
    if (std::holds_alternative<std::monostate>(folder)) return folder;
    auto* const dict = std::get_if<TensorDict>(&folder);
    if (dict == nullptr) {
      return InvalidArgument(
          source_.Where(inner.path),
          ": got something else, want a TensorDict as the others");
    }
    members.push_back(std::move(*dict));
  }
  if (members.empty()) {
    return DataLoss(source_.Where(place.path),
                    ": got no folder \"0\", want the members of "
                    "a lazy stack");
  }
  auto stack = LazyStack::Create(std::move(members), meta.stack_dim);
  if (stack.ok()) return Folder(*std::move(stack));
  return DataLoss(source_.Where(place.path), ": ", stack.status().message());
}

// A class of Python whose tensors lie in a dictionary of their own.
absl::StatusOr<Folder> Reader::ReadOther(const Place& place,
                                         const MemmapMeta& meta) {
  const Place inner = {.path = JoinPath(place.path, "_tensordict"),
                       .key = place.key,
                       .depth = place.depth + 1};
  RILL_ASSIGN_OR_RETURN(const PathKind kind, source_.LookAt(inner.path));
  if (kind != PathKind::kDirectory) {
    RILL_RETURN_IF_ERROR(Refuse(
        place.key, source_.Where(JoinPath(place.path, "meta.json")),
        absl::StrCat("_type: got ", meta.type,
                     ", want a TensorDict, a lazy stack, a value, or a class "
                     "with a folder \"_tensordict\"")));
    return Folder();
  }
  RILL_ASSIGN_OR_RETURN(const MemmapMeta inner_meta,
                        ReadMeta(inner.path, absl::StatusCode::kDataLoss));
  if (inner_meta.kind != Kind::kDict) {
    return DataLoss(source_.Where(inner.path),
                    ": got something else, want a TensorDict");
  }
  RILL_ASSIGN_OR_RETURN(TensorDict dict, ReadDict(inner, inner_meta));
  // The tensors' entries come first: a field of the same name is left out.
  for (const auto& [name, json] : meta.fields) {
    const std::string key = EscapeKeyComponent(name);
    if (name.empty() || dict.Contains(key)) continue;
    RILL_RETURN_IF_ERROR(dict.Set(key, NonTensor{json}));
  }
  const std::string pickle = JoinPath(place.path, "other.pickle");
  RILL_ASSIGN_OR_RETURN(const PathKind pickled, source_.LookAt(pickle));
  if (pickled != PathKind::kMissing) {
    RILL_RETURN_IF_ERROR(
        Refuse(place.KeyOf("other.pickle"), source_.Where(pickle),
               "fields that are Python objects; pickles are not read, as "
               "loading one runs code: save them as JSON"));
  }
  return Folder(std::move(dict));
}

// Bounds the depth of the recursion: what a folder holds comes through here.
absl::StatusOr<Folder> Reader::ReadFolder(const Place& place,
                                          const MemmapMeta& meta,
                                          const Shape& batch_shape) {
  if (place.depth > kMaxMemmapDepth) {
    return InvalidArgument(source_.Where(place.path), ": depth: got ",
                           place.depth, ", want at most ", kMaxMemmapDepth);
  }
  switch (meta.kind) {
    case Kind::kDict: {
      RILL_ASSIGN_OR_RETURN(TensorDict dict, ReadDict(place, meta));
      return Folder(std::move(dict));
    }
    case Kind::kLazyStack:
      return ReadLazyStack(place, meta);
    case Kind::kValue:
    case Kind::kValueStack:
      return ReadValue(place, meta, batch_shape);
    case Kind::kOther:
      break;
  }
  return ReadOther(place, meta);
}

absl::Status Reader::ReadEntry(const Place& place,
                               const MemmapMeta::Entry& entry,
                               TensorDict* dict) {
  const std::string key = EscapeKeyComponent(entry.name);
  if (entry.name.empty() || !entry.refusal.empty()) {
    return Refuse(
        place.KeyOf(entry.name),
        absl::StrCat(source_.Where(place.path), ": entry \"", key, "\""),
        entry.refusal.empty() ? "name: got none" : entry.refusal);
  }
  if (entry.is_ragged) {
    if (const Shape rows({entry.shape[0]}); dict->batch_shape() != rows) {
      return Refuse(
          place.KeyOf(entry.name), source_.Where(place.path),
          absl::StrCat("ragged tensor \"", key, "\": got ", entry.shape[0],
                       " rows, want a batch shape ", rows.ToString(),
                       " around them, not ", dict->batch_shape().ToString()));
    }
    RILL_ASSIGN_OR_RETURN(RaggedTensor rows, ReadRagged(place, entry));
    return dict->Set(key, std::move(rows));
  }
  if (entry.is_leaf) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, ReadLeaf(place, entry));
    return dict->Set(key, std::move(leaf));
  }
  Place inner = {.key = place.KeyOf(entry.name), .depth = place.depth + 1};
  RILL_ASSIGN_OR_RETURN(
      inner.path, FindEntry(place.path, entry.name, "", PathKind::kDirectory));
  if (inner.path.empty()) {
    return Missing(place.path, entry.name, "directory",
                   absl::StrCat("one of a ", entry.type.substr(0, 80)));
  }
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(inner.path, absl::StatusCode::kDataLoss));
  RILL_ASSIGN_OR_RETURN(Folder folder,
                        ReadFolder(inner, meta, dict->batch_shape()));
  return std::visit(
      [&](auto&& value) -> absl::Status {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>,
                                     std::monostate>) {
          return absl::OkStatus();
        } else {
          return dict->Set(key, std::move(value));
        }
      },
      std::move(folder));
}

absl::StatusOr<TensorDict> Reader::ReadDict(const Place& place,
                                            const MemmapMeta& meta) {
  TensorDict dict(meta.batch_shape);
  for (const MemmapMeta::Entry& entry : meta.entries) {
    RILL_RETURN_IF_ERROR(ReadEntry(place, entry, &dict))
        << "while loading \"" << place.KeyOf(entry.name) << "\"";
  }
  return dict;
}

absl::StatusOr<TensorDict> Reader::ReadTopDict() {
  const Place top;
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(top.path, absl::StatusCode::kNotFound));
  if (meta.kind != Kind::kDict && meta.kind != Kind::kOther) {
    return InvalidArgument(
        source_.Where(top.path), ": got ",
        meta.kind == Kind::kLazyStack
            ? "a lazy stack, want a TensorDict; use LoadMemmapLazyStack "
              "or LoadTdzLazyStack"
            : "a single value, want a TensorDict");
  }
  RILL_ASSIGN_OR_RETURN(Folder folder, ReadFolder(top, meta, Shape()));
  if (auto* const dict = std::get_if<TensorDict>(&folder)) {
    return std::move(*dict);
  }
  return InvalidArgument(  // It was refused.
      source_.Where(top.path), ": _type: got ", meta.type,
      ", want a TensorDict");
}

absl::StatusOr<LazyStack> Reader::ReadTopLazyStack() {
  const Place top;
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(top.path, absl::StatusCode::kNotFound));
  if (meta.kind != Kind::kLazyStack) {
    return InvalidArgument(
        source_.Where(top.path),
        ": got no lazy stack, want one; use LoadMemmapDirectory "
        "or LoadTdz");
  }
  RILL_ASSIGN_OR_RETURN(Folder folder, ReadLazyStack(top, meta));
  if (auto* const stack = std::get_if<LazyStack>(&folder)) {
    return std::move(*stack);
  }
  return InvalidArgument(  // It was refused.
      source_.Where(top.path),
      ": got a lazy stack of what is refused, want "
      "one of TensorDicts");
}

}  // namespace

absl::StatusOr<TensorDict> ReadMemmapTree(const MemmapSource& source,
                                          const LoadMemmapOptions& options) {
  return Reader(source, options).ReadTopDict();
}

absl::StatusOr<LazyStack> ReadMemmapLazyStack(
    const MemmapSource& source, const LoadMemmapOptions& options) {
  return Reader(source, options).ReadTopLazyStack();
}

}  // namespace rill::formats_internal
