// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/sync_collector.h"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/testing/parity_policy.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/env.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/sink.h"
#include "rill/flow/source.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// A collector of CountingEnv with episodes of 3 steps; `options` without env.
absl::StatusOr<std::unique_ptr<SyncCollector>> Counting(
    int64_t lanes, int64_t frames, SyncCollector::Options options = {}) {
  RILL_ASSIGN_OR_RETURN(options.env, MakeCountingEnv({.lanes = lanes}));
  options.frames_per_batch = frames;
  // Those that are compared live at the same time.
  options.producer = options.producer.value_or(0);
  return SyncCollector::Create(std::move(options));
}

// The same, whose environment fails once.
absl::StatusOr<std::unique_ptr<SyncCollector>> Faulty(FaultyEnv::Options faults,
                                                      int64_t frames) {
  SyncCollector::Options options;
  RILL_ASSIGN_OR_RETURN(auto env, MakeCountingEnv({.lanes = 2}));
  options.env = std::make_unique<FaultyEnv>(std::move(env), std::move(faults));
  options.frames_per_batch = frames;
  return SyncCollector::Create(std::move(options));
}

TEST(SyncCollectorTest, Example) {
  SyncCollector::Options options;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCartPole({.lanes = 16}));
  options.frames_per_batch = 1024;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({16, 64}));
}

TEST(SyncCollectorTest, BatchHoldsWhatTheSpecSays) {
  SyncCollector::Options options;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCartPole({.lanes = 3}));
  options.frames_per_batch = 90;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  RILL_EXPECT_OK(collector->spec().CheckValues("test", batch));
  EXPECT_THAT(batch, HasKeys("observation", "done", "terminated", "truncated",
                             "action", "next/observation", "next/done",
                             "next/terminated", "next/truncated", "next/reward",
                             "policy_version", "collector/traj_ids"));
  EXPECT_EQ(batch.Find("policy_version")->shape(), Shape({3, 30, 1}));
  EXPECT_EQ(batch.Find("collector/traj_ids")->shape(), Shape({3, 30}));
}

TEST(SyncCollectorTest, FramesPerBatchIsRoundedUpToTheLanes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(4, 10));
  EXPECT_EQ(collector->frames_per_batch(), 12);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_EQ(batch.batch_shape(), Shape({4, 3}));
  EXPECT_THAT(batch.dim_names(), ElementsAre("lanes", "time"));
  EXPECT_EQ(collector->frames(), 12);
}

TEST(SyncCollectorTest, NextKeepsFinalObservationsAndEpisodesGoOn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(1, 4));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0)));
  EXPECT_THAT(batch.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(1, 2, 3, 1)));
  EXPECT_THAT(batch.Flat<bool>("next/done"),
              IsOkAndHolds(ElementsAre(0, 0, 1, 0)));
  EXPECT_THAT(batch.Flat<bool>("done"), IsOkAndHolds(Each(false)));
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 2, 0, 1)));
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(1, 1, 2, 2)));
}

TEST(SyncCollectorTest, TrajectoriesOfLanesHaveNumbersOfTheirOwn) {
  SyncCollector::Options options;
  RILL_ASSERT_OK_AND_ASSIGN(
      options.env,
      MakeCountingEnv({.lanes = 2, .episode_steps = 2, .stagger_steps = 1}));
  options.frames_per_batch = 8;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(0, 0, 2, 2, 1, 1, 1, 3)));
}

