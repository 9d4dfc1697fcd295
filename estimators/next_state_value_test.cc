// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/next_state_value.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The state's one number, times ten.
absl::Status TenTimes(const TensorDict& states, Tensor* values) {
  const auto from = states.Flat<float>("observation");
  if (!from.ok()) return from.status();
  for (size_t i = 0; i < from->size(); ++i) {
    values->data<float>()[i] = 10 * (*from)[i];
  }
  return absl::OkStatus();
}

// Steps [1, T] whose next observation is 1, 2, ... and whose values are 0.5,
// 1.5, ...
TensorDict Steps(const std::vector<bool>& done,
                 const std::vector<bool>& terminated) {
  const int64_t time = static_cast<int64_t>(done.size());
  std::vector<float> next, value;
  for (int64_t t = 0; t < time; ++t) {
    next.push_back(static_cast<float>(t + 1));
    value.push_back(static_cast<float>(t) + 0.5f);
  }
  auto steps = TensorDict::Create(
      {1, time},
      {{"next/observation", *Tensor::From<float>(next, {1, time, 1})},
       {"state_value", *Tensor::From<float>(value, {1, time, 1})},
       {"next/done", *Tensor::From<bool>(done, {1, time, 1})},
       {"next/terminated", *Tensor::From<bool>(terminated, {1, time, 1})}});
  RILL_EXPECT_OK(steps);
  return *std::move(steps);
}

TEST(NextStateValueTest, Example) {
  const Critic critic = TenTimes;
  TensorDict batch = Steps({false, true, false, true, false},
                           {false, false, false, true, false});
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto fill, NextStateValue::Create(
                     {.critic = critic, .state_keys = {"observation"}}));
  RILL_ASSERT_OK(fill->Forward(&batch, &state));
  // Of the row behind; of the critic behind a truncation and behind the batch;
  // none behind a termination.
  EXPECT_THAT(batch.Flat<float>("next/state_value"),
              IsOkAndHolds(ElementsAre(1.5f, 20, 3.5f, 0, 50)));
}

// Two agents: the first one's episode is cut behind step 0, the second one's
// ends behind step 1.
TEST(NextStateValueTest, ARowWhereAnAgentEndsIsTheCriticsForAll) {
  TensorDict batch({1, 3});
  RILL_ASSERT_OK(
      batch.Set("next/team/observation",
                *Tensor::From<float>({1, 2, 3, 4, 5, 6}, {1, 3, 2, 1})));
  RILL_ASSERT_OK(batch.Set(
      "team/state_value",
      *Tensor::From<float>({.1f, .2f, .3f, .4f, .5f, .6f}, {1, 3, 2, 1})));
  const auto flag = [&](const char* key, const std::vector<bool>& values) {
    RILL_EXPECT_OK(batch.Set(key, *Tensor::From<bool>(values, {1, 3, 2, 1})));
  };
  flag("next/team/done", {true, false, false, true, false, false});
  flag("next/team/terminated", {false, false, false, true, false, false});
  std::vector<Shape> asked;
  const Critic critic = [&](const TensorDict& states, Tensor* values) {
    asked.push_back(values->shape());
    const float* const from = states.Find("team/observation")->data<float>();
    for (int64_t i = 0; i < values->num_elements(); ++i) {
      values->data<float>()[i] = 10 * from[i];
    }
    return absl::OkStatus();
  };
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto fill,
      NextStateValue::Create({.critic = critic,
                              .state_keys = {"team/observation"},
                              .value_key = "team/state_value",
                              .next_value_key = "next/team/state_value",
                              .done_key = "next/team/done",
                              .terminated_key = "next/team/terminated"}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDictSpec after,
                            fill->ForwardSpec(TensorDictSpec::Of(batch)));
  EXPECT_EQ(after.Find("next/team/state_value")->shape, Shape({2, 1}));
  RILL_ASSERT_OK(fill->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/team/state_value"),
              IsOkAndHolds(ElementsAre(10, 20, 30, 0, 50, 60)));
  EXPECT_THAT(asked, ElementsAre(Shape({3, 2, 1})));
  // By the flags of the lane the second row's next values are its successor's.
  for (const char* key : {"done", "terminated", "truncated"}) {
    if (batch.Contains(absl::StrCat("next/team/", key))) {
      RILL_ASSERT_OK(batch.Delete(absl::StrCat("next/team/", key)));
    }
  }
  for (const char* key : {"next/done", "next/terminated"}) {
    RILL_ASSERT_OK(
        batch.Set(key, *Tensor::From({true, false, false}, {1, 3, 1})));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto by_lane,
      NextStateValue::Create({.critic = critic,
                              .state_keys = {"team/observation"},
                              .value_key = "team/state_value",
                              .next_value_key = "next/team/state_value"}));
  RILL_ASSERT_OK(by_lane->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("next/team/state_value"),
              IsOkAndHolds(ElementsAre(0, 0, .5f, .6f, 50, 60)));
}

