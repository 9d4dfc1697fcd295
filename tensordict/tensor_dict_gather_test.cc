// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace {
int64_t num_allocations = 0;
}  // namespace

// Every allocation of this program is counted, so that "none" can be tested.
// Array and nothrow forms come here too.
void* operator new(size_t bytes) {
  ++num_allocations;
  void* data = std::malloc(bytes > 0 ? bytes : 1);
  if (data == nullptr) std::abort();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }

namespace rill {
namespace {

using ::testing::IsEmpty;

// Allocations by new and of buffers while `fn` runs.
template <typename Fn>
int64_t AllocationsOf(Fn&& fn) {
  int64_t buffers = 0;
  const ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
    ++buffers;
    return absl::OkStatus();
  });
  const int64_t before = num_allocations;
  fn();
  return num_allocations - before + buffers;
}

TEST(GatherTest, CopiesRowsInTheOrderAsked) {
  const TensorDict steps = MakeSteps(5);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, steps.Gather({4, 0, 4}));
  EXPECT_EQ(batch.batch_shape(), Shape({3}));
  EXPECT_THAT(batch.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(4, 0, 4)));
  EXPECT_THAT(batch.Get("observation"),
              IsOkAndHolds(TensorElementsAre<float>(40, 41, 42, 43, 0, 1, 2, 3,
                                                    40, 41, 42, 43)));
  EXPECT_THAT(batch.Get("next/reward"),
              IsOkAndHolds(TensorElementsAre<float>(2, 0, 2)));
  batch.Find("action")->data<int64_t>()[0] = 9;  // A copy.
  EXPECT_EQ(steps.Find("action")->data<int64_t>()[4], 4);
}

TEST(GatherTest, LeavesAreAlignedAndContiguous) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                            MakeSteps(5).Gather({1, 2, 3}));
  batch.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_TRUE(leaf.is_contiguous()) << key;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(leaf.raw_data()) % 64, 0) << key;
  });
}

TEST(GatherTest, BadRowsLeaveOutAlone) {
  const TensorDict steps = MakeSteps(5);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, steps.Gather({1, 2}));
  for (const int64_t bad : {int64_t{5}, int64_t{-1}}) {
    EXPECT_THAT(steps.GatherInto({0, bad}, &out),
                IsOutOfRange(absl::StrCat("row ", bad, " is outside [0, 5)")));
  }
  EXPECT_THAT(out.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(1, 2)));
  EXPECT_THAT(TensorDict().Gather({}), IsInvalidArgument());
  EXPECT_THAT(steps.GatherInto({0}, nullptr), IsInvalidArgument());
}

TEST(GatherTest, NoRowsAndNoLeavesWork) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict none, MakeSteps(5).Gather({}));
  EXPECT_EQ(none.batch_shape(), Shape({0}));
  EXPECT_EQ(none.Find("observation")->shape(), Shape({0, 4}));
  EXPECT_THAT(TensorDict({3}).Gather({2, 2}), IsOk());
}

TEST(GatherTest, OutIsReusedWithoutAllocation) {
  const TensorDict steps = MakeSteps(100);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, steps.Gather({1, 2, 3}));
  const std::byte* const before = out.Find("next/reward")->raw_data();
  const std::vector<int64_t> rows = {99, 0, 50};
  EXPECT_EQ(
      AllocationsOf([&] { EXPECT_TRUE(steps.GatherInto(rows, &out).ok()); }),
      0);
  EXPECT_EQ(out.Find("next/reward")->raw_data(), before);
  EXPECT_THAT(out, BitEqualTo(*steps.Gather(rows)));
  EXPECT_GT(AllocationsOf([&] {
              EXPECT_TRUE(steps.GatherInto({99, 0}, &out).ok());
            }),
            0);  // The counter counts.
}

TEST(GatherTest, ManyLeavesNeedNoAllocationEither) {
  TensorDict wide({10});
  for (int i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(wide.Set(absl::StrCat("k", i), Iota<int32_t>({10, 2})));
  }
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, wide.Gather({1, 2}));
  const std::vector<int64_t> rows = {7, 8};
  EXPECT_EQ(
      AllocationsOf([&] { EXPECT_TRUE(wide.GatherInto(rows, &out).ok()); }), 0);
  EXPECT_THAT(out, BitEqualTo(*wide.Gather(rows)));
}

