// SPDX-License-Identifier: Apache-2.0
// The costs of a captured sample, its refusals, and its state when the device
// fails. The streams of this device run when the test says so.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/sampling/testing/gather_chains.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/composed_sampler.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/mixture_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/samplers/transition_unit.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/rows/row_step.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Operation = FakeBackend::Operation;
using Kind = FakeBackend::Call::Kind;
using Captured = std::unique_ptr<ReplayBuffer::CapturedSample>;

constexpr int64_t kRows = 10;

// A step of a leaf that the steps' own values show: it is added behind them.
std::unique_ptr<BatchTransform> TwiceTheReward() {
  return std::make_unique<OneStep>(RowStep{.scale = {2}}, "next/reward",
                                   "twice");
}

class CapturedSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_ = FakeBackend::Install({}); }
  void TearDown() override {
    captured_.reset();
    buffer_.reset();
    storage_.reset();
    Default().Synchronize().IgnoreError();
    ExpectNothingLeft();
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(fake_->NumStreamsAndEvents(), 0);
    EXPECT_EQ(fake_->NumGraphs(), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kDevice), 0);
    EXPECT_EQ(fake_->NumAllocations(0, MemoryKind::kPinned), 0);
    EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
  }

  // Over ten numbered steps on fake:0.
  void Make(ReplayBuffer::Options options = {}) {
    storage_ =
        *DenseStorage::Create({.capacity = kRows, .device = Device::Fake(0)});
    if (options.storage == nullptr) options.storage = storage_;
    if (options.sampler == nullptr) options.sampler = MakeUniformSampler();
    options.batch_size = 4;
    auto buffer = ReplayBuffer::Create(std::move(options));
    RILL_ASSERT_OK(buffer);
    buffer_ = *std::move(buffer);
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, kRows)));
  }
  // The same with a chain, and captured; two replays are behind it.
  void MakeCaptured() {
    ReplayBuffer::Options options;
    options.transforms.push_back(TwiceTheReward());
    Make(std::move(options));
    RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
    for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(captured_->Replay());
    RILL_ASSERT_OK(Default().Synchronize());
  }

  static Stream Default() { return *Stream::Default(Device::Fake(0)); }
  // Waits, for the error of the batch's work too.
  absl::Status ReplayAndWait() {
    std::shared_ptr<const Event> end;
    RILL_RETURN_IF_ERROR(captured_->Replay(&end));
    return end->Synchronize();
  }
  static void ExpectSteps(const TensorDict& batch) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host, batch.To(Device::Cpu()));
    ExpectWholeSteps(host, kRows);
  }

  FakeBackend* fake_ = nullptr;
  std::shared_ptr<Storage> storage_;
  std::unique_ptr<ReplayBuffer> buffer_;
  Captured captured_;
};

TEST_F(CapturedSamplesTest, AReplayIsOneLaunchBehindOneUploadAndNothingElse) {
  const NStepReturns::Options three = {.num_steps = 3};
  const std::function<std::unique_ptr<Sampler>()> samplers[] = {
      [] { return MakeUniformSampler(); },
      [] {
        const StackFrames::Options frames = {.num_frames = 3,
                                             .keys = {"observation"},
                                             .dim = -2,
                                             .new_dim = true};
        return *MakeUniformSamplerOver(*MakeTransitions({.frames = frames}));
      },
      [three] {
        return *MakeUniformSamplerOver(*MakeTransitions({.n_step = three}));
      },
      [] { return *MakeSliceSampler({.length = 2}); },
      [three] {
        return *MakeUniformSamplerOver(
            *MakeSlices({.slices = {.length = 2}, .n_step = three}));
      },
      [three] {
        return *MakeUniformSamplerOver(*MakeSequences(
            {.sequences = {.length = 1, .burn_in = 1}, .n_step = three}));
      }};
  const auto counts = [&] {
    std::vector<int64_t> counts;
    for (const Operation operation :
         {Operation::kLaunch, Operation::kLaunchGraph, Operation::kGatherRows,
          Operation::kAllocate, Operation::kCreateStream}) {
      counts.push_back(fake_->Count(operation));
    }
    return counts;
  };
  for (const auto& sampler : samplers) {
    ReplayBuffer::Options options;
    options.sampler = sampler();
    // A unit's own leaf is mapped in place.
    options.transforms.push_back(std::make_unique<OneStep>(
        RowStep{.scale = {2}}, "next/reward", "next/reward"));
    Make(std::move(options));
    RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
    // The second finds all memory of the host's numbers made.
    for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(ReplayAndWait());
    for (int i = 0; i < 5; ++i) {
      std::vector<int64_t> want = counts();
      ++want[0];
      ++want[1];
      fake_->StartCalls();
      std::shared_ptr<const Event> end;
      RILL_ASSERT_OK(captured_->Replay(&end));
      for (const FakeBackend::Call& call : fake_->TakeCalls()) {
        EXPECT_EQ(call.kind, Kind::kCompute);
      }
      EXPECT_EQ(counts(), want);
      RILL_ASSERT_OK(end->Synchronize());
    }
    captured_.reset();
    buffer_.reset();
  }
}

