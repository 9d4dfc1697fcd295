// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/shape_ops.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_steps.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Coordinate = std::vector<int64_t>;

int32_t& ElementAt(const Tensor& tensor, const Coordinate& at) {
  std::byte* place = tensor.raw_data();
  for (int d = 0; d < tensor.rank(); ++d) {
    place += at[d] * tensor.strides_bytes()[d];
  }
  return *reinterpret_cast<int32_t*>(place);
}

// fn(coordinate) for all coordinates of `shape`.
void ForEachCoordinate(const Shape& shape,
                       const std::function<void(const Coordinate&)>& fn) {
  Coordinate at(shape.rank());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    fn(at);
  }
}

// "a" [batch]; "n/b" [batch, 3], whose elements lie in another order in memory;
// "n/c/d" [batch, 2], where "n/c" has the batch shape [batch, 2]; a value
// without a shape. Elements count up.
TensorDict MakeNested(const Shape& batch) {
  TensorDict inner(batch.Concat({2}));
  RILL_EXPECT_OK(inner.Set("d", Iota<int32_t>(batch.Concat({2}))));
  const Tensor b = Iota<int32_t>(batch.Concat({3}));
  std::vector<int> reversed(b.rank());
  for (int d = 0; d < b.rank(); ++d) reversed[d] = b.rank() - 1 - d;
  TensorDict dict(batch);
  RILL_EXPECT_OK(dict.Set("a", Iota<int32_t>(batch)));
  RILL_EXPECT_OK(
      dict.Set("n/b", *b.Permute(reversed)->Clone()->Permute(reversed)));
  RILL_EXPECT_OK(dict.Set("n/c", std::move(inner)));
  RILL_EXPECT_OK(dict.Set("name", NonTensor{"\"cart\""}));
  return dict;
}

// Where in the source the element at a batch coordinate of the result comes
// from; nothing for a zero.
using Source = std::function<std::optional<Coordinate>(const Coordinate&)>;

// `result` has the batch shape, keys, tails and values that `source_of` says,
// and shares bytes with `dict` just if `shares`.
void ExpectElements(const TensorDict& result, const TensorDict& dict,
                    const Shape& batch, bool shares, const Source& source_of) {
  ASSERT_EQ(result.batch_shape(), batch);
  EXPECT_EQ(result.LeafKeys(), dict.LeafKeys());
  EXPECT_TRUE(result.GetNonTensor("name").ok());
  EXPECT_EQ(result.FindDict("n/c")->batch_shape(), batch.Concat({2}));
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& from) {
    const Tensor& to = *result.Find(key);
    const Shape tail = from.shape().Suffix(dict.batch_shape().rank());
    ASSERT_EQ(to.shape(), batch.Concat(tail)) << key;
    if (to.num_elements() == 0) return;
    EXPECT_EQ(to.buffer() == from.buffer(), shares) << key;
    ForEachCoordinate(to.shape(), [&](const Coordinate& at) {
      std::optional<Coordinate> place =
          source_of({at.begin(), at.begin() + batch.rank()});
      if (place.has_value()) {
        place->insert(place->end(), at.begin() + batch.rank(), at.end());
      }
      ASSERT_EQ(ElementAt(to, at), place ? ElementAt(from, *place) : 0) << key;
    });
  });
}

TEST(ShapeOpsTest, Example) {
  const TensorDict steps = *MakeSteps(3200).Reshape({32, 100});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict lanes, Transpose(steps, 0, 1));
  EXPECT_EQ(lanes.batch_shape(), Shape({100, 32}));
  EXPECT_THAT(Transpose(lanes, 0, 1), IsOkAndHolds(BitEqualTo(steps)));
}

