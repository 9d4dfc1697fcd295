// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_files.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/formats/memmap/memmap_meta.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill::formats_internal {
namespace {

// Walks a dictionary and collects the files of its tree, in the order in which
// TorchRL's archive has them. Nothing is written here, so that every reason to
// refuse a save is met before the first byte.
class Lister {
 public:
  explicit Lister(absl::string_view caller) : caller_(caller) {}

  absl::Status AddDict(const TensorDict& dict, const std::string& folder,
                       int depth);
  absl::Status AddLazyStack(const LazyStack& stack, const std::string& folder,
                            int depth);

  std::vector<MemmapFile> Take() && { return std::move(files_); }

 private:
  // The files of one level, by name: the order in which they are written.
  struct Level {
    std::map<std::string, Tensor> leaves;
    std::map<std::string, std::string> folders;  // To keys.
  };

  // The reader refuses deeper trees, so they are not written.
  absl::Status CheckDepth(int depth) const {
    if (depth <= kMaxMemmapDepth) return absl::OkStatus();
    return InvalidArgument(caller_, ": depth: got more than ", kMaxMemmapDepth,
                           " dictionaries in one another, want at most that");
  }
  absl::Status NameIsTaken(absl::string_view key) const {
    return InvalidArgument(
        caller_, ": key: got \"", key,
        "\", want none of \"shape\", \"device\", \"_type\", and no two "
        "entries in one file; rename the entry");
  }
  absl::Status AddMeta(const MemmapMeta& meta, const std::string& folder) {
    RILL_ASSIGN_OR_RETURN(std::string text, FormatMemmapMeta(caller_, meta));
    files_.push_back(
        {.path = JoinPath(folder, "meta.json"), .text = std::move(text)});
    return absl::OkStatus();
  }
  absl::Status AddFolder(const TensorDict& dict, const std::string& key,
                         const std::string& folder, int depth);
  absl::StatusOr<MemmapMeta::Entry> Describe(const TensorDict& dict,
                                             const std::string& key,
                                             const std::string& name,
                                             Level* level) const;

  absl::string_view caller_;
  std::vector<MemmapFile> files_;
};

// The entry of `key` in meta.json. Puts its files into `level`, and refuses it
// where another entry has one of them: "a" and a dictionary "a.memmap", or a
// ragged "a" and a tensor "a.shape".
absl::StatusOr<MemmapMeta::Entry> Lister::Describe(const TensorDict& dict,
                                                   const std::string& key,
                                                   const std::string& name,
                                                   Level* level) const {
  MemmapMeta::Entry entry{.name = name};
  const std::string file = MemmapFileName(name);
  // Whether the names were free.
  bool is_new = !IsReservedMemmapName(name);
  const auto add_leaf = [&](absl::string_view suffix, const Tensor& leaf) {
    const std::string path = absl::StrCat(file, suffix);
    is_new = is_new && !level->folders.contains(path) &&
             level->leaves.emplace(path, leaf).second;
  };
  const std::optional<EntryKind> kind = dict.Kind(key);
  if (kind == EntryKind::kTensor) {
    const Tensor& leaf = *dict.Find(key);
    entry.dtype = leaf.dtype();
    entry.shape = leaf.shape();
    add_leaf(".memmap", leaf);
  } else if (kind == EntryKind::kRagged) {
    RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(key));
    entry.is_ragged = true;
    entry.dtype = rows.dtype();
    entry.shape = rows.shapes().shape();
    add_leaf(".memmap", rows.values());
    add_leaf(".shape.memmap", rows.shapes());
  } else {
    entry.is_leaf = false;
    entry.type = kind == EntryKind::kNonTensor        ? "NonTensorData"
                 : kind == EntryKind::kNonTensorStack ? "NonTensorStack"
                 : kind == EntryKind::kLazyStack      ? "LazyStackedTensorDict"
                                                      : "TensorDict";
    is_new = is_new && file != "meta.json" && !level->leaves.contains(file) &&
             level->folders.emplace(file, key).second;
  }
  if (!is_new) return NameIsTaken(key);
  return entry;
}