// Over batches: each lane's rows in order, with random actions.
TEST(SyncCollectorTest,
     E3_ResetsTouchTheirLanesAloneAndTrajectoriesChangeThere) {
  constexpr int64_t kLanes = 5, kTime = 40;
  SyncCollector::Options options;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCartPole({.lanes = kLanes}));
  options.frames_per_batch = kLanes * kTime;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  std::set<int64_t> ids;
  std::vector<TensorDict> last(kLanes);  // The row before, of each lane.
  int64_t resets = 0, partial_resets = 0;
  for (int batch_number = 0; batch_number < 3; ++batch_number) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
    RILL_ASSERT_OK_AND_ASSIGN(batch, batch.Clone());
    for (int64_t t = 0; t < kTime; ++t) {
      int64_t begun = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rows, batch.Index(lane));
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, rows.Index(t));
        const TensorDict before = std::exchange(last[lane], row);
        const auto id_of = [](const TensorDict& step) {
          return step.Find("collector/traj_ids")->data<int64_t>()[0];
        };
        if (before.empty()) {
          EXPECT_TRUE(ids.insert(id_of(row)).second);
          continue;
        }
        const bool is_done = before.Find("next/done")->data<bool>()[0];
        for (const char* key : {"observation", "terminated", "truncated"}) {
          const Tensor& next = *before.Find(absl::StrCat("next/", key));
          if (is_done && key != absl::string_view("observation")) continue;
          EXPECT_THAT(row.Find(key)->BitEquals(next), IsOkAndHolds(!is_done))
              << key << " of lane " << lane << " at " << t;
        }
        EXPECT_FALSE(row.Find("done")->data<bool>()[0]);
        EXPECT_EQ(id_of(row) != id_of(before), is_done);
        if (is_done) {
          EXPECT_TRUE(ids.insert(id_of(row)).second);
        }
        begun += is_done;
      }
      resets += begun;
      partial_resets += begun > 0 && begun < kLanes;
    }
  }
  EXPECT_GT(resets, kLanes);
  EXPECT_GT(partial_resets, 5);
}

TEST(SyncCollectorTest, EveryFrameCarriesThePolicysVersion) {
  ParityPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.policy = &policy}));
  policy.set_version(7);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<int64_t>("policy_version"), IsOkAndHolds(Each(7)));
  policy.set_version(8);
  RILL_ASSERT_OK_AND_ASSIGN(batch, collector->Next());
  EXPECT_THAT(batch.Flat<int64_t>("policy_version"), IsOkAndHolds(Each(8)));
}

TEST(SyncCollectorTest, FirstFramesAreRandomThenThePolicyActs) {
  ParityPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector,
      Counting(2, 12, {.policy = &policy, .init_random_frames = 7}));
  RILL_ASSERT_OK(collector->Next().status());
  // 7 frames are 4 steps of 2 lanes; 2 steps are left.
  EXPECT_EQ(policy.calls(), 2);
  EXPECT_EQ(policy.last_context().frames, 10);
  EXPECT_EQ(policy.last_context().step, 5);
}

TEST(SyncCollectorTest, RandomActionsFollowTheSeedAndFillTheSpec) {
  const auto actions = [](uint64_t seed) {
    auto collector = Counting(4, 400, {.seed = seed});
    auto batch = (*collector)->Next();
    auto values = batch->Flat<int64_t>("action");
    return std::vector<int64_t>(values->begin(), values->end());
  };
  EXPECT_EQ(actions(3), actions(3));
  EXPECT_NE(actions(3), actions(4));
  // CountingEnv knows 0, 1 and 2.
  EXPECT_THAT(actions(3), testing::Contains(2));
  EXPECT_THAT(actions(3), testing::Contains(0));
}

TEST(SyncCollectorTest, E5_TheLastStepOfABatchIsTruncatedAndNotTerminated) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, Counting(2, 8));
  RILL_ASSERT_OK_AND_ASSIGN(const auto truncated,
                            Counting(2, 8, {.set_truncated = true}));
  for (int i = 0; i < 3; ++i) {  // Episodes of 3 steps, batches of 4.
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, plain->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, truncated->Next());
    RILL_ASSERT_OK_AND_ASSIGN(const auto done, want.Flat<bool>("next/done"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto end,
                              want.Flat<bool>("next/truncated"));
    for (const int64_t row : {3, 7}) {
      end[row] = end[row] || !done[row];
      done[row] = true;
    }
    EXPECT_THAT(got, BitEqualTo(want));
  }
}

