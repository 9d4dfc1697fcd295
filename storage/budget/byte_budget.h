// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_BUDGET_BYTE_BUDGET_H_
#define RILL_STORAGE_BUDGET_BYTE_BUDGET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rill/specs/spec.h"
#include "rill/storage/storage_layout.h"

namespace rill {

// As in the options of the storage that shall be made.
struct ByteBudgetOptions {
  int64_t lanes = 1;  // >= 1.
  StorageLayout layout = StorageLayout::kAuto;
  bool in_files = false;  // A MemmapStorage: columns begin on pages.
};

// The largest capacity, a multiple of `lanes`, of a DenseStorage or
// MemmapStorage of rows `spec` whose MemoryUsage().full is at most `bytes`. One
// row more a lane would be beyond, or more slots than a storage takes. That is
// all bytes of the rows' block, gaps between records or columns too; cursors,
// trajectory indexes and sum trees come on top. With dedup_next the bytes
// depend on what is written: this is then the capacity that fits if nothing is
// shared, less own bookkeeping.
//
// INVALID_ARGUMENT where the spec is empty, where rows have no bytes, and where
// not even one row a lane fits, naming what it needs. Where the storage takes
// its spec from the first write, take TensorDictSpec::Of(batch) of one batch
// first.
// Thread-safety: thread-safe. Cost: O(leaves), some 60 times.
//
// Example (ByteBudgetTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(const int64_t capacity,
//                         CapacityForBytes(spec, int64_t{1} << 20,
//                                          {.lanes = 4}));
//   RILL_ASSIGN_OR_RETURN(auto storage,
//                         DenseStorage::Create({.capacity = capacity,
//                                               .lanes = 4,
//                                               .spec = spec}));
absl::StatusOr<int64_t> CapacityForBytes(const TensorDictSpec& spec,
                                         int64_t bytes,
                                         const ByteBudgetOptions& options = {});

}  // namespace rill

#endif  // RILL_STORAGE_BUDGET_BYTE_BUDGET_H_
