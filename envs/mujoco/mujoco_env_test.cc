// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/mujoco/mujoco_env.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mujoco/mujoco.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/mujoco_model.h"
#include "rill/envs/mujoco/reset_noise.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A cart on a rail, pushed by one motor.
constexpr char kCart[] = R"(
  <mujoco>
    <option timestep="0.01"/>
    <worldbody>
      <body>
        <joint name="rail" type="slide" axis="1 0 0"/>
        <geom size="0.1" mass="1"/>
      </body>
    </worldbody>
    <actuator>
      <motor joint="rail" ctrllimited="true" ctrlrange="-1 1"/>
    </actuator>
  </mujoco>)";

MujocoTask ToOne() {
  return {.name = "Cart",
          .reward = [](const MujocoStep& step) -> MujocoOutcome {
            const double x = step.data.qpos[0];
            return {.reward = -std::abs(x - 1), .terminated = std::abs(x) > 2};
          },
          .reset = ResetNoise({.scale = 0.1})};
}

absl::StatusOr<std::unique_ptr<Env>> MakeCart(absl::string_view xml,
                                              const MujocoEnvOptions& options) {
  RILL_ASSIGN_OR_RETURN(const MujocoModel model, ParseMujocoModel(xml));
  return MakeMujocoEnv(model, ToOne(), options);
}

absl::Status ResetAll(Env& env) {
  return env.Reset(std::vector<uint8_t>(env.lanes(), 1));
}

// Random actions, inside the spec.
absl::Status Act(Env& env, uint64_t step) {
  RILL_ASSIGN_OR_RETURN(const TensorDict actions,
                        env.spec().action.Random(
                            {env.lanes()}, Rng(3, RngStream::kPolicy), step));
  RILL_ASSIGN_OR_RETURN(const auto from, actions.Flat<float>("action"));
  RILL_ASSIGN_OR_RETURN(const auto to, env.step().Flat<float>("action"));
  std::copy(from.begin(), from.end(), to.begin());
  return env.Step();
}

// All rewards and observations of some steps; lanes that end begin anew.
absl::StatusOr<std::vector<double>> Trace(Env& env, int steps) {
  std::vector<double> trace;
  RILL_ASSIGN_OR_RETURN(const auto next,
                        env.step().Flat<double>("next/observation"));
  RILL_ASSIGN_OR_RETURN(const auto reward,
                        env.step().Flat<float>("next/reward"));
  RILL_ASSIGN_OR_RETURN(const auto done, env.step().Flat<bool>("next/done"));
  for (int t = 0; t < steps; ++t) {
    RILL_RETURN_IF_ERROR(Act(env, t));
    trace.insert(trace.end(), next.begin(), next.end());
    trace.insert(trace.end(), reward.begin(), reward.end());
    RILL_RETURN_IF_ERROR(
        env.Reset(std::vector<uint8_t>(done.begin(), done.end())));
  }
  return trace;
}

TEST(MujocoEnvTest, Example) {
  const std::string path = JoinPath(testing::TempDir(), "cart.xml");
  RILL_ASSERT_OK(WriteFileAtomically(path, kCart));
  const auto example = [&]() -> absl::Status {
    RILL_ASSIGN_OR_RETURN(MujocoModel model, LoadMujocoModel(path));
    MujocoTask task = {
        .name = "Cart",
        .reward = [](const MujocoStep& step) -> MujocoOutcome {
          const double x = step.data.qpos[0];
          return {.reward = -std::abs(x - 1), .terminated = std::abs(x) > 2};
        },
        .reset = ResetNoise({.scale = 0.1}),
    };
    RILL_ASSIGN_OR_RETURN(
        auto env, MakeMujocoEnv(model, task,
                                {.lanes = 8, .threads = 2, .frame_skip = 5}));
    RILL_RETURN_IF_ERROR(ResetAll(*env));
    RILL_RETURN_IF_ERROR(Act(*env, 0));
    RILL_ASSIGN_OR_RETURN(const auto next,
                          env->step().Flat<double>("next/observation"));
    RILL_ASSIGN_OR_RETURN(const auto reward,
                          env->step().Flat<float>("next/reward"));
    EXPECT_EQ(next.size(), 16);
    for (int l = 0; l < 8; ++l) {
      EXPECT_EQ(reward[l], static_cast<float>(next[2 * l] - 1));
    }
    return absl::OkStatus();
  };
  RILL_EXPECT_OK(example());
}

