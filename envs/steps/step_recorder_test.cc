// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/steps/step_recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
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
  recorder_.Flush();
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
  recorder_.Flush();
  RILL_ASSERT_OK_AND_ASSIGN(Tensor row, batch_.Find("next/x")->Select(0, 2));
  RILL_ASSERT_OK_AND_ASSIGN(row, row.Index(4));
  EXPECT_THAT(row, TensorElementsAre<float>(408, 409, 410, 411));
}

// Writes rows of a step where StepRecorder is to write them, one by one.
void WriteRows(const TensorDict& step, int64_t t, TensorDict& batch) {
  const int64_t lanes = batch.batch_shape()[0];
  const int64_t time = batch.batch_shape()[1];
  step.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const int64_t width = leaf.size_bytes() / lanes;
    std::byte* const to = batch.Find(key)->raw_data();
    for (int64_t lane = 0; lane < lanes; ++lane) {
      std::copy_n(leaf.raw_data() + lane * width, width,
                  to + (lane * time + t) * width);
    }
  });
}

// Times come in order, again, or from elsewhere; a flush comes after any.
TEST(StepRecorderOrderTest, HoldsAfterAnyFlushWhatALoopOverRowsWrites) {
  TensorDictSpec spec;
  for (const int64_t width : {0, 1, 2, 3, 4, 8, 12, 16, 64, 65}) {
    RILL_ASSERT_OK(spec.Set(absl::StrCat("w", width),
                            LeafSpec::Unbounded(DType::kUInt8, {width})));
  }
  std::mt19937_64 random(1);
  for (const int64_t lanes : {1, 2, 16, 19}) {
    for (const int64_t time : {1, 7, 40}) {
      SCOPED_TRACE(absl::StrCat(lanes, " lanes, time ", time));
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch,
                                spec.Zero({lanes, time}));
      RILL_ASSERT_OK_AND_ASSIGN(TensorDict want, spec.Zero({lanes, time}));
      RILL_ASSERT_OK_AND_ASSIGN(StepRecorder recorder,
                                StepRecorder::Create(spec, batch));
      int64_t t = 0;
      for (int i = 0; i < 60; ++i) {
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict step,
                                  spec.Random({lanes}, Rng(1), i));
        RILL_ASSERT_OK(recorder.Bind(step));
        RILL_ASSERT_OK(recorder.Record(t));
        WriteRows(step, t, want);
        const uint64_t next = random() % 32;
        t = next < 2 ? random() % time : next == 2 ? t : (t + 1) % time;
        if (random() % 20 != 0 && i < 59) continue;
        recorder.Flush();
        ASSERT_THAT(batch, BitEqualTo(want));
      }
    }
  }
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