TEST_F(CapturedSamplesTest, TensorsStayWhereTheyAre) {
  MakeCaptured();
  std::vector<const void*> places;
  captured_->batch().ForEachLeaf(
      [&](auto, const Tensor& leaf) { places.push_back(leaf.raw_data()); });
  EXPECT_EQ(places.size(), 7u);
  RILL_ASSERT_OK(ReplayAndWait());
  std::vector<const void*> after;
  captured_->batch().ForEachLeaf(
      [&](auto, const Tensor& leaf) { after.push_back(leaf.raw_data()); });
  EXPECT_EQ(after, places);
}

// Writes of rows that a replay reads wait for it, and it for them.
TEST_F(CapturedSamplesTest, NoOrderOfWorkTearsABatch) {
  MakeCaptured();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RILL_ASSERT_OK(captured_->Replay());
    const auto step = static_cast<int64_t>(seed * 2);
    RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, 2, kRows + step)));
    fake_->RunAll(seed);
    ExpectSteps(captured_->batch());
  }
}

// Work that the caller's stream has been given reads the batch before.
TEST_F(CapturedSamplesTest, AReplayWaitsForTheCallersWork) {
  MakeCaptured();
  RILL_ASSERT_OK_AND_ASSIGN(const Stream own, Stream::Create(Device::Fake(0)));
  const StreamScope scope(own);
  const Tensor& index = *captured_->batch().Find("index");
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor before, index.To(Device::Cpu()));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor late,
                              Tensor::Zeros(DType::kInt64, {4}));
    RILL_ASSERT_OK(late.CopyFromAsync(index, own));
    RILL_ASSERT_OK(captured_->Replay());
    fake_->RunAll(seed);
    EXPECT_THAT(late.BitEquals(before), IsOkAndHolds(true));
  }
}

TEST_F(CapturedSamplesTest, OtherSamplesGoBesideIt) {
  MakeCaptured();
  for (int i = 0; i < 4; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer_->Sample());
    ExpectSteps(batch);
    RILL_ASSERT_OK(captured_->Replay());
    ExpectSteps(captured_->batch());
  }
}