TEST(GatherTest, OutThatDoesNotFitIsMadeAnew) {
  const TensorDict steps = MakeSteps(5);
  const TensorDict want = *steps.Gather({3, 1});
  std::vector<TensorDict> outs(7);
  outs[1] = *steps.Gather({0});  // Too few rows.
  outs[2] = *steps.Gather({0, 0});
  RILL_ASSERT_OK(outs[2].Delete("next/done"));  // A key is missing.
  outs[3] = *steps.Gather({0, 0});
  RILL_ASSERT_OK(outs[3].Set("x", Iota<float>({2})));  // One is too many.
  outs[4] = *steps.Gather({0, 0});
  RILL_ASSERT_OK(outs[4].Set("action", Iota<int32_t>({2})));  // Wrong dtype.
  outs[5] = *steps.Slice(0, 0, 2);  // Shares bytes with the source.
  outs[6] = *steps.Gather({0, 0});
  RILL_ASSERT_OK(outs[6].Set("action", NonTensor{"1"}));
  for (TensorDict& out : outs) {
    RILL_ASSERT_OK(steps.GatherInto({3, 1}, &out));
    EXPECT_THAT(out, BitEqualTo(want));
  }
  EXPECT_THAT(steps, BitEqualTo(MakeSteps(5)));
  TensorDict self = steps;
  RILL_ASSERT_OK(self.GatherInto({3, 1}, &self));
  EXPECT_THAT(self, BitEqualTo(want));
}

TEST(GatherTest, OrderOfKeysInOutDoesNotMatter) {
  const TensorDict steps = MakeSteps(5);
  const TensorDict first = *steps.Gather({0, 0});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out,
                            first.Select({"next", "action", "observation"}));
  const std::byte* const before = out.Find("action")->raw_data();
  RILL_ASSERT_OK(steps.GatherInto({3, 1}, &out));
  EXPECT_EQ(out.Find("action")->raw_data(), before);
  EXPECT_THAT(out, BitEqualTo(*steps.Gather({3, 1})));
}

TEST(GatherTest, LockedOutTakesBytesOnly) {
  const TensorDict steps = MakeSteps(5);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict out, steps.Gather({0, 0}));
  out.Lock();
  RILL_EXPECT_OK(steps.GatherInto({3, 1}, &out));
  EXPECT_THAT(steps.GatherInto({3}, &out), IsFailedPrecondition());
  EXPECT_THAT(out, BitEqualTo(*steps.Gather({3, 1})));
}

TEST(GatherTest, StridedSourcesAgreeWithTheirCopies) {
  const Rng rng(5);
  for (uint32_t round = 0; round < 200; ++round) {
    const int64_t n = rng.UniformInt(round, 0, 5) + 1;
    const int64_t m = rng.UniformInt(round, 1, 4) + 1;
    TensorDict dict({n});
    RILL_ASSERT_OK(
        dict.Set("turned", *Iota<int16_t>({m, 3, n}).Permute({2, 0, 1})));
    RILL_ASSERT_OK(dict.Set("column", *Iota<double>({n, m}).Select(1, m - 1)));
    RILL_ASSERT_OK(dict.Set("wide", *Iota<float>({1, m}).Expand({n, m})));
    RILL_ASSERT_OK(dict.Set("n/part", *Iota<uint8_t>({n, 8}).Slice(1, 2, 5)));
    std::vector<int64_t> rows(static_cast<size_t>(rng.UniformInt(round, 2, 9)));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = rng.UniformInt(round, static_cast<uint32_t>(i) + 3, n);
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copy, dict.Clone());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, copy.Gather(rows));
    EXPECT_THAT(dict.Gather(rows), IsOkAndHolds(BitEqualTo(want)));
    for (size_t i = 0; i < rows.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row,
                                want.Index(static_cast<int64_t>(i)));
      EXPECT_THAT(dict.Index(rows[i]), IsOkAndHolds(BitEqualTo(row)));
    }
  }
}

