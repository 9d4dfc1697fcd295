// SPDX-License-Identifier: Apache-2.0
// MemmapStorage in every form passes both suites.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/testing/fresh_path.h"

namespace rill {
namespace {

std::vector<StorageCase> MemmapCases() {
  std::vector<StorageCase> cases;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const StorageOrder order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      StorageCase one;
      one.is_lazy = (layout == StorageLayout::kRows) ==
                    (order == StorageOrder::kTimeMajor);
      one.name = absl::StrCat(
          layout == StorageLayout::kRows ? "Rows" : "Columns",
          order == StorageOrder::kLaneMajor ? "LaneMajor" : "TimeMajor",
          one.is_lazy ? "Lazy" : "Given");
      one.create = [=](int64_t capacity, int64_t lanes,
                       const TensorDictSpec& spec) {
        return MemmapStorage::Create(
            {.directory = NextFreshPath("memmap_storages"),
             .capacity = capacity,
             .lanes = lanes,
             .layout = layout,
             .order = order,
             .spec = spec});
      };
      cases.push_back(one);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Memmap, RowReaderConformanceTest,
                         ::testing::ValuesIn(MemmapCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Memmap, StorageConformanceTest,
                         ::testing::ValuesIn(MemmapCases()), StorageCaseName);

}  // namespace
}  // namespace rill
