// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/tensor_dict.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/key.h"
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
using ::testing::IsNull;
using ::testing::NotNull;

absl::StatusOr<Tensor> RunExample(const Tensor& reward) {
  TensorDict step({2});
  RILL_RETURN_IF_ERROR(step.Set("next/reward", reward));  // shape [2, 1]
  RILL_ASSIGN_OR_RETURN(Tensor r, step.Get("next/reward"));
  return r;
}

TEST(TensorDictTest, Example) {
  EXPECT_THAT(RunExample(Iota<float>({2, 1})),
              IsOkAndHolds(TensorElementsAre<float>(0, 1)));
}

TEST(TensorDictTest, CreateTakesAllOrNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict dict,
      TensorDict::Create(
          {2}, {{"a", Iota<float>({2})}, {"next/b", Iota<float>({2, 3})}}));
  EXPECT_THAT(dict, HasKeys("a", "next/b"));
  EXPECT_THAT(TensorDict::Create({2}, {{"a", Iota<float>({3})}}),
              IsInvalidArgument());
}

TEST(TensorDictTest, KeepsTheOrderOfEntries) {
  const TensorDict steps = MakeSteps(2);
  EXPECT_THAT(steps.Keys(), ElementsAre("observation", "action", "next"));
  EXPECT_THAT(steps.LeafKeys(),
              ElementsAre("observation", "action", "next/reward", "next/done"));
  EXPECT_EQ(steps.num_entries(), 3);
  EXPECT_EQ(steps.num_leaves(), 4);
  EXPECT_FALSE(steps.empty());
  EXPECT_TRUE(TensorDict().empty());
}

TEST(TensorDictTest, SetReplacesInPlace) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Set("observation", Iota<double>({2})));
  EXPECT_THAT(dict.Get("observation"),
              IsOkAndHolds(TensorIs(DType::kFloat64, {2})));
  EXPECT_THAT(dict.Keys(), ElementsAre("observation", "action", "next"));
  RILL_ASSERT_OK(dict.Set("next", Iota<float>({2})));  // Over a dictionary.
  EXPECT_THAT(dict, HasKeys("observation", "action", "next"));
}

// Every refused Set leaves the dictionary as it was.
void ExpectRefused(TensorDict dict, absl::string_view key, const Tensor& tensor,
                   absl::StatusCode code, const std::string& message) {
  const std::string before = dict.DebugString();
  EXPECT_THAT(dict.Set(key, tensor), StatusIs(code, HasSubstr(message)));
  EXPECT_EQ(dict.DebugString(), before);
}

TEST(TensorDictTest, RefusedSetChangesNothing) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const TensorDict steps = MakeSteps(2);
  const Tensor fits = Iota<float>({2});
  ExpectRefused(steps, "new", Iota<float>({3}), kInvalid,
                "shape of \"new\": got [3], want one that starts with the "
                "batch shape [2]");
  ExpectRefused(steps, "new/deep/er", Iota<float>({}), kInvalid, "[2]");
  ExpectRefused(steps, "observation/x", fits, kInvalid,
                "\"observation\" is a tensor, want a dictionary");
  ExpectRefused(steps, "next/reward/x/y", fits, kInvalid, "\"reward\"");
  ExpectRefused(steps, "", fits, kInvalid, "empty");
  ExpectRefused(steps, "a//b", fits, kInvalid, "empty component");
  ExpectRefused(steps, "a\\b", fits, kInvalid, "broken escape");
  TensorDict locked = steps;
  locked.Lock();
  EXPECT_THAT(locked.Set("new", fits), IsFailedPrecondition("locked"));
  EXPECT_FALSE(locked.Contains("new"));
}

TEST(TensorDictTest, GetNamesTheKeysThereAre) {
  const TensorDict steps = MakeSteps(2);
  EXPECT_THAT(steps.Get("next/rewards"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no key \"next/rewards\""),
                             HasSubstr("\"observation\", \"action\", "
                                       "\"next/reward\", \"next/done\""))));
  EXPECT_THAT(TensorDict().Get("a"), IsNotFound("there are: none"));
  EXPECT_THAT(steps.Get("action/x"), IsNotFound());
  EXPECT_THAT(steps.Get("action/"), IsInvalidArgument());
}