TEST(GatherTest, BatchesOfMoreDimensionsAndNonTensorValues) {
  TensorDict dict({3, 2});
  RILL_ASSERT_OK(dict.Set("a", Iota<int32_t>({3, 2, 2})));
  RILL_ASSERT_OK(dict.Set("name", NonTensor{"\"x\""}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict out, dict.Gather({2}));
  EXPECT_EQ(out.batch_shape(), Shape({1, 2}));
  EXPECT_THAT(out.Get("a"),
              IsOkAndHolds(TensorElementsAre<int32_t>(8, 9, 10, 11)));
  EXPECT_THAT(out.GetNonTensor("name"), IsOkAndHolds(NonTensor{"\"x\""}));
}

class GatherDeviceTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
};

TEST_F(GatherDeviceTest, RowsAreGatheredOnTheDeviceInOneGo) {
  const TensorDict steps = MakeSteps(6);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, steps.To(Device::Fake()));
  const int64_t copies = fake_->Count(FakeBackend::Operation::kCopy);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, there.Gather({5, 0, 3}));
  EXPECT_EQ(batch.Find("action")->device(), Device::Fake());
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kGatherRows), 1);
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kCopy), copies);
  EXPECT_THAT(batch, BitEqualTo(*steps.Gather({5, 0, 3})));
  const int64_t allocations = fake_->Count(FakeBackend::Operation::kAllocate);
  RILL_ASSERT_OK(there.GatherInto({1, 1, 2}, &batch));
  EXPECT_EQ(fake_->Count(FakeBackend::Operation::kAllocate), allocations);
  EXPECT_THAT(batch, BitEqualTo(*steps.Gather({1, 1, 2})));
}

TEST_F(GatherDeviceTest, RowsAreReadBehindTheWorkOfTheCurrentStream) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor column,
                            Iota<uint8_t>({4}).To(Device::Fake()));
  TensorDict dict({4});
  RILL_ASSERT_OK(dict.Set("step", column));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const StreamScope scope(stream);
  RILL_ASSERT_OK(fake_->Fill(0, column.raw_data(), 7, 4, stream.handle()));
  EXPECT_THAT(dict.Gather({3, 0})->Get("step"),
              IsOkAndHolds(TensorElementsAre<uint8_t>(7, 7)));
}

TEST_F(GatherDeviceTest, LeavesOfSeveralDevicesStayWhereTheyAre) {
  TensorDict mixed = MakeSteps(6);
  for (const auto& [key, index] :
       {std::pair("observation", 0), std::pair("next/done", 1)}) {
    RILL_ASSERT_OK(mixed.Set(key, *mixed.Find(key)->To(Device::Fake(index))));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, mixed.Gather({5, 2}));
  EXPECT_EQ(batch.Find("observation")->device(), Device::Fake(0));
  EXPECT_EQ(batch.Find("next/done")->device(), Device::Fake(1));
  EXPECT_EQ(batch.Find("action")->device(), Device::Cpu());
  EXPECT_THAT(batch, BitEqualTo(*MakeSteps(6).Gather({5, 2})));
}

TEST_F(GatherDeviceTest, StridedDeviceRowsAndFaults) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor there,
                            Iota<int32_t>({3, 4}).To(Device::Fake()));
  TensorDict dict({4});
  RILL_ASSERT_OK(dict.Set("turned", *there.Permute({1, 0})));
  EXPECT_THAT(dict.Gather({3, 0})->Get("turned"),
              IsOkAndHolds(TensorElementsAre<int32_t>(3, 7, 11, 0, 4, 8)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict steps,
                            MakeSteps(3).To(Device::Fake()));
  fake_->FailNext(FakeBackend::Operation::kGatherRows, 1,
                  absl::InternalError("planted"));
  EXPECT_THAT(steps.Gather({1}), IsInternal());
  fake_->Recover();
}

}  // namespace
}  // namespace rill