// The values of a stack as lists in one another, row-major.
std::string NestedLists(absl::Span<const std::string> values,
                        absl::Span<const int64_t> sizes) {
  if (sizes.empty()) return values[0];
  std::string text = "[";
  const int64_t rows = sizes[0];
  const int64_t step = rows == 0 ? 0 : values.size() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    absl::StrAppend(
        &text, row == 0 ? "" : ",",
        NestedLists(values.subspan(row * step, step), sizes.subspan(1)));
  }
  return absl::StrCat(text, "]");
}

absl::Status Lister::AddFolder(const TensorDict& dict, const std::string& key,
                               const std::string& folder, int depth) {
  MemmapMeta meta;
  switch (*dict.Kind(key)) {
    case EntryKind::kNonTensor: {
      RILL_ASSIGN_OR_RETURN(NonTensor value, dict.GetNonTensor(key));
      meta.kind = MemmapMeta::Kind::kValue;
      meta.json = std::move(value.json);
      return AddMeta(meta, folder);
    }
    case EntryKind::kNonTensorStack: {
      RILL_ASSIGN_OR_RETURN(const NonTensorStack values,
                            dict.GetNonTensorStack(key));
      meta.kind = MemmapMeta::Kind::kValueStack;
      if (values.shape().rank() == 0) {  // One row has no list: one value.
        meta.kind = MemmapMeta::Kind::kValue;
      }
      meta.json = NestedLists(values.values(), values.shape().sizes());
      return AddMeta(meta, folder);
    }
    case EntryKind::kLazyStack: {
      RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(key));
      return AddLazyStack(stack, folder, depth + 1);
    }
    default:
      return AddDict(*dict.FindDict(key), folder, depth + 1);
  }
}

absl::Status Lister::AddDict(const TensorDict& dict, const std::string& folder,
                             int depth) {
  RILL_RETURN_IF_ERROR(CheckDepth(depth));
  MemmapMeta meta;
  meta.batch_shape = dict.batch_shape();
  Level level;
  for (const std::string& key : dict.Keys()) {
    RILL_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitKey(key));
    RILL_ASSIGN_OR_RETURN(MemmapMeta::Entry entry,
                          Describe(dict, key, parts[0], &level));
    meta.entries.push_back(std::move(entry));
  }
  RILL_RETURN_IF_ERROR(AddMeta(meta, folder));
  for (const auto& [file, leaf] : level.leaves) {
    // TorchRL has no file for these.
    if (leaf.num_elements() == 0) continue;
    files_.push_back({.path = JoinPath(folder, file), .leaf = leaf});
  }
  for (const auto& [file, key] : level.folders) {
    RILL_RETURN_IF_ERROR(AddFolder(dict, key, JoinPath(folder, file), depth));
  }
  return absl::OkStatus();
}

absl::Status Lister::AddLazyStack(const LazyStack& stack,
                                  const std::string& folder, int depth) {
  RILL_RETURN_IF_ERROR(CheckDepth(depth));
  MemmapMeta meta;
  meta.kind = MemmapMeta::Kind::kLazyStack;
  meta.stack_dim = stack.stack_dim();
  RILL_RETURN_IF_ERROR(AddMeta(meta, folder));
  // As names sort: 0, 1, 10, 2.
  std::map<std::string, const TensorDict*> members;
  for (const TensorDict& member : stack.members()) {
    members.emplace(absl::StrCat(members.size()), &member);
  }
  for (const auto& [name, member] : members) {
    RILL_RETURN_IF_ERROR(AddDict(*member, JoinPath(folder, name), depth + 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<MemmapFile>> ListMemmapFiles(
    absl::string_view caller, const TensorDict& dict) {
  Lister lister(caller);
  RILL_RETURN_IF_ERROR(lister.AddDict(dict, "", /*depth=*/1));
  return std::move(lister).Take();
}

absl::StatusOr<std::vector<MemmapFile>> ListMemmapFiles(
    absl::string_view caller, const LazyStack& stack) {
  Lister lister(caller);
  RILL_RETURN_IF_ERROR(lister.AddLazyStack(stack, "", /*depth=*/1));
  return std::move(lister).Take();
}

}  // namespace rill::formats_internal
