// SPDX-License-Identifier: Apache-2.0
// Transforms beside the environment of a SyncCollector.
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/collectors/testing/fake_transforms.h"
#include "rill/envs/testing/counting_env.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
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

std::unique_ptr<Transform> Lambda(LambdaTransform::Options options) {
  return std::make_unique<LambdaTransform>(std::move(options));
}

// observation float32 [1] -> float64 [2]: (x, 10 x), with other leaves.
absl::Status Widen(absl::string_view key, TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(auto from, dict->Flat<float>(key));
  RILL_ASSIGN_OR_RETURN(
      Tensor wide,
      Tensor::Zeros(DType::kFloat64, dict->batch_shape().Concat({2})));
  RILL_ASSIGN_OR_RETURN(auto to, wide.Flat<double>());
  for (size_t i = 0; i < from.size(); ++i) {
    to[2 * i] = from[i];
    to[2 * i + 1] = 10 * from[i];
  }
  return dict->Set(key, std::move(wide));
}
std::unique_ptr<Transform> Wide() {
  return Lambda(
      {.name = "Wide",
       .on_reset = [](absl::Span<const uint8_t>,
                      TensorDict* root) { return Widen("observation", root); },
       .on_step =
           [](TensorDict* step) { return Widen("next/observation", step); },
       .step_spec = [](TensorDictSpec spec) -> absl::StatusOr<TensorDictSpec> {
         const auto wide = LeafSpec::Unbounded(DType::kFloat64, {2});
         RILL_RETURN_IF_ERROR(spec.Set("observation", wide));
         RILL_RETURN_IF_ERROR(spec.Set("next/observation", wide));
         return spec;
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

TEST(SyncCollectorTransformsTest, OnResetTouchesRowsOfItsLanesOnly) {
  // Adds 100 to every row that it may change, and would to the others.
  auto shift = Lambda({.on_reset = [](absl::Span<const uint8_t>,
                                      TensorDict* root) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Tensor old, root->Get("observation"));
    RILL_ASSIGN_OR_RETURN(Tensor shifted, old.Clone());
    RILL_ASSIGN_OR_RETURN(auto values, shifted.Flat<float>());
    for (float& value : values) value += 100;
    return root->Set("observation", std::move(shifted));
  }});
  RILL_ASSERT_OK_AND_ASSIGN(auto collector, Collector(10, std::move(shift)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(100, 1, 2, 100, 1, 100, 1, 2, 3, 100)));
}

TEST(SyncCollectorTransformsTest, ARootLeafThatOnlyStepsMakeBeginsWithZeros) {
  const auto last = [](TensorDict* step) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Tensor reward, step->Get("next/reward"));
    return step->Set("next/last", std::move(reward));
  };
  const auto spec = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    const auto leaf = LeafSpec::Unbounded(DType::kFloat32, {1});
    RILL_RETURN_IF_ERROR(s.Set("last", leaf));
    RILL_RETURN_IF_ERROR(s.Set("next/last", leaf));
    return s;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector,
      Collector(10, Lambda({.on_step = last, .step_spec = spec})));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(batch.Flat<float>("last"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0, 1, 0, 1, 2, 3, 0)));
}

TEST(SyncCollectorTransformsTest, AStridedLeafIsRecorded) {
  const auto expand = [](TensorDict* step) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(Tensor reward, step->Get("next/reward"));
    RILL_ASSIGN_OR_RETURN(reward, reward.Expand({2, 3}));
    return step->Set("next/thrice", std::move(reward));
  };
  const auto spec = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    RILL_RETURN_IF_ERROR(
        s.Set("next/thrice", LeafSpec::Unbounded(DType::kFloat32, {3})));
    return s;
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      auto collector,
      Collector(4, Lambda({.on_step = expand, .step_spec = spec})));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, collector->Next());
  EXPECT_THAT(*batch.Find("next/thrice"),
              TensorElementsAre<float>(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
}

TEST(SyncCollectorTransformsTest, ATransformThatBreaksItsSpecIsNamed) {
  const auto spec = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    RILL_RETURN_IF_ERROR(
        s.Set("next/extra", LeafSpec::Unbounded(DType::kFloat32, {1})));
    return s;
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto collector,
                            Collector(4, Lambda({.step_spec = spec})));
  EXPECT_THAT(collector->Next(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("extra")));
  EXPECT_EQ(collector->frames(), 0);
}

TEST(SyncCollectorTransformsTest, CreateRefusesATransformThatDoesNotFit) {
  const auto refuse = [](TensorDictSpec) -> absl::StatusOr<TensorDictSpec> {
    return absl::InvalidArgumentError("no pixels");
  };
  EXPECT_THAT(Collector(4, Wide(), Lambda({.step_spec = refuse})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no pixels; SyncCollector::Create: "
                                 "transforms[1] (Lambda)")));
}

TEST(SyncCollectorTransformsTest, CreateRefusesASpecWithoutFlags) {
  const auto drop = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    s.Erase("next/done");
    return s;
  };
  EXPECT_THAT(Collector(4, Lambda({.step_spec = drop})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"next/done\" after the transforms")));
}

TEST(SyncCollectorTransformsTest, CreateRefusesALeafOfOneSideOnlyChanged) {
  const auto half = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    RILL_RETURN_IF_ERROR(
        s.Set("observation", LeafSpec::Unbounded(DType::kFloat64, {1})));
    return s;
  };
  EXPECT_THAT(Collector(4, Lambda({.step_spec = half})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"next/observation\"")));
}

TEST(SyncCollectorTransformsTest, CreateRefusesTheCollectorsOwnNames) {
  const auto spec = [](TensorDictSpec s) -> absl::StatusOr<TensorDictSpec> {
    RILL_RETURN_IF_ERROR(
        s.Set("policy_version", LeafSpec::Unbounded(DType::kInt64, {1})));
    return s;
  };
  EXPECT_THAT(Collector(4, Lambda({.step_spec = spec})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"policy_version\"")));
}

}  // namespace
}  // namespace rill
