// SPDX-License-Identifier: Apache-2.0
// Several agents from the environment to slices: a collector writes their steps
// into files, and slices of them come back whole.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/slice_sampler.h"
#include "rill/storage/memmap_storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 3;
constexpr int64_t kLength = 4;

TEST(TwoAgentsRunTest, SlicesOfGroupsFollowTheirLanes) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(
      options.env, MakeTwoAgentsEnv({.lanes = kLanes, .episode_steps = 5}));
  options.frames_per_batch = 60;
  options.seed = 3;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto storage,
      MemmapStorage::Create({.directory = testing::TempDir() + "/two_agents",
                             .capacity = 300,
                             .lanes = kLanes}));
  ReplayBuffer::Options buffer_options = {.storage = std::move(storage),
                                          .batch_size = 16 * kLength};
  RILL_ASSERT_OK_AND_ASSIGN(buffer_options.sampler,
                            MakeSliceSampler({.length = kLength}));
  RILL_ASSERT_OK_AND_ASSIGN(auto buffer,
                            ReplayBuffer::Create(std::move(buffer_options)));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(*buffer));

  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, buffer->Sample());
  RILL_ASSERT_OK_AND_ASSIGN(const auto agents,
                            batch.Flat<float>("agents/observation"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto action,
                            batch.Flat<int64_t>("agents/action"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto reward,
                            batch.Flat<float>("next/agents/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto ids,
                            batch.Flat<int64_t>("collector/traj_ids"));
  ASSERT_EQ(agents.size(), 2u * 16 * kLength);
  for (int64_t row = 0; row < 16 * kLength; ++row) {
    EXPECT_EQ(agents[2 * row + 1], agents[2 * row] + 10);
    for (int64_t k = 2 * row; k < 2 * row + 2; ++k) {
      EXPECT_EQ(reward[k], static_cast<float>(action[k]));
    }
    if (row % kLength == 0) continue;
    EXPECT_EQ(ids[row], ids[row - 1]);
    EXPECT_EQ(agents[2 * row], agents[2 * (row - 1)] + 1);
  }
}

}  // namespace
}  // namespace rill
