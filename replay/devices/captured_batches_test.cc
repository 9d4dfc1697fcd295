// SPDX-License-Identifier: Apache-2.0
// Batches of a captured sample, which are those that Sample gives.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/sample_units.h"
#include "rill/replay/sampling/testing/gather_chains.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/sample_unit.h"
#include "rill/samplers/sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/images/resize.h"
#include "rill/transforms/images/to_tensor_image.h"
#include "rill/transforms/rows/row_step.h"
#include "rill/transforms/structure/dtype_cast.h"

namespace rill {
namespace {

using MakeSampler = std::function<absl::StatusOr<std::unique_ptr<Sampler>>()>;
using MakeChain = std::function<Transforms()>;

constexpr int64_t kBatch = 130;

absl::StatusOr<std::unique_ptr<Sampler>> Uniform() {
  return MakeUniformSampler();
}

// Trajectories of 9 steps in the mean.
TensorDict Rows(int64_t steps, uint64_t seed) {
  const Rng rng(seed, RngStream::kUser);
  auto rows = RowSpec().Random({2, steps}, rng, 0);
  RILL_EXPECT_OK(rows);
  bool* const done = rows->Find("next/done")->data<bool>();
  bool* const truncated = rows->Find("next/truncated")->data<bool>();
  bool* const terminated = rows->Find("next/terminated")->data<bool>();
  for (int64_t i = 0; i < 2 * steps; ++i) {
    done[i] = rng.UniformInt(1, static_cast<uint32_t>(i), 9) == 0;
    truncated[i] = truncated[i] && done[i];
    terminated[i] = terminated[i] && done[i];
  }
  return *std::move(rows);
}

// A captured sample has a mask in each batch where the unit may pad.
TensorDict WithoutMask(TensorDict batch) {
  const Tensor* const mask = batch.Find("collector/mask");
  if (mask == nullptr) return batch;
  const auto real = mask->Flat<bool>();
  RILL_EXPECT_OK(real.status());
  for (const bool is_real : *real) EXPECT_TRUE(is_real);
  RILL_EXPECT_OK(batch.Delete("collector"));
  return batch;
}

// 100 random steps in two lanes.
absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeBuffer(
    StorageLayout layout, const MakeSampler& sampler, Transforms transforms) {
  RILL_ASSIGN_OR_RETURN(auto storage,
                        DenseStorage::Create({.capacity = 100,
                                              .lanes = 2,
                                              .layout = layout,
                                              .device = DeviceUnderTest()}));
  RILL_ASSIGN_OR_RETURN(auto made, sampler());
  RILL_ASSIGN_OR_RETURN(
      auto buffer, ReplayBuffer::Create({.storage = std::move(storage),
                                         .sampler = std::move(made),
                                         .transforms = std::move(transforms),
                                         .batch_size = kBatch,
                                         .seed = 4}));
  RILL_RETURN_IF_ERROR(buffer->Extend(Rows(50, 3)).status());
  return buffer;
}

// Another priority for each row.
absl::Status Update(ReplayBuffer* buffer, const TensorDict& batch) {
  std::vector<float> priorities;
  for (int64_t i = 0; i < kBatch; ++i) {
    priorities.push_back(static_cast<float>(1 + i % 7));
  }
  return buffer->UpdatePriorities(batch, priorities);
}

// Batches of a captured sample are those of another buffer's samples, while
// rows are written and priorities change. Says whether there could be any.
void ExpectSame(const MakeSampler& sampler, const MakeChain& chain,
                bool* is_captured) {
  for (const StorageLayout layout :
       {StorageLayout::kRows, StorageLayout::kColumns}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto one, MakeBuffer(layout, sampler, chain()));
    RILL_ASSERT_OK_AND_ASSIGN(auto two, MakeBuffer(layout, sampler, chain()));
    auto captured = one->CaptureSample();
    *is_captured = captured.ok();
    if (!one->GetStats().is_fused && !chain().empty()) {
      EXPECT_THAT(captured.status(),
                  IsFailedPrecondition("which are no part of the gather"));
      // The refusal has cost no batch.
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, one->Sample());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, two->Sample());
      RILL_ASSERT_OK(
          got.To(Device::Cpu())->CheckEqual(*want.To(Device::Cpu())));
      continue;
    }
    RILL_ASSERT_OK(captured);
    for (uint64_t round = 0; round < 5; ++round) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, two->Sample());
      const TensorDict& got = (*captured)->batch();
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict host, got.To(Device::Cpu()));
      if (want.Find("collector/mask") == nullptr) {
        host = WithoutMask(std::move(host));
      }
      RILL_ASSERT_OK(host.CheckEqual(*want.To(Device::Cpu())))
          << "round " << round;
      RILL_ASSERT_OK(Update(one.get(), got));
      RILL_ASSERT_OK(Update(two.get(), want));
      RILL_ASSERT_OK(one->Extend(Rows(7, 100 + round)));
      RILL_ASSERT_OK(two->Extend(Rows(7, 100 + round)));
      RILL_ASSERT_OK((*captured)->Replay());
    }
  }
}

