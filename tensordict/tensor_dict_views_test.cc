// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// [2, 3] steps whose nested dictionary has the longer batch shape [2, 3, 2].
TensorDict MakeGrid() {
  TensorDict dict({2, 3});
  TensorDict agents({2, 3, 2});
  agents.Set("x", Iota<float>({2, 3, 2, 5})).IgnoreError();
  dict.Set("a", Iota<int64_t>({2, 3})).IgnoreError();
  dict.Set("agents", std::move(agents)).IgnoreError();
  dict.Set("name", NonTensor{"\"grid\""}).IgnoreError();
  return dict;
}

TEST(TensorDictViewsTest, IndexDropsDimensionZeroAndSharesBytes) {
  const TensorDict grid = MakeGrid();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row, grid.Index(1));
  EXPECT_EQ(row.batch_shape(), Shape({3}));
  EXPECT_EQ(row.FindDict("agents")->batch_shape(), Shape({3, 2}));
  EXPECT_THAT(row.Get("a"), IsOkAndHolds(TensorElementsAre<int64_t>(3, 4, 5)));
  EXPECT_THAT(row.GetNonTensor("name"), IsOk());
  EXPECT_EQ(row.Find("agents/x")->buffer(), grid.Find("agents/x")->buffer());
  EXPECT_THAT(grid.Index(2), IsOutOfRange("index 2 is outside [0, 2)"));
  EXPECT_THAT(TensorDict().Index(0), IsInvalidArgument());
}

TEST(TensorDictViewsTest, SliceAndSelectTakeBatchDimensionsOnly) {
  const TensorDict grid = MakeGrid();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part, grid.Slice(1, 1, 3));
  EXPECT_EQ(part.batch_shape(), Shape({2, 2}));
  EXPECT_EQ(part.Find("agents/x")->shape(), Shape({2, 2, 2, 5}));
  EXPECT_THAT(part.Get("a"),
              IsOkAndHolds(TensorElementsAre<int64_t>(1, 2, 4, 5)));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last, grid.SelectDim(1, 2));
  EXPECT_EQ(last.batch_shape(), Shape({2}));
  EXPECT_THAT(last.Get("a"), IsOkAndHolds(TensorElementsAre<int64_t>(2, 5)));
  // Dimension 2 is one of the nested batch shape and of no other.
  EXPECT_THAT(grid.Slice(2, 0, 1),
              IsInvalidArgument("got 2, want one in [0, 2)"));
  EXPECT_THAT(grid.SelectDim(-1, 0), IsInvalidArgument());
  EXPECT_THAT(grid.Slice(0, 1, 3), IsOutOfRange());
  EXPECT_THAT(grid.SelectDim(1, 3), IsOutOfRange());
}

TEST(TensorDictViewsTest, MapShapeMapsLeavesAndKeepsNestedTailsAndValues) {
  const TensorDict grid = MakeGrid();
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict turned, grid.MapShape({3, 2}, [](const Tensor& leaf) {
        return leaf.rank() == 2 ? leaf.Permute({1, 0})
                                : leaf.Permute({1, 0, 2, 3});
      }));
  EXPECT_EQ(turned.batch_shape(), Shape({3, 2}));
  EXPECT_EQ(turned.FindDict("agents")->batch_shape(), Shape({3, 2, 2}));
  EXPECT_THAT(turned.Get("a"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 3, 1, 4, 2, 5)));
  EXPECT_THAT(turned.GetNonTensor("name"), IsOk());
  EXPECT_THAT(
      grid.MapShape({6}, [](const Tensor& leaf) { return leaf.ViewAs({6}); }),
      IsInvalidArgument("at key \"agents/x\""));
}

TEST(TensorDictViewsTest, SqueezeAndUnsqueeze) {
  const TensorDict grid = MakeGrid();
  for (int dim = 0; dim <= 2; ++dim) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict longer, grid.Unsqueeze(dim));
    EXPECT_EQ(longer.batch_shape()[dim], 1);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, longer.Squeeze(dim));
    EXPECT_THAT(back, BitEqualTo(grid));
  }
  EXPECT_THAT(grid.Unsqueeze(3), IsInvalidArgument());
  EXPECT_THAT(grid.Squeeze(0), IsInvalidArgument("got 2, want 1"));
}

TEST(TensorDictViewsTest, UnsqueezePastTheRankLimitNamesTheKey) {
  TensorDict dict;
  RILL_ASSERT_OK(dict.Set("n/x", Iota<float>({1, 1, 1, 1, 1, 1, 1, 1})));
  EXPECT_THAT(dict.Unsqueeze(0), IsInvalidArgument("at key \"n/x\""));
}