TEST(TensorDictTest, LongKeyListsAreCut) {
  TensorDict dict;
  for (int i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(dict.Set(absl::StrCat("key", i), Iota<float>({})));
  }
  EXPECT_THAT(dict.Get("x"), IsNotFound("... (100 in all)"));
}

TEST(TensorDictTest, EntriesOfAnotherKindAreNamed) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Set("name", NonTensor{"\"CartPole\""}));
  EXPECT_THAT(dict.Get("next"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got a dictionary, want a tensor"),
                             HasSubstr("GetDict"))));
  EXPECT_THAT(dict.GetDict("action"), IsInvalidArgument());
  EXPECT_THAT(dict.GetNonTensor("action"), IsInvalidArgument());
  EXPECT_THAT(dict.GetNonTensor("name"),
              IsOkAndHolds(NonTensor{"\"CartPole\""}));
  EXPECT_THAT(dict.GetNonTensor("x"), IsNotFound());
  EXPECT_THAT(dict.GetDict("x"), IsNotFound());
  EXPECT_THAT(dict, HasKeys("observation", "action", "next/reward",
                            "next/done"));  // A non-tensor value is no leaf.
}

TEST(TensorDictTest, FindAndContains) {
  const TensorDict steps = MakeSteps(2);
  EXPECT_THAT(steps.Find("next/reward"), NotNull());
  EXPECT_THAT(steps.Find("next"), IsNull());
  EXPECT_THAT(steps.FindDict("next"), NotNull());
  EXPECT_THAT(steps.FindDict("action"), IsNull());
  for (const char* key :
       {"", "/", "next/", "/next", "next//reward", "action/"}) {
    EXPECT_THAT(steps.Find(key), IsNull()) << key;
    EXPECT_FALSE(steps.Contains(key)) << key;
  }
  EXPECT_TRUE(steps.Contains("next"));
  EXPECT_TRUE(steps.Contains("next/done"));
  EXPECT_FALSE(steps.Contains("done"));
}

TEST(TensorDictTest, FlatGivesElements) {
  const TensorDict steps = MakeSteps(2);
  RILL_ASSERT_OK_AND_ASSIGN(auto action, steps.Flat<int64_t>("action"));
  EXPECT_THAT(action, ElementsAre(0, 1));
  EXPECT_THAT(steps.Flat<float>("action"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got float32, want int64"),
                             HasSubstr("; at key \"action\""))));
  EXPECT_THAT(steps.Flat<float>("x"), IsNotFound());
}

TEST(TensorDictTest, EscapedKeysAreOneComponent) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set(R"(a\/b)", Iota<float>({2})));
  RILL_ASSERT_OK(dict.Set(R"(n/c\\d)", Iota<int32_t>({2})));
  EXPECT_EQ(dict.num_entries(), 2);
  EXPECT_THAT(dict.Get(R"(a\/b)"),
              IsOkAndHolds(TensorIs(DType::kFloat32, {2})));
  EXPECT_THAT(dict.Find("a/b"), IsNull());
  EXPECT_THAT(dict.LeafKeys(), ElementsAre(R"(a\/b)", R"(n/c\\d)"));
  RILL_ASSERT_OK(dict.Rename(R"(a\/b)", R"(a\/c)"));
  EXPECT_TRUE(dict.Contains(R"(a\/c)"));
  RILL_ASSERT_OK(dict.Delete(R"(n/c\\d)"));
  EXPECT_EQ(dict.num_leaves(), 1);
}

// Whatever components a leaf has, it is found under the key that LeafKeys says.
TEST(TensorDictTest, RandomKeysRoundTrip) {
  const Rng rng(4);
  constexpr absl::string_view kLetters = "a/\\b";
  for (uint32_t round = 0; round < 300; ++round) {
    TensorDict dict;
    uint32_t draw = 0;
    std::vector<std::string> keys;
    for (int i = 0; i < 10; ++i) {
      std::vector<std::string> parts(
          static_cast<size_t>(rng.UniformInt(round, draw++, 3) + 1));
      for (std::string& part : parts) {
        do {
          part +=
              kLetters[static_cast<size_t>(rng.UniformInt(round, draw++, 4))];
        } while (rng.UniformInt(round, draw++, 2) == 0);
      }
      const std::vector<absl::string_view> views(parts.begin(), parts.end());
      const std::string key = JoinKey(views);
      // A key that would turn an earlier leaf into a dictionary is refused, one
      // that replaces a dictionary is not asked for.
      if (dict.Contains(key)) continue;
      if (dict.Set(key, MakeTensor<int64_t>({i}, {})).ok()) keys.push_back(key);
    }
    EXPECT_THAT(dict.LeafKeys(), ::testing::UnorderedElementsAreArray(keys));
    TensorDict copy;
    dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      RILL_EXPECT_OK(copy.Set(key, leaf));
    });
    EXPECT_THAT(copy, BitEqualTo(dict));
  }
}