// The other lane's episodes of 3 steps end before the limit.
TEST(SyncCollectorTest, AnEpisodeIsTruncatedAtTheLimit) {
  SyncCollector::Options options;
  options.env =
      *MakeCountingEnv({.lanes = 2, .episode_steps = 3, .stagger_steps = 4});
  options.frames_per_batch = 12;
  options.max_frames_per_traj = 5;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(*batch.Flat<float>("observation"),
              ElementsAre(0, 1, 2, 0, 1, 2,  //
                          0, 1, 2, 3, 4, 0));
  EXPECT_THAT(*batch.Flat<bool>("next/truncated"),
              ElementsAre(false, false, false, false, false, false,  //
                          false, false, false, false, true, false));
  EXPECT_THAT(*batch.Flat<bool>("next/terminated"),
              ElementsAre(false, false, true, false, false, true,  //
                          false, false, false, false, false, false));
  EXPECT_THAT(*batch.Flat<int64_t>("collector/traj_ids"),
              ElementsAre(0, 0, 0, 2, 2, 2, 1, 1, 1, 1, 1, 3));
}

TEST(SyncCollectorTest, ABatchMayBeginWithAReset) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto collector,
      Counting(2, 8, {.reset_at_each_batch = true, .first_lane = 4}));
  int64_t cuts = 0;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo& info) {
        EXPECT_EQ(cuts, info.sequence - 1);
        EXPECT_THAT(*batch.Flat<float>("observation"),
                    ElementsAre(0, 1, 2, 0, 0, 1, 2, 0));
        return absl::OkStatus();
      },
      [&](int64_t, LaneRange lanes) {
        EXPECT_EQ(lanes, (LaneRange{.first = 4, .count = 2}));
        ++cuts;
        return absl::OkStatus();
      });
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(sink));
}

TEST(SyncCollectorTest, APolicyIsToldWhetherItExplores) {
  for (const bool explore : {true, false}) {
    int64_t asked = 0;
    FunctionPolicy policy(
        [&](const TensorDict&, const ActContext& context, Tensor*) {
          EXPECT_EQ(context.explore, explore);
          ++asked;
          return absl::OkStatus();
        });
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto collector,
        Counting(2, 8, {.policy = &policy, .explore = explore}));
    RILL_ASSERT_OK(collector->Next().status());
    EXPECT_EQ(asked, 4);
  }
}

TEST(SyncCollectorTest, EndsOutOfRangeAfterTotalFrames) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.total_frames = 6}));
  RILL_ASSERT_OK(collector->Next().status());
  RILL_ASSERT_OK(collector->Next().status());
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("8 frames collected, total_frames = 6")));
  EXPECT_EQ(collector->frames(), 8);
}

TEST(SyncCollectorTest, BatchesReuseTheirBytes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(2, 4));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict first, collector->Next());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict second, collector->Next());
  first.ForEachLeaf([&](absl::string_view key, const Tensor& tensor) {
    EXPECT_EQ(second.Find(key)->raw_data(), tensor.raw_data()) << key;
  });
}

TEST(SyncCollectorTest, ASinkSeesEachFrameOnceAndInOrder) {
  ParityPolicy policy;
  policy.set_version(5);
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector,
      Counting(2, 8, {.policy = &policy, .producer = 3, .first_lane = 6}));
  std::vector<std::vector<float>> seen(2);  // Observations of each lane.
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    EXPECT_EQ(info.producer, 3);
    EXPECT_EQ(info.first_lane, 6);
    EXPECT_EQ(info.policy_version, 5);
    auto observation = *batch.Flat<float>("next/observation");
    for (int64_t i = 0; i < 8; ++i) seen[i / 4].push_back(observation[i]);
    return absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) RILL_ASSERT_OK(collector->CollectInto(sink));
  std::vector<float> want;
  for (int i = 0; i < 12; ++i) want.push_back(static_cast<float>(i % 3 + 1));
  EXPECT_THAT(seen, Each(ElementsAreArray(want)));
  EXPECT_EQ(collector->frames(), 24);
}

