// SPDX-License-Identifier: Apache-2.0
// Prioritized samplers whose priorities lie on a device, beside those of the
// host.
#include "rill/samplers/prioritized/device_selector.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/samplers/conformance/plan_checks.h"
#include "rill/samplers/conformance/sampler_conformance.h"
#include "rill/samplers/conformance/storage_simulator.h"
#include "rill/samplers/prioritized/priority_updater.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/trajectories/trajectory_history.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/units/sequence_unit.h"
#include "rill/samplers/units/slice_unit.h"
#include "rill/samplers/units/window_unit.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

std::unique_ptr<Sampler> OnFake(PrioritizedOptions options) {
  options.device = Device::Fake();
  return *MakePrioritizedSampler(options);
}
std::unique_ptr<Sampler> PairsOnFake() {
  return *MakePrioritizedSamplerOver(*MakeSliceUnit({.length = 2}),
                                     {.device = Device::Fake()});
}

}  // namespace

INSTANTIATE_SAMPLER_CONFORMANCE(PrioritizedOnDevice,
                                {.make = [] { return OnFake({}); }});
INSTANTIATE_SAMPLER_CONFORMANCE(StratifiedOnDevice, {.make = [] {
                                  return OnFake(
                                      {.epsilon = 0, .stratified = true});
                                }});
INSTANTIATE_SAMPLER_CONFORMANCE(SlicesOnDevice,
                                {.make = PairsOnFake,
                                 .plans = {.rows_per_item = 2,
                                           .may_find_nothing = true}});

namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Call = FakeBackend::Call;
using Operation = FakeBackend::Operation;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kSeed = 11;

// Draws and new priorities for them, in the memory of the fake device.
class OnDevice {
 public:
  OnDevice(absl::Span<const Draw> draws, absl::Span<const float> priorities)
      : count_(static_cast<int64_t>(draws.size())) {
    std::vector<int64_t> slots, generations;
    for (const Draw& draw : draws) {
      slots.push_back(draw.slot);
      generations.push_back(draw.generation);
    }
    Put<int64_t>(slots);
    Put<int64_t>(generations);
    Put<float>(priorities);
  }
  PriorityUpdater::Rows rows() const {
    return {.slots = At<int64_t>(0),
            .generations = At<int64_t>(1),
            .priorities = At<float>(2),
            .count = count_};
  }

 private:
  template <typename T>
  void Put(absl::Span<const T> values) {
    const auto bytes = static_cast<int64_t>(sizeof(T) * values.size());
    buffers_.push_back(
        *Buffer::Allocate(bytes + 1, Device::Fake(), MemoryKind::kDevice));
    if (bytes == 0) return;
    RILL_EXPECT_OK(CopyBlocking(buffers_.back()->data(), values.data(), bytes,
                                Device::Fake()));
  }
  template <typename T>
  const T* At(size_t i) const {
    return reinterpret_cast<const T*>(buffers_[i]->data());
  }

  const int64_t count_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
};

absl::Status UpdateOnDevice(const Sampler& sampler,
                            absl::Span<const Draw> draws,
                            absl::Span<const float> priorities,
                            const Stream& stream) {
  auto values = std::make_shared<const OnDevice>(draws, priorities);
  return sampler.traits().priority_updater->Update(values->rows(), values,
                                                   stream);
}

// --- The host's draws and states ---------------------------------------------

using MakeUnit = SampleUnit (*)();

// Hands the events of a model to a sampler of the host and one of the device.
// It adds what the model does not have: priorities, and other rows in place.
class Pair final : public WriteObserver {
 public:
  Pair(MakeUnit make_unit, const PrioritizedOptions& options, uint64_t seed)
      : make_unit_(make_unit), options_(options), rng_(seed) {
    Make();
  }

