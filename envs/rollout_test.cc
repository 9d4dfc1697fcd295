// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/rollout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Stay(const TensorDict&, Tensor*) { return absl::OkStatus(); }

TEST(RolloutTest, Example) {
  FunctionPolicy policy(Stay);
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCartPole({.lanes = 16}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, policy, {.max_steps = 100, .break_when_any_done = false}));
  EXPECT_EQ(batch.batch_shape(), Shape({16, 100}));
}

// TorchRL's step_mdp drops both before the policy acts.
TEST(RolloutTest, T11_APolicySeesNeitherRewardNorAction) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 9}));
  std::vector<float> seen;
  FunctionPolicy policy([&](const TensorDict& root, Tensor*) {
    EXPECT_THAT(root,
                HasKeys("observation", "done", "terminated", "truncated"));
    seen.push_back(root.Find("observation")->data<float>()[0]);
    return absl::OkStatus();
  });
  RILL_ASSERT_OK(Rollout(*env, policy, {.max_steps = 3}).status());
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST(RolloutTest, StopsBehindTheFirstEnd) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch, Rollout(*env, FunctionPolicy(Stay), {.max_steps = 99}));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true, false, false)));
  EXPECT_THAT(batch.dim_names(), ElementsAre("lanes", "time"));
}

TEST(RolloutTest, WithoutResetItGoesOnBehindTheLastStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 4}));
  FunctionPolicy policy(Stay);
  RILL_ASSERT_OK(Rollout(*env, policy, {.max_steps = 3}).status());
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(
          *env, policy,
          {.max_steps = 3, .auto_reset = false, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(3, 0, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(batch, Rollout(*env, policy, {.max_steps = 1}));
  EXPECT_THAT(batch.Flat<float>("observation"), IsOkAndHolds(ElementsAre(0)));
}

TEST(RolloutTest, SetTruncatedEndsTheLanesThatGoOn) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            Rollout(*env, FunctionPolicy(Stay),
                                    {.max_steps = 9, .set_truncated = true}));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(false, true, false, true)));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, false, false, true)));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(false, true, false, false)));
}

// Remembers how often it has acted in the episode.
class Counter final : public Policy {
 public:
  Counter() {
    EXPECT_TRUE(
        outputs_.Set("value", LeafSpec::Unbounded(DType::kFloat32, {1})).ok());
    EXPECT_TRUE(
        outputs_.Set("next/acts", LeafSpec::Unbounded(DType::kInt64, {1}))
            .ok());
  }
  const TensorDictSpec& output_spec() const override { return outputs_; }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext&,
                              TensorDict* step) override {
    EXPECT_EQ(root.Find("value"), nullptr);
    for (int64_t lane = 0; lane < root.batch_shape()[0]; ++lane) {
      const int64_t acts = root.Find("acts")->data<int64_t>()[lane];
      step->Find("next/acts")->data<int64_t>()[lane] = acts + 1;
      step->Find("value")->data<float>()[lane] = 0.5f * acts;
    }
    return 7;
  }

 private:
  TensorDictSpec outputs_;
};

TEST(RolloutTest, RecurrentStateIsCarriedAndZeroWhereAnEpisodeBegins) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, Counter(), {.max_steps = 4, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<int64_t>("acts"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 1, 2, 0)));
  EXPECT_THAT(batch.Flat<int64_t>("next/acts"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 2, 3, 1)));
  EXPECT_THAT(batch.Flat<float>("value"),
              IsOkAndHolds(ElementsAre(0, .5f, 0, .5f, 0, .5f, 1, 0)));
}

TEST(RolloutTest, StateThatAPolicyDoesNotDeclareIsNamedWithWhereToDoSo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.episode_steps = 9}));
  FunctionPolicy policy([](const TensorDict& root, Tensor*) {
    return root.Flat<float>("hidden").status();
  });
  EXPECT_THAT(
      Rollout(*env, policy, {.max_steps = 3}),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("\"hidden\""), HasSubstr("output_spec()"))));
}

TEST(RolloutTest, AnOutputThatTheEnvironmentHasIsRefused) {
  class Clash final : public Policy {
   public:
    Clash() {
      EXPECT_TRUE(
          outputs_.Set("observation", LeafSpec::Unbounded(DType::kFloat32, {1}))
              .ok());
    }
    const TensorDictSpec& output_spec() const override { return outputs_; }
    absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext&,
                                TensorDict*) override {
      return 0;
    }

   private:
    TensorDictSpec outputs_;
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  EXPECT_THAT(Rollout(*env, Clash(), {.max_steps = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"observation\", which the steps of")));
}

TEST(RolloutTest, ResetsOnTheWayAndKeepsFinalObservations) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 5, .break_when_any_done = false}));
  EXPECT_EQ(batch.batch_shape(), Shape({2, 5}));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1, 2, 0, 1)));
  EXPECT_THAT(batch.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(1, 2, 1, 2, 1, 1, 2, 3, 1, 2)));
  EXPECT_THAT(batch.Flat<bool>("done"), IsOkAndHolds(Each(false)));
}

TEST(RolloutTest, StopsWhenEveryLaneWasDone) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 3}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            Rollout(*env, FunctionPolicy(Stay),
                                    {.max_steps = 99,
                                     .break_when_any_done = false,
                                     .break_when_all_done = true}));
  EXPECT_EQ(batch.batch_shape(), Shape({2, 5}));
  EXPECT_TRUE(batch.Find("observation")->is_contiguous());
}

