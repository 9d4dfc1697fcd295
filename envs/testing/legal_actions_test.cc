// SPDX-License-Identifier: Apache-2.0
// EnvSpec::legal_actions through all that steps an environment. LegalEnv fails
// at an action that is not legal.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/env_checker.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/exploration.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/legal_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/envs/wrappers/frame_skip.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/envs/wrappers/time_limit.h"
#include "rill/envs/wrappers/vector_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/structure/dtype_cast.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

LegalEnvOptions Group() {
  return {.lanes = 3,
          .action = LeafSpec::Categorical(5, DType::kInt64, {2}),
          .action_key = "agents/action",
          .mask_key = "agents/action_mask"};
}

std::vector<LegalEnvOptions> Kinds() {
  return {{.lanes = 3},
          {.lanes = 2, .action = LeafSpec::OneHot(4)},
          {.lanes = 3, .action = LeafSpec::MultiCategorical({3, 4})},
          {.lanes = 2, .action = LeafSpec::MultiOneHot({2, 5}, DType::kInt64)},
          Group()};
}

// The suite's random actions, and those of CheckEnv, keep to the mask.
INSTANTIATE_TEST_SUITE_P(
    Legal, EnvConformanceTest,
    ::testing::Values([] { return MakeLegalEnv(Kinds()[0]); },
                      [] { return MakeLegalEnv(Kinds()[3]); },
                      []() -> absl::StatusOr<std::unique_ptr<Env>> {
                        RILL_ASSIGN_OR_RETURN(auto env, MakeLegalEnv(Group()));
                        return MakeTimeLimit(std::move(env), {.max_steps = 3});
                      }));

TEST(LegalActionsTest, WithoutADeclarationTheCheckerActsAtRandom) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeLegalEnv({.lanes = 3, .declares = false}));
  EXPECT_THAT(CheckEnv(*env), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("forbidden")));
}

TEST(LegalActionsTest, AStateWithoutAnyNamesLaneAndLeaf) {
  LegalEnvOptions options = Group();
  options.none_legal_at = 2;
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv(options));
  EXPECT_THAT(CheckEnv(*env),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("each state has a legal action: step 2"),
                             HasSubstr("lane 0, choice 0: "
                                       "\"agents/action_mask\" allows no "
                                       "option of \"agents/action\""))));
  // The last state of an episode needs none.
  options.none_legal_at = options.episode_steps;
  RILL_ASSERT_OK_AND_ASSIGN(env, MakeLegalEnv(options));
  RILL_EXPECT_OK(CheckEnv(*env));
}

// Always option 0.
FunctionPolicy Zero() {
  return FunctionPolicy([](const TensorDict&, Tensor* action) {
    return action->CopyFrom(*Tensor::Zeros(action->dtype(), action->shape()));
  });
}

TEST(LegalActionsTest, AnActionThatIsNotLegalIsRefusedBeforeTheEnvironment) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv({.lanes = 3}));
  EXPECT_THAT(
      Rollout(*env, Zero(), {.max_steps = 50, .break_when_any_done = false})
          .status(),
      StatusIs(kInvalid, AllOf(HasSubstr("Legal: lane "),
                               HasSubstr("\"action\": got "
                                         "option 0"),
                               HasSubstr("\"action_mask\" allows, say "))));
  FunctionPolicy zero = Zero();
  EXPECT_THAT(EvaluatePolicy(*env, zero, {.episodes = 20}).status(),
              StatusIs(kInvalid, HasSubstr("\"action_mask\" allows")));
}

