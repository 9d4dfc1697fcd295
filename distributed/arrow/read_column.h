// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_ARROW_READ_COLUMN_H_
#define RILL_DISTRIBUTED_ARROW_READ_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace arrow {
struct ArrayData;
class KeyValueMetadata;
}  // namespace arrow

// Columns as tensors. The arrays have passed arrow::internal::ValidateArray, so
// that their buffers are as long as their lengths say; nothing else of them is
// believed. Errors are INVALID_ARGUMENT and begin "FromArrow: \"key\": ".
// Thread-safety: thread-safe.
namespace rill::arrow_internal {

// Elements [start, start + count) of an array.
struct Window {
  const arrow::ArrayData* data = nullptr;
  int64_t start = 0;
  int64_t count = 0;
};

absl::Status Wrong(absl::string_view key, absl::string_view got,
                   absl::string_view want);
// The error of a part, with the key in front.
absl::Status WithKey(absl::string_view key, const absl::Status& status);

// Child `child` of the window's array, seen through the window: each element
// stands for `each` of the child's, which are no nulls.
absl::StatusOr<Window> InsideOf(absl::string_view key, const Window& window,
                                size_t child, int64_t each);

// A leaf: a row of the window is one of `batch_shape`. `metadata` is the
// field's; `is_writable` is FromArrowOptions'.
absl::StatusOr<Tensor> ReadLeaf(absl::string_view key, const Window& rows,
                                const arrow::KeyValueMetadata* metadata,
                                const Shape& batch_shape, bool is_writable);

// Lists, or structs of lists and of shapes.
absl::StatusOr<RaggedTensor> ReadRagged(absl::string_view key,
                                        const Window& rows,
                                        const arrow::KeyValueMetadata* metadata,
                                        bool is_writable);

// The texts of strings.
absl::StatusOr<std::vector<std::string>> ReadTexts(absl::string_view key,
                                                   const Window& rows);

}  // namespace rill::arrow_internal

#endif  // RILL_DISTRIBUTED_ARROW_READ_COLUMN_H_
