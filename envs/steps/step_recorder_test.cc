// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_recorder.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLanes = 3;
constexpr int64_t kTime = 5;
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

class StepRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    // Every width that has code of its own, and some that have not.
    for (int64_t width : {0, 1, 2, 4, 7, 8, 16, 33}) {
      RILL_ASSERT_OK(spec_.Set(absl::StrCat("w", width),
                               LeafSpec::Unbounded(DType::kUInt8, {width})));
    }
    RILL_ASSERT_OK(
        spec_.Set("next/x", LeafSpec::Unbounded(DType::kFloat32, {2, 2})));
    RILL_ASSERT_OK_AND_ASSIGN(batch_, spec_.Zero({kLanes, kTime}));
    RILL_ASSERT_OK_AND_ASSIGN(recorder_, StepRecorder::Create(spec_, batch_));
  }

  TensorDictSpec spec_;
  TensorDict batch_;
  StepRecorder recorder_;
};

TEST_F(StepRecorderTest, LaysStepsSideBySide) {
  std::vector<TensorDict> steps;
  for (int64_t t = 0; t < kTime; ++t) {
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict step,
                              spec_.Random({kLanes}, Rng(1), t));
    RILL_ASSERT_OK(recorder_.Bind(step));
    RILL_ASSERT_OK(recorder_.Record(t));
    steps.push_back(std::move(step));
  }
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, Stack(steps, /*dim=*/1));
  EXPECT_THAT(batch_, BitEqualTo(want));
}

TEST_F(StepRecorderTest, OneBindServesTheSameLeaves) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, spec_.Zero({kLanes}));
  RILL_ASSERT_OK(recorder_.Bind(step));
  for (int64_t t = 0; t < kTime; ++t) {
    RILL_ASSERT_OK_AND_ASSIGN(auto x, step.Flat<float>("next/x"));
    std::iota(x.begin(), x.end(), static_cast<float>(100 * t));
    RILL_ASSERT_OK(recorder_.Record(t));
  }
  RILL_ASSERT_OK_AND_ASSIGN(Tensor row, batch_.Find("next/x")->Select(0, 2));
  RILL_ASSERT_OK_AND_ASSIGN(row, row.Index(4));
  EXPECT_THAT(row, TensorElementsAre<float>(408, 409, 410, 411));
}

TEST_F(StepRecorderTest, RefusesStepsThatDoNotFit) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict step, spec_.Zero({kLanes + 1}));
  EXPECT_THAT(recorder_.Bind(step), StatusIs(kInvalidArgument));
  RILL_ASSERT_OK_AND_ASSIGN(step, spec_.Zero({kLanes}));
  RILL_ASSERT_OK(step.Delete("next/x"));
  EXPECT_THAT(recorder_.Bind(step),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("next/x")));
}

TEST_F(StepRecorderTest, RefusesBatchesThatDoNotFit) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict flat, spec_.Zero({kLanes}));
  EXPECT_THAT(StepRecorder::Create(spec_, flat),
              StatusIs(kInvalidArgument, HasSubstr("want [lanes, time]")));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict part, batch_.Slice(1, 0, 2));
  EXPECT_THAT(StepRecorder::Create(spec_, part),
              StatusIs(kInvalidArgument, HasSubstr("want contiguous")));
}

}  // namespace
}  // namespace rill