TEST(CapturedBatchesTest, RowsAsTheyAreStored) {
  bool is_captured = false;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      Uniform, [] { return Transforms(); }, &is_captured));
  EXPECT_TRUE(is_captured);
}

TEST(CapturedBatchesTest, WeightsOfPrioritiesWhereverTheyLie) {
  for (const Device device : {Device::Cpu(), DeviceUnderTest()}) {
    bool is_captured = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(
        [device] { return MakePrioritizedSampler({.device = device}); },
        [] { return Transforms(); }, &is_captured));
    EXPECT_TRUE(is_captured);
  }
}

TEST(CapturedBatchesTest, RandomChains) {
  int64_t num_captured = 0;
  int64_t num_refused = 0;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const auto chain = [seed] {
      Draws draws(seed);
      Transforms chain = RandomChain(12, &draws, RowSpec());
      if (seed % 5 == 0) chain.push_back(Nothing());
      return chain;
    };
    bool is_captured = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(Uniform, chain, &is_captured))
        << "seed " << seed;
    ++(is_captured ? num_captured : num_refused);
  }
  EXPECT_GT(num_captured, 10);
  EXPECT_GE(num_refused, 5);
}

TEST(CapturedBatchesTest, StacksOfFramesWithMapsAndWithout) {
  const auto sampler = [] {
    const StackFrames::Options frames = {.num_frames = 4,
                                         .keys = {"pixels", "next/pixels"},
                                         .dim = -4,
                                         .new_dim = true};
    return MakeUniformSamplerOver(*MakeTransitions({.frames = frames}));
  };
  for (const bool has_maps : {true, false}) {
    const auto chain = [=] {
      Transforms chain;
      if (!has_maps) return chain;
      for (const char* key : {"pixels", "next/pixels"}) {
        chain.push_back(std::make_unique<OneStep>(
            RowStep{.kind = RowStep::Kind::kUnitInterval}, key, key));
      }
      return chain;
    };
    bool is_captured = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(sampler, chain, &is_captured));
    EXPECT_TRUE(is_captured);
  }
}

// Windows that trajectories cut, so that each batch has other lists of steps;
// with stacks, of frames that are joined and of others; with leaves of the unit
// that the chain maps.
TEST(CapturedBatchesTest, ReturnsOfSeveralSteps) {
  for (const int64_t num_frames : {1, 3}) {
    for (const bool has_chain : {false, true}) {
      for (const int dim : {-4, -1}) {
        if (num_frames == 1 && dim == -1) continue;
        const auto sampler = [=] {
          TransitionsOptions options = {
              .n_step = NStepReturns::Options{.num_steps = 4, .gamma = 0.9}};
          if (num_frames > 1) {
            options.frames =
                StackFrames::Options{.num_frames = num_frames,
                                     .keys = {"pixels", "next/pixels"},
                                     .dim = dim,
                                     .new_dim = true};
          }
          return MakePrioritizedSamplerOver(*MakeTransitions(options));
        };
        const auto chain = [=] {
          Transforms chain;
          if (!has_chain) return chain;
          for (const char* key : {"next/reward", "observation"}) {
            chain.push_back(
                std::make_unique<OneStep>(RowStep{.scale = {2}}, key, key));
          }
          return chain;
        };
        SCOPED_TRACE(absl::StrCat(num_frames, has_chain, dim));
        bool is_captured = false;
        ASSERT_NO_FATAL_FAILURE(ExpectSame(sampler, chain, &is_captured));
        EXPECT_TRUE(is_captured);
      }
    }
  }
}

