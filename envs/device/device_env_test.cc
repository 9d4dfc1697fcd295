// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/device/device_env.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/device/testing/async_policy.h"
#include "rill/envs/device/testing/fake_simulator.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/evaluator.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/rollout.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr int64_t kLanes = 3;

// No episode of the tests falls at its time limit, which two of three flags
// could not say.
absl::StatusOr<std::unique_ptr<Env>> CartPole() {
  return MakeCartPole({.lanes = kLanes, .max_episode_steps = 17});
}

absl::StatusOr<std::unique_ptr<Env>> TwoAgents() {
  return MakeTwoAgentsEnv({.lanes = kLanes});
}

const FakeSimulatorOptions kVariants[] = {
    {},
    {.flags = {"done", "truncated"},
     .flag_dtype = DType::kInt64,
     .saves_state = true},
    {.flags = {"done", "terminated"},
     .flag_dtype = DType::kUInt8,
     .drops_last_one = true},
    {.fills_in_place = false},
    {.fills_in_place = false,
     .flags = {"done", "truncated"},
     .flag_dtype = DType::kFloat32,
     .drops_last_one = true},
};

// --- All that an Env promises ------------------------------------------------

INSTANTIATE_TEST_SUITE_P(GroupsInPlace, EnvConformanceTest,
                         ::testing::Values([] {
                           return MakeFakeDeviceEnv(TwoAgents(), kVariants[1]);
                         }));
INSTANTIATE_TEST_SUITE_P(NewArrays, EnvConformanceTest, ::testing::Values([] {
                           return MakeFakeDeviceEnv(CartPole(), kVariants[4]);
                         }));

// --- The same as on the host -------------------------------------------------

class DeviceEnvTest : public FakeDeviceTest {};

absl::StatusOr<std::unique_ptr<Env>> MakeAnt(
    EnvSpec spec, std::unique_ptr<DeviceSimulator> simulator) {
  RILL_ASSIGN_OR_RETURN(auto env, MakeDeviceEnv(spec, std::move(simulator)));
  return env;
}

TEST_F(DeviceEnvTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto host, CartPole());
  EnvSpec spec = host->spec();
  spec.device = Device::Fake();
  RILL_ASSERT_OK_AND_ASSIGN(auto simulator, MakeFakeSimulator(std::move(host)));
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeAnt(spec, std::move(simulator)));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_EXPECT_OK(env->Step());
}

TEST_F(DeviceEnvTest, RolloutsEqualThoseOfItsSimulatorOnTheHost) {
  const RolloutOptions options = {.max_steps = 100,
                                  .break_when_any_done = false};
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto host, CartPole());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, Rollout(*host, policy, options));
  for (const FakeSimulatorOptions& variant : kVariants) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeDeviceEnv(CartPole(), variant));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict got, Rollout(*env, policy, options));
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

// Two agents' actions, another at each step.
class GroupPolicy final : public Policy {
 public:
  const TensorDictSpec& output_spec() const override { return outputs_; }
  absl::StatusOr<int64_t> Act(const TensorDict&, const ActContext& context,
                              TensorDict* step) override {
    std::vector<int64_t> actions(2 * kLanes);
    for (size_t i = 0; i < actions.size(); ++i) {
      actions[i] = (context.step + static_cast<int64_t>(i)) % 3;
    }
    RILL_ASSIGN_OR_RETURN(Tensor to, step->Get("agents/action"));
    RILL_ASSIGN_OR_RETURN(const Tensor from,
                          Tensor::From<int64_t>(actions, to.shape()));
    RILL_RETURN_IF_ERROR(to.CopyFrom(from));
    return 0;
  }

 private:
  TensorDictSpec outputs_;
};

// A group that begins an episode changes neither the rows of the others nor the
// final observation that the batch has of it.
TEST_F(DeviceEnvTest, RolloutsOfGroupsEqualThoseOnTheHost) {
  const RolloutOptions options = {.max_steps = 60,
                                  .break_when_any_done = false};
  GroupPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto host, TwoAgents());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, Rollout(*host, policy, options));
  for (const FakeSimulatorOptions& variant : kVariants) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env,
                              MakeFakeDeviceEnv(TwoAgents(), variant));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict got, Rollout(*env, policy, options));
    RILL_EXPECT_OK(got.CheckEqual(want));
  }
}

