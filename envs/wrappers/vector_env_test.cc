// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/vector_env.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/conformance/env_conformance.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_env.h"
#include "rill/envs/policies/random_actions.h"
#include "rill/envs/step_mdp.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/envs/testing/two_agents_env.h"
#include "rill/envs/wrappers/env_wrapper.h"
#include "rill/envs/wrappers/noop_reset.h"
#include "rill/envs/wrappers/time_limit.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Made = absl::StatusOr<std::unique_ptr<Env>>;
using Parts = std::vector<std::unique_ptr<Env>>;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

Made CartPoles(const std::vector<int64_t>& lanes, int threads = 1) {
  Parts parts;
  for (const int64_t n : lanes) {
    RILL_ASSIGN_OR_RETURN(parts.emplace_back(),
                          MakeCartPole({.lanes = n, .seed = parts.size()}));
  }
  return MakeVectorEnv(std::move(parts), {.threads = threads});
}

// Lanes 0 and 1 have episodes of 3 steps, lane 2 of 5.
Made Countings() {
  Parts parts(2);
  RILL_ASSIGN_OR_RETURN(parts[0],
                        MakeCountingEnv({.lanes = 2, .episode_steps = 3}));
  RILL_ASSIGN_OR_RETURN(
      parts[1], MakeCountingEnv({.episode_steps = 5, .ends_truncated = true}));
  return MakeVectorEnv(std::move(parts));
}

absl::Status ResetAll(Env& env) {
  return env.Reset(std::vector<uint8_t>(env.lanes(), 1));
}

TEST(VectorEnvTest, Example) {
  Parts parts;
  for (uint64_t seed : {1, 2, 3}) {
    RILL_ASSERT_OK_AND_ASSIGN(parts.emplace_back(),
                              MakeCartPole({.lanes = 4, .seed = seed}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeVectorEnv(std::move(parts)));
  EXPECT_EQ(env->lanes(), 12);
}

TEST(VectorEnvTest, LanesOfPartsStandOneAfterTheOther) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Countings());
  TensorDict step = env->step();
  RILL_ASSERT_OK(ResetAll(*env));
  for (int t = 0; t < 2; ++t) {
    RILL_ASSERT_OK(env->Step());
    RILL_ASSERT_OK(StepMdp(&step));
  }
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1, 0}));
  EXPECT_THAT(step.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(2, 0, 2)));
  RILL_ASSERT_OK(env->Step());
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(3, 1, 3)));
  EXPECT_THAT(step.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(3, 1, 3)));
  EXPECT_THAT(step.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(true, false, false)));
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 0")));
}

class VectorEnvThreadsTest : public testing::TestWithParam<int> {};

TEST_P(VectorEnvThreadsTest, DataAreThoseOfThePartsAlone) {
  const std::vector<int64_t> lanes = {2, 3, 1, 1};
  RILL_ASSERT_OK_AND_ASSIGN(auto env, CartPoles(lanes, GetParam()));
  TensorDict step = env->step();
  for (const bool is_seeded : {false, true}) {
    Parts alone;
    for (size_t p = 0; p < lanes.size(); ++p) {
      const Rng seeds(9, RngStream::kEnv, kVectorEnvSeeds);
      const uint64_t seed = is_seeded ? seeds.Bits64(p, 0) : p;
      RILL_ASSERT_OK_AND_ASSIGN(
          alone.emplace_back(),
          MakeCartPole({.lanes = lanes[p], .seed = seed}));
    }
    if (is_seeded) {
      RILL_ASSERT_OK(env->Seed(9));
    }
    std::vector<uint8_t> mask(env->lanes(), 1);
    for (int64_t t = 0; t < 150; ++t) {
      RILL_ASSERT_OK(env->Reset(mask));
      RILL_ASSERT_OK(
          WriteRandomActions(env->spec(), {.seed = 4}, t, step, step));
      RILL_ASSERT_OK(env->Step());
      int64_t first = 0;
      for (const auto& part : alone) {
        const int64_t end = first + part->lanes();
        TensorDict want = part->step();
        RILL_ASSERT_OK(part->Reset(absl::MakeConstSpan(mask).subspan(
            static_cast<size_t>(first), static_cast<size_t>(part->lanes()))));
        std::copy_n(step.Find("action")->data<int64_t>() + first, part->lanes(),
                    want.Find("action")->data<int64_t>());
        RILL_ASSERT_OK(part->Step());
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got,
                                  step.Slice(0, first, end));
        RILL_ASSERT_OK(got.CheckEqual(want)) << "lane " << first << " at " << t;
        RILL_ASSERT_OK(StepMdp(&want));
        first = end;
      }
      RILL_ASSERT_OK_AND_ASSIGN(const auto done, step.Flat<bool>("next/done"));
      std::copy(done.begin(), done.end(), mask.begin());
      RILL_ASSERT_OK(StepMdp(&step));
    }
  }
}

