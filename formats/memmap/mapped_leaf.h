// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MAPPED_LEAF_H_
#define RILL_FORMATS_MEMMAP_MAPPED_LEAF_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/base/mapped_file.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// The bytes of `file` from `offset` on, which the caller has checked to be
// there, as a tensor: a view that keeps the file mapped, or a copy. What is not
// aligned for its elements is copied too, or with kMapShared INVALID_ARGUMENT;
// `where` starts the message.
// Thread-safety: thread-safe.
absl::StatusOr<Tensor> MappedLeaf(absl::string_view where,
                                  const std::shared_ptr<MappedFile>& file,
                                  int64_t offset, DType dtype,
                                  const Shape& shape,
                                  LoadMemmapOptions::Mode mode);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MAPPED_LEAF_H_
