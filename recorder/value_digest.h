// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_RECORDER_VALUE_DIGEST_H_
#define RILL_RECORDER_VALUE_DIGEST_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::recorder_internal {

// CRC32C of keys, dtypes, shapes and elements of all tensors, in order and
// row-major, wherever they lie in memory, then of the pieces; never 0. Elements
// on a device do not count. Thread-safety: thread-safe.
uint32_t DigestOf(const TensorDict& values,
                  absl::Span<const absl::string_view> pieces = {});
// The same of pieces alone, one behind the other; 0 where there is no piece.
uint32_t DigestOf(absl::Span<const absl::string_view> pieces);

}  // namespace rill::recorder_internal

#endif  // RILL_RECORDER_VALUE_DIGEST_H_