// With priorities, with a chain and without.
void ExpectCaptured(
    const std::function<absl::StatusOr<SampleUnit>()>& make_unit) {
  const auto sampler = [&]() -> absl::StatusOr<std::unique_ptr<Sampler>> {
    RILL_ASSIGN_OR_RETURN(SampleUnit unit, make_unit());
    return MakePrioritizedSamplerOver(std::move(unit));
  };
  for (const bool has_chain : {false, true}) {
    const auto chain = [=] {
      Transforms chain;
      if (!has_chain) return chain;
      for (const char* key : {"next/reward", "observation"}) {
        chain.push_back(
            std::make_unique<OneStep>(RowStep{.scale = {2}}, key, key));
      }
      return chain;
    };
    bool is_captured = false;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(sampler, chain, &is_captured));
    EXPECT_TRUE(is_captured);
  }
}

NStepReturns::Options ThreeSteps() { return {.num_steps = 3, .gamma = 0.9}; }
StackFrames::Options ThreeFrames() {
  return {.num_frames = 3,
          .keys = {"observation"},
          .dim = -2,
          .new_dim = true,
          .padding = StackFrames::Padding::kConstant,
          .value = 1234};
}

TEST(CapturedBatchesTest, SlicesOfOneLength) {
  const SliceUnitOptions slices[] = {
      {.length = 5},
      {.length = 5, .starts = SliceStarts::kOnePerTrajectory},
      {.length = 5, .is_strict = false, .is_padded = true},
      {.length = 5, .is_padded = true, .span_left = 2, .span_right = 3}};
  for (size_t i = 0; i < std::size(slices); ++i) {
    SCOPED_TRACE(i);
    ExpectCaptured([&] { return MakeSlices({.slices = slices[i]}); });
    ExpectCaptured([&] {
      return MakeSlices({.slices = slices[i],
                         .n_step = ThreeSteps(),
                         .frames = ThreeFrames()});
    });
  }
  // Rows as they are stored.
  ExpectCaptured([] {
    return MakeSlices({.slices = {.length = 5}, .marks = std::nullopt});
  });
}

TEST(CapturedBatchesTest, SequencesThatNeverStopEarly) {
  for (const SequenceEnd end :
       {SequenceEnd::kPad, SequenceEnd::kStrict, SequenceEnd::kShift,
        SequenceEnd::kIncludeReset}) {
    SCOPED_TRACE(static_cast<int>(end));
    SequencesOptions options = {
        .sequences = {.length = 3, .burn_in = 1, .bootstrap = 1, .end = end}};
    ExpectCaptured([&] { return MakeSequences(options); });
    if (end == SequenceEnd::kIncludeReset) continue;
    options.n_step = ThreeSteps();
    options.frames = ThreeFrames();
    ExpectCaptured([&] { return MakeSequences(options); });
  }
}

// Two forms that may not pad: their batches have no mask, captured or not.
TEST(CapturedBatchesTest, StrictSequencesThatNeverPad) {
  for (const int64_t burn_in : {0, 1}) {
    SCOPED_TRACE(burn_in);
    SequencesOptions options = {.sequences = {.length = 4 - burn_in,
                                              .burn_in = burn_in,
                                              .bootstrap = 1,
                                              .end = SequenceEnd::kStrict,
                                              .needs_burn_in = burn_in > 0}};
    ExpectCaptured([&] { return MakeSequences(options); });
    RILL_ASSERT_OK_AND_ASSIGN(
        auto buffer,
        MakeBuffer(
            StorageLayout::kRows,
            [&] { return MakeUniformSamplerOver(*MakeSequences(options)); },
            {}));
    RILL_ASSERT_OK_AND_ASSIGN(auto captured, buffer->CaptureSample());
    RILL_ASSERT_OK(captured->Replay());
    EXPECT_EQ(captured->batch().Find("collector/mask"), nullptr);
    options.n_step = ThreeSteps();
    options.frames = ThreeFrames();
    ExpectCaptured([&] { return MakeSequences(options); });
  }
}

