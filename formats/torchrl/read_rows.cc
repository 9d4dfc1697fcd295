// SPDX-License-Identifier: Apache-2.0
// ReadTorchRlRows: the rows of every kind of storage.
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/formats/torchrl/saved_parts.h"
#include "rill/formats/torchrl/ted_layout.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill::formats_internal {
namespace {

using Form = TorchRlReplayBuffer::Form;

constexpr absl::string_view kStorage = "storage";
constexpr absl::string_view kMetadata = "storage/storage_metadata.json";
// Bounds on the folders and files of a tree of rows: a directory from elsewhere
// may have any number, and each costs system calls.
constexpr int kMaxDepth = 32;
constexpr size_t kMaxLeaves = 4096;

// How many steps `len` rows of places [capacity, lanes ...] are.
absl::StatusOr<int64_t> StepsOf(const SavedTorchRl& saved, const Shape& places,
                                int64_t len) {
  const int64_t lanes = places.Suffix(1).num_elements();
  if (places.rank() == 0 || places[0] == 0 || lanes == 0 || len % lanes != 0 ||
      len / lanes > places[0]) {
    return DataLoss(saved.Where(kMetadata), ": len: got ", len,
                    ", want whole steps of at most ", places.ToString(),
                    " places");
  }
  return len / lanes;
}

// --- Pytrees -----------------------------------------------------------------

// The files below a folder: "y.1.z" -> "storage/y/1/z.memmap". A dot of a name
// and one between names look alike, so files are what is looked through.
absl::Status FindLeafFiles(const SavedTorchRl& saved, const std::string& folder,
                           int depth,
                           std::multimap<std::string, std::string>* files) {
  if (depth > kMaxDepth) {
    return InvalidArgument(saved.Where(folder),
                           ": folders: want a depth of at most ", kMaxDepth);
  }
  RILL_ASSIGN_OR_RETURN(const auto names, ListDirectory(saved.Path(folder)));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt(path));
    if (kind == PathKind::kDirectory) {
      RILL_RETURN_IF_ERROR(FindLeafFiles(saved, path, depth + 1, files));
    } else if (absl::EndsWith(name, ".memmap")) {
      absl::string_view bare = path;
      absl::ConsumePrefix(&bare, "storage/");
      absl::ConsumeSuffix(&bare, ".memmap");
      files->emplace(absl::StrReplaceAll(bare, {{"/", "."}}), bare);
    }
    if (files->size() > kMaxLeaves) {
      return InvalidArgument(saved.Where(folder), ": files: want at most ",
                             kMaxLeaves);
    }
  }
  return absl::OkStatus();
}

// Rows of a tree of tensors. The first leaf says how many places there are, and
// the others must say the same. Only the rows that were written are kept, as a
// view of each file's beginning.
absl::Status ReadPytree(const SavedTorchRl& saved,
                        const TorchRlStorageJson& json,
                        TorchRlReplayBuffer* buffer) {
  std::multimap<std::string, std::string> files;
  RILL_RETURN_IF_ERROR(FindLeafFiles(saved, std::string(kStorage), 0, &files));
  if (json.leaves.empty()) {
    return DataLoss(saved.Where(kMetadata), ": metadata: got no leaves");
  }
  buffer->form = Form::kPytree;
  for (const TorchRlStorageJson::Leaf& leaf : json.leaves) {
    const std::string shown = EscapeKeyComponent(leaf.path);
    // There may be none of what has no bytes. Else the name must lead to one
    // file exactly: "a.b" could be "a/b" and "a.b".
    const bool has_file =
        leaf.shape.num_elements() > 0 || files.contains(leaf.path);
    if (has_file && files.count(leaf.path) != 1) {
      return DataLoss(saved.Where(kStorage), ": files of the leaf \"", shown,
                      "\": got ", files.count(leaf.path), ", want 1");
    }
    if (leaf.shape.rank() == 0) {
      return DataLoss(saved.Where(kMetadata), ": \"", shown,
                      "\": got no rows, want [places]");
    }
    const int64_t capacity = leaf.shape[0];
    if (buffer->capacity == 0) {
      RILL_ASSIGN_OR_RETURN(const int64_t steps,
                            StepsOf(saved, {capacity}, json.len));
      buffer->capacity = capacity;
      buffer->rows = TensorDict({steps});
    }
    if (capacity != buffer->capacity) {
      return DataLoss(saved.Where(kMetadata), ": places: got ", capacity,
                      " of \"", shown, "\" and ", buffer->capacity,
                      " of the first leaf");
    }
    const std::string file = has_file
                                 ? files.find(leaf.path)->second
                                 : absl::StrReplaceAll(leaf.path, {{".", "/"}});
    RILL_ASSIGN_OR_RETURN(
        const Tensor all,
        saved.ReadLeaf(absl::StrCat("storage/", file, ".memmap"), leaf.dtype,
                       leaf.shape));
    RILL_ASSIGN_OR_RETURN(Tensor rows, all.Slice(0, 0, buffer->steps()));
    const std::vector<absl::string_view> components = absl::StrSplit(file, '/');
    RILL_RETURN_IF_ERROR(
        buffer->rows.Set(JoinKey(components), std::move(rows)));
  }
  return absl::OkStatus();
}

