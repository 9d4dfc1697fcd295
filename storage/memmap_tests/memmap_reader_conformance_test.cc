// SPDX-License-Identifier: Apache-2.0
// MemmapStorage::OpenReader of every layout passes the suite of readers.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/testing/fresh_path.h"

namespace rill {
namespace {

StorageCase Case(StorageLayout layout, StorageOrder order) {
  StorageCase one;
  one.name = absl::StrCat(
      layout == StorageLayout::kRows ? "Rows" : "Columns",
      order == StorageOrder::kLaneMajor ? "LaneMajor" : "TimeMajor");
  one.no_leases = "a reader of";
  const auto directory = std::make_shared<std::string>();  // The last one's.
  one.create = [=](int64_t capacity, int64_t lanes,
                   const TensorDictSpec& spec) {
    *directory = FreshPath("memmap_reader");
    return MemmapStorage::Create({.directory = *directory,
                                  .capacity = capacity,
                                  .lanes = lanes,
                                  .layout = layout,
                                  .order = order,
                                  .spec = spec});
  };
  one.open_reader = [=] { return MemmapStorage::OpenReader(*directory); };
  return one;
}

std::vector<StorageCase> ReaderCases() {
  std::vector<StorageCase> cases;
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    for (const StorageOrder order :
         {StorageOrder::kLaneMajor, StorageOrder::kTimeMajor}) {
      cases.push_back(Case(layout, order));
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(MemmapReader, RowReaderConformanceTest,
                         ::testing::ValuesIn(ReaderCases()), StorageCaseName);

}  // namespace
}  // namespace rill
