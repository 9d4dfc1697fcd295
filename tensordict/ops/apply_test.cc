// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/apply.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/barrier.h"
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 2 * x in a new tensor.
absl::StatusOr<Tensor> Twice(absl::Span<const Tensor> x) {
  RILL_ASSIGN_OR_RETURN(Tensor result, x[0].Clone());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.data<int32_t>()[i] *= 2;
  }
  return result;
}

absl::StatusOr<Tensor> Difference(absl::Span<const Tensor> x) {
  RILL_ASSIGN_OR_RETURN(Tensor result, x[0].Clone());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.data<int32_t>()[i] -= x[1].data<int32_t>()[i];
  }
  return result;
}

TensorDict Make(const std::vector<absl::string_view>& keys, int64_t rows) {
  TensorDict dict({rows});
  for (const absl::string_view key : keys) {
    EXPECT_TRUE(dict.Set(key, Iota<int32_t>({rows})).ok());
  }
  return dict;
}

TEST(ApplyTest, Example) {
  const TensorDict dict = MakeSteps(3);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict wide,
                            Apply(dict, [](absl::Span<const Tensor> x) {
                              return Cast(x[0], DType::kFloat64);
                            }));
  EXPECT_EQ(wide.LeafKeys(), dict.LeafKeys());
  EXPECT_EQ(wide.Find("next/done")->dtype(), DType::kFloat64);
}

TEST(ApplyTest, ResultsDoNotDependOnTheNumberOfThreads) {
  Draws draws(1);
  TensorDict dict = MakeNested({4}, &draws);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(dict.Set(absl::StrCat("m/", i), Iota<int32_t>({4})).ok());
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict one, Apply(dict, Twice));
  EXPECT_TRUE(one.Contains("name"));
  EXPECT_EQ(one.FindDict("n/c")->batch_shape(), Shape({4, 2}));
  EXPECT_THAT(*one.Find("m/7"), TensorElementsAre<int32_t>(0, 2, 4, 6));
  for (const int num_threads : {2, 3, 8, 100}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict many,
                              Apply(dict, Twice, {.num_threads = num_threads}));
    EXPECT_THAT(many, BitEqualTo(one));
    EXPECT_EQ(many.LeafKeys(), one.LeafKeys());
  }
}

TEST(ApplyTest, ThreadsWorkAtTheSameTime) {
  // Each call waits for all of them.
  absl::Barrier* all = new absl::Barrier(3);
  const TensorDict dict = Make({"a", "b", "c"}, 2);
  EXPECT_THAT(Apply(dict,
                    [&](absl::Span<const Tensor> x) -> absl::StatusOr<Tensor> {
                      if (all->Block()) delete all;
                      return x[0];
                    },
                    {.num_threads = 3}),
              IsOkAndHolds(BitEqualTo(dict)));
}

