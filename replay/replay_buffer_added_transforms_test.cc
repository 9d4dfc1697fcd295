// SPDX-License-Identifier: Apache-2.0
// AppendTransform and InsertTransform.
#include <cstdint>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/reward_scaling.h"

namespace rill {
namespace {

std::unique_ptr<BatchTransform> Scaling(double loc, double scale,
                                        const char* key = "next/reward") {
  return *RewardScaling::Create({.scale = scale, .loc = loc, .key = key});
}

std::unique_ptr<ReplayBuffer> Make(int64_t prefetch = 0) {
  auto buffer = *ReplayBuffer::Create({.storage = MakeStorage(8),
                                       .sampler = MakeUniformSampler(),
                                       .batch_size = 16,
                                       .prefetch = prefetch});
  RILL_EXPECT_OK(buffer->Extend(NumberedSteps(1, 8)));
  return buffer;
}

// Every reward is its step's number through y = scale * x + loc.
void ExpectRewards(ReplayBuffer& buffer, float scale, float loc) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer.Sample());
  const auto actions = batch.Flat<int64_t>("action");
  const auto rewards = batch.Flat<float>("next/reward");
  for (size_t i = 0; i < actions->size(); ++i) {
    EXPECT_FLOAT_EQ((*rewards)[i],
                    scale * static_cast<float>((*actions)[i]) + loc);
  }
}

TEST(ReplayBufferAddedTransformsTest, WorkInTheirPlace) {
  const auto buffer = Make();
  ExpectRewards(*buffer, 1, 0);
  RILL_ASSERT_OK(buffer->AppendTransform(Scaling(3, 1)));  // x + 3.
  ExpectRewards(*buffer, 1, 3);
  RILL_ASSERT_OK(buffer->AppendTransform(Scaling(0, 2)));
  ExpectRewards(*buffer, 2, 6);
  RILL_ASSERT_OK(buffer->InsertTransform(0, Scaling(0, 5)));
  ExpectRewards(*buffer, 10, 6);
  RILL_ASSERT_OK(buffer->InsertTransform(3, Scaling(1, 1)));
  ExpectRewards(*buffer, 10, 7);
}

TEST(ReplayBufferAddedTransformsTest,
     BatchesDrawnAheadHaveGoneThroughTheOthers) {
  for (const int64_t prefetch : {1, 3}) {
    const auto buffer = Make(prefetch);
    ExpectRewards(*buffer, 1, 0);
    RILL_ASSERT_OK(buffer->AppendTransform(Scaling(0, 2)));
    for (int64_t i = 0; i < prefetch; ++i) ExpectRewards(*buffer, 1, 0);
    for (int64_t i = 0; i < 2 * prefetch; ++i) ExpectRewards(*buffer, 2, 0);
  }
}

TEST(ReplayBufferAddedTransformsTest, WhatCannotWorkIsRefused) {
  const auto buffer = Make(/*prefetch=*/2);
  ExpectRewards(*buffer, 1, 0);
  EXPECT_THAT(buffer->AppendTransform(nullptr), IsInvalidArgument("null"));
  for (const int64_t place : {-1, 1}) {
    EXPECT_THAT(buffer->InsertTransform(place, Scaling(0, 2)),
                IsInvalidArgument("[0, 0]"));
  }
  EXPECT_THAT(buffer->AppendTransform(Scaling(0, 2, "next/return")),
              IsInvalidArgument("next/return"));
  for (int i = 0; i < 5; ++i) ExpectRewards(*buffer, 1, 0);
  RILL_ASSERT_OK(buffer->AppendTransform(Scaling(0, 2)));
}

}  // namespace
}  // namespace rill
