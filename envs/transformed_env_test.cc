// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed_env.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/env_checker.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/rows/row_steps.h"
#include "rill/transforms/rows/rowwise_transform.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/step_transform.h"
#include "rill/transforms/testing/lambda_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// The policy chooses a number in [-1, 1]; the environment pushes to its side.
std::unique_ptr<StepTransform> PushBySign() {
  return LambdaTransform::Make(
      {.name = "PushBySign",
       .plan = [](StepPlan plan) -> absl::StatusOr<StepPlan> {
         RILL_RETURN_IF_ERROR(plan.spec.Set(
             "action", LeafSpec::Bounded(DType::kFloat32, {}, -1, 1)));
         plan.leaves = {
             {.key = "action", .use = LeafUse::kRead},
             {.key = "action", .dtype = DType::kInt64, .use = LeafUse::kWrite}};
         return plan;
       },
       .on_action =
           [](StepTransform::Leaves leaves) {
             const absl::Span<const float> chosen = leaves[0].As<float>();
             const absl::Span<int64_t> pushes = leaves[1].As<int64_t>();
             for (size_t lane = 0; lane < pushes.size(); ++lane) {
               pushes[lane] = chosen[lane] > 0 ? 1 : 0;
             }
             return absl::OkStatus();
           }});
}

// observation float32 [1] -> float64 [2]: the last one beside the new one. It
// reads the root as it was before it, which no caller has.
std::unique_ptr<StepTransform> WithLast() {
  return LambdaTransform::Make(
      {.name = "WithLast",
       .plan = [](StepPlan plan) -> absl::StatusOr<StepPlan> {
         plan.leaves = {{.key = "observation", .shape = {1}},
                        {.key = "next/observation", .shape = {1}}};
         const LeafSpec pair = LeafSpec::Unbounded(DType::kFloat64, {2});
         RILL_RETURN_IF_ERROR(AddWrittenLeaf("observation", pair, &plan));
         RILL_RETURN_IF_ERROR(AddWrittenLeaf("next/observation", pair, &plan));
         return plan;
       },
       .on_reset =
           [](absl::Span<const uint8_t> mask, StepTransform::Leaves leaves) {
             for (size_t lane = 0; lane < mask.size(); ++lane) {
               if (mask[lane] == 0) continue;
               leaves[2].As<double>()[2 * lane] = -1;
               leaves[2].As<double>()[2 * lane + 1] =
                   leaves[0].As<float>()[lane];
             }
             return absl::OkStatus();
           },
       .on_step =
           [](StepTransform::Leaves leaves) {
             const absl::Span<const float> before = leaves[0].As<float>();
             const absl::Span<const float> after = leaves[1].As<float>();
             const absl::Span<double> pairs = leaves[3].As<double>();
             for (size_t lane = 0; lane < before.size(); ++lane) {
               pairs[2 * lane] = before[lane];
               pairs[2 * lane + 1] = after[lane];
             }
             return absl::OkStatus();
           }});
}

// next/reward becomes how far the observation has moved. Makes
// next/observation tenfold itself behind that, if `is_tenfold`.
std::unique_ptr<StepTransform> RewardOfMove(bool is_tenfold = false) {
  return LambdaTransform::Make(
      {.name = "RewardOfMove",
       .plan = [is_tenfold](StepPlan plan) -> absl::StatusOr<StepPlan> {
         plan.leaves = {
             {.key = "observation", .shape = {1}},
             {.key = "next/observation",
              .shape = {1},
              .use = is_tenfold ? LeafUse::kUpdate : LeafUse::kRead},
             {.key = "next/reward", .shape = {1}, .use = LeafUse::kUpdate}};
         return plan;
       },
       .on_step =
           [is_tenfold](StepTransform::Leaves leaves) {
             const absl::Span<float> rewards = leaves[2].As<float>();
             for (size_t lane = 0; lane < rewards.size(); ++lane) {
               float& next = leaves[1].As<float>()[lane];
               rewards[lane] = next - leaves[0].As<float>()[lane];
               if (is_tenfold) next *= 10;
             }
             return absl::OkStatus();
           }});
}

std::unique_ptr<StepTransform> Tenfold(std::vector<std::string> keys) {
  return *RowwiseTransform::Make(
      "Tenfold",
      {.map = *MakeRowStep({.scale = {10}}), .in_keys = std::move(keys)});
}

