// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/value_estimators.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/option_values.h"
#include "rill/base/rng.h"
#include "rill/estimators/reward_to_go.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

TensorDictSpec ValuedSpec() {
  TensorDictSpec spec = TedSpec();
  for (const char* key :
       {"state_value", "next/state_value", "log_prob", "action_log_prob"}) {
    RILL_EXPECT_OK(
        spec.Set(key, LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2)));
  }
  return spec;
}

// T1 and T2's steps.
TensorDict ThreeSteps(bool is_terminated) {
  auto steps = TensorDict::Create(
      {1, 3},
      {{"next/reward", *Tensor::From<float>({1, 0, 2}, {1, 3, 1})},
       {"state_value", *Tensor::From<float>({.5, 1, 1.5}, {1, 3, 1})},
       {"next/state_value", *Tensor::From<float>({1, 1.5, 2}, {1, 3, 1})},
       {"next/done",
        *Tensor::From<bool>({false, false, is_terminated}, {1, 3, 1})},
       {"next/terminated",
        *Tensor::From<bool>({false, false, is_terminated}, {1, 3, 1})}});
  RILL_EXPECT_OK(steps);
  return *std::move(steps);
}

TEST(ValueEstimatorsTest, Example) {
  TensorDict batch = ThreeSteps(false);
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto gae,
                            GAE::Create({.gamma = 0.99, .lmbda = 0.95}));
  RILL_ASSERT_OK(gae->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("advantage"),
              IsOkAndHolds(ElementsAre(FloatNear(4.139802f, 1e-5f),
                                       FloatNear(2.81744f, 1e-5f),
                                       FloatNear(2.48f, 1e-5f))));
  EXPECT_THAT(batch.Flat<float>("value_target"),
              IsOkAndHolds(ElementsAre(FloatNear(4.639802f, 1e-5f),
                                       FloatNear(3.81744f, 1e-5f),
                                       FloatNear(3.98f, 1e-5f))));
}

TEST(ValueEstimatorsTest, TheReturnIsTheTargetAndTheAdvantageIsAboveTheValue) {
  const std::vector<
      std::pair<std::unique_ptr<BatchTransform>, std::vector<float>>>
      estimators = [] {
        std::vector<
            std::pair<std::unique_ptr<BatchTransform>, std::vector<float>>>
            list;
        list.emplace_back(*TD0Estimator::Create({.gamma = .9}),
                          std::vector<float>{1.9f, 1.35f, 3.8f});
        list.emplace_back(*TD1Estimator::Create({.gamma = .9}),
                          std::vector<float>{4.078f, 3.42f, 3.8f});
        list.emplace_back(*TDLambdaEstimator::Create({.gamma = .9, .lmbda = 1}),
                          std::vector<float>{4.078f, 3.42f, 3.8f});
        return list;
      }();
  for (const auto& [estimator, want] : estimators) {
    TensorDict batch = ThreeSteps(false);
    TensorDict state;
    RILL_ASSERT_OK(estimator->Forward(&batch, &state));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(batch.Find("value_target")->data<float>()[i], want[i], 1e-6);
      EXPECT_NEAR(batch.Find("advantage")->data<float>()[i],
                  want[i] - batch.Find("state_value")->data<float>()[i], 1e-6)
          << estimator->name();
    }
  }
}

TEST(ValueEstimatorsTest, ValuesThatAreNotFiniteAreFoundWhereThatIsAskedFor) {
  for (const bool is_asked : {false, true}) {
    const ScopedFiniteCheck check(is_asked);
    RILL_ASSERT_OK_AND_ASSIGN(const auto gae, GAE::Create({}));
    TensorDict batch = ThreeSteps(false);
    TensorDict state;
    RILL_ASSERT_OK(gae->Forward(&batch, &state));
    batch.Find("next/state_value")->data<float>()[1] = std::nanf("");
    const absl::Status status = gae->Forward(&batch, &state);
    if (is_asked) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                   ::testing::HasSubstr("(lane 0, step 1)")));
    } else {
      RILL_EXPECT_OK(status);
    }
  }
}