TEST(MujocoEnvTest, VelocityIsThatOfThePositionPerSecond) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel model, ParseMujocoModel(kCart));
  MujocoTask task = ToOne();
  task.reset = nullptr;
  task.reward = [](const MujocoStep& step) -> MujocoOutcome {
    EXPECT_EQ(step.action[0], 1);
    return {.reward = step.velocity};
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeMujocoEnv(model, task, {.frame_skip = 4}));
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env->step().Flat<float>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  action[0] = 1;
  // Acceleration 1, semi-implicit steps of 0.01: velocities 0.01, 0.02, ...
  RILL_ASSERT_OK(env->Step());
  EXPECT_NEAR(reward[0], (0.01 + 0.02 + 0.03 + 0.04) / 4, 1e-7);
  RILL_ASSERT_OK(env->Step());
  EXPECT_NEAR(reward[0], (0.05 + 0.06 + 0.07 + 0.08) / 4, 1e-7);
}

TEST(MujocoEnvTest, WrongArgumentsAreNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel cart, ParseMujocoModel(kCart));
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel still, ParseMujocoModel(R"(
      <mujoco><worldbody><geom size="1"/></worldbody></mujoco>)"));
  const auto refuses = [](const auto& env, absl::string_view why) {
    EXPECT_THAT(env, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr(std::string(why))));
  };
  refuses(MakeMujocoEnv(nullptr, ToOne()), "no model");
  refuses(MakeMujocoEnv(cart, {}), "no reward");
  refuses(MakeMujocoEnv(still, ToOne()), "no actuator");
  refuses(MakeMujocoEnv(cart, ToOne(), {.frame_skip = 0}), "frame_skip: got 0");
  refuses(MakeMujocoEnv(cart, ToOne(), {.lanes = 0}), "lanes");
  refuses(MakeMujocoEnv(cart, ToOne(), {.threads = 0}), "threads");
  MujocoTask sees = ToOne();
  sees.observe = [](const mjModel&, const mjData&, absl::Span<double>) {};
  refuses(MakeMujocoEnv(cart, sees), "observation_size: got 0");
  EXPECT_THAT(MakeHopper({.xml_file = "/no/such.xml"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.xml")));
  const std::string path = JoinPath(testing::TempDir(), "no_robot.xml");
  RILL_ASSERT_OK(WriteFileAtomically(path, kCart));
  refuses(MakeHopper({.xml_file = path}), "got 1, 1, want >= 3");
  refuses(MakeHumanoid({.xml_file = path}), "got 1, 1, want >= 3, >= 6");
  refuses(MakeAnt({.main_body = 14}), "main_body: got 14, want [0, 14)");
}

TEST(MujocoEnvTest, ActionsOutsideTheRangeMoveNoLane) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCart(kCart, {.lanes = 2}));
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(const auto trace, Trace(*env, 2));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env->step().Flat<float>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  for (const float wrong : {1.5f, std::nanf("")}) {
    action[0] = 0;
    action[1] = wrong;
    EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("lane 1")));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(auto a, before.Flat<double>("lane/integration"));
  RILL_ASSERT_OK_AND_ASSIGN(auto b, after.Flat<double>("lane/integration"));
  EXPECT_EQ(a, b);
}

// A motor so strong that a big action is too much.
constexpr char kRocket[] = R"(
  <mujoco>
    <worldbody>
      <body>
        <joint name="rail" type="slide" axis="1 0 0"/>
        <geom size="0.1" mass="0.001"/>
      </body>
    </worldbody>
    <actuator><motor joint="rail" gear="1e12"/></actuator>
  </mujoco>)";

TEST(MujocoEnvTest, ASimulationThatDivergesFailsItsLaneAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCart(kRocket, {.lanes = 3}));
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, env->step().Flat<float>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(auto done, env->step().Flat<bool>("next/done"));
  RILL_ASSERT_OK_AND_ASSIGN(auto terminated,
                            env->step().Flat<bool>("next/terminated"));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  for (int i = 0; i < 3; ++i) {
    action[0] = action[2] = 0;
    action[1] = 1;
    EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInternal,
                                      AllOf(HasSubstr("lane 1: MuJoCo: "),
                                            HasSubstr("simulation is unstable"),
                                            Not(HasSubstr("lane 0")))));
    EXPECT_THAT(done, ElementsAre(false, true, false));
    EXPECT_THAT(terminated, Each(false));
    EXPECT_EQ(reward[1], 0);
    EXPECT_NE(reward[0], 0);
    // It goes on after a reset, and nothing of the failure is left.
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1, 0}));
    action[1] = 0;
    RILL_ASSERT_OK(env->Step());
  }
  action[0] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInternal,
                                    HasSubstr("lane 0: MuJoCo: ")));
}