TEST(TensorDictTest, CopiesShareBytesButNotStructure) {
  TensorDict a = MakeSteps(2);
  a.Lock();
  TensorDict b = a;
  EXPECT_FALSE(b.is_locked());
  RILL_ASSERT_OK(b.Set("next/new", Iota<float>({2})));
  EXPECT_FALSE(a.Contains("next/new"));
  b.Find("action")->data<int64_t>()[0] = 77;
  EXPECT_EQ(a.Find("action")->data<int64_t>()[0], 77);
  b = b.FindDict("next")[0];  // Out of itself.
  EXPECT_THAT(b, HasKeys("reward", "done", "new"));
}

TEST(TensorDictTest, MovesKeepEntries) {
  TensorDict a = MakeSteps(2);
  const TensorDict b = std::move(a);
  EXPECT_THAT(b, BitEqualTo(MakeSteps(2)));
}

TEST(TensorDictTest, NestedDictionariesMayHaveLongerBatchShapes) {
  TensorDict nested({2, 3});
  RILL_ASSERT_OK(nested.Set("x", Iota<float>({2, 3})));
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("n", nested));
  EXPECT_THAT(dict.Set("n/y", Iota<float>({2})),
              IsInvalidArgument("batch shape [2, 3]"));
  EXPECT_THAT(dict.Set("m", TensorDict({3})),
              IsInvalidArgument("batch shape of \"m\": got [3]"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict out, dict.GetDict("n"));
  EXPECT_EQ(out.batch_shape(), Shape({2, 3}));
}

TEST(TensorDictTest, Delete) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Delete("next/reward"));
  EXPECT_THAT(dict, HasKeys("observation", "action", "next/done"));
  RILL_ASSERT_OK(dict.Delete("next"));
  EXPECT_THAT(dict, HasKeys("observation", "action"));
  EXPECT_THAT(dict.Delete("next"), IsNotFound("\"observation\""));
  dict.Lock();
  EXPECT_THAT(dict.Delete("action"), IsFailedPrecondition());
  dict.Unlock();
  RILL_EXPECT_OK(dict.Delete("action"));
}

TEST(TensorDictTest, RenameKeepsItsPlaceOnOneLevel) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Rename("observation", "pixels"));
  EXPECT_THAT(dict.Keys(), ElementsAre("pixels", "action", "next"));
  RILL_ASSERT_OK(dict.Rename("next/reward", "next/r"));
  RILL_ASSERT_OK(dict.Rename("action", "next/action"));
  EXPECT_THAT(dict.LeafKeys(),
              ElementsAre("pixels", "next/r", "next/done", "next/action"));
  RILL_ASSERT_OK(dict.Rename("pixels", "pixels"));
  RILL_ASSERT_OK(dict.Rename("pixels", "pixels/raw"));
  EXPECT_TRUE(dict.Contains("pixels/raw"));
  RILL_ASSERT_OK(dict.Rename("next/r", "next/done"));  // Replaces.
  EXPECT_THAT(dict.Get("next/done"),
              IsOkAndHolds(TensorIs(DType::kFloat32, {2, 1})));
}

TEST(TensorDictTest, RefusedRenameChangesNothing) {
  TensorDict dict = MakeSteps(2);
  EXPECT_THAT(dict.Rename("x", "y"), IsNotFound());
  EXPECT_THAT(dict.Rename("action", "observation/x"), IsInvalidArgument());
  EXPECT_THAT(dict.Rename("action", "a//b"), IsInvalidArgument());
  dict.Lock();
  EXPECT_THAT(dict.Rename("action", "a"), IsFailedPrecondition());
  EXPECT_THAT(dict, BitEqualTo(MakeSteps(2)));
}