// Lends a batch of its own, which Write must give back as it is.
class LendingSink final : public Sink {
 public:
  absl::Status Write(const TensorDict& batch, const WriteInfo& info) override {
    if (!refuse.ok()) return refuse;
    is_lent.push_back(batch.Find("next/reward")->raw_data() ==
                      lent.Find("next/reward")->raw_data());
    batches.push_back(*batch.Clone());
    numbers.push_back(info.sequence);
    return absl::OkStatus();
  }
  absl::Status Cut(int64_t, LaneRange) override { return absl::OkStatus(); }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::StatusOr<TensorDict> Reserve(const Shape& shape) override {
    RILL_ASSIGN_OR_RETURN(lent, spec.Zero(shape));
    return lent;
  }

  TensorDictSpec spec;
  TensorDict lent;
  absl::Status refuse;
  std::vector<bool> is_lent;
  std::vector<TensorDict> batches;
  std::vector<int64_t> numbers;
};

TEST(SyncCollectorTest, StepsAreRecordedInMemoryThatTheSinkLends) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, Counting(2, 8));
  RILL_ASSERT_OK_AND_ASSIGN(const auto lent, Counting(2, 8));
  LendingSink sink;
  sink.spec = lent->spec();
  for (int i = 0; i < 3; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Next());
    if (i == 1) {  // It stays whole where the loan has ended.
      sink.refuse = absl::ResourceExhaustedError("full");
      EXPECT_THAT(lent->CollectInto(sink),
                  StatusIs(absl::StatusCode::kResourceExhausted));
      RILL_ASSERT_OK(sink.lent.CopyFrom(*sink.spec.Zero({2, 4})));
      sink.refuse = absl::OkStatus();
    }
    RILL_ASSERT_OK(lent->CollectInto(sink));
    EXPECT_THAT(sink.batches[i], BitEqualTo(want));
  }
  EXPECT_THAT(sink.is_lent, ElementsAre(true, false, true));
  EXPECT_THAT(sink.numbers, ElementsAre(1, 2, 3));
  // A batch of its own again, which the sink does not see.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, plain->Next());
  EXPECT_THAT(lent->Next(), IsOkAndHolds(BitEqualTo(want)));
}

TEST(SyncCollectorTest, ARefusedBatchCountsAndIsOfferedAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(1, 2));
  std::vector<int64_t> offered;
  std::vector<float> seen;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo& info) {
    offered.push_back(info.sequence);
    if (offered.size() % 2 == 1) return absl::ResourceExhaustedError("full");
    const Tensor& observation = *batch.Find("observation");
    seen.insert(seen.end(), observation.data<float>(),
                observation.data<float>() + observation.num_elements());
    return absl::OkStatus();
  });
  EXPECT_THAT(collector->CollectInto(sink),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(collector->frames(), 2);
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_EQ(collector->frames(), 2);
  EXPECT_FALSE(collector->CollectInto(sink).ok());
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_THAT(offered, ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 0));
}

TEST(SyncCollectorTest, NextGivesARefusedBatchAndItsNumberBack) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(1, 2));
  bool refuses = true;
  int64_t number = 0;
  FunctionSink sink([&](const TensorDict&, const WriteInfo& info) {
    number = info.sequence;
    return refuses ? absl::UnavailableError("busy") : absl::OkStatus();
  });
  EXPECT_THAT(collector->CollectInto(sink), StatusIs(kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1)));
  refuses = false;
  RILL_ASSERT_OK(collector->CollectInto(sink));
  EXPECT_EQ(number, 1);
  EXPECT_EQ(collector->frames(), 4);
}

TEST(SyncCollectorTest, StopCancelsOneCallAndLosesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(1, 2));
  RILL_ASSERT_OK(collector->Next().status());
  Source& source = *collector;
  source.Stop();
  EXPECT_THAT(source.Next(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(source.frames(), 2);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, source.Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(2, 0)));
}

