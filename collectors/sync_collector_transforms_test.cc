// SPDX-License-Identifier: Apache-2.0
// Transforms beside the environment of a SyncCollector.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/arrived_rows.h"
#include "rill/collectors/testing/fake_transforms.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/envs/testing/faulty_env.h"
#include "rill/flow/sink.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/reward_sum.h"
#include "rill/transforms/step_counter.h"

namespace rill {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One collector of 2 lanes with episodes of 3 and 4 steps.
template <typename... Transforms>
absl::StatusOr<std::unique_ptr<SyncCollector>> Collector(
    int64_t frames, Transforms... transforms) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(options.env,
                        MakeCountingEnv({.lanes = 2, .stagger_steps = 1}));
  options.frames_per_batch = frames;
  (options.transforms.push_back(std::move(transforms)), ...);
  return SyncCollector::Create(std::move(options));
}

// observation float32 [1] -> float64 [2]: (x, 10 x).
std::unique_ptr<StepTransform> Wide() {
  const auto widen = [](const BoundLeaf& from, const BoundLeaf& to) {
    const absl::Span<const float> narrow = from.As<float>();
    const absl::Span<double> wide = to.As<double>();
    for (size_t i = 0; i < narrow.size(); ++i) {
      wide[2 * i] = narrow[i];
      wide[2 * i + 1] = 10 * narrow[i];
    }
    return absl::OkStatus();
  };
  return LambdaTransform::Make(
      {.name = "Wide",
       .plan = [](StepPlan plan) -> absl::StatusOr<StepPlan> {
         const auto wide = LeafSpec::Unbounded(DType::kFloat64, {2});
         for (const char* key : {"observation", "next/observation"}) {
           plan.leaves.push_back({.key = key, .shape = {1}});
           RILL_RETURN_IF_ERROR(AddWrittenLeaf(key, wide, &plan));
         }
         return plan;
       },
       .on_reset =
           [widen](absl::Span<const uint8_t>, StepTransform::Leaves leaves) {
             return widen(leaves[0], leaves[1]);
           },
       .on_step =
           [widen](StepTransform::Leaves leaves) {
             return widen(leaves[2], leaves[3]);
           }});
}

TEST(SyncCollectorTransformsTest, CountsAndSumsFollowTheEpisodes) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter, StepCounter::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto sum, RewardSum::Create({}));
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Collector(10, std::move(counter), std::move(sum)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  RILL_EXPECT_OK(collector->spec().CheckValues("test", batch));
  EXPECT_THAT(batch.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0, 1, 0, 1, 2, 3, 0)));
  EXPECT_THAT(batch.Flat<int64_t>("next/step_count"),
              IsOkAndHolds(ElementsAre(1, 2, 3, 1, 2, 1, 2, 3, 4, 1)));
  EXPECT_THAT(batch.Flat<float>("next/episode_reward"),
              IsOkAndHolds(ElementsAre(1, 3, 6, 1, 3, 1, 3, 6, 10, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(batch, collector->Next());
  EXPECT_THAT(batch.Flat<int64_t>("step_count"),
              IsOkAndHolds(ElementsAre(2, 0, 1, 2, 0, 1, 2, 3, 0, 1)));
}

TEST(SyncCollectorTransformsTest, TruncationByATransformBeginsAnEpisode) {
  RILL_ASSERT_OK_AND_ASSIGN(auto counter,
                            StepCounter::Create({.max_steps = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Collector(10, std::move(counter)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1, 0, 1, 0)));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(0, 1, 0, 1, 0, 0, 1, 0, 1, 0)));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"), IsOkAndHolds(Each(false)));
  EXPECT_THAT(batch.Flat<int64_t>("collector/traj_ids"),
              IsOkAndHolds(ElementsAre(0, 0, 2, 2, 4, 1, 1, 3, 3, 5)));
}

TEST(SyncCollectorTransformsTest, ALeafMayChangeItsLayout) {
  FunctionPolicy policy([](const TensorDict& root, const ActContext&, Tensor*) {
    EXPECT_THAT(*root.Find("observation"),
                TensorIs(DType::kFloat64, Shape({2, 2})));
    return absl::OkStatus();
  });
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCountingEnv({}));
  options.env = *MakeCountingEnv({.lanes = 2, .stagger_steps = 1});
  options.policy = &policy;
  options.frames_per_batch = 10;
  options.transforms.push_back(Wide());
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            SyncCollector::Create(std::move(options)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(*batch.Find("observation"),
              TensorElementsAre<double>(0, 0, 1, 10, 2, 20, 0, 0, 1, 10,  //
                                        0, 0, 1, 10, 2, 20, 3, 30, 0, 0));
  EXPECT_THAT(*batch.Find("next/observation"),
              TensorElementsAre<double>(1, 10, 2, 20, 3, 30, 1, 10, 2, 20,  //
                                        1, 10, 2, 20, 3, 30, 4, 40, 1, 10));
}

TEST(SyncCollectorTransformsTest, WhatOnResetChangesIsSeenAtTheRoot) {
  auto shift = LambdaTransform::Make(
      {.plan = [](StepPlan plan) -> absl::StatusOr<StepPlan> {
         plan.leaves.push_back(
             {.key = "observation", .shape = {1}, .use = LeafUse::kUpdate});
         return plan;
       },
       .on_reset =
           [](absl::Span<const uint8_t> mask, StepTransform::Leaves leaves) {
             const absl::Span<float> values = leaves[0].As<float>();
             for (size_t lane = 0; lane < mask.size(); ++lane) {
               if (mask[lane] != 0) values[lane] += 100;
             }
             return absl::OkStatus();
           }});
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Collector(10, std::move(shift)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(100, 1, 2, 100, 1, 100, 1, 2, 3, 100)));
}

