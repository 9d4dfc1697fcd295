// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/fake_environment.h"
#include "rill/transforms/conformance/step_transform_conformance.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/images/cat_frames.h"
#include "rill/transforms/images/time_max_pool.h"
#include "rill/transforms/step_transform.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Padding = CatFrames::Padding;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
constexpr int64_t kLanes = 3;

TensorDictSpec PixelSpec(const LeafSpec& pixels) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("pixels", pixels));
  RILL_EXPECT_OK(spec.Set("next/pixels", pixels));
  return spec;
}

const LeafSpec kBytes = LeafSpec::Unbounded(DType::kUInt8, {2, 3});

// The frames of an environment, and a transform's result.
struct Steps {
  std::vector<TensorDict> given;
  std::vector<TensorDict> made;
  std::vector<std::vector<uint8_t>> resets;  // Before each step.
};

// Twelve steps of three lanes, whose episodes end at different times. A done
// below next says that the lane is reset.
Steps TakeSteps(const StepTransform& transform, const TensorDictSpec& spec) {
  Steps steps;
  auto environment = FakeEnvironment::Create(spec, kLanes, &transform);
  RILL_EXPECT_OK(environment);
  const auto reset_before = [](int64_t t, int64_t lane) {
    return static_cast<uint8_t>(t == 0 || (t + lane) % (4 + lane) == 0);
  };
  for (int64_t t = 0; t < 12; ++t) {
    std::vector<uint8_t> mask;
    TensorDict done({kLanes});
    RILL_EXPECT_OK(
        done.Set("next/done", *Tensor::Zeros(DType::kBool, {kLanes, 1})));
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      mask.push_back(reset_before(t, lane));
      done.Find("next/done")->data<bool>()[lane] =
          reset_before(t + 1, lane) != 0;
    }
    RILL_EXPECT_OK(environment->Reset(mask));
    RILL_EXPECT_OK(environment->Step());
    TensorDict given = *environment->environment_step().Clone();
    TensorDict made = *environment->step().Clone();
    for (TensorDict* step : {&given, &made}) {
      RILL_EXPECT_OK(step->SetInPlace("next/done", *done.Find("next/done")));
    }
    steps.given.push_back(std::move(given));
    steps.made.push_back(std::move(made));
    steps.resets.push_back(std::move(mask));
  }
  return steps;
}

// --- CatFrames ---------------------------------------------------------------

// A batch [T] of such observations, done behind those that `ends` names.
TensorDict Batch(const std::vector<float>& observations,
                 const std::vector<size_t>& ends) {
  const auto n = static_cast<int64_t>(observations.size());
  std::vector<bool> done(observations.size(), false);
  for (const size_t end : ends) done[end] = true;
  std::vector<float> next;
  for (const float observation : observations) next.push_back(observation + 1);
  TensorDict batch({n});
  RILL_EXPECT_OK(
      batch.Set("observation", *Tensor::From<float>(observations, {n, 1})));
  RILL_EXPECT_OK(
      batch.Set("next/observation", *Tensor::From<float>(next, {n, 1})));
  RILL_EXPECT_OK(batch.Set("next/done", *Tensor::From<bool>(done, {n, 1})));
  return batch;
}

CatFrames::Options ThreeOf(const std::vector<std::string>& keys,
                           Padding padding) {
  return {.num_frames = 3, .in_keys = keys, .padding = padding};
}

TEST(CatFramesTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto frames,
                            CatFrames::Create({.num_frames = 4, .dim = -3}));
  EXPECT_EQ(frames->name(), "CatFrames");
}

TEST(CatFramesTest, T5_SamePadsWithTheFirstFrame) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto frames, CatFrames::Create(ThreeOf({"observation"}, Padding::kSame)));
  TensorDict batch = Batch({1, 2, 3, 4, 5, 6}, {2});
  RILL_ASSERT_OK(frames->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 1, 1, 1, 1, 2, 1, 2, 3,  //
                                       4, 4, 4, 4, 4, 5, 4, 5, 6)));
}

TEST(CatFramesTest, T5_ConstantPadsWithTheValue) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto frames,
      CatFrames::Create(ThreeOf({"observation"}, Padding::kConstant)));
  TensorDict batch = Batch({1, 2, 3, 4, 5, 6}, {2});
  RILL_ASSERT_OK(frames->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 0, 1, 0, 1, 2, 1, 2, 3,  //
                                       0, 0, 4, 0, 4, 5, 4, 5, 6)));
}

