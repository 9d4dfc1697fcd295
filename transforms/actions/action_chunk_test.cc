// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/actions/action_chunk.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/conformance/ted_spec.h"
#include "rill/transforms/conformance/transform_conformance.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Actions 0, 1, ..., 3 in [1, 4].
TensorDict Line() {
  TensorDict batch({1, 4});
  RILL_EXPECT_OK(
      batch.Set("action", *Tensor::From<float>({0, 1, 2, 3}, {1, 4, 1})));
  return batch;
}

TEST(ActionChunkTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(auto chunk, ActionChunk::Create({.chunk_size = 8}));
  EXPECT_EQ(chunk->name(), "ActionChunk");
}

// The numbers of torchrl 0.14.1's documentation.
TEST(ActionChunkTest, RepeatsTheLastActionPastTheEndOfALine) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto chunk, ActionChunk::Create({.chunk_size = 3, .done_key = ""}));
  TensorDict batch = Line();
  RILL_ASSERT_OK(chunk->Forward(&batch, nullptr));
  EXPECT_EQ(batch.Find("vla_action/chunk")->shape(), Shape({1, 4, 3, 1}));
  EXPECT_THAT(batch.Flat<float>("vla_action/chunk"),
              IsOkAndHolds(ElementsAre(0, 1, 2, 1, 2, 3, 2, 3, 3, 3, 3, 3)));
  EXPECT_THAT(batch.Flat<bool>("action_is_pad"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1)));
}

TEST(ActionChunkTest, TrajectoriesEndWhereTheyAreDone) {
  RILL_ASSERT_OK_AND_ASSIGN(auto chunk, ActionChunk::Create({.chunk_size = 3}));
  TensorDict batch = Line();
  RILL_ASSERT_OK(
      batch.Set("next/done",
                *Tensor::From<bool>({false, true, false, false}, {1, 4, 1})));
  TensorDict again = batch;
  RILL_ASSERT_OK(chunk->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<float>("vla_action/chunk"),
              IsOkAndHolds(ElementsAre(0, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto blind, ActionChunk::Create({.chunk_size = 2, .done_key = ""}));
  RILL_ASSERT_OK(blind->Forward(&again, nullptr));
  EXPECT_THAT(again.Flat<bool>("action_is_pad"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 0, 0, 0, 0, 1)));
}

TEST(ActionChunkTest, RowsThatTellNoEndsAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(auto chunk, ActionChunk::Create({.chunk_size = 2}));
  TensorDict batch = Line();
  const auto refused =
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("next/done"), HasSubstr("done_key = \"\"")));
  EXPECT_THAT(chunk->ForwardSpec(TensorDictSpec::Of(batch)), refused);
  EXPECT_THAT(chunk->Forward(&batch, nullptr), refused);
}

TEST(ActionChunkTest, AGroupsActionsEndByItsFlags) {
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(
      spec.Set("guard/action", LeafSpec::Unbounded(DType::kFloat32, {1})));
  RILL_ASSERT_OK(spec.Set("next/guard/truncated", LeafSpec::Binary({1})));
  const auto make = [](const char* done_key) {
    return *ActionChunk::Create(
        {.chunk_size = 2, .action_key = "guard/action", .done_key = done_key});
  };
  EXPECT_THAT(
      make("next/done")->ForwardSpec(spec),
      StatusIs(kInvalidArgument, HasSubstr("\"next/guard/truncated\"")));
  RILL_EXPECT_OK(make("next/guard/done")->ForwardSpec(spec));
}

TEST(ActionChunkTest, LinesDoNotMeet) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto chunk, ActionChunk::Create({.chunk_size = 2, .done_key = ""}));
  TensorDict batch({2, 2});
  RILL_ASSERT_OK(
      batch.Set("action", *Tensor::From<int64_t>({1, 2, 3, 4}, {2, 2})));
  RILL_ASSERT_OK(chunk->Forward(&batch, nullptr));
  EXPECT_THAT(batch.Flat<int64_t>("vla_action/chunk"),
              IsOkAndHolds(ElementsAre(1, 2, 2, 2, 3, 4, 4, 4)));
}

TEST(ActionChunkTest, BadOptionsAreNamed) {
  EXPECT_THAT(ActionChunk::Create({}),
              StatusIs(kInvalidArgument, HasSubstr("chunk_size")));
  EXPECT_THAT(ActionChunk::Create({.chunk_size = 1, .pad_key = "/"}),
              StatusIs(kInvalidArgument, HasSubstr("pad_key")));
  EXPECT_THAT(ActionChunk::Create({.chunk_size = 1, .chunk_key = "action"}),
              StatusIs(kInvalidArgument, HasSubstr("twice")));
}

TEST(ActionChunkTest, BadBatchesAreErrors) {
  RILL_ASSERT_OK_AND_ASSIGN(auto chunk, ActionChunk::Create({.chunk_size = 2}));
  TensorDict scalar;
  EXPECT_THAT(chunk->Forward(&scalar, nullptr),
              StatusIs(kInvalidArgument, HasSubstr("[*B, T]")));
  TensorDict empty({3});
  EXPECT_THAT(chunk->Forward(&empty, nullptr),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("action")));
  TensorDict batch = Line();
  RILL_ASSERT_OK(
      batch.Set("next/done", *Tensor::Zeros(DType::kFloat32, {1, 4, 1})));
  EXPECT_THAT(chunk->Forward(&batch, nullptr),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("next/done"), HasSubstr("float32"))));
  TensorDict deep({1});
  RILL_ASSERT_OK(deep.Set(
      "action", *Tensor::Zeros(DType::kBool, {1, 1, 1, 1, 1, 1, 1, 1})));
  const auto names_both =
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("ActionChunk"), HasSubstr("\"action\"")));
  EXPECT_THAT(chunk->Forward(&deep, nullptr), names_both);
  TensorDictSpec spec = TedSpec();
  RILL_ASSERT_OK(
      spec.Set("action",
               LeafSpec::Unbounded(DType::kFloat32, {1, 1, 1, 1, 1, 1, 1, 1})));
  EXPECT_THAT(chunk->ForwardSpec(spec), names_both);
  RILL_ASSERT_OK_AND_ASSIGN(
      chunk, ActionChunk::Create({.chunk_size = 2, .done_key = "observation"}));
  EXPECT_THAT(chunk->ForwardSpec(TedSpec()),
              StatusIs(kInvalidArgument, HasSubstr("\"observation\"")));
}

TransformUnderTest UnderTest(const LeafSpec& action) {
  TensorDictSpec spec = TedSpec();
  RILL_EXPECT_OK(spec.Set("action", action));
  return InABuffer<ActionChunk>({.chunk_size = 3}, spec);
}

}  // namespace

INSTANTIATE_TRANSFORM_CONFORMANCE(ChunksOfIndices,
                                  UnderTest(LeafSpec::Categorical(4)));
INSTANTIATE_TRANSFORM_CONFORMANCE(
    ChunksOfNumbers,
    UnderTest(*LeafSpec::Bounded(*Tensor::From<float>({0, 1}, {2}),
                                 *Tensor::From<float>({1, 3}, {2}))));
INSTANTIATE_TRANSFORM_CONFORMANCE(ChunksOfOneHot,
                                  UnderTest(LeafSpec::OneHot(4)));

}  // namespace rill
