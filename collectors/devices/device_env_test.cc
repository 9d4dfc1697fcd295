// SPDX-License-Identifier: Apache-2.0
// Collection and evaluation of an environment on a device.
#include "rill/envs/device/device_env.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 32;

absl::StatusOr<std::unique_ptr<Env>> OnHost() {
  return MakeCartPole({.lanes = kLanes, .max_episode_steps = 40});
}

absl::StatusOr<std::unique_ptr<Env>> OnDevice(
    const FakeSimulatorOptions& options = {}) {
  return MakeFakeDeviceEnv(OnHost(), options, /*check_actions=*/false);
}

absl::StatusOr<std::unique_ptr<SyncCollector>> Collect(
    absl::StatusOr<std::unique_ptr<Env>> env, Policy* policy,
    int64_t frames_per_batch, int64_t init_random_frames = 0) {
  RILL_RETURN_IF_ERROR(env.status());
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *std::move(env);
  options.policy = policy;
  options.frames_per_batch = frames_per_batch;
  options.init_random_frames = init_random_frames;
  options.seed = 5;
  return SyncCollector::Create(std::move(options));
}

class DeviceCollectorTest : public FakeDeviceTest {};

TEST_F(DeviceCollectorTest, BatchesEqualThoseOfTheSimulatorOnTheHost) {
  AsyncPolicy policy;
  for (const bool fills_in_place : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto want, Collect(OnHost(), &policy, 400, 200));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto got, Collect(OnDevice({.fills_in_place = fills_in_place}), &policy,
                          400, 200));
    for (int batch = 0; batch < 3; ++batch) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want_batch, want->Next());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got_batch, got->Next());
      RILL_EXPECT_OK(got_batch.CheckEqual(want_batch));
    }
  }
}

TEST_F(DeviceCollectorTest, ASavedStateIsInHostMemoryAndBeginsFreshEpisodes) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto saved, Collect(OnDevice(), &policy, 80));
  RILL_ASSERT_OK(saved->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved->SaveState());
  state.ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
    EXPECT_TRUE(leaf.is_host()) << key;
  });
  RILL_ASSERT_OK_AND_ASSIGN(auto loaded, Collect(OnDevice(), &policy, 80));
  RILL_ASSERT_OK(loaded->LoadState(state));
  EXPECT_EQ(loaded->frames(), saved->frames());
  RILL_EXPECT_OK(loaded->Next().status());
}

TEST_F(DeviceCollectorTest, EpisodesGoOnWhereTheSimulatorSavesItsState) {
  AsyncPolicy policy;
  for (const bool fills_in_place : {true, false}) {
    const FakeSimulatorOptions options = {.fills_in_place = fills_in_place,
                                          .saves_state = true};
    RILL_ASSERT_OK_AND_ASSIGN(auto saved,
                              Collect(OnDevice(options), &policy, 400));
    RILL_ASSERT_OK(saved->Next().status());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, saved->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(auto loaded,
                              Collect(OnDevice(options), &policy, 400));
    RILL_ASSERT_OK(loaded->LoadState(state));
    for (int batch = 0; batch < 3; ++batch) {
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, saved->Next());
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, loaded->Next());
      RILL_EXPECT_OK(got.CheckEqual(want));
    }
  }
}

// A collector and an evaluator share a policy and a device, each with a
// simulator on a stream of its own. Neither may change the other's data, though
// no copy happens before somebody waits for it.
TEST_F(DeviceCollectorTest, AlternationWithEvaluationChangesNoBit) {
  constexpr int64_t kRounds = 100;
  constexpr int64_t kFramesPerBatch = 1000;
  constexpr int64_t kEpisodes = 64;
  const auto seed_of = [](int64_t round) {
    return static_cast<uint64_t>(round);
  };
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Collect(OnDevice(), &policy, kFramesPerBatch));
  RILL_ASSERT_OK_AND_ASSIGN(auto env, OnDevice());
  std::vector<TensorDict> batches;
  std::vector<EvaluateResult> results;
  int64_t evaluated = 0;
  for (int64_t round = 0; round < kRounds; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    RILL_ASSERT_OK_AND_ASSIGN(batches.emplace_back(), batch.Clone());
    RILL_ASSERT_OK_AND_ASSIGN(
        results.emplace_back(),
        EvaluatePolicy(*env, policy,
                       {.episodes = kEpisodes, .seed = seed_of(round)}));
    for (const int64_t length : results.back().lengths) evaluated += length;
  }
  EXPECT_GE(kRounds * kFramesPerBatch + evaluated, 200'000);

  RILL_ASSERT_OK_AND_ASSIGN(auto alone,
                            Collect(OnHost(), &policy, kFramesPerBatch));
  for (const TensorDict& batch : batches) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, alone->Next());
    RILL_ASSERT_OK(batch.CheckEqual(want));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto host, OnHost());
  for (int64_t round = 0; round < kRounds; ++round) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const EvaluateResult want,
        EvaluatePolicy(*host, policy,
                       {.episodes = kEpisodes, .seed = seed_of(round)}));
    ASSERT_EQ(results[round].returns, want.returns);
    ASSERT_EQ(results[round].lengths, want.lengths);
  }
}

}  // namespace
}  // namespace rill