TEST(CatFramesTest, NextIsTheStackOneStepLater) {
  CatFrames::Options options =
      ThreeOf({"next/observation", "observation"}, Padding::kConstant);
  options.padding_value = -1;
  options.out_keys = {"next/stack", "stack"};
  RILL_ASSERT_OK_AND_ASSIGN(auto frames, CatFrames::Create(options));
  TensorDict batch = Batch({1, 2, 4, 5}, {1});
  RILL_ASSERT_OK(frames->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/stack"),
              IsOkAndHolds(ElementsAre(-1, 1, 2, 1, 2, 3, -1, 4, 5, 4, 5, 6)));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 2, 4, 5)));
}

TEST(CatFramesTest, LinesOfABatchAreApart) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto frames, CatFrames::Create(ThreeOf({"observation"}, Padding::kSame)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                            Batch({1, 2, 3, 4}, {}).Reshape({2, 2}));
  RILL_ASSERT_OK(batch.SetDimNames({"env", "time"}));
  RILL_ASSERT_OK(frames->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 4)));
  EXPECT_THAT(batch.dim_names(), ElementsAre("env", "time"));
}

// The stacks beside an environment are those of the batch of its steps.
TEST(CatFramesTest, BesideAnEnvironmentAndAfterAReadAreTheSame) {
  for (const Padding padding : {Padding::kSame, Padding::kConstant}) {
    for (const int64_t n : {1, 2, 3, 7}) {
      for (const int dim : {-1, -2}) {
        const CatFrames::Options options = {
            .num_frames = n,
            .dim = dim,
            .in_keys = {"pixels", "next/pixels"},
            .padding = padding,
            .padding_value = 9};
        RILL_ASSERT_OK_AND_ASSIGN(auto frames, CatFrames::Create(options));
        const Steps steps = TakeSteps(*frames, PixelSpec(kBytes));
        RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, Stack(steps.given, 1));
        RILL_ASSERT_OK(frames->Forward(&batch, nullptr));
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, Stack(steps.made, 1));
        for (const char* key : {"pixels", "next/pixels"}) {
          EXPECT_EQ(batch.Find(key)->shape(),
                    Shape({kLanes, 12, dim == -2 ? 2 * n : 2,
                           dim == -1 ? 3 * n : 3}));
          EXPECT_THAT(batch.Find(key)->BitEquals(*want.Find(key)),
                      IsOkAndHolds(true))
              << key << " n " << n << " dim " << dim;
        }
      }
    }
  }
}