// Else work of theirs would become part of the graph: all that a stream is
// given behind the begin of a capture does.
TEST_F(CapturedSamplesTest, TheCaptureHasAStreamThatNoOtherSampleUses) {
  ReplayBuffer::Options options;
  options.transforms.push_back(TwiceTheReward());
  Make(std::move(options));
  fake_->StartCalls();
  RILL_ASSERT_OK(buffer_->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
  RILL_ASSERT_OK(captured_->Replay());
  RILL_ASSERT_OK(buffer_->Sample());
  const std::vector<FakeBackend::Call> calls = fake_->TakeCalls();
  const auto is_capture = [](const FakeBackend::Call& call) {
    return call.kind == Kind::kBeginCapture;
  };
  ASSERT_EQ(absl::c_count_if(calls, is_capture), 1);
  const auto begin = absl::c_find_if(calls, is_capture);
  const auto is_there = [&](const FakeBackend::Call& call) {
    return call.stream == begin->stream;
  };
  EXPECT_TRUE(std::none_of(calls.begin(), begin, is_there));
  const auto end = std::find_if_not(begin, calls.end(), is_there);
  EXPECT_GT(end - begin, 1);
  EXPECT_TRUE(std::none_of(end, calls.end(), is_there));
}

TEST_F(CapturedSamplesTest, OtherThreadsSampleBesideTheCapture) {
  ReplayBuffer::Options options;
  options.transforms.push_back(TwiceTheReward());
  Make(std::move(options));
  std::atomic<bool> has_ended = false;
  std::thread other([&] {
    while (!has_ended) {
      const absl::StatusOr<TensorDict> batch = buffer_->Sample();
      RILL_EXPECT_OK(batch);
      if (batch.ok()) ExpectSteps(*batch);
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto captured = buffer_->CaptureSample();
    RILL_EXPECT_OK(captured);
    if (!captured.ok()) break;
    RILL_EXPECT_OK((*captured)->Replay());
    ExpectSteps((*captured)->batch());
  }
  has_ended = true;
  other.join();
}

TEST_F(CapturedSamplesTest, WhatNoGraphCanHoldIsNamedAndTheBufferWorksOn) {
  using Options = ReplayBuffer::Options;
  const std::pair<const char*, std::function<void(Options*)>> refused[] = {
      {"want a DenseStorage with rows on a device",
       [](Options* options) { options->storage = MakeStorage(kRows); }},
      {"fake:0 that shows no tables",
       [](Options* options) {
         options->storage = *TieredStorage::Create(
             {.below = *DenseStorage::Create({.capacity = kRows}),
              .fast_capacity = 4,
              .device = Device::Fake(0)});
       }},
      {"Options::device: got fake:1 for rows on fake:0",
       [](Options* options) { options->device = Device::Fake(1); }},
      {"Options::prefetch: got 2",
       [](Options* options) { options->prefetch = 2; }},
      {"got SliceSampler over a unit",
       [](Options* options) {
         options->sampler =
             *MakeSliceSampler({.length = 2, .is_strict = false});
       }},
      {"over a unit",
       [](Options* options) {
         options->sampler = *MakeUniformSamplerOver(*MakeSequences(
             {.sequences = {.length = 2, .end = SequenceEnd::kStop}}));
       }},
      {"got SamplerWithoutReplacement, some of whose batches have fewer draws",
       [](Options* options) {
         options->sampler = MakeSamplerWithoutReplacement();
       }},
      {"set drop_last",
       [](Options* options) { options->sampler = *MakeConsumingSampler(); }},
      {"got Mixed, some of whose batches",
       [](Options* options) {
         std::vector<MixturePart> parts(2);
         parts[0] = {.selector = MakeUniformSelector(), .share = 1};
         parts[1] = {.selector = MakeWithoutReplacementSelector(), .share = 1};
         options->sampler = *MakeSampler(*MakeMixtureSelector(std::move(parts)),
                                         MakeTransitionUnit(), "Mixed");
       }},
      {"transforms: got [OneStep, FunctionTransform], which are no part",
       [](Options* options) {
         options->transforms.push_back(TwiceTheReward());
         options->transforms.push_back(Nothing());
       }},
  };
  for (const auto& [want, change] : refused) {
    Options options;
    change(&options);
    Make(std::move(options));
    EXPECT_THAT(buffer_->CaptureSample().status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("CaptureSample"), HasSubstr(want))));
    RILL_EXPECT_OK(buffer_->Sample()) << want;
    buffer_.reset();
  }
}

TEST_F(CapturedSamplesTest, WithoutRowsItSaysSoAndTriesAgain) {
  MakeCaptured();
  RILL_ASSERT_OK(buffer_->Clear());
  EXPECT_THAT(captured_->Replay(), IsFailedPrecondition());
  EXPECT_THAT(buffer_->CaptureSample().status(), IsFailedPrecondition());
  RILL_ASSERT_OK(buffer_->Extend(NumberedSteps(1, kRows)));
  RILL_ASSERT_OK(captured_->Replay());
  ExpectSteps(captured_->batch());
}

TEST_F(CapturedSamplesTest, OtherTransformsOrRowsWantAnotherCapture) {
  MakeCaptured();
  RILL_ASSERT_OK(buffer_->AppendTransform(std::make_unique<OneStep>(
      RowStep{.scale = {3}}, "next/reward", "thrice")));
  EXPECT_THAT(captured_->Replay(),
              IsFailedPrecondition("capture the sample again"));
  RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
  RILL_ASSERT_OK(ReplayAndWait());
  EXPECT_NE(captured_->batch().Find("thrice"), nullptr);
  // The rows of a save lie in a table of their own.
  const std::string saved = ::testing::TempDir() + "/captured_samples";
  RILL_ASSERT_OK(storage_->Save(saved));
  RILL_ASSERT_OK(storage_->Load(saved));
  EXPECT_THAT(captured_->Replay(), IsFailedPrecondition("capture it again"));
  RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK(captured_->Replay());
    ExpectSteps(captured_->batch());
  }
}

