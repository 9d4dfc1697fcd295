// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MEMMAP_FILES_H_
#define RILL_FORMATS_MEMMAP_MEMMAP_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// One file of a saved tree, not written yet. Thread-safety: thread-compatible.
struct MemmapFile {
  std::string path;                 // "next/obs.memmap".
  std::string text = {};            // Its content,
  std::optional<Tensor> leaf = {};  // or whose elements are.

  std::string folder() const {  // "next", "" for the top.
    return path.substr(
        0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  int64_t size() const {
    return leaf ? leaf->size_bytes() : static_cast<int64_t>(text.size());
  }
};

// The files that stand for `dict` (docs/formats/memmap_directory.md): of each
// folder meta.json, then the others by name, then the folders below by name.
// INVALID_ARGUMENT, starting with `caller`, where it cannot be saved (names,
// depth). Shares the tensors' bytes.
absl::StatusOr<std::vector<MemmapFile>> ListMemmapFiles(
    absl::string_view caller, const TensorDict& dict);
// The same for a lazy stack: one folder a member.
absl::StatusOr<std::vector<MemmapFile>> ListMemmapFiles(
    absl::string_view caller, const LazyStack& stack);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MEMMAP_FILES_H_