// Batches of two buffers of the same rows, trajectories that end at `ends`: of
// the captured one, and of the other.
void ExpectSameInTurn(int64_t rows, absl::Span<const int64_t> ends,
                      int64_t batch_size, uint64_t seed,
                      const MakeSampler& sampler,
                      absl::FunctionRef<void(int, const TensorDict&)> see) {
  TensorDict steps = *Rows(rows, 3).Index(0);
  for (const char* key : {"done", "truncated", "terminated"}) {
    const auto flags = steps.Find(absl::StrCat("next/", key))->Flat<bool>();
    std::fill(flags->begin(), flags->end(), false);
    for (const int64_t end : ends) (*flags)[end] = true;
  }
  std::unique_ptr<ReplayBuffer> buffers[2];
  for (auto& buffer : buffers) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto storage,
        DenseStorage::Create({.capacity = rows, .device = DeviceUnderTest()}));
    RILL_ASSERT_OK_AND_ASSIGN(
        buffer, ReplayBuffer::Create({.storage = std::move(storage),
                                      .sampler = *sampler(),
                                      .batch_size = batch_size,
                                      .seed = seed}));
    RILL_ASSERT_OK(buffer->Extend(steps));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto captured, buffers[0]->CaptureSample());
  for (int round = 0; round < 40; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, buffers[1]->Sample());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, there.To(Device::Cpu()));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict got,
                              captured->batch().To(Device::Cpu()));
    if (want.Find("collector/mask") == nullptr) {
      got = WithoutMask(std::move(got));
    }
    RILL_ASSERT_OK(got.CheckEqual(want)) << "round " << round;
    see(round, want);
    RILL_ASSERT_OK(captured->Replay());
  }
}

// The first batches, of which the second is captured, pad no stack; later ones
// do.
TEST(CapturedBatchesTest, StacksThatAConstantPadsNowAndThen) {
  int64_t num_padded = 0;
  ASSERT_NO_FATAL_FAILURE(ExpectSameInTurn(
      30, {}, /*batch_size=*/2, /*seed=*/5,
      [] {
        return MakeUniformSamplerOver(
            *MakeTransitions({.frames = ThreeFrames()}));
      },
      [&](int round, const TensorDict& batch) {
        const auto frames = *batch.Find("observation")->Flat<float>();
        const bool is_padded =
            std::find(frames.begin(), frames.end(), 1234) != frames.end();
        EXPECT_FALSE(is_padded && round < 2);
        num_padded += is_padded;
      }));
  EXPECT_GT(num_padded, 0);
}

// One sequence a batch. That which is captured is short.
TEST(CapturedBatchesTest, SequencesLongerThanTheOneThatWasCaptured) {
  std::vector<int64_t> ends;
  for (int64_t end = 9; end < 500; end += 10) ends.push_back(end);
  int64_t num_long = 0;
  ASSERT_NO_FATAL_FAILURE(ExpectSameInTurn(
      900, ends, /*batch_size=*/300, /*seed=*/6,
      [] {
        return MakeUniformSamplerOver(*MakeSequences(
            {.sequences = {.length = 300}, .n_step = ThreeSteps()}));
      },
      [&](int round, const TensorDict& batch) {
        const Tensor* const mask = batch.Find("collector/mask");
        const bool is_long =
            mask == nullptr || absl::c_count(*mask->Flat<bool>(), true) > 250;
        EXPECT_FALSE(is_long && round < 2);
        num_long += is_long;
      }));
  EXPECT_GT(num_long, 0);
}

// Between two kernels lie results that the graph keeps.
TEST(CapturedBatchesTest, KernelsOfMapsWithResultsBetweenThem) {
  bool is_captured = false;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      Uniform,
      [] {
        Transforms chain;
        chain.push_back(*ToTensorImage::Create({.in_keys = {"pixels"}}));
        chain.push_back(*Resize::Create({.w = 5, .h = 6}));
        chain.push_back(*DoubleToFloat::Create({}));
        return chain;
      },
      &is_captured));
  EXPECT_TRUE(is_captured);
}

TEST(CapturedBatchesTest, AsManyResultsAsTheChainMakes) {
  bool is_captured = false;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(
      Uniform,
      [] {
        Transforms chain;
        for (int i = 0; i < 10; ++i) {
          const std::string key = absl::StrCat("image", i);
          chain.push_back(*ToTensorImage::Create({.out_keys = {key}}));
          chain.push_back(*Resize::Create({.w = 5, .in_keys = {key}}));
          chain.push_back(*Resize::Create({.w = 4 + i, .in_keys = {key}}));
        }
        return chain;
      },
      &is_captured));
  EXPECT_TRUE(is_captured);
}

}  // namespace
}  // namespace rill