// --- Flat and nested ---------------------------------------------------------

// The rows of all trajectories one after the other. They lie so in the file
// already, and trajectories differ in the number of rows only, so the tensor is
// a view.
absl::StatusOr<Tensor> JoinedRows(absl::string_view where,
                                  const RaggedTensor& ragged) {
  const Tensor& shapes = ragged.shapes();
  const int64_t rank = ragged.row_rank();
  const int64_t* sizes = shapes.data<int64_t>();
  int64_t rows = 0;
  std::vector<int64_t> joined(1, 0);
  for (int64_t d = 1; d < rank && ragged.num_rows() > 0; ++d) {
    joined.push_back(sizes[d]);
  }
  for (int64_t i = 0; i < ragged.num_rows(); ++i) {
    bool fits =
        rank >= 1 && !__builtin_add_overflow(rows, sizes[i * rank], &rows);
    for (int64_t d = 1; d < rank; ++d) fits &= sizes[i * rank + d] == joined[d];
    if (!fits) {
      return DataLoss(where, ": got trajectories of rows of different shapes");
    }
  }
  joined[0] = rows;
  RILL_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(joined));
  return ragged.values().Reshape(shape);
}

// Leaves of all levels, ragged ones joined.
absl::Status CollectLeaves(const SavedTorchRl& saved, const TensorDict& dict,
                           const std::string& prefix,
                           std::vector<FlatTed::Leaf>* leaves) {
  for (const std::string& name : dict.Keys()) {
    const std::string key = prefix.empty() ? name : prefix + "/" + name;
    const std::string path = JoinPath(kStorage, key);
    switch (*dict.Kind(name)) {
      case EntryKind::kTensor: {
        leaves->emplace_back(key, *dict.Find(name));
        break;
      }
      case EntryKind::kRagged: {
        RILL_ASSIGN_OR_RETURN(const RaggedTensor ragged, dict.GetRagged(name));
        RILL_ASSIGN_OR_RETURN(Tensor rows,
                              JoinedRows(saved.Where(path), ragged));
        leaves->emplace_back(key, std::move(rows));
        break;
      }
      case EntryKind::kDict: {
        RILL_RETURN_IF_ERROR(
            CollectLeaves(saved, *dict.FindDict(name), key, leaves));
        break;
      }
      default:
        saved.Refuse(path, "rows of a flat checkpoint are tensors");
    }
  }
  return absl::OkStatus();
}

