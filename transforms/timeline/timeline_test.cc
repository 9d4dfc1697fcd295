// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/timeline/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill::transforms_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorDict Named(const Shape& shape, std::vector<std::string> names) {
  TensorDict batch(shape);
  RILL_EXPECT_OK(batch.SetDimNames(std::move(names)));
  return batch;
}

Tensor Flags(const std::vector<bool>& flags) {
  return *Tensor::From<bool>(flags, {1, static_cast<int64_t>(flags.size()), 1});
}

std::vector<bool> Values(const Tensor& flags) {
  const bool* const data = flags.data<bool>();
  return std::vector<bool>(data, data + flags.num_elements());
}

TEST(TimelineTest, TimeIsTheLastDimensionWhereThereAreNames) {
  RILL_EXPECT_OK(CheckTimeIsLast("GAE", TensorDict({2, 3})));
  const TensorDict steps = Named({2, 3}, {"lanes", "time"});
  RILL_EXPECT_OK(CheckTimeIsLast("GAE", steps));
  RILL_EXPECT_OK(CheckTimeIsLast("GAE", Named({2, 3}, {"env", "t"})));
  EXPECT_THAT(CheckTimeIsLast("GAE", *ops::Transpose(steps, 0, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("GAE: batch [3, 2] (time, lanes): got time")));
  EXPECT_THAT(CheckTimeIsLast("GAE", Named({6}, {"rows"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("do not follow one another")));
}

TEST(TimelineTest, PartsOfADoneThatIsMissingAreEnds) {
  TensorDict batch({1, 3});
  EXPECT_THAT(ReadEnds("GAE", "next/done", batch),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("next/done")));
  RILL_ASSERT_OK(batch.Set("next/truncated", Flags({false, true, false})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/done", batch)),
              ElementsAre(false, true, false));
  RILL_ASSERT_OK(batch.Set("next/terminated", Flags({true, false, false})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/done", batch)),
              ElementsAre(true, true, false));
  // Those of another group are none of its parts.
  EXPECT_THAT(ReadEnds("GAE", "next/agents/done", batch).status(),
              StatusIs(absl::StatusCode::kNotFound));
  RILL_ASSERT_OK(batch.Set("next/done", Flags({false, false, true})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/done", batch)),
              ElementsAre(false, false, true));
}

TEST(TimelineTest, AGroupEndsWithItsLaneToo) {
  TensorDict batch({1, 3});
  RILL_ASSERT_OK(batch.Set("next/guard/done", Flags({true, false, false})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/guard/done", batch)),
              ElementsAre(true, false, false));
  RILL_ASSERT_OK(batch.Set("next/truncated", Flags({false, true, false})));
  RILL_ASSERT_OK(batch.Set("next/terminated", Flags({false, false, true})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/guard/done", batch)),
              ElementsAre(true, true, true));
  RILL_ASSERT_OK(batch.Set("next/done", Flags({false, false, true})));
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/guard/done", batch)),
              ElementsAre(true, false, true));
  // The lane goes on beyond the ends of its groups.
  EXPECT_THAT(Values(*ReadEnds("GAE", "next/done", batch)),
              ElementsAre(false, false, true));
}

TEST(TimelineTest, ASpecHasEndsWhereABatchOfItHas) {
  const LeafSpec flag = LeafSpec::Binary({1});
  TensorDictSpec spec;
  EXPECT_THAT(CheckHasEnds("GAE", "next/done", spec),
              StatusIs(absl::StatusCode::kNotFound));
  RILL_ASSERT_OK(spec.Set("next/terminated", flag));
  RILL_EXPECT_OK(CheckHasEnds("GAE", "next/done", spec));
  RILL_ASSERT_OK(
      spec.Set("next/done", LeafSpec::Unbounded(DType::kFloat32, {1})));
  EXPECT_THAT(CheckHasEnds("GAE", "next/done", spec),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Random leaves against a plain look at each pair of neighbours.
TEST(TimelineTest, LinesStopWhereFlagsOrPiecesEnd) {
  const Rng rng(7);
  uint32_t draws = 0;
  const auto below = [&](int64_t bound) {
    return rng.UniformInt(0, draws++, bound);
  };
  for (int round = 0; round < 200; ++round) {
    const Shape shape = {2, 1 + below(9)};
    const int64_t rows = shape.num_elements();
    TensorDict batch(shape);
    std::vector<bool> want(static_cast<size_t>(rows), false);
    Tensor done = *Tensor::Zeros(DType::kBool, shape.Concat({1}));
    for (int64_t i = 0; i < rows; ++i) {
      want[i] = done.data<bool>()[i] = below(5) == 0;
    }
    RILL_ASSERT_OK(batch.Set("next/done", done));
    const Tensor before = *done.Clone();
    for (const absl::string_view key : PieceKeys()) {
      if (below(2) == 0) continue;
      const bool is_flag = absl::EndsWith(key, "mask");
      Tensor leaf =
          *Tensor::Zeros(is_flag ? DType::kBool : DType::kInt64, shape);
      for (int64_t i = 0; i < rows; ++i) {
        // Seldom another value than the neighbour's.
        const int64_t value = below(6) == 0 ? 1 : 0;
        if (is_flag) {
          leaf.data<bool>()[i] = value != 0;
        } else {
          leaf.data<int64_t>()[i] = value;
        }
      }
      for (int64_t i = 0; i + 1 < rows; ++i) {
        const bool differs =
            is_flag ? leaf.data<bool>()[i] != leaf.data<bool>()[i + 1]
                    : leaf.data<int64_t>()[i] != leaf.data<int64_t>()[i + 1];
        if (differs && (i + 1) % shape[1] != 0) want[i] = true;
      }
      RILL_ASSERT_OK(batch.Set(key, leaf));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor stops,
                              ReadStops("GAE", "next/done", batch));
    EXPECT_EQ(Values(stops), want);
    EXPECT_EQ(Values(*batch.Find("next/done")), Values(before));
  }
}

TEST(TimelineTest, EachOfStrangersStops) {
  TensorDict batch = Named({1, 2}, {"", "rows"});
  RILL_ASSERT_OK(batch.Set("next/done", Flags({false, false})));
  EXPECT_THAT(Values(*ReadStops("GAE", "next/done", batch)),
              ElementsAre(true, true));
  EXPECT_THAT(Values(*batch.Find("next/done")), ElementsAre(false, false));
}

}  // namespace
}  // namespace rill::transforms_internal
