// SPDX-License-Identifier: Apache-2.0
// Transforms that work on the device of an environment: what a step costs, how
// wrong values are reported, and that runs go on elsewhere.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/device/testing/twin_envs.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/transformed_env.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/finite_check.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/actions/action_scaling.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/episodes/episode_trackers.h"
#include "rill/transforms/episodes/return_scaling.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/reward_scaling.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/values/observation_norm.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Operation = FakeBackend::Operation;

// Launches of Many, beside the environment's own.
constexpr int64_t kLaunchesOfAStep = 12;
constexpr int64_t kLaunchesOfAReset = 11;

LeafSpec Torque() { return LeafSpec::Bounded(DType::kFloat32, {2}, -2, 3); }

// Leaves that are replaced twice, made and changed; states; an action.
TransformsUnderTest Many() {
  return {ChainOf([] { return ActionScaling::Create({.spec = Torque()}); },
                  [] { return RewardScaling::Create({.scale = 0.3}); },
                  [] { return RewardSum::Create({}); },
                  [] {
                    return VecNorm::Create({.in_keys = {"observation", "wide"},
                                            .shapes = {{4}, {3}},
                                            .decay = 1});
                  },
                  [] { return ReturnScaling::Create({.gamma = 0.9}); },
                  [] {
                    return CatFrames::Create(
                        {.num_frames = 2, .in_keys = {"observation"}});
                  },
                  [] { return TrajCounter::Create({}); },
                  [] { return StepCounter::Create({.max_steps = 6}); }),
          Torque()};
}

class DeviceStepsCostsTest : public FakeDeviceTest {
 protected:
  DeviceStepsCostsTest() : FakeDeviceTest({.run_some_seed = 7}) {}

  struct Costs {
    int64_t launches = 0;
    int64_t allocations = 0;
    int64_t to_host = 0;  // Copies.
    int64_t to_device = 0;
    int64_t waits = 0;
    friend bool operator==(const Costs&, const Costs&) = default;
    Costs operator-(const Costs& other) const {
      return {launches - other.launches, allocations - other.allocations,
              to_host - other.to_host, to_device - other.to_device,
              waits - other.waits};
    }
  };
  Costs CostsOf(const std::function<absl::Status()>& call) {
    Costs costs = {.launches = -fake_->Count(Operation::kLaunch),
                   .allocations = -fake_->Count(Operation::kAllocate)};
    fake_->StartCalls();
    RILL_EXPECT_OK(call());
    for (const FakeBackend::Call& each : fake_->TakeCalls()) {
      using Kind = FakeBackend::Call::Kind;
      if (each.kind == Kind::kCopy) {
        costs.to_host += each.from_device && !each.to_device ? 1 : 0;
        costs.to_device += !each.from_device && each.to_device ? 1 : 0;
      }
      costs.waits += each.kind == Kind::kSynchronizeStream ||
                             each.kind == Kind::kSynchronizeEvent
                         ? 1
                         : 0;
    }
    costs.launches += fake_->Count(Operation::kLaunch);
    costs.allocations += fake_->Count(Operation::kAllocate);
    return costs;
  }
};

// Beside those of the environment alone. The numbers are what a step in steady
// state may cost.
TEST_F(DeviceStepsCostsTest, AStepNeitherWaitsNorAllocates) {
  const DeviceEnvOptions options = {.check_actions = false};
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(Many(), options));
  RILL_ASSERT_OK_AND_ASSIGN(auto bare,
                            TwinEnvs::OnDevice(Many().action, options));
  const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
  const auto step = [&](Env& env) {
    return CostsOf([&] { return env.Step(); });
  };
  const auto reset = [&](Env& env) {
    return CostsOf([&] { return env.Reset(all); });
  };
  Env& env = twins.there();
  for (int i = 0; i < 8; ++i) {
    reset(env);
    reset(*bare);
    step(env);
    step(*bare);
  }
  const Costs a_reset = reset(env) - reset(*bare);
  const Costs a_step = step(env) - step(*bare);
  EXPECT_EQ(a_step.waits, 0);
  EXPECT_EQ(a_step.allocations, 0);
  EXPECT_EQ(a_step.to_device, 0);
  // next/done, and what is wrong with values.
  EXPECT_EQ(a_step.to_host, 2);
  EXPECT_EQ(a_step.launches, kLaunchesOfAStep);
  EXPECT_EQ(a_reset.waits, 0);
  EXPECT_EQ(a_reset.allocations, 0);
  EXPECT_EQ(a_reset.to_device, 0);
  EXPECT_EQ(a_reset.to_host, 0);
  EXPECT_EQ(a_reset.launches, kLaunchesOfAReset);
}

