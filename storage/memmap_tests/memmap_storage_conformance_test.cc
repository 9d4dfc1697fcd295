// SPDX-License-Identifier: Apache-2.0
// MemmapStorage in every form passes both suites.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {
namespace {

// A directory that nothing was in; those of the test before are gone.
std::string FreshDirectory() {
  static int64_t count = 0;
  static const ::testing::TestInfo* test = nullptr;
  const std::string root = JoinPath(::testing::TempDir(), "memmap_storages");
  const auto* const now =
      ::testing::UnitTest::GetInstance()->current_test_info();
  if (test != now) {
    test = now;
    EXPECT_TRUE(RemoveAll(root).ok());
  }
  return JoinPath(root, absl::StrCat(++count));
}

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
        return MemmapStorage::Create({.directory = FreshDirectory(),
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