// Counts its steps, and fails where `faults` has an error.
struct Faults {
  absl::Status reset, step;
};
class Ramp final : public Lane {
 public:
  Ramp(const TensorDict& row, const Faults* faults)
      : root_(row.Find("observation")->data<float>()),
        next_(row.Find("next/observation")->data<float>()),
        faults_(*faults) {}
  absl::Status Reset(const Rng&, uint64_t) override {
    *root_ = 0;
    steps_ = 0;
    return faults_.reset;
  }
  absl::StatusOr<LaneStep> Step() override {
    *next_ = ++steps_;
    RILL_RETURN_IF_ERROR(faults_.step);
    return LaneStep{.reward = steps_, .terminated = steps_ > 8};
  }
  absl::StatusOr<TensorDict> SaveState() const override {
    RILL_ASSIGN_OR_RETURN(Tensor steps, Tensor::From<float>({steps_}, {1}));
    return TensorDict::Create({}, {{"steps", std::move(steps)}});
  }
  absl::Status LoadState(const TensorDict& state) override {
    RILL_ASSIGN_OR_RETURN(const auto steps, state.Flat<float>("steps"));
    steps_ = steps[0];
    return absl::OkStatus();
  }

 private:
  float* const root_;
  float* const next_;
  const Faults& faults_;
  float steps_ = 0;
};

constexpr int64_t kRampLanes = 2;

// Parts of two lanes each; `faults` has one entry a lane of all.
Made Ramps(int64_t parts, int lane_threads, int threads,
           const std::vector<Faults>* faults) {
  Parts made;
  for (int64_t p = 0; p < parts; ++p) {
    EnvSpec spec = {.name = "Ramp", .lanes = kRampLanes};
    RILL_RETURN_IF_ERROR(spec.observation.Set(
        "observation", LeafSpec::Unbounded(DType::kFloat32, {1})));
    RILL_RETURN_IF_ERROR(spec.action.Set("action", LeafSpec::Categorical(2)));
    const auto make =
        [=](int64_t lane,
            const TensorDict& row) -> absl::StatusOr<std::unique_ptr<Lane>> {
      return std::make_unique<Ramp>(row, &(*faults)[p * kRampLanes + lane]);
    };
    RILL_ASSIGN_OR_RETURN(made.emplace_back(),
                          MakeLaneEnv(spec, make, {.threads = lane_threads}));
  }
  return MakeVectorEnv(std::move(made), {.threads = threads});
}

TEST_P(VectorEnvThreadsTest, ALaneThatFailsLeavesTheOthers) {
  std::vector<Faults> faults(6);
  for (const int lane_threads : {1, 2}) {
    faults.assign(6, Faults());
    RILL_ASSERT_OK_AND_ASSIGN(auto env,
                              Ramps(3, lane_threads, GetParam(), &faults));
    TensorDict step = env->step();
    RILL_ASSERT_OK(ResetAll(*env));
    RILL_ASSERT_OK(env->Step());
    RILL_ASSERT_OK(StepMdp(&step));
    faults[3].step = absl::UnavailableError("the knee is broken");
    EXPECT_THAT(env->Step(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("parts[1] (its lane 0 is lane 2): "),
                               HasSubstr("lane 1: the knee is broken"))));
    // The observation of the root, and no reward.
    EXPECT_THAT(step.Flat<float>("next/observation"),
                IsOkAndHolds(ElementsAre(2, 2, 2, 1, 2, 2)));
    EXPECT_THAT(step.Flat<float>("next/reward"),
                IsOkAndHolds(ElementsAre(2, 2, 2, 0, 2, 2)));
    for (const char* key : {"next/done", "next/truncated"}) {
      EXPECT_THAT(step.Flat<bool>(key),
                  IsOkAndHolds(ElementsAre(0, 0, 0, 1, 0, 0)));
    }
    faults[3].step = absl::OkStatus();
    RILL_ASSERT_OK(StepMdp(&step));
    RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 0, 0, 1, 0, 0}));
    RILL_ASSERT_OK(env->Step());
    EXPECT_THAT(step.Flat<float>("next/observation"),
                IsOkAndHolds(ElementsAre(3, 3, 3, 1, 3, 3)));
  }
}

