// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ragged_tensor.h"

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tensors/test_tensors.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

absl::StatusOr<Tensor> RunExample(const Tensor& two, const Tensor& three) {
  RILL_ASSIGN_OR_RETURN(auto words, RaggedTensor::FromRows({two, three}));
  RILL_ASSIGN_OR_RETURN(Tensor row, words.Row(1));  // shape [3], a view
  return row;
}

TEST(RaggedTensorTest, Example) {
  EXPECT_THAT(RunExample(Iota<float>({2}), Iota<float>({3})),
              IsOkAndHolds(TensorElementsAre<float>(0, 1, 2)));
}

// [2, 1], [0, 3], [1, 2]: 0 to 3.
RaggedTensor ThreeRows() {
  return *RaggedTensor::Create(Iota<float>({4}),
                               MakeTensor<int64_t>({2, 1, 0, 3, 1, 2}, {3, 2}));
}

TEST(RaggedTensorTest, RowsAreViews) {
  const RaggedTensor rows = ThreeRows();
  EXPECT_EQ(rows.num_rows(), 3);
  EXPECT_EQ(rows.row_rank(), 2);
  EXPECT_THAT(rows.Row(0), IsOkAndHolds(TensorIs(DType::kFloat32, {2, 1})));
  EXPECT_THAT(rows.Row(1), IsOkAndHolds(TensorIs(DType::kFloat32, {0, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor last, rows.Row(2));
  EXPECT_THAT(last, BitEqualTo(MakeTensor<float>({2, 3}, {1, 2})));
  last.data<float>()[0] = 7;
  EXPECT_EQ(rows.values().data<float>()[2], 7);
  EXPECT_THAT(rows.Row(3), IsOutOfRange("index 3 is outside [0, 3)"));
  EXPECT_THAT(rows.Row(-1), IsOutOfRange());
}

TEST(RaggedTensorTest, CreateChecksShapes) {
  const Tensor four = Iota<float>({4});
  const auto refuses = [&](const Tensor& shapes, const std::string& message) {
    EXPECT_THAT(RaggedTensor::Create(four, shapes),
                StatusIs(kInvalid, HasSubstr(message)));
  };
  refuses(MakeTensor<int64_t>({2, -2}, {2, 1}), "shape of row 1");
  refuses(MakeTensor<int64_t>({kHuge, 2}, {1, 2}), "shape of row 0");
  refuses(MakeTensor<int64_t>({1, kHuge}, {2, 1}), "fit in int64");
  refuses(MakeTensor<int64_t>({2, 1}, {2, 1}), "got 4, want 3");
  refuses(MakeTensor<int64_t>({2, 3}, {2, 1}), "want at least 5");
  refuses(MakeTensor<int64_t>({4}, {1}), "want int64[rows, rank]");
  refuses(MakeTensor<int32_t>({4}, {1, 1}), "got int32[1, 1]");
  refuses(Iota<int64_t>({1, 9}), "rank at most 8");
  EXPECT_THAT(RaggedTensor::Create(Iota<float>({2, 2}),
                                   MakeTensor<int64_t>({4}, {1, 1})),
              StatusIs(kInvalid, HasSubstr("got shape [2, 2]")));
  // The table is a copy: writing to the caller's does no harm.
  const Tensor table = MakeTensor<int64_t>({4}, {1, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows,
                            RaggedTensor::Create(four, table));
  table.data<int64_t>()[0] = 1000;
  EXPECT_THAT(rows.Row(0), IsOkAndHolds(BitEqualTo(four)));
}

TEST(RaggedTensorTest, RowsWithoutDimensionsAndNoRows) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const RaggedTensor scalars,
      RaggedTensor::FromRows(
          {MakeTensor<int64_t>({3}, {}), MakeTensor<int64_t>({4}, {})}));
  EXPECT_THAT(scalars.Row(1), IsOkAndHolds(TensorElementsAre<int64_t>(4)));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor none, ThreeRows().Slice(1, 1));
  EXPECT_EQ(none.num_rows(), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const Padded padded, none.ToPadded());
  EXPECT_THAT(padded.values, TensorIs(DType::kFloat32, {0, 0, 0}));
  EXPECT_THAT(padded.mask, TensorIs(DType::kBool, {0}));
}

TEST(RaggedTensorTest, FromRowsWantsRowsAlike) {
  const Tensor row = Iota<float>({2});
  EXPECT_THAT(RaggedTensor::FromRows({}), StatusIs(kInvalid));
  EXPECT_THAT(RaggedTensor::FromRows({row, Iota<double>({2})}),
              StatusIs(kInvalid, HasSubstr("row 1: got float64[2]")));
  EXPECT_THAT(RaggedTensor::FromRows({row, Iota<float>({2, 1})}),
              StatusIs(kInvalid, HasSubstr("got float32[2, 1]")));
}

TEST(StackPaddedTest, PadsAndMasks) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const Padded padded,
      StackPadded({Iota<float>({1, 2}), Iota<float>({2, 2})}, 0, -1));
  EXPECT_THAT(padded.values, BitEqualTo(MakeTensor<float>(
                                 {0, 1, -1, -1, 0, 1, 2, 3}, {2, 2, 2})));
  // Only the first dimension of the rows is ragged.
  EXPECT_THAT(padded.mask,
              BitEqualTo(MakeTensor<bool>({true, false, true, true}, {2, 2})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Padded behind,
      StackPadded({Iota<int32_t>({2, 1}), Iota<int32_t>({2, 2})}, 1));
  EXPECT_THAT(behind.values, BitEqualTo(MakeTensor<int32_t>(
                                 {0, 0, 0, 1, 1, 0, 2, 3}, {2, 2, 2})));
  EXPECT_THAT(behind.mask, TensorIs(DType::kBool, {2, 2, 2}));
  RILL_ASSERT_OK_AND_ASSIGN(const Padded even,
                            StackPadded({Iota<float>({2}), Iota<float>({2})}));
  EXPECT_THAT(even.mask, TensorElementsAre<bool>(true, true));
}