TEST(SyncCollectorTest, ProducersShareNoTrajectory) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(1, 4, {.producer = 5}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  constexpr int64_t kFirst = int64_t{5} << 40;
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(kFirst, kFirst, kFirst, kFirst + 1)));
  EXPECT_THAT(Counting(1, 4, {.producer = -1}),
              StatusIs(kInvalidArgument, HasSubstr("producer: got -1")));
  EXPECT_THAT(Counting(1, 4, {.producer = int64_t{1} << 23}),
              StatusIs(kInvalidArgument, HasSubstr("want [0, 2^23)")));
}

TEST(SyncCollectorTest, AfterAFailedStepNoFrameCountsAndAllLanesBeginAnew) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_step = 5}, 8));
  RILL_ASSERT_OK(collector->Next().status());
  EXPECT_THAT(collector->Next(),
              StatusIs(kUnavailable, HasSubstr("step 1 of a batch of 4")));
  EXPECT_EQ(collector->frames(), 8);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0, 0, 1, 2, 0)));
  EXPECT_EQ(collector->frames(), 16);
  // The lost episodes' numbers are not used again.
  RILL_ASSERT_OK_AND_ASSIGN(auto ids,
                            batch.Flat<int64_t>("collector/traj_ids"));
  EXPECT_THAT(ids, ElementsAre(4, 4, 4, 6, 5, 5, 5, 7));
}

// An earlier batch shares their memory.
TEST(SyncCollectorTest, AFailedStepLeavesTheStepsBeforeItInTheBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_step = 7}, 8));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
  EXPECT_THAT(collector->Next(),
              StatusIs(kUnavailable, HasSubstr("step 3 of a batch of 4")));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 2, 0, 0, 1, 2, 0, 0)));
}

// A sink of numbers: a batch's, and 0 for a cut.
class SyncCollectorCutTest : public testing::Test {
 protected:
  std::vector<int64_t> seen_;
  LaneRange cut_;
  absl::Status answer_;
  FunctionSink sink_{[this](const TensorDict&, const WriteInfo& info) {
                       seen_.push_back(info.sequence);
                       return absl::OkStatus();
                     },
                     [this](int64_t producer, LaneRange lanes) {
                       EXPECT_EQ(producer, 0);
                       seen_.push_back(0);
                       cut_ = lanes;
                       return answer_;
                     }};
};

TEST_F(SyncCollectorCutTest, AFailedStepCutsWhatTheSinkHoldsOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_step = 5}, 8));
  RILL_ASSERT_OK(collector->CollectInto(sink_));
  EXPECT_THAT(collector->CollectInto(sink_), StatusIs(kUnavailable));
  EXPECT_THAT(seen_, ElementsAre(1, 0));
  EXPECT_EQ(cut_, (LaneRange{.first = 0, .count = 2}));
  for (int i = 0; i < 2; ++i) RILL_ASSERT_OK(collector->CollectInto(sink_));
  EXPECT_THAT(seen_, ElementsAre(1, 0, 2, 3));
}

TEST_F(SyncCollectorCutTest, ACutThatIsRefusedComesBeforeTheNextBatch) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_step = 5}, 8));
  RILL_ASSERT_OK(collector->CollectInto(sink_));
  answer_ = absl::ResourceExhaustedError("full");
  EXPECT_THAT(collector->CollectInto(sink_), StatusIs(kUnavailable));
  EXPECT_THAT(collector->CollectInto(sink_),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(collector->frames(), 8);
  answer_ = absl::OkStatus();
  RILL_ASSERT_OK(collector->CollectInto(sink_));
  EXPECT_THAT(seen_, ElementsAre(1, 0, 0, 0, 2));
}

TEST_F(SyncCollectorCutTest, WithNothingInTheSinkThereIsNothingToCut) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_step = 1}, 8));
  EXPECT_THAT(collector->CollectInto(sink_), StatusIs(kUnavailable));
  RILL_ASSERT_OK(collector->CollectInto(sink_));
  EXPECT_THAT(seen_, ElementsAre(1));
}

