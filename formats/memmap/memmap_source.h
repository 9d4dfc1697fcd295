// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MEMMAP_SOURCE_H_
#define RILL_FORMATS_MEMMAP_MEMMAP_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rill/formats/plain_path.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::formats_internal {

// The files of a saved tree, wherever they lie: below a directory, or in an
// archive. Paths are relative to the tree's top, "" is the top itself.
// Thread-safety: thread-safe.
class MemmapSource {
 public:
  virtual ~MemmapSource() = default;

  // The beginning of messages: `LoadTdz: "x.tdz/next/obs.memmap"`.
  virtual std::string Where(absl::string_view path) const = 0;
  virtual absl::StatusOr<PathKind> LookAt(const std::string& path) const = 0;
  // A whole file of at most `max_bytes`.
  virtual absl::StatusOr<std::string> ReadText(const std::string& path,
                                               int64_t max_bytes) const = 0;
  // A file's first `bytes` (> 0) as the elements of a tensor, whose size they
  // are. DATA_LOSS where the file has fewer.
  virtual absl::StatusOr<Tensor> OpenLeaf(const std::string& path, DType dtype,
                                          const Shape& shape,
                                          int64_t bytes) const = 0;
};

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MEMMAP_SOURCE_H_