TEST(ShapeOpsTest, TransposeAgreesWithCoordinates) {
  for (const Shape& batch : {Shape{4}, {2, 3}, {0, 3}, {2, 3, 4}}) {
    const TensorDict dict = MakeNested(batch);
    for (int a = 0; a < batch.rank(); ++a) {
      for (int b = 0; b < batch.rank(); ++b) {
        const Shape want = batch.WithSize(a, batch[b]).WithSize(b, batch[a]);
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict got, Transpose(dict, a, b));
        ExpectElements(got, dict, want, true, [&](Coordinate at) {
          std::swap(at[a], at[b]);
          return at;
        });
      }
    }
  }
}

TEST(ShapeOpsTest, ExpandRepeatsSizesOfOne) {
  const TensorDict dict = MakeNested({2, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict wide, Expand(dict, {5, 2, 3}));
  ExpectElements(wide, dict, {5, 2, 3}, true, [](const Coordinate& at) {
    return Coordinate{at[1], 0};
  });
  EXPECT_THAT(Expand(dict, {3, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("[3, 3]"), HasSubstr("[2, 1]"))));
  EXPECT_THAT(Expand(dict, {1}), IsInvalidArgument());
  EXPECT_THAT(Expand(dict, {1, 1, 1, 1, 1, 1, 2, 1}),
              IsInvalidArgument("rank"));
  EXPECT_THAT(Expand(dict, {int64_t{1} << 61, 2, 1}), IsInvalidArgument());
}

TEST(ShapeOpsTest, PadAgreesWithCoordinates) {
  for (const auto& sizes : std::vector<std::vector<PadSize>>{
           {}, {{0, 2}}, {{1, 0}}, {{0, 0}, {2, 1}}, {{1, 2}, {3, 0}}}) {
    for (const Shape& batch : {Shape{2, 3}, {0, 1}, {2, 1, 2}}) {
      const TensorDict dict = MakeNested(batch);
      Shape want = batch;
      for (size_t d = 0; d < sizes.size(); ++d) {
        const int dim = static_cast<int>(d);
        want =
            want.WithSize(dim, batch[dim] + sizes[d].before + sizes[d].after);
      }
      RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, Pad(dict, sizes));
      ExpectElements(padded, dict, want, false,
                     [&](Coordinate at) -> std::optional<Coordinate> {
                       for (size_t d = 0; d < sizes.size(); ++d) {
                         at[d] -= sizes[d].before;
                         if (at[d] < 0 || at[d] >= batch[static_cast<int>(d)]) {
                           return std::nullopt;
                         }
                       }
                       return at;
                     });
    }
  }
}

TEST(ShapeOpsTest, ValuesARowFollowTheirRows) {
  TensorDict dict({2, 1});
  RILL_ASSERT_OK(
      dict.Set("who", *NonTensorStack::Create({2, 1}, {"\"a\"", "\"b\""})));
  EXPECT_THAT(Pad(dict, {{1, 0}})->GetNonTensorStack("who")->values(),
              ElementsAre("null", "\"a\"", "\"b\""));
  EXPECT_THAT(Expand(dict, {2, 2})->GetNonTensorStack("who")->values(),
              ElementsAre("\"a\"", "\"a\"", "\"b\"", "\"b\""));
}

TEST(ShapeOpsTest, WhatDoesNotFitTheBatchIsRefused) {
  const TensorDict dict = MakeNested({2, 3});
  for (const int dim : {-1, 2, 99}) {
    EXPECT_THAT(Transpose(dict, 0, dim),
                IsInvalidArgument("want one in [0, 2)"));
    EXPECT_THAT(Transpose(dict, dim, 0), IsInvalidArgument());
  }
  EXPECT_THAT(Pad(dict, {{0, 0}, {0, 0}, {1, 0}}), IsInvalidArgument());
  EXPECT_THAT(Pad(dict, {{-1, 0}}), IsInvalidArgument());
  EXPECT_THAT(Pad(dict, {{int64_t{1} << 62, int64_t{1} << 62}}),
              IsInvalidArgument());
}

}  // namespace
}  // namespace rill::ops