TEST(CatFramesTest, DomainsFollowTheFrames) {
  const auto after = [](const CatFrames::Options& options,
                        const LeafSpec& pixels) {
    const auto frames = CatFrames::Create(options);
    RILL_EXPECT_OK(frames);
    const auto spec = (*frames)->ForwardSpec(PixelSpec(pixels));
    RILL_EXPECT_OK(spec);
    return *spec->Find("pixels");
  };
  const LeafSpec unit = LeafSpec::Bounded(DType::kFloat32, {2, 3}, 0, 1);
  const LeafSpec stack = LeafSpec::Bounded(DType::kFloat32, {2, 6}, 0, 1);
  const LeafSpec any = LeafSpec::Unbounded(DType::kFloat32, {2, 6});
  EXPECT_EQ(after({.num_frames = 2}, unit), stack);
  EXPECT_EQ(after({.num_frames = 2, .padding = Padding::kConstant}, unit),
            stack);
  EXPECT_EQ(
      after(
          {.num_frames = 2, .padding = Padding::kConstant, .padding_value = -1},
          unit),
      any);
  // Stacks of next hold frames of the root.
  TensorDictSpec differs = PixelSpec(unit);
  RILL_ASSERT_OK(
      differs.Set("next/pixels", LeafSpec::Binary({2, 3}, DType::kFloat32)));
  RILL_ASSERT_OK_AND_ASSIGN(auto frames, CatFrames::Create({.num_frames = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan, frames->PlanSteps(differs));
  EXPECT_EQ(*plan.spec.Find("next/pixels"), any);
}

TEST(CatFramesTest, SaysHowAUnitOfASamplerStacks) {
  RILL_ASSERT_OK_AND_ASSIGN(auto frames,
                            CatFrames::Create({.num_frames = 4,
                                               .dim = -3,
                                               .padding = Padding::kConstant,
                                               .padding_value = 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const StackFrames::Options stack,
                            frames->AsStackFrames());
  EXPECT_EQ(stack.num_frames, 4);
  EXPECT_EQ(stack.dim, -3);
  EXPECT_FALSE(stack.new_dim);
  EXPECT_EQ(stack.padding, Padding::kConstant);
  EXPECT_EQ(stack.value, 2);
  EXPECT_THAT(stack.keys, ElementsAre("pixels", "next/pixels"));
  RILL_EXPECT_OK(StackFrames::Create(stack));
  RILL_ASSERT_OK_AND_ASSIGN(frames, CatFrames::Create({.out_keys = {"stack"}}));
  EXPECT_THAT(frames->AsStackFrames().status(),
              StatusIs(kInvalidArgument, HasSubstr("out_keys")));
}

TEST(CatFramesTest, BatchesThatDoNotFitAreErrorsAndStayAsTheyWere) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto frames, CatFrames::Create(ThreeOf(
                       {"observation", "next/observation"}, Padding::kSame)));
  TensorDict row;
  EXPECT_THAT(frames->Forward(&row, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("want [*B, T]")));
  for (const char* key : {"next/done", "observation", "next/observation"}) {
    TensorDict batch = Batch({1, 2}, {});
    RILL_ASSERT_OK(batch.Delete(key));
    const TensorDict before = batch;
    EXPECT_THAT(
        frames->Forward(&batch, nullptr),
        StatusIs(absl::StatusCode::kNotFound,
                 AllOf(HasSubstr("CatFrames::Forward"), HasSubstr(key))));
    EXPECT_THAT(
        frames->ForwardSpec(TensorDictSpec::Of(batch)),
        StatusIs(absl::StatusCode::kNotFound,
                 AllOf(HasSubstr("CatFrames::ForwardSpec"), HasSubstr(key))));
    RILL_ASSERT_OK(batch.Set(key, *Tensor::Zeros(DType::kInt16, {2, 5})));
    EXPECT_EQ(frames->Forward(&batch, nullptr).code(), kInvalidArgument);
    EXPECT_EQ(frames->ForwardSpec(TensorDictSpec::Of(batch)).status().code(),
              kInvalidArgument);
    for (const std::string& other : before.LeafKeys()) {
      EXPECT_THAT(batch.Find(other)->BitEquals(*before.Find(other)),
                  IsOkAndHolds(true));
    }
  }
}

TEST(CatFramesTest, FramesThatCannotBeJoinedAreErrors) {
  const auto spec_of = [](const CatFrames::Options& options) {
    return (*CatFrames::Create(options))->ForwardSpec(PixelSpec(kBytes));
  };
  EXPECT_THAT(
      spec_of({.dim = -3}),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("\"pixels\": got frames [2"),
                                       HasSubstr("the dimension -3"))));
  EXPECT_THAT(spec_of({.padding = Padding::kConstant, .padding_value = 0.5}),
              StatusIs(kInvalidArgument, HasSubstr("want one of uint8")));
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {1, 2})));
  RILL_ASSERT_OK(batch.Set("next/done", *Tensor::Zeros(DType::kBool, {1, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto half,
      CatFrames::Create({.padding = Padding::kConstant, .padding_value = 0.5}));
  EXPECT_THAT(half->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("want one of uint8")));
}

TEST(CatFramesTest, FramesWithoutElementsAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto frames, CatFrames::Create({}));
  const TensorDictSpec spec =
      PixelSpec(LeafSpec::Unbounded(DType::kUInt8, {3, 5, 0}));
  EXPECT_THAT(
      frames->ForwardSpec(spec),
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("CatFrames::ForwardSpec: \"pixels\": got"),
                     HasSubstr("want frames of at least one element"))));
  EXPECT_THAT(frames->PlanSteps(spec).status(), StatusIs(kInvalidArgument));
  TensorDict batch({2});
  RILL_ASSERT_OK(
      batch.Set("pixels", *Tensor::Zeros(DType::kUInt8, {2, 3, 5, 0})));
  RILL_ASSERT_OK(batch.Set("next/done", *Tensor::Zeros(DType::kBool, {2, 1})));
  EXPECT_THAT(
      frames->Forward(&batch, nullptr),
      StatusIs(kInvalidArgument, HasSubstr("CatFrames::Forward: \"pixels\"")));
}

TEST(CatFramesTest, KeysBelowNextAreRefusedAloneBesideAnEnvironment) {
  for (const CatFrames::Options& options :
       std::vector<CatFrames::Options>{{.in_keys = {"next/pixels"}},
                                       {.in_keys = {"pixels", "next/pixels"},
                                       .out_keys = {"stack", "next/other"}}}) {
    RILL_ASSERT_OK_AND_ASSIGN(auto frames, CatFrames::Create(options));
    EXPECT_THAT(
        frames->PlanSteps(PixelSpec(kBytes)).status(),
        StatusIs(kInvalidArgument, AllOf(HasSubstr("CatFrames::PlanSteps"),
                                         HasSubstr("want \"pixels\""))));
  }
}