TEST_P(VectorEnvThreadsTest, ALaneThatCannotBeginWaitsForAnotherReset) {
  std::vector<Faults> faults(4);
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Ramps(2, 1, GetParam(), &faults));
  faults[2].reset = absl::UnavailableError("no ground");
  EXPECT_THAT(ResetAll(*env), StatusIs(absl::StatusCode::kUnavailable,
                                       AllOf(HasSubstr("VectorEnv::Reset"),
                                             HasSubstr("parts[1]"))));
  EXPECT_THAT(env->Step(), StatusIs(kFailedPrecondition, HasSubstr("lane 2")));
  faults[2].reset = absl::OkStatus();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 0, 1, 1}));
  RILL_EXPECT_OK(env->Step());
}

TEST_P(VectorEnvThreadsTest, APartThatRefusesAStepLosesItsLanes) {
  Parts parts(2);
  RILL_ASSERT_OK_AND_ASSIGN(parts[0],
                            MakeCountingEnv({.lanes = 2, .episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(parts[1],
                            MakeCountingEnv({.lanes = 2, .episode_steps = 9}));
  parts[0] = std::make_unique<FaultyEnv>(
      std::move(parts[0]),
      FaultyEnv::Options{.fail_step = 1,
                         .status = absl::InvalidArgumentError("masked")});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeVectorEnv(std::move(parts), {.threads = GetParam()}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(StepMdp(&step));
  // Not the code that promises that nothing has happened.
  EXPECT_THAT(env->Step(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("parts[0]"), HasSubstr("masked"))));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true, false, false)));
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(1, 1, 2, 2)));
  EXPECT_THAT(step.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(0, 0, 2, 2)));
}

TEST_P(VectorEnvThreadsTest, APartThatThrowsLosesItsLanes) {
  Parts parts(2);
  for (std::unique_ptr<Env>& part : parts) {
    RILL_ASSERT_OK_AND_ASSIGN(
        part, MakeCountingEnv({.lanes = 2, .episode_steps = 9}));
  }
  parts[0] = std::make_unique<FaultyEnv>(
      std::move(parts[0]), FaultyEnv::Options{.fail_step = 1, .throws = true});
  RILL_ASSERT_OK_AND_ASSIGN(
      auto env, MakeVectorEnv(std::move(parts), {.threads = GetParam()}));
  TensorDict step = env->step();
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK(StepMdp(&step));
  EXPECT_THAT(env->Step(), StatusIs(absl::StatusCode::kInternal,
                                    AllOf(HasSubstr("parts[0]"),
                                          HasSubstr("::BeginStep: threw"),
                                          HasSubstr("simulator is gone"))));
  EXPECT_THAT(step.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(true, true, false, false)));
  EXPECT_THAT(step.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(1, 1, 2, 2)));
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 0, 0}));
  RILL_EXPECT_OK(env->Step());
}

INSTANTIATE_TEST_SUITE_P(Threads, VectorEnvThreadsTest,
                         testing::Values(1, 2, 9));

// Writes down which of its halves of a step was called.
class LoggingEnv final : public envs_internal::EnvWrapper {
 public:
  LoggingEnv(std::unique_ptr<Env> env, std::string name,
             std::vector<std::string>* log)
      : EnvWrapper(std::move(env)), name_(std::move(name)), log_(*log) {}
  absl::Status Reset(const ResetMask& mask) override {
    log_.push_back(absl::StrCat("reset ", name_));
    return EnvWrapper::Reset(mask);
  }
  absl::Status BeginStep() override {
    log_.push_back(absl::StrCat("begin ", name_));
    return EnvWrapper::BeginStep();
  }
  absl::Status EndStep() override {
    log_.push_back(absl::StrCat("end ", name_));
    return EnvWrapper::EndStep();
  }

 private:
  const std::string name_;
  std::vector<std::string>& log_;
};

TEST(VectorEnvTest, BeginsAllPartsBeforeItEndsOne) {
  std::vector<std::string> log;
  Parts parts;
  for (const char* name : {"a", "b"}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv());
    parts.push_back(std::make_unique<LoggingEnv>(std::move(env), name, &log));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeVectorEnv(std::move(parts)));
  RILL_ASSERT_OK(ResetAll(*env));
  log.clear();
  RILL_ASSERT_OK(env->BeginStep());
  EXPECT_THAT(log, ElementsAre("begin a", "begin b"));
  RILL_ASSERT_OK(env->EndStep());
  EXPECT_THAT(log, ElementsAre("begin a", "begin b", "end a", "end b"));
  // Parts of which nothing begins are left alone.
  log.clear();
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{0, 1}));
  EXPECT_THAT(log, ElementsAre("reset b"));
}

