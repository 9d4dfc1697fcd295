// SPDX-License-Identifier: Apache-2.0
// What a write to a device's rows asks of the device, counted on the fake one:
// launches, copies and their bytes, allocations, and waits of the host.
#include <cstdint>
#include <ostream>

#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

struct Cost {
  int64_t launches = 0;
  int64_t copies = 0;  // By the copy engine, and their bytes.
  int64_t copied_bytes = 0;
  int64_t allocations = 0;
  int64_t waits = 0;
  int64_t host_memory_bytes = 0;  // That launches read over the bus.

  friend bool operator==(const Cost&, const Cost&) = default;
  friend std::ostream& operator<<(std::ostream& os, const Cost& cost) {
    return os << cost.launches << " launches, " << cost.copies << " copies of "
              << cost.copied_bytes << " bytes, " << cost.allocations
              << " allocations, " << cost.waits << " waits, "
              << cost.host_memory_bytes << " bytes read over the bus";
  }
};

// [lanes, steps] of a robot's transitions, 97 bytes a row, or of frames of
// 84 x 84, 28,224 bytes and 13 more.
TensorDict Batch(int64_t lanes, int64_t steps, bool has_frames) {
  TensorDict batch({lanes, steps});
  const auto add = [&](const char* key, DType dtype, Shape shape) {
    auto tensor = *Tensor::Zeros(dtype, Shape({lanes, steps}).Concat(shape));
    RILL_EXPECT_OK(batch.Set(key, std::move(tensor)));
  };
  if (has_frames) {
    add("observation", DType::kUInt8, {4, 84, 84});
    add("action", DType::kInt64, {1});
  } else {
    add("observation", DType::kFloat32, {17});
    add("action", DType::kFloat32, {6});
  }
  add("next/reward", DType::kFloat32, {1});
  add("next/done", DType::kBool, {1});
  return batch;
}

class CostTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }

  // Of the last of some writes of `batch`.
  Cost CostOf(const TensorDict& batch, WriteObserver* observer = nullptr) {
    const int64_t lanes = batch.batch_shape()[0];
    auto storage =
        *DenseStorage::Create({.capacity = lanes * batch.batch_shape()[1] * 4,
                               .lanes = lanes,
                               .order = StorageOrder::kTimeMajor,
                               .device = Device::Fake(0)});
    if (observer != nullptr) {
      RILL_EXPECT_OK(storage->AddObserver(observer));
    }
    Cost cost;
    for (int i = 0; i < 3; ++i) {
      fake_->RunAll();
      const int64_t launches = Launches();
      const int64_t allocations =
          fake_->Count(FakeBackend::Operation::kAllocate);
      const int64_t copies = fake_->Count(FakeBackend::Operation::kCopy);
      fake_->StartCalls();
      RILL_EXPECT_OK(storage->Extend(batch));
      cost = {.launches = Launches() - launches,
              .copies = fake_->Count(FakeBackend::Operation::kCopy) - copies,
              .allocations = fake_->Count(FakeBackend::Operation::kAllocate) -
                             allocations};
      for (const FakeBackend::Call& call : fake_->TakeCalls()) {
        if (call.kind == FakeBackend::Call::Kind::kSynchronizeStream ||
            call.kind == FakeBackend::Call::Kind::kSynchronizeEvent) {
          ++cost.waits;
        } else if (call.from_device != call.to_device) {
          // From pinned memory into the rows, or to the memory beside it.
          (cost.copies == 0 ? cost.host_memory_bytes : cost.copied_bytes) +=
              call.bytes;
        }
      }
    }
    RILL_EXPECT_OK((*Stream::Default(Device::Fake(0))).Synchronize());
    if (observer != nullptr) storage->RemoveObserver(observer);
    return cost;
  }
  int64_t Launches() const {
    return fake_->Count(FakeBackend::Operation::kScatterRows) +
           fake_->Count(FakeBackend::Operation::kLaunch) +
           fake_->Count(FakeBackend::Operation::kFill);
  }
  TensorDict There(const TensorDict& batch) const {
    return *batch.To(Device::Fake(0));
  }

  FakeBackend* fake_ = nullptr;
};

TEST_F(CostTest, OneRowFromTheHostIsOneLaunch) {
  EXPECT_EQ(CostOf(Batch(1, 1, false)),
            (Cost{.launches = 1, .host_memory_bytes = 97}));
  EXPECT_EQ(CostOf(Batch(1, 1, true)),
            (Cost{.launches = 1, .host_memory_bytes = 28224 + 13}));
}

TEST_F(CostTest, AThousandSmallRowsAreACopyAndALaunch) {
  // Leaves begin on lines of 64 bytes.
  EXPECT_EQ(CostOf(Batch(1, 1000, false)),
            (Cost{.launches = 1, .copies = 1, .copied_bytes = 97088}));
}

TEST_F(CostTest, AThousandRowsOfAtariGoInFourParts) {
  const Cost cost = CostOf(Batch(1, 1000, true));
  EXPECT_EQ(cost.launches, 4);
  EXPECT_EQ(cost.copies, 4);
  EXPECT_EQ(cost.allocations, 0);
  // The fake device's stream stands still, so all parts wait but the two that
  // the ring holds.
  EXPECT_EQ(cost.waits, 2);
}

TEST_F(CostTest, AStepOfManyLanesIsOneScatter) {
  EXPECT_EQ(CostOf(Batch(4096, 1, false)),
            (Cost{.launches = 1, .copies = 1, .copied_bytes = 97 * 4096}));
}

TEST_F(CostTest, ABatchOnTheDeviceIsOneLaunchAndNothingElse) {
  const Cost launch = {.launches = 1};
  EXPECT_EQ(CostOf(There(Batch(1, 1, false))), launch);
  EXPECT_EQ(CostOf(There(Batch(1, 1000, false))), launch);
  EXPECT_EQ(CostOf(There(Batch(1, 1000, true))), launch);
  EXPECT_EQ(CostOf(There(Batch(4096, 1, false))), launch);
}

// As a uniform sampler over single rows, or one with priorities of rows without
// a leaf of them.
TEST_F(CostTest, AnObserverThatReadsNoValueCostsNothing) {
  LiveSlots live;
  EXPECT_EQ(CostOf(There(Batch(64, 1, false)), &live), (Cost{.launches = 1}));
  class Priorities final : public LiveSlots {
    ValuesRead values_read() const override {
      return {.trajectories = false, .policy_versions = false};
    }
  } priorities;
  EXPECT_EQ(CostOf(There(Batch(64, 1, false)), &priorities),
            (Cost{.launches = 1}));
}

TEST_F(CostTest, AnObserverCostsOneWaitForItsFlags) {
  class Flags final : public LiveSlots {
    ValuesRead values_read() const override { return {}; }
  } flags;
  EXPECT_EQ(CostOf(There(Batch(64, 1, false)), &flags),
            (Cost{.launches = 1, .copies = 1, .copied_bytes = 64, .waits = 1}));
  EXPECT_EQ(CostOf(Batch(64, 1, false), &flags),
            (Cost{.launches = 1, .host_memory_bytes = 64 * 97}));
}

}  // namespace
}  // namespace rill