TEST_F(DeviceEnvTest, WithoutAChecksWaitActionsAreStillInOrder) {
  const RolloutOptions options = {.max_steps = 100,
                                  .break_when_any_done = false};
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto host, CartPole());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, Rollout(*host, policy, options));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeFakeDeviceEnv(CartPole(), {}, /*check_actions=*/false));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict got, Rollout(*env, policy, options));
  RILL_EXPECT_OK(got.CheckEqual(want));
}

// Work that the caller has enqueued on the default stream comes before that of
// a reset.
TEST_F(DeviceEnvTest, AResetComesBehindTheDefaultStream) {
  RILL_ASSERT_OK_AND_ASSIGN(auto host, CartPole());
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeDeviceEnv(CartPole(), {}));
  const std::vector<uint8_t> all(kLanes, 1);
  RILL_ASSERT_OK(host->Reset(all));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor root, env->step().Get("observation"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor stale,
                            Tensor::Zeros(root.dtype(), root.shape()));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream caller,
                            Stream::Default(Device::Fake()));
  RILL_ASSERT_OK(root.CopyFromAsync(stale, caller));
  RILL_ASSERT_OK(env->Reset(all));
  EXPECT_THAT(root.BitEquals(*host->step().Get("observation")),
              IsOkAndHolds(true));
}

// TearDown finds memory that went while a kernel used it.
TEST_F(DeviceEnvTest, MayGoBetweenBeginStepAndEndStep) {
  for (const FakeSimulatorOptions& variant : kVariants) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeDeviceEnv(CartPole(), variant));
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
    RILL_ASSERT_OK(env->BeginStep());
  }
}

TEST_F(DeviceEnvTest, EvaluationsEqualThoseOfItsSimulatorOnTheHost) {
  AsyncPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto host, CartPole());
  RILL_ASSERT_OK_AND_ASSIGN(
      const EvaluateResult want,
      EvaluatePolicy(*host, policy, {.episodes = 20, .seed = 3}));
  for (const FakeSimulatorOptions& variant : kVariants) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeDeviceEnv(CartPole(), variant));
    RILL_ASSERT_OK_AND_ASSIGN(
        const EvaluateResult got,
        EvaluatePolicy(*env, policy, {.episodes = 20, .seed = 3}));
    EXPECT_EQ(got.returns, want.returns);
    EXPECT_EQ(got.lengths, want.lengths);
  }
}

// --- A simulator that the test plays -----------------------------------------

// Lends what the test set, on fake:0.
struct Script {
  TensorDict lent;
  absl::Status step;
  absl::Status reset;
  int64_t steps = 0;
};

class ScriptedSimulator final : public DeviceSimulator {
 public:
  explicit ScriptedSimulator(Script* script) : script_(*script) {}
  StreamHandle stream() const override { return {}; }
  absl::Status Seed(uint64_t) override { return absl::OkStatus(); }
  absl::Status Reset(const ResetMask&) override { return script_.reset; }
  absl::Status Step(const TensorDict&) override {
    ++script_.steps;
    return script_.step;
  }
  absl::StatusOr<TensorDict> Lend() override { return script_.lent; }

 private:
  Script& script_;
};

template <typename T>
Tensor OnDevice(std::initializer_list<T> values, const Shape& shape,
                int index = 0) {
  return *Tensor::From<T>(values, shape)->To(Device::Fake(index));
}

class ScriptedEnvTest : public DeviceEnvTest {
 protected:
  void SetUp() override {
    DeviceEnvTest::SetUp();
    RILL_ASSERT_OK(spec_.observation.Set(
        "observation", LeafSpec::Unbounded(DType::kFloat32, {2})));
    RILL_ASSERT_OK(spec_.action.Set(
        "action", LeafSpec::Categorical(2, DType::kInt64, {})));
    script_.lent = TensorDict({2});
    Lend("observation", OnDevice<float>({1, 2, 3, 4}, {2, 2}));
    Lend("reward", OnDevice<float>({5, 6}, {2}));
    Lend("done", OnDevice<bool>({false, false}, {2}));
  }
  void TearDown() override {
    env_ = nullptr;
    script_ = {};
    DeviceEnvTest::TearDown();
  }