TEST(ApplyTest, TheFirstErrorInTheOrderOfKeysIsReturned) {
  const TensorDict dict = Make({"a", "b", "n/c", "d", "e"}, 2);
  for (const int num_threads : {1, 4}) {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> calls = 0;
      EXPECT_THAT(
          NamedApply(dict,
                     [&](absl::string_view key,
                         absl::Span<const Tensor> x) -> absl::StatusOr<Tensor> {
                       ++calls;
                       if (key == "d") return absl::DataLossError("of d");
                       if (key == "n/c") return absl::AbortedError("of c");
                       return x[0];
                     },
                     {.num_threads = num_threads}),
          StatusIs(absl::StatusCode::kAborted,
                   AllOf(HasSubstr("of c"), HasSubstr("at key \"n/c\""))));
      EXPECT_EQ(calls, 5);
    }
  }
  for (const int wrong : {0, -1, 1 << 20}) {
    EXPECT_THAT(Apply(dict, Twice, {.num_threads = wrong}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ApplyTest, OthersAreGivenByKey) {
  const TensorDict a = Make({"x", "n/y"}, 3);
  const TensorDict b = Make({"n/y", "x", "z"}, 3);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict zero,
                            Apply(a, Difference, {.others = {&b}}));
  EXPECT_THAT(*zero.Find("n/y"), TensorElementsAre<int32_t>(0, 0, 0));
  EXPECT_THAT(Apply(b, Difference, {.others = {&a}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"z\"")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict filled,
      Apply(
          b, Difference,
          {.others = {&a}, .if_missing = MakeTensor<int32_t>({9, 9, 9}, {3})}));
  EXPECT_THAT(*filled.Find("z"), TensorElementsAre<int32_t>(-9, -8, -7));
  EXPECT_THAT(Apply(a, Difference, {.others = {nullptr}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ApplyTest, KeysAreLeftOutAndEmptyDictionariesFiltered) {
  const TensorDict dict = Make({"a", "n/b", "c"}, 2);
  const auto drop_b = [](absl::string_view key,
                         absl::Span<const Tensor> x) -> absl::StatusOr<Tensor> {
    return key == "n/b" ? Tensor() : x[0];
  };
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict result, NamedApply(dict, drop_b));
  EXPECT_THAT(result.Keys(), ElementsAre("a", "n", "c"));
  EXPECT_THAT(result, HasKeys("a", "c"));
  RILL_ASSERT_OK_AND_ASSIGN(result,
                            NamedApply(dict, drop_b, {.filter_empty = true}));
  EXPECT_THAT(result.Keys(), ElementsAre("a", "c"));
}

TEST(ApplyTest, AnotherBatchShape) {
  const TensorDict dict = Make({"a", "n/b"}, 6);
  const auto reshape = [](absl::Span<const Tensor> x) {
    return x[0].ViewAs({2, 3});
  };
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict result,
                            Apply(dict, reshape, {.batch_shape = Shape{2, 3}}));
  EXPECT_EQ(result.FindDict("n")->batch_shape(), Shape({2, 3}));
  EXPECT_THAT(Apply(dict, reshape),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ApplyTest, InPlaceWritesAllOrNothing) {
  const TensorDict dict = Make({"a", "n/b"}, 3);
  RILL_ASSERT_OK(ApplyInPlace(dict, Twice, {.num_threads = 2}));
  EXPECT_THAT(*dict.Find("n/b"), TensorElementsAre<int32_t>(0, 2, 4));
  const TensorDict before = *dict.Clone();
  int calls = 0;
  EXPECT_THAT(ApplyInPlace(dict,
                           [&](absl::Span<const Tensor> x) {
                             return ++calls == 1 ? Twice(x)
                                                 : x[0].Slice(0, 0, 2);
                           }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at key \"n/b\"")));
  EXPECT_THAT(ApplyInPlace(dict, Twice, {.batch_shape = Shape{3}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(dict, BitEqualTo(before));
}

TEST(MapChunksTest, PartsAreJoinedInOrder) {
  const TensorDict dict = MakeSteps(10);
  for (const int num_threads : {1, 3}) {
    std::atomic<int> calls = 0;
    EXPECT_THAT(
        MapChunks(dict,
                  [&](const TensorDict& part) -> absl::StatusOr<TensorDict> {
                    ++calls;
                    EXPECT_LE(part.batch_shape()[0], 4);
                    return part;
                  },
                  {.dim = -1, .chunk_size = 4, .num_threads = num_threads}),
        IsOkAndHolds(BitEqualTo(dict)));
    EXPECT_EQ(calls, 3);
    EXPECT_THAT(
        MapChunks(
            dict,
            [](const TensorDict& part) -> absl::StatusOr<TensorDict> {
              const int64_t first = part.Find("action")->data<int64_t>()[0];
              if (first == 0) return part;
              return absl::AbortedError(absl::StrCat("rows from ", first));
            },
            {.chunk_size = 3, .num_threads = num_threads}),
        StatusIs(absl::StatusCode::kAborted,
                 AllOf(HasSubstr("rows from 3"), HasSubstr("part 1 of 4"))));
  }
  EXPECT_THAT(MapChunks(dict, [](const TensorDict& part) { return part; },
                        {.chunk_size = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::ops