// Leaves of a group, with the flags of its lane or with its own.
ValueKeys KeysOfTeam(bool has_own_flags) {
  ValueKeys keys = {.reward = "next/team/reward",
                    .value = "team/state_value",
                    .next_value = "next/team/state_value",
                    .advantage = "team/advantage",
                    .value_target = "team/value_target"};
  if (has_own_flags) {
    keys.done = "next/team/done";
    keys.terminated = "next/team/terminated";
  }
  return keys;
}

// Three agents of a group with ends of their own, or with the lane's: each has
// the numbers that it has alone.
TEST(ValueEstimatorsTest, EachOfSeveralAgentsHasTheNumbersThatItHasAlone) {
  constexpr int64_t kLanes = 2, kSteps = 9, kAgents = 3;
  const Rng rng(/*seed=*/41);
  for (const bool has_own_flags : {true, false}) {
    const ValueKeys keys = KeysOfTeam(has_own_flags);
    uint32_t draw = 0;
    const auto numbers = [&](const Shape& shape) {
      Tensor leaf = *Tensor::Zeros(DType::kFloat32, shape);
      for (int64_t i = 0; i < leaf.num_elements(); ++i) {
        leaf.data<float>()[i] = rng.UniformFloat(has_own_flags, draw++);
      }
      return leaf;
    };
    const auto flags = [&](const Shape& shape) {
      Tensor leaf = *Tensor::Zeros(DType::kBool, shape);
      for (int64_t i = 0; i < leaf.num_elements(); ++i) {
        leaf.data<bool>()[i] = rng.UniformInt(has_own_flags, draw++, 4) == 0;
      }
      return leaf;
    };
    const Shape of_lane = {kLanes, kSteps, 1};
    const Shape of_team = {kLanes, kSteps, kAgents, 1};
    TensorDict batch({kLanes, kSteps});
    for (const std::string& key : {keys.reward, keys.value, keys.next_value}) {
      RILL_ASSERT_OK(batch.Set(key, numbers(of_team)));
    }
    for (const char* key : {"next/done", "next/terminated"}) {
      RILL_ASSERT_OK(batch.Set(key, flags(of_lane)));
    }
    if (has_own_flags) {
      RILL_ASSERT_OK(batch.Set(keys.done, flags(of_team)));
      RILL_ASSERT_OK(batch.Set(keys.terminated, flags(of_team)));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const auto gae, GAE::Create({.keys = keys}));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec after,
                              gae->ForwardSpec(TensorDictSpec::Of(batch)));
    EXPECT_EQ(after.Find(keys.advantage)->shape, Shape({kAgents, 1}));
    // The second call finds the results of the first.
    for (int call = 0; call < 2; ++call) {
      RILL_ASSERT_OK(gae->Forward(&batch, nullptr));
    }
    for (int64_t agent = 0; agent < kAgents; ++agent) {
      TensorDict alone({kLanes, kSteps});
      for (const std::string& key : batch.LeafKeys()) {
        Tensor leaf = *batch.Get(key);
        if (leaf.rank() == 4) leaf = *leaf.Select(2, agent)->Contiguous();
        RILL_ASSERT_OK(alone.Set(key, leaf));
      }
      const TensorDict joint = *alone.Clone();
      RILL_ASSERT_OK(gae->Forward(&alone, nullptr));
      RILL_EXPECT_OK(joint.CheckEqual(alone)) << "agent " << agent;
    }
    RILL_ASSERT_OK(batch.Set(keys.value, numbers(of_lane)));
    const auto refused = StatusIs(kInvalidArgument, HasSubstr(keys.value));
    EXPECT_THAT(gae->Forward(&batch, nullptr), refused);
    EXPECT_THAT(gae->ForwardSpec(TensorDictSpec::Of(batch)), refused);
  }
}

