// SPDX-License-Identifier: Apache-2.0
// ListStorage without ragged leaves passes both suites.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/list/list_storage.h"

namespace rill {
namespace {

StorageCase Case(std::string name, bool is_lazy) {
  StorageCase one;
  one.name = std::move(name);
  one.is_lazy = is_lazy;
  one.no_leases = "listed";
  one.has_fixed_memory = false;
  one.create = [](int64_t capacity, int64_t lanes, const TensorDictSpec& spec) {
    return ListStorage::Create(
        {.capacity = capacity, .lanes = lanes, .spec = spec});
  };
  return one;
}

std::vector<StorageCase> ListCases() {
  return {Case("Given", false), Case("Lazy", true)};
}

INSTANTIATE_TEST_SUITE_P(List, RowReaderConformanceTest,
                         ::testing::ValuesIn(ListCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(List, StorageConformanceTest,
                         ::testing::ValuesIn(ListCases()), StorageCaseName);

}  // namespace
}  // namespace rill
