// SPDX-License-Identifier: Apache-2.0
// GymnasiumEnv against the real package: equal seeds and actions give the bits
// that gymnasium.make gives in a program of its own.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/envs/env.h"
#include "rill/envs/env_checker.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;

constexpr int64_t kLanes = 4;
constexpr int64_t kSteps = 1050;  // The longest limit of an episode is 1,000.
constexpr uint64_t kSeed = 7;

// A task, and the modules that it needs beside gymnasium.
struct Task {
  std::string id;
  std::string module = "";
  std::vector<std::string> imports = {};
  int64_t checked_steps = 200;
};

// Ends the test unless the packages that `module` is of are there.
#define RILL_SKIP_WITHOUT(path, module)                                      \
  if ((path).empty()) {                                                      \
    GTEST_SKIP() << "RILL_GYMNASIUM_PATH is not set: a pip --target folder " \
                    "with gymnasium, passed by --test_env";                  \
  }                                                                          \
  if (!std::filesystem::exists(absl::StrCat(path, "/", module))) {           \
    GTEST_SKIP() << path << " has no module " << (module);                   \
  }

std::string PackagePath() {
  const char* const path = std::getenv("RILL_GYMNASIUM_PATH");
  return path == nullptr ? "" : path;
}

absl::StatusOr<std::unique_ptr<Env>> Make(const Task& task) {
  return MakeGymnasiumEnv({.id = task.id,
                           .lanes = kLanes,
                           .children = 2,
                           .seed = kSeed,
                           .python_path = {PackagePath()},
                           .imports = task.imports});
}

// The output of replay.py, read while it is written.
class Replay {
 public:
  explicit Replay(const std::string& command)
      : pipe_(popen(command.c_str(), "r")) {}
  ~Replay() {
    if (pipe_ != nullptr) pclose(pipe_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  template <typename T>
  T Take() {
    T value = {};
    Read(&value, sizeof(value));
    return value;
  }
  bool NextIs(absl::string_view bytes) {
    row_.resize(bytes.size());
    return Read(row_.data(), row_.size()) && row_ == bytes;
  }
  bool IsAtEnd() { return pipe_ != nullptr && std::fgetc(pipe_) == EOF; }

 private:
  bool Read(void* bytes, size_t size) {
    return pipe_ != nullptr && std::fread(bytes, 1, size, pipe_) == size;
  }
  FILE* pipe_;
  std::string row_;
};

absl::string_view Row(const Tensor& leaf, int64_t lane) {
  const size_t size = leaf.size_bytes() / kLanes;
  return {reinterpret_cast<const char*>(leaf.raw_data()) + lane * size, size};
}

class RealPackageTest : public ::testing::TestWithParam<Task> {
 protected:
  void WriteActions(const Env& env, int64_t t, const TensorDict& step) {
    RILL_ASSERT_OK(
        WriteRandomActions(env.spec(), {.seed = kSeed}, t, step, step));
  }
  // Seeds as gymnasium_env.h has them, and the actions of all steps.
  void WriteInputs(const Env& env);
  // Compares a step, and the resets after it.
  void CompareStep(Env& env);

  std::string seeds_file_ = JoinPath(testing::TempDir(), "seeds");
  std::string actions_file_ = JoinPath(testing::TempDir(), "actions");
  std::unique_ptr<Replay> replay_;
  int64_t ends_ = 0;
};

void RealPackageTest::WriteInputs(const Env& env) {
  std::string seeds, actions;
  const Rng rng(kSeed, RngStream::kEnv);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (int64_t episode = 0; episode <= kSteps; ++episode) {
      const uint64_t seed =
          rng.Bits64(episode, static_cast<uint32_t>(lane)) >> 33;
      seeds.append(reinterpret_cast<const char*>(&seed), sizeof(seed));
    }
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step,
                            env.spec().action.Zero({kLanes}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor action, step.Get("action"));
  for (int64_t t = 0; t < kSteps; ++t) {
    WriteActions(env, t, step);
    actions.append(reinterpret_cast<const char*>(action.raw_data()),
                   action.size_bytes());
  }
  RILL_ASSERT_OK(WriteFileAtomically(seeds_file_, seeds));
  RILL_ASSERT_OK(WriteFileAtomically(actions_file_, actions));
}

void RealPackageTest::CompareStep(Env& env) {
  const TensorDict& step = env.step();
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor root, step.Get("observation"));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor next, step.Get("next/observation"));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward, step.Flat<float>("next/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(auto done, step.Flat<bool>("next/done"));
  RILL_ASSERT_OK_AND_ASSIGN(auto terminated,
                            step.Flat<bool>("next/terminated"));
  RILL_ASSERT_OK_AND_ASSIGN(auto truncated, step.Flat<bool>("next/truncated"));
  std::vector<uint8_t> ended(kLanes, 0);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    SCOPED_TRACE(absl::StrCat("lane ", lane));
    ASSERT_TRUE(replay_->NextIs(Row(next, lane)));
    ASSERT_EQ(reward[lane], static_cast<float>(replay_->Take<double>()));
    ASSERT_EQ(terminated[lane], replay_->Take<uint8_t>() != 0);
    ASSERT_EQ(truncated[lane], replay_->Take<uint8_t>() != 0);
    ended[lane] = done[lane];
    ends_ += done[lane];
  }
  RILL_ASSERT_OK(env.Reset(ended));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if (ended[lane] == 0) continue;
    ASSERT_TRUE(replay_->NextIs(Row(root, lane)));
  }
}

