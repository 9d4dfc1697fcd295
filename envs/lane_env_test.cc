// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/lane_env.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

// The results of a lane's next calls, as a test wants them.
struct Faults {
  absl::Status reset;
  absl::Status step;
  absl::Status load;
  std::optional<float> reward;
  bool throws = false;  // The error of `step` or `reset`, as an exception.

  absl::Status Fail(const absl::Status& status) const {
    if (throws && !status.ok()) {
      throw std::runtime_error(std::string(status.message()));
    }
    return status;
  }
};

// Walks along a line by its action and a draw, and ends where it is far out.
class Walker final : public Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Walker>> Create(
      const TensorDict& row, const Faults* faults = nullptr) {
    auto walker = std::make_unique<Walker>();
    walker->faults_ = faults;
    RILL_ASSIGN_OR_RETURN(walker->action_, row.Flat<float>("action"));
    RILL_ASSIGN_OR_RETURN(walker->root_, row.Flat<float>("observation"));
    RILL_ASSIGN_OR_RETURN(walker->next_, row.Flat<float>("next/observation"));
    return walker;
  }

  absl::Status Reset(const Rng& rng, uint64_t episode) override {
    if (faults_ != nullptr) {
      RILL_RETURN_IF_ERROR(faults_->Fail(faults_->reset));
    }
    rng_ = rng;
    episode_ = episode;
    draws_ = 0;
    position_ = Draw();
    root_[0] = static_cast<float>(position_);
    return absl::OkStatus();
  }

  absl::StatusOr<LaneStep> Step() override {
    position_ += action_[0] + Draw();
    next_[0] = static_cast<float>(position_);
    if (faults_ != nullptr) {
      RILL_RETURN_IF_ERROR(faults_->Fail(faults_->step));
    }
    float reward = -std::abs(next_[0]);
    if (faults_ != nullptr && faults_->reward) reward = *faults_->reward;
    return LaneStep{.reward = reward,
                    .terminated = std::abs(position_) > 3,
                    .truncated = draws_ > 15};
  }

  absl::StatusOr<TensorDict> SaveState() const override {
    RILL_ASSIGN_OR_RETURN(Tensor position,
                          Tensor::From<double>({position_}, {1}));
    RILL_ASSIGN_OR_RETURN(
        Tensor draws,
        Tensor::From<uint64_t>({draws_, episode_, rng_.seed()}, {3}));
    return TensorDict::Create(
        {}, {{"position", std::move(position)}, {"draws", std::move(draws)}});
  }
  absl::Status LoadState(const TensorDict& state) override {
    if (faults_ != nullptr) {
      RILL_RETURN_IF_ERROR(faults_->load);
    }
    RILL_ASSIGN_OR_RETURN(const auto position, state.Flat<double>("position"));
    RILL_ASSIGN_OR_RETURN(const auto draws, state.Flat<uint64_t>("draws"));
    position_ = position[0];
    draws_ = static_cast<uint32_t>(draws[0]);
    episode_ = draws[1];
    rng_ = Rng(draws[2], RngStream::kEnv);
    return absl::OkStatus();
  }

 private:
  double Draw() { return rng_.UniformDouble(episode_, draws_++) - 0.5; }

  const Faults* faults_ = nullptr;
  absl::Span<const float> action_;
  absl::Span<float> root_, next_;
  Rng rng_{0};
  uint64_t episode_ = 0;
  uint32_t draws_ = 0;
  double position_ = 0;
};

absl::StatusOr<EnvSpec> WalkerSpec(int64_t lanes) {
  EnvSpec spec = {.name = "Walker", .lanes = lanes};
  RILL_RETURN_IF_ERROR(spec.observation.Set(
      "observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_RETURN_IF_ERROR(spec.action.Set(
      "action", LeafSpec::Bounded(DType::kFloat32, {1}, -1, 1)));
  return spec;
}

// Without faults, or one entry of them a lane.
absl::StatusOr<std::unique_ptr<Env>> MakeWalkers(
    int64_t lanes, const LaneEnvOptions& options = {},
    const std::vector<Faults>* faults = nullptr) {
  RILL_ASSIGN_OR_RETURN(EnvSpec spec, WalkerSpec(lanes));
  return MakeLaneEnv(
      std::move(spec),
      [faults](int64_t lane, const TensorDict& row) {
        return Walker::Create(row, faults ? &(*faults)[lane] : nullptr);
      },
      options);
}

absl::Status ResetAll(Env* env) {
  return env->Reset(std::vector<uint8_t>(env->lanes(), 1));
}