TEST(StackPaddedTest, RefusesWhatItCannotPad) {
  const std::vector<Tensor> complex = {Iota<std::complex<float>>({1}),
                                       Iota<std::complex<float>>({2})};
  RILL_EXPECT_OK(StackPadded(complex).status());
  EXPECT_THAT(StackPadded(complex, 0, 1), StatusIs(kInvalid));
  EXPECT_THAT(StackPadded({Iota<float>({2})}, 2),
              StatusIs(kInvalid, HasSubstr("got 2, want one in [0, 1]")));
  EXPECT_THAT(StackPadded({}), StatusIs(kInvalid));
}

TEST(RaggedEntryTest, RowsAreTheBatch) {
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("words", ThreeRows()));
  EXPECT_EQ(dict.Kind("words"), EntryKind::kRagged);
  EXPECT_EQ(dict.GetRagged("words")->num_rows(), 3);
  EXPECT_THAT(dict.Get("words"), StatusIs(kInvalid, HasSubstr("a ragged")));
  EXPECT_THAT(dict.GetRagged("x"), IsNotFound());
  for (const Shape& shape : {Shape({}), Shape({2}), Shape({3, 1})}) {
    TensorDict other(shape);
    EXPECT_THAT(other.Set("words", ThreeRows()),
                StatusIs(kInvalid, HasSubstr("rows of \"words\": got 3")));
    EXPECT_TRUE(other.empty());
  }
  EXPECT_EQ(dict.size_bytes(), 16);
  EXPECT_THAT(dict.DebugString(), HasSubstr("ragged float32 of 3 rows [2, 1]"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict clone, dict.Clone());
  clone.GetRagged("words")->values().data<float>()[3] = 9;
  EXPECT_THAT(clone.CheckEqual(dict),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"words/[2]\" differs first at [0, 1]"),
                             HasSubstr("got 9, want 3"))));
  EXPECT_TRUE(clone.CheckClose(dict, 6, 0).ok());
}

