// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/multi_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"
#include "rill/transforms/lane_transform.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Rows whose observations count up, so that tests see which came out.
TensorDictSpec RowSpec() {
  TensorDictSpec spec;
  for (const char* key : {"observation", "next/observation", "next/reward"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Unbounded(DType::kFloat32, {1})));
  }
  for (const char* key : {"next/done", "next/terminated", "next/truncated"}) {
    RILL_EXPECT_OK(spec.Set(key, LeafSpec::Binary({1})));
  }
  return spec;
}

// T3's steps: rewards 1 to 5, terminated at step 2, cut at the last.
TensorDict FiveSteps() {
  auto steps = TensorDict::Create(
      {5}, {{"observation", *Tensor::From<float>({0, 1, 2, 3, 4}, {5, 1})},
            {"next/observation", *Tensor::From<float>({1, 2, 3, 4, 5}, {5, 1})},
            {"next/reward", *Tensor::From<float>({1, 2, 3, 4, 5}, {5, 1})},
            {"next/done", *Tensor::From<bool>({0, 0, 1, 0, 1}, {5, 1})},
            {"next/terminated", *Tensor::From<bool>({0, 0, 1, 0, 0}, {5, 1})},
            {"next/truncated", *Tensor::From<bool>({0, 0, 0, 0, 1}, {5, 1})}});
  RILL_EXPECT_OK(steps);
  return *std::move(steps);
}

TEST(MultiStepTest, Example) {
  const TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create({.n_steps = 3, .gamma = 0.99, .rows = spec}));
  RILL_EXPECT_OK(multi_step->InverseSpec(spec));
}

TEST(MultiStepTest, T3_WindowsAreSummedUpToTheirEnds) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create({.n_steps = 2, .gamma = .9, .rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict batch = FiveSteps();
  RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
  EXPECT_THAT(
      batch.Flat<float>("next/reward"),
      IsOkAndHolds(ElementsAre(FloatNear(2.8f, 1e-6f), FloatNear(4.7f, 1e-6f),
                               3, FloatNear(8.5f, 1e-6f), 5)));
  EXPECT_THAT(batch.Flat<float>("next/observation"),
              IsOkAndHolds(ElementsAre(2, 3, 3, 5, 5)));
  EXPECT_THAT(batch.Flat<float>("observation"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4)));
  EXPECT_THAT(batch.Flat<int64_t>("steps_to_next_obs"),
              IsOkAndHolds(ElementsAre(2, 2, 1, 2, 1)));
  EXPECT_THAT(batch.Flat<float>("gamma"),
              IsOkAndHolds(ElementsAre(.81f, .81f, .9f, .81f, .9f)));
}