TEST(RolloutTest, LongerThanABlockHasNoSeam) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeCountingEnv({.lanes = 2, .episode_steps = 5000}));
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(Stay),
              {.max_steps = 2500, .break_when_any_done = false}));
  ASSERT_EQ(batch.batch_shape(), Shape({2, 2500}));
  RILL_ASSERT_OK_AND_ASSIGN(auto observation, batch.Flat<float>("observation"));
  for (int64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(observation[i], static_cast<float>(i % 2500));
  }
}

TEST(RolloutTest, TheActorSeesTheRootAndItsActionsAreKept) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 1}));
  const auto act = [](const TensorDict& root, Tensor* action) -> absl::Status {
    EXPECT_FALSE(root.Contains("next"));
    RILL_ASSIGN_OR_RETURN(auto observation, root.Flat<float>("observation"));
    action->data<int64_t>()[0] = static_cast<int64_t>(observation[0]);
    return absl::OkStatus();
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict batch,
      Rollout(*env, FunctionPolicy(act),
              {.max_steps = 4, .break_when_any_done = false}));
  EXPECT_THAT(batch.Flat<int64_t>("action"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0)));
}

TEST(RolloutTest, ErrorsOfEnvAndActorComeBack) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counting, MakeCountingEnv({}));
  FaultyEnv env(std::move(counting), {.fail_step = 2});
  EXPECT_THAT(Rollout(env, FunctionPolicy(Stay),
                      {.max_steps = 5, .break_when_any_done = false}),
              StatusIs(absl::StatusCode::kUnavailable));
  const auto refuse = [](const TensorDict&, Tensor*) {
    return absl::DataLossError("no weights");
  };
  EXPECT_THAT(Rollout(env, FunctionPolicy(refuse),
                      {.max_steps = 5, .break_when_any_done = false}),
              StatusIs(absl::StatusCode::kDataLoss, "no weights"));
}

TEST(RolloutTest, ExceptionsOfEnvAndActorAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counting, MakeCountingEnv({}));
  FaultyEnv env(std::move(counting), {.fail_step = 2, .throws = true});
  EXPECT_THAT(Rollout(env, FunctionPolicy(Stay),
                      {.max_steps = 5, .break_when_any_done = false}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("::Step: threw std::runtime_error: "
                                 "simulator is gone")));
  const auto throws = [](const TensorDict&, Tensor*) -> absl::Status {
    throw std::runtime_error("no weights");
  };
  EXPECT_THAT(Rollout(env, FunctionPolicy(throws),
                      {.max_steps = 5, .break_when_any_done = false}),
              StatusIs(absl::StatusCode::kInternal,
                       "Policy::Act: threw std::runtime_error: no weights"));
}

// An environment whose step 2 has a NaN in lane 1, and a policy that writes
// one.
class NanEnv final : public envs_internal::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  absl::Status BeginStep() override {
    RILL_RETURN_IF_ERROR(EnvWrapper::BeginStep());
    if (steps_++ == 2) {
      step().Find("next/observation")->data<float>()[1] = std::nanf("");
    }
    return absl::OkStatus();
  }

 private:
  int64_t steps_ = 0;
};

class NanPolicy final : public Policy {
 public:
  NanPolicy() {
    RILL_EXPECT_OK(
        outputs_.Set("value", LeafSpec::Unbounded(DType::kFloat32, {2})));
  }
  const TensorDictSpec& output_spec() const override { return outputs_; }
  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext& context,
                              TensorDict* step) override {
    float* const values = step->Find("value")->data<float>();
    std::fill_n(values, 6, context.step == 3 ? HUGE_VALF : 0);
    return 0;
  }

 private:
  TensorDictSpec outputs_;
};

TEST(RolloutTest, ValuesThatAreNotFiniteAreFoundWhereThatIsAskedFor) {
  const RolloutOptions options = {.max_steps = 5, .break_when_any_done = false};
  for (const bool is_asked : {false, true}) {
    const ScopedFiniteCheck check(is_asked);
    RILL_ASSERT_OK_AND_ASSIGN(auto counting, MakeCountingEnv({.lanes = 3}));
    NanEnv env(std::move(counting));
    const auto got = Rollout(env, FunctionPolicy(Stay), options);
    RILL_ASSERT_OK_AND_ASSIGN(auto sound, MakeCountingEnv({.lanes = 3}));
    NanPolicy policy;
    const auto acted = Rollout(*sound, policy, options);
    if (!is_asked) {
      RILL_EXPECT_OK(got);
      RILL_EXPECT_OK(acted);
      continue;
    }
    EXPECT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument,
                              AllOf(HasSubstr("\"next/observation\": got NaN"),
                                    HasSubstr("[1, 0] (lane 1)"),
                                    HasSubstr("in step 2"))));
    EXPECT_THAT(
        acted,
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("Policy::Act: \"value\": got NaN"),
                       HasSubstr("[0, 0] (lane 0)"), HasSubstr("in step 3"))));
  }
}

TEST(RolloutTest, AnActorThatReplacesTheActionIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  const auto replace = [](const TensorDict&, Tensor* action) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(*action, action->Clone());
    return absl::OkStatus();
  };
  EXPECT_THAT(Rollout(*env, FunctionPolicy(replace),
                      {.max_steps = 5, .break_when_any_done = false}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("filled in place")));
}

TEST(RolloutTest, RefusesNoSteps) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({}));
  EXPECT_THAT(Rollout(*env, FunctionPolicy(Stay), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_steps: got 0, want >= 1")));
}

}  // namespace
}  // namespace rill
