// SPDX-License-Identifier: Apache-2.0
// DenseStorage in every form passes the storage suite.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage_layout.h"

namespace rill {
namespace {

std::vector<StorageCase> DenseCases() {
  std::vector<StorageCase> cases;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const StorageOrder order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      for (const Device device : {Device::Cpu(), Device::Fake(0)}) {
        for (const bool is_lazy : {false, true}) {
          StorageCase one;
          one.name = absl::StrCat(
              layout == StorageLayout::kRows ? "Rows" : "Columns",
              order == StorageOrder::kLaneMajor ? "LaneMajor" : "TimeMajor",
              device.is_cpu() ? "Cpu" : "Fake", is_lazy ? "Lazy" : "Given");
          one.is_lazy = is_lazy;
          one.create = [=](int64_t capacity, int64_t lanes,
                           const TensorDictSpec& spec) {
            return DenseStorage::Create({.capacity = capacity,
                                         .lanes = lanes,
                                         .layout = layout,
                                         .order = order,
                                         .device = device,
                                         .spec = spec});
          };
          cases.push_back(one);
        }
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dense, StorageConformanceTest,
                         ::testing::ValuesIn(DenseCases()), StorageCaseName);

}  // namespace
}  // namespace rill
