// SPDX-License-Identifier: Apache-2.0
// Extend, WriteAt and Clear.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TEST_P(StorageConformanceTest, ExtendWorksAtEverySize) {
  for (const int64_t lanes : {1, 3}) {
    for (const int64_t capacity : {1, 2, 7}) {
      for (const int64_t steps : {int64_t{1}, capacity - 1, capacity,
                                  capacity + 1, 3 * capacity + 2}) {
        auto subject = Make(capacity * lanes, lanes);
        for (int round = 0; round < 3; ++round) {
          subject->ExtendAll(steps);
          subject->Check(absl::StrCat(lanes, " lanes of ", capacity, ", ",
                                      steps, " steps, round ", round));
        }
      }
    }
  }
}

TEST_P(StorageConformanceTest, OneLongWriteIsManyShortOnes) {
  auto whole = Make(10, 2);
  auto pieces = Make(10, 2);
  whole->ExtendAll(3);
  pieces->ExtendAll(3);
  const std::vector<int64_t> ids = whole->NewIds(2 * 13);
  whole->ExtendWith(ConformanceRows({2, 13}, ids), 0, ids);
  for (int64_t step = 0; step < 13; ++step) {
    const std::vector<int64_t> both = {ids[step], ids[13 + step]};
    pieces->ExtendWith(ConformanceRows({2, 1}, both), 0, both);
  }
  whole->Check();
  pieces->Check();
  EXPECT_EQ(whole->storage().cursors(), pieces->storage().cursors());
}

TEST_P(StorageConformanceTest, LanesAreWrittenApart) {
  auto subject = Make(12, 3);
  subject->Extend(1, 1, 2);
  subject->Check();
  subject->Extend(2, 1, 5);
  subject->Check();
  subject->Extend(1, 2, 3);
  subject->Check();
  subject->Extend(0, 3, 1);
  subject->Check();
}

TEST_P(StorageConformanceTest, OneLaneTakesBatchesOfTimeAlone) {
  auto subject = Make(5);
  const std::vector<int64_t> ids = subject->NewIds(7);
  subject->ExtendWith(ConformanceRows({7}, ids), 0, ids);
  subject->Check();
}

TEST_P(StorageConformanceTest, BatchesWithoutRowsWriteNothing) {
  auto subject = Make(6, 2);
  subject->Extend(0, 2, 0);
  subject->Check();
  subject->ExtendAll(2);
  const int64_t calls = subject->mirror().num_calls();
  subject->Extend(0, 2, 0);
  subject->Extend(1, 0, 3);
  subject->Check();
  EXPECT_EQ(subject->mirror().num_calls(), calls);
}

TEST_P(StorageConformanceTest, StridedBatchesAreWrittenAsTheyRead) {
  auto subject = Make(12, 2);
  // Steps outermost in memory, every leaf.
  const std::vector<int64_t> ids = subject->NewIds(2 * 4);
  std::vector<int64_t> by_step(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) by_step[i % 4 * 2 + i / 4] = ids[i];
  TensorDict batch({2, 4});
  for (size_t leaf = 0; leaf < ConformanceSpec().leaves().size(); ++leaf) {
    const Tensor tensor = ConformanceLeaf(leaf, {4, 2}, by_step);
    std::vector<int> dims = {1, 0};
    for (int d = 2; d < tensor.rank(); ++d) dims.push_back(d);
    RILL_ASSERT_OK_AND_ASSIGN(Tensor permuted, tensor.Permute(dims));
    RILL_ASSERT_OK(
        batch.Set(ConformanceSpec().leaves()[leaf].key, std::move(permuted)));
  }
  subject->ExtendWith(batch, 0, ids);
  subject->Check();
}

TEST_P(StorageConformanceTest, LongBatchesOfSeveralLanesMayBeStrided) {
  auto subject = Make(6, 2);
  const std::vector<int64_t> ids = subject->NewIds(2 * 10);
  const TensorDict batch = ConformanceRows({2, 10}, ids);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part, batch.Slice(1, 1, 8));
  std::vector<int64_t> kept;
  for (const int64_t lane : {0, 1}) {
    for (int64_t step = 1; step < 8; ++step)
      kept.push_back(ids[lane * 10 + step]);
  }
  subject->ExtendWith(part, 0, kept);
  subject->Check();
}

