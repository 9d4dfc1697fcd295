// SPDX-License-Identifier: Apache-2.0
// Transforms beside the environment of a SyncCollector.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/fake_transforms.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/specs/spec.h"
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

// One collector of 2 lanes with episodes of 3 and 4 steps.
template <typename... Transforms>
absl::StatusOr<std::unique_ptr<SyncCollector>> Collector(
    int64_t frames, Transforms... transforms) {
  SyncCollector::Options options;
  RILL_ASSIGN_OR_RETURN(options.env,
                        MakeCountingEnv({.lanes = 2, .stagger_steps = 1}));
  options.frames_per_batch = frames;
  (options.transforms.push_back(std::move(transforms)), ...);
  return SyncCollector::Create(std::move(options));
}

std::unique_ptr<StepTransform> Lambda(LambdaTransform::Options options) {
  return std::make_unique<LambdaTransform>(std::move(options));
}

// Sets the leaf of a plan and has the transform write it.
absl::Status Write(const std::string& key, const LeafSpec& spec,
                   StepPlan* plan) {
  plan->leaves.push_back({.key = key,
                          .dtype = spec.dtype,
                          .shape = spec.shape,
                          .use = LeafUse::kWrite});
  return plan->spec.Set(key, spec);
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
  return Lambda(
      {.name = "Wide",
       .plan = [](StepPlan plan) -> absl::StatusOr<StepPlan> {
         const auto wide = LeafSpec::Unbounded(DType::kFloat64, {2});
         for (const char* key : {"observation", "next/observation"}) {
           plan.leaves.push_back({.key = key, .shape = {1}});
           RILL_RETURN_IF_ERROR(Write(key, wide, &plan));
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
  auto shift = Lambda(
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
  EXPECT_THAT(Collector(4, Wide(), Lambda({.plan = refuse})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no pixels; TransformedEnv::Create: "
                                 "transforms[1] (Lambda)")));
}

TEST(SyncCollectorTransformsTest, CreateRefusesTheCollectorsOwnNames) {
  const auto plan = [](StepPlan p) -> absl::StatusOr<StepPlan> {
    const auto version = LeafSpec::Unbounded(DType::kInt64, {1});
    RILL_RETURN_IF_ERROR(Write("policy_version", version, &p));
    RILL_RETURN_IF_ERROR(Write("next/policy_version", version, &p));
    return p;
  };
  EXPECT_THAT(Collector(4, Lambda({.plan = plan})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"policy_version\"")));
}

}  // namespace
}  // namespace rill