TEST(VectorEnvTest, CallsInTheMiddleOfAStepAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Countings());
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK(env->BeginStep());
  EXPECT_THAT(ResetAll(*env),
              StatusIs(kFailedPrecondition, HasSubstr("call EndStep first")));
  EXPECT_THAT(env->BeginStep(), StatusIs(kFailedPrecondition));
  EXPECT_THAT(env->Seed(1), StatusIs(kFailedPrecondition));
  EXPECT_THAT(env->SaveState().status(), StatusIs(kFailedPrecondition));
  EXPECT_THAT(env->LoadState(state), StatusIs(kFailedPrecondition));
  RILL_ASSERT_OK(env->EndStep());
  EXPECT_THAT(env->step().Flat<float>("next/observation"),
              IsOkAndHolds(Each(1)));
}

TEST(VectorEnvTest, GroupsBeginInTheLaneOfTheirPart) {
  Parts parts(2);
  RILL_ASSERT_OK_AND_ASSIGN(parts[0], MakeTwoAgentsEnv({.episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(parts[1],
                            MakeTwoAgentsEnv({.lanes = 2, .episode_steps = 9}));
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeVectorEnv(std::move(parts)));
  TensorDict step = env->step();
  RILL_ASSERT_OK(ResetAll(*env));
  for (int t = 0; t < 2; ++t) {
    RILL_ASSERT_OK(env->Step());
    RILL_ASSERT_OK(StepMdp(&step));
  }
  EXPECT_THAT(step.Flat<bool>("guard/done"), IsOkAndHolds(Each(true)));
  const std::vector<uint8_t> lanes = {0, 0, 0}, groups = {0, 0, 1};
  RILL_ASSERT_OK(env->Reset(ResetMask(lanes, groups)));
  EXPECT_THAT(step.Flat<bool>("guard/done"),
              IsOkAndHolds(ElementsAre(true, true, false)));
  EXPECT_THAT(step.Flat<float>("guard/observation"),
              IsOkAndHolds(ElementsAre(2, 2, 0)));
  EXPECT_THAT(step.Flat<float>("agents/observation"),
              IsOkAndHolds(ElementsAre(2, 12, 2, 12, 2, 12)));
}

TEST(VectorEnvTest, SpecsThatDifferAreNamed) {
  const auto both = [](Made a, Made b) -> absl::Status {
    Parts parts(2);
    RILL_ASSIGN_OR_RETURN(parts[0], std::move(a));
    RILL_ASSIGN_OR_RETURN(parts[1], std::move(b));
    return MakeVectorEnv(std::move(parts)).status();
  };
  EXPECT_THAT(both(MakeCountingEnv(), MakeCartPole()),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("parts[1]: observation: "
                                       "\"observation\": got float32[4]"),
                             HasSubstr("want float32[1]"))));
  EXPECT_THAT(both(MakeCountingEnv(), MakeTwoAgentsEnv()),
              StatusIs(kInvalidArgument,
                       HasSubstr("\"observation\": got none, want float32")));
  const auto ending = [](std::vector<std::string> own_episodes) -> Made {
    EnvSpec spec = {.name = "Own"};
    RILL_RETURN_IF_ERROR(spec.action.Set("action", LeafSpec::Categorical(2)));
    RILL_RETURN_IF_ERROR(AddFlags("guard", {1}, &spec));
    spec.own_episodes = std::move(own_episodes);
    // A shell: nothing is called but spec().
    class Shell final : public Env {
     public:
      Shell(EnvSpec spec, TensorDict step)
          : Env(std::move(spec), std::move(step)) {}
      absl::Status Seed(uint64_t) override { return absl::OkStatus(); }
      absl::Status Reset(const ResetMask&) override { return absl::OkStatus(); }
      absl::Status BeginStep() override { return absl::OkStatus(); }
    };
    RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
    return std::make_unique<Shell>(std::move(spec), std::move(step));
  };
  EXPECT_THAT(both(ending({}), ending({"guard"})),
              StatusIs(kInvalidArgument,
                       HasSubstr("own_episodes: got [guard], want []")));
  RILL_EXPECT_OK(both(ending({"guard"}), ending({"guard"})));
}

