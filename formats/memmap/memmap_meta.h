// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MEMMAP_META_H_
#define RILL_FORMATS_MEMMAP_MEMMAP_META_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::formats_internal {

// The content of one meta.json. docs/formats/memmap_directory.md.
// Thread-safety: thread-compatible.
struct MemmapMeta {
  enum class Kind : uint8_t {
    kDict,        // Of tensors and folders: batch_shape, entries.
    kValue,       // One that is not a tensor: json or pickle.
    kValueStack,  // One a row: stack_dim, and json (a list) or pickle.
    kLazyStack,   // Folders "0", "1", ...: stack_dim.
    kOther,       // A class of its own: type, fields.
  };
  struct Entry {
    std::string name;  // A component, not escaped.
    bool is_leaf = true;
    // For leaves. A ragged one's shape is that of its table of shapes.
    DType dtype = DType::kFloat32;
    Shape shape = {};
    bool is_ragged = false;
    std::string refusal = {};         // Why it cannot be read, else empty.
    std::string type = "TensorDict";  // Of others; says nothing when read.
  };
  Kind kind = Kind::kDict;
  Shape batch_shape;
  std::vector<Entry> entries;
  int stack_dim = 0;
  std::string json;    // JSON text.
  std::string pickle;  // The file beside that has the value in its place.
  std::string type;    // As it stands there, for messages.
  std::vector<std::pair<std::string, std::string>> fields;  // Name, JSON text.
};

// Bounds on what is read, so that a broken or hostile file costs neither the
// stack nor minutes.
inline constexpr int64_t kMaxMetaBytes = int64_t{16} << 20;
inline constexpr int kMaxMemmapDepth = 32;
inline constexpr int64_t kMaxMemmapEntries = 4096;  // Of one folder.

// `where` starts the messages: DATA_LOSS where it is not such a JSON;
// INVALID_ARGUMENT where it asks for what is refused (sizes, depths). A leaf of
// a dtype that we do not have is no error but has a refusal.
absl::StatusOr<MemmapMeta> ParseMemmapMeta(absl::string_view where,
                                           absl::string_view text);

// Compact, entries in order, the reserved names last; not for kOther.
// INVALID_ARGUMENT, starting with `caller`, where a name is not UTF-8 or `json`
// is not JSON.
absl::StatusOr<std::string> FormatMemmapMeta(absl::string_view caller,
                                             const MemmapMeta& meta);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MEMMAP_META_H_