TEST(ValueEstimatorsTest, TimeThatABatchsShapeLeavesOutIsNotTakenForAgents) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto gae, GAE::Create({}));
  for (const Shape& lanes : {Shape{4}, Shape{2, 4}}) {
    TensorDict batch(lanes);
    for (const char* key : {"next/reward", "state_value", "next/state_value"}) {
      RILL_ASSERT_OK(batch.Set(
          key, *Tensor::Zeros(DType::kFloat32, lanes.Concat({6, 1}))));
    }
    for (const char* key : {"next/done", "next/terminated"}) {
      RILL_ASSERT_OK(
          batch.Set(key, *Tensor::Zeros(DType::kBool, lanes.Concat({1}))));
    }
    const auto refused = StatusIs(kInvalidArgument, HasSubstr("next/reward"));
    EXPECT_THAT(gae->Forward(&batch, nullptr), refused);
    EXPECT_THAT(gae->ForwardSpec(TensorDictSpec::Of(batch)), refused);
  }
}

TEST(ValueEstimatorsTest, AveragesOverAllAgents) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto gae,
      GAE::Create(
          {.average_gae = true, .keys = KeysOfTeam(/*has_own_flags=*/false)}));
  TensorDict batch({1, 2});
  for (const char* key : {"team/state_value", "next/team/state_value"}) {
    RILL_ASSERT_OK(
        batch.Set(key, *Tensor::Zeros(DType::kFloat32, {1, 2, 2, 1})));
  }
  RILL_ASSERT_OK(batch.Set("next/team/reward",
                           *Tensor::From<float>({1, 10, 3, 30}, {1, 2, 2, 1})));
  for (const char* key : {"next/done", "next/terminated"}) {
    RILL_ASSERT_OK(batch.Set(key, *Tensor::From({true, true}, {1, 2, 1})));
  }
  RILL_ASSERT_OK(gae->Forward(&batch, nullptr));
  // The rewards less 11, by their deviation.
  const float by = std::sqrt((100.f + 1 + 64 + 361) / 3);
  EXPECT_THAT(batch.Flat<float>("team/advantage"),
              IsOkAndHolds(ElementsAre(
                  FloatNear(-10 / by, 1e-6f), FloatNear(-1 / by, 1e-6f),
                  FloatNear(-8 / by, 1e-6f), FloatNear(19 / by, 1e-6f))));
}