// Boxes that fall into a heap, in too little memory for it.
std::string Heap() {
  std::string boxes;
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&boxes, "<body pos='", 0.05 * i, " 0 ", 0.1 * i + 0.2,
                    "'><freejoint/><geom type='box' size='.1 .1 .1'/></body>");
  }
  return absl::StrCat(R"(
      <mujoco>
        <size memory="8K"/>
        <worldbody>
          <geom type="plane" size="5 5 0.1"/>)",
                      boxes, R"(
          <body pos="5 0 3">
            <joint name="rail" type="slide" axis="1 0 0"/>
            <geom size="0.1" mass="1"/>
          </body>
        </worldbody>
        <actuator><motor joint="rail" ctrlrange="-1 1"/></actuator>
      </mujoco>)");
}

TEST(MujocoEnvTest, AFatalErrorInsideOfMujocoFailsTheLane) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCart(Heap(), {.lanes = 2}));
  // Overlaps at the start, or a little later.
  absl::Status status = ResetAll(*env);
  for (int t = 0; t < 300 && status.ok(); ++t) status = env->Step();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               AllOf(HasSubstr("lane 0: MuJoCo: "),
                                     HasSubstr("stack overflow"),
                                     HasSubstr("lane 1: MuJoCo: "))));
}

// Each task, its lanes in `threads` threads.
std::vector<std::unique_ptr<Env>> Tasks(int64_t lanes, int threads,
                                        int64_t max_episode_steps = 1000) {
  std::vector<std::unique_ptr<Env>> tasks;
  const auto add = [&]<typename Options>(absl::StatusOr<std::unique_ptr<Env>> (
                       *make)(const Options&)) {
    auto env = make({.lanes = lanes,
                     .threads = threads,
                     .max_episode_steps = max_episode_steps,
                     .seed = 5});
    RILL_EXPECT_OK(env);
    if (env.ok()) tasks.push_back(*std::move(env));
  };
  add(&MakeHopper);
  add(&MakeHalfCheetah);
  add(&MakeWalker2d);
  add(&MakeAnt);
  add(&MakeHumanoid);
  add(&MakeInvertedPendulum);
  EXPECT_EQ(tasks.size(), 6);
  return tasks;
}

TEST(MujocoTasksTest, DataDoNotDependOnThreads) {
  const auto alone = Tasks(3, 1);
  const auto pool = Tasks(3, 2);
  for (size_t i = 0; i < alone.size(); ++i) {
    SCOPED_TRACE(alone[i]->name());
    RILL_ASSERT_OK(ResetAll(*alone[i]));
    RILL_ASSERT_OK(ResetAll(*pool[i]));
    RILL_ASSERT_OK_AND_ASSIGN(const auto a, Trace(*alone[i], 40));
    RILL_ASSERT_OK_AND_ASSIGN(const auto b, Trace(*pool[i], 40));
    EXPECT_EQ(a, b);
  }
}

TEST(MujocoTasksTest, ASavedStateContinuesExactly) {
  const auto tasks = Tasks(2, 1);
  const auto others = Tasks(2, 1);
  for (size_t i = 0; i < tasks.size(); ++i) {
    SCOPED_TRACE(tasks[i]->name());
    RILL_ASSERT_OK(ResetAll(*tasks[i]));
    RILL_ASSERT_OK(Trace(*tasks[i], 7));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict saved, tasks[i]->SaveState());
    RILL_ASSERT_OK_AND_ASSIGN(const auto want, Trace(*tasks[i], 30));
    RILL_ASSERT_OK(others[i]->LoadState(saved));
    RILL_ASSERT_OK_AND_ASSIGN(const auto got, Trace(*others[i], 30));
    EXPECT_EQ(got, want);
    RILL_ASSERT_OK_AND_ASSIGN(auto values,
                              saved.Flat<double>("lane/integration"));
    values[1] = std::nan("");
    EXPECT_THAT(others[i]->LoadState(saved),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("integration: got nan, want finite")));
  }
}

