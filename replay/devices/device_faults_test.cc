// SPDX-License-Identifier: Apache-2.0
// A device refuses each call of a write, a sample and an update of priorities
// once, has no memory for each allocation once, and fails each operation once.
// There is an error, nothing is lost or leaked, and the buffer goes on.
#include <algorithm>
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
#include "rill/estimators/reward_to_go.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/ensemble/ensemble_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/episodes/random_crop.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/structure/cat_tensors.h"
#include "rill/transforms/structure/sequence_lines.h"
#include "rill/transforms/values/hash.h"
#include "rill/transforms/values/value_clips.h"

namespace rill {
namespace {

using ::testing::IsEmpty;
using Transforms = std::vector<std::unique_ptr<BatchTransform>>;

constexpr int64_t kRows = 8;

struct Form {
  std::string name;
  bool is_tiered = false;
  bool is_ensemble = false;  // Of two members with a lane each.
  bool is_prioritized = false;
  int64_t prefetch = 0;
  bool batches_there = false;     // Writes come from the device.
  bool priorities_there = false;  // They lie on the device.
  // Makes the unit of an item; null: a row.
  std::function<absl::StatusOr<SampleUnit>()> unit = nullptr;
  // Behind the gather, and no part of it.
  std::function<Transforms()> transforms = nullptr;
};

// Maps of leaves and a join.
Transforms OfRows() {
  Transforms chain;
  chain.push_back(*RewardScaling::Create({.scale = 2}));
  chain.push_back(
      *CatTensors::Create({.in_keys = {"observation", "next/reward"},
                           .out_key = "all",
                           .del_keys = false}));
  chain.push_back(*Clip::Create({.in_keys = {"all"}, .low = 3}));
  chain.push_back(*Hash::Create({.in_keys = {"all"}, .out_keys = {"hash"}}));
  return chain;
}
// Those of a sample of slices. The crop has a state.
Transforms OfLines() {
  Transforms chain;
  chain.push_back(*SequenceLines::Create({.length = 2}));
  chain.push_back(*DensifyReward::Create({.reward_key_out = "to_go"}));
  chain.push_back(*RandomCropTensorDict::Create({.sub_seq_len = 1}));
  return chain;
}

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
    {.name = "DenseTransforms", .transforms = OfRows},
    {.name = "DenseSlicesTransformsPrefetched",
     .prefetch = 2,
     .unit = [] { return MakeSlices({.slices = {.length = 2}}); },
     .transforms = OfLines},
    {.name = "Ensemble", .is_ensemble = true},
    {.name = "EnsembleFromDevice", .is_ensemble = true, .batches_there = true},
    {.name = "EnsemblePrioritizedTransformsPrefetched",
     .is_ensemble = true,
     .is_prioritized = true,
     .prefetch = 2,
     .batches_there = true,
     .transforms = OfRows},
    {.name = "EnsembleSlicesTransforms",
     .is_ensemble = true,
     .unit = [] { return MakeSlices({.slices = {.length = 2}}); },
     .transforms = OfLines},
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
  if (host.Find("all") == nullptr) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const auto all, host.Flat<float>("all"));
  RILL_ASSIGN_OR_RETURN(const auto rewards, host.Flat<float>("next/reward"));
  for (size_t i = 0; i < actions.size(); ++i) {
    const auto number = static_cast<float>(actions[i]);
    EXPECT_EQ(rewards[i], 2 * number);
    EXPECT_EQ(all[4 * i], std::max(2 * number, 3.0f));
    EXPECT_EQ(all[4 * i + 3], std::max(number, 3.0f));
  }
  return absl::OkStatus();
}

