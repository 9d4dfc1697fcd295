// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ops/keys.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
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
  EXPECT_THAT(UnflattenKeys(flat, "."), IsOkAndHolds(BitEqualTo(dict)));
}

TEST(KeysTest, FlattenKeepsEveryKindAndEscapes) {
  Draws draws(1);
  TensorDict dict = MakeNested({2}, &draws);
  RILL_ASSERT_OK(dict.Set("n/who", NonTensor{"1"}));
  RILL_ASSERT_OK(dict.Set("n/x\\/y", Iota<float>({2})));
  RILL_ASSERT_OK(dict.Set("n/empty", TensorDict({2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict flat, FlattenKeys(dict, "/"));
  EXPECT_THAT(flat.Keys(), ElementsAre("a", "n\\/b", "n\\/c\\/d", "n\\/who",
                                       "n\\/x\\/y", "name"));
  EXPECT_EQ(flat.GetNonTensor("n\\/who")->json, "1");
  EXPECT_EQ(flat.batch_shape(), Shape({2}));
  EXPECT_EQ(flat.Find("n\\/c\\/d")->shape(), Shape({2, 2}));
}

TEST(KeysTest, CollisionsNameBothKeys) {
  for (const auto& keys :
       {std::vector<absl::string_view>{"n.b", "n/b"}, {"n/b", "n.b"}}) {
    EXPECT_THAT(FlattenKeys(Make(keys)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"n/b\""),
                               HasSubstr("both would be \"n.b\""))));
  }
  for (const auto& keys : {std::vector<absl::string_view>{"a", "a.b"},
                           {"a.b", "a"},
                           {"a.b.c", "a.b"},
                           {"a.b", "a/b"},
                           {"a/b", "a.b"}}) {
    EXPECT_THAT(UnflattenKeys(Make(keys)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(keys[0]), HasSubstr(keys[1]))))
        << keys[0];
  }
  EXPECT_THAT(UnflattenKeys(Make({"a..b"})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a..b")));
  EXPECT_THAT(UnflattenKeys(Make({".a"})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(FlattenKeys(Make({"a"}), ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(UnflattenKeys(Make({"a"}), ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(KeysTest, UnflattenMergesWithWhatIsThere) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict merged,
                            UnflattenKeys(Make({"a/x", "a.b", "c.d", "c.e"})));
  EXPECT_THAT(merged, HasKeys("a/x", "a/b", "c/d", "c/e"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict later,
                            UnflattenKeys(Make({"a.b", "a/x"})));
  EXPECT_THAT(later, HasKeys("a/b", "a/x"));
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

  TensorDict changed = dict;
  EXPECT_THAT(Separate(&changed, {"a", "x"}),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(changed, BitEqualTo(dict));
  EXPECT_THAT(*Separate(&changed, {"a"}), HasKeys("a"));
  EXPECT_THAT(changed, HasKeys("n/b", "n/c"));
  changed.Lock();
  EXPECT_THAT(Separate(&changed, {"n"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(KeysTest, FiltersWorkOnAllLevels) {
  Draws draws(1);
  TensorDict dict = MakeNested({2}, &draws);
  RILL_ASSERT_OK(dict.Set("n/who", NonTensor{"1"}));
  RILL_ASSERT_OK(dict.Set("e/f/g", TensorDict({2})));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict filtered, FilterNonTensor(dict));
  EXPECT_FALSE(filtered.Contains("name"));
  EXPECT_FALSE(filtered.Contains("n/who"));
  EXPECT_EQ(filtered.LeafKeys(), dict.LeafKeys());
  EXPECT_TRUE(filtered.Contains("e/f/g"));
  RILL_ASSERT_OK_AND_ASSIGN(filtered, FilterEmpty(dict));
  EXPECT_FALSE(filtered.Contains("e"));
  EXPECT_TRUE(filtered.Contains("n/who"));
  EXPECT_EQ(filtered.LeafKeys(), dict.LeafKeys());
}

TEST(KeysTest, ReplaceEmptyAndSort) {
  const TensorDict dict = Make({"b", "n/d", "n/c", "a"});
  TensorDict other({2});
  RILL_ASSERT_OK(other.Set("n/c", Iota<int32_t>({2})));
  RILL_ASSERT_OK(other.Set("z", Iota<int32_t>({2})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict replaced, Replace(dict, other));
  EXPECT_THAT(replaced, HasKeys("b", "n/d", "n/c", "a", "z"));
  EXPECT_EQ(replaced.Find("n/c")->dtype(), DType::kInt32);
  EXPECT_EQ(dict.Find("n/c")->dtype(), DType::kFloat32);
  EXPECT_THAT(Replace(dict, TensorDict(Shape{2})),
              IsOkAndHolds(BitEqualTo(dict)));

  EXPECT_TRUE(WithoutEntries(dict)->empty());
  EXPECT_EQ(WithoutEntries(dict)->batch_shape(), Shape({2}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict hollow,
                            WithoutEntries(dict, /*recurse=*/true));
  EXPECT_THAT(hollow.Keys(), ElementsAre("n"));
  EXPECT_EQ(hollow.num_leaves(), 0);

  EXPECT_THAT(SortKeys(dict)->LeafKeys(), ElementsAre("a", "b", "n/c", "n/d"));
  EXPECT_THAT(*SortKeys(dict), BitEqualTo(dict));
}

}  // namespace
}  // namespace rill::ops