// Without a transform that changes flags or looks at values nothing goes to the
// host.
TEST_F(DeviceStepsCostsTest, NothingIsCopiedToTheHostWithoutNeed) {
  const TransformsUnderTest sum = {
      ChainOf([] { return RewardSum::Create({}); })};
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(sum, {}));
  RILL_ASSERT_OK_AND_ASSIGN(auto bare, TwinEnvs::OnDevice(sum.action, {}));
  const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
  for (Env* const env : {bare.get(), static_cast<Env*>(&twins.there())}) {
    RILL_ASSERT_OK(env->Reset(all));
  }
  const Costs costs = CostsOf([&] { return twins.there().Step(); }) -
                      CostsOf([&] { return bare->Step(); });
  EXPECT_EQ(costs, (Costs{.launches = 2}));
}

// The host reads what a transform has ended when it is to step again.
TEST_F(DeviceStepsCostsTest, ALaneThatATransformHasEndedIsRefused) {
  const TransformsUnderTest count = {
      ChainOf([] { return StepCounter::Create({.max_steps = 1}); })};
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(count, {}));
  TransformedEnv& env = twins.there();
  RILL_ASSERT_OK(env.Reset(std::vector<uint8_t>(TwinEnvs::kLanes, 1)));
  RILL_ASSERT_OK(env.Step());
  RILL_ASSERT_OK(env.Reset(std::vector<uint8_t>{1, 1, 0, 1, 1}));
  EXPECT_THAT(env.Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("lane 2")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env.SaveTransforms());
  EXPECT_THAT(*state.Find("root/done"),
              TensorElementsAre<bool>(false, false, true, false, false));
}

// --- Values that a transform does not take -----------------------------------

TEST_F(DeviceStepsCostsTest, AWrongValueIsTheErrorOfTheNextStep) {
  const auto grow = [] {
    return ObservationNorm::Create(
        {.loc = {0}, .scale = {1e38}, .in_keys = {"wide"}});
  };
  const TransformsUnderTest huge = {ChainOf(
      grow, grow, grow, grow,
      [] {
        return VecNorm::Create(
            {.in_keys = {"wide"}, .shapes = {{3}}, .decay = 1});
      },
      [] { return RewardSum::Create({}); })};
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(huge, {}));
  TransformedEnv& env = twins.there();
  const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(env.Reset(all));
    RILL_ASSERT_OK(env.Step());
    EXPECT_THAT(env.Step(), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("transforms[4] (VecNorm)")));
  }
  RILL_ASSERT_OK(env.Reset(all));
  // No row was learned.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict statistics, env.Statistics());
  RILL_ASSERT_OK_AND_ASSIGN(
      const VecNormMoments moments,
      ReadVecNorm(*statistics.FindDict("transforms/4/state"), "wide"));
  EXPECT_EQ(moments.count, 0);
}

TEST_F(DeviceStepsCostsTest, AWrongActionIsTheErrorOfTheNextCall) {
  const TransformsUnderTest project = {ChainOf([] {
    return DiscreteActionProjection::Create(
        {.num_actions_effective = 3, .max_actions = 7});
  })};
  const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
  for (const bool check_actions : {true, false}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        TwinEnvs twins,
        TwinEnvs::Create(project, {.check_actions = check_actions}));
    TransformedEnv& env = twins.there();
    RILL_ASSERT_OK(env.Reset(all));
    RILL_ASSERT_OK_AND_ASSIGN(
        const Tensor wrong,
        Tensor::From<int64_t>({0, 1, 7, 0, 1}, {TwinEnvs::kLanes}));
    RILL_ASSERT_OK(env.step().Find("action")->CopyFrom(wrong));
    const auto is_wrong =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lane 2"));
    if (check_actions) {
      EXPECT_THAT(env.Step(), is_wrong);
      continue;
    }
    RILL_ASSERT_OK(env.Step());
    EXPECT_THAT(env.Reset(all), is_wrong);
    RILL_EXPECT_OK(env.Reset(all));
  }
}