// Counts its steps in a state, and fails at one of them.
class FailsOnce final : public StepTransform {
 public:
  explicit FailsOnce(int64_t at) : at_(at) {}
  absl::string_view name() const override { return "FailsOnce"; }
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    return StepPlan{.spec = step};
  }
  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    return StateOf(0);
  }
  absl::Status OnStep(Leaves /*leaves*/, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor steps, state->Get("steps"));
    const int64_t step = *steps.data<int64_t>();
    RILL_ASSIGN_OR_RETURN(*state, StateOf(step + 1));
    return step == at_ ? absl::UnavailableError("once") : absl::OkStatus();
  }

 private:
  static absl::StatusOr<TensorDict> StateOf(int64_t steps) {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(Tensor tensor,
                          Tensor::From<int64_t>({steps}, Shape()));
    RILL_RETURN_IF_ERROR(state.Set("steps", tensor));
    return state;
  }

  const int64_t at_;
};

// Counts its actions and steps in its state's tensors, in place.
class CountsInPlace final : public StepTransform {
 public:
  absl::string_view name() const override { return "CountsInPlace"; }
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    return StepPlan{.spec = step};
  }
  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    RILL_ASSIGN_OR_RETURN(Tensor actions, Tensor::Zeros(DType::kInt64, {1}));
    RILL_ASSIGN_OR_RETURN(Tensor steps, Tensor::Zeros(DType::kInt64, {1}));
    return TensorDict::Create(
        {}, {{"actions", std::move(actions)}, {"steps", std::move(steps)}});
  }
  absl::Status OnAction(Leaves /*leaves*/, TensorDict* state) const override {
    return Count("actions", *state);
  }
  absl::Status OnStep(Leaves /*leaves*/, TensorDict* state) const override {
    return Count("steps", *state);
  }

 private:
  static absl::Status Count(absl::string_view key, const TensorDict& state) {
    const Tensor* const count = state.Find(key);
    EXPECT_TRUE(MayReuse(*count, DType::kInt64, {}, {1}, {}));
    ++*count->data<int64_t>();
    return absl::OkStatus();
  }
};

template <typename... Each>
absl::StatusOr<std::unique_ptr<TransformedEnv>> With(
    absl::StatusOr<std::unique_ptr<Env>> env, Each... each) {
  RILL_RETURN_IF_ERROR(env.status());
  TransformedEnv::Transforms transforms;
  (transforms.push_back(std::move(each)), ...);
  return TransformedEnv::Create(*std::move(env), std::move(transforms));
}

absl::StatusOr<std::unique_ptr<TransformedEnv>> Counting() {
  return With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
              *StepCounter::Create({.max_steps = 4}), *RewardSum::Create({}));
}

absl::StatusOr<std::unique_ptr<TransformedEnv>> Pushed() {
  return With(MakeCartPole({.lanes = 3}), *StepCounter::Create({}),
              PushBySign(), *RewardScaling::Create({.scale = 0.1}));
}

absl::StatusOr<std::unique_ptr<TransformedEnv>> Paired() {
  return With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}), WithLast(),
              *RewardSum::Create({}));
}

absl::StatusOr<std::unique_ptr<TransformedEnv>> Mapped() {
  return With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
              *RewardSum::Create({}), RewardOfMove(),
              Tenfold({"next/observation"}),
              Tenfold({"observation", "next/observation"}),
              Tenfold({"episode_reward", "next/episode_reward"}));
}

absl::Status ChooseZero(const TensorDict&, Tensor* action) {
  return action->CopyFrom(*Tensor::Zeros(action->dtype(), action->shape()));
}

absl::StatusOr<TensorDict> StepsOf(Env& env, int64_t steps) {
  return Rollout(env, FunctionPolicy(ChooseZero),
                 {.max_steps = steps, .break_when_any_done = false});
}

TEST(TransformedEnvTest, Example) {
  TransformedEnv::Transforms transforms;
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(),
                            StepCounter::Create({.max_steps = 200}));
  RILL_ASSERT_OK_AND_ASSIGN(transforms.emplace_back(), RewardSum::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto cart_pole, MakeCartPole({.lanes = 16}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      TransformedEnv::Create(std::move(cart_pole), std::move(transforms)));
  EXPECT_EQ(env->name(), "CartPole-v1");
  EXPECT_NE(env->spec().observation.Find("step_count"), nullptr);
  EXPECT_NE(env->spec().observation.Find("episode_reward"), nullptr);
}

