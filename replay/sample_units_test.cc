// SPDX-License-Identifier: Apache-2.0
// Batches that the units make of rows are tested in
// tests/replay_buffer_units_test.cc.
#include "rill/replay/sample_units.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/unit_transform.h"

namespace rill {
namespace {

TensorDict Steps(int64_t count) {
  TensorDict steps({1, count});
  for (const char* key : {"pixels", "next/pixels"}) {
    RILL_EXPECT_OK(
        steps.Set(key, *Tensor::Zeros(DType::kUInt8, {1, count, 1, 6, 6})));
  }
  RILL_EXPECT_OK(
      steps.Set("next/reward", *Tensor::Zeros(DType::kFloat32, {1, count, 1})));
  RILL_EXPECT_OK(
      steps.Set("next/done", *Tensor::Zeros(DType::kBool, {1, count, 1})));
  return steps;
}

TEST(SampleUnitsTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            DenseStorage::Create({.capacity = 100}));
  RILL_ASSERT_OK_AND_ASSIGN(
      SampleUnit unit,
      MakeTransitions(
          {.n_step = NStepReturns::Options{.num_steps = 3, .gamma = 0.99},
           .frames = StackFrames::Options{.num_frames = 4,
                                          .keys = {"pixels", "next/pixels"},
                                          .dim = -3}}));
  RILL_ASSERT_OK_AND_ASSIGN(auto sampler, MakePrioritizedSamplerOver(
                                              std::move(unit), {.alpha = 0.5}));
  EXPECT_EQ(sampler->name(), "PrioritizedSampler over FrameStackNStep");
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create({.storage = storage,
                                                  .sampler = std::move(sampler),
                                                  .batch_size = 32}));
  RILL_ASSERT_OK(buffer->Extend(Steps(50)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  EXPECT_EQ(batch.Find("pixels")->shape(), Shape({32, 4, 6, 6}));
  EXPECT_EQ(batch.Find("next/pixels")->shape(), Shape({32, 4, 6, 6}));
  RILL_EXPECT_OK(buffer->UpdatePriorities(batch, {0.5f}));
}

TEST(SampleUnitsTest, NoOptionsAreTheRowsAsTheyAreStored) {
  RILL_ASSERT_OK_AND_ASSIGN(SampleUnit unit, MakeTransitions({}));
  EXPECT_EQ(unit.arithmetic, nullptr);
  EXPECT_EQ(unit.SamplerName("UniformSampler"), "UniformSampler");
}

TEST(SampleUnitsTest, WhatIsWrongIsNamedByTheHalfThatKnows) {
  EXPECT_THAT(MakeTransitions({.n_step = NStepReturns::Options{.gamma = 2}}),
              IsInvalidArgument("gamma: got 2"));
  EXPECT_THAT(MakeSlices({.n_step = NStepReturns::Options{.num_steps = 0},
                          .marks = std::nullopt}),
              IsInvalidArgument("num_steps: got 0"));
  EXPECT_THAT(MakeSlices({.slices = {.length = -1}}),
              IsInvalidArgument("length: got -1"));
  EXPECT_THAT(MakeSlices({.slices = {.length = 2, .windows = {.steps = 3}}}),
              IsInvalidArgument("windows: got 0 frames and 3 steps, want "
                                "none"));
  EXPECT_THAT(
      MakeSequences({.sequences = {.length = 2, .windows = {.frames = 3}}}),
      IsInvalidArgument("windows: got 3 frames"));
  EXPECT_THAT(MakeSequences({.sequences = {.length = 2, .dilation = 2},
                             .n_step = NStepReturns::Options{.num_steps = 2}}),
              IsInvalidArgument("a dilation of 2"));
  EXPECT_THAT(MakeSequences({}),
              IsInvalidArgument("MakeSequenceUnit: length: got 0"));
  EXPECT_THAT(MakeTrajectories({.trajectories = {.min_rows = 0}}),
              IsInvalidArgument("min_rows: got 0"));
  EXPECT_THAT(MakeHindsight({.goals = {.ratio = 2}}),
              IsInvalidArgument("ratio: got 2"));
  EXPECT_THAT(MakeHindsight({}), IsInvalidArgument("reward"));
}

// Sequences of 2 + 3 rows begin with each row; a sequence's priority is that of
// its anchor, and rows that other sequences begin with keep theirs.
TEST(SampleUnitsTest, ASequenceHasOnePriority) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            DenseStorage::Create({.capacity = 64}));
  RILL_ASSERT_OK_AND_ASSIGN(
      SampleUnit unit,
      MakeSequences({.sequences = {.length = 3, .burn_in = 2}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto sampler,
      MakePrioritizedSamplerOver(std::move(unit), {.alpha = 1, .epsilon = 0}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create({.storage = storage,
                                                  .sampler = std::move(sampler),
                                                  .batch_size = 3 * 5}));
  RILL_ASSERT_OK(buffer->Extend(Steps(50)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK(buffer->UpdatePriorities(batch, {0}));  // Rows: all.
  RILL_ASSERT_OK(buffer->UpdatePriorities(batch, {0, 7, 0}));
  const int64_t anchor = batch.Find("anchor_index")->data<int64_t>()[1 * 5];
  // The sequences of the other anchors that were not drawn have priority 1.
  int64_t drawn = 0;
  for (int round = 0; round < 200; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict next, buffer->Sample());
    for (const int64_t i : {0, 5, 10}) {
      drawn += next.Find("anchor_index")->data<int64_t>()[i] == anchor;
    }
  }
  // 7 of 7 and at most one for each of some 45 others.
  EXPECT_GT(drawn, 600 * 7 / (7 + 50) / 2);
  EXPECT_THAT(buffer->UpdatePriorities(batch, {1, 2}),
              IsInvalidArgument("got 2 of them"));
}

// 8 rows, done at 3 and 7: sequences of fewer rows than `length` are marked.
TEST(SampleUnitsTest, SequencesThatStopWithTheirTrajectoryAreMarked) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Storage> storage,
                            DenseStorage::Create({.capacity = 8}));
  RILL_ASSERT_OK_AND_ASSIGN(
      SampleUnit unit,
      MakeSequences({.sequences = {.length = 3, .end = SequenceEnd::kStop}}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReplayBuffer::Create({.storage = storage,
                            .sampler = *MakeUniformSamplerOver(std::move(unit)),
                            .batch_size = 30}));
  TensorDict steps = Steps(8);
  for (const int64_t end : {3, 7}) {
    steps.Find("next/done")->data<bool>()[end] = true;
  }
  RILL_ASSERT_OK(buffer->Extend(steps));
  for (int i = 0; i < 50; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
    const int64_t rows = batch.batch_shape()[0];
    const int64_t* slot = batch.Find("index")->data<int64_t>();
    const int64_t* anchor = batch.Find("anchor_index")->data<int64_t>();
    const int64_t* step = batch.Find("step_in_sequence")->data<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(slot[row], anchor[row] + step[row]);
      const bool is_last = row + 1 == rows || step[row + 1] == 0;
      EXPECT_EQ(is_last, step[row] == 2 || slot[row] % 4 == 3);
    }
  }
}

}  // namespace
}  // namespace rill