TEST(SyncCollectorTest, AFailedResetIsTriedAgain) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Faulty({.fail_reset = 0}, 8));
  EXPECT_THAT(collector->Next(), StatusIs(kUnavailable));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 2, 1, 1, 1, 3)));
}

TEST(SyncCollectorTest, AFailedPolicyLeavesTheCollectorUsable) {
  ParityPolicy policy;
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.policy = &policy}));
  policy.FailOnce(absl::UnavailableError("no weights"));
  EXPECT_THAT(collector->Next(),
              StatusIs(kUnavailable, HasSubstr("no weights")));
  EXPECT_EQ(collector->frames(), 0);
  RILL_EXPECT_OK(collector->Next().status());
}

TEST(SyncCollectorTest, APolicyThatReplacesTheActionIsRefused) {
  FunctionPolicy policy(
      [](const TensorDict&, const ActContext&, Tensor* action) -> absl::Status {
        RILL_ASSIGN_OR_RETURN(*action, action->Clone());
        return absl::OkStatus();
      });
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.policy = &policy}));
  EXPECT_THAT(collector->Next(),
              StatusIs(kInvalidArgument, HasSubstr("filled in place")));
}

TEST(SyncCollectorTest, AnIllegalActionComesBackWithLaneAndValue) {
  FunctionPolicy policy(
      [](const TensorDict&, const ActContext&, Tensor* action) {
        action->data<int64_t>()[1] = 9;
        return absl::OkStatus();
      });
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.policy = &policy}));
  EXPECT_THAT(collector->Next(),
              StatusIs(kInvalidArgument, HasSubstr("lane 1: got 9")));
}

TEST(SyncCollectorTest, PolicyDoesNotSeeWhatComesNext) {
  FunctionPolicy policy(
      [](const TensorDict& root, const ActContext&, Tensor* action) {
        EXPECT_THAT(root,
                    HasKeys("observation", "done", "terminated", "truncated"));
        EXPECT_EQ(action->shape(), Shape({2}));
        return absl::OkStatus();
      });
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Counting(2, 4, {.policy = &policy}));
  RILL_EXPECT_OK(collector->Next().status());
}

TEST(SyncCollectorTest, SaysWhereTheTimeWent) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Counting(2, 4));
  EXPECT_EQ(collector->times().env, absl::ZeroDuration());
  RILL_ASSERT_OK(collector->Next().status());
  const SyncCollector::Times& times = collector->times();
  EXPECT_GT(times.env + times.policy + times.other, absl::ZeroDuration());
}

TEST(SyncCollectorTest, CreateNamesTheWrongOption) {
  EXPECT_THAT(SyncCollector::Create({.frames_per_batch = 4}),
              StatusIs(kInvalidArgument, HasSubstr("env: got null")));
  EXPECT_THAT(Counting(2, 0),
              StatusIs(kInvalidArgument, HasSubstr("frames_per_batch: got 0")));
  EXPECT_THAT(Counting(2, 4, {.total_frames = 0}),
              StatusIs(kInvalidArgument, HasSubstr("total_frames: got 0")));
  EXPECT_THAT(
      Counting(2, 4, {.init_random_frames = -1}),
      StatusIs(kInvalidArgument, HasSubstr("init_random_frames: got -1")));
  EXPECT_THAT(
      Counting(2, 4, {.max_frames_per_traj = 0}),
      StatusIs(kInvalidArgument, HasSubstr("max_frames_per_traj: got 0")));
  EXPECT_THAT(Counting(2, 4, {.first_lane = -1}),
              StatusIs(kInvalidArgument, HasSubstr("first_lane: got -1")));
  SyncCollector::Options options;
  options.transforms.push_back(nullptr);
  EXPECT_THAT(Counting(2, 4, std::move(options)),
              StatusIs(kInvalidArgument, HasSubstr("transforms[0]: got null")));
}

}  // namespace
}  // namespace rill
