// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/torch_ppo_recurrent/trainer.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/examples/torch_ppo_recurrent/gru_networks.h"
#include "rill/libtorch/action_distribution.h"
#include "rill/libtorch/torch_threads.h"
#include "rill/telemetry/progress_line.h"
#include "rill/testing/status_matchers.h"

namespace rill::torch_ppo_recurrent {
namespace {

Trainer::Options Short(const std::string& name, Config config) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return {.config = config, .run_dir = folder};
}

std::unique_ptr<Trainer> Made(const Trainer::Options& options) {
  RILL_EXPECT_OK(SetTorchThreads(1));
  auto trainer = Trainer::Create(options);
  RILL_EXPECT_OK(trainer);
  return *std::move(trainer);
}

RunResult ResultOf(const Trainer::Options& options) {
  ProgressLine progress(stderr, false);
  auto result = Made(options)->Run(progress);
  RILL_EXPECT_OK(result);
  return result.value_or(RunResult{});
}

void DoRounds(Trainer& trainer, int rounds) {
  for (int i = 0; i < rounds; ++i) RILL_ASSERT_OK(trainer.DoRound());
}

TEST(TrainerTest, OnlyTheAgentWithMemorySolvesTheTask) {
  Config config = {.seed = 1, .total_steps = 40'960, .evaluate_every = 40'960};
  const RunResult with = ResultOf(Short("memory", config));
  EXPECT_GE(with.evaluation_return, kSolveReturn);
  EXPECT_EQ(with.solved_at, config.total_steps);
  config.has_memory = false;
  // Guesses get a quarter of the best return.
  const RunResult without = ResultOf(Short("without", config));
  EXPECT_EQ(without.solved_at, -1);
  EXPECT_LT(without.evaluation_return, 0.5 * ppo_recurrent::kRecallBestReturn);
}

TEST(TrainerTest, ARunRepeatsAndGoesOnFromItsCheckpointBitForBit) {
  const auto whole = Made(Short("whole", {.seed = 2}));
  const auto again = Made(Short("again", {.seed = 2}));
  Trainer::Options halves = Short("halves", {.seed = 2});
  const auto first = Made(halves);
  DoRounds(*whole, 6);
  DoRounds(*again, 6);
  DoRounds(*first, 3);
  RILL_ASSERT_OK(first->SaveCheckpoint());
  halves.resume = true;
  const auto second = Made(halves);
  DoRounds(*second, 3);
  const auto weights = whole->networks()->parameters();
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(weights[i].equal(again->networks()->parameters()[i])) << i;
    EXPECT_TRUE(weights[i].equal(second->networks()->parameters()[i])) << i;
    EXPECT_FALSE(weights[i].equal(first->networks()->parameters()[i])) << i;
  }
}

// A sequence that is unrolled gives what single steps give: resets where
// episodes begin, and the state as it was where a step is padding.
TEST(GruNetworksTest, UnrolledStepsAreTheSingleOnes) {
  constexpr int64_t kSequences = 3, kLength = 7, kUnits = 8;
  GruNetworks networks({.observation = 5, .actions = 4, .units = kUnits});
  const Rng rng(1);
  const at::Tensor observation =
      StandardNormals(rng, 0, {kSequences, kLength, 5});
  const at::Tensor first = StandardNormals(rng, 1, {kSequences, kUnits});
  const at::Tensor is_init =
      StandardNormals(rng, 2, {kSequences, kLength}).gt(1);
  const at::Tensor is_valid =
      StandardNormals(rng, 3, {kSequences, kLength}).lt(1);
  const auto [logits, values] =
      networks.Unroll(observation, first, is_init, is_valid, /*burn_in=*/2);
  for (int64_t s = 0; s < kSequences; ++s) {
    at::Tensor hidden = first[s].unsqueeze(0);
    for (int64_t t = 0; t < kLength; ++t) {
      if (is_init[s][t].item<bool>()) hidden = at::zeros_like(hidden);
      const auto [logit, value, next] =
          networks.forward(observation[s][t].unsqueeze(0), hidden);
      if (is_valid[s][t].item<bool>()) hidden = next;
      EXPECT_TRUE(logits[s][t].allclose(logit[0], 1e-5, 1e-6));
      EXPECT_TRUE(values[s][t].allclose(value[0][0], 1e-5, 1e-6));
    }
  }
}

}  // namespace
}  // namespace rill::torch_ppo_recurrent
