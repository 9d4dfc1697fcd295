// SPDX-License-Identifier: Apache-2.0
// SaveState and LoadState of SyncCollector: an interrupted run is the
// uninterrupted one.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/fake_transforms.h"
#include "rill/collectors/testing/parity_policy.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/conformance/source_conformance.h"
#include "rill/flow/sink.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

struct RunOptions {
  int64_t lanes = 3;
  uint64_t seed = 11;
  bool with_policy = false;
  bool with_transforms = false;
  int64_t init_random_frames = 0;
};

// CartPole with what `run` says. Equal runs are made the same way.
absl::StatusOr<std::unique_ptr<SyncCollector>> Make(const RunOptions& run,
                                                    Policy* policy) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env, MakeCartPole({.lanes = run.lanes}));
  options.policy = run.with_policy ? policy : nullptr;
  options.frames_per_batch = run.lanes * 25;
  options.init_random_frames = run.init_random_frames;
  options.seed = run.seed;
  if (run.with_transforms) {
    RILL_ASSIGN_OR_RETURN(auto counter, StepCounter::Create({.max_steps = 9}));
    RILL_ASSIGN_OR_RETURN(auto sum, RewardSum::Create({}));
    options.transforms.push_back(std::make_unique<SeenTransform>());
    options.transforms.push_back(std::move(counter));
    options.transforms.push_back(std::move(sum));
  }
  return SyncCollector::Create(std::move(options));
}

absl::StatusOr<std::vector<TensorDict>> Collect(SyncCollector& collector,
                                                int batches) {
  std::vector<TensorDict> result;
  for (int i = 0; i < batches; ++i) {
    RILL_ASSIGN_OR_RETURN(TensorDict batch, collector.Next());
    RILL_ASSIGN_OR_RETURN(batch, batch.Clone());
    result.push_back(std::move(batch));
  }
  return result;
}

class SyncCollectorResumeTest : public testing::TestWithParam<RunOptions> {};

TEST_P(SyncCollectorResumeTest, InterruptedRunEqualsUninterrupted) {
  ParityPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto whole, Make(GetParam(), &policy));
  RILL_ASSERT_OK_AND_ASSIGN(auto want, Collect(*whole, 6));

  RILL_ASSERT_OK_AND_ASSIGN(auto first, Make(GetParam(), &policy));
  RILL_ASSERT_OK(Collect(*first, 3).status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(Collect(*first, 1).status());  // The state is a copy.

  // Another seed: the saved one counts.
  RunOptions other = GetParam();
  other.seed = 99;
  RILL_ASSERT_OK_AND_ASSIGN(auto second, Make(other, &policy));
  RILL_ASSERT_OK(Collect(*second, 1).status());
  RILL_ASSERT_OK(second->LoadState(state));
  EXPECT_EQ(second->frames(), 3 * second->frames_per_batch());
  RILL_ASSERT_OK_AND_ASSIGN(auto rest, Collect(*second, 3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(rest[i], BitEqualTo(want[3 + i])) << "batch " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, SyncCollectorResumeTest,
    testing::Values(RunOptions{}, RunOptions{.lanes = 1},
                    RunOptions{.with_policy = true},
                    RunOptions{.with_policy = true, .init_random_frames = 250},
                    RunOptions{.with_transforms = true},
                    RunOptions{.with_policy = true, .with_transforms = true}));

TEST(SyncCollectorStateTest, AFailedRunResumesWithFreshEpisodes) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(auto env, MakeCountingEnv({.lanes = 2}));
  options.env = std::make_unique<FaultyEnv>(std::move(env),
                                            FaultyEnv::Options{.fail_step = 1});
  options.frames_per_batch = 8;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  ASSERT_THAT(collector->Next(), StatusIs(absl::StatusCode::kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, collector->SaveState());
  RILL_ASSERT_OK(collector->LoadState(state));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0, 0, 1, 2, 0)));
}

// Its environment cannot save a state.
absl::StatusOr<std::unique_ptr<SyncCollector>> MakeWithoutState() {
  SyncCollector::Options options;
  options.producer = 0;
  options.env = *MakeCountingEnv({.lanes = 2, .can_save = false});
  options.frames_per_batch = 4;
  return SyncCollector::Create(std::move(options));
}

