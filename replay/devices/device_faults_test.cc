// SPDX-License-Identifier: Apache-2.0
// A device refuses each call of a write, a sample and an update of priorities
// once, and fails each operation once. There is an error, nothing is lost or
// leaked, and the buffer goes on.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kRows = 8;

struct Form {
  std::string name;
  bool is_tiered = false;
  bool is_prioritized = false;
  int64_t prefetch = 0;
  bool batches_there = false;     // Writes come from the device.
  bool priorities_there = false;  // They lie on the device.
  // Makes the unit of an item; null: a row.
  std::function<absl::StatusOr<SampleUnit>()> unit = nullptr;
};

const Form kForms[] = {
    {.name = "Dense"},
    {.name = "DenseFromDevice", .batches_there = true},
    {.name = "DensePrefetched", .prefetch = 2},
    {.name = "DensePrioritized", .is_prioritized = true},
    {.name = "DensePrioritiesThere",
     .is_prioritized = true,
     .priorities_there = true},
    {.name = "DenseReturns",
     .is_prioritized = true,
     .batches_there = true,
     .priorities_there = true,
     .unit =
         [] {
           return MakeTransitions(
               {.n_step = NStepReturns::Options{.num_steps = 2}});
         }},
    {.name = "DenseSlices",
     .unit = [] { return MakeSlices({.slices = {.length = 2}}); }},
    {.name = "DenseSequencesPrefetched",
     .is_prioritized = true,
     .prefetch = 2,
     .unit =
         [] {
           return MakeSequences({.sequences = {.length = 1, .burn_in = 1}});
         }},
    {.name = "Tiered", .is_tiered = true},
    {.name = "TieredPrioritizedPrefetched",
     .is_tiered = true,
     .is_prioritized = true,
     .prefetch = 2},
};

// What is to fail; `steps` may be written.
using Work = absl::FunctionRef<absl::Status(ReplayBuffer* buffer,
                                            const TensorDict& steps)>;

