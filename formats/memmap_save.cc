// SPDX-License-Identifier: Apache-2.0
// SaveMemmapDirectory and CreateMemmapDirectory.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/mapped_file.h"
#include "rill/base/new_directory.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_files.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/replaceable.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using formats_internal::ListMemmapFiles;
using formats_internal::MemmapFile;

absl::Status WriteNewFile(const MemmapFile& file, const std::string& path) {
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                        FileWriter::Create(path, file.size()));
  const auto append = [&](absl::string_view piece) {
    return writer->Append(piece);
  };
  return file.leaf ? formats_internal::ForEachPiece(*file.leaf, append)
                   : append(file.text);
}

// Its space reserved and its bytes zero.
absl::Status WriteEmptyFile(const MemmapFile& file, const std::string& path) {
  if (!file.leaf) return WriteFileAtomically(path, file.text);
  return MappedFile::Create(path, file.size()).status();
}

// Into a fresh folder that takes the place of the old one when it is whole: a
// save that fails or is killed leaves what was there.
template <typename T>  // TensorDict or LazyStack.
absl::Status Save(absl::string_view caller, const T& what,
                  const std::string& directory) {
  RILL_RETURN_IF_ERROR(CheckReplaceable(caller, directory, "meta.json"));
  RILL_ASSIGN_OR_RETURN(const std::vector<MemmapFile> files,
                        ListMemmapFiles(caller, what));
  return ReplaceDirectory(
      directory, [&](const std::string& fresh) -> absl::Status {
        for (const MemmapFile& file : files) {
          RILL_RETURN_IF_ERROR(
              CreateDirectories(JoinPath(fresh, file.folder())));
          RILL_RETURN_IF_ERROR(WriteNewFile(file, JoinPath(fresh, file.path)));
        }
        return absl::OkStatus();
      });
}

// Single elements stand for the leaves: only their shapes are looked at.
// Expanded, they have any shape and take no memory.
absl::StatusOr<TensorDict> LikeFiles(const TensorDictSpec& spec,
                                     const Shape& batch_shape) {
  TensorDict like(batch_shape);
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    RILL_ASSIGN_OR_RETURN(const Shape shape, leaf.spec.FullShape(batch_shape));
    RILL_ASSIGN_OR_RETURN(const Tensor one, Tensor::Zeros(leaf.spec.dtype, {}));
    RILL_ASSIGN_OR_RETURN(Tensor all, one.Expand(shape));
    RILL_RETURN_IF_ERROR(like.Set(leaf.key, std::move(all)));
  }
  return like;
}

}  // namespace

absl::Status SaveMemmapDirectory(const TensorDict& dict,
                                 const std::string& directory) {
  return Save("SaveMemmapDirectory", dict, directory);
}

absl::Status SaveMemmapLazyStack(const LazyStack& stack,
                                 const std::string& directory) {
  return Save("SaveMemmapLazyStack", stack, directory);
}

absl::StatusOr<TensorDict> CreateMemmapDirectory(const TensorDictSpec& spec,
                                                 const Shape& batch_shape,
                                                 const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(const TensorDict like, LikeFiles(spec, batch_shape));
  RILL_ASSIGN_OR_RETURN(const std::vector<MemmapFile> files,
                        ListMemmapFiles("CreateMemmapDirectory", like));
  RILL_RETURN_IF_ERROR(
      CheckNewDirectory("CreateMemmapDirectory", "directory", directory));
  // All files are looked for before the first is made: what is refused leaves
  // the directory as it was.
  for (const MemmapFile& file : files) {
    const std::string path = JoinPath(directory, file.path);
    if (!PathExists(path)) continue;
    return FailedPrecondition(
        "CreateMemmapDirectory: \"", path,
        "\": got a file, want none; remove it or name another directory");
  }
  for (const MemmapFile& file : files) {
    RILL_RETURN_IF_ERROR(CreateDirectories(JoinPath(directory, file.folder())));
    RILL_RETURN_IF_ERROR(WriteEmptyFile(file, JoinPath(directory, file.path)));
  }
  return LoadMemmapDirectory(directory,
                             {.mode = LoadMemmapOptions::Mode::kMapShared});
}

absl::StatusOr<MemmapDirectoryPlan> PlanMemmapDirectory(
    const TensorDictSpec& spec, const Shape& batch_shape) {
  RILL_ASSIGN_OR_RETURN(const TensorDict like, LikeFiles(spec, batch_shape));
  RILL_ASSIGN_OR_RETURN(std::vector<MemmapFile> files,
                        ListMemmapFiles("PlanMemmapDirectory", like));
  MemmapDirectoryPlan plan;
  plan.leaves.resize(spec.leaves().size());
  // Files come by name, leaves in the spec's order. Each stand-in has a buffer
  // of its own, which tells whose file it is.
  absl::flat_hash_map<const Buffer*, size_t> leaf_of;
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    leaf_of[like.Find(spec.leaves()[i].key)->buffer().get()] = i;
  }
  for (MemmapFile& file : files) {
    if (!file.leaf) {
      plan.texts.push_back({std::move(file.path), std::move(file.text)});
      continue;
    }
    const auto leaf = leaf_of.find(file.leaf->buffer().get());
    if (leaf != leaf_of.end()) {
      plan.leaves[leaf->second] = {file.path, file.size()};
    }
  }
  return plan;
}

}  // namespace rill
