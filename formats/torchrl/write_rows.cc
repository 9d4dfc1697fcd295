// SPDX-License-Identifier: Apache-2.0
// WriteTorchRlRows: the files of a storage.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/file.h"
#include "rill/base/sparse_file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/memmap/memmap_files.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/torchrl/saved_parts.h"
#include "rill/formats/torchrl/ted_layout.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill::formats_internal {
namespace {

using Form = TorchRlReplayBuffer::Form;

constexpr absl::string_view kCaller = "WriteTorchRlReplayBuffer";
constexpr int64_t kBlock = int64_t{1} << 16;

bool IsZero(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

// A file of `bytes`, at the beginning of which the tensor lies: what is zero
// takes no room on the disk.
absl::Status WriteSparse(const Tensor& tensor, int64_t bytes,
                         const std::string& path) {
  if (bytes == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<SparseFile> file,
                        SparseFile::Create(path, bytes));
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<AddressRange> range,
                        AddressRange::Create(bytes));
  RILL_RETURN_IF_ERROR(file->Map(*range, 0));
  int64_t at = 0;
  return ForEachPiece(tensor, [&](absl::string_view piece) -> absl::Status {
    while (!piece.empty()) {
      const absl::string_view block = piece.substr(0, kBlock - at % kBlock);
      // Reserved before the copy: a store to a hole of a full disk would be
      // SIGBUS.
      if (!IsZero(block)) {
        const int64_t size = static_cast<int64_t>(block.size());
        RILL_RETURN_IF_ERROR(file->Reserve(at, size));
        std::memcpy(range->data() + at, block.data(), block.size());
      }
      at += static_cast<int64_t>(block.size());
      piece.remove_prefix(block.size());
    }
    return absl::OkStatus();
  });
}

absl::Status WriteFiles(const TensorDict& dict, const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(const std::vector<MemmapFile> files,
                        ListMemmapFiles(kCaller, dict));
  for (const MemmapFile& file : files) {
    const std::string path = JoinPath(directory, file.path);
    RILL_RETURN_IF_ERROR(CreateDirectories(JoinPath(directory, file.folder())));
    RILL_RETURN_IF_ERROR(file.leaf ? WriteSparse(*file.leaf, file.size(), path)
                                   : WriteFileAtomically(path, file.text));
  }
  return absl::OkStatus();
}

// A memmap directory of all places. Its files are planned for the capacity and
// hold the rows at their beginning, so nothing is copied to be longer.
absl::Status WriteDict(const TorchRlReplayBuffer& buffer,
                       const TensorDict& rows, const std::string& directory) {
  const TensorDictSpec spec = TensorDictSpec::Of(rows);
  RILL_ASSIGN_OR_RETURN(const MemmapDirectoryPlan plan,
                        PlanMemmapDirectory(spec, rows.batch_shape().WithSize(
                                                      0, buffer.capacity)));
  for (const MemmapDirectoryPlan::Text& text : plan.texts) {
    const std::string path = JoinPath(directory, text.path);
    RILL_RETURN_IF_ERROR(CreateDirectories(path.substr(0, path.rfind('/'))));
    RILL_RETURN_IF_ERROR(WriteFileAtomically(path, text.content));
  }
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    if (plan.leaves[i].bytes == 0) continue;
    RILL_RETURN_IF_ERROR(WriteSparse(*rows.Find(spec.leaves()[i].key),
                                     plan.leaves[i].bytes,
                                     JoinPath(directory, plan.leaves[i].path)));
  }
  return absl::OkStatus();
}

// TorchRL takes dots for what is between names, and finds other names only as
// they are.
absl::Status CheckName(absl::string_view key, absl::string_view component) {
  if (!absl::StrContains(component, '.') &&
      !absl::StrContains(component, '\0') && IsPlainRelativePath(component) &&
      !absl::StrContains(component, '/')) {
    return absl::OkStatus();
  }
  return InvalidArgument(kCaller, ": a pytree cannot hold \"", key,
                         "\": want names without dots and slashes");
}

// A file a leaf, and the leaves' names, dtypes and shapes in `json`.
absl::Status WritePytree(const TorchRlReplayBuffer& buffer,
                         const std::string& directory,
                         TorchRlStorageJson* json) {
  json->is_pytree = true;
  if (buffer.rows.batch_shape().rank() != 1) {
    return InvalidArgument(kCaller, ": rows of a pytree: got ",
                           buffer.rows.batch_shape().ToString(),
                           ", want [steps]");
  }
  for (const std::string& key : buffer.rows.LeafKeys()) {
    const Tensor& rows = *buffer.rows.Find(key);
    RILL_ASSIGN_OR_RETURN(const auto components, SplitKey(key));
    for (const std::string& component : components) {
      RILL_RETURN_IF_ERROR(CheckName(key, component));
    }
    const Shape shape = rows.shape().WithSize(0, buffer.capacity);
    json->leaves.push_back(
        {absl::StrJoin(components, "."), rows.dtype(), shape});
    RILL_ASSIGN_OR_RETURN(const int64_t bytes,
                          LeafBytes(kCaller, rows.dtype(), shape));
    const std::string path = JoinPath(
        directory, absl::StrCat(absl::StrJoin(components, "/"), ".memmap"));
    RILL_RETURN_IF_ERROR(CreateDirectories(path.substr(0, path.rfind('/'))));
    RILL_RETURN_IF_ERROR(WriteSparse(rows, bytes, path));
  }
  return absl::OkStatus();
}

