// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_DIRECTORY_H_
#define RILL_FORMATS_MEMMAP_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/formats/memmap_options.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"

namespace rill {

// A TensorDict as a directory that TorchRL's TensorDict.load_memmap opens too:
// one raw little-endian file a leaf, one folder a nested dictionary, one
// meta.json a folder. docs/formats/memmap_directory.md has every byte.
//
// Thread-safety: thread-safe for different directories.
// Differs from TorchRL. Saves are atomic (a reader sees the old or the new
//   tree). A leaf whose name is reserved in meta.json ("shape", "device",
//   "_type") is INVALID_ARGUMENT instead of being lost. Short files are
//   DATA_LOSS instead of being filled with zeros.
//
// Example (MemmapDirectoryTest.Example runs it):
//   RILL_RETURN_IF_ERROR(SaveMemmapDirectory(steps, directory));
//   RILL_ASSIGN_OR_RETURN(TensorDict loaded, LoadMemmapDirectory(directory));

// Writes `dict` (copied to the host first where it lies on a device) to
// `directory`, which is replaced if it is there. FAILED_PRECONDITION where it
// holds files but no meta.json (replaceable.h); RESOURCE_EXHAUSTED on a full
// disk; on any error what was there stays.
absl::Status SaveMemmapDirectory(const TensorDict& dict,
                                 const std::string& directory);

// The same for a lazy stack, of which each member is a dictionary of its own.
absl::Status SaveMemmapLazyStack(const LazyStack& stack,
                                 const std::string& directory);

// Makes the files of a dictionary of `spec` in `directory`, which is made if it
// is not there. Their space is reserved and their bytes are zero. They come
// back mapped shared and writable. Not atomic: use it inside ReplaceDirectory
// (base/file.h), or on a directory of one's own. Errors as
// SaveMemmapDirectory; FAILED_PRECONDITION where a file is there already.
absl::StatusOr<TensorDict> CreateMemmapDirectory(const TensorDictSpec& spec,
                                                 const Shape& batch_shape,
                                                 const std::string& directory);

// The contents that CreateMemmapDirectory makes, for callers that make the
// files themselves. Paths are relative to the directory. Thread-safety:
// thread-compatible.
struct MemmapDirectoryPlan {
  struct Leaf {
    std::string path;
    int64_t bytes = 0;  // 0: it has no file.
  };
  struct Text {
    std::string path;
    std::string content;
  };
  std::vector<Leaf> leaves;  // In the order of the spec.
  std::vector<Text> texts;   // meta.json of each folder, outer ones first.
};
absl::StatusOr<MemmapDirectoryPlan> PlanMemmapDirectory(
    const TensorDictSpec& spec, const Shape& batch_shape);

// NOT_FOUND where no meta.json is. DATA_LOSS where a file is missing or shorter
// than its shape says, or meta.json is broken. INVALID_ARGUMENT for contents
// that we refuse (types, dtypes, symbolic links below the directory, absurd
// sizes and depths). Each names the file and both sides.
absl::StatusOr<TensorDict> LoadMemmapDirectory(
    const std::string& directory, const LoadMemmapOptions& options = {});

// A directory of SaveMemmapLazyStack or TorchRL's LazyStackedTensorDict.memmap.
// Members are "0", "1", ... while there is such a folder.
absl::StatusOr<LazyStack> LoadMemmapLazyStack(
    const std::string& directory, const LoadMemmapOptions& options = {});

}  // namespace rill

#endif  // RILL_FORMATS_MEMMAP_DIRECTORY_H_