TEST(TransformedEnvTest, RolloutsSeeWhatTheTransformsMake) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Counting());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, StepsOf(*env, 5));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lane, batch.Index(1));
  EXPECT_THAT(*lane.Find("step_count"),
              TensorElementsAre<int64_t>(0, 1, 2, 3, 0));
  EXPECT_THAT(*lane.Find("next/episode_reward"),
              TensorElementsAre<float>(1, 3, 6, 10, 1));
}

TEST(TransformedEnvTest, ATransformMayEndAnEpisode) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            With(MakeCountingEnv({.episode_steps = 100}),
                                 *StepCounter::Create({.max_steps = 2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, StepsOf(*env, 4));
  EXPECT_THAT(*batch.Find("next/truncated"),
              TensorElementsAre<bool>(false, true, false, true));
  EXPECT_THAT(*batch.Find("observation"), TensorElementsAre<float>(0, 1, 0, 1));
}

TEST(TransformedEnvTest, EvaluatorsSeeWhatTheTransformsMake) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, With(MakeCountingEnv({.lanes = 2, .episode_steps = 3}),
                     *RewardScaling::Create({.scale = 10})));
  RILL_ASSERT_OK_AND_ASSIGN(const EvaluateResult result,
                            EvaluatePolicy(*env, FunctionPolicy(ChooseZero),
                                           {.episodes = 4, .seed = 1}));
  EXPECT_EQ(result.mean_return, 60);
}

TEST(TransformedEnvTest, AnActionIsChangedOnItsWayToTheEnvironment) {
  RILL_ASSERT_OK_AND_ASSIGN(auto pushed, Pushed());
  EXPECT_EQ(*pushed->spec().action.Find("action"),
            LeafSpec::Bounded(DType::kFloat32, {}, -1, 1));
  RILL_ASSERT_OK_AND_ASSIGN(auto plain, MakeCartPole({.lanes = 3}));
  const auto by_sign = [](const TensorDict&, Tensor* action) {
    for (int64_t lane = 0; lane < 3; ++lane) {
      action->data<float>()[lane] = lane == 1 ? 0.5f : -0.5f;
    }
    return absl::OkStatus();
  };
  const auto by_push = [](const TensorDict&, Tensor* action) {
    for (int64_t lane = 0; lane < 3; ++lane) {
      action->data<int64_t>()[lane] = lane == 1 ? 1 : 0;
    }
    return absl::OkStatus();
  };
  for (Env* env : {static_cast<Env*>(pushed.get()), plain.get()}) {
    RILL_ASSERT_OK(env->Seed(7));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict signs,
      Rollout(*pushed, FunctionPolicy(by_sign),
              {.max_steps = 30, .break_when_any_done = false}));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict pushes,
      Rollout(*plain, FunctionPolicy(by_push),
              {.max_steps = 30, .break_when_any_done = false}));
  EXPECT_THAT(*signs.Find("observation"),
              BitEqualTo(*pushes.Find("observation")));
  EXPECT_THAT(*signs.Find("action"),
              TensorIs(DType::kFloat32, signs.batch_shape()));
}

TEST(TransformedEnvTest, ATransformMayReadARootThatALaterOneReplaces) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Paired());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, StepsOf(*env, 5));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lane, batch.Index(0));
  EXPECT_THAT(*lane.Find("observation"),
              TensorElementsAre<double>(-1, 0, 0, 1, 1, 2, -1, 0, 0, 1));
  EXPECT_THAT(*lane.Find("next/observation"),
              TensorElementsAre<double>(0, 1, 1, 2, 2, 3, 0, 1, 1, 2));
}

// RewardOfMove rewards each move with 1, where it or one behind it makes the
// observation tenfold, which the caller sees.
void ExpectMovesOfOne(absl::StatusOr<std::unique_ptr<TransformedEnv>> made) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto env, std::move(made));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, StepsOf(*env, 5));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict lane, batch.Index(0));
  EXPECT_THAT(*lane.Find("observation"),
              TensorElementsAre<float>(0, 10, 20, 0, 10));
  EXPECT_THAT(*lane.Find("next/observation"),
              TensorElementsAre<float>(10, 20, 30, 10, 20));
  EXPECT_THAT(*lane.Find("next/reward"),
              TensorElementsAre<float>(1, 1, 1, 1, 1));
}

TEST(TransformedEnvTest, ATransformReadsARootAsItWasBeforeLaterOnes) {
  ExpectMovesOfOne(With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
                        RewardOfMove(),
                        Tenfold({"observation", "next/observation"})));
}