// TorchRL's split_keys is a Select for each set and an Exclude of all of them,
// its flatten_keys a Rename.
TEST(TensorDictTest, D3SelectExcludeSplitAndFlattenNestedKeys) {
  TensorDict dict({2});
  for (const absl::string_view key : {"a", "n/b", "n/c"}) {
    RILL_ASSERT_OK(dict.Set(key, Iota<float>({2})));
  }
  EXPECT_THAT(*dict.Select({"n/b"}), HasKeys("n/b"));
  EXPECT_THAT(*dict.Select({"a"}), HasKeys("a"));
  EXPECT_THAT(*dict.Exclude({"n/b"}), HasKeys("a", "n/c"));
  EXPECT_THAT(*dict.Exclude({"n/b", "a"}), HasKeys("n/c"));
  const std::byte* const bytes = dict.Find("n/b")->raw_data();
  RILL_ASSERT_OK(dict.Rename("n/b", "n.b"));
  EXPECT_THAT(dict, HasKeys("a", "n/c", "n.b"));
  EXPECT_EQ(dict.Find("n.b")->raw_data(), bytes);
}

TEST(TensorDictTest, RefusedRenameOverAnEntryChangesNothing) {
  TensorDict dict = MakeSteps(2);
  const TensorDict before = dict;
  TensorDict wide({2, 3});
  RILL_ASSERT_OK(wide.Set("x", Iota<float>({2, 3})));
  RILL_ASSERT_OK(wide.Set("deep/y", Iota<float>({2, 3})));
  RILL_ASSERT_OK(dict.Set("wide", wide));
  EXPECT_THAT(dict.Rename("action", "wide/x"), IsInvalidArgument("\"wide/x\""));
  EXPECT_THAT(dict.Rename("next", "wide/deep"),
              IsInvalidArgument("\"wide/deep\""));
  EXPECT_THAT(dict.GetDict("wide"), IsOkAndHolds(BitEqualTo(wide)));
  EXPECT_THAT(dict, HasKeys("observation", "action", "next/reward", "next/done",
                            "wide/x", "wide/deep/y"));
  RILL_ASSERT_OK(dict.Delete("wide"));
  EXPECT_THAT(dict, BitEqualTo(before));
}

TEST(TensorDictTest, RenameOverADictionary) {
  TensorDict dict = MakeSteps(2);
  const Tensor reward = *dict.Get("next/reward");
  RILL_ASSERT_OK(dict.Rename("next/reward", "next"));  // Around itself.
  EXPECT_THAT(dict, HasKeys("observation", "action", "next"));
  EXPECT_THAT(dict.Get("next"), IsOkAndHolds(BitEqualTo(reward)));
  dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Rename("action", "next"));
  EXPECT_THAT(dict, HasKeys("observation", "next"));
  // The dictionary that was there is made again, empty.
  RILL_ASSERT_OK(dict.Set("action/x", reward));
  EXPECT_THAT(dict, HasKeys("observation", "next", "action/x"));
}

TEST(TensorDictTest, DeletedDictionaryComesBackAsANewOne) {
  TensorDict dict({2});
  Tensor leaf = Iota<float>({2, 3});
  TensorDict nested({2, 3});
  RILL_ASSERT_OK(nested.SetDimNames({"lanes", "time"}));
  RILL_ASSERT_OK(nested.Set("deep/leaf", leaf));
  RILL_ASSERT_OK(dict.Set("nested", nested));
  nested = TensorDict();
  RILL_ASSERT_OK(dict.Delete("nested"));
  EXPECT_EQ(leaf.buffer().use_count(), 1);  // No tensor is kept.
  EXPECT_TRUE(dict.empty());
  RILL_ASSERT_OK(dict.Set("nested/deep/other", Iota<float>({2})));
  EXPECT_THAT(dict, HasKeys("nested/deep/other"));
  for (const char* key : {"nested", "nested/deep"}) {
    EXPECT_EQ(dict.FindDict(key)->batch_shape(), Shape({2}));
    EXPECT_TRUE(dict.FindDict(key)->dim_names().empty());
  }
}

TEST(TensorDictTest, ManyKeysThatComeAndGo) {
  TensorDict dict;
  for (int i = 0; i < 100; ++i) {
    const std::string key = absl::StrCat("a_key_with_a_long_name_", i);
    RILL_ASSERT_OK(dict.Set(key, Iota<float>({1})));
    RILL_ASSERT_OK(dict.Set(key + "_too/x", Iota<float>({1})));
    RILL_ASSERT_OK(dict.Delete(key));
    RILL_ASSERT_OK(dict.Delete(key + "_too"));
    RILL_ASSERT_OK(dict.Set("a_key_with_a_long_name_0", Iota<float>({1})));
    EXPECT_THAT(dict, HasKeys("a_key_with_a_long_name_0"));
    RILL_ASSERT_OK(dict.Delete("a_key_with_a_long_name_0"));
  }
}