TEST(SyncCollectorStateTest, WithoutTheEnvsStateEpisodesBeginAnewAndItSaysSo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto first, MakeWithoutState());
  RILL_ASSERT_OK(first->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  EXPECT_THAT(state.Flat<bool>("episodes_continue"), IsOkAndHolds(Each(false)));
  RILL_ASSERT_OK_AND_ASSIGN(auto second, MakeWithoutState());
  RILL_ASSERT_OK(second->LoadState(state));
  EXPECT_EQ(second->frames(), 4);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, second->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1)));
  // Numbers of trajectories go on.
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(2, 2, 3, 3)));
}

TEST(SyncCollectorStateTest, FreshEpisodesCutTheOldOnesBehindARefusedBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(auto first, MakeWithoutState());
  RILL_ASSERT_OK_AND_ASSIGN(auto second, MakeWithoutState());
  absl::Status answer;
  std::vector<int64_t> seen;  // Numbers of batches, and 0 for a cut.
  FunctionSink sink(
      [&](const TensorDict&, const WriteInfo& info) {
        if (answer.ok()) seen.push_back(info.sequence);
        return answer;
      },
      [&](int64_t, LaneRange lanes) {
        EXPECT_EQ(lanes, (LaneRange{.first = 0, .count = 2}));
        seen.push_back(0);
        return absl::OkStatus();
      });
  RILL_ASSERT_OK(first->CollectInto(sink));
  answer = absl::ResourceExhaustedError("full");
  EXPECT_FALSE(first->CollectInto(sink).ok());
  answer = absl::OkStatus();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(second->LoadState(state));
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(second->CollectInto(sink));
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 0, 3, 4));
}

INSTANTIATE_TEST_SUITE_P(SyncCollector, SourceConformanceTest,
                         ::testing::Values([] {
                           SyncCollector::Options options;
                           options.producer = 0;
                           options.env = *MakeCountingEnv({.lanes = 2});
                           options.frames_per_batch = 8;
                           return SyncCollector::Create(std::move(options));
                         }));

TEST(SyncCollectorStateTest, ARefusedBatchIsOfferedByTheLoadedCollector) {
  const auto make = [] {
    SyncCollector::Options options;
    options.producer = 0;
    options.env = *MakeCountingEnv({.lanes = 2});
    options.frames_per_batch = 4;
    return SyncCollector::Create(std::move(options));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto first, make());
  RILL_ASSERT_OK_AND_ASSIGN(auto second, make());
  TensorDict offered;
  int64_t number = 0;
  bool refuses = false;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    offered = *batch.Clone();
    number = info.sequence;
    return refuses ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  RILL_ASSERT_OK(first->CollectInto(sink));
  refuses = true;
  EXPECT_FALSE(first->CollectInto(sink).ok());
  const TensorDict refused = offered;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, first->SaveState());
  RILL_ASSERT_OK(second->LoadState(state));
  refuses = false;
  RILL_ASSERT_OK(second->CollectInto(sink));
  EXPECT_THAT(offered, BitEqualTo(refused));
  EXPECT_EQ(number, 2);
  RILL_ASSERT_OK(second->CollectInto(sink));
  EXPECT_EQ(number, 3);
  EXPECT_EQ(second->frames(), 12);
}

TEST(SyncCollectorStateTest, AStateWithoutNumbersLoads) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Make({}, nullptr));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, collector->SaveState());
  RILL_ASSERT_OK(state.Delete("sequence"));
  RILL_EXPECT_OK(collector->LoadState(state));
}

TEST(SyncCollectorStateTest, WithoutNumbersForTrajectoriesNextSaysSo) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Make({}, nullptr));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, collector->SaveState());
  state.Flat<int64_t>("next_traj_id")->at(0) = (int64_t{1} << 40) - 1;
  RILL_ASSERT_OK(collector->LoadState(state));
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// States that LoadState must refuse, and leave the collector as it was.
class SyncCollectorRefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(collector_,
                              Make({.with_transforms = true}, nullptr));
    RILL_ASSERT_OK(collector_->Next().status());
    RILL_ASSERT_OK_AND_ASSIGN(before_, collector_->SaveState());
  }
  void ExpectRefused(const TensorDict& state, const char* text) {
    EXPECT_THAT(collector_->LoadState(state),
                StatusIs(kFailedPrecondition, HasSubstr(text)));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after, collector_->SaveState());
    EXPECT_THAT(after, BitEqualTo(before_));
  }

  std::unique_ptr<SyncCollector> collector_;
  TensorDict before_;
};