// Shapes of the rows of each trajectory.
absl::StatusOr<RaggedTensor> Trajectories(const Tensor& rows,
                                          const Tensor& lengths) {
  const int64_t count = lengths.num_elements();
  const int rank = rows.rank();
  RILL_ASSIGN_OR_RETURN(const Tensor shapes,
                        Tensor::Empty(DType::kInt64, {count, rank}));
  for (int64_t i = 0; i < count; ++i) {
    int64_t* sizes = shapes.data<int64_t>() + i * rank;
    sizes[0] = lengths.data<int64_t>()[i];
    for (int d = 1; d < rank; ++d) sizes[d] = rows.shape()[d];
  }
  RILL_ASSIGN_OR_RETURN(const Tensor values,
                        rows.Reshape({rows.num_elements()}));
  return RaggedTensor::Create(values, shapes);
}

// The layout of ted_layout.h; nested, each leaf ragged by trajectories.
absl::Status WriteTed(const TorchRlReplayBuffer& buffer,
                      const TorchRlFlatKeys& keys,
                      const std::string& directory) {
  RILL_ASSIGN_OR_RETURN(
      const FlatTed flat,
      FlattenTed(kCaller, buffer.rows, buffer.capacity, buffer.cursor, keys));
  const bool is_nested = buffer.form == Form::kNested;
  TensorDict dict(is_nested ? flat.lengths.shape() : Shape());
  RILL_RETURN_IF_ERROR(
      dict.Set("is_full", NonTensor{flat.is_full() ? "true" : "false"}));
  RILL_RETURN_IF_ERROR(dict.Set("shift", NonTensor{absl::StrCat(flat.shift)}));
  RILL_RETURN_IF_ERROR(
      dict.Set("_storage_shape",
               NonTensor{absl::StrCat(
                   "[", absl::StrJoin(flat.storage_shape.sizes(), ","), "]")}));
  const std::pair<const std::vector<FlatTed::Leaf>*, const Tensor*> kinds[] = {
      {&flat.plain, &flat.lengths}, {&flat.expanded, &flat.expanded_lengths}};
  for (const auto& [leaves, lengths] : kinds) {
    for (const auto& [key, rows] : *leaves) {
      if (dict.Contains(key)) {
        return InvalidArgument(kCaller, ": a flat checkpoint cannot hold \"",
                               key, "\"");
      }
      if (!is_nested) {
        RILL_RETURN_IF_ERROR(dict.Set(key, rows));
        continue;
      }
      RILL_ASSIGN_OR_RETURN(RaggedTensor ragged, Trajectories(rows, *lengths));
      RILL_RETURN_IF_ERROR(dict.Set(key, std::move(ragged)));
    }
  }
  return WriteFiles(dict, directory);
}

// The place of each row, of a step the same in all lanes.
absl::StatusOr<TensorDict> WithIndex(const TensorDict& rows) {
  RILL_ASSIGN_OR_RETURN(const Tensor index,
                        Tensor::Empty(DType::kInt64, rows.batch_shape()));
  const int64_t lanes = rows.batch_shape().Suffix(1).num_elements();
  for (int64_t i = 0; i < index.num_elements(); ++i) {
    index.data<int64_t>()[i] = i / lanes;
  }
  TensorDict with = rows;
  RILL_RETURN_IF_ERROR(with.Set("index", index));
  return with;
}

absl::Status CheckTensorsOnly(const TensorDict& dict) {
  absl::Status status;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    if (!status.ok()) return;
    if (kind == EntryKind::kDict) {
      status = CheckTensorsOnly(*dict.FindDict(key));
    } else if (kind != EntryKind::kTensor) {
      status = InvalidArgument(kCaller, ": rows: \"", key,
                               "\": want nothing but tensors");
    }
  });
  return status;
}

}  // namespace

absl::Status WriteTorchRlRows(const TorchRlReplayBuffer& buffer,
                              const WriteTorchRlOptions& options,
                              const std::string& storage) {
  RILL_RETURN_IF_ERROR(CheckTensorsOnly(buffer.rows));
  TorchRlStorageJson json = {.len = buffer.rows.batch_shape().num_elements()};
  RILL_RETURN_IF_ERROR(CreateDirectories(storage));
  // A copy of the struct, whose tensors share their bytes.
  TorchRlReplayBuffer indexed;
  const TorchRlReplayBuffer* from = &buffer;
  if (options.add_index) {
    indexed = buffer;
    RILL_ASSIGN_OR_RETURN(indexed.rows, WithIndex(buffer.rows));
    from = &indexed;
  }
  switch (buffer.form) {
    case Form::kTensorDict:
      RILL_RETURN_IF_ERROR(WriteDict(*from, from->rows, storage));
      break;
    case Form::kPytree:
      RILL_RETURN_IF_ERROR(WritePytree(*from, storage, &json));
      break;
    case Form::kFlat:
    case Form::kNested:
      RILL_RETURN_IF_ERROR(WriteTed(*from, options.flat_keys, storage));
      break;
  }
  return WriteFileAtomically(JoinPath(storage, "storage_metadata.json"),
                             FormatTorchRlStorage(json));
}

}  // namespace rill::formats_internal
