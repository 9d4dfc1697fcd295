// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_reader.h"

#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/formats/memmap/memmap_meta.h"
#include "rill/formats/memmap/refusal.h"
#include "rill/tensordict/key.h"

namespace rill::formats_internal {
namespace {

using Kind = MemmapMeta::Kind;

// What a folder holds; nothing where it was refused and left out.
using Folder = std::variant<std::monostate, TensorDict, NonTensor>;

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

class Reader {
 public:
  Reader(const MemmapSource& source, const LoadMemmapOptions& options)
      : source_(source), options_(options) {}

  absl::StatusOr<TensorDict> ReadTop();

 private:
  absl::Status Refuse(absl::string_view key, absl::string_view where,
                      absl::string_view reason) const {
    return RefuseEntry(options_, key, where, reason);
  }
  absl::StatusOr<MemmapMeta> ReadMeta(const std::string& folder,
                                      absl::StatusCode missing) const;
  absl::StatusOr<std::string> FindEntry(const std::string& folder,
                                        const std::string& name,
                                        absl::string_view suffix,
                                        PathKind want);
  absl::Status Missing(const std::string& folder, const std::string& name,
                       absl::string_view what, absl::string_view want) const;

  absl::StatusOr<Folder> ReadFolder(const Place& place, const MemmapMeta& meta);
  absl::StatusOr<Folder> ReadValue(const Place& place, const MemmapMeta& meta);
  absl::StatusOr<Folder> ReadOther(const Place& place, const MemmapMeta& meta);
  absl::StatusOr<TensorDict> ReadDict(const Place& place,
                                      const MemmapMeta& meta);
  absl::Status ReadEntry(const Place& place, const MemmapMeta::Entry& entry,
                         TensorDict* dict);
  absl::StatusOr<Tensor> ReadLeaf(const Place& place,
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
    return absl::DataLossError(absl::StrCat(
        source_.Where(path), ": got it for two entries, want one"));
  }
  return std::string();
}

absl::Status Reader::Missing(const std::string& folder, const std::string& name,
                             absl::string_view what,
                             absl::string_view want) const {
  return absl::DataLossError(absl::StrCat(
      source_.Where(folder), ": entry \"", EscapeKeyComponent(name),
      "\": got no ", what, " \"", MemmapFileName(name),
      what == "file" ? ".memmap" : "", "\", want ", want));
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

absl::StatusOr<Folder> Reader::ReadValue(const Place& place,
                                         const MemmapMeta& meta) {
  if (meta.pickle.empty()) return Folder(NonTensor{meta.json});
  RILL_RETURN_IF_ERROR(
      Refuse(place.key, source_.Where(JoinPath(place.path, meta.pickle)),
             "a Python object; pickles are not read, as loading one runs "
             "code: save the value as JSON"));
  return Folder();
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
    return absl::DataLossError(absl::StrCat(
        source_.Where(inner.path), ": got something else, want a TensorDict"));
  }
  RILL_ASSIGN_OR_RETURN(TensorDict dict, ReadDict(inner, inner_meta));
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

absl::StatusOr<Folder> Reader::ReadFolder(const Place& place,
                                          const MemmapMeta& meta) {
  if (place.depth > kMaxMemmapDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat(source_.Where(place.path), ": depth: got ", place.depth,
                     ", want at most ", kMaxMemmapDepth));
  }
  switch (meta.kind) {
    case Kind::kDict: {
      RILL_ASSIGN_OR_RETURN(TensorDict dict, ReadDict(place, meta));
      return Folder(std::move(dict));
    }
    case Kind::kValue:
      return ReadValue(place, meta);
    case Kind::kValueStack:
    case Kind::kLazyStack:
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
    return Refuse(place.KeyOf(entry.name), source_.Where(place.path),
                  "a ragged tensor");
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
  RILL_ASSIGN_OR_RETURN(Folder folder, ReadFolder(inner, meta));
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

absl::StatusOr<TensorDict> Reader::ReadTop() {
  const Place top;
  RILL_ASSIGN_OR_RETURN(const MemmapMeta meta,
                        ReadMeta(top.path, absl::StatusCode::kNotFound));
  if (meta.kind == Kind::kValue || meta.kind == Kind::kValueStack) {
    return absl::InvalidArgumentError(absl::StrCat(
        source_.Where(top.path), ": got a single value, want a TensorDict"));
  }
  RILL_ASSIGN_OR_RETURN(Folder folder, ReadFolder(top, meta));
  if (auto* const dict = std::get_if<TensorDict>(&folder)) {
    return std::move(*dict);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      source_.Where(top.path), ": got ", meta.type, ", want a TensorDict"));
}

}  // namespace

absl::StatusOr<TensorDict> ReadMemmapTree(const MemmapSource& source,
                                          const LoadMemmapOptions& options) {
  return Reader(source, options).ReadTop();
}

}  // namespace rill::formats_internal
