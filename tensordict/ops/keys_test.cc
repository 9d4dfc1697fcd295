// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/keys.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
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

using Sets = std::vector<std::vector<absl::string_view>>;

TensorDict Make(const std::vector<absl::string_view>& keys) {
  TensorDict dict({2});
  for (const absl::string_view key : keys) {
    EXPECT_TRUE(dict.Set(key, Iota<float>({2})).ok());
  }
  return dict;
}

TEST(KeysTest, Example) {
  const TensorDict step = Make({"obs", "next/obs", "next/reward"});
  EXPECT_THAT(FlattenKeys(step)->Keys(),
              ElementsAre("obs", "next.obs", "next.reward"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> parts,
                            SplitKeys(step, Sets{{"obs"}}));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(parts[0], HasKeys("obs"));
  EXPECT_THAT(parts[1], HasKeys("next/obs", "next/reward"));
}

TEST(KeysTest, D3SelectExcludeSplitAndFlattenNestedKeys) {
  const TensorDict dict = Make({"a", "n/b", "n/c"});
  EXPECT_THAT(*dict.Select({"n/b"}), HasKeys("n/b"));
  EXPECT_THAT(*dict.Exclude({"n/b"}), HasKeys("a", "n/c"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::vector<TensorDict> parts,
                            SplitKeys(dict, Sets{{"n/b"}, {"a"}}));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0], HasKeys("n/b"));
  EXPECT_THAT(parts[1], HasKeys("a"));
  EXPECT_THAT(parts[2], HasKeys("n/c"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, FlattenKeys(dict, "."));
  EXPECT_THAT(flat.Keys(), ElementsAre("a", "n.b", "n.c"));
  EXPECT_EQ(flat.Find("n.b")->raw_data(), dict.Find("n/b")->raw_data());
}

TEST(KeysTest, FlattenKeepsEveryKindAndEscapes) {
  TensorDict dict = Make({"a", "n/b", "n/c/d", "n/x\\/y"});
  RILL_ASSERT_OK(dict.Set("n/name", NonTensor{"1"}));
  RILL_ASSERT_OK(
      dict.Set("n/who", *NonTensorStack::Create({2}, {"\"a\"", "\"b\""})));
  RILL_ASSERT_OK(
      dict.Set("n/lazy", *LazyStack::Create({TensorDict(), TensorDict()})));
  RILL_ASSERT_OK(dict.Set(
      "n/rows", *RaggedTensor::FromRows({Iota<float>({1}), Iota<float>({3})})));
  RILL_ASSERT_OK(dict.Set("n/empty", TensorDict({2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, FlattenKeys(dict, "/"));
  EXPECT_THAT(flat.Keys(),
              ElementsAre("a", "n\\/b", "n\\/c\\/d", "n\\/x\\/y", "n\\/name",
                          "n\\/who", "n\\/lazy", "n\\/rows"));
  EXPECT_EQ(flat.batch_shape(), Shape({2}));
  EXPECT_EQ(flat.GetNonTensor("n\\/name")->json, "1");
  EXPECT_EQ(flat.Kind("n\\/who"), EntryKind::kNonTensorStack);
  EXPECT_EQ(flat.Kind("n\\/lazy"), EntryKind::kLazyStack);
  EXPECT_EQ(flat.Kind("n\\/rows"), EntryKind::kRagged);
}

TEST(KeysTest, CollisionsNameBothKeys) {
  for (const auto& keys :
       {std::vector<absl::string_view>{"n.b", "n/b"}, {"n/b", "n.b"}}) {
    EXPECT_THAT(FlattenKeys(Make(keys)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"n/b\""),
                               HasSubstr("both would be \"n.b\""))));
  }
  EXPECT_THAT(FlattenKeys(Make({"a"}), ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(KeysTest, SplitTakesAKeyOnce) {
  const TensorDict dict = Make({"a", "n/b", "n/c"});
  EXPECT_THAT(SplitKeys(dict, Sets{{"n"}, {"n/b"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("n/b")));
  EXPECT_THAT(SplitKeys(dict, Sets{{"x"}}),
              StatusIs(absl::StatusCode::kNotFound));
  RILL_ASSERT_OK_AND_ASSIGN(
      const std::vector<TensorDict> parts,
      SplitKeys(dict, Sets{{"n", "x"}, {"n/b"}}, /*strict=*/false));
  EXPECT_THAT(parts[0], HasKeys("n/b", "n/c"));
  EXPECT_EQ(parts[1].num_leaves(), 0);
  EXPECT_THAT(parts[2], HasKeys("a"));
}

}  // namespace
}  // namespace rill::ops