  void Lend(absl::string_view key, Tensor array) {
    RILL_ASSERT_OK(script_.lent.Set(key, std::move(array)));
  }
  absl::Status Make(const DeviceEnvOptions& options = {}) {
    RILL_ASSIGN_OR_RETURN(
        env_,
        MakeDeviceEnv(spec_, std::make_unique<ScriptedSimulator>(&script_),
                      options));
    return absl::OkStatus();
  }
  absl::Status MakeAndReset(const DeviceEnvOptions& options = {}) {
    RILL_RETURN_IF_ERROR(Make(options));
    return env_->Reset(std::vector<uint8_t>{1, 1});
  }
  template <typename T>
  std::vector<T> Read(absl::string_view key) {
    const Tensor host = *env_->step().Get(key)->To(Device::Cpu());
    return std::vector<T>(host.data<T>(), host.data<T>() + host.num_elements());
  }

  EnvSpec spec_ = {.name = "Scripted", .lanes = 2, .device = Device::Fake()};
  Script script_;
  std::unique_ptr<Env> env_;
};

TEST_F(ScriptedEnvTest, ArraysThatAreFilledInPlaceAreLeavesOfTheStep) {
  RILL_ASSERT_OK(Make());
  for (const absl::string_view key : {"observation", "reward"}) {
    EXPECT_EQ(env_->step().Get(absl::StrCat("next/", key))->raw_data(),
              script_.lent.Find(key)->raw_data());
  }
}

TEST_F(ScriptedEnvTest, NewArraysAreCopiedAndGivenBack) {
  RILL_ASSERT_OK(MakeAndReset({.fills_in_place = false}));
  const std::weak_ptr<Buffer> array = script_.lent.Find("reward")->buffer();
  RILL_ASSERT_OK(env_->Step());
  script_.lent = TensorDict();
  EXPECT_TRUE(array.expired());
  EXPECT_THAT(Read<float>("next/reward"), ElementsAre(5, 6));
}

TEST_F(ScriptedEnvTest, AResetGivesItsNewArraysBack) {
  RILL_ASSERT_OK(MakeAndReset({.fills_in_place = false}));
  const std::weak_ptr<Buffer> array =
      script_.lent.Find("observation")->buffer();
  script_.lent = TensorDict();
  EXPECT_TRUE(array.expired());
  EXPECT_THAT(Read<float>("observation"), ElementsAre(1, 2, 3, 4));
}

TEST_F(ScriptedEnvTest, ResetWritesRowsOfTheMaskOnly) {
  RILL_ASSERT_OK(Make());
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{0, 1}));
  EXPECT_THAT(Read<float>("observation"), ElementsAre(0, 0, 3, 4));
  EXPECT_THAT(env_->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("lane 0")));
}

TEST_F(ScriptedEnvTest, StepsBetweenBeginAndEndBlockOtherCalls) {
  RILL_ASSERT_OK(MakeAndReset());
  RILL_ASSERT_OK(env_->BeginStep());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("call EndStep first"));
  EXPECT_THAT(env_->BeginStep(), refused);
  EXPECT_THAT(env_->Reset(std::vector<uint8_t>{1, 1}), refused);
  EXPECT_THAT(env_->Seed(1), refused);
  RILL_EXPECT_OK(env_->EndStep());
  RILL_EXPECT_OK(env_->EndStep());
}

// --- Flags -------------------------------------------------------------------