  void Make() {
    host = MakeOn(Device::Cpu(), &host_selector);
    device = MakeOn(Device::Fake(), &device_selector);
  }

  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    for (Sampler* sampler : {host.get(), device.get()}) {
      sampler->observer()->OnAttach(lanes, cursors);
    }
  }
  void OnRetire(const WriteEvent& event) override {
    const WriteEvent told = Told(event);
    host->observer()->OnRetire(told);
    device->observer()->OnRetire(told);
  }
  void OnWrite(const WriteEvent& event) override {
    WriteEvent told = Told(event);
    std::vector<double> priorities;
    const uint64_t number = ++writes_;
    if (rng_.UniformInt(number, 0, 2) == 0) {
      for (const SlotRange& range : event.written) {
        for (int64_t i = 0; i < range.count; ++i) {
          const auto draw = static_cast<uint32_t>(priorities.size());
          const int64_t kind = rng_.UniformInt(number, 1 + 2 * draw, 12);
          priorities.push_back(
              kind == 0   ? kNan
              : kind == 1 ? -1
              : kind == 2 ? 0
              : kind == 3 ? 1e300
                          : 4 * rng_.UniformDouble(number, 2 + 2 * draw));
        }
      }
      told.priorities = priorities;
    }
    host->observer()->OnWrite(told);
    device->observer()->OnWrite(told);
  }
  void OnClear() override {
    host->observer()->OnClear();
    device->observer()->OnClear();
  }

  std::unique_ptr<Sampler> host, device;
  PrioritizedSelector *host_selector = nullptr, *device_selector = nullptr;

 private:
  std::unique_ptr<Sampler> MakeOn(Device device,
                                  PrioritizedSelector** selector) const {
    PrioritizedOptions options = options_;
    options.device = device;
    return *MakePrioritizedSamplerOver(make_unit_(), options, selector);
  }
  static WriteEvent Told(const WriteEvent& event) {
    WriteEvent told = event;
    const bool in_place = !event.is_append && !event.written.empty();
    told.is_replacement = in_place && event.written.front().first % 3 == 0;
    told.is_patch = in_place && event.written.front().first % 3 == 1;
    return told;
  }

  const MakeUnit make_unit_;
  const PrioritizedOptions options_;
  const Rng rng_;
  uint64_t writes_ = 0;
};

struct Param {
  const char* name;
  MakeUnit make_unit;
  PrioritizedOptions options;
};
class DeviceSelectorModelTest : public ::testing::TestWithParam<Param> {
 protected:
  // Plans of both, and new priorities for the draws.
  void PlanAndUpdate(Pair& pair, uint64_t number, const Rng& rng) {
    const Sampler::Request request = {
        .batch_size = 12, .seed = kSeed, .batch_number = number};
    SamplePlan want, got;
    const absl::Status status = pair.host->Plan(request, &want);
    EXPECT_EQ(pair.device->Plan(request, &got), status);
    ExpectEqualPlans(want, got);
    old_.insert(old_.end(), want.draws.begin(), want.draws.end());
    if (old_.size() > 40) old_.erase(old_.begin(), old_.end() - 40);
    std::vector<float> priorities;
    for (size_t i = 0; i < old_.size(); ++i) {
      const auto draw = static_cast<uint32_t>(2 * i);
      priorities.push_back(rng.UniformInt(number, 50 + draw, 6) == 0
                               ? 0
                               : 3 * rng.UniformFloat(number, 51 + draw));
    }
    RILL_ASSERT_OK(pair.host->UpdatePriorities(old_, priorities));
    if (rng.UniformInt(number, 20, 3) == 0) {
      RILL_ASSERT_OK(pair.device->UpdatePriorities(old_, priorities));
    } else {
      RILL_ASSERT_OK(UpdateOnDevice(*pair.device, old_, priorities, stream_));
    }
  }

  const Stream stream_ = *Stream::Create(Device::Fake());
  std::vector<Draw> old_;  // Some of them stale by now.
};

SampleUnit Slices() { return *MakeSliceUnit({.length = 3}); }
SampleUnit Sequences() {
  return *MakeSequenceUnit({.length = 3, .burn_in = 1, .period = 2});
}
SampleUnit Windows() { return *MakeWindowUnit({.frames = 2, .steps = 2}); }
SampleUnit Rows() { return MakeTransitionUnit(); }