// --- Runs that go on elsewhere -----------------------------------------------

TEST_F(DeviceStepsCostsTest, ARunGoesOnWhereItIsLoaded) {
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs first, TwinEnvs::Create(Many(), {}));
  RILL_ASSERT_OK(first.ResetAll());
  for (uint64_t i = 0; i < 10; ++i) {
    RILL_ASSERT_OK(first.Step(i));
    RILL_ASSERT_OK(first.Reset(i));
  }
  RILL_ASSERT_OK(first.CompareStates());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host,
                            first.host().SaveTransforms());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there,
                            first.there().SaveTransforms());
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs second, TwinEnvs::Create(Many(), {}));
  RILL_ASSERT_OK(second.host().LoadTransforms(there));
  RILL_ASSERT_OK(second.there().LoadTransforms(host));
  RILL_ASSERT_OK(second.CompareStates());
  RILL_ASSERT_OK(second.ResetAll());
  for (uint64_t i = 0; i < 10; ++i) {
    RILL_ASSERT_OK(second.Step(i));
    RILL_ASSERT_OK(second.Reset(i));
  }
  RILL_EXPECT_OK(second.CompareStates());
}

TEST_F(DeviceStepsCostsTest, StatisticsGoFromOneToTheOther) {
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(Many(), {}));
  RILL_ASSERT_OK(twins.ResetAll());
  for (uint64_t i = 0; i < 5; ++i) {
    RILL_ASSERT_OK(twins.Step(i));
    RILL_ASSERT_OK(twins.Reset(i));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict learned,
                            twins.there().Statistics());
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs others, TwinEnvs::Create(Many(), {}));
  for (TransformedEnv* const env : {&others.host(), &others.there()}) {
    RILL_ASSERT_OK(env->LoadStatistics(learned));
    env->SetLearning(false);
  }
  RILL_ASSERT_OK(others.ResetAll());
  for (uint64_t i = 0; i < 5; ++i) {
    RILL_ASSERT_OK(others.Step(i));
    RILL_ASSERT_OK(others.Reset(i));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after,
                            others.there().Statistics());
  RILL_EXPECT_OK(after.CheckEqual(learned));
}

// --- Streams and errors ------------------------------------------------------

TEST_F(DeviceStepsCostsTest, WorkIsOnTheStreamOfTheDriver) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins,
                            TwinEnvs::Create(Many(), {}, &stream));
  RILL_ASSERT_OK(twins.ResetAll());
  for (uint64_t i = 0; i < 10; ++i) {
    RILL_ASSERT_OK(twins.Step(i));
    RILL_ASSERT_OK(twins.Reset(i));
  }
}

// The default stream copies leaves for those around it to the host. It waits
// for what the transforms on the stream make of them, in steps and in resets.
TEST_F(DeviceStepsCostsTest, TransformsOfTheHostStandAroundThoseOnAStream) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const TransformsUnderTest nested = {
      ChainOf(
          [] { return RewardSum::Create({}); },
          [] { return RewardScaling::Create({.scale = 0.3}); },
          [] { return ObservationNorm::Create({.loc = {0.5}, .scale = {3}}); },
          [] { return ActionScaling::Create({.spec = Torque()}); }),
      Torque(), ChainOf([] {
        return VecNorm::Create({.in_keys = {"observation", "next/reward"},
                                .shapes = {{4}, {1}},
                                .decay = 0.9});
      })};
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins,
                            TwinEnvs::Create(nested, {}, &stream));
  RILL_ASSERT_OK(twins.ResetAll());
  for (uint64_t i = 0; i < 20; ++i) {
    RILL_ASSERT_OK(twins.Step(i));
    RILL_ASSERT_OK(twins.Reset(i));
  }
}