TEST_F(ScriptedEnvTest, AThirdFlagFollowsFromTheTwoThatAreLent) {
  struct Case {
    std::vector<std::string> lent;
    bool values[3][4];  // Of lanes: goes on, terminated, truncated, both.
    bool terminated[4];
    bool truncated[4];
  };
  const bool F = false, T = true;
  const Case cases[] = {
      {{"terminated", "truncated"},
       {{F, T, F, T}, {F, F, T, T}},
       {F, T, F, T},
       {F, F, T, T}},
      {{"done", "terminated"},
       {{F, T, T, T}, {F, T, F, T}},
       {F, T, F, T},
       {F, F, T, F}},
      {{"done", "truncated"},
       {{F, T, T, T}, {F, F, T, T}},
       {F, T, F, F},
       {F, F, T, T}},
      {{"done"}, {{F, T, T, T}}, {F, T, T, T}, {F, F, F, F}},
      {{"terminated"}, {{F, T, F, T}}, {F, T, F, T}, {F, F, F, F}},
      {{"truncated"}, {{F, F, T, T}}, {F, F, F, F}, {F, F, T, T}},
      // `done` says nothing beside the other two.
      {{"done", "terminated", "truncated"},
       {{T, F, F, F}, {F, T, F, T}, {F, F, T, T}},
       {F, T, F, T},
       {F, F, T, T}},
  };
  spec_.lanes = 4;
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrJoin(c.lent, ", "));
    script_.lent = TensorDict({4});
    Lend("observation", OnDevice<float>({0, 0, 0, 0, 0, 0, 0, 0}, {4, 2}));
    Lend("reward", OnDevice<float>({0, 0, 0, 0}, {4}));
    for (size_t i = 0; i < c.lent.size(); ++i) {
      const bool* v = c.values[i];
      Lend(c.lent[i], OnDevice<bool>({v[0], v[1], v[2], v[3]}, {4}));
    }
    RILL_ASSERT_OK(Make());
    RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>(4, 1)));
    RILL_ASSERT_OK(env_->Step());
    EXPECT_THAT(Read<bool>("next/terminated"),
                ::testing::ElementsAreArray(c.terminated));
    EXPECT_THAT(Read<bool>("next/truncated"),
                ::testing::ElementsAreArray(c.truncated));
    for (int lane = 0; lane < 4; ++lane) {
      EXPECT_EQ(Read<bool>("next/done")[lane],
                c.terminated[lane] || c.truncated[lane]);
    }
  }
}

TEST_F(ScriptedEnvTest, AFlagThatCastDoesNotTakeIsNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor done,
                            Tensor::Zeros(DType::kUInt16, {2}));
  Lend("done", *done.To(Device::Fake()));
  RILL_ASSERT_OK(MakeAndReset());
  EXPECT_THAT(env_->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("flag \"done\""), HasSubstr("uint16"))));
}

// --- Arrays that do not fit --------------------------------------------------

struct Misfit {
  std::string key;
  std::function<Tensor()> make;
  std::string got_and_want;
};

std::vector<Misfit> Misfits() {
  return {
      {"observation",
       [] {
         return OnDevice<float>({1, 2, 3, 4}, {2, 2, 1});
       },
       "got shape [2, 2, 1], want [2, 2]"},
      {"observation",
       [] {
         return OnDevice<double>({1, 2, 3, 4}, {2, 2});
       },
       "got float64"},
      {"reward",
       [] {
         return OnDevice<double>({1, 2}, {2, 1});
       },
       "got float64"},
      {"reward",
       [] {
         return OnDevice<float>({1, 2}, {2, 1}, 1);
       },
       "got an array on fake:1, want fake:0 as EnvSpec::device"},
      {"reward",
       [] {
         return *Tensor::Zeros(DType::kFloat32, {2, 1});
       },
       "got an array on cpu, want fake:0 as EnvSpec::device"},
      {"observation",
       [] {
         return *OnDevice<float>({1, 2, 3, 4}, {2, 2}).Permute({1, 0});
       },
       "got byte strides [4, 8] of float32[2, 2], want a contiguous array"},
  };
}

TEST_F(ScriptedEnvTest, ArraysInPlaceThatDoNotFitAreRefusedAtOnce) {
  const TensorDict good = script_.lent;
  for (const Misfit& misfit : Misfits()) {
    script_.lent = good;
    Lend(misfit.key, misfit.make());
    EXPECT_THAT(Make(),
                StatusIs(kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("\"", misfit.key, "\"")),
                               HasSubstr(misfit.got_and_want))));
  }
}