TEST(CatFramesTest, OptionsOutOfRangeAreNamed) {
  for (const int64_t n : {int64_t{0}, INT64_MAX}) {
    EXPECT_THAT(CatFrames::Create({.num_frames = n}),
                StatusIs(kInvalidArgument, HasSubstr("num_frames")));
  }
  for (const int dim : {0, -9}) {
    EXPECT_THAT(CatFrames::Create({.dim = dim}),
                StatusIs(kInvalidArgument, HasSubstr("dim: got")));
  }
  EXPECT_THAT(CatFrames::Create({.in_keys = {}}),
              StatusIs(kInvalidArgument, HasSubstr("in_keys")));
  EXPECT_THAT(CatFrames::Create({.done_key = ""}),
              StatusIs(kInvalidArgument, HasSubstr("done_key")));
}

// --- TimeMaxPool -------------------------------------------------------------

TEST(TimeMaxPoolTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto pool, TimeMaxPool::Create({.num_steps = 2, .in_keys = {"pixels"}}));
  EXPECT_EQ(pool->name(), "TimeMaxPool");
}

// The largest of the last `n` values of the lane's episode, as doubles.
std::vector<double> LargestOf(const Steps& steps, int64_t n, size_t t,
                              const std::string& key) {
  std::vector<double> largest;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    std::vector<std::vector<double>> values;  // The newest first.
    const auto add = [&](size_t step, const std::string& from) {
      const Tensor row = *steps.given[step].Find(from)->Index(lane);
      const Tensor wide = *Cast(row, DType::kFloat64);
      values.emplace_back(wide.data<double>(),
                          wide.data<double>() + wide.num_elements());
    };
    if (key == "next/pixels") add(t, key);
    for (size_t step = t;; --step) {
      add(step, "pixels");
      if (steps.resets[step][static_cast<size_t>(lane)] != 0) break;
    }
    values.resize(std::min(values.size(), static_cast<size_t>(n)));
    for (size_t i = 0; i < values[0].size(); ++i) {
      double most = values[0][i];
      for (const std::vector<double>& value : values) {
        most = std::max(most, value[i]);
      }
      largest.push_back(most);
    }
  }
  return largest;
}

TEST(TimeMaxPoolTest, IsTheLargestOfTheLastValuesOfTheEpisode) {
  for (const DType dtype : {DType::kUInt8, DType::kFloat32, DType::kFloat64}) {
    for (const int64_t n : {1, 2, 3, 9}) {
      TimeMaxPool::Options options = {.num_steps = n, .in_keys = {"pixels"}};
      if (n != 2) options.out_keys = {"largest"};
      RILL_ASSERT_OK_AND_ASSIGN(auto pool, TimeMaxPool::Create(options));
      const TensorDictSpec spec = PixelSpec(LeafSpec::Unbounded(dtype, {5, 7}));
      std::vector<std::vector<double>> want;
      ForEachTarget([&] {
        const Steps steps = TakeSteps(*pool, spec);
        size_t at = 0;
        for (size_t t = 0; t < steps.made.size(); ++t) {
          for (const std::string prefix : {"", "next/"}) {
            if (want.size() == at) {
              want.push_back(LargestOf(steps, n, t, prefix + "pixels"));
            }
            const Tensor* made =
                steps.made[t].Find(prefix + (n == 2 ? "pixels" : "largest"));
            ASSERT_NE(made, nullptr);
            ASSERT_THAT(Cast(*made, DType::kFloat64)->Flat<double>(),
                        IsOkAndHolds(ElementsAreArray(want[at++])))
                << dtype << " n " << n << " step " << t;
          }
        }
      });
    }
  }
}