TEST(MujocoTasksTest, TheTimeLimitTruncates) {
  for (const auto& env : Tasks(1, 1, /*max_episode_steps=*/2)) {
    SCOPED_TRACE(env->name());
    RILL_ASSERT_OK(ResetAll(*env));
    RILL_ASSERT_OK_AND_ASSIGN(auto truncated,
                              env->step().Flat<bool>("next/truncated"));
    RILL_ASSERT_OK(Act(*env, 0));
    EXPECT_FALSE(truncated[0]);
    RILL_ASSERT_OK(Act(*env, 1));
    EXPECT_TRUE(truncated[0]);
  }
}

TEST(MujocoEnvTest, AModelThatSleepsSavesNoState) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCart(R"(
      <mujoco>
        <option><flag sleep="enable"/></option>
        <worldbody><body><joint name="rail" type="slide"/><geom size="0.1"/>
        </body></worldbody>
        <actuator><motor joint="rail"/></actuator>
      </mujoco>)",
                                               {}));
  RILL_ASSERT_OK(ResetAll(*env));
  EXPECT_THAT(env->SaveState(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("sleep")));
}

TEST(ResetNoiseTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel model, ParseMujocoModel(kCart));
  const auto walk = [](const MujocoStep&) { return MujocoOutcome(); };
  MujocoTask task = {.reward = walk, .reset = ResetNoise({.scale = 0.1})};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeMujocoEnv(model, task));
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(auto root, env->step().Flat<double>("observation"));
  EXPECT_THAT(root, Each(DoubleNear(0, 0.1)));
  EXPECT_NE(root[0], root[1]);
}

// Mean, variance and fourth moment of draws of a distribution around 0.
struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, max = 0;
};
Moments MomentsOf(const std::vector<double>& draws) {
  Moments m;
  const auto n = static_cast<double>(draws.size());
  for (const double x : draws) {
    m.mean += x / n;
    m.variance += x * x / n;
    m.kurtosis += x * x * x * x / n;
    m.max = std::max(m.max, std::abs(x));
  }
  m.kurtosis /= m.variance * m.variance;
  return m;
}

TEST(ResetNoiseTest, PositionsAreUniformAndVelocitiesAsAsked) {
  RILL_ASSERT_OK_AND_ASSIGN(MujocoModel model, ParseMujocoModel(kCart));
  const std::unique_ptr<mjData, void (*)(mjData*)> data(
      mj_makeData(model.get()), &mj_deleteData);
  for (const bool normal : {false, true}) {
    const auto reset = ResetNoise({.scale = 0.5, .normal_velocity = normal});
    std::vector<double> positions, velocities;
    double product = 0;
    for (uint64_t episode = 0; episode < 100000; ++episode) {
      mj_resetData(model.get(), data.get());
      reset(*model, Rng(1, RngStream::kEnv), episode, data.get());
      positions.push_back(data->qpos[0]);
      velocities.push_back(data->qvel[0]);
      product += data->qpos[0] * data->qvel[0] / 100000;
    }
    // Bounds: four standard errors of 100,000 draws or more.
    const Moments q = MomentsOf(positions);
    EXPECT_NEAR(q.mean, 0, 0.004);
    EXPECT_NEAR(q.variance, 0.25 / 3, 0.001);
    EXPECT_NEAR(q.kurtosis, 1.8, 0.02);
    EXPECT_LE(q.max, 0.5);
    const Moments v = MomentsOf(velocities);
    EXPECT_NEAR(v.mean, 0, 0.007);
    EXPECT_NEAR(v.variance, normal ? 0.25 : 0.25 / 3, 0.005);
    EXPECT_NEAR(v.kurtosis, normal ? 3 : 1.8, 0.15);
    EXPECT_EQ(v.max > 0.5, normal);
    EXPECT_NEAR(product, 0, 0.004);
  }
}

TEST(HopperTest, Example) {
  RILL_EXPECT_OK(MakeHopper({.lanes = 16, .threads = 2}));
}
TEST(Walker2dTest, Example) {
  RILL_EXPECT_OK(MakeWalker2d({.lanes = 16, .threads = 2}));
}
TEST(HalfCheetahTest, Example) {
  RILL_EXPECT_OK(MakeHalfCheetah({.lanes = 16, .threads = 2}));
}
TEST(AntTest, Example) { RILL_EXPECT_OK(MakeAnt({.lanes = 16, .threads = 2})); }
TEST(HumanoidTest, Example) {
  RILL_EXPECT_OK(MakeHumanoid({.lanes = 16, .threads = 2}));
}
TEST(InvertedPendulumTest, Example) {
  RILL_EXPECT_OK(MakeInvertedPendulum({.lanes = 16, .threads = 2}));
}

}  // namespace
}  // namespace rill