TEST_F(ScriptedEnvTest, NewArraysThatDoNotFitEndTheStep) {
  const TensorDict good = script_.lent;
  for (const Misfit& misfit : Misfits()) {
    script_.lent = good;
    RILL_ASSERT_OK(MakeAndReset({.fills_in_place = false}));
    Lend(misfit.key, misfit.make());
    EXPECT_THAT(env_->Step(),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("Scripted::Step: lanes 0 to 1"),
                               HasSubstr(absl::StrCat("\"", misfit.key, "\"")),
                               HasSubstr(misfit.got_and_want))));
  }
}

TEST_F(ScriptedEnvTest, AnArrayOrFlagThatIsMissingIsNamed) {
  RILL_ASSERT_OK(script_.lent.Delete("done"));
  RILL_ASSERT_OK(MakeAndReset());
  EXPECT_THAT(env_->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("got none, want one or more of \"done\"")));
  RILL_ASSERT_OK(script_.lent.Delete("reward"));
  EXPECT_THAT(Make(), StatusIs(kInvalidArgument,
                               HasSubstr("leaf \"reward\": got none among "
                                         "\"observation\", want an array "
                                         "[2, 1]")));
}

TEST_F(ScriptedEnvTest, ReadOnlyArraysCannotBeFilledInPlace) {
  const Tensor array = OnDevice<float>({1, 2}, {2, 1});
  Lend("reward",
       *Tensor::View(Buffer::Wrap(array.raw_data(), 8, Device::Fake(),
                                  MemoryKind::kDevice, array.buffer(), false),
                     DType::kFloat32, {2, 1}, 0));
  EXPECT_THAT(Make(), StatusIs(kInvalidArgument,
                               AllOf(HasSubstr("\"reward\""),
                                     HasSubstr("fills_in_place to false"))));
  RILL_ASSERT_OK(MakeAndReset({.fills_in_place = false}));
  RILL_EXPECT_OK(env_->Step());
}

TEST_F(ScriptedEnvTest, AnArrayThatMovesEndsTheStepAndIsNamed) {
  RILL_ASSERT_OK(MakeAndReset());
  const Tensor first = *script_.lent.Get("reward");
  Lend("reward", OnDevice<float>({7, 8}, {2}));
  EXPECT_THAT(env_->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("\"reward\": got float32 at 0x"),
                             HasSubstr("want the array that was lent first"),
                             HasSubstr("fills_in_place to false"))));
  EXPECT_THAT(Read<bool>("next/truncated"), ElementsAre(true, true));
  EXPECT_THAT(env_->Step(), StatusIs(absl::StatusCode::kFailedPrecondition));
  Lend("reward", first);
  RILL_ASSERT_OK(env_->Reset(std::vector<uint8_t>{1, 1}));
  RILL_EXPECT_OK(env_->Step());
}

// --- Simulators that fail ----------------------------------------------------

TEST_F(ScriptedEnvTest, ARewardThatIsNotFiniteCutsOffItsLane) {
  RILL_ASSERT_OK(MakeAndReset());
  const Tensor moved = OnDevice<float>({10, 20, 30, 40}, {2, 2});
  RILL_ASSERT_OK(script_.lent.Find("observation")->CopyFrom(moved));
  RILL_ASSERT_OK(script_.lent.Find("reward")->CopyFrom(
      OnDevice<float>({5, std::numeric_limits<float>::quiet_NaN()}, {2})));
  EXPECT_THAT(env_->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("Scripted::Step: lane 1: \"reward\": got nan, "
                                 "want a finite number")));
  EXPECT_THAT(Read<float>("next/observation"), ElementsAre(10, 20, 3, 4));
  EXPECT_THAT(Read<float>("next/reward"), ElementsAre(5, 0));
  EXPECT_THAT(Read<bool>("next/done"), ElementsAre(false, true));
  EXPECT_THAT(Read<bool>("next/truncated"), ElementsAre(false, true));
  EXPECT_THAT(Read<bool>("next/terminated"), ElementsAre(false, false));
}