TEST(MultiStepTest, T3_OneStepChangesNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(auto multi_step,
                            MultiStep::Create({.rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict steps = FiveSteps();
  // The sum 0 + -0 would be 0.
  RILL_ASSERT_OK(steps.Set("next/reward",
                           *Tensor::From<float>({-0.f, 2, 3, 0, 5}, {5, 1})));
  TensorDict batch = steps;
  RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
  RILL_ASSERT_OK_AND_ASSIGN(batch,
                            batch.Exclude({"steps_to_next_obs", "gamma"}));
  RILL_EXPECT_OK(batch.CheckEqual(steps));
}

TEST(MultiStepTest, T4_FlagsAreThoseOfTheWindow) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create({.n_steps = 2, .gamma = .9, .rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict batch = FiveSteps();
  RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
  EXPECT_THAT(batch.Flat<bool>("next/terminated"),
              IsOkAndHolds(ElementsAre(false, true, true, false, false)));
  EXPECT_THAT(batch.Flat<bool>("next/truncated"),
              IsOkAndHolds(ElementsAre(false, false, false, true, true)));
}

TEST(MultiStepTest, ATerminatedStepEndsAWindowThoughItIsNotDone) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create({.n_steps = 3, .gamma = 1, .rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict batch = FiveSteps();
  RILL_ASSERT_OK(
      batch.Set("next/done", *Tensor::From<bool>({0, 0, 0, 0, 1}, {5, 1})));
  RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(6, 5, 3, 9, 5)));
}

// Random ends and cuts: rows without done come out as those with it.
TEST(MultiStepTest, PartsEndWindowsWhereDoneIsMissing) {
  const Rng rng(/*seed=*/40);
  TensorDictSpec parts = RowSpec();
  parts.Erase("next/done");
  const auto with = *MultiStep::Create({.n_steps = 3, .rows = RowSpec()});
  const auto without = *MultiStep::Create({.n_steps = 3, .rows = parts});
  TensorDict with_state = *with->InitialState();
  TensorDict without_state = *without->InitialState();
  const auto cut = [](const BatchTransform& transform, TensorDict* state) {
    return dynamic_cast<const LaneTransform&>(transform).CutLanes(0, 1, state);
  };
  for (uint32_t round = 0; round < 100; ++round) {
    TensorDict steps = FiveSteps();
    for (int64_t i = 0; i < 5; ++i) {
      const uint32_t bits = rng.Bits(round, static_cast<uint32_t>(i))[0];
      const bool is_terminated = bits % 4 == 0;
      const bool is_truncated = bits / 4 % 4 == 0;
      steps.Find("next/reward")->data<float>()[i] =
          static_cast<float>(bits / 16 % 8);
      steps.Find("next/terminated")->data<bool>()[i] = is_terminated;
      steps.Find("next/truncated")->data<bool>()[i] = is_truncated;
      steps.Find("next/done")->data<bool>()[i] = is_terminated || is_truncated;
    }
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, steps.Exclude({"next/done"}));
    RILL_ASSERT_OK(with->Inverse(&steps, &with_state));
    RILL_ASSERT_OK(without->Inverse(&batch, &without_state));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict expected,
                              steps.Exclude({"next/done"}));
    RILL_ASSERT_OK(batch.CheckEqual(expected));
    if (round % 3 != 0) continue;
    RILL_ASSERT_OK(cut(*with, &with_state));
    RILL_ASSERT_OK(cut(*without, &without_state));
  }
}

TEST(MultiStepTest, RewardsOfAGroupWithOtherEndsAreRefused) {
  TensorDictSpec rows = RowSpec();
  RILL_ASSERT_OK(
      rows.Set("next/guard/reward", LeafSpec::Unbounded(DType::kFloat32, {1})));
  const std::vector<std::string> reward = {"next/guard/reward"};
  RILL_EXPECT_OK(MultiStep::Create({.rows = rows, .reward_keys = reward}));
  RILL_ASSERT_OK(rows.Set("next/guard/truncated", LeafSpec::Binary({1})));
  EXPECT_THAT(MultiStep::Create({.rows = rows, .reward_keys = reward}),
              StatusIs(kInvalidArgument, HasSubstr("next/guard/truncated")));
  RILL_EXPECT_OK(MultiStep::Create({.rows = rows,
                                    .reward_keys = reward,
                                    .done_key = "next/guard/done",
                                    .terminated_key = "next/terminated"}));
}

TEST(MultiStepTest, ARowIsHeldUntilItsWindowIsWholeOrItsTrajectoryEnds) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create({.n_steps = 3, .gamma = 1, .rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  std::vector<int64_t> written;
  std::vector<int64_t> held;
  for (int64_t i = 0; i < 5; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, FiveSteps().Slice(0, i, i + 1));
    RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
    written.push_back(batch.batch_shape()[0]);
    held.push_back(state.Find("held")->data<int64_t>()[0]);
  }
  EXPECT_THAT(written, ElementsAre(0, 0, 3, 0, 2));
  EXPECT_THAT(held, ElementsAre(1, 2, 0, 1, 0));
}

// However a stream is cut into batches, the same rows come out.
TEST(MultiStepTest, BatchesOfAnySizeGiveTheSameRows) {
  constexpr int64_t kLanes = 3;
  constexpr int64_t kSteps = 40;
  const Rng rng(7, RngStream::kUser);
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict all,
                            spec.Random({kLanes, kSteps}, rng, 0));
  // Ends are rarer than a coin's.
  for (const char* key : {"next/done", "next/terminated", "next/truncated"}) {
    bool* flags = all.Find(key)->data<bool>();
    for (int64_t i = 0; i < kLanes * kSteps; ++i) {
      flags[i] = flags[i] && rng.UniformInt(1, static_cast<uint32_t>(i), 5) < 1;
    }
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create(
          {.n_steps = 4, .gamma = .9, .rows = spec, .lanes = kLanes}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict whole = all;
  RILL_ASSERT_OK(multi_step->Inverse(&whole, &state));
  const TensorDict last = state;
  EXPECT_GE(whole.batch_shape()[1], kSteps - 3);

  RILL_ASSERT_OK_AND_ASSIGN(state, multi_step->InitialState());
  std::vector<TensorDict> parts;
  uint32_t draw = 0;
  for (int64_t begin = 0; begin < kSteps;) {
    const int64_t size = std::min(kSteps - begin, rng.UniformInt(2, draw++, 6));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict part,
                              all.Slice(1, begin, begin + size));
    RILL_ASSERT_OK(multi_step->Inverse(&part, &state));
    EXPECT_LE(state.Find("held")->data<int64_t>()[0], 3);
    parts.push_back(std::move(part));
    begin += size;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict joined, Cat(parts, 1));
  RILL_EXPECT_OK(joined.CheckEqual(whole));
  RILL_EXPECT_OK(state.CheckEqual(last));
}

TEST(MultiStepTest, LanesThatHoldUnequallyManyAreRefusedTogether) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step,
      MultiStep::Create(
          {.n_steps = 4, .gamma = 1, .rows = RowSpec(), .lanes = 2}));
  const auto& lanes = dynamic_cast<const LaneTransform&>(*multi_step);
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  // Lane 0 holds rewards 4 and 5, lane 1 only 5.
  for (const int64_t lane : {0, 1}) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch,
                              FiveSteps().Slice(0, 3 + lane, 5));
    RILL_ASSERT_OK(
        batch.Set("next/done", *Tensor::Zeros(DType::kBool, {2 - lane, 1})));
    RILL_ASSERT_OK_AND_ASSIGN(batch, batch.Unsqueeze(0));
    RILL_ASSERT_OK(lanes.InverseAt(lane, &batch, &state));
    EXPECT_EQ(batch.batch_shape(), Shape({1, 0}));
  }
  EXPECT_THAT(state.Flat<int64_t>("held"), IsOkAndHolds(ElementsAre(2, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, FiveSteps().Slice(0, 3, 5));
  RILL_ASSERT_OK_AND_ASSIGN(batch, Stack({batch, batch}, 0));
  const TensorDict before = state;
  EXPECT_THAT(multi_step->Inverse(&batch, &state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lanes [0, 2) in one batch, which hold 1 to "
                                 "2 rows")));
  RILL_EXPECT_OK(state.CheckEqual(before));
  // One by one they go on, and nothing is lost.
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict one, batch.Slice(0, 0, 1));
  RILL_ASSERT_OK(lanes.InverseAt(0, &one, &state));
  EXPECT_THAT(one.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(18, 14, 9, 5)));
  RILL_ASSERT_OK_AND_ASSIGN(one, batch.Slice(0, 1, 2));
  RILL_ASSERT_OK(lanes.InverseAt(1, &one, &state));
  EXPECT_THAT(one.Flat<float>("next/reward"),
              IsOkAndHolds(ElementsAre(14, 9, 5)));
}

