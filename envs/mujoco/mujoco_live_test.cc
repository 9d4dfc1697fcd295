// SPDX-License-Identifier: Apache-2.0
// Rill's tasks beside Gymnasium's, which step in a child process: from equal
// states and with equal actions, whole episodes are equal.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/envs/env.h"
#include "rill/envs/gymnasium/gymnasium_env.h"
#include "rill/envs/mujoco/ant.h"
#include "rill/envs/mujoco/half_cheetah.h"
#include "rill/envs/mujoco/hopper.h"
#include "rill/envs/mujoco/humanoid.h"
#include "rill/envs/mujoco/inverted_pendulum.h"
#include "rill/envs/mujoco/walker2d.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Gt;
using ::testing::Le;
using ::testing::SizeIs;

constexpr double kTolerance = 1e-8;
constexpr int64_t kLanes = 2;
constexpr int64_t kSteps = 1050;  // Episodes are cut off after 1,000.

struct Task {
  std::string id;
  std::function<absl::StatusOr<std::unique_ptr<Env>>()> make;
};

template <typename Options>
Task Default(const char* id,
             absl::StatusOr<std::unique_ptr<Env>> (*make)(const Options&)) {
  return {id, [make] {
            Options options;
            options.lanes = kLanes;
            return make(options);
          }};
}

std::string Folder(const char* path) {
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/",
                      std::getenv("TEST_WORKSPACE"), "/", path);
}

// The greatest distance of two rows, relative where values are large.
double Distance(absl::Span<const double> a, absl::Span<const double> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(d <= distance)) distance = d;
  }
  return distance;
}

class MujocoLiveTest : public testing::TestWithParam<Task> {
 protected:
  // Begins episodes of `theirs_`, and gives those lanes of `ours_` their state.
  void Begin(const std::vector<uint8_t>& mask);
  void CompareStep(std::vector<uint8_t>* ended);

  std::unique_ptr<Env> ours_, theirs_;
  int64_t ends_ = 0;
};

void MujocoLiveTest::Begin(const std::vector<uint8_t>& mask) {
  RILL_ASSERT_OK(ours_->Reset(mask));
  RILL_ASSERT_OK(theirs_->Reset(mask));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict saved, ours_->SaveState());
  for (const auto& [key, from] :
       {std::pair("lane/integration", "observation/state"),
        std::pair("lane/position", "observation/position")}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto to, saved.Flat<double>(key));
    RILL_ASSERT_OK_AND_ASSIGN(auto state, theirs_->step().Flat<double>(from));
    ASSERT_THAT(state, SizeIs(to.size()));
    const size_t size = to.size() / kLanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      if (mask[lane] == 0) continue;
      std::copy_n(state.begin() + lane * size, size, to.begin() + lane * size);
    }
  }
  RILL_ASSERT_OK(ours_->LoadState(saved));
}

void MujocoLiveTest::CompareStep(std::vector<uint8_t>* ended) {
  const TensorDict &ours = ours_->step(), &theirs = theirs_->step();
  RILL_ASSERT_OK_AND_ASSIGN(auto observation,
                            ours.Flat<double>("next/observation"));
  RILL_ASSERT_OK_AND_ASSIGN(auto want,
                            theirs.Flat<double>("next/observation/task"));
  EXPECT_THAT(Distance(observation, want), Le(kTolerance));
  RILL_ASSERT_OK_AND_ASSIGN(auto reward, ours.Flat<float>("next/reward"));
  RILL_ASSERT_OK_AND_ASSIGN(auto want_reward,
                            theirs.Flat<float>("next/reward"));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_THAT(std::abs(double{reward[lane]} - want_reward[lane]),
                Le(kTolerance * std::max(1.0f, std::abs(want_reward[lane]))));
  }
  for (const char* key : {"next/terminated", "next/truncated"}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto flags, ours.Flat<bool>(key));
    RILL_ASSERT_OK_AND_ASSIGN(auto want_flags, theirs.Flat<bool>(key));
    EXPECT_THAT(flags, testing::ElementsAreArray(want_flags)) << key;
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto done, theirs.Flat<bool>("next/done"));
  ended->assign(done.begin(), done.end());
  ends_ += std::count(done.begin(), done.end(), true);
}

TEST_P(MujocoLiveTest, EpisodesEqualGymnasiums) {
  const char* const path = std::getenv("RILL_GYMNASIUM_PATH");
  if (path == nullptr ||
      !std::filesystem::exists(absl::StrCat(path, "/mujoco"))) {
    GTEST_SKIP() << "RILL_GYMNASIUM_PATH names no pip --target folder with "
                    "gymnasium and mujoco, passed by --test_env";
  }
  RILL_ASSERT_OK_AND_ASSIGN(ours_, GetParam().make());
  RILL_ASSERT_OK_AND_ASSIGN(
      theirs_,
      MakeGymnasiumEnv({.id = absl::StrCat("live/", GetParam().id),
                        .lanes = kLanes,
                        .python_path = {path, Folder("envs/mujoco/testdata"),
                                        Folder("testing/fixtures/mujoco")},
                        .imports = {"live_tasks"}}));
  RILL_ASSERT_OK_AND_ASSIGN(auto action, ours_->step().Flat<float>("action"));
  RILL_ASSERT_OK_AND_ASSIGN(auto copy, theirs_->step().Flat<float>("action"));
  std::vector<uint8_t> ended(kLanes, 1);
  for (int64_t t = 0; t < kSteps && !HasFailure(); ++t) {
    SCOPED_TRACE(absl::StrCat("step ", t));
    if (std::count(ended.begin(), ended.end(), 1) > 0) Begin(ended);
    RILL_ASSERT_OK(WriteRandomActions(ours_->spec(), {.seed = 7}, t,
                                      ours_->step(), ours_->step()));
    ASSERT_THAT(copy, SizeIs(action.size()));
    std::copy(action.begin(), action.end(), copy.begin());
    RILL_ASSERT_OK(ours_->Step());
    RILL_ASSERT_OK(theirs_->Step());
    CompareStep(&ended);
  }
  EXPECT_THAT(ends_, Gt(0));
}

INSTANTIATE_TEST_SUITE_P(
    All, MujocoLiveTest,
    testing::Values(Default("Hopper-v5", MakeHopper),
                    Default("HalfCheetah-v5", MakeHalfCheetah),
                    Default("Walker2d-v5", MakeWalker2d),
                    Default("Ant-v5", MakeAnt),
                    Default("Humanoid-v5", MakeHumanoid),
                    Default("InvertedPendulum-v5", MakeInvertedPendulum)),
    [](const testing::TestParamInfo<Task>& info) {
      std::string name = info.param.id;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace rill
