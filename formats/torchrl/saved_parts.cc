// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/torchrl/saved_parts.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/mapped_leaf.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_options.h"

namespace rill::formats_internal {
namespace {

constexpr absl::string_view kCaller = "ReadTorchRlReplayBuffer";

}  // namespace

std::string SavedTorchRl::Path(absl::string_view path) const {
  return JoinPath(directory_, path);
}

std::string SavedTorchRl::Where(absl::string_view path) const {
  return absl::StrCat(kCaller, ": \"", Path(path), "\"");
}

absl::StatusOr<PathKind> SavedTorchRl::LookAt(absl::string_view path) const {
  return formats_internal::LookAt(kCaller, Path(path));
}

absl::StatusOr<std::string> SavedTorchRl::ReadText(
    absl::string_view path) const {
  RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt(path));
  if (kind != PathKind::kFile) {
    return DataLoss(Where(path),
                    ": got no such file; the save broke off, or is of "
                    "another kind");
  }
  return ReadFile(Path(path), kMaxTorchRlJsonBytes);
}

// Looked at before it is opened: the open would follow a link out of the
// directory.
absl::StatusOr<Tensor> SavedTorchRl::ReadLeaf(absl::string_view path,
                                              DType dtype,
                                              const Shape& shape) const {
  RILL_ASSIGN_OR_RETURN(const int64_t bytes,
                        LeafBytes(Where(path), dtype, shape));
  if (bytes == 0) return Tensor::Empty(dtype, shape);
  RILL_ASSIGN_OR_RETURN(const PathKind kind, LookAt(path));
  if (kind != PathKind::kFile) {
    return DataLoss(Where(path), ": got no such file, want ", bytes, " bytes");
  }
  const bool is_shared = options_.mode == LoadMemmapOptions::Mode::kMapShared;
  RILL_ASSIGN_OR_RETURN(
      const std::shared_ptr<MappedFile> file,
      MappedFile::Open(Path(path),
                       is_shared ? MappedFile::Mode::kReadWrite
                                 : MappedFile::Mode::kReadOnly,
                       bytes));
  return MappedLeaf(Where(path), file, /*offset=*/0, dtype, shape,
                    options_.mode);
}

absl::StatusOr<TensorDict> SavedTorchRl::ReadDict(
    absl::string_view path, LoadMemmapOptions::Mode mode) const {
  RILL_ASSIGN_OR_RETURN(const PathKind kind,
                        LookAt(JoinPath(path, "meta.json")));
  if (kind != PathKind::kFile) {
    return DataLoss(Where(path), ": got no meta.json; the save broke off");
  }
  // Kept apart, as their keys begin at `path` and the buffer's at the top.
  std::vector<RefusedEntry> refused;
  RILL_ASSIGN_OR_RETURN(
      TensorDict dict,
      LoadMemmapDirectory(Path(path), {.mode = mode, .refused = &refused}));
  for (const RefusedEntry& entry : refused) {
    Refuse(JoinPath(path, entry.key), entry.reason);
  }
  return dict;
}

void SavedTorchRl::Refuse(absl::string_view path, absl::string_view why) const {
  buffer_->refused.push_back({std::string(path), std::string(why)});
}

}  // namespace rill::formats_internal
