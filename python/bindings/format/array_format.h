// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_PYTHON_BINDINGS_FORMAT_ARRAY_FORMAT_H_
#define RILL_PYTHON_BINDINGS_FORMAT_ARRAY_FORMAT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/tensors/dtype.h"

namespace rill::python {

// The dtype of an array that Python's buffer protocol exports. `format` is that
// of the module struct, of native order and one element; then come the bytes of
// an element, the sizes, and all bytes. None where Rill has no such dtype, or
// where these do not agree: the bytes would be read beyond their end. A pure
// function of its arguments, which array_format_fuzz feeds.
std::optional<DType> DTypeOfExport(absl::string_view format, int64_t item_bytes,
                                   absl::Span<const int64_t> sizes,
                                   int64_t bytes);

}  // namespace rill::python

#endif  // RILL_PYTHON_BINDINGS_FORMAT_ARRAY_FORMAT_H_
