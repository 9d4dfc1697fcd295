// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_TABLE_LEAF_H_
#define RILL_STORAGE_TABLE_LEAF_H_

#include <cstdint>

#include "rill/tensors/tensor.h"

namespace rill {

// Rows of one leaf where they lie on a device, for kernels that read them there
// (RowReader::EnqueueReadsInto).
struct TableLeaf {
  Tensor table;  // [rows of the table, row...]; not to be written.
  // On the device: which of them, in turn.
  const int64_t* rows = nullptr;
  int64_t count = 0;
};

}  // namespace rill

#endif  // RILL_STORAGE_TABLE_LEAF_H_
