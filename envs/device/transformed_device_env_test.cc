// SPDX-License-Identifier: Apache-2.0
// Transforms beside an environment on a device (envs/transformed_env.h).
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/device/device_env.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/envs/transformed_env.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/actions/action_mask.h"
#include "rill/transforms/actions/discrete_action_projection.h"
#include "rill/transforms/env/tensor_dict_primer.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"
#include "rill/transforms/values/observation_norm.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 3;
using MadeEnv = absl::StatusOr<std::unique_ptr<Env>>;

MadeEnv CartPole() {
  return MakeCartPole({.lanes = kLanes, .max_episode_steps = 17});
}

MadeEnv OnDevice(MadeEnv host) {
  return MakeFakeDeviceEnv(std::move(host), {.saves_state = true});
}

template <typename... Each>
MadeEnv With(MadeEnv env, Each... each) {
  RILL_RETURN_IF_ERROR(env.status());
  TransformedEnv::Transforms transforms;
  (transforms.push_back(std::move(each)), ...);
  return TransformedEnv::Create(*std::move(env), std::move(transforms));
}

// Observations are replaced twice, actions twice and changed once; one leaf is
// made and one of the environment's own changes.
MadeEnv WithChain(MadeEnv env) {
  TensorDictSpec primers;
  RILL_RETURN_IF_ERROR(primers.Set("action_mask", LeafSpec::OneHot(5)));
  return With(std::move(env), *RewardSum::Create({}),
              *CatFrames::Create({.num_frames = 2, .in_keys = {"observation"}}),
              *TensorDictPrimer::Create({.primers = primers, .random = true}),
              *DiscreteActionProjection::Create(
                  {.num_actions_effective = 2, .max_actions = 5}),
              *ActionMask::Create({.replace = true}),
              *ObservationNorm::Create({.loc = {0.5}, .scale = {3}}),
              *StepCounter::Create({.max_steps = 9}));
}

INSTANTIATE_TEST_SUITE_P(Chain, EnvConformanceTest, ::testing::Values([] {
                           return WithChain(OnDevice(CartPole()));
                         }));
INSTANTIATE_TEST_SUITE_P(NewArrays, EnvConformanceTest, ::testing::Values([] {
                           return WithChain(MakeFakeDeviceEnv(
                               CartPole(), {.fills_in_place = false,
                                            .flags = {"done", "truncated"}}));
                         }));
INSTANTIATE_TEST_SUITE_P(Nested, EnvConformanceTest, ::testing::Values([] {
                           return With(WithChain(OnDevice(CartPole())),
                                       *ObservationNorm::Create(
                                           {.loc = {0}, .scale = {0.1}}));
                         }));
INSTANTIATE_TEST_SUITE_P(Groups, EnvConformanceTest, ::testing::Values([] {
                           return With(
                               OnDevice(MakeTwoAgentsEnv({.lanes = kLanes})),
                               *StepCounter::Create({}));
                         }));

class TransformedDeviceEnvTest : public FakeDeviceTest {
 protected:
  static Tensor Read(const Env& env, absl::string_view key) {
    return *env.step().Get(key)->To(Device::Cpu());
  }
  static absl::Status ResetAll(Env& env) {
    return env.Reset(std::vector<uint8_t>(kLanes, 1));
  }
};

TEST_F(TransformedDeviceEnvTest, RolloutsEqualThoseOfHostMemory) {
  const RolloutOptions options = {.max_steps = 100,
                                  .break_when_any_done = false};
  AsyncPolicy policy;
  const auto transformed = [](MadeEnv env) {
    return With(std::move(env), *RewardSum::Create({}),
                *VecNorm::Create({.shapes = {{4}}, .decay = 1}),
                *CatFrames::Create({.num_frames = 2,
                                    .in_keys = {"observation"},
                                    .out_keys = {"frames"}}),
                *StepCounter::Create({.max_steps = 9}));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto host, transformed(CartPole()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                            Rollout(*host, policy, options));
  for (const bool fills_in_place : {true, false}) {
    fake_ = FakeBackend::Install({.run_some_seed = 7});
    RILL_ASSERT_OK_AND_ASSIGN(
        auto env, transformed(MakeFakeDeviceEnv(
                      CartPole(), {.fills_in_place = fills_in_place})));
    EXPECT_EQ(env->spec().device, Device::Fake());
    env->step().ForEachLeaf([](absl::string_view key, const Tensor& leaf) {
      EXPECT_EQ(leaf.device(), Device::Fake()) << key;
    });
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                              Rollout(*env, policy, options));
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

TEST_F(TransformedDeviceEnvTest, LeavesThatNoTransformReadsStayOnTheDevice) {
  RILL_ASSERT_OK_AND_ASSIGN(auto inner, OnDevice(CartPole()));
  const Env& own = *inner;
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            With(std::move(inner), *StepCounter::Create({})));
  for (const char* key :
       {"observation", "next/observation", "action", "next/reward"}) {
    EXPECT_EQ(env->step().Find(key)->raw_data(),
              own.step().Find(key)->raw_data())
        << key;
  }
  RILL_ASSERT_OK(ResetAll(*env));
  const auto bytes_of_a_step = [&](Env& each) {
    fake_->StartCalls();
    EXPECT_TRUE(each.Step().ok());
    int64_t bytes = 0;
    for (const FakeBackend::Call& call : fake_->TakeCalls()) {
      bytes += call.bytes;
    }
    return bytes;
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto bare, OnDevice(CartPole()));
  RILL_ASSERT_OK(ResetAll(*bare));
  // The counts and flags of the lanes, and no observation of 16 bytes.
  EXPECT_LE(bytes_of_a_step(*env), bytes_of_a_step(*bare) + kLanes * 15);
}

// A step that fails leaves its lanes with the observation of the root. The
// caller sees only that of the transforms, so nobody else keeps it.
TEST_F(TransformedDeviceEnvTest, ALaneThatFailedKeepsItsObservation) {
  const auto make = [] {
    return With(OnDevice(CartPole()),
                *ObservationNorm::Create({.loc = {0}, .scale = {10}}));
  };
  const auto fail = [this](Env& env) {
    // In the middle of the simulator's step.
    fake_->FailCall(9, absl::UnavailableError("planted"));
    EXPECT_THAT(env.Step(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_TRUE(fake_->Recover());
    EXPECT_THAT(Read(env, "next/truncated"),
                TensorElementsAre<bool>(true, true, true));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto env, make());
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  const Tensor before = Read(*env, "next/observation");
  fail(*env);
  EXPECT_THAT(Read(*env, "next/observation"), BitEqualTo(before));

  // The same where that step is the first behind a load.
  RILL_ASSERT_OK_AND_ASSIGN(auto loaded, make());
  RILL_ASSERT_OK(loaded->LoadState(state));
  fail(*loaded);
  EXPECT_THAT(Read(*loaded, "next/observation"), BitEqualTo(before));
}

// Each call of the device in a step fails in turn: the error comes back, and a
// reset of all lanes goes on.
TEST_F(TransformedDeviceEnvTest, ErrorsOfTheDeviceComeBackAndAResetGoesOn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, WithChain(OnDevice(CartPole())));
  int64_t failed = 0;
  for (int64_t call = 1;; ++call) {
    RILL_ASSERT_OK(ResetAll(*env));
    fake_->FailCall(call, absl::UnavailableError("planted"));
    const absl::Status status = env->Step();
    if (!fake_->Recover()) {
      RILL_EXPECT_OK(status);
      break;
    }
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("planted")))
        << call;
    ++failed;
  }
  EXPECT_GT(failed, 10);
}

}  // namespace
}  // namespace rill