// Behind it lie the leaves that are looked at.
TEST_F(DeviceStepsCostsTest, TheFiniteCheckLooksOnTheStreamOfTheDriver) {
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(Device::Fake()));
  const ScopedFiniteCheck check;
  for (const bool is_reset : {true, false}) {
    TransformedEnv::Transforms chain;
    for (int i = 0; i < 9; ++i) {
      chain.push_back(
          is_reset ? *ObservationNorm::Create(
                         {.loc = {1}, .scale = {1e38}, .in_keys = {"wide"}})
                   : *RewardScaling::Create({.scale = 1e38}));
    }
    RILL_ASSERT_OK_AND_ASSIGN(auto bare,
                              TwinEnvs::OnDevice(LeafSpec::Categorical(3), {}));
    RILL_ASSERT_OK_AND_ASSIGN(
        auto env, TransformedEnv::Create(std::move(bare), std::move(chain)));
    RILL_ASSERT_OK_AND_ASSIGN(StepDriver driver,
                              StepDriver::Create(env.get(), nullptr, &stream));
    const absl::Status reset = driver.ResetAll();
    ASSERT_EQ(reset.ok(), !is_reset) << reset;
    EXPECT_THAT(
        is_reset ? reset : driver.Step(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(is_reset ? "\"wide\"" : "\"next/reward\""),
                       HasSubstr("RILL_CHECK_FINITE is set"))));
  }
}

// Each call of the device in a step and in a reset fails in turn. The error
// comes back, but for one of a poll, and a reset of all lanes goes on.
TEST_F(DeviceStepsCostsTest, ErrorsOfTheDeviceComeBackAndAResetGoesOn) {
  RILL_ASSERT_OK_AND_ASSIGN(TwinEnvs twins, TwinEnvs::Create(Many(), {}));
  TransformedEnv& env = twins.there();
  const std::vector<uint8_t> all(TwinEnvs::kLanes, 1);
  for (const bool is_step : {true, false}) {
    int64_t failed = 0;
    for (int64_t call = 1;; ++call) {
      RILL_ASSERT_OK(env.Reset(all)) << call;
      fake_->FailCall(call, absl::UnavailableError("planted"));
      const absl::Status status = is_step ? env.Step() : env.Reset(all);
      if (!fake_->Recover()) {
        RILL_EXPECT_OK(status);
        break;
      }
      if (status.ok()) continue;
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("planted")))
          << call;
      ++failed;
    }
    EXPECT_GT(failed, 10);
  }
}

// --- As any environment ------------------------------------------------------

absl::StatusOr<std::unique_ptr<Env>> CartPoleWithChain(bool fills_in_place) {
  RILL_ASSIGN_OR_RETURN(
      auto env, MakeFakeDeviceEnv(
                    MakeCartPole({.lanes = 3, .max_episode_steps = 17}),
                    {.fills_in_place = fills_in_place, .saves_state = true}));
  return TransformedEnv::Create(
      std::move(env),
      ChainOf(
          [] { return RewardSum::Create({}); },
          [] {
            return CatFrames::Create(
                {.num_frames = 2, .in_keys = {"observation"}});
          },
          [] {
            return DiscreteActionProjection::Create(
                {.num_actions_effective = 2, .max_actions = 5});
          },
          [] { return ObservationNorm::Create({.loc = {0.5}, .scale = {3}}); },
          [] { return InitTracker::Create({}); },
          [] { return StepCounter::Create({.max_steps = 9}); })());
}

INSTANTIATE_TEST_SUITE_P(InPlace, EnvConformanceTest, ::testing::Values([] {
                           return CartPoleWithChain(true);
                         }));
INSTANTIATE_TEST_SUITE_P(NewArrays, EnvConformanceTest, ::testing::Values([] {
                           return CartPoleWithChain(false);
                         }));

}  // namespace
}  // namespace rill