// A caller does this before the next step.
absl::Status Advance(Env* env) {
  RILL_ASSIGN_OR_RETURN(const auto done, env->step().Flat<bool>("next/done"));
  for (const char* key : {"observation", "done", "terminated", "truncated"}) {
    RILL_ASSIGN_OR_RETURN(const Tensor root, env->step().Get(key));
    RILL_ASSIGN_OR_RETURN(const Tensor next,
                          env->step().Get(std::string("next/") + key));
    RILL_RETURN_IF_ERROR(root.CopyFrom(next));
  }
  return env->Reset(std::vector<uint8_t>(done.begin(), done.end()));
}

// Actions are a function of (step, lane).
absl::Status FillActions(int64_t step, Env* env) {
  RILL_ASSIGN_OR_RETURN(const auto actions, env->step().Flat<float>("action"));
  for (int64_t lane = 0; lane < env->lanes(); ++lane) {
    actions[lane] = 2 * Rng(9).UniformFloat(step, lane) - 1;
  }
  return absl::OkStatus();
}

// The steps of a run after a reset of all.
absl::StatusOr<std::vector<TensorDict>> Trace(int64_t steps, Env* env) {
  std::vector<TensorDict> trace;
  for (int64_t t = 0; t < steps; ++t) {
    RILL_RETURN_IF_ERROR(FillActions(t, env));
    RILL_RETURN_IF_ERROR(env->Step());
    RILL_ASSIGN_OR_RETURN(TensorDict step, env->step().Clone());
    trace.push_back(std::move(step));
    RILL_RETURN_IF_ERROR(Advance(env));
  }
  return trace;
}

std::vector<float> Floats(const Env& env, absl::string_view key) {
  const auto flat = env.step().Flat<float>(key);
  return flat.ok() ? std::vector<float>(flat->begin(), flat->end())
                   : std::vector<float>();
}
std::vector<bool> Flags(const Env& env, absl::string_view key) {
  const auto flat = env.step().Flat<bool>(key);
  return flat.ok() ? std::vector<bool>(flat->begin(), flat->end())
                   : std::vector<bool>();
}

TEST(LaneEnvTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const EnvSpec spec, WalkerSpec(4));
  const auto MakeWalker = [](const TensorDict& row) {
    return Walker::Create(row);
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env,
      MakeLaneEnv(
          spec, [&](int64_t, const TensorDict& row) { return MakeWalker(row); },
          {.threads = 2}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  EXPECT_THAT(Floats(*env, "observation"), Each(testing::Ne(0)));
  RILL_ASSERT_OK(env->BeginStep());
  RILL_ASSERT_OK(env->EndStep());
  EXPECT_THAT(Floats(*env, "next/observation"), Each(testing::Ne(0)));
  EXPECT_THAT(Floats(*env, "next/reward"), Each(testing::Lt(0)));
}

TEST(LaneEnvTest, DataDoNotDependOnThreads) {
  constexpr int64_t kLanes = 7;
  RILL_ASSERT_OK_AND_ASSIGN(auto one, MakeWalkers(kLanes, {.seed = 5}));
  RILL_ASSERT_OK(ResetAll(one.get()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto want, Trace(300, one.get()));
  int64_t episodes = 0;
  for (const TensorDict& step : want) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto done, step.Flat<bool>("next/done"));
    episodes += std::count(done.begin(), done.end(), true);
  }
  EXPECT_GT(episodes, 10 * kLanes);
  for (const int threads : {2, 3, 100}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto env, MakeWalkers(kLanes, {.threads = threads, .seed = 5}));
    RILL_ASSERT_OK(ResetAll(env.get()));
    RILL_ASSERT_OK_AND_ASSIGN(const auto got, Trace(300, env.get()));
    for (size_t t = 0; t < want.size(); ++t) {
      RILL_ASSERT_OK(got[t].CheckEqual(want[t])) << "step " << t;
    }
  }
}

TEST(LaneEnvTest, ALanesEpisodesAreItsOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto few, MakeWalkers(2, {.seed = 5}));
  RILL_ASSERT_OK_AND_ASSIGN(auto many, MakeWalkers(3, {.seed = 5}));
  RILL_ASSERT_OK(ResetAll(few.get()));
  RILL_ASSERT_OK(ResetAll(many.get()));
  // Lane 0 begins more often, which lane 1 does not see.
  RILL_ASSERT_OK(many->Reset(std::vector<uint8_t>{1, 0, 0}));
  EXPECT_NE(Floats(*few, "observation")[0], Floats(*many, "observation")[0]);
  EXPECT_EQ(Floats(*few, "observation")[1], Floats(*many, "observation")[1]);
  EXPECT_NE(Floats(*many, "observation")[1], Floats(*many, "observation")[2]);
}