TEST(RaggedEntryTest, OtherShapeOperationsNameTheKey) {
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("deep/words", ThreeRows()));
  const auto refused = StatusIs(kInvalid, AllOf(HasSubstr("a ragged tensor"),
                                                HasSubstr("\"deep/words\"")));
  EXPECT_THAT(dict.Unsqueeze(0), refused);
  EXPECT_THAT(dict.Unsqueeze(1), refused);
  EXPECT_THAT(dict.Reshape({3, 1}), refused);
  EXPECT_THAT(Stack({dict, dict}), refused);
  EXPECT_THAT(
      dict.MapShape({3},
                    [](const Tensor& t) { return absl::StatusOr<Tensor>(t); }),
      refused);
  TensorDict out;
  EXPECT_THAT(StackInto({dict, dict}, 0, &out), refused);
  EXPECT_TRUE(out.empty());
  EXPECT_THAT(dict.Reshape({3}), IsOkAndHolds(BitEqualTo(dict)));
}

TEST(RaggedEntryTest, ApplySeesTheValues) {
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("words", ThreeRows()));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict cast,
      dict.Apply([](absl::string_view, const Tensor& leaf) {
        return Cast(leaf, DType::kInt64);
      }));
  EXPECT_EQ(cast.GetRagged("words")->dtype(), DType::kInt64);
  EXPECT_THAT(dict.Apply([](absl::string_view, const Tensor& leaf) {
    return leaf.Slice(0, 0, 3);
  }),
              StatusIs(kInvalid, HasSubstr("\"words\"")));
}

// Random Slice, Gather and Cat against a plain list of rows.
TEST(RaggedEntryTest, RandomOperationsAgreeWithAListOfRows) {
  const Rng rng(5);
  for (uint32_t round = 0; round < 200; ++round) {
    uint32_t draw = 0;
    const auto pick = [&](int64_t bound) {
      return rng.UniformInt(round, draw++, bound);
    };
    std::vector<Tensor> want;
    for (int64_t i = 0; i < 4; ++i) {
      want.push_back(Iota<int32_t>({pick(3), pick(3)}));
      for (int64_t j = 0; j < want.back().num_elements(); ++j) {
        want.back().data<int32_t>()[j] = static_cast<int32_t>(pick(100));
      }
    }
    TensorDict dict({4});
    RILL_ASSERT_OK(dict.Set("r", *RaggedTensor::FromRows(want)));
    for (int step = 0; step < 8; ++step) {
      const int64_t n = dict.batch_shape()[0];
      absl::StatusOr<TensorDict> next = dict;
      const int64_t op = pick(3);
      if (op == 0) {
        const int64_t begin = pick(n / 2 + 1);
        const int64_t end = begin + pick(n - begin + 1);
        next = dict.Slice(0, begin, end);
        want = {want.begin() + begin, want.begin() + end};
      } else if (op == 1) {
        std::vector<int64_t> rows;
        std::vector<Tensor> chosen;
        for (int64_t i = 0; n > 0 && i < 3; ++i) {
          rows.push_back(pick(n));
          chosen.push_back(want[static_cast<size_t>(rows.back())]);
        }
        next = dict.Gather(rows);
        want = chosen;
      } else if (n < 20) {
        next = Cat({dict, *dict.Slice(0, 0, n / 2), dict});
        const std::vector<Tensor> half = {want.begin(), want.begin() + n / 2};
        const std::vector<Tensor> all = want;
        want.insert(want.end(), half.begin(), half.end());
        want.insert(want.end(), all.begin(), all.end());
      }
      RILL_ASSERT_OK(next.status());
      dict = *std::move(next);
      ASSERT_EQ(dict.batch_shape(), Shape({static_cast<int64_t>(want.size())}));
      for (size_t i = 0; i < want.size(); ++i) {
        RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row,
                                  dict.Index(static_cast<int64_t>(i)));
        ASSERT_THAT(row.Get("r"), IsOkAndHolds(BitEqualTo(want[i])));
      }
    }
  }
}

}  // namespace
}  // namespace rill