TEST_P(StorageConformanceTest, RowsWithGapsInsideAreWrittenAsTheyRead) {
  auto subject = Make(4);
  const std::vector<int64_t> ids = subject->NewIds(3);
  TensorDict batch = ConformanceRows({3}, ids);
  const size_t leaf = ConformanceLeafNumber("next/deep/wide");
  const Tensor dense = ConformanceLeaf(leaf, {3}, ids);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor roomy,
                            Tensor::Zeros(DType::kFloat64, {3, 2, 9}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor gappy, roomy.Slice(2, 2, 7));
  RILL_ASSERT_OK(gappy.CopyFrom(dense));
  RILL_ASSERT_OK(batch.Set("next/deep/wide", gappy));
  subject->ExtendWith(batch, 0, ids);
  subject->Check();
}

TEST_P(StorageConformanceTest, BatchesMayLieOnAnyDevice) {
  for (const Device device : {Device::Cpu(), Device::Fake(0)}) {
    auto subject = Make(8, 2);
    const std::vector<int64_t> ids = subject->NewIds(2 * 6);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                              ConformanceRows({2, 6}, ids).To(device));
    subject->ExtendWith(batch, 0, ids);
    subject->Check(device.ToString());
  }
}

// Each row goes to the slot behind its own, so that a copy in place would drag
// the first one through.
TEST_P(StorageConformanceTest, TheStoragesOwnRowsMayBeWrittenAgain) {
  auto subject = Make(6);
  subject->ExtendAll(7);
  const auto lease = Lease(subject->storage(), {0, 4});
  if (!lease.has_value()) return;
  std::vector<int64_t> ids;
  for (const Slot slot : {0, 1, 2, 3}) {
    ids.push_back(subject->oracle().Id(slot, /*leaf=*/0));
  }
  subject->ExtendWith(lease->rows(), 0, ids);
  subject->Check();
}

TEST_P(StorageConformanceTest, WriteAtPatchesKeysInPlace) {
  auto subject = Make(8, 2);
  subject->ExtendAll(3);
  const size_t action = ConformanceLeafNumber("action");
  const size_t wide = ConformanceLeafNumber("next/deep/wide");
  const size_t priority = ConformanceLeafNumber("priority");
  const size_t done = ConformanceLeafNumber("next/done");
  subject->WriteAt({5, 0, 2}, {action, wide});
  subject->Check();
  subject->WriteAt({6, 1}, {priority});
  subject->Check();
  subject->ExtendAll(3);  // The rings wrap: order is no longer that of slots.
  subject->WriteAt({3, 0, 4, 7, 1}, {done, priority, action});
  subject->Check();
  subject->WriteAt({}, {action});
  subject->Check();
}

TEST_P(StorageConformanceTest, OfASlotNamedTwiceTheLaterRowWins) {
  auto subject = Make(4);
  subject->ExtendAll(4);
  const size_t done = ConformanceLeafNumber("next/done");
  subject->WriteAt({2, 1, 2, 2, 1}, {done, ConformanceLeafNumber("action")});
  subject->Check();
}

TEST_P(StorageConformanceTest, ClearForgetsRowsAndKeepsTheSpec) {
  auto subject = Make(6, 2);
  subject->ExtendAll(4);
  subject->Clear();
  subject->Check();
  EXPECT_EQ(subject->storage().spec().leaves().size(),
            ConformanceSpec().leaves().size());
  TensorDict rows;
  EXPECT_THAT(subject->storage().Read({0}, &rows), IsOutOfRange());
  subject->ExtendAll(2);
  subject->Check();
}

TEST_P(StorageConformanceTest, SpecIsTheFirstWritesWhereNoneWasGiven) {
  auto subject = Make(4);
  EXPECT_EQ(subject->storage().spec().empty(), GetParam().is_lazy);
  subject->ExtendAll(1);
  for (const TensorDictSpec::Leaf& leaf : ConformanceSpec().leaves()) {
    const TensorDictSpec spec = subject->storage().spec();
    const LeafSpec* const found = spec.Find(leaf.key);
    ASSERT_NE(found, nullptr) << leaf.key;
    EXPECT_EQ(found->dtype, leaf.spec.dtype);
    EXPECT_EQ(found->shape, leaf.spec.shape);
  }
}

}  // namespace
}  // namespace rill