TEST(LaneEnvTest, SeedsBeginWithTheNextReset) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(3, {.seed = 5}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  const std::vector<float> first = Floats(*env, "observation");
  RILL_ASSERT_OK(env->Seed(6));
  EXPECT_EQ(Floats(*env, "observation"), first);
  RILL_ASSERT_OK(ResetAll(env.get()));
  const std::vector<float> other = Floats(*env, "observation");
  EXPECT_NE(other, first);
  RILL_ASSERT_OK(env->Seed(5));
  RILL_ASSERT_OK(ResetAll(env.get()));
  EXPECT_EQ(Floats(*env, "observation"), first);
}

TEST(LaneEnvTest, TruncatesWhereTimeIsUp) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(2, {.max_episode_steps = 2}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(Flags(*env, "next/done"), ElementsAre(false, false));
  RILL_ASSERT_OK(Advance(env.get()));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1}));  // Begins anew.
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(Flags(*env, "next/done"), ElementsAre(true, false));
  EXPECT_THAT(Flags(*env, "next/truncated"), ElementsAre(true, false));
  EXPECT_THAT(Flags(*env, "next/terminated"), ElementsAre(false, false));
}

TEST(LaneEnvTest, AWrongActionChangesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(3));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                            env->step().Flat<float>("action"));
  actions[1] = 2;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step, env->step().Clone());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  // It has precedence over lane 2, which was never reset.
  EXPECT_THAT(env->Step(), StatusIs(kInvalidArgument,
                                    AllOf(HasSubstr("Walker::Step: lane 1"),
                                          HasSubstr("got 2"))));
  actions[1] = 0;
  EXPECT_THAT(env->Step(),
              StatusIs(kFailedPrecondition, HasSubstr("lane 2 is done or")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
  RILL_EXPECT_OK(after.CheckEqual(state));
  actions[1] = 2;
  RILL_EXPECT_OK(env->step().CheckEqual(step));
}

TEST(LaneEnvTest, ALaneThatIsDoneIsNotStepped) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(2, {.max_episode_steps = 1}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 0}));
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 1")));
}

class FailingLaneEnvTest : public testing::TestWithParam<int> {};

TEST_P(FailingLaneEnvTest, ALaneThatFailsIsCutOffAndTheOthersStep) {
  std::vector<Faults> faults(4);
  const LaneEnvOptions options = {.threads = GetParam(), .seed = 2};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(4, options, &faults));
  RILL_ASSERT_OK_AND_ASSIGN(auto sound, MakeWalkers(4, {.seed = 2}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(ResetAll(sound.get()));
  faults[1].step = absl::InvalidArgumentError("the left knee is broken");
  faults[3].reward = std::numeric_limits<float>::quiet_NaN();
  // Neither of the codes that promise that nothing has happened.
  EXPECT_THAT(
      env->Step(),
      StatusIs(absl::StatusCode::kInternal,
               "Walker::Step: lane 1: the left knee is broken; lane 3: reward: "
               "got nan, want a finite number"));
  RILL_ASSERT_OK(sound->Step());
  for (const int lane : {0, 2}) {
    for (const char* key : {"next/observation", "next/reward"}) {
      EXPECT_EQ(Floats(*env, key)[lane], Floats(*sound, key)[lane]) << key;
    }
  }
  for (const int lane : {1, 3}) {
    EXPECT_EQ(Floats(*env, "next/observation")[lane],
              Floats(*env, "observation")[lane]);
    EXPECT_EQ(Floats(*env, "next/reward")[lane], 0);
  }
  EXPECT_THAT(Flags(*env, "next/done"), ElementsAre(false, true, false, true));
  EXPECT_THAT(Flags(*env, "next/truncated"),
              ElementsAre(false, true, false, true));
  EXPECT_THAT(Flags(*env, "next/terminated"), Each(false));

  faults.assign(4, Faults());  // In place: lanes look there.
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 1")));
  RILL_ASSERT_OK(Advance(env.get()));
  RILL_EXPECT_OK(env->Step());
}

TEST_P(FailingLaneEnvTest, ALaneThatThrowsFails) {
  std::vector<Faults> faults(4);
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeWalkers(4, {.threads = GetParam()}, &faults));
  RILL_ASSERT_OK(ResetAll(env.get()));
  faults[1].throws = true;
  faults[1].step = absl::UnknownError("the left knee");
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInternal,
                                    "Walker::Step: lane 1: Lane::Step: threw "
                                    "std::runtime_error: the left knee"));
  EXPECT_THAT(Flags(*env, "next/truncated"),
              ElementsAre(false, true, false, false));
  faults[1].step = absl::OkStatus();
  faults[1].reset = absl::UnknownError("no ground");
  EXPECT_THAT(Advance(env.get()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no ground")));
  faults[1] = Faults();
  RILL_ASSERT_OK(Advance(env.get()));
  RILL_EXPECT_OK(env->Step());
}

TEST_P(FailingLaneEnvTest, KeepsTheCodeOfTheFirst) {
  std::vector<Faults> faults(3);
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeWalkers(3, {.threads = GetParam()}, &faults));
  RILL_ASSERT_OK(ResetAll(env.get()));
  faults[1].step = absl::UnavailableError("gone");
  faults[2].step = absl::DataLossError("rotten");
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(FailingLaneEnvTest, ALaneThatCannotBeginWaitsForAnotherReset) {
  std::vector<Faults> faults(3);
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeWalkers(3, {.threads = GetParam()}, &faults));
  faults[1].reset = absl::FailedPreconditionError("no ground");
  EXPECT_THAT(ResetAll(env.get()),
              StatusIs(absl::StatusCode::kInternal,
                       "Walker::Reset: lane 1: no ground"));
  EXPECT_NE(Floats(*env, "observation")[2], 0);
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 1")));
  faults[1].reset = absl::OkStatus();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1, 0}));
  RILL_EXPECT_OK(env->Step());
}