// A group of one agent with episodes of its own in a lane: those of a lane that
// ends with either of them.
TEST(ValueEstimatorsTest, AGroupEndsByItsFlagsAndWithItsLane) {
  const ValueKeys guard = {.reward = "next/guard/reward",
                           .value = "guard/state_value",
                           .next_value = "next/guard/state_value",
                           .done = "next/guard/done",
                           .terminated = "next/guard/terminated"};
  const Rng rng(/*seed=*/40);
  const auto of_group = *GAE::Create({.keys = guard});
  const auto of_lane = *GAE::Create({});
  ValueKeys mixed = guard;
  mixed.done = "next/done";
  const auto refused = StatusIs(
      kInvalidArgument,
      AllOf(HasSubstr("next/guard/reward"), HasSubstr("next/guard/done")));
  for (uint32_t round = 0; round < 50; ++round) {
    constexpr int64_t kSteps = 12;
    Tensor numbers[3];
    for (Tensor& leaf : numbers) {
      leaf = *Tensor::Zeros(DType::kFloat32, {kSteps, 1});
    }
    Tensor lane, own, either, terminated;
    for (Tensor* leaf : {&lane, &own, &either, &terminated}) {
      *leaf = *Tensor::Zeros(DType::kBool, {kSteps, 1});
    }
    for (int64_t i = 0; i < kSteps; ++i) {
      const Rng::Block bits = rng.Bits(round, static_cast<uint32_t>(i));
      for (size_t k = 0; k < 3; ++k) {
        numbers[k].data<float>()[i] = static_cast<float>(bits[k] % 64) / 8;
      }
      lane.data<bool>()[i] = bits[3] % 5 == 0;
      own.data<bool>()[i] = bits[3] / 8 % 4 == 0;
      terminated.data<bool>()[i] = own.data<bool>()[i] && bits[3] % 2 == 0;
      either.data<bool>()[i] = lane.data<bool>()[i] || own.data<bool>()[i];
    }
    TensorDict group({kSteps}), plain({kSteps});
    RILL_ASSERT_OK(group.Set("next/guard/reward", numbers[0]));
    RILL_ASSERT_OK(group.Set("guard/state_value", numbers[1]));
    RILL_ASSERT_OK(group.Set("next/guard/state_value", numbers[2]));
    RILL_ASSERT_OK(group.Set("next/guard/done", own));
    RILL_ASSERT_OK(group.Set("next/guard/terminated", terminated));
    RILL_ASSERT_OK(group.Set("next/done", lane));
    RILL_ASSERT_OK(plain.Set("next/reward", numbers[0]));
    RILL_ASSERT_OK(plain.Set("state_value", numbers[1]));
    RILL_ASSERT_OK(plain.Set("next/state_value", numbers[2]));
    RILL_ASSERT_OK(plain.Set("next/done", either));
    RILL_ASSERT_OK(plain.Set("next/terminated", terminated));
    if (round == 0) {
      const auto wrong = *GAE::Create({.keys = mixed});
      EXPECT_THAT(wrong->ForwardSpec(TensorDictSpec::Of(group)), refused);
      EXPECT_THAT(wrong->Forward(&group, nullptr), refused);
    }
    RILL_ASSERT_OK(of_group->Forward(&group, nullptr));
    RILL_ASSERT_OK(of_lane->Forward(&plain, nullptr));
    for (const char* key : {"advantage", "value_target"}) {
      RILL_ASSERT_OK_AND_ASSIGN(const bool is_equal,
                                group.Find(key)->BitEquals(*plain.Find(key)));
      EXPECT_TRUE(is_equal) << key << " of round " << round;
    }
  }
}

TEST(ValueEstimatorsTest, VTraceOnPolicyIsTd1) {
  TensorDict batch = ThreeSteps(true);
  const Tensor zeros = *Tensor::Zeros(DType::kFloat32, {1, 3, 1});
  RILL_ASSERT_OK(batch.Set("log_prob", zeros));
  RILL_ASSERT_OK(batch.Set("action_log_prob", zeros));
  TensorDict other = batch;
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto vtrace, VTrace::Create({.gamma = .9}));
  RILL_ASSERT_OK_AND_ASSIGN(auto td1, TD1Estimator::Create({.gamma = .9}));
  RILL_ASSERT_OK(vtrace->Forward(&batch, &state));
  RILL_ASSERT_OK(td1->Forward(&other, &state));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(batch.Find("value_target")->data<float>()[i],
                other.Find("value_target")->data<float>()[i], 1e-6);
  }
}

TEST(ValueEstimatorsTest, AverageGaeGivesAdvantagesMeanZeroAndDeviationOne) {
  RILL_ASSERT_OK_AND_ASSIGN(auto plain, GAE::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto averaged, GAE::Create({.average_gae = true}));
  TensorDict batch = ThreeSteps(true);
  TensorDict other = batch;
  TensorDict state;
  RILL_ASSERT_OK(plain->Forward(&other, &state));
  RILL_ASSERT_OK(averaged->Forward(&batch, &state));
  const float* a = batch.Find("advantage")->data<float>();
  EXPECT_NEAR(a[0] + a[1] + a[2], 0, 1e-6);
  EXPECT_NEAR((a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) / 2, 1, 1e-6);
  EXPECT_GT(a[0], a[1]);
  EXPECT_EQ(batch.Find("value_target")->data<float>()[0],
            other.Find("value_target")->data<float>()[0]);
  // The deviation of n numbers has n - 1, also of two.
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict two, ThreeSteps(true).Slice(1, 0, 2));
  RILL_ASSERT_OK(averaged->Forward(&two, &state));
  const float* b = two.Find("advantage")->data<float>();
  EXPECT_NEAR(b[0] * b[0] + b[1] * b[1], 1, 1e-6);
}