TEST(TensorDictViewsTest, ReshapeKeepsTails) {
  const TensorDict grid = MakeGrid();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, grid.Reshape({6}));
  EXPECT_EQ(flat.Find("agents/x")->shape(), Shape({6, 2, 5}));
  EXPECT_EQ(flat.FindDict("agents")->batch_shape(), Shape({6, 2}));
  EXPECT_EQ(flat.Find("a")->raw_data(), grid.Find("a")->raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict back, flat.Reshape({2, 3}));
  EXPECT_THAT(back, BitEqualTo(grid));
  EXPECT_THAT(grid.Reshape({5}), IsInvalidArgument("got 5"));
  EXPECT_THAT(grid.Reshape({1, 1, 1, 1, 1, 2, 3}),
              IsInvalidArgument("got 9, want at most 8"));
}

TEST(TensorDictViewsTest, ReshapeCopiesLeavesThatNeedIt) {
  TensorDict dict({3, 2});
  const Tensor turned = *Iota<int64_t>({2, 3}).Permute({1, 0});
  RILL_ASSERT_OK(dict.Set("turned", turned));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, dict.Reshape({6}));
  EXPECT_THAT(flat.Get("turned"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 3, 1, 4, 2, 5)));
}

TEST(TensorDictViewsTest, SelectFollowsTheOrderOfKeys) {
  const TensorDict steps = MakeSteps(2);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                            steps.Select({"next/done", "action"}));
  EXPECT_THAT(part.LeafKeys(), ElementsAre("next/done", "action"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict whole, steps.Select({"next"}));
  EXPECT_THAT(whole, HasKeys("next/reward", "next/done"));
  EXPECT_THAT(steps.Select({"action", "x"}), IsNotFound("\"x\""));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict lenient,
      steps.Select({"action", "x", "next/x", "action/x"}, /*strict=*/false));
  EXPECT_THAT(lenient.Keys(), ElementsAre("action"));
  EXPECT_THAT(steps.Select({"a//b"}, /*strict=*/false), IsInvalidArgument());
}

TEST(TensorDictViewsTest, SelectKeepsNestedBatchShapes) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                            MakeGrid().Select({"agents/x"}));
  EXPECT_EQ(part.FindDict("agents")->batch_shape(), Shape({2, 3, 2}));
  EXPECT_EQ(part.batch_shape(), Shape({2, 3}));
}

TEST(TensorDictViewsTest, SelectTakesAnEntryTwice) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict part,
      MakeSteps(2).Select({"next/done", "next", "next/reward"}));
  EXPECT_THAT(part, HasKeys("next/done", "next/reward"));
}

TEST(TensorDictViewsTest, ExcludeIgnoresMissingKeys) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict part,
                            MakeSteps(2).Exclude({"next/done", "x", "action"}));
  EXPECT_THAT(part, HasKeys("observation", "next/reward"));
  EXPECT_THAT(MakeSteps(2).Exclude({""}), IsInvalidArgument());
}

TEST(TensorDictViewsTest, ApplyMapsLeavesWithTheirKeys) {
  std::vector<std::string> keys;
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict result,
      MakeGrid().Apply([&](absl::string_view key, const Tensor& leaf) {
        keys.emplace_back(key);
        return Cast(leaf, DType::kFloat64);
      }));
  EXPECT_THAT(keys, ElementsAre("a", "agents/x"));
  EXPECT_EQ(result.Find("a")->dtype(), DType::kFloat64);
  EXPECT_EQ(result.FindDict("agents")->batch_shape(), Shape({2, 3, 2}));
  EXPECT_THAT(result.GetNonTensor("name"), IsOk());
}

TEST(TensorDictViewsTest, ApplyChecksResults) {
  const TensorDict steps = MakeSteps(2);
  EXPECT_THAT(steps.Apply([](absl::string_view, const Tensor& leaf) {
    return leaf.Index(0);
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("batch shape [2]"),
                             HasSubstr("at key \"observation\""))));
  EXPECT_THAT(
      steps.MapShape(
          {1}, [](const Tensor& leaf) { return absl::StatusOr<Tensor>(leaf); }),
      IsInvalidArgument("batch shape [1]"));
  EXPECT_THAT(steps.Apply([](absl::string_view,
                             const Tensor&) -> absl::StatusOr<Tensor> {
    return absl::UnavailableError("mine");
  }),
              IsUnavailable("mine"));
}

}  // namespace
}  // namespace rill
