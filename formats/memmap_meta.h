// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_META_H_
#define RILL_FORMATS_MEMMAP_META_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"

namespace rill::formats_internal {

// The content of one meta.json. docs/formats/memmap_directory.md.
// Thread-safety: thread-compatible.
struct MemmapMeta {
  struct Entry {
    std::string name;  // A component, not escaped.
    bool is_leaf = true;
    DType dtype = DType::kFloat32;  // Of leaves.
    Shape shape;
    std::string type = "TensorDict";  // Of others; says nothing when read.
  };
  // A dictionary, or one value that is not a tensor, as JSON text.
  bool is_dict = true;
  Shape batch_shape;
  std::vector<Entry> entries;
  std::string json;
};

// Bounds on what is read, so that a broken or hostile file costs neither the
// stack nor minutes.
inline constexpr int64_t kMaxMetaBytes = int64_t{16} << 20;
inline constexpr int kMaxMemmapDepth = 32;
inline constexpr int64_t kMaxMemmapEntries = 4096;  // Of one folder.

// `path` names the file in errors: DATA_LOSS where it is not such a JSON;
// INVALID_ARGUMENT where it asks for what is refused (types, dtypes, sizes).
absl::StatusOr<MemmapMeta> ParseMemmapMeta(absl::string_view path,
                                           absl::string_view text);

// Compact, entries in order, the reserved names last. INVALID_ARGUMENT where a
// name is not UTF-8 or `json` is not JSON.
absl::StatusOr<std::string> FormatMemmapMeta(const MemmapMeta& meta);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_META_H_
