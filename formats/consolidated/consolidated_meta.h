// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_CONSOLIDATED_CONSOLIDATED_META_H_
#define RILL_FORMATS_CONSOLIDATED_CONSOLIDATED_META_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

namespace rill::formats_internal {

// The JSON at the end of a consolidated file: what its bytes are.
// docs/formats/consolidated.md. Thread-safety: thread-compatible.
struct ConsolidatedMeta {
  enum class Type : uint8_t { kDict, kLazyStack, kValueStack };
  enum class Kind : uint8_t { kLeaf, kJagged, kValue, kInner, kRefused };
  struct Entry {
    std::string name;  // A component, not escaped.
    Kind kind = Kind::kLeaf;
    // For leaves and the values of jagged tensors: the bytes [start, stop) are
    // the elements and `pad` zeros. The shape also of values in stacks: they
    // stand there that often.
    DType dtype = DType::kFloat32;
    Shape shape = {};
    int64_t start = 0;
    int64_t stop = 0;
    int64_t pad = 0;
    // For jagged tensors: the leaves of the offsets and, if there are two, the
    // lengths; in which dimension of the values the rows differ.
    std::vector<Entry> parts = {};
    int ragged_dim = 0;
    std::string json = {};                     // Of values: JSON text.
    std::vector<ConsolidatedMeta> inner = {};  // Of dictionaries, stacks: one.
    std::string refusal = {};                  // Why it cannot be read.
  };
  Type type = Type::kDict;
  Shape batch_shape = {};                   // Of dictionaries.
  std::vector<std::string> dim_names = {};  // "" for none; empty without any.
  int stack_dim = 0;
  bool is_locked = false;
  std::vector<Entry> entries = {};  // Of stacks: the members, in order.
  std::string refusal = {};         // Why it cannot be read; then without more.
};

// Bytes of the JSON. As long as what one folder of a memmap directory may have.
inline constexpr int64_t kMaxConsolidatedJsonBytes = int64_t{16} << 20;

// `where` starts the messages. `data_bytes`: how many the leaves may be in.
// Entries come in the order of their bytes. DATA_LOSS where the text is not
// such a JSON, or leaves lie outside, overlap, or have other bytes than their
// shapes. INVALID_ARGUMENT for values that are refused (sizes, depths, another
// class at the top). Dtypes and classes that we do not have, and stacks of
// stacks, are entries of kRefused.
absl::StatusOr<ConsolidatedMeta> ParseConsolidatedMeta(absl::string_view where,
                                                       absl::string_view text,
                                                       int64_t data_bytes);

// Compact, as TorchRL writes it. INVALID_ARGUMENT, starting with `caller`,
// where a name is not UTF-8 or means something there, a value is not JSON, or
// there are too many of something.
absl::StatusOr<std::string> FormatConsolidatedMeta(
    absl::string_view caller, const ConsolidatedMeta& meta);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_CONSOLIDATED_CONSOLIDATED_META_H_