TEST(VectorEnvTest, BadOptionsAreNamed) {
  EXPECT_THAT(
      MakeVectorEnv({}).status(),
      StatusIs(kInvalidArgument, HasSubstr("parts, threads: got 0, 1")));
  EXPECT_THAT(CartPoles({1}, 0).status(),
              StatusIs(kInvalidArgument, HasSubstr("got 1, 0")));
  EXPECT_THAT(MakeVectorEnv(Parts(1)).status(),
              StatusIs(kInvalidArgument, HasSubstr("parts[0]: got null")));
}

TEST(VectorEnvTest, StatesAreLoadedWholeOrNotAtAll) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Countings());
  RILL_ASSERT_OK(ResetAll(*env));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict early, env->SaveState());
  RILL_ASSERT_OK(env->Step());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict before, env->SaveState());
  const auto expect_refused = [&](const TensorDict& state, const char* why) {
    EXPECT_THAT(env->LoadState(state).message(), HasSubstr(why));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, env->SaveState());
    RILL_EXPECT_OK(after.CheckEqual(before)) << why;
  };
  TensorDict state = *early.Clone();
  RILL_ASSERT_OK(state.Delete("parts/1/steps"));
  expect_refused(state, "parts[1]");
  state = *early.Clone();
  RILL_ASSERT_OK(state.Delete("parts/1"));
  expect_refused(state, "\"parts/1\": got none");
  state = *early.Clone();
  RILL_ASSERT_OK(state.Set("parts/2", *early.GetDict("parts/1")));
  expect_refused(state, "got more than 2");
  state = *early.Clone();
  RILL_ASSERT_OK(state.Delete("running"));
  expect_refused(state, "\"running\": got none");
  RILL_EXPECT_OK(env->LoadState(early));
}

TEST(VectorEnvTest, ALaneThatIsDoneIsSoAfterALoad) {
  RILL_ASSERT_OK_AND_ASSIGN(auto env, Countings());
  RILL_ASSERT_OK_AND_ASSIGN(auto later, Countings());
  RILL_ASSERT_OK(env->Reset(std::vector<uint8_t>{1, 1, 0}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, env->SaveState());
  RILL_ASSERT_OK(later->LoadState(state));
  EXPECT_THAT(later->Step(),
              StatusIs(kFailedPrecondition, HasSubstr("lane 2")));
}

const std::vector<Faults>* NoFaults() {
  static const auto* const faults = new std::vector<Faults>(8);
  return faults;
}

INSTANTIATE_TEST_SUITE_P(
    Vector, EnvConformanceTest,
    ::testing::Values(
        [] {
          return CartPoles({2, 1, 3});
        },
        [] {
          return CartPoles({1, 1, 1, 1}, /*threads=*/3);
        },
        [] { return Countings(); }, [] { return Ramps(2, 1, 1, NoFaults()); },
        [] { return Ramps(2, 2, 1, NoFaults()); },
        [] { return Ramps(2, 2, 2, NoFaults()); },
        []() -> Made {
          Parts parts(2);
          RILL_ASSIGN_OR_RETURN(
              parts[0], MakeTwoAgentsEnv({.lanes = 2, .episode_steps = 4}));
          RILL_ASSIGN_OR_RETURN(parts[1], MakeTwoAgentsEnv());
          return MakeVectorEnv(std::move(parts));
        }));

// Around parts that are wrapped, and wrapped itself.
INSTANTIATE_TEST_SUITE_P(
    VectorAndOthers, EnvConformanceTest,
    ::testing::Values(
        []() -> Made {
          Parts parts;
          for (const uint64_t seed : {1, 2}) {
            RILL_ASSIGN_OR_RETURN(auto env,
                                  MakeCartPole({.lanes = 2, .seed = seed}));
            RILL_ASSIGN_OR_RETURN(
                parts.emplace_back(),
                MakeNoopReset(std::move(env), {.noops = 4, .seed = seed}));
          }
          return MakeVectorEnv(std::move(parts));
        },
        []() -> Made {
          Parts parts;
          for (int i = 0; i < 2; ++i) {
            RILL_ASSIGN_OR_RETURN(auto env, CartPoles({1, 1}));
            RILL_ASSIGN_OR_RETURN(
                parts.emplace_back(),
                MakeTimeLimit(std::move(env), {.max_steps = 9}));
          }
          return MakeVectorEnv(std::move(parts), {.threads = 2});
        }));

}  // namespace
}  // namespace rill