TEST(ValueEstimatorsTest, BadOptionsAreNamed) {
  EXPECT_THAT(GAE::Create({.gamma = 2}),
              StatusIs(kInvalidArgument, HasSubstr("gamma: got 2")));
  EXPECT_THAT(GAE::Create({.lmbda = -1}),
              StatusIs(kInvalidArgument, HasSubstr("lmbda: got -1")));
  EXPECT_THAT(TD0Estimator::Create({.gamma = -1}),
              StatusIs(kInvalidArgument, HasSubstr("TD0Estimator::Create")));
  EXPECT_THAT(VTrace::Create({.rho_thresh = 0}),
              StatusIs(kInvalidArgument, HasSubstr("rho_thresh: got 0")));
  EXPECT_THAT(GAE::Create({.keys = {.advantage = "state_value"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"state_value\" twice")));
  EXPECT_THAT(GAE::Create({.keys = {.reward = ""}}),
              StatusIs(kInvalidArgument, HasSubstr("keys")));
}

TEST(ValueEstimatorsTest, OnlyTheTwoFlagsMayBeOneKey) {
  RILL_EXPECT_OK(GAE::Create({.keys = {.done = "next/terminated"}}));
  EXPECT_THAT(GAE::Create({.keys = {.terminated = "state_value"}}),
              StatusIs(kInvalidArgument, HasSubstr("\"state_value\" twice")));
}

// "name=text" of each value but the keys, which all estimators have alike.
std::vector<std::string> Listed(
    const absl::StatusOr<std::unique_ptr<BatchTransform>>& made) {
  RILL_EXPECT_OK(made);
  std::vector<std::string> listed;
  std::vector<std::string> keys;
  const OptionValues values = (*made)->option_values();
  for (const OptionValues::Value& value : values.values()) {
    (absl::StartsWith(value.name, "keys.") ? keys : listed)
        .push_back(absl::StrCat(value.name, "=", value.text));
  }
  EXPECT_THAT(keys, ElementsAre("keys.reward=\"r\"", "keys.value=\"v\"",
                                "keys.next_value=\"n\"", "keys.done=\"d\"",
                                "keys.terminated=\"t\"", "keys.advantage=\"a\"",
                                "keys.value_target=\"g\""));
  return listed;
}

TEST(ValueEstimatorsTest, EachOptionIsListed) {
  const ValueKeys keys = {.reward = "r",
                          .value = "v",
                          .next_value = "n",
                          .done = "d",
                          .terminated = "t",
                          .advantage = "a",
                          .value_target = "g"};
  EXPECT_THAT(
      Listed(GAE::Create(
          {.gamma = .5, .lmbda = .25, .average_gae = true, .keys = keys})),
      ElementsAre("gamma=0.5", "lmbda=0.25", "average_gae=true"));
  EXPECT_THAT(Listed(TD0Estimator::Create({.gamma = .5, .keys = keys})),
              ElementsAre("gamma=0.5"));
  EXPECT_THAT(Listed(TD1Estimator::Create({.gamma = .5, .keys = keys})),
              ElementsAre("gamma=0.5"));
  EXPECT_THAT(Listed(TDLambdaEstimator::Create(
                  {.gamma = .5, .lmbda = .25, .keys = keys})),
              ElementsAre("gamma=0.5", "lmbda=0.25"));
  EXPECT_THAT(
      Listed(VTrace::Create({.gamma = .5,
                             .rho_thresh = 2,
                             .c_thresh = 3,
                             .average_adv = true,
                             .keys = keys,
                             .log_prob_key = "l",
                             .sample_log_prob_key = "s"})),
      ElementsAre("gamma=0.5", "rho_thresh=2", "c_thresh=3", "average_adv=true",
                  "log_prob_key=\"l\"", "sample_log_prob_key=\"s\""));
}

TEST(ValueEstimatorsTest, BatchesThatDoNotFitAreRefusedByKey) {
  RILL_ASSERT_OK_AND_ASSIGN(auto gae, GAE::Create({}));
  EXPECT_THAT(gae->ForwardSpec(TedSpec()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("state_value")));
  TensorDictSpec spec = ValuedSpec();
  RILL_ASSERT_OK(
      spec.Set("state_value", LeafSpec::Unbounded(DType::kFloat64, {1})));
  EXPECT_THAT(gae->ForwardSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("\"state_value\"")));
  RILL_ASSERT_OK(spec.Set("next/reward", LeafSpec::Binary({1})));
  EXPECT_THAT(gae->ForwardSpec(spec),
              StatusIs(kInvalidArgument, HasSubstr("\"next/reward\"")));
  for (const std::string flag : {"next/done", "next/terminated"}) {
    spec = ValuedSpec();
    RILL_ASSERT_OK(spec.Set(flag, LeafSpec::Unbounded(DType::kFloat32, {1})));
    EXPECT_THAT(gae->ForwardSpec(spec),
                StatusIs(kInvalidArgument, HasSubstr(flag)));
  }
  TensorDict state;
  TensorDict batch = ThreeSteps(true);
  RILL_ASSERT_OK(
      batch.Set("next/done", *Tensor::Zeros(DType::kFloat32, {1, 3, 1})));
  EXPECT_THAT(gae->Forward(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"next/done\"")));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict row, ThreeSteps(true).Index(0));
  RILL_ASSERT_OK_AND_ASSIGN(row, row.Index(0));
  EXPECT_THAT(gae->Forward(&row, &state),
              StatusIs(kInvalidArgument, HasSubstr("batch shape []")));
}

