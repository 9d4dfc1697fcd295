// SPDX-License-Identifier: Apache-2.0
// CompressedStorage passes both suites.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/conformance/storage_conformance.h"

namespace rill {
namespace {

// Blocks of `block_rows` steps, or of what a lane has.
StorageCase Case(std::string name, bool is_lazy, int64_t block_rows,
                 int level) {
  StorageCase one;
  one.name = std::move(name);
  one.is_lazy = is_lazy;
  one.no_leases = "compressed";
  one.has_fixed_memory = false;
  one.create = [=](int64_t capacity, int64_t lanes,
                   const TensorDictSpec& spec) {
    return CompressedStorage::Create(
        {.capacity = capacity,
         .lanes = lanes,
         .spec = spec,
         .block_rows = std::min(block_rows, capacity / lanes),
         .level = level});
  };
  return one;
}

std::vector<StorageCase> CompressedCases() {
  return {Case("DefaultBlocks", false, 0, 3),
          Case("BlocksOfThreeLazy", true, 3, 1),
          Case("ABlockALane", false, INT64_MAX, -1)};
}

INSTANTIATE_TEST_SUITE_P(Compressed, RowReaderConformanceTest,
                         ::testing::ValuesIn(CompressedCases()),
                         StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Compressed, StorageConformanceTest,
                         ::testing::ValuesIn(CompressedCases()),
                         StorageCaseName);

}  // namespace
}  // namespace rill