TEST(TensorDictTest, DeleteIfAsksInnerEntriesFirst) {
  TensorDict dict = MakeSteps(2);
  RILL_ASSERT_OK(dict.Set("info/deep/x", Iota<float>({2})));
  RILL_ASSERT_OK(dict.Set("info/name", NonTensor{"1"}));
  RILL_ASSERT_OK(dict.Set("last", Iota<float>({2})));
  std::vector<std::string> asked;
  RILL_ASSERT_OK(
      dict.DeleteIf([&](absl::string_view key, const TensorDict* nested) {
        asked.emplace_back(key);
        return nested == nullptr ? key != "action" && key != "last"
                                 : nested->empty();
      }));
  EXPECT_THAT(asked, ElementsAre("observation", "action", "next/reward",
                                 "next/done", "next", "info/deep/x",
                                 "info/deep", "info/name", "info", "last"));
  EXPECT_THAT(dict, HasKeys("action", "last"));
  dict.Lock();
  EXPECT_THAT(dict.DeleteIf([](auto...) { return true; }),
              IsFailedPrecondition());
}

TEST(TensorDictTest, UpdateMergesNestedEntries) {
  TensorDict dict = MakeSteps(2);
  TensorDict more({2});
  RILL_ASSERT_OK(more.Set("next/reward", Iota<double>({2})));
  RILL_ASSERT_OK(more.Set("extra/x", Iota<float>({2})));
  RILL_ASSERT_OK(more.Set("name", NonTensor{"1"}));
  RILL_ASSERT_OK(dict.Update(more));
  EXPECT_THAT(dict, HasKeys("observation", "action", "next/reward", "next/done",
                            "extra/x"));
  EXPECT_THAT(dict.Get("next/reward"),
              IsOkAndHolds(TensorIs(DType::kFloat64, {2})));
  EXPECT_TRUE(dict.Contains("name"));
  RILL_ASSERT_OK(dict.Update(dict));
}

TEST(TensorDictTest, RefusedUpdateChangesNothing) {
  TensorDict dict = MakeSteps(2);
  TensorDict more;
  RILL_ASSERT_OK(more.Set("a", Iota<float>({2})));
  RILL_ASSERT_OK(more.Set("b", Iota<float>({3})));
  EXPECT_THAT(dict.Update(more), IsInvalidArgument("\"b\""));
  EXPECT_THAT(dict, BitEqualTo(MakeSteps(2)));
  dict.Lock();
  EXPECT_THAT(dict.Update(TensorDict()), IsFailedPrecondition());
}

TEST(TensorDictTest, CopyFromFillsLeavesInPlace) {
  TensorDict dict = MakeSteps(2);
  const Tensor action = *dict.Get("action");
  dict.Lock();  // Bytes may change.
  TensorDict other = MakeSteps(2, /*first=*/5);
  RILL_ASSERT_OK(other.Delete("observation"));
  RILL_ASSERT_OK(dict.CopyFrom(other));
  EXPECT_THAT(action, TensorElementsAre<int64_t>(5, 6));
  EXPECT_THAT(dict.Get("observation"),
              IsOkAndHolds(BitEqualTo(*MakeSteps(2).Get("observation"))));
}

TEST(TensorDictTest, RefusedCopyFromCopiesNothing) {
  TensorDict dict = MakeSteps(2);
  TensorDict other = MakeSteps(2, /*first=*/5);
  RILL_ASSERT_OK(other.Set("next/done", Iota<float>({2, 1})));
  EXPECT_THAT(dict.CopyFrom(other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("float32[2, 1], want bool[2, 1]"),
                             HasSubstr("at key \"next/done\""))));
  RILL_ASSERT_OK(other.Delete("next/done"));
  RILL_ASSERT_OK(other.Set("new", Iota<float>({2})));
  EXPECT_THAT(dict.CopyFrom(other), IsNotFound("\"new\""));
  EXPECT_THAT(dict, BitEqualTo(MakeSteps(2)));
}

}  // namespace
}  // namespace rill