TEST(SyncCollectorTransformsTest, CreateRefusesATransformThatDoesNotFit) {
  const auto refuse = [](StepPlan) -> absl::StatusOr<StepPlan> {
    return absl::InvalidArgumentError("no pixels");
  };
  EXPECT_THAT(Collector(4, Wide(), LambdaTransform::Make({.plan = refuse})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no pixels; TransformedEnv::Create: "
                                 "transforms[1] (Lambda)")));
}

TEST(SyncCollectorTransformsTest, CreateRefusesTheCollectorsOwnNames) {
  const auto plan = [](StepPlan p) -> absl::StatusOr<StepPlan> {
    const auto version = LeafSpec::Unbounded(DType::kInt64, {1});
    RILL_RETURN_IF_ERROR(AddWrittenLeaf("policy_version", version, &p));
    RILL_RETURN_IF_ERROR(AddWrittenLeaf("next/policy_version", version, &p));
    return p;
  };
  EXPECT_THAT(Collector(4, LambdaTransform::Make({.plan = plan})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"policy_version\"")));
}

// --- Statistics --------------------------------------------------------------

constexpr char kNormState[] = "transforms/1/state";

// "normed" is "observation" by the statistics of a VecNorm with decay 1, behind
// a transform whose state belongs to lanes. The environment fails in
// `fail_step`.
absl::StatusOr<std::unique_ptr<SyncCollector>> Normed(int64_t fail_step = -1,
                                                      bool is_frozen = false) {
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSIGN_OR_RETURN(auto env,
                        MakeCountingEnv({.lanes = 2, .stagger_steps = 1}));
  options.env = std::make_unique<FaultyEnv>(
      std::move(env), FaultyEnv::Options{.fail_step = fail_step});
  options.transforms.push_back(std::make_unique<SeenTransform>());
  RILL_ASSIGN_OR_RETURN(options.transforms.emplace_back(),
                        VecNorm::Create({.shapes = {{1}},
                                         .out_keys = {"normed"},
                                         .decay = 1,
                                         .frozen = is_frozen}));
  options.frames_per_batch = 20;
  return SyncCollector::Create(std::move(options));
}

TEST(SyncCollectorStatisticsTest, AreThoseOfTheRowsThatWereHandedOut) {
  for (const int64_t fail_step : {-1, 0, 3, 17, 29}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto collector, Normed(fail_step));
    ArrivedRows arrived(1);
    for (int i = 0; i < 4; ++i) {
      const auto batch = collector->Next();
      if (!batch.ok()) continue;  // Its steps are lost.
      arrived.Add(*batch);
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                                collector->TransformStates());
      ASSERT_NE(states.FindDict(kNormState), nullptr);
      EXPECT_THAT(*states.FindDict(kNormState), BitEqualTo(arrived.State()));
      // What belongs to lanes is none.
      EXPECT_EQ(states.FindDict("transforms/0"), nullptr);
    }
    EXPECT_GT(arrived.count(), fail_step < 0 ? 80 : 60);
  }
}

