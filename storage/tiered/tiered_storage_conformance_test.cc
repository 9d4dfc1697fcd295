// SPDX-License-Identifier: Apache-2.0
// TieredStorage in every form passes both suites.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/testing/fresh_path.h"

namespace rill {
namespace {

// Each lane's newest rows are above, in `share` of the room below.
StorageCase Case(std::string name, Device device, bool is_memmap, bool is_lazy,
                 double share) {
  StorageCase one;
  one.name = std::move(name);
  one.is_lazy = is_lazy;
  one.is_in_one_place = !is_memmap;
  one.create = [=](int64_t capacity, int64_t lanes, const TensorDictSpec& spec)
      -> absl::StatusOr<std::unique_ptr<Storage>> {
    absl::StatusOr<std::unique_ptr<Storage>> below =
        is_memmap ? MemmapStorage::Create(
                        {.directory = NextFreshPath("tiered_storages"),
                         .capacity = capacity,
                         .lanes = lanes,
                         .spec = spec})
                  : DenseStorage::Create(
                        {.capacity = capacity, .lanes = lanes, .spec = spec});
    if (!below.ok()) return below.status();
    const auto lane_rows =
        static_cast<int64_t>(share * static_cast<double>(capacity / lanes));
    return TieredStorage::Create(
        {.below = *std::move(below),
         .fast_capacity = std::max<int64_t>(lane_rows, 1) * lanes,
         .device = device,
         .fill = is_lazy});
  };
  return one;
}

std::vector<StorageCase> TieredCases() {
  const Device cpu = Device::Cpu();
  const Device device = DeviceUnderTest();
  return {Case("HalfOnCpuOverDense", cpu, false, true, 0.5),
          Case("OneRowOnCpuOverMemmap", cpu, true, false, 0),
          Case("HalfOnDeviceOverMemmap", device, true, true, 0.6),
          Case("AllOnDeviceOverDense", device, false, false, 1)};
}

INSTANTIATE_TEST_SUITE_P(Tiered, RowReaderConformanceTest,
                         ::testing::ValuesIn(TieredCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Tiered, StorageConformanceTest,
                         ::testing::ValuesIn(TieredCases()), StorageCaseName);

}  // namespace
}  // namespace rill