TEST(LegalActionsTest, RandomActionsAndExplorersKeepToThem) {
  for (const LegalEnvOptions& options : Kinds()) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv(options));
    RILL_ASSERT_OK_AND_ASSIGN(auto random,
                              MakeRandomPolicy(env->spec(), {.seed = 2}));
    const RolloutOptions rollout = {.max_steps = 100,
                                    .break_when_any_done = false};
    RILL_EXPECT_OK(Rollout(*env, *random, rollout).status());
    // A policy that keeps to them, and one half of the time random ones.
    RILL_ASSERT_OK_AND_ASSIGN(auto inner,
                              MakeRandomPolicy(env->spec(), {.seed = 3}));
    RILL_ASSERT_OK_AND_ASSIGN(auto greedy,
                              MakeEGreedy(inner.get(), env->spec(),
                                          {.eps_init = 0.5, .eps_end = 0.5}));
    RILL_EXPECT_OK(Rollout(*env, *greedy, rollout).status());
  }
}

// --- Beside transforms and in wrappers ---------------------------------------

using Made = absl::StatusOr<std::unique_ptr<StepTransform>>;

absl::StatusOr<std::unique_ptr<Env>> With(std::unique_ptr<Env> env, Made first,
                                          Made second = nullptr) {
  TransformedEnv::Transforms transforms;
  for (Made* made : {&first, &second}) {
    RILL_RETURN_IF_ERROR(made->status());
    if (**made != nullptr) transforms.push_back(*std::move(*made));
  }
  return TransformedEnv::Create(std::move(env), std::move(transforms));
}

Made Cast32() {
  return DTypeCast::Create({.dtype_in = DType::kInt64,
                            .dtype_out = DType::kInt32,
                            .in_keys_inv = {"action"}});
}

TEST(LegalActionsTest, AnActionMaskDeclaresThemForRandomActions) {
  for (const bool replace : {false, true}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env,
                              MakeLegalEnv({.lanes = 3, .declares = false}));
    RILL_ASSERT_OK_AND_ASSIGN(
        env, With(std::move(env), ActionMask::Create({.replace = replace})));
    ASSERT_EQ(env->spec().legal_actions.size(), 1);
    EXPECT_EQ(env->spec().legal_actions[0].replaces_others, replace);
    RILL_EXPECT_OK(CheckEnv(*env));
  }
}

// What was done is what is stored.
void ExpectLegalRows(const TensorDict& batch) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor actions,
                            batch.Find("action")->Contiguous());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor masks,
                            batch.Find("action_mask")->Contiguous());
  const auto action = *actions.Flat<int64_t>();
  const auto mask = *masks.Flat<bool>();
  int64_t others = 0;
  for (size_t row = 0; row < action.size(); ++row) {
    EXPECT_TRUE(mask[4 * row + action[row]]) << "row " << row;
    others += action[row] != 0 ? 1 : 0;
  }
  EXPECT_GT(others, 0);
}

TEST(LegalActionsTest, AReplacedActionIsTheOneThatStepsHold) {
  const auto make = []() -> absl::StatusOr<std::unique_ptr<Env>> {
    RILL_ASSIGN_OR_RETURN(auto env, MakeLegalEnv({.lanes = 2}));
    return With(std::move(env), ActionMask::Create({.replace = true}));
  };
  const RolloutOptions rollout = {.max_steps = 128,
                                  .break_when_any_done = false};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, make());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, Rollout(*env, Zero(), rollout));
  ExpectLegalRows(batch);
  // Also where the step's leaves are not the replacing environment's own.
  for (const int threads : {1, 2}) {
    std::vector<std::unique_ptr<Env>> parts(2);
    RILL_ASSERT_OK_AND_ASSIGN(parts[0], make());
    RILL_ASSERT_OK_AND_ASSIGN(parts[1], make());
    RILL_ASSERT_OK_AND_ASSIGN(
        auto both, MakeVectorEnv(std::move(parts), {.threads = threads}));
    RILL_ASSERT_OK_AND_ASSIGN(batch, Rollout(*both, Zero(), rollout));
    ExpectLegalRows(batch);
  }
}