TEST_P(FailingLaneEnvTest, GoesOnFromASavedState) {
  const LaneEnvOptions options = {
      .threads = GetParam(), .max_episode_steps = 9, .seed = 5};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(5, options));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(Trace(21, env.get()).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK_AND_ASSIGN(const auto want, Trace(50, env.get()));

  RILL_ASSERT_OK_AND_ASSIGN(auto other,
                            MakeWalkers(5, {.max_episode_steps = 9}));
  RILL_ASSERT_OK(other->LoadState(state));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, other->SaveState());
  RILL_EXPECT_OK(again.CheckEqual(state));
  for (const char* key : {"observation"}) {
    RILL_ASSERT_OK(other->step().SetInPlace(key, *want[0].Find(key)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto got, Trace(50, other.get()));
  for (size_t t = 0; t < want.size(); ++t) {
    RILL_ASSERT_OK(got[t].CheckEqual(want[t])) << "step " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, FailingLaneEnvTest, testing::Values(1, 2, 3));

TEST(LaneEnvStateTest, IsLoadedWholeOrNotAtAll) {
  std::vector<Faults> faults(3);
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeWalkers(3, {.max_episode_steps = 5}, &faults));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict good, env->SaveState());
  RILL_ASSERT_OK(Trace(2, env.get()).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  const auto expect_refused = [&](const TensorDict& state, const char* why) {
    const absl::Status loaded = env->LoadState(state);
    EXPECT_FALSE(loaded.ok()) << why;
    EXPECT_THAT(loaded.message(), HasSubstr(why));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
    RILL_EXPECT_OK(after.CheckEqual(before)) << why;
  };
  const auto changed = [&](absl::string_view key, int64_t value) {
    TensorDict state = *good.Clone();
    state.Find(key)->data<int64_t>()[1] = value;
    return state;
  };
  expect_refused(changed("steps", 5), "steps of lane 1: got 5, want [0, 4]");
  expect_refused(changed("steps", -1), "steps of lane 1: got -1");
  expect_refused(changed("episode", -1), "episode of lane 1: got -1");
  expect_refused(*good.Slice(0, 0, 2), "\"steps\": got int64[2");
  expect_refused(*good.Exclude({"lane"}), "\"lane\": got none");
  expect_refused(*good.Exclude({"seed"}), "seed");
  TensorDict more = good;
  RILL_ASSERT_OK(more.Set("more", *good.Find("steps")));
  expect_refused(more, "more");
  // Lane 0 has loaded when lane 1 refuses.
  faults[1].load = absl::InvalidArgumentError("stale");
  expect_refused(good, "stale; in Walker::LoadState of lane 1");
  faults[1].load = absl::OkStatus();
  RILL_EXPECT_OK(env->LoadState(good));
}

TEST(LaneEnvStateTest, IsUnimplementedWhereASimulatorCannot) {
  class Mute final : public Lane {
    absl::Status Reset(const Rng&, uint64_t) override {
      return absl::OkStatus();
    }
    absl::StatusOr<LaneStep> Step() override { return LaneStep(); }
  };
  RILL_ASSERT_OK_AND_ASSIGN(const EnvSpec spec, WalkerSpec(2));
  RILL_ASSERT_OK_AND_ASSIGN(auto env,
                            MakeLaneEnv(spec, [](int64_t, const TensorDict&) {
                              return std::make_unique<Mute>();
                            }));
  EXPECT_THAT(env->SaveState(), StatusIs(absl::StatusCode::kUnimplemented));
}

// Its steps wait until the test lets them.
class Waiting final : public Lane {
 public:
  explicit Waiting(absl::Notification* go_on) : go_on_(go_on) {}
  absl::Status Reset(const Rng&, uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<LaneStep> Step() override {
    go_on_->WaitForNotification();
    return LaneStep{.reward = 1};
  }

 private:
  absl::Notification* const go_on_;
};

TEST(LaneEnvTest, StepsBesideTheCaller) {
  absl::Notification go_on;
  RILL_ASSERT_OK_AND_ASSIGN(const EnvSpec spec, WalkerSpec(2));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeLaneEnv(spec,
                            [&](int64_t, const TensorDict&) {
                              return std::make_unique<Waiting>(&go_on);
                            },
                            {.threads = 2}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(env->BeginStep());
  for (const absl::Status& status :
       {env->BeginStep(), ResetAll(env.get()), env->Seed(1),
        env->SaveState().status(), env->LoadState(TensorDict())}) {
    EXPECT_THAT(status,
                StatusIs(kFailedPrecondition, HasSubstr("call EndStep first")));
  }
  go_on.Notify();
  RILL_ASSERT_OK(env->EndStep());
  EXPECT_THAT(Floats(*env, "next/reward"), ElementsAre(1, 1));
}

TEST(LaneEnvTest, MayEndInTheMiddleOfAStep) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeWalkers(64, {.threads = 3}));
  RILL_ASSERT_OK(ResetAll(env.get()));
  RILL_ASSERT_OK(env->BeginStep());
}

TEST(LaneEnvTest, RefusesWhatItCannotDo) {
  const auto walker = [](int64_t, const TensorDict& row) {
    return Walker::Create(row);
  };
  RILL_ASSERT_OK_AND_ASSIGN(const EnvSpec good, WalkerSpec(2));
  EXPECT_THAT(MakeLaneEnv(good, walker, {.threads = 0}),
              StatusIs(kInvalidArgument, HasSubstr("got 0, 0")));
  EXPECT_THAT(MakeLaneEnv(good, walker, {.max_episode_steps = -1}),
              StatusIs(kInvalidArgument, HasSubstr("got 1, -1")));
  EnvSpec spec = good;
  spec.lanes = 0;
  EXPECT_THAT(MakeLaneEnv(spec, walker), StatusIs(kInvalidArgument));
  spec = good;
  RILL_ASSERT_OK(AddReward("reward", {2}, &spec));
  EXPECT_THAT(MakeLaneEnv(spec, walker),
              StatusIs(kInvalidArgument, HasSubstr("reward")));
  spec = good;
  RILL_ASSERT_OK(AddFlags("agents", {2, 1}, &spec));
  EXPECT_THAT(MakeLaneEnv(spec, walker),
              StatusIs(kInvalidArgument, HasSubstr("group_flags")));
  EXPECT_THAT(MakeLaneEnv(good,
                          [](int64_t lane, const TensorDict&)
                              -> absl::StatusOr<std::unique_ptr<Lane>> {
                            if (lane == 0) return std::make_unique<Walker>();
                            return absl::NotFoundError("no model");
                          }),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no model"), HasSubstr("lane 1"))));
  EXPECT_THAT(MakeLaneEnv(good,
                          [](int64_t, const TensorDict&) {
                            return std::unique_ptr<Lane>();
                          }),
              StatusIs(kInvalidArgument, HasSubstr("lane 0: got null")));
}

INSTANTIATE_TEST_SUITE_P(Lanes, EnvConformanceTest,
                         ::testing::Values([] { return MakeWalkers(3); },
                                           [] {
                                             return MakeWalkers(
                                                 3, {.threads = 2,
                                                     .max_episode_steps = 7});
                                           }));

}  // namespace
}  // namespace rill