class DeviceFaultsTest : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }

  static int64_t lanes() { return GetParam().is_ensemble ? 2 : 1; }
  // As many rows in all lanes.
  static TensorDict StepsOf(int64_t rows, int64_t first) {
    return NumberedSteps(lanes(), rows / lanes(), first);
  }

  // A buffer of kRows of the numbered steps, on the device.
  std::unique_ptr<ReplayBuffer> Make() {
    std::shared_ptr<Storage> storage;
    if (GetParam().is_ensemble) {
      std::vector<std::unique_ptr<Storage>> members;
      for (int64_t i = 0; i < lanes(); ++i) {
        members.push_back(*DenseStorage::Create(
            {.capacity = kRows / lanes(), .device = Device::Fake(0)}));
      }
      storage = *EnsembleStorage::Create(std::move(members));
    } else if (GetParam().is_tiered) {
      storage = *TieredStorage::Create(
          {.below = *DenseStorage::Create({.capacity = kRows}),
           .fast_capacity = kRows / 2,
           .device = Device::Fake(0)});
    } else {
      storage =
          *DenseStorage::Create({.capacity = kRows, .device = Device::Fake(0)});
    }
    SampleUnit unit =
        *(GetParam().unit == nullptr ? MakeTransitions({}) : GetParam().unit());
    const PrioritizedOptions there = {.device = Device::Fake(0)};
    auto sampler =
        GetParam().is_prioritized
            ? *MakePrioritizedSamplerOver(
                  std::move(unit),
                  GetParam().priorities_there ? there : PrioritizedOptions())
            : *MakeUniformSamplerOver(std::move(unit));
    Transforms transforms;
    if (GetParam().transforms != nullptr) transforms = GetParam().transforms();
    auto buffer = *ReplayBuffer::Create({.storage = std::move(storage),
                                         .sampler = std::move(sampler),
                                         .transforms = std::move(transforms),
                                         .batch_size = 4,
                                         .prefetch = GetParam().prefetch});
    RILL_EXPECT_OK(buffer->Extend(StepsOf(kRows, 0)));
    RILL_EXPECT_OK(buffer->Sample());
    fake_->RunAll();
    return buffer;
  }

  // A batch for a write, where it comes from.
  TensorDict Steps(int64_t first) {
    const TensorDict steps = StepsOf(2 * lanes(), first);
    if (!GetParam().batches_there) return steps;
    return *steps.To(Device::Fake(0));
  }

  // Runs `work` on new buffers, with the first call failing, the second, ...
  // until none is left to fail. `plant` plants the nth failure and `has_failed`
  // says whether it came.
  void Sweep(Work work, absl::FunctionRef<void(int64_t)> plant,
             absl::FunctionRef<bool()> has_failed, bool may_need_none = false) {
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
          status = buffer->Extend(StepsOf(lanes(), 50 + i)).status();
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
    EXPECT_GT(errors, GetParam().is_tiered || may_need_none ? -1 : 0);
  }

  // Writes that work replace all rows, and each sample is of whole ones.
  void ExpectGoesOn(ReplayBuffer* buffer) {
    absl::Status status;
    // The failure of a write before may be this one's error, once a member.
    for (int64_t i = 0; i <= lanes(); ++i) {
      status = buffer->Extend(StepsOf(kRows, 100)).status();
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
    {
      SCOPED_TRACE("memory");
      Sweep(
          work,
          [&](int64_t nth) {
            fake_->FailNext(Operation::kAllocate, nth,
                            absl::ResourceExhaustedError("fell off the bus"));
          },
          [&] { return fake_->Recover(); }, /*may_need_none=*/true);
    }
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
            buffer->Extend(StepsOf(lanes(), 50 + i)).status().IgnoreError();
            Default().Synchronize().IgnoreError();
          }
          // Refused, once the batches ahead are made: Recover is for a device
          // whose work nobody is about to wait for.
          EXPECT_FALSE(buffer->AppendTransform(nullptr).ok());
          fake_->RunAll();
          fake_->Recover();
          RILL_EXPECT_OK(Default().Synchronize());
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

// To one member of an ensemble, and to several.
TEST_P(DeviceFaultsTest, AWriteInPlaceThatTheDeviceFails) {
  for (const bool is_wide : {false, true}) {
    SCOPED_TRACE(is_wide);
    SweepAll([&](ReplayBuffer* buffer,
                 const TensorDict& steps) -> absl::Status {
      RILL_ASSIGN_OR_RETURN(
          TensorDict rows, steps.Reshape({steps.batch_shape().num_elements()}));
      RILL_ASSIGN_OR_RETURN(rows, rows.Slice(0, 0, 2));
      return buffer->WriteAt({1, is_wide ? kRows - 1 : 2}, rows);
    });
  }
}

TEST_P(DeviceFaultsTest, ASampleThatTheDeviceFails) {
  SweepAll([](ReplayBuffer* buffer, const TensorDict&) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict batch, buffer->Sample());
    return CheckWhole(batch);
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
      status = buffer->Extend(StepsOf(lanes(), 20)).status();
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