TEST(TransformedEnvTest, AChangeOfNextAloneLeavesEarlierOnesTheirRoot) {
  ExpectMovesOfOne(With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
                        RewardOfMove(), Tenfold({"next/observation"})));
}

TEST(TransformedEnvTest, ATransformReadsItsRootAsItWasBeforeItself) {
  ExpectMovesOfOne(With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
                        RewardOfMove(/*is_tenfold=*/true)));
}

TEST(TransformedEnvTest, AWrittenRootKeepsItsValuesWhateverLaterOnesMake) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      With(MakeCountingEnv({.episode_steps = 100}), *RewardSum::Create({}),
           Tenfold({"episode_reward", "next/episode_reward"})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, StepsOf(*env, 3));
  EXPECT_THAT(*batch.Find("next/episode_reward"),
              TensorElementsAre<float>(10, 30, 60));
  EXPECT_THAT(*batch.Find("episode_reward"),
              TensorElementsAre<float>(0, 10, 30));
}

TEST(TransformedEnvTest, TransformedEnvironmentsNest) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto inner, With(MakeCountingEnv({.lanes = 3, .stagger_steps = 1}),
                       *StepCounter::Create({.max_steps = 4})));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto nested, With(absl::StatusOr<std::unique_ptr<Env>>(std::move(inner)),
                        *RewardSum::Create({})));
  RILL_ASSERT_OK_AND_ASSIGN(auto flat, Counting());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict a, StepsOf(*nested, 9));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict b, StepsOf(*flat, 9));
  EXPECT_THAT(a, BitEqualTo(b));
}

// A step depends on its action and on nothing else that the caller holds.
TEST(TransformedEnvTest, TheCallersRootIsNotReadBack) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Counting());
  TensorDict step = env->step();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 1}));
  step.Find("step_count")->data<int64_t>()[0] = 77;
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(*step.Find("next/step_count"),
              TensorElementsAre<int64_t>(1, 1, 1));
}

// --- Errors ------------------------------------------------------------------

TEST(TransformedEnvTest, AFailedStepLeavesTheStates) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      With(MakeCountingEnv({.lanes = 2}), std::make_unique<CountsInPlace>(),
           std::make_unique<FailsOnce>(-1), std::make_unique<FailsOnce>(1)));
  TensorDict step = env->step();
  const std::vector<uint8_t> all = {1, 1};
  RILL_ASSERT_OK(env->Reset(all));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("in transforms[2] (FailsOnce)")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  // Steps after a save, and after a load, leave what was saved.
  RILL_ASSERT_OK(env->LoadState(state));
  RILL_ASSERT_OK(env->Reset(all));
  EXPECT_FALSE(env->Step().ok());
  for (const char* key :
       {"transforms/0/state/actions", "transforms/0/state/steps",
        "transforms/1/state/steps", "transforms/2/state/steps"}) {
    EXPECT_THAT(state.Flat<int64_t>(key), IsOkAndHolds(ElementsAre(1))) << key;
  }
}

TEST(TransformedEnvTest, ARefusedStepLeavesTheStates) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, With(MakeCountingEnv({.lanes = 1}),
                                           std::make_unique<CountsInPlace>()));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  int64_t* const action = env->step().Find("action")->data<int64_t>();
  for (const int64_t wrong : {99, 0, 99}) {
    *action = wrong;
    EXPECT_EQ(env->Step().ok(), wrong == 0);
  }
  *action = 0;
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  EXPECT_THAT(state.Flat<int64_t>("transforms/0/state/actions"),
              IsOkAndHolds(ElementsAre(2)));
}

// Also where somebody holds what was saved or loaded.
TEST(TransformedEnvTest, StatesAreTheTransformsAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, With(MakeCountingEnv({.lanes = 1}),
                                           std::make_unique<CountsInPlace>()));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, env->SaveState());
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->LoadState(saved));
  RILL_ASSERT_OK(env->Step());
  constexpr absl::string_view kSteps = "transforms/0/state/steps";
  EXPECT_THAT(saved.Flat<int64_t>(kSteps), IsOkAndHolds(ElementsAre(1)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last, env->SaveState());
  EXPECT_THAT(last.Flat<int64_t>(kSteps), IsOkAndHolds(ElementsAre(2)));
}

