// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FORMATS_MEMMAP_MEMMAP_READER_H_
#define RILL_FORMATS_MEMMAP_MEMMAP_READER_H_

#include "absl/status/statusor.h"
#include "rill/formats/memmap/memmap_source.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::formats_internal {

// The dictionary whose tree is in `source`. Nothing in there is believed before
// it was checked. Errors: memmap_directory.h. Of `options` it takes `refused`;
// the mode is the source's.
// Thread-safety: thread-safe for different options.
absl::StatusOr<TensorDict> ReadMemmapTree(const MemmapSource& source,
                                          const LoadMemmapOptions& options);

// The same where a lazy stack was saved.
absl::StatusOr<LazyStack> ReadMemmapLazyStack(const MemmapSource& source,
                                              const LoadMemmapOptions& options);

}  // namespace rill::formats_internal

#endif  // RILL_FORMATS_MEMMAP_MEMMAP_READER_H_
