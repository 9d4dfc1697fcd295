// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/trainer.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/examples/ppo_recurrent/recall_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill::ppo_recurrent {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;

// Less than the program's run, which has 60,000 steps.
TEST(TrainerTest, LearnsToRemember) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto trainer, Trainer::Create({.seed = 1, .total_steps = 30'000}));
  RILL_ASSERT_OK_AND_ASSIGN(const Trainer::Round first, trainer->DoRound());
  EXPECT_LT(first.mean_return, 1);
  for (int i = 1; i < 29; ++i) RILL_ASSERT_OK(trainer->DoRound().status());
  EXPECT_THAT(trainer->Evaluate(), IsOkAndHolds(Ge(0.95 * kRecallBestReturn)));
}

TEST(TrainerTest, EqualSeedsGiveEqualRuns) {
  std::vector<float> parameters[2];
  for (auto& made : parameters) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto trainer, Trainer::Create({.seed = 5}));
    for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(trainer->DoRound().status());
    made.assign(trainer->networks().parameters().begin(),
                trainer->networks().parameters().end());
  }
  EXPECT_EQ(parameters[0], parameters[1]);
}

// Each step of a round is learned from once an epoch, beside padding.
TEST(TrainerTest, SequencesHoldEachStepOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto trainer,
                            Trainer::Create({.seed = 2, .minibatches = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Trainer::Round round, trainer->DoRound());
  // An episode has at most 12 steps, and sequences have 16: one for each piece
  // of an episode in the round.
  RILL_ASSERT_OK_AND_ASSIGN(const auto done,
                            trainer->batch().Flat<bool>("next/done"));
  int64_t pieces = 0;
  for (size_t i = 0; i < done.size(); ++i) {
    pieces += done[i] || (i + 1) % 32 == 0 ? 1 : 0;
  }
  EXPECT_EQ(round.sequences, pieces);
}

// The value of a next state is the network's, from the state that lies below
// next, at the ends that are truncations or the batch's; and it is the value of
// the row behind elsewhere.
TEST(TrainerTest, NextValuesAreThoseOfTheRecurrentCritic) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto trainer,
                            Trainer::Create({.seed = 3, .learning_rate = 0}));
  RILL_ASSERT_OK(trainer->DoRound().status());
  const TensorDict& batch = trainer->batch();
  GruActorCritic<float>& networks = trainer->networks();
  RILL_ASSERT_OK_AND_ASSIGN(const auto observation,
                            batch.Flat<float>("next/observation"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto hidden,
                            batch.Flat<float>("next/hidden"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto mask,
                            batch.Flat<bool>("next/action_mask"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto terminated,
                            batch.Flat<bool>("next/terminated"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto next_value,
                            batch.Flat<float>("next/state_value"));
  const int64_t inputs = networks.inputs(), units = networks.units();
  const int64_t actions = networks.kind().size;
  std::vector<float> logits(actions), value(1), next(units);
  for (size_t i = 0; i < terminated.size(); ++i) {
    if (terminated[i]) {
      ASSERT_EQ(next_value[i], 0);
      continue;
    }
    networks.Step(observation.subspan(i * inputs, inputs),
                  hidden.subspan(i * units, units),
                  mask.subspan(i * actions, actions), absl::MakeSpan(logits),
                  absl::MakeSpan(value), absl::MakeSpan(next));
    ASSERT_NEAR(next_value[i], value[0], 1e-5) << i;
  }
}

TEST(TrainerTest, ASettingOutOfRangeIsNamed) {
  EXPECT_THAT(Trainer::Create({.sequence_length = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sequence_length: got 0")));
}

}  // namespace
}  // namespace rill::ppo_recurrent
