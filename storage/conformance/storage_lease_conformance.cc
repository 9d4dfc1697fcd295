// SPDX-License-Identifier: Apache-2.0
// Leases, and the memory of rows.
#include <cstdint>
#include <utility>

#include "gtest/gtest.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST_P(StorageConformanceTest, ReadNeverWritesIntoTheStorageItself) {
  auto subject = Make(6);
  subject->ExtendAll(6);
  const auto lease = Lease(subject->storage(), {0, 2});
  if (!lease.has_value()) return;
  TensorDict out = lease->rows();
  RILL_ASSERT_OK(subject->storage().Read({4, 5}, &out));
  RILL_EXPECT_OK(out.CheckEqual(subject->oracle().Rows({4, 5})));
  subject->Check();
}

TEST_P(StorageConformanceTest, MemoryUsageTellsWhatToPlanFor) {
  int64_t row_bytes = 0;
  for (const TensorDictSpec::Leaf& leaf : ConformanceSpec().leaves()) {
    row_bytes += leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
  }
  constexpr int64_t kCapacity = 3000;
  auto subject = Make(kCapacity, 3);
  Storage& storage = subject->storage();
  EXPECT_EQ(storage.MemoryUsage().row, GetParam().is_lazy ? 0 : row_bytes);
  for (int round = 0; round < 3; ++round) {
    subject->ExtendAll(500);
    const StorageUsage usage = storage.MemoryUsage();
    EXPECT_EQ(usage.row, row_bytes);
    EXPECT_GE(usage.memory + usage.disk + usage.saved,
              storage.size() * row_bytes);
    EXPECT_GE(usage.full + usage.saved, kCapacity * row_bytes);
    EXPECT_EQ(usage.memory == 0 || usage.disk == 0, GetParam().is_in_one_place);
  }
  if (!GetParam().has_fixed_memory) {
    EXPECT_LE(storage.MemoryUsage().memory, storage.MemoryUsage().full);
    return;
  }
  const StorageUsage full = storage.MemoryUsage();
  subject->ExtendAll(500);  // Nothing grows any more.
  EXPECT_EQ(storage.MemoryUsage().memory, full.memory);
  EXPECT_EQ(storage.MemoryUsage().disk, full.disk);
  EXPECT_EQ(storage.MemoryUsage().full, full.full);
  subject->Clear();
  EXPECT_EQ(storage.MemoryUsage().memory, full.memory);
}

TEST_P(StorageConformanceTest, LeasesShowRowsUntilTheirSlotsAreWritten) {
  auto subject = Make(10, 2);
  subject->ExtendAll(4);
  Storage& storage = subject->storage();
  const auto early = Lease(storage, {5, 2});
  if (!early.has_value()) return;
  const auto late = Lease(storage, {7, 2});
  ASSERT_TRUE(late.has_value());
  const auto none = Lease(storage, {0, 0});
  ASSERT_TRUE(none.has_value());
  RILL_EXPECT_OK(early->rows().CheckEqual(subject->oracle().Rows({5, 6})));
  RILL_EXPECT_OK(late->rows().CheckEqual(subject->oracle().Rows({7, 8})));
  EXPECT_EQ(none->rows().batch_shape(), Shape({0}));
  subject->Extend(1, 1, 2);  // Slots 9 and 5.
  EXPECT_FALSE(early->valid());
  EXPECT_TRUE(late->valid());
  RILL_EXPECT_OK(late->rows().CheckEqual(subject->oracle().Rows({7, 8})));
  subject->WriteAt({7}, {ConformanceLeafNumber("action")});
  EXPECT_FALSE(late->valid());
  const auto last = Lease(storage, {0, 1});
  ASSERT_TRUE(last.has_value());
  EXPECT_TRUE(last->valid());
  subject->Clear();
  EXPECT_FALSE(last->valid());
}

TEST_P(StorageConformanceTest, LeasedRowsOutliveTheStorage) {
  auto subject = Make(4);
  subject->ExtendAll(4);
  const auto lease = Lease(subject->storage(), {1, 3});
  if (!lease.has_value()) return;
  const TensorDict want = subject->oracle().Rows({1, 2, 3});
  subject.reset();
  RILL_EXPECT_OK(lease->rows().CheckEqual(want));
}

}  // namespace
}  // namespace rill
