// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/structure/sequence_lines.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/batch_transform.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kNotWhole =
    StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inside a line"));

TensorDict Steps(const std::vector<int64_t>& step_in_sequence) {
  const auto rows = static_cast<int64_t>(step_in_sequence.size());
  TensorDict batch({rows});
  RILL_EXPECT_OK(batch.Set("step_in_sequence",
                           *Tensor::From<int64_t>(step_in_sequence, {rows})));
  RILL_EXPECT_OK(batch.SetDimNames({"time"}));
  return batch;
}

TEST(SequenceLinesTest, Example) {
  TensorDict batch = Steps({0, 1, 2, 0, 1, 2});
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto lines, SequenceLines::Create({.length = 3}));
  RILL_ASSERT_OK(lines->Forward(&batch, &state));
  EXPECT_EQ(batch.batch_shape(), Shape({2, 3}));
  EXPECT_THAT(batch.dim_names(), ElementsAre("sequences", "time"));
  EXPECT_THAT(batch.Flat<int64_t>("step_in_sequence"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 0, 1, 2)));
}

TEST(SequenceLinesTest, ALineIsAWholeSequence) {
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto lines, SequenceLines::Create({.length = 3}));
  TensorDict uneven = Steps({0, 1, 2, 0});
  EXPECT_THAT(lines->Forward(&uneven, &state),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[4], want [rows], a multiple of length 3")));
  // One ended with its trajectory, another is longer.
  TensorDict ragged = Steps({0, 1, 0, 1, 2, 3});
  EXPECT_THAT(lines->Forward(&ragged, &state), kNotWhole);
  EXPECT_EQ(ragged.batch_shape(), Shape({6}));
}

TEST(SequenceLinesTest, ASliceEndsWithItsLineOrIsPadded) {
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto lines, SequenceLines::Create({.length = 2}));
  const auto with_done = [](const std::vector<bool>& done) {
    TensorDict batch({4});
    RILL_EXPECT_OK(batch.Set("next/done", *Tensor::From<bool>(done, {4, 1})));
    return batch;
  };
  TensorDict whole = with_done({false, true, false, true});
  RILL_EXPECT_OK(lines->Forward(&whole, &state));
  TensorDict cut = with_done({true, false, true, true});
  EXPECT_THAT(lines->Forward(&cut, &state), kNotWhole);
  TensorDict padded = with_done({true, true, false, true});
  RILL_ASSERT_OK(padded.Set(
      "collector/mask", *Tensor::From<bool>({true, false, true, true}, {4})));
  RILL_EXPECT_OK(lines->Forward(&padded, &state));
}

TEST(SequenceLinesTest, RowsThatDoNotFollowOneAnotherKeepTheirName) {
  TensorDict batch = Steps({0, 1, 0, 1});
  RILL_ASSERT_OK(batch.SetDimNames({"rows"}));
  TensorDict state;
  RILL_ASSERT_OK_AND_ASSIGN(auto lines, SequenceLines::Create({.length = 2}));
  RILL_ASSERT_OK(lines->Forward(&batch, &state));
  EXPECT_THAT(batch.dim_names(), ElementsAre("sequences", "rows"));
}

TEST(SequenceLinesTest, ALengthOutOfRangeIsNamed) {
  EXPECT_THAT(
      SequenceLines::Create({}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("length: got 0")));
}

}  // namespace
}  // namespace rill