TEST(NextStateValueTest, NeighboursOfOtherTrajectoriesAreNotNextStates) {
  TensorDict batch = Steps({false, false, false}, {false, false, false});
  RILL_ASSERT_OK(batch.Set("collector/traj_ids",
                           *Tensor::From<int64_t>({7, 8, 8}, {1, 3})));
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto fill,
                            NextStateValue::Create({.critic = TenTimes}));
  RILL_ASSERT_OK(fill->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("next/state_value"),
              IsOkAndHolds(ElementsAre(10, 2.5f, 30)));
  // So are rows that were drawn one by one.
  RILL_ASSERT_OK(batch.SetDimNames({"", "rows"}));
  RILL_ASSERT_OK(fill->Forward(&batch, &state));
  EXPECT_THAT(batch.Flat<float>("next/state_value"),
              IsOkAndHolds(ElementsAre(10, 20, 30)));
}

// Lines in any number, ends anywhere, against the definition row by row.
TEST(NextStateValueTest, RandomBatchesAreAsTheDefinitionSays) {
  const Rng rng(5, RngStream::kUser);
  for (uint64_t round = 0; round < 200; ++round) {
    const int64_t lines = 1 + rng.UniformInt(round, 0, 4);
    const int64_t time = 1 + rng.UniformInt(round, 1, 7);
    const int64_t rows = lines * time;
    std::vector<bool> done, terminated;
    std::vector<float> value, next;
    for (int64_t i = 0; i < rows; ++i) {
      const uint32_t draw = static_cast<uint32_t>(10 + 4 * i);
      terminated.push_back(rng.UniformInt(round, draw, 5) == 0);
      done.push_back(terminated[i] || rng.UniformInt(round, draw + 1, 5) == 0);
      value.push_back(static_cast<float>(rng.UniformDouble(round, draw + 2)));
      next.push_back(static_cast<float>(rng.UniformDouble(round, draw + 3)));
    }
    RILL_ASSERT_OK_AND_ASSIGN(
        TensorDict batch,
        TensorDict::Create(
            {lines, time},
            {{"next/observation", *Tensor::From<float>(next, {lines, time, 1})},
             {"state_value", *Tensor::From<float>(value, {lines, time, 1})},
             {"next/done", *Tensor::From<bool>(done, {lines, time, 1})},
             {"next/terminated",
              *Tensor::From<bool>(terminated, {lines, time, 1})}}));
    int64_t asked = 0;
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto fill,
        NextStateValue::Create(
            {.critic = [&asked](const TensorDict& states, Tensor* values) {
              asked += states.batch_shape()[0];
              return TenTimes(states, values);
            }}));
    TensorDict state;
    RILL_ASSERT_OK(fill->Forward(&batch, &state));
    RILL_ASSERT_OK_AND_ASSIGN(const auto made,
                              batch.Flat<float>("next/state_value"));
    int64_t ends = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const bool has_next = !done[i] && (i + 1) % time != 0;
      ends += has_next ? 0 : 1;
      const float want = terminated[i] ? 0
                         : has_next    ? value[i + 1]
                                       : 10 * next[i];
      ASSERT_EQ(made[i], want) << "round " << round << ", row " << i;
    }
    ASSERT_EQ(asked, ends);
  }
}

TEST(NextStateValueTest, AnErrorOfTheCriticLeavesTheBatchAndNamesIt) {
  TensorDict batch = Steps({false, true}, {false, false});
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto fill,
      NextStateValue::Create({.critic = [](const TensorDict&, Tensor*) {
        return absl::UnavailableError("no weights yet");
      }}));
  EXPECT_THAT(
      fill->Forward(&batch, &state),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("no weights yet; NextStateValue: the critic")));
  EXPECT_EQ(batch.Find("next/state_value"), nullptr);
}

TEST(NextStateValueTest, CreateNamesWhatIsWrong) {
  EXPECT_THAT(NextStateValue::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("critic: got null")));
  EXPECT_THAT(
      NextStateValue::Create(
          {.critic = TenTimes, .state_keys = {"next/observation"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("state_keys")));
  EXPECT_THAT(
      NextStateValue::Create(
          {.critic = TenTimes, .next_value_key = "state_value"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("state_value")));
}

TEST(NextStateValueTest, ValuesOfAGroupWantItsFlags) {
  TensorDictSpec spec = TedSpec();
  const LeafSpec value = LeafSpec::Unbounded(DType::kFloat32, {1});
  RILL_ASSERT_OK(spec.Set("agents/state_value", value));
  RILL_ASSERT_OK(spec.Set("next/agents/done", LeafSpec::Binary({1})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto fill,
      NextStateValue::Create({.critic = TenTimes,
                              .value_key = "agents/state_value",
                              .next_value_key = "next/agents/state_value"}));
  EXPECT_THAT(
      fill->ForwardSpec(spec),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("want the ends of its group, \"next/agents/done\"")));
}

TransformUnderTest UnderTest() {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(
      spec.Set("state_value", LeafSpec::Bounded(DType::kFloat32, {1}, -2, 2)));
  return {.make =
              [] {
                return *NextStateValue::Create(
                    {.critic = [](const TensorDict&, Tensor* values) {
                      std::fill_n(values->data<float>(), values->num_elements(),
                                  0.5f);
                      return absl::OkStatus();
                    }});
              },
          .batch_spec = spec};
}

INSTANTIATE_TRANSFORM_CONFORMANCE(NextStateValue, UnderTest());

}  // namespace
}  // namespace rill
