// SPDX-License-Identifier: Apache-2.0
// DenseStorage in every form passes both suites.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {
namespace {

StorageCase Case(StorageLayout layout, StorageOrder order, Device device,
                 bool is_lazy, bool dedup_next) {
  StorageCase one;
  one.name = absl::StrCat(
      layout == StorageLayout::kRows ? "Rows" : "Columns",
      order == StorageOrder::kLaneMajor ? "LaneMajor" : "TimeMajor",
      device.is_cpu() ? "Cpu" : "Device", is_lazy ? "Lazy" : "Given",
      dedup_next ? "Dedup" : "");
  one.is_lazy = is_lazy;
  one.has_leases = !dedup_next;
  one.create = [=](int64_t capacity, int64_t lanes,
                   const TensorDictSpec& spec) {
    return DenseStorage::Create({.capacity = capacity,
                                 .lanes = lanes,
                                 .layout = layout,
                                 .order = order,
                                 .device = device,
                                 .spec = spec,
                                 .dedup_next = dedup_next});
  };
  return one;
}

std::vector<StorageCase> DenseCases() {
  std::vector<StorageCase> cases;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const StorageOrder order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      for (const bool is_lazy : {false, true}) {
        for (const Device device : {Device::Cpu(), DeviceUnderTest()}) {
          cases.push_back(Case(layout, order, device, is_lazy, false));
        }
        cases.push_back(Case(layout, order, Device::Cpu(), is_lazy, true));
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dense, RowReaderConformanceTest,
                         ::testing::ValuesIn(DenseCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Dense, StorageConformanceTest,
                         ::testing::ValuesIn(DenseCases()), StorageCaseName);

}  // namespace
}  // namespace rill