TEST(TransformedEnvTest, TransformsSeeTheStepOfASimulatorThatFails) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counting, MakeCountingEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      With(absl::StatusOr<std::unique_ptr<Env>>(std::make_unique<FaultyEnv>(
               std::move(counting), FaultyEnv::Options{.fail_step = 1})),
           *StepCounter::Create({})));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1}));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->BeginStep());
  EXPECT_THAT(env->EndStep(), StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("simulator is gone")));
  EXPECT_THAT(*env->step().Find("next/step_count"),
              TensorElementsAre<int64_t>(2, 2));
}

TEST(TransformedEnvTest, RefusesNulls) {
  EXPECT_THAT(TransformedEnv::Create(nullptr, {}).status(),
              StatusIs(kInvalid, HasSubstr("env: got null")));
  EXPECT_THAT(
      With(MakeCountingEnv({}), std::unique_ptr<StepTransform>()).status(),
      StatusIs(kInvalid, HasSubstr("transforms[0]: got null")));
}

absl::Status CreateWith(
    std::function<absl::StatusOr<StepPlan>(StepPlan)> plan) {
  return With(MakeCountingEnv({}),
              LambdaTransform::Make({.plan = std::move(plan)}))
      .status();
}

TEST(TransformedEnvTest, RefusesPlansThatBreakWhatAnEnvPromises) {
  EXPECT_THAT(CreateWith([](StepPlan plan) -> absl::StatusOr<StepPlan> {
                plan.spec.Erase("next/done");
                return plan;
              }),
              StatusIs(kInvalid, HasSubstr("\"next/done\": got none")));
  EXPECT_THAT(CreateWith([](StepPlan plan) -> absl::StatusOr<StepPlan> {
                RILL_RETURN_IF_ERROR(
                    AddWrittenLeaf("next/extra", LeafSpec::Binary({1}), &plan));
                return plan;
              }),
              StatusIs(kInvalid, HasSubstr("\"extra\": got none")));
  EXPECT_THAT(CreateWith([](StepPlan plan) -> absl::StatusOr<StepPlan> {
                RILL_RETURN_IF_ERROR(
                    plan.spec.Set("observation", LeafSpec::Binary({9})));
                return plan;
              }),
              StatusIs(kInvalid, AllOf(HasSubstr("\"observation\""),
                                       HasSubstr("nothing writes"))));
  EXPECT_THAT(CreateWith([](StepPlan plan) -> absl::StatusOr<StepPlan> {
                plan.leaves.push_back({.key = "pixels"});
                return plan;
              }),
              StatusIs(kInvalid, AllOf(HasSubstr("\"pixels\": got none"),
                                       HasSubstr("transforms[0] (Lambda)"))));
}

TEST(TransformedEnvTest, RefusesToChangeAGroupThatBeginsOnItsOwn) {
  const auto create = [](const std::string& key) {
    auto changes = LambdaTransform::Make(
        {.name = "Changes",
         .plan = [key](StepPlan plan) -> absl::StatusOr<StepPlan> {
           plan.leaves = {{.key = key,
                           .shape = plan.spec.Find(key)->shape,
                           .use = LeafUse::kUpdate}};
           return plan;
         }});
    return With(MakeTwoAgentsEnv(), std::move(changes)).status();
  };
  for (const char* key : {"guard/observation", "next/guard/observation"}) {
    EXPECT_THAT(create(key),
                StatusIs(kInvalid, AllOf(HasSubstr(key), HasSubstr("\"guard\""),
                                         HasSubstr("Changes"))));
  }
  RILL_EXPECT_OK(create("agents/observation"));
  RILL_EXPECT_OK(create("next/agents/reward"));
}

TEST(TransformedEnvTest, StatesOfOtherTransformsAreRefusedAndChangeNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Counting());
  RILL_ASSERT_OK(StepsOf(*env, 2).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  for (const char* key : {"env/state", "transforms/1/name", "root/step_count",
                          "root/done", "env/name"}) {
    TensorDict state = before;
    RILL_ASSERT_OK(state.Delete(key));
    EXPECT_THAT(env->LoadState(state),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(key)))
        << key;
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
    EXPECT_THAT(after, BitEqualTo(before));
  }
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Counting, EnvConformanceTest,
                         ::testing::Values([] { return Counting(); }));
INSTANTIATE_TEST_SUITE_P(Pushed, EnvConformanceTest,
                         ::testing::Values([] { return Pushed(); }));
INSTANTIATE_TEST_SUITE_P(Mapped, EnvConformanceTest,
                         ::testing::Values([] { return Mapped(); }));
INSTANTIATE_TEST_SUITE_P(Paired, EnvConformanceTest,
                         ::testing::Values([] { return Paired(); }));

}  // namespace rill