TEST(TimeMaxPoolTest, NaNStaysWhileItIsAmongTheValues) {
  const auto expect = [](auto zero) {
    using T = decltype(zero);
    RILL_ASSERT_OK_AND_ASSIGN(
        auto pool,
        TimeMaxPool::Create({.num_steps = 2, .in_keys = {"pixels"}}));
    const TensorDictSpec spec = PixelSpec(LeafSpec::Unbounded(DTypeOf<T>, {1}));
    RILL_ASSERT_OK_AND_ASSIGN(auto environment,
                              FakeEnvironment::Create(spec, 1, pool.get()));
    RILL_ASSERT_OK(environment.Reset({1}));
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
    std::vector<bool> seen;
    for (const T value : {T{1}, kNaN, T{2}, T{1}}) {
      TensorDict made({1});
      RILL_ASSERT_OK(
          made.Set("next/pixels", *Tensor::From<T>({value}, {1, 1})));
      RILL_ASSERT_OK(environment.Step(made));
      RILL_ASSERT_OK_AND_ASSIGN(const auto largest,
                                environment.step().Flat<T>("next/pixels"));
      seen.push_back(std::isnan(largest[0]));
    }
    EXPECT_THAT(seen, ElementsAre(false, true, true, false));
  };
  ForEachTarget([&] { expect(float()); });
  expect(double());
}

TEST(TimeMaxPoolTest, OlderValuesAreInTheData) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto pool, TimeMaxPool::Create({.num_steps = 4, .in_keys = {"pixels"}}));
  RILL_ASSERT_OK_AND_ASSIGN(const StepPlan plan,
                            pool->PlanSteps(PixelSpec(kBytes)));
  for (const char* key : {"pixels_before", "next/pixels_before"}) {
    ASSERT_NE(plan.spec.Find(key), nullptr);
    EXPECT_EQ(*plan.spec.Find(key),
              LeafSpec::Unbounded(DType::kUInt8, {2, 2, 3}));
  }
}

TEST(TimeMaxPoolTest, LeavesThatDoNotFitAreNamed) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto pool, TimeMaxPool::Create({.num_steps = 3, .in_keys = {"pixels"}}));
  EXPECT_THAT(pool->PlanSteps(TedSpec()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("pixels")));
  for (const LeafSpec& leaf :
       {LeafSpec::Unbounded(DType::kInt64, {2}),
        LeafSpec::Unbounded(DType::kUInt8, {1, 1, 1, 1, 1, 1, 1})}) {
    EXPECT_THAT(pool->PlanSteps(PixelSpec(leaf)).status(),
                StatusIs(kInvalidArgument,
                         HasSubstr("TimeMaxPool::PlanSteps: \"pixels\": got")));
  }
}

TEST(TimeMaxPoolTest, ANewKeyThatTheStepsHaveIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto pool,
                            TimeMaxPool::Create({.out_keys = {"done"}}));
  EXPECT_THAT(pool->PlanSteps(TedSpec()).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"done\"")));
  RILL_ASSERT_OK_AND_ASSIGN(pool, TimeMaxPool::Create({.num_steps = 3}));
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(spec.Set("observation_before", LeafSpec::Binary({1})));
  EXPECT_THAT(pool->PlanSteps(spec).status(),
              StatusIs(kInvalidArgument, HasSubstr("\"observation_before\"")));
}

TEST(TimeMaxPoolTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(TimeMaxPool::Create({.num_steps = 0}),
              StatusIs(kInvalidArgument, HasSubstr("num_steps: got 0")));
  EXPECT_THAT(TimeMaxPool::Create({.in_keys = {"next/pixels"}}),
              StatusIs(kInvalidArgument, HasSubstr("want keys of the root")));
  EXPECT_THAT(TimeMaxPool::Create({.out_keys = {"a", "b"}}),
              StatusIs(kInvalidArgument, HasSubstr("out_keys")));
}

// --- Conformance -------------------------------------------------------------

CatFrames::Options StackOf(Padding padding) {
  return {.num_frames = 3,
          .dim = -2,
          .in_keys = {"pixels", "next/pixels"},
          .padding = padding,
          .padding_value = 5};
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(Same,
                                  InABuffer<CatFrames>(StackOf(Padding::kSame),
                                                       PixelSpec(kBytes)));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    Constant,
    InABuffer<CatFrames>(StackOf(Padding::kConstant), PixelSpec(kBytes)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Same,
    BesideAnEnvironment<CatFrames>(StackOf(Padding::kSame), PixelSpec(kBytes)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    Constant, BesideAnEnvironment<CatFrames>(StackOf(Padding::kConstant),
                                             PixelSpec(kBytes)));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    OfOne, BesideAnEnvironment<TimeMaxPool>({.num_steps = 1}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    OfTwo, BesideAnEnvironment<TimeMaxPool>({.num_steps = 2}, TedSpec()));
INSTANTIATE_STEP_TRANSFORM_CONFORMANCE(
    OfFour, BesideAnEnvironment<TimeMaxPool>({.num_steps = 4}, TedSpec()));

}  // namespace rill
