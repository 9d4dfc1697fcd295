// SPDX-License-Identifier: Apache-2.0
// EnsembleStorage of several kinds of members passes both suites.
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
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/testing/fresh_path.h"

namespace rill {
namespace {

struct Kind {
  std::string name;
  int64_t member_lanes = 1;  // At most; the last member has what is left.
  Device device = Device::Cpu();
  bool is_lazy = false;
  bool is_memmap = false;
  bool dedup_next = false;
};

StorageCase Case(const Kind& kind) {
  StorageCase one;
  one.name = kind.name;
  one.is_lazy = kind.is_lazy;
  one.has_leases = !kind.dedup_next;
  one.create = [kind](int64_t capacity, int64_t lanes,
                      const TensorDictSpec& spec)
      -> absl::StatusOr<std::unique_ptr<Storage>> {
    std::vector<std::unique_ptr<Storage>> members;
    for (int64_t lane = 0; lane < lanes; lane += kind.member_lanes) {
      const int64_t own = std::min(kind.member_lanes, lanes - lane);
      auto member =
          kind.is_memmap
              ? MemmapStorage::Create({.directory = NextFreshPath("ensembles"),
                                       .capacity = capacity / lanes * own,
                                       .lanes = own,
                                       .spec = spec})
              : DenseStorage::Create({.capacity = capacity / lanes * own,
                                      .lanes = own,
                                      .device = kind.device,
                                      .memory_kind = MemoryKind::kPageable,
                                      .spec = spec,
                                      .dedup_next = kind.dedup_next});
      if (!member.ok()) return member.status();
      members.push_back(*std::move(member));
    }
    return EnsembleStorage::Create(std::move(members));
  };
  return one;
}

std::vector<StorageCase> EnsembleCases() {
  return {Case({.name = "ALaneEach"}),
          Case({.name = "ALaneEachLazy", .is_lazy = true}),
          Case({.name = "TwoLanesEachMemmap",
                .member_lanes = 2,
                .is_lazy = true,
                .is_memmap = true}),
          Case({.name = "ALaneEachDedup", .dedup_next = true}),
          Case({.name = "ALaneEachOnDevice", .device = DeviceUnderTest()})};
}

INSTANTIATE_TEST_SUITE_P(Ensemble, RowReaderConformanceTest,
                         ::testing::ValuesIn(EnsembleCases()), StorageCaseName);
INSTANTIATE_TEST_SUITE_P(Ensemble, StorageConformanceTest,
                         ::testing::ValuesIn(EnsembleCases()), StorageCaseName);

}  // namespace
}  // namespace rill