TEST(SyncCollectorStatisticsTest, ASinkThatRefusesABatchCountsItOnce) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Normed());
  ArrivedRows arrived(1);
  int calls = 0;
  FunctionSink sink([&](const TensorDict& batch, const WriteInfo&) {
    if (++calls % 2 == 1) return absl::ResourceExhaustedError("full");
    arrived.Add(batch);
    return absl::OkStatus();
  });
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(collector->CollectInto(sink).ok(), i % 2 == 1);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            collector->TransformStates());
  EXPECT_THAT(*states.FindDict(kNormState), BitEqualTo(arrived.State()));
}

// Of frozen ones too: no row has the scale of before.
TEST(SyncCollectorStatisticsTest, OtherStatesHoldFromAResetOfAllLanesOn) {
  RILL_ASSERT_OK_AND_ASSIGN(auto teacher, Normed());
  RILL_ASSERT_OK(teacher->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            teacher->TransformStates());
  RILL_ASSERT_OK_AND_ASSIGN(
      const VecNormMoments moments,
      ReadVecNorm(*states.FindDict(kNormState), "observation"));
  const double loc = moments.loc.data<double>()[0];
  const double scale = moments.scale.data<double>()[0];

  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Normed(-1, /*is_frozen=*/true));
  std::vector<TensorDict> batches;
  std::vector<LaneRange> cuts;
  FunctionSink sink(
      [&](const TensorDict& batch, const WriteInfo&) {
        batches.push_back(*batch.Clone());
        return absl::OkStatus();
      },
      [&](int64_t, LaneRange lanes) {
        cuts.push_back(lanes);
        return absl::OkStatus();
      });
  RILL_ASSERT_OK(collector->CollectInto(sink));
  RILL_ASSERT_OK(collector->LoadTransformStates(states));
  RILL_ASSERT_OK(collector->CollectInto(sink));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict after,
                            collector->TransformStates());
  EXPECT_THAT(after, BitEqualTo(states));
  EXPECT_THAT(cuts, ElementsAre(LaneRange{.first = 0, .count = 2}));
  // Without statistics leaves stay.
  EXPECT_THAT(*batches[0].Find("normed"),
              BitEqualTo(*batches[0].Find("observation")));
  for (const std::string prefix : {"", "next/"}) {
    const auto raw = *batches[1].Flat<float>(prefix + "observation");
    const auto normed = *batches[1].Flat<float>(prefix + "normed");
    EXPECT_EQ(raw[0], prefix.empty() ? 0 : 1);
    for (size_t row = 0; row < raw.size(); ++row) {
      EXPECT_FLOAT_EQ(normed[row], static_cast<float>((raw[row] - loc) / scale))
          << prefix << row;
    }
  }
  const auto before = *batches[0].Flat<int64_t>("collector/traj_ids");
  const auto ids = *batches[1].Flat<int64_t>("collector/traj_ids");
  for (const int64_t id : ids) {
    EXPECT_EQ(std::count(before.begin(), before.end(), id), 0) << id;
  }
}

TEST(SyncCollectorStatisticsTest, StatesOfOtherTransformsAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Normed());
  RILL_ASSERT_OK(collector->Next().status());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict states,
                            collector->TransformStates());
  RILL_ASSERT_OK_AND_ASSIGN(auto plain, Collector(20));
  EXPECT_THAT(plain->TransformStates(),
              IsOkAndHolds(::testing::Truly(
                  [](const TensorDict& none) { return none.empty(); })));
  EXPECT_THAT(
      plain->LoadTransformStates(states),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want none")));
  TensorDict other = states;
  RILL_ASSERT_OK(other.Rename("transforms/1/state/observation",
                              "transforms/1/state/pixels"));
  EXPECT_THAT(collector->LoadTransformStates(other),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("transforms/1/state/observation")));
  RILL_ASSERT_OK(other.Delete("transforms/1/name"));
  EXPECT_FALSE(collector->LoadTransformStates(other).ok());
  EXPECT_THAT(collector->TransformStates(), IsOkAndHolds(BitEqualTo(states)));
}

}  // namespace
}  // namespace rill