// --- Rewards to go -----------------------------------------------------------

TensorDict FiveRewards(std::vector<float> rewards, std::vector<bool> done) {
  auto steps = TensorDict::Create(
      {5}, {{"next/reward", *Tensor::From<float>(rewards, {5, 1})},
            {"next/done", *Tensor::From<bool>(done, {5, 1})}});
  RILL_EXPECT_OK(steps);
  return *std::move(steps);
}

// A dictionary would be lost.
TEST(ValueEstimatorsTest, ResultsReplaceNoDictionary) {
  TensorDictSpec spec = ValuedSpec();
  RILL_ASSERT_OK(spec.Set("info/x", LeafSpec::Binary({1})));
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  transforms.push_back(*GAE::Create({.keys = {.advantage = "info"}}));
  transforms.push_back(*GAE::Create({.keys = {.value_target = "info"}}));
  transforms.push_back(*DensifyReward::Create({.reward_key_out = "info"}));
  transforms.push_back(*Reward2Go::Create({.out_keys = {"info"}}));
  for (const auto& transform : transforms) {
    TensorDict batch = *spec.Random({2, 3}, Rng(1, RngStream::kUser), 0);
    const TensorDict before = *batch.Clone();
    TensorDict state;
    int refusals = 0;
    for (const auto call :
         {&BatchTransform::Forward, &BatchTransform::Inverse}) {
      const absl::Status status = ((*transform).*call)(&batch, &state);
      if (status.ok()) continue;
      ++refusals;
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr(std::string(transform->name())),
                                 HasSubstr("\"info\""))));
    }
    EXPECT_EQ(refusals, 1) << transform->name();
    RILL_EXPECT_OK(batch.CheckEqual(before)) << transform->name();
  }
}

TEST(ValueEstimatorsTest, AResultBelowAnotherIsRefused) {
  EXPECT_THAT(
      GAE::Create({.keys = {.advantage = "a", .value_target = "a/b"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a/b\"")));
}

TEST(RewardToGoTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_go, Reward2Go::Create({.gamma = 0.99}));
  RILL_ASSERT_OK_AND_ASSIGN(auto densify, DensifyReward::Create({}));
  EXPECT_EQ(to_go->name(), "Reward2Go");
  EXPECT_EQ(densify->name(), "DensifyReward");
}

