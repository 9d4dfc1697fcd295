// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap/memmap_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/formats/memmap/memmap_meta.h"
#include "rill/tensordict/key.h"

namespace rill::formats_internal {
namespace {

class Lister {
 public:
  explicit Lister(absl::string_view caller) : caller_(caller) {}

  absl::Status AddDict(const TensorDict& dict, const std::string& folder,
                       int depth);

  std::vector<MemmapFile> Take() && { return std::move(files_); }

 private:
  absl::Status CheckDepth(int depth) const {
    if (depth <= kMaxMemmapDepth) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(caller_, ": depth: got more than ", kMaxMemmapDepth,
                     " dictionaries in one another, want at most that"));
  }
  absl::Status NameIsTaken(absl::string_view key) const {
    return absl::InvalidArgumentError(absl::StrCat(
        caller_, ": key: got \"", key,
        "\", want none of \"shape\", \"device\", \"_type\", and no two "
        "entries in one file; rename the entry"));
  }
  absl::Status AddMeta(const MemmapMeta& meta, const std::string& folder) {
    RILL_ASSIGN_OR_RETURN(std::string text, FormatMemmapMeta(caller_, meta));
    files_.push_back(
        {.path = JoinPath(folder, "meta.json"), .text = std::move(text)});
    return absl::OkStatus();
  }
  absl::Status AddValue(const NonTensor& value, const std::string& folder) {
    MemmapMeta meta;
    meta.kind = MemmapMeta::Kind::kValue;
    meta.json = value.json;
    return AddMeta(meta, folder);
  }

  absl::string_view caller_;
  std::vector<MemmapFile> files_;
};

absl::Status Lister::AddDict(const TensorDict& dict, const std::string& folder,
                             int depth) {
  RILL_RETURN_IF_ERROR(CheckDepth(depth));
  MemmapMeta meta;
  meta.batch_shape = dict.batch_shape();
  // By file name, which is the order they are written in.
  std::map<std::string, const Tensor*> leaves;
  std::map<std::string, std::string> folders;  // To keys.
  for (const std::string& key : dict.Keys()) {
    RILL_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitKey(key));
    const Tensor* const leaf = dict.Find(key);
    const std::string file = absl::StrCat(MemmapFileName(parts[0]),
                                          leaf != nullptr ? ".memmap" : "");
    if (IsReservedMemmapName(parts[0]) || file == "meta.json" ||
        leaves.contains(file) || folders.contains(file)) {
      return NameIsTaken(key);
    }
    MemmapMeta::Entry entry{.name = parts[0]};
    if (leaf != nullptr) {
      leaves[file] = leaf;
      entry.dtype = leaf->dtype();
      entry.shape = leaf->shape();
    } else {
      folders[file] = key;
      entry.is_leaf = false;
      if (dict.FindDict(key) == nullptr) entry.type = "NonTensorData";
    }
    meta.entries.push_back(std::move(entry));
  }
  RILL_RETURN_IF_ERROR(AddMeta(meta, folder));
  for (const auto& [file, leaf] : leaves) {
    if (leaf->num_elements() == 0) continue;
    files_.push_back({.path = JoinPath(folder, file), .leaf = *leaf});
  }
  for (const auto& [file, key] : folders) {
    const std::string path = JoinPath(folder, file);
    if (const TensorDict* const inner = dict.FindDict(key)) {
      RILL_RETURN_IF_ERROR(AddDict(*inner, path, depth + 1));
    } else {
      RILL_ASSIGN_OR_RETURN(const NonTensor value, dict.GetNonTensor(key));
      RILL_RETURN_IF_ERROR(AddValue(value, path));
    }
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

}  // namespace rill::formats_internal
