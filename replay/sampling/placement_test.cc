// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sampling/placement.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/sampling/sample_batches.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::replay_internal {
namespace {

using ::testing::Each;

// A gather of `n` rows whose actions are all `value`, in the memory that the
// placement wants.
auto GatherOf(const Placement& placement, int64_t value) {
  return [&placement, value](TensorDict* rows) -> absl::Status {
    if (!rows->Contains("action")) {
      *rows = TensorDict({4});
      auto leaf = Tensor::Empty(DType::kInt64, {4}, placement.gather_memory());
      if (!leaf.ok()) return leaf.status();
      if (auto set = rows->Set("action", *leaf); !set.ok()) return set;
    }
    auto values = rows->Get("action")->Flat<int64_t>();
    for (int64_t& each : *values) each = value;
    return absl::OkStatus();
  };
}

absl::StatusOr<PlacedBatch> GatherAndPlace(const Placement& placement,
                                           int64_t value,
                                           Placement::Staging* staging) {
  GatheredBatch batch;
  const absl::Status status =
      placement.Gather(staging, &batch, GatherOf(placement, value));
  if (!status.ok()) return status;
  return placement.Place(std::move(batch), staging);
}

void ExpectActions(const TensorDict& rows, int64_t value) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, rows.To(Device::Cpu()));
  EXPECT_THAT(*host.Get("action")->Flat<int64_t>(), Each(value));
}

TEST(PlacementTest, WithoutOptionsABatchStaysWhereItWasGathered) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto placement, Placement::Create({}));
  Placement::Staging staging;
  GatheredBatch batch;
  RILL_ASSERT_OK(placement->Gather(&staging, &batch, GatherOf(*placement, 3)));
  const int64_t* const memory = batch.rows.Get("action")->data<int64_t>();
  RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch placed,
                            placement->Place(std::move(batch), &staging));
  EXPECT_EQ(placed.rows.Get("action")->data<int64_t>(), memory);
  EXPECT_EQ(placed.copied, nullptr);
}

TEST(PlacementTest, WhatATransformMadeIsPinnedToo) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto placement,
      Placement::Create({.pin_memory = true, .pin_for = Device::Fake(0)}));
  Placement::Staging staging;
  GatheredBatch batch;
  RILL_ASSERT_OK(placement->Gather(&staging, &batch, GatherOf(*placement, 3)));
  EXPECT_TRUE(batch.rows.is_pinned());
  RILL_ASSERT_OK(batch.rows.Set("made", *Tensor::Zeros(DType::kInt64, {4})));
  EXPECT_FALSE(batch.rows.is_pinned());
  RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch placed,
                            placement->Place(std::move(batch), &staging));
  EXPECT_TRUE(placed.rows.is_pinned());
}

TEST(PlacementTest, RowsOnADeviceAreThereWhenPlaceReturns) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto placement,
      Placement::Create(
          {.device = Device::Fake(1), .storage_device = Device::Fake(0)}));
  Placement::Staging staging;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows,
                            NumberedSteps(1, 3).To(Device::Fake(0)));
  RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch placed,
                            placement->Place({.rows = rows}, &staging));
  EXPECT_EQ(placed.copied, nullptr);
  EXPECT_EQ(placed.rows.Get("action")->device(), Device::Fake(1));
}

// The fake device copies as late as it may: a gather that is too early changes
// the copied values.
TEST(PlacementTest, StagingIsNotWrittenUntilItsCopyIsDone) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto placement,
                            Placement::Create({.device = Device::Fake(0)}));
  Placement::Staging staging;
  std::vector<PlacedBatch> batches;
  for (int64_t value = 0; value < 4; ++value) {
    RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch placed,
                              GatherAndPlace(*placement, value, &staging));
    ASSERT_NE(placed.copied, nullptr);
    batches.push_back(std::move(placed));
  }
  for (int64_t value = 0; value < 4; ++value) {
    RILL_ASSERT_OK(batches[value].copied->Synchronize());
    ExpectActions(batches[value].rows, value);
  }
}

// Whichever operation of a batch fails: that batch has the error, and the next
// is whole.
TEST(PlacementTest, AFailedCopyCostsNoOtherBatch) {
  using Operation = FakeBackend::Operation;
  for (const Operation operation :
       {Operation::kAllocate, Operation::kCreateEvent, Operation::kCopy}) {
    FakeBackend* const fake = FakeBackend::Install({});
    RILL_ASSERT_OK_AND_ASSIGN(const auto placement,
                              Placement::Create({.device = Device::Fake(0)}));
    Placement::Staging staging;
    // The staging's memory is there from here on: the copy's own fails.
    RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch first,
                              GatherAndPlace(*placement, 1, &staging));
    RILL_ASSERT_OK(first.copied->Synchronize());
    fake->FailNext(operation, 1, absl::DataLossError("injected"));
    const auto failed = GatherAndPlace(*placement, 2, &staging);
    if (operation == Operation::kCopy) {
      RILL_ASSERT_OK(failed);
      EXPECT_THAT(failed->copied->Synchronize(), IsDataLoss());
      fake->Recover();
    } else {
      EXPECT_THAT(failed, IsDataLoss());
    }
    RILL_ASSERT_OK_AND_ASSIGN(PlacedBatch placed,
                              GatherAndPlace(*placement, 3, &staging));
    RILL_ASSERT_OK(placed.copied->Synchronize());
    ExpectActions(placed.rows, 3);
  }
}

TEST(PlacementTest, ADeviceWithoutABackendIsAnError) {
  EXPECT_FALSE(Placement::Create({.device = Device::Fake(7)}).ok());
}

}  // namespace
}  // namespace rill::replay_internal