// Rows in turn, with a shorter batch at an epoch's end, which its traits deny.
class ShortWithoutSayingSo final : public Sampler {
 public:
  ShortWithoutSayingSo() : Sampler({.name = "ShortWithoutSayingSo"}) {}
  absl::Status Plan(const Request& request, SamplePlan* plan) override {
    return right_->Plan(request, plan);
  }
  void FindCurrent(absl::Span<const Draw> draws,
                   absl::Span<uint8_t> is_current) const override {
    right_->FindCurrent(draws, is_current);
  }
  void GetGenerations(absl::Span<const Slot> slots,
                      absl::Span<int64_t> generations) const override {
    right_->GetGenerations(slots, generations);
  }
  absl::StatusOr<std::string> SaveState() const override {
    return right_->SaveState();
  }
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    right_->OnAttach(lanes, cursors);
  }
  void OnRetire(const WriteEvent& event) override { right_->OnRetire(event); }
  void OnWrite(const WriteEvent& event) override { right_->OnWrite(event); }
  void OnClear() override { right_->OnClear(); }

 private:
  absl::Status DoLoadState(absl::string_view state,
                           const LoadOptions& options) override {
    return right_->LoadState(state, options);
  }
  const std::unique_ptr<Sampler> right_ =
      MakeSamplerWithoutReplacement({.shuffle = false});
};

TEST_F(CapturedSamplesTest, AShorterBatchIsRefused) {
  Make({.sampler = std::make_unique<ShortWithoutSayingSo>()});
  RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
  RILL_ASSERT_OK(ReplayAndWait());
  // Ten rows: two are left of the epoch.
  EXPECT_THAT(captured_->Replay(),
              IsFailedPrecondition("got 2 draws in batch 2, want 4"));
  RILL_ASSERT_OK(ReplayAndWait());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host,
                            captured_->batch().To(Device::Cpu()));
  ExpectWholeSteps(host, kRows);
  EXPECT_EQ(host.Find("index")->data<int64_t>()[0], 0);
}

TEST_F(CapturedSamplesTest, EpochsOfWholeBatchesAreCaptured) {
  Make({.sampler = MakeSamplerWithoutReplacement(
            {.shuffle = false, .drop_last = true})});
  RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
  // Two of the ten rows are passed over, and the next epoch begins.
  for (const int64_t first : {4, 0, 4}) {
    RILL_ASSERT_OK(ReplayAndWait());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host,
                              captured_->batch().To(Device::Cpu()));
    EXPECT_EQ(host.Find("index")->data<int64_t>()[0], first);
  }
}