// Rows of a sample of NumberedSteps; the host waits for it.
absl::Status CheckWhole(const TensorDict& batch, int64_t from = 0) {
  RILL_ASSIGN_OR_RETURN(const TensorDict host, batch.To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(const auto actions, host.Flat<int64_t>("action"));
  RILL_ASSIGN_OR_RETURN(const auto observations,
                        host.Flat<float>("observation"));
  for (size_t i = 0; i < actions.size(); ++i) {
    EXPECT_GE(actions[i], from);
    EXPECT_EQ(observations[3 * i], static_cast<float>(actions[i]));
  }
  return absl::OkStatus();
}

class DeviceFaultsTest : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }

  // A buffer of rows 0 .. 7 of the numbered steps, on the device.
  std::unique_ptr<ReplayBuffer> Make() {
    std::shared_ptr<Storage> storage;
    if (GetParam().is_tiered) {
      auto below = DenseStorage::Create({.capacity = kRows});
      RILL_EXPECT_OK(below);
      auto tiered = TieredStorage::Create({.below = *std::move(below),
                                           .fast_capacity = kRows / 2,
                                           .device = Device::Fake(0)});
      RILL_EXPECT_OK(tiered);
      storage = *std::move(tiered);
    } else {
      auto dense =
          DenseStorage::Create({.capacity = kRows, .device = Device::Fake(0)});
      RILL_EXPECT_OK(dense);
      storage = *std::move(dense);
    }
    auto unit =
        GetParam().unit == nullptr ? MakeTransitions({}) : GetParam().unit();
    RILL_EXPECT_OK(unit);
    const PrioritizedOptions there = {.device = Device::Fake(0)};
    auto sampler =
        GetParam().is_prioritized
            ? MakePrioritizedSamplerOver(
                  *std::move(unit),
                  GetParam().priorities_there ? there : PrioritizedOptions())
            : MakeUniformSamplerOver(*std::move(unit));
    RILL_EXPECT_OK(sampler);
    auto buffer = ReplayBuffer::Create({.storage = std::move(storage),
                                        .sampler = *std::move(sampler),
                                        .batch_size = 4,
                                        .prefetch = GetParam().prefetch});
    RILL_EXPECT_OK(buffer);
    RILL_EXPECT_OK((*buffer)->Extend(NumberedSteps(1, kRows)));
    RILL_EXPECT_OK((*buffer)->Sample());
    fake_->RunAll();
    return *std::move(buffer);
  }

  // A batch for a write, where it comes from.
  TensorDict Steps(int64_t first) {
    const TensorDict steps = NumberedSteps(1, 2, first);
    if (!GetParam().batches_there) return steps;
    auto there = steps.To(Device::Fake(0));
    RILL_EXPECT_OK(there);
    return *std::move(there);
  }

  // Runs `work` on new buffers, with the first call failing, the second, ...
  // until none is left to fail. `plant` plants the nth failure and `has_failed`
  // says whether it came.
  void Sweep(Work work, absl::FunctionRef<void(int64_t)> plant,
             absl::FunctionRef<bool()> has_failed) {
    int64_t nth = 1;
    int64_t errors = 0;
    for (bool is_left = true; is_left; ++nth) {
      SCOPED_TRACE(absl::StrCat("failure ", nth));
      ASSERT_LT(nth, 500);
      {
        auto buffer = Make();
        const TensorDict steps = Steps(20);
        plant(nth);
        absl::Status status = work(buffer.get(), steps);
        // What comes later is the error of a call behind it.
        for (int i = 0; i < 3 && status.ok(); ++i) {
          fake_->RunAll();
          absl::StatusOr<TensorDict> batch = buffer->Sample();
          status = batch.ok() ? CheckWhole(*batch) : batch.status();
          if (!status.ok()) break;
          status = buffer->Extend(NumberedSteps(1, 1, 50 + i)).status();
        }
        is_left = has_failed();
        if (!status.ok()) {
          ++errors;
          EXPECT_TRUE(absl::StrContains(status.message(), "off the bus"))
              << status;
        }
        Default().Synchronize().IgnoreError();
        fake_->RunAll();
        ExpectGoesOn(buffer.get());
      }
      Default().Synchronize().IgnoreError();
      EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
      EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
      EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
      EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
      if (HasFailure()) return;
    }
    // A tiered storage goes on without its fast tier.
    EXPECT_GT(errors, GetParam().is_tiered ? -1 : 0);
  }

  // Writes that work replace all rows, and each sample is of whole ones.
  void ExpectGoesOn(ReplayBuffer* buffer) {
    absl::Status status;
    // The failure of a write before may be this one's error, once.
    for (int i = 0; i < 2; ++i) {
      status = buffer->Extend(NumberedSteps(1, kRows, 100)).status();
      if (status.ok()) break;
    }
    RILL_ASSERT_OK(status);
    // Samples that were made ahead are of rows before.
    for (int64_t i = 0; i < GetParam().prefetch + 2; ++i) {
      (void)buffer->Sample();
    }
    for (int i = 0; i < 4; ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
      RILL_EXPECT_OK(CheckWhole(batch, /*from=*/100));
    }
  }

  void SweepAll(Work work) {
    const absl::Status failure = absl::UnavailableError("fell off the bus");
    {
      SCOPED_TRACE("calls");
      Sweep(
          work, [&](int64_t nth) { fake_->FailCall(nth, failure); },
          [&] { return fake_->Recover(); });
    }
    using Operation = FakeBackend::Operation;
    for (const auto operation :
         {Operation::kCopy, Operation::kFill, Operation::kGatherRows,
          Operation::kScatterRows, Operation::kLaunch}) {
      SCOPED_TRACE(absl::StrCat("operation ", static_cast<int>(operation)));
      // Those that are carried out until the next few calls.
      for (int64_t nth = 1; nth <= 3; ++nth) {
        SCOPED_TRACE(nth);
        {
          auto buffer = Make();
          const TensorDict steps = Steps(20);
          fake_->RunAll();
          fake_->FailNext(operation, nth, failure);
          work(buffer.get(), steps).IgnoreError();
          for (int i = 0; i < 3; ++i) {
            fake_->RunAll();
            buffer->Extend(NumberedSteps(1, 1, 50 + i)).status().IgnoreError();
            Default().Synchronize().IgnoreError();
          }
          fake_->RunAll();
          fake_->Recover();
          Default().Synchronize().IgnoreError();
          ExpectGoesOn(buffer.get());
        }
        Default().Synchronize().IgnoreError();
        EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
        EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
        EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
      }
    }
  }

  static Stream Default() { return *Stream::Default(Device::Fake(0)); }

  FakeBackend* fake_ = nullptr;
};

TEST_P(DeviceFaultsTest, AWriteThatTheDeviceFails) {
  SweepAll([](ReplayBuffer* buffer, const TensorDict& steps) {
    return buffer->Extend(steps).status();
  });
}

TEST_P(DeviceFaultsTest, ASampleThatTheDeviceFails) {
  SweepAll([](ReplayBuffer* buffer, const TensorDict&) {
    return buffer->Sample().status();
  });
}

TEST_P(DeviceFaultsTest, AnUpdateOfPrioritiesThatTheDeviceFails) {
  if (!GetParam().is_prioritized) return;
  SweepAll([](ReplayBuffer* buffer, const TensorDict&) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, buffer->Sample());
    return buffer->UpdatePriorities(batch, std::vector<float>(4, 1.5f));
  });
}

TEST_P(DeviceFaultsTest, ALostDeviceIsAnErrorOfEachCallAndNothingLeaks) {
  for (int64_t nth = 1; nth < 40; nth += 3) {
    SCOPED_TRACE(nth);
    auto buffer = Make();
    fake_->FailCall(nth, absl::UnavailableError("lost"), /*is_lost=*/true);
    absl::Status status;
    for (int i = 0; i < 10; ++i) {
      status = buffer->Extend(NumberedSteps(1, 1, 20)).status();
      status.Update(buffer->Sample().status());
    }
    if (!GetParam().is_tiered) {
      EXPECT_FALSE(status.ok());
    }
    buffer.reset();
    fake_->Recover();
    fake_->RunAll();
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, DeviceFaultsTest, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rill
