// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/shape_ops.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/ops/oracle.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensordict/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill::ops {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Where in the source the element at a batch coordinate of the result comes
// from.
using Source = std::function<Coordinate(const Coordinate&)>;

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
      Coordinate place = source_of({at.begin(), at.begin() + batch.rank()});
      place.insert(place.end(), at.begin() + batch.rank(), at.end());
      ASSERT_EQ(ElementAt<int32_t>(to, at), ElementAt<int32_t>(from, place))
          << key;
    });
  });
}

TEST(ShapeOpsTest, Example) {
  const TensorDict steps = *Unflatten(MakeSteps(3200), 0, {32, 100});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict lanes, Transpose(steps, 0, 1));
  EXPECT_EQ(lanes.batch_shape(), Shape({100, 32}));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict rows, Flatten(steps));
  EXPECT_THAT(rows, BitEqualTo(MakeSteps(3200)));
}

TEST(ShapeOpsTest, PermuteFlipAndRollAgreeWithCoordinates) {
  Draws draws(1);
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(draws.Int(1, 4));
    const Shape batch = draws.RandomShape(rank, 4);
    const TensorDict dict = MakeNested(batch, &draws);
    std::vector<int> order(rank);
    for (int d = 0; d < rank; ++d) order[d] = d;
    for (int d = 0; d < rank; ++d)
      std::swap(order[d], order[draws.Int(d, rank)]);
    std::vector<int> given = order;
    for (int& dim : given) dim -= draws.Int(0, 2) == 0 ? 0 : rank;

    std::vector<int64_t> sizes(rank);
    for (int d = 0; d < rank; ++d) sizes[d] = batch[order[d]];
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict permuted, Permute(dict, given));
    ExpectElements(permuted, dict, *Shape::Create(sizes), true,
                   [&](const Coordinate& at) {
                     Coordinate from(rank);
                     for (int d = 0; d < rank; ++d) from[order[d]] = at[d];
                     return from;
                   });

    given.resize(draws.Int(0, rank + 1));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flipped, Flip(dict, given));
    ExpectElements(flipped, dict, batch, true, [&](Coordinate at) {
      for (size_t k = 0; k < given.size(); ++k) {
        at[order[k]] = batch[order[k]] - 1 - at[order[k]];
      }
      return at;
    });

    std::vector<int64_t> shifts;
    for (size_t k = 0; k < given.size(); ++k)
      shifts.push_back(draws.Int(-9, 9));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict rolled,
                              Roll(dict, shifts, given));
    ExpectElements(rolled, dict, batch, false, [&](Coordinate at) {
      for (size_t k = 0; k < given.size(); ++k) {
        const int64_t size = batch[order[k]];
        at[order[k]] = ((at[order[k]] - shifts[k]) % size + size) % size;
      }
      return at;
    });
  }
}

TEST(ShapeOpsTest, RepeatsExpandAndPadAgreeWithCoordinates) {
  Draws draws(2);
  for (int round = 0; round < 300; ++round) {
    const int rank = static_cast<int>(draws.Int(1, 4));
    const Shape batch = draws.RandomShape(rank, 3);
    const TensorDict dict = MakeNested(batch, &draws);
    std::vector<int64_t> repeats(rank);
    std::vector<int64_t> sizes(rank);
    for (int d = 0; d < rank; ++d) {
      repeats[d] = draws.Int(0, 4);
      sizes[d] = batch[d] * repeats[d];
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict repeated, Repeat(dict, repeats));
    ExpectElements(repeated, dict, *Shape::Create(sizes), false,
                   [&](Coordinate at) {
                     for (int d = 0; d < rank; ++d) at[d] %= batch[d];
                     return at;
                   });

    const int dim = static_cast<int>(draws.Int(0, rank));
    std::vector<int64_t> counts;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < batch[dim]; ++i) {
      counts.push_back(draws.Int(0, 3));
      rows.insert(rows.end(), counts.back(), i);
    }
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict interleaved,
                              RepeatInterleave(dict, counts, dim - rank));
    std::vector<int64_t> longer(batch.sizes().begin(), batch.sizes().end());
    longer[dim] = static_cast<int64_t>(rows.size());
    ExpectElements(interleaved, dict, *Shape::Create(longer), false,
                   [&](Coordinate at) {
                     at[dim] = rows[at[dim]];
                     return at;
                   });
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict twice,
                              RepeatInterleave(dict, int64_t{2}, dim));
    longer[dim] = 2 * batch[dim];
    ExpectElements(twice, dict, *Shape::Create(longer), false,
                   [&](Coordinate at) {
                     at[dim] /= 2;
                     return at;
                   });

    std::vector<PadSize> pads(draws.Int(0, rank + 1));
    for (PadSize& pad : pads) pad = {draws.Int(0, 3), draws.Int(0, 3)};
    pads.resize(rank);
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict padded, Pad(dict, pads, -7));
    const Tensor& leaf = *padded.Find("n/b");
    for (int d = 0; d < rank; ++d) {
      ASSERT_EQ(leaf.shape()[d], batch[d] + pads[d].before + pads[d].after);
    }
    ForEachCoordinate(leaf.shape(), [&](const Coordinate& at) {
      Coordinate from = at;
      bool inside = true;
      for (int d = 0; d < rank; ++d) {
        from[d] -= pads[d].before;
        inside = inside && from[d] >= 0 && from[d] < batch[d];
      }
      ASSERT_EQ(ElementAt<int32_t>(leaf, at),
                inside ? ElementAt<int32_t>(*dict.Find("n/b"), from) : -7);
    });
  }
}

