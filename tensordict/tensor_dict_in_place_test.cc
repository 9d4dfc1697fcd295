// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

// Every kind of entry; numbers count up from `first`.
TensorDict AllKinds(int64_t first = 0) {
  TensorDict dict = MakeSteps(2, first);
  std::vector<TensorDict> members = {*MakeSteps(4, first).Index(0),
                                     *MakeSteps(4, first).Index(3)};
  RILL_EXPECT_OK(dict.Set("lazy", *LazyStack::Create(members)));
  const Tensor three = Iota<float>({3});
  three.data<float>()[2] = static_cast<float>(first);
  RILL_EXPECT_OK(
      dict.Set("ragged", *RaggedTensor::FromRows({Iota<float>({1}), three})));
  RILL_EXPECT_OK(dict.Set(
      "notes", *NonTensorStack::Create({2}, {"0", std::to_string(first)})));
  RILL_EXPECT_OK(dict.Set("note", NonTensor{std::to_string(first)}));
  return dict;
}

TEST(TensorDictInPlaceTest, SetInPlaceWritesBytes) {
  const TensorDict dict = AllKinds();
  const Tensor action = *dict.Get("action");
  RILL_ASSERT_OK(dict.SetInPlace("action", MakeTensor<int64_t>({7, 8}, {2})));
  EXPECT_THAT(action, TensorElementsAre<int64_t>(7, 8));
  RILL_ASSERT_OK(
      dict.SetInPlace("lazy/action", MakeTensor<int64_t>({5, 6}, {2})));
  EXPECT_THAT(dict.Get("lazy/action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(5, 6)));
  EXPECT_THAT(dict.SetInPlace("x", action), IsNotFound("\"action\""));
  EXPECT_THAT(dict.SetInPlace("lazy/x", action), IsNotFound());
  EXPECT_THAT(dict.SetInPlace("next", action), StatusIs(kInvalid));
  EXPECT_THAT(dict.SetInPlace("action", Iota<float>({2})),
              StatusIs(kInvalid, HasSubstr("at key \"action\"")));
  EXPECT_THAT(dict.SetInPlace("lazy/action", Iota<int64_t>({3})),
              StatusIs(kInvalid));
  EXPECT_THAT(action, TensorElementsAre<int64_t>(7, 8));
}

TEST(TensorDictInPlaceTest, SetAtWritesOneRow) {
  TensorDict dict = AllKinds();
  const Tensor nine = MakeTensor<int64_t>({9}, {});
  RILL_ASSERT_OK(dict.SetAt("action", 1, nine));
  EXPECT_THAT(dict.Get("action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 9)));
  RILL_ASSERT_OK(dict.SetAt("lazy/action", 0, nine));
  EXPECT_THAT(dict.Get("lazy/action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(9, 3)));
  RILL_ASSERT_OK(
      dict.Set("side", *LazyStack::Create({MakeSteps(2), MakeSteps(2, 4)}, 1)));
  RILL_ASSERT_OK(
      dict.SetAt("side/action", 1, MakeTensor<int64_t>({7, 8}, {2})));
  EXPECT_THAT(dict.Get("side/action"),
              IsOkAndHolds(TensorElementsAre<int64_t>(0, 4, 7, 8)));
  EXPECT_THAT(dict.SetAt("action", 2, nine), IsOutOfRange());
  EXPECT_THAT(dict.SetAt("lazy/action", 2, nine), IsOutOfRange());
  EXPECT_THAT(dict.SetAt("x", 0, nine), IsNotFound());
  EXPECT_THAT(dict.Index(0)->SetAt("observation", 0, nine), StatusIs(kInvalid));
}

TEST(TensorDictInPlaceTest, CopyFromFillsEveryKind) {
  TensorDict dict = AllKinds();
  const Tensor action = *dict.Get("action");
  const Tensor words = dict.GetRagged("ragged")->values();
  dict.Lock();
  RILL_ASSERT_OK(dict.CopyFrom(AllKinds(5)));
  EXPECT_THAT(dict, BitEqualTo(AllKinds(5)));
  EXPECT_THAT(action, TensorElementsAre<int64_t>(5, 6));
  EXPECT_THAT(words, TensorElementsAre<float>(0, 0, 1, 5));
}

TEST(TensorDictInPlaceTest, RefusedCopyFromCopiesNothing) {
  const auto refuses = [](absl::string_view key, const auto& value,
                          absl::StatusCode code, const std::string& message) {
    TensorDict dict = AllKinds();
    TensorDict other = AllKinds(5);
    RILL_ASSERT_OK(other.Set(key, value));
    EXPECT_THAT(dict.CopyFrom(other), StatusIs(code, HasSubstr(message)));
    EXPECT_THAT(dict, BitEqualTo(AllKinds()));
  };
  refuses("next/new", NonTensor{"1"}, kNotFound, "no key \"next/new\"");
  refuses("note", Iota<float>({2}), kInvalid,
          "got a tensor, want a non-tensor value; at key \"note\"");
  refuses("lazy", *LazyStack::Create({MakeSteps(2), MakeSteps(2)}, 1), kInvalid,
          "at key \"lazy\"");
  refuses("lazy/note", Iota<float>({2}), kNotFound, "\"lazy/[0]/note\"");
  refuses("lazy/action", Iota<float>({2}), kInvalid,
          "at key \"lazy/[0]/action\"");
  refuses("ragged",
          *RaggedTensor::FromRows({Iota<float>({2}), Iota<float>({2})}),
          kInvalid, "shapes of rows");
}

TEST(TensorDictInPlaceTest, SetDefaultPopAndGetOr) {
  TensorDict dict = MakeSteps(2);
  const Tensor fresh = Iota<float>({2});
  EXPECT_THAT(dict.GetOr("new", fresh), IsOkAndHolds(BitEqualTo(fresh)));
  EXPECT_FALSE(dict.Contains("new"));
  EXPECT_THAT(dict.GetOr("next", fresh), StatusIs(kInvalid));
  EXPECT_THAT(dict.GetOr("a//b", fresh), StatusIs(kInvalid));
  EXPECT_THAT(dict.SetDefault("next/new", fresh),
              IsOkAndHolds(BitEqualTo(fresh)));
  EXPECT_THAT(dict.SetDefault("next/new", Iota<int32_t>({2})),
              IsOkAndHolds(BitEqualTo(fresh)));
  EXPECT_THAT(dict.SetDefault("bad", Iota<float>({3})), StatusIs(kInvalid));
  EXPECT_THAT(dict.SetDefault("next", fresh), StatusIs(kInvalid));
  EXPECT_THAT(dict.Pop("next/new"), IsOkAndHolds(BitEqualTo(fresh)));
  EXPECT_THAT(dict.Pop("next/new"), IsNotFound());
  EXPECT_THAT(dict.Pop("next"), StatusIs(kInvalid));
  EXPECT_THAT(dict, BitEqualTo(MakeSteps(2)));
}

TEST(TensorDictInPlaceTest, EntriesAndTheirKinds) {
  const TensorDict dict = AllKinds();
  std::vector<std::pair<std::string, EntryKind>> entries;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    entries.emplace_back(key, kind);
    EXPECT_EQ(dict.Kind(key), kind);
  });
  EXPECT_THAT(entries, ElementsAre(Pair("observation", EntryKind::kTensor),
                                   Pair("action", EntryKind::kTensor),
                                   Pair("next", EntryKind::kDict),
                                   Pair("lazy", EntryKind::kLazyStack),
                                   Pair("ragged", EntryKind::kRagged),
                                   Pair("notes", EntryKind::kNonTensorStack),
                                   Pair("note", EntryKind::kNonTensor)));
  EXPECT_EQ(dict.Kind("x"), std::nullopt);
  EXPECT_EQ(dict.Kind("next/done"), EntryKind::kTensor);
  EXPECT_EQ(dict.EmptyLike().batch_shape(), Shape({2}));
  EXPECT_TRUE(dict.EmptyLike().empty());
  EXPECT_THAT(dict.EmptyLike(true).Keys(), ElementsAre("next"));
}

TEST(TensorDictInPlaceTest, ToDTypeCastsFloatingLeaves) {
  const TensorDict dict = AllKinds();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict cast,
                            dict.ToDType(DType::kFloat64));
  EXPECT_EQ(cast.Find("observation")->dtype(), DType::kFloat64);
  EXPECT_EQ(cast.Find("action")->raw_data(), dict.Find("action")->raw_data());
  EXPECT_EQ(cast.Find("next/done")->dtype(), DType::kBool);
  EXPECT_EQ(cast.GetRagged("ragged")->dtype(), DType::kFloat64);
  EXPECT_EQ(cast.Get("lazy/observation")->dtype(), DType::kFloat64);
  EXPECT_THAT(cast.ToDType(DType::kFloat32), IsOkAndHolds(BitEqualTo(dict)));
  EXPECT_THAT(dict.ToDType(DType::kInt64), StatusIs(kInvalid));
  EXPECT_TRUE(dict.AllClose(AllKinds()));
  EXPECT_FALSE(dict.AllClose(AllKinds(5)));
  EXPECT_FALSE(dict.AllClose(AllKinds(), -1));
}

TEST(TensorDictInPlaceTest, EveryKindMovesAndIsPinned) {
  FakeBackend::Install({});
  const TensorDict dict = AllKinds();
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict moved, dict.To(Device::Fake()));
  EXPECT_EQ(moved.GetRagged("ragged")->values().device(), Device::Fake());
  EXPECT_EQ(moved.Get("lazy/action")->device(), Device::Fake());
  EXPECT_THAT(moved.To(Device::Cpu()), IsOkAndHolds(BitEqualTo(dict)));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict pinned, dict.Pin(Device::Fake()));
  EXPECT_TRUE(pinned.is_pinned());
  RILL_ASSERT_OK(pinned.Set("ragged", *dict.GetRagged("ragged")));
  EXPECT_FALSE(pinned.is_pinned());
  EXPECT_THAT(dict.Clone(), IsOkAndHolds(BitEqualTo(dict)));
}

}  // namespace
}  // namespace rill