TEST_F(ScriptedEnvTest, AnErrorOfTheSimulatorCutsOffAllLanes) {
  RILL_ASSERT_OK(MakeAndReset());
  script_.step = absl::InvalidArgumentError("out of contacts");
  // No promise that nothing has happened.
  EXPECT_THAT(env_->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("lanes 0 to 1: out of contacts")));
  EXPECT_THAT(Read<bool>("next/truncated"), ElementsAre(true, true));
  EXPECT_THAT(Read<float>("next/reward"), ElementsAre(0, 0));
  script_.step = absl::OkStatus();
  script_.reset = absl::UnavailableError("gone");
  EXPECT_THAT(env_->Reset(std::vector<uint8_t>{1, 0}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST_F(DeviceEnvTest, AnErrorOfTheDeviceComesBackFromTheStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeFakeDeviceEnv(CartPole(), {}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  fake_->FailNext(FakeBackend::Operation::kLaunch, 1,
                  absl::UnavailableError("illegal address"));
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kUnavailable,
                                    AllOf(HasSubstr("CartPole-v1::Step"),
                                          HasSubstr("illegal address"))));
  fake_->Recover();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_EXPECT_OK(env->Step());
}

// --- State -------------------------------------------------------------------

TEST_F(DeviceEnvTest, AStateOfAnotherLayoutIsRefusedByName) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeFakeDeviceEnv(CartPole(), {.saves_state = true}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict without, state.Clone());
  RILL_ASSERT_OK(without.Delete("simulator/episode"));
  EXPECT_THAT(env->LoadState(without),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("CartPole-v1::LoadState"),
                             HasSubstr("simulator"), HasSubstr("episode"))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict fewer,
                            state.Gather(std::vector<int64_t>{0, 1}));
  EXPECT_THAT(env->LoadState(fewer),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"running\": got bool[2")));
  RILL_ASSERT_OK(env->BeginStep());
  EXPECT_THAT(env->SaveState(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(env->LoadState(state),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  RILL_EXPECT_OK(env->EndStep());
}

TEST_F(DeviceEnvTest, AStateMayHaveGaps) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeFakeDeviceEnv(CartPole(), {.saves_state = true}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor wide,
      Tensor::From<bool>({true, false, false, true, true, false}, {kLanes, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor running, wide.Slice(1, 0, 1));
  RILL_ASSERT_OK(state.Set("running", running));
  RILL_ASSERT_OK(env->LoadState(state));
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                    HasSubstr("lane 1")));
}

TEST_F(ScriptedEnvTest, ASimulatorThatCannotSaveSaysSo) {
  RILL_ASSERT_OK(MakeAndReset());
  const auto refused = StatusIs(absl::StatusCode::kUnimplemented,
                                AllOf(HasSubstr("cannot save its state"),
                                      HasSubstr("Scripted::SaveState")));
  EXPECT_THAT(env_->SaveState(), refused);
  EXPECT_THAT(env_->LoadState(TensorDict({2})), refused);
}

// --- Actions and options -----------------------------------------------------

TEST_F(ScriptedEnvTest, ActionsAreCheckedOnlyWhereAsked) {
  const Tensor wrong = OnDevice<int64_t>({0, 7}, {2});
  RILL_ASSERT_OK(MakeAndReset());
  RILL_ASSERT_OK(env_->step().Find("action")->CopyFrom(wrong));
  EXPECT_THAT(env_->Step(), StatusIs(kInvalidArgument, HasSubstr("lane 1")));
  EXPECT_EQ(script_.steps, 0);
  RILL_ASSERT_OK(MakeAndReset({.check_actions = false}));
  RILL_ASSERT_OK(env_->step().Find("action")->CopyFrom(wrong));
  RILL_EXPECT_OK(env_->Step());
  EXPECT_EQ(script_.steps, 1);
}

TEST_F(ScriptedEnvTest, WrongOptionsAreNamed) {
  EXPECT_THAT(MakeDeviceEnv(spec_, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("simulator: got null")));
  spec_.device = Device::Cpu();
  EXPECT_THAT(Make(), StatusIs(kInvalidArgument, HasSubstr("got cpu")));
}

}  // namespace
}  // namespace rill