TEST(RewardToGoTest, T10_DensifyRewardSpreadsTheLastReward) {
  RILL_ASSERT_OK_AND_ASSIGN(auto densify, DensifyReward::Create({}));
  TensorDict batch =
      FiveRewards({0, 0, 0, 3, 0}, {false, false, false, true, false});
  TensorDict state;
  RILL_ASSERT_OK(densify->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 3, 3, 3, 0)));
}

TEST(RewardToGoTest, Reward2GoSumsBeforeWritesOnly) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto to_go,
      Reward2Go::Create({.gamma = .5, .out_keys = {"reward_to_go"}}));
  TensorDict batch =
      FiveRewards({1, 0, 2, 4, 4}, {false, false, true, false, true});
  TensorDict state;
  RILL_ASSERT_OK(to_go->Forward(&batch, &state));
  EXPECT_FALSE(batch.Contains("reward_to_go"));
  RILL_ASSERT_OK(to_go->Inverse(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("reward_to_go"),
              IsOkAndHolds(ElementsAre(1.5, 1, 2, 6, 4)));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(1, 0, 2, 4, 4)));
}

TEST(RewardToGoTest, AnOutKeyMayBeAnotherInKey) {
  RILL_ASSERT_OK_AND_ASSIGN(auto to_go,
                            Reward2Go::Create({.in_keys = {"next/reward", "b"},
                                               .out_keys = {"b", "c"}}));
  TensorDict batch = FiveRewards({1, 1, 1, 1, 1}, std::vector<bool>(5));
  RILL_ASSERT_OK(
      batch.Set("b", *Tensor::From<float>({10, 0, 0, 10, 10}, {5, 1})));
  RILL_ASSERT_OK(to_go->Inverse(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("b"), IsOkAndHolds(ElementsAre(5, 4, 3, 2, 1)));
  EXPECT_THAT(batch.Flat<float>("c"),
              IsOkAndHolds(ElementsAre(30, 20, 20, 20, 10)));
}

TEST(RewardToGoTest, BadOptionsAndBatchesAreNamed) {
  EXPECT_THAT(Reward2Go::Create({.gamma = 1.5}),
              StatusIs(kInvalidArgument, HasSubstr("gamma: got 1.5")));
  EXPECT_THAT(Reward2Go::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(Reward2Go::Create({.out_keys = {"a", "b"}}),
              StatusIs(kInvalidArgument, HasSubstr("out_keys: got 1 and 2")));
  EXPECT_THAT(Reward2Go::Create({.out_keys = {"next/done"}}),
              StatusIs(kInvalidArgument, HasSubstr("done_key")));
  EXPECT_THAT(DensifyReward::Create({.discount = -1}),
              StatusIs(kInvalidArgument, HasSubstr("discount: got -1")));
  EXPECT_THAT(DensifyReward::Create({.reward_key_out = "next/done"}),
              StatusIs(kInvalidArgument, HasSubstr("done_key")));
  RILL_ASSERT_OK_AND_ASSIGN(auto to_go, Reward2Go::Create({.done_key = "end"}));
  EXPECT_THAT(to_go->InverseSpec(TedSpec()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"end\"")));
  TensorDict batch = FiveRewards({1, 0, 2, 4, 4}, std::vector<bool>(5));
  TensorDict state;
  EXPECT_THAT(to_go->Inverse(&batch, &state),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"end\"")));
}

INSTANTIATE_TRANSFORM_CONFORMANCE(Gae, InABuffer<GAE>({.average_gae = true},
                                                      ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Td0,
                                  InABuffer<TD0Estimator>({}, ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Td1,
                                  InABuffer<TD1Estimator>({}, ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(TdLambda,
                                  InABuffer<TDLambdaEstimator>({},
                                                               ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(VTrace, InABuffer<VTrace>({}, ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(Reward2Go,
                                  InABuffer<Reward2Go>({}, ValuedSpec()));
INSTANTIATE_TRANSFORM_CONFORMANCE(DensifyReward,
                                  InABuffer<DensifyReward>({}, ValuedSpec()));

}  // namespace
}  // namespace rill