TEST_F(SyncCollectorRefusalTest, StateOfNothing) {
  ExpectRefused(TensorDict(), "\"frames\": got none");
}

TEST_F(SyncCollectorRefusalTest, StateOfAnotherEnvironment) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCountingEnv({.lanes = 3}));
  options.frames_per_batch = 3;
  RILL_ASSERT_OK_AND_ASSIGN(auto other,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, other->SaveState());
  ExpectRefused(state, "got \"Counting\", want \"CartPole-v1\"");
}

TEST_F(SyncCollectorRefusalTest, StateOfOtherLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto other, Make({.lanes = 4, .with_transforms = true}, nullptr));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, other->SaveState());
  ExpectRefused(state, "lanes: got a state of [4], want [");
}

TEST_F(SyncCollectorRefusalTest, StateWithoutTransforms) {
  RILL_ASSERT_OK_AND_ASSIGN(auto other, Make({}, nullptr));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict state, other->SaveState());
  ExpectRefused(state, "\"transforms/0/name\": got none, want \"Seen\"");
}

TEST_F(SyncCollectorRefusalTest, StateOfMoreTransforms) {
  RILL_ASSERT_OK_AND_ASSIGN(auto fewer, Make({}, nullptr));
  EXPECT_THAT(fewer->LoadState(before_),
              StatusIs(kFailedPrecondition, HasSubstr("got more than 0")));
}

TEST_F(SyncCollectorRefusalTest, StateThatATransformRefuses) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, before_.Clone());
  RILL_ASSERT_OK(state.Delete("env/transforms/0/state/seen"));
  ExpectRefused(state, "transforms[0] (Seen)");
}

TEST_F(SyncCollectorRefusalTest, StateThatALaterTransformRefuses) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, before_.Clone());
  // Transform 0 takes another count and has to give it back.
  state.Flat<int64_t>("env/transforms/0/state/seen")->at(0) = 1234;
  RILL_ASSERT_OK_AND_ASSIGN(Tensor extra, Tensor::Zeros(DType::kInt64, {}));
  RILL_ASSERT_OK(state.Set("env/transforms/1/state/extra", std::move(extra)));
  ExpectRefused(state, "transforms[1] (StepCounter)");
}

TEST_F(SyncCollectorRefusalTest, StateThatTheEnvironmentRefuses) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, before_.Clone());
  RILL_ASSERT_OK_AND_ASSIGN(auto steps,
                            state.Flat<int64_t>("env/env/state/steps"));
  steps[0] = -1;
  ExpectRefused(state, "steps of lane 0: got -1");
}

TEST_F(SyncCollectorRefusalTest, CountersThatCannotBe) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, before_.Clone());
  state.Flat<int64_t>("frames")->at(0) = -3;
  ExpectRefused(state, "\"frames\": got -3");
  RILL_ASSERT_OK_AND_ASSIGN(state, before_.Clone());
  state.Flat<int64_t>("next_traj_id")->at(0) = 0;
  ExpectRefused(state, "\"next_traj_id\": got 0");
}

// One more would not fit.
TEST_F(SyncCollectorRefusalTest, CountersWithoutRoomToCountOn) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, before_.Clone());
  state.Flat<int64_t>("frames")->at(0) = INT64_MAX - 1;
  ExpectRefused(state, "\"frames\": got 9223372036854775806");
  RILL_ASSERT_OK_AND_ASSIGN(state, before_.Clone());
  state.Flat<int64_t>("next_traj_id")->at(0) = INT64_MAX;
  ExpectRefused(state, "\"next_traj_id\": got 9223372036854775807");
}

}  // namespace
}  // namespace rill