// Rows of the flat and nested checkpointers. Three values beside the leaves say
// how they lie, and must agree with each other and with `len`.
absl::Status ReadTed(const SavedTorchRl& saved, TensorDict dict, int64_t len,
                     TorchRlReplayBuffer* buffer) {
  const auto value = [&](const char* name) -> absl::StatusOr<std::string> {
    const absl::StatusOr<NonTensor> json = dict.GetNonTensor(name);
    if (json.ok()) return json->json;
    return DataLoss(saved.Where(kStorage), ": \"", name,
                    "\": ", json.status().message());
  };
  const std::string where = saved.Where(kStorage);
  FlatTed flat;
  RILL_ASSIGN_OR_RETURN(const std::string shape, value("_storage_shape"));
  RILL_ASSIGN_OR_RETURN(
      flat.storage_shape,
      ParseTorchRlShape(absl::StrCat(where, ": _storage_shape"), shape));
  RILL_ASSIGN_OR_RETURN(const std::string is_full_text, value("is_full"));
  RILL_ASSIGN_OR_RETURN(
      const bool is_full,
      ParseTorchRlBool(absl::StrCat(where, ": is_full"), is_full_text));
  RILL_ASSIGN_OR_RETURN(const std::string shift_text, value("shift"));
  RILL_ASSIGN_OR_RETURN(
      flat.shift, ParseTorchRlInt(absl::StrCat(where, ": shift"), shift_text));
  RILL_ASSIGN_OR_RETURN(flat.steps, StepsOf(saved, flat.storage_shape, len));
  if (flat.shift < 0 || is_full != flat.is_full()) {
    return DataLoss(where, ": shift and is_full: got ", flat.shift, " and ",
                    is_full ? "true" : "false", ", want what fits ", flat.steps,
                    " of ", flat.storage_shape[0], " steps");
  }
  // They are no leaves of a step.
  for (const char* name : {"_storage_shape", "is_full", "shift"}) {
    RILL_RETURN_IF_ERROR(dict.Delete(name));
  }
  buffer->form = dict.batch_shape().rank() == 0 ? Form::kFlat : Form::kNested;
  buffer->capacity = flat.storage_shape[0];
  RILL_RETURN_IF_ERROR(CollectLeaves(saved, dict, "", &flat.plain));
  RILL_ASSIGN_OR_RETURN(buffer->rows,
                        UnflattenTed(where, flat, saved.options().flat_keys));
  return absl::OkStatus();
}

// The storage has no metadata of a tensor storage: which one may it be?
absl::Status OtherStorage(const SavedTorchRl& saved) {
  const std::pair<const char*, const char*> kinds[] = {
      {"storage/data_indices.json", "a list of compressed rows"},
      {"storage/checkpoint.h5", "an HDF5 file"},
      {"storage/0", "an ensemble"},
  };
  for (const auto& [path, what] : kinds) {
    RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt(path));
    if (kind == PathKind::kMissing) continue;
    return InvalidArgument(saved.Where(kStorage), ": got ", what,
                           ", want a storage of tensors; save from such a one");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadTorchRlRows(const SavedTorchRl& saved,
                             TorchRlReplayBuffer* buffer) {
  RILL_ASSIGN_OR_RETURN(const PathKind kind, saved.LookAt(kMetadata));
  if (kind == PathKind::kMissing) {
    RILL_RETURN_IF_ERROR(OtherStorage(saved));
  }
  RILL_ASSIGN_OR_RETURN(const std::string text, saved.ReadText(kMetadata));
  RILL_ASSIGN_OR_RETURN(const TorchRlStorageJson json,
                        ParseTorchRlStorage(saved.Where(kMetadata), text));
  if (json.is_pytree) return ReadPytree(saved, json, buffer);
  // Flat rows are put in order, and copied for that.
  RILL_ASSIGN_OR_RETURN(TensorDict dict,
                        saved.ReadDict(kStorage, saved.options().mode));
  // Only those checkpointers leave this value; the metadata does not name them.
  if (dict.Kind("_storage_shape") == EntryKind::kNonTensor) {
    return ReadTed(saved, std::move(dict), json.len, buffer);
  }
  RILL_ASSIGN_OR_RETURN(const int64_t steps,
                        StepsOf(saved, dict.batch_shape(), json.len));
  buffer->capacity = dict.batch_shape()[0];
  RILL_ASSIGN_OR_RETURN(buffer->rows, dict.Slice(0, 0, steps));
  return absl::OkStatus();
}

}  // namespace rill::formats_internal
