// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_CONSOLIDATED_META_H_
#define RILL_FORMATS_CONSOLIDATED_META_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/shape.h"

namespace rill::formats_internal {

// The JSON at the end of a consolidated file: what its bytes are.
// docs/formats/consolidated.md. Thread-safety: thread-compatible.
struct ConsolidatedMeta {
  enum class Kind : uint8_t { kLeaf, kValue, kDict, kRefused };
  struct Entry {
    std::string name;  // A component, not escaped.
    Kind kind = Kind::kLeaf;
    // Of leaves: the bytes [start, stop) are the elements and `pad` zeros.
    DType dtype = DType::kFloat32;
    Shape shape = {};
    int64_t start = 0;
    int64_t stop = 0;
    int64_t pad = 0;
    std::string json = {};                    // Of values: JSON text.
    std::vector<ConsolidatedMeta> dict = {};  // Of dictionaries: the one.
    std::string refusal = {};                 // Why it cannot be read.
  };
  Shape batch_shape;
  std::vector<std::string> dim_names;  // "" for none; empty without any.
  bool is_locked = false;
  std::vector<Entry> entries;
};

// Of the JSON. As long as what one folder of a memmap directory may have.
inline constexpr int64_t kMaxConsolidatedJsonBytes = int64_t{16} << 20;

// `where` starts the messages. `data_bytes`: how many the leaves may be in.
// Entries come in the order of their bytes. DATA_LOSS where the text is not
// such a JSON, or leaves lie outside, overlap, or have other bytes than their
// shapes; INVALID_ARGUMENT where it asks for what is refused (sizes, depths).
// Dtypes and classes that we do not have are entries of kRefused.
absl::StatusOr<ConsolidatedMeta> ParseConsolidatedMeta(absl::string_view where,
                                                       absl::string_view text,
                                                       int64_t data_bytes);

// Compact, as the peer writes it. INVALID_ARGUMENT, starting with `caller`,
// where a name is not UTF-8 or means something there, a value is not JSON, or
// there are too many of something.
absl::StatusOr<std::string> FormatConsolidatedMeta(
    absl::string_view caller, const ConsolidatedMeta& meta);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_CONSOLIDATED_META_H_