TEST(LegalActionsTest, NoTransformOutsideMayMakeAnActionThatIsReplaced) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv({.lanes = 2}));
  EXPECT_THAT(
      With(std::move(env), ActionMask::Create({.replace = true}), Cast32())
          .status(),
      StatusIs(kInvalid, AllOf(HasSubstr("transforms[1] (DTypeCast)"),
                               HasSubstr("\"action\""),
                               HasSubstr("nearer to the environment"))));
  // Nearer to it, the replacement is of the action that steps hold.
  RILL_ASSERT_OK_AND_ASSIGN(env, MakeLegalEnv({.lanes = 2, .declares = false}));
  RILL_ASSERT_OK_AND_ASSIGN(env, With(std::move(env), Cast32(),
                                      ActionMask::Create({.replace = true})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict batch,
      Rollout(*env, Zero(), {.max_steps = 64, .break_when_any_done = false}));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor action,
                            Cast(*batch.Find("action"), DType::kInt64));
  TensorDict wide = batch;
  RILL_ASSERT_OK(wide.Set("action", std::move(action)));
  ExpectLegalRows(wide);
}

// Nothing would keep a forbidden action from the environment.
TEST(LegalActionsTest, ADeclarationIsNotLostBesideTransforms) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv({.lanes = 2}));
  EXPECT_THAT(With(std::move(env), Cast32()).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("transforms[0] (DTypeCast)"),
                                       HasSubstr("an ActionMask of "
                                                 "\"action_mask\""))));
  RILL_ASSERT_OK_AND_ASSIGN(env, MakeLegalEnv({.lanes = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(
      env, With(std::move(env), ActionMask::Create({}), Cast32()));
  EXPECT_THAT(env->spec().legal_actions, IsEmpty());
  FunctionPolicy zero([](const TensorDict&, Tensor* action) {
    return action->CopyFrom(*Tensor::Zeros(DType::kInt32, action->shape()));
  });
  EXPECT_THAT(
      Rollout(*env, zero, {.max_steps = 50, .break_when_any_done = false})
          .status(),
      StatusIs(kInvalid, HasSubstr("ActionMask::OnAction")));
}

TEST(LegalActionsTest, NoPolicyWritesTheLogProbabilityOfAnActionNotDone) {
  class LogProb final : public Policy {
   public:
    LogProb() {
      RILL_EXPECT_OK(
          spec_.Set("log_prob", LeafSpec::Unbounded(DType::kFloat32, {1})));
    }
    const TensorDictSpec& output_spec() const override { return spec_; }
    absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext&,
                                TensorDict*) override {
      return 0;
    }

   private:
    TensorDictSpec spec_;
  };
  LogProb policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeLegalEnv({.lanes = 2}));
  EXPECT_THAT(MakeEGreedy(&policy, env->spec()).status(),
              StatusIs(kInvalid, HasSubstr("writes \"log_prob\"")));
  RILL_ASSERT_OK_AND_ASSIGN(
      env, With(std::move(env), ActionMask::Create({.replace = true})));
  EXPECT_THAT(Rollout(*env, policy, {.max_steps = 5}).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("writes \"log_prob\""),
                                       HasSubstr("replaces \"action\""))));
}

TEST(LegalActionsTest, WrappersThatActUnseenRefuseThem) {
  const auto make = [] { return *MakeLegalEnv({.lanes = 1}); };
  EXPECT_THAT(MakeFrameSkip(make(), {.frame_skip = 2}).status(),
              StatusIs(kInvalid, HasSubstr("with legal actions")));
  RILL_EXPECT_OK(MakeFrameSkip(make(), {.frame_skip = 1}).status());
  EXPECT_THAT(MakeNoopReset(make(), {.noops = 2}).status(),
              StatusIs(kInvalid, HasSubstr("with legal actions")));
  std::vector<std::unique_ptr<Env>> parts;
  parts.push_back(make());
  parts.push_back(*MakeLegalEnv({.lanes = 1, .declares = false}));
  EXPECT_THAT(MakeVectorEnv(std::move(parts)).status(),
              StatusIs(kInvalid, HasSubstr("legal_actions: got [], want "
                                           "[\"action\" by \"action_mask\"]")));
}

}  // namespace
}  // namespace rill