TEST(MultiStepTest, NamesAndValuesOfTheBatchStay) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step, MultiStep::Create({.n_steps = 3, .rows = RowSpec()}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  TensorDict batch = FiveSteps();
  RILL_ASSERT_OK(batch.SetDimNames({"time"}));
  RILL_ASSERT_OK(batch.Set("next/task", NonTensor{"\"walk\""}));
  RILL_ASSERT_OK(multi_step->Inverse(&batch, &state));
  EXPECT_THAT(batch.dim_names(), ElementsAre("time"));
  EXPECT_THAT(batch.GetNonTensor("next/task"),
              IsOkAndHolds(NonTensor{"\"walk\""}));
  batch = FiveSteps();
  RILL_ASSERT_OK(
      batch.Set("tasks", *NonTensorStack::Filled({5}, NonTensor{"\"walk\""})));
  EXPECT_THAT(multi_step->Inverse(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("\"tasks\"")));
}

TEST(MultiStepTest, BadOptionsAreNamed) {
  EXPECT_THAT(MultiStep::Create({.n_steps = 0, .rows = RowSpec()}),
              StatusIs(kInvalidArgument, HasSubstr("n_steps: got 0")));
  EXPECT_THAT(MultiStep::Create({.gamma = 2, .rows = RowSpec()}),
              StatusIs(kInvalidArgument, HasSubstr("gamma: got 2")));
  EXPECT_THAT(MultiStep::Create({.rows = RowSpec(), .lanes = 0}),
              StatusIs(kInvalidArgument, HasSubstr("lanes: got 0")));
  TensorDictSpec deep = RowSpec();
  RILL_ASSERT_OK(deep.Set(
      "deep", LeafSpec::Unbounded(DType::kInt8, {1, 1, 1, 1, 1, 1, 1})));
  EXPECT_THAT(MultiStep::Create({.rows = deep}),
              StatusIs(kInvalidArgument, HasSubstr("\"deep\"")));
  EXPECT_THAT(MultiStep::Create({}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("next/done")));
  EXPECT_THAT(
      MultiStep::Create({.rows = RowSpec(), .reward_keys = {"next/done"}}),
      StatusIs(kInvalidArgument, HasSubstr("\"next/done\"")));
  EXPECT_THAT(
      MultiStep::Create({.rows = RowSpec(), .gamma_key = "observation"}),
      StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
}

TEST(MultiStepTest, OtherBatchesAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto multi_step, MultiStep::Create({.n_steps = 3, .rows = RowSpec()}));
  EXPECT_THAT(multi_step->InverseSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("Options::rows")));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict state, multi_step->InitialState());
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict batch, FiveSteps().Reshape({5, 1}));
  EXPECT_THAT(multi_step->Inverse(&batch, &state),
              StatusIs(kInvalidArgument,
                       HasSubstr("want [lanes, T] of lanes in [0, 1)")));
  batch = FiveSteps();
  RILL_ASSERT_OK(batch.Set("more", *Tensor::Zeros(DType::kInt64, {5})));
  EXPECT_THAT(multi_step->Inverse(&batch, &state),
              StatusIs(kInvalidArgument, HasSubstr("got 7 leaves")));
  batch = FiveSteps();
  RILL_ASSERT_OK(batch.Delete("observation"));
  EXPECT_THAT(multi_step->Inverse(&batch, &state),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("observation")));
  RILL_EXPECT_OK(state.CheckEqual(*multi_step->InitialState()));
}

INSTANTIATE_TRANSFORM_CONFORMANCE(
    ThreeSteps,
    {.make =
         [] { return *MultiStep::Create({.n_steps = 3, .rows = TedSpec()}); },
     .batch_spec = TedSpec(),
     .shapes = {{5}, {1, 3}, {0}}});

}  // namespace
}  // namespace rill