// Each call of the backend in turn, of the capture and of replays behind it.
TEST_F(CapturedSamplesTest, ACallThatFailsCostsItsBatchAlone) {
  const absl::Status failure = absl::UnavailableError("off the bus");
  int64_t failures = 0;
  for (int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    ReplayBuffer::Options options;
    options.transforms.push_back(TwiceTheReward());
    Make(std::move(options));
    fake_->RunAll();
    fake_->FailCall(nth, failure);
    const absl::Status status = [&]() -> absl::Status {
      RILL_ASSIGN_OR_RETURN(captured_, buffer_->CaptureSample());
      for (int i = 0; i < 3; ++i) RILL_RETURN_IF_ERROR(ReplayAndWait());
      return absl::OkStatus();
    }();
    const bool has_failed = fake_->Recover();
    failures += has_failed && !status.ok();
    if (!status.ok()) {
      EXPECT_THAT(status, IsUnavailable());
    }
    Default().Synchronize().IgnoreError();
    // The sample goes on, and so does the buffer.
    if (captured_ != nullptr) {
      RILL_ASSERT_OK(captured_->Replay());
      ExpectSteps(captured_->batch());
    }
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer_->Sample());
    ExpectSteps(batch);
    batch = TensorDict();
    captured_.reset();
    buffer_.reset();
    storage_.reset();
    ExpectNothingLeft();
    if (HasFailure() || !has_failed) break;
  }
  EXPECT_GT(failures, 30);
}

// Its results between kernels are those of the next attempt, which makes none.
TEST_F(CapturedSamplesTest, ACaptureThatFailsIsTriedAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict rows,
      RowSpec().Random({kRows}, Rng(1, RngStream::kUser), 0));
  const absl::Status failure = absl::UnavailableError("off the bus");
  int64_t failures = 0;
  for (int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    ReplayBuffer::Options options;
    options.storage = storage_ =
        *DenseStorage::Create({.capacity = kRows, .device = Device::Fake(0)});
    options.sampler = MakeUniformSampler();
    options.transforms.push_back(*ToTensorImage::Create({}));
    options.transforms.push_back(*Resize::Create({.w = 5, .h = 6}));
    options.batch_size = 4;
    RILL_ASSERT_OK_AND_ASSIGN(buffer_,
                              ReplayBuffer::Create(std::move(options)));
    RILL_ASSERT_OK(buffer_->Extend(rows));
    RILL_ASSERT_OK_AND_ASSIGN(captured_, buffer_->CaptureSample());
    fake_->FailCall(nth, failure);
    fake_->StartCalls();
    const absl::Status status = captured_->Replay();
    const bool has_begun =
        absl::c_any_of(fake_->TakeCalls(), [](const FakeBackend::Call& call) {
          return call.kind == Kind::kBeginCapture;
        });
    const bool has_failed = fake_->Recover();
    if (has_begun && fake_->NumGraphs() == 0) {
      EXPECT_THAT(status, IsUnavailable());
      ++failures;
    }
    RILL_ASSERT_OK(ReplayAndWait());
    EXPECT_EQ(fake_->NumGraphs(), 1);
    captured_.reset();
    buffer_.reset();
    if (HasFailure() || !has_failed) break;
  }
  EXPECT_GT(failures, 2);
}

TEST_F(CapturedSamplesTest, WorkThatFailsIsTheErrorOfItsBatch) {
  MakeCaptured();
  for (const Operation operation :
       {Operation::kLaunch, Operation::kLaunchGraph}) {
    fake_->FailNext(operation, 1, absl::DataLossError("no work"));
    EXPECT_THAT(ReplayAndWait(), IsDataLoss("no work"));
    fake_->Recover();
    RILL_ASSERT_OK(ReplayAndWait());
    ExpectSteps(captured_->batch());
  }
}

// The graph may be under way when its sample goes.
TEST_F(CapturedSamplesTest, ASampleThatGoesWaitsForItsWork) {
  MakeCaptured();
  RILL_ASSERT_OK(captured_->Replay());
  captured_.reset();
  EXPECT_EQ(fake_->NumGraphs(), 0);
  RILL_ASSERT_OK(Default().Synchronize());
  EXPECT_THAT(fake_->TakeMisuse(), IsEmpty());
}

}  // namespace
}  // namespace rill