INSTANTIATE_TEST_SUITE_P(
    UnitsAndRules, DeviceSelectorModelTest,
    ::testing::Values(Param{"Rows", &Rows, {}},
                      Param{
                          "MaxEver",
                          &Rows,
                          {.epsilon = 0, .new_rows = NewRowPriority::kMaxEver}},
                      Param{"Constant",
                            &Rows,
                            {.new_rows = NewRowPriority::kConstant,
                             .new_row_priority = 0.5f,
                             .stratified = true}},
                      Param{"Slices", &Slices, {}},
                      Param{"Sequences", &Sequences, {}},
                      Param{"Windows", &Windows, {}}),
    [](const auto& info) { return info.param.name; });

TEST_P(DeviceSelectorModelTest, IsTheHostsOverRandomHistories) {
  for (uint64_t number = 0; number < 8; ++number) {
    SCOPED_TRACE(number);
    const Rng rng(number);
    TrajectoryHistory history(number, /*max_capacity=*/24);
    Pair pair(GetParam().make_unit, GetParam().options, number);
    history.model().AddObserver(&pair);
    for (uint32_t step = 0; step < 100; ++step) {
      history.Step();
      const int64_t what = rng.UniformInt(step, 0, 16);
      if (what < 8) {
        ASSERT_NO_FATAL_FAILURE(PlanAndUpdate(pair, step, rng));
      } else if (what == 8) {
        const double alpha = rng.UniformDouble(step, 1);
        RILL_ASSERT_OK(pair.host_selector->SetAlpha(alpha));
        RILL_ASSERT_OK(pair.device_selector->SetAlpha(alpha));
        RILL_ASSERT_OK(pair.host_selector->SetBeta(1 - alpha));
        RILL_ASSERT_OK(pair.device_selector->SetBeta(1 - alpha));
      } else if (what == 9) {
        ASSERT_EQ(pair.device_selector->Priorities(),
                  pair.host_selector->Priorities());
        ASSERT_EQ(pair.device_selector->DefaultPriority(),
                  pair.host_selector->DefaultPriority());
      } else if (what == 10) {
        // Each goes on with the state of the other.
        history.model().FinishAll();
        RILL_ASSERT_OK_AND_ASSIGN(const std::string state,
                                  pair.host->SaveState());
        RILL_ASSERT_OK_AND_ASSIGN(const std::string on_device,
                                  pair.device->SaveState());
        ASSERT_EQ(on_device, state);
        pair.Make();
        history.model().Attach(&pair);
        RILL_ASSERT_OK(pair.host->LoadState(on_device));
        RILL_ASSERT_OK(pair.device->LoadState(state));
      }
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
}

// --- One sampler of one lane -------------------------------------------------

class DeviceSelectorTest : public ::testing::Test {
 protected:
  void Make(int64_t capacity, PrioritizedOptions options = {}) {
    options.device = Device::Fake();
    sampler_ = *MakePrioritizedSampler(options, &selector_);
    storage_.emplace(Lanes{.count = 1, .capacity = capacity});
    storage_->AddObserver(sampler_->observer());
  }
  ~DeviceSelectorTest() override {
    sampler_.reset();
    EXPECT_THAT(fake_->TakeMisuse(), ::testing::IsEmpty());
  }

  FakeBackend* const fake_ = FakeBackend::Install({});
  PrioritizedSelector* selector_ = nullptr;
  std::unique_ptr<Sampler> sampler_;
  std::optional<StorageSimulator> storage_;
};

TEST_F(DeviceSelectorTest, RefusedPrioritiesAreCountedAndTheirRowsKeepTheirs) {
  Make(4);
  const Stream stream = *Stream::Create(Device::Fake());
  storage_->Append(3);
  RILL_ASSERT_OK(
      UpdateOnDevice(*sampler_, {{.slot = 0}, {.slot = 2}}, {kNan, 5}, stream));
  EXPECT_THAT(selector_->Priorities(), ElementsAre(1, 1, 5, 0));
  RILL_ASSERT_OK_AND_ASSIGN(const auto refused, selector_->RefusedPriorities());
  EXPECT_EQ(refused.count, 1);
  EXPECT_EQ(refused.first_slot, 0);
  EXPECT_NE(refused.first, refused.first);
}

TEST_F(DeviceSelectorTest, WhatADeviceCannotDoIsRefused) {
  EXPECT_THAT(
      MakePrioritizedSampler(
          {.new_rows = NewRowPriority::kMaxInBuffer, .device = Device::Fake()}),
      IsInvalidArgument("new_rows: got kMaxInBuffer with priorities on"));
  EXPECT_THAT(MakePrioritizedSampler({.device = Device::Cuda()}),
              IsFailedPrecondition());
}

TEST_F(DeviceSelectorTest, ASampleAndAnUpdateCostOneLaunchEach) {
  Make(100'000);
  constexpr int64_t kCount = 1024;
  const Stream learner = *Stream::Create(Device::Fake());
  std::vector<float> errors(kCount, 2.0f);
  SamplePlan plan;
  std::unique_ptr<const OnDevice> values;
  const auto sample = [&](uint64_t number) {
    RILL_ASSERT_OK(sampler_->Plan(
        {.batch_size = kCount, .seed = kSeed, .batch_number = number}, &plan));
  };
  storage_->Append(100'000);
  sample(0);
  values = std::make_unique<const OnDevice>(plan.draws, errors);
  const int64_t allocations = fake_->Count(Operation::kAllocate);
  const auto launches = [&] { return fake_->Count(Operation::kLaunch); };
  int64_t before = launches();

  fake_->StartCalls();
  RILL_ASSERT_OK(sampler_->traits().priority_updater->Update(values->rows(),
                                                             nullptr, learner));
  EXPECT_EQ(launches() - before, 1);
  for (const Call& call : fake_->TakeCalls()) {
    EXPECT_EQ(call.kind, Call::Kind::kCompute) << "no wait, no copy";
  }

  // Slots and weights are written to the host: no copy, one wait.
  before = launches();
  fake_->StartCalls();
  sample(1);
  EXPECT_EQ(launches() - before, 1);
  int waits = 0;
  for (const Call& call : fake_->TakeCalls()) {
    EXPECT_NE(call.kind, Call::Kind::kCopy);
    waits += call.kind == Call::Kind::kSynchronizeStream ? 1 : 0;
  }
  EXPECT_EQ(waits, 1);

  // A step over old rows: one copy of 24 bytes a row and one launch, when the
  // next sample wants them.
  before = launches();
  fake_->StartCalls();
  storage_->Append(64);
  EXPECT_EQ(launches() - before, 0);
  sample(2);
  EXPECT_EQ(launches() - before, 2);
  int64_t bytes = 0;
  for (const Call& call : fake_->TakeCalls()) bytes += call.bytes;
  EXPECT_EQ(bytes, 64 * 24);
  EXPECT_EQ(fake_->Count(Operation::kAllocate), allocations);
}

TEST_F(DeviceSelectorTest, ManyChangesAreLaunchedWithoutASample) {
  Make(20'000);
  const int64_t before = fake_->Count(Operation::kLaunch);
  for (int i = 0; i < 20; ++i) storage_->Append(1000);
  EXPECT_GT(fake_->Count(Operation::kLaunch), before);
  EXPECT_THAT(selector_->Priorities(), Each(1));
}

// Priorities of the host go step after step then, and generations too.
TEST(DeviceSelectorLanesTest, StepsOfManyLanes) {
  constexpr int64_t kLanes = 1100;
  PrioritizedSelector *host_selector, *selector;
  const auto host = *MakePrioritizedSampler({}, &host_selector);
  const auto device =
      *MakePrioritizedSampler({.device = Device::Fake()}, &selector);
  const Stream stream = *Stream::Create(Device::Fake());
  StorageSimulator storage({.count = kLanes, .capacity = 3});
  storage.AddObserver(host->observer());
  storage.AddObserver(device->observer());
  SamplePlan stale;
  for (uint64_t step = 0; step < 8; ++step) {
    const bool is_part = step % 3 == 2;
    storage.Append(is_part ? 100 : 0, is_part ? 700 : kLanes, 1);
    const SamplePlan plan = PlanOf(*host, 300, kSeed, step);
    ASSERT_EQ(PlanOf(*device, 300, kSeed, step).draws, plan.draws);
    for (const SamplePlan& rows : {plan, stale}) {
      const std::vector<float> priorities = PrioritiesFor(rows, step);
      RILL_ASSERT_OK(host->UpdatePriorities(rows.draws, priorities));
      RILL_ASSERT_OK(UpdateOnDevice(*device, rows.draws, priorities, stream));
    }
    if (step % 2 == 0) stale = plan;
    ASSERT_EQ(selector->Priorities(), host_selector->Priorities());
  }
}

// --- Errors of the device ----------------------------------------------------

TEST_F(DeviceSelectorTest, AQueueThatIsFullIsGivenUpWithTheError) {
  Make(10'000);
  storage_->Append(5000);
  fake_->FailNext(Operation::kAllocate, 1,
                  absl::ResourceExhaustedError("planted"));
  storage_->Append(1);
  SamplePlan plan;
  const Sampler::Request request = {.batch_size = 4, .seed = kSeed};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(sampler_->Plan(request, &plan), IsResourceExhausted());
    EXPECT_THAT(sampler_->SaveState(), IsResourceExhausted());
  }
  storage_->AttachAgain();
  RILL_ASSERT_OK(sampler_->Plan(request, &plan));
}

TEST_F(DeviceSelectorTest, ADrawThatFailsLosesNothing) {
  Make(8);
  storage_->Append(8);
  SamplePlan plan = SentinelPlan();
  const Sampler::Request request = {.batch_size = 4, .seed = kSeed};
  fake_->FailNext(Operation::kAllocate, 1,
                  absl::ResourceExhaustedError("planted"));
  EXPECT_THAT(sampler_->Plan(request, &plan), IsResourceExhausted());
  ExpectEqualPlans(plan, SentinelPlan());
  RILL_ASSERT_OK(sampler_->Plan(request, &plan));
  fake_->FailNext(Operation::kLaunch, 1, absl::InternalError("planted"));
  EXPECT_THAT(sampler_->Plan(request, &plan), IsInternal("planted"));
  fake_->Recover();
  RILL_ASSERT_OK(sampler_->Plan(request, &plan));
  auto twin = *MakePrioritizedSampler();
  storage_->AddObserver(twin->observer());
  SamplePlan want;
  RILL_ASSERT_OK(twin->Plan(request, &want));
  EXPECT_EQ(plan.draws, want.draws);
}

TEST_F(DeviceSelectorTest, LostChangesAreSaidUntilTheRowsAreCleared) {
  Make(8);
  storage_->Append(8);
  SamplePlan plan;
  const Sampler::Request request = {.batch_size = 4, .seed = kSeed};
  RILL_ASSERT_OK(sampler_->Plan(request, &plan));
  storage_->Append(2);
  fake_->FailNext(Operation::kCopy, 1, absl::InternalError("planted"));
  EXPECT_THAT(sampler_->Plan(request, &plan), IsInternal("planted"));
  fake_->Recover();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(sampler_->Plan(request, &plan),
                IsDataLoss("has lost the others"));
    EXPECT_THAT(sampler_->SaveState(), IsDataLoss());
  }
  storage_->AttachAgain();
  RILL_ASSERT_OK(sampler_->Plan(request, &plan));
  RILL_ASSERT_OK(sampler_->SaveState().status());
}

}  // namespace
}  // namespace rill