TEST_P(RealPackageTest, StepsEqualThoseOfGymnasiumBitForBit) {
  const Task& task = GetParam();
  RILL_SKIP_WITHOUT(PackagePath(), task.module);
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Make(task));
  WriteInputs(*env);
  replay_ = std::make_unique<Replay>(absl::StrCat(
      "PYTHONPATH='", PackagePath(), "' python3 ", std::getenv("TEST_SRCDIR"),
      "/", std::getenv("TEST_WORKSPACE"),
      "/envs/gymnasium/testdata/real/replay.py '", task.id, "' '",
      absl::StrJoin(task.imports, ","), "' ", kLanes, " ", kSteps, " '",
      seeds_file_, "' '", actions_file_, "'"));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(kLanes, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor root, env->step().Get("observation"));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    ASSERT_TRUE(replay_->NextIs(Row(root, lane)));
  }
  for (int64_t t = 0; t < kSteps && !HasFatalFailure(); ++t) {
    SCOPED_TRACE(absl::StrCat("step ", t));
    WriteActions(*env, t, env->step());
    RILL_ASSERT_OK(env->Step());
    CompareStep(*env);
  }
  EXPECT_TRUE(replay_->IsAtEnd());
  EXPECT_THAT(ends_, Gt(0));
}

TEST_P(RealPackageTest, PassesTheChecker) {
  RILL_SKIP_WITHOUT(PackagePath(), GetParam().module);
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Make(GetParam()));
  RILL_EXPECT_OK(CheckEnv(*env, {.steps = GetParam().checked_steps}));
}

INSTANTIATE_TEST_SUITE_P(
    All, RealPackageTest,
    ::testing::Values(Task{"CartPole-v1"}, Task{"MountainCar-v0"},
                      Task{"MountainCarContinuous-v0"}, Task{"Acrobot-v1"},
                      Task{"Pendulum-v1"}, Task{"Hopper-v5", "mujoco"},
                      Task{"HalfCheetah-v5", "mujoco"},
                      Task{"Walker2d-v5", "mujoco"}, Task{"Ant-v5", "mujoco"},
                      Task{"Humanoid-v5", "mujoco"},
                      Task{"InvertedPendulum-v5", "mujoco"},
                      Task{"Reacher-v5", "mujoco"},
                      Task{"ALE/Pong-v5", "ale_py", {"ale_py"}, 20}),
    [](const auto& info) {
      std::string name;
      for (const char c : info.param.id) {
        name += absl::ascii_isalnum(c) ? c : '_';
      }
      return name;
    });

TEST(GymnasiumEnvTest, Example) {
  RILL_SKIP_WITHOUT(PackagePath(), "");
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeGymnasiumEnv({.id = "CartPole-v1",
                                              .lanes = 8,
                                              .children = 2,
                                              .python_path = {PackagePath()}}));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>(8, 1)));
  for (int t = 0; t < 5; ++t) RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(auto reward,
                            env->step().Flat<float>("next/reward"));
  EXPECT_THAT(reward, Each(1.0f));
}

TEST(RealPackageFaultTest, AMissingModelIsAnErrorThatNamesTheFile) {
  RILL_SKIP_WITHOUT(PackagePath(), "mujoco");
  EXPECT_THAT(MakeGymnasiumEnv({.id = "Hopper-v5",
                                .kwargs = R"({"xml_file": "/no/such.xml"})",
                                .python_path = {PackagePath()}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/no/such.xml does not exist")));
}

TEST(RealPackageFaultTest, AnUnknownIdIsAnErrorThatNamesIt) {
  RILL_SKIP_WITHOUT(PackagePath(), "");
  EXPECT_THAT(
      MakeGymnasiumEnv({.id = "NoSuchTask-v0", .python_path = {PackagePath()}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NoSuchTask")));
}

}  // namespace
}  // namespace rill