TEST(ShapeOpsTest, ExpandRepeatsSizesOfOne) {
  Draws draws(3);
  const TensorDict dict = MakeNested({2, 1}, &draws);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict wide, Expand(dict, {5, -1, 3}));
  ExpectElements(wide, dict, {5, 2, 3}, true, [](const Coordinate& at) {
    return Coordinate{at[1], 0};
  });
  EXPECT_THAT(Expand(dict, {3, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("{3, 3}"), HasSubstr("[2, 1]"))));
  EXPECT_THAT(Expand(dict, {1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Expand(dict, {-1, 2, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Expand(dict, {int64_t{1} << 62, 2, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ShapeOpsTest, ViewFlattenAndUnflattenKeepTheOrderOfRows) {
  Draws draws(4);
  TensorDict dict({2, 6});
  ASSERT_TRUE(dict.Set("a", Iota<int32_t>({2, 6, 3})).ok());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict view, View(dict, {4, -1}));
  EXPECT_EQ(view.Find("a")->shape(), Shape({4, 3, 3}));
  EXPECT_EQ(view.Find("a")->raw_data(), dict.Find("a")->raw_data());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict parts,
                            Unflatten(dict, -1, {2, -1}));
  EXPECT_EQ(parts.batch_shape(), Shape({2, 2, 3}));
  EXPECT_THAT(Flatten(parts, 1, -1), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(Flatten(parts, 2, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));

  // No strides show a transposed dictionary's rows in order.
  const TensorDict turned = *Transpose(dict, 0, 1);
  EXPECT_THAT(View(turned, {12}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("use Reshape"), HasSubstr("\"a\""))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict copied, Flatten(turned));
  EXPECT_EQ(copied.Find("a")->data<int32_t>()[3], 18);
  EXPECT_THAT(Unflatten(turned, 0, {3, 2}), IsOk());

  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{5, -1}, {-1, -1}, {0, -1}, {-2, 6}, {13}}) {
    EXPECT_THAT(View(dict, wrong),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(View(TensorDict({0, 3}), {3, -1}), IsOk());
}

std::vector<int64_t> SizesOf(const std::vector<TensorDict>& parts, int dim) {
  std::vector<int64_t> sizes;
  for (const TensorDict& part : parts) sizes.push_back(part.batch_shape()[dim]);
  return sizes;
}

TEST(ShapeOpsTest, SplitChunkAndUnbindTakeApartWhatCatAndStackJoin) {
  Draws draws(5);
  const TensorDict dict = MakeNested({2, 7}, &draws);
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> parts, Split(dict, 3, -1));
  EXPECT_EQ(SizesOf(parts, 1), (std::vector<int64_t>{3, 3, 1}));
  EXPECT_THAT(Cat(parts, 1), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_EQ(parts[0].Find("a")->buffer(), dict.Find("a")->buffer());
  RILL_ASSERT_OK_AND_ASSIGN(parts, Split(dict, {0, 5, 2}, 1));
  EXPECT_EQ(SizesOf(parts, 1), (std::vector<int64_t>{0, 5, 2}));
  EXPECT_THAT(Cat(parts, 1), IsOkAndHolds(BitEqualTo(dict)));
  RILL_ASSERT_OK_AND_ASSIGN(parts, Chunk(dict, 3, 1));
  EXPECT_EQ(SizesOf(parts, 1), (std::vector<int64_t>{3, 3, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(parts, Chunk(dict, 5, 1));  // As torch: only four.
  EXPECT_EQ(SizesOf(parts, 1), (std::vector<int64_t>{2, 2, 2, 1}));
  RILL_ASSERT_OK_AND_ASSIGN(parts, Unbind(dict, -1));
  ASSERT_EQ(parts.size(), 7u);
  EXPECT_EQ(parts[0].batch_shape(), Shape({2}));
  EXPECT_THAT(Stack(parts, 1), IsOkAndHolds(BitEqualTo(dict)));

  EXPECT_EQ(Split(TensorDict({0}), 4)->size(), 1u);
  EXPECT_EQ(Chunk(TensorDict({0}), 4)->size(), 1u);
  EXPECT_EQ(Unbind(TensorDict({0}))->size(), 0u);
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{3, 3}, {8}, {-1, 8}, {}}) {
    EXPECT_THAT(
        Split(dict, wrong, 1),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("add up to 7")));
  }
  EXPECT_THAT(Split(dict, 0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Chunk(dict, 0), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ShapeOpsTest, DimensionsOutsideTheBatchAreRefused) {
  Draws draws(6);
  const TensorDict dict = MakeNested({2, 3}, &draws);
  for (const int dim : {2, -3, 99}) {
    const std::vector<absl::Status> statuses = {
        Permute(dict, {0, dim}).status(),
        Transpose(dict, 0, dim).status(),
        Flatten(dict, 0, dim).status(),
        Unflatten(dict, dim, {1}).status(),
        Split(dict, 1, dim).status(),
        Chunk(dict, 1, dim).status(),
        Unbind(dict, dim).status(),
        Roll(dict, {1}, {dim}).status(),
        Flip(dict, {dim}).status(),
        RepeatInterleave(dict, int64_t{1}, dim).status()};
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("want one in [-2, 2)")));
    }
  }
  EXPECT_THAT(Permute(dict, {0}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Permute(dict, {0, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Flip(dict, {1, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Roll(dict, {1, 2}, {0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Repeat(dict, {2}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Repeat(dict, {-1, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Repeat(dict, {int64_t{1} << 62, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Pad(dict, {{0, 0}, {0, 0}, {1, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Pad(dict, {{-1, 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Pad(dict, {{1, 0}}, 0.5),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got 0.5"), HasSubstr("int32"))));
}

}  // namespace
}  // namespace rill::ops
