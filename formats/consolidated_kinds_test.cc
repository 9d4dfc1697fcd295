// SPDX-License-Identifier: Apache-2.0
// Stacks, jagged tensors and values of rows in consolidated files.
#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/test_dicts.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::AppendLittle;
using formats_internal::Values;
using formats_internal::WriteConsolidated;
using formats_internal::WriteInPlace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = LoadMemmapOptions::Mode;

// TorchRL's files: a lazy stack; a dictionary of every kind; one of what is
// saved again with other bytes, or not loaded.
constexpr char kStack[] = "formats/testdata/tensordict/K.bin";
constexpr char kKinds[] = "formats/testdata/tensordict/L.bin";
constexpr char kOthers[] = "formats/testdata/tensordict/M.bin";

// A dictionary of batch [2] around `leaves`, with `more` members behind.
std::string Dict(absl::string_view leaves, absl::string_view more = "") {
  return absl::StrCat(
      R"({"cls":"TensorDict","non_tensors":{},"leaves":{)", leaves,
      R"(},"cls_metadata":{"device":null,"names":[null],"batch_size":[2],)",
      R"("is_locked":false})", more, "}");
}

std::string Stack(absl::string_view cls, absl::string_view values,
                  absl::string_view members, int dim = 0) {
  return absl::StrCat(R"({"cls":")", cls, R"(","non_tensors":{)", values,
                      R"(},"leaves":{},"cls_metadata":{"stack_dim":)", dim,
                      R"(,"stack_dim_name":null,"is_locked":false})", members,
                      "}");
}

TEST(ConsolidatedKindsTest, LoadsThePeersLazyStackAndSavesItsBytes) {
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LoadConsolidatedLazyStack(kStack));
  EXPECT_EQ(stack.batch_shape(), Shape({2}));
  EXPECT_FALSE(stack.is_locked());
  EXPECT_THAT(stack.Keys(), ElementsAre("x", "in"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict second, stack.Member(1));
  EXPECT_THAT(second.Keys(), ElementsAre("x", "in", "more", "note"));
  EXPECT_THAT(second.Flat<float>("x"), IsOkAndHolds(ElementsAre(0, 1)));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor id, stack.Get("in/id"));
  EXPECT_THAT(id.Flat<int16_t>(), IsOkAndHolds(ElementsAre(1, 2)));
  const std::string path = FreshPath("again.bin");
  RILL_ASSERT_OK(SaveConsolidatedLazyStack(stack, path));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string want, ReadFile(kStack));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(want));
}

TEST(ConsolidatedKindsTest, LoadsThePeersKindsAndSavesTheirBytes) {
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                              LoadConsolidated(kKinds, {.mode = mode}));
    EXPECT_TRUE(dict.is_locked());
    RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack names,
                              dict.GetNonTensorStack("names"));
    EXPECT_THAT(names.values(), ElementsAre("\"left\"", R"({"a":[1,null]})"));
    RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack grid,
                              dict.GetNonTensorStack("grid/names"));
    EXPECT_EQ(grid.shape(), Shape({2, 3}));
    EXPECT_THAT(grid.values(), ElementsAre("\"a\"", "\"b\"", "\"c\"", "\"d\"",
                                           "\"e\"", "\"f\""));
    RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows, dict.GetRagged("rows"));
    EXPECT_THAT(rows.values().Flat<int32_t>(),
                IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)));
    EXPECT_THAT(rows.shapes().Flat<int64_t>(),
                IsOkAndHolds(ElementsAre(2, 2, 3, 2)));
    RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor columns,
                              dict.GetRagged("columns"));
    EXPECT_THAT(columns.values().Flat<int64_t>(),
                IsOkAndHolds(ElementsAre(0, 1, 2, 4, 3, 5)));
    EXPECT_THAT(columns.shapes().Flat<int64_t>(),
                IsOkAndHolds(ElementsAre(2, 1, 2, 2)));
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack episodes,
                              dict.GetLazyStack("episodes"));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict last, episodes.Member(1));
    EXPECT_THAT(last.Flat<float>("x"), IsOkAndHolds(ElementsAre(0, 1, 2)));
    const std::string path = FreshPath("again.bin");
    RILL_ASSERT_OK(SaveConsolidated(dict, path));
    RILL_ASSERT_OK_AND_ASSIGN(const std::string want, ReadFile(kKinds));
    EXPECT_THAT(ReadFile(path), IsOkAndHolds(want));
  }
}

TEST(ConsolidatedKindsTest, WhatHasNoPlaceHereIsRefusedByNameAndTheRestLoads) {
  EXPECT_THAT(LoadConsolidated(kOthers), IsInvalidArgument("\"deep\""));
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadConsolidated(kOthers, {.refused = &refused}));
  EXPECT_THAT(dict.Keys(), ElementsAre("x", "gaps", "across", "grid"));
  ASSERT_EQ(refused.size(), 2);
  EXPECT_EQ(refused[0].key, "deep");
  EXPECT_THAT(refused[0].reason, HasSubstr("[2, 3]"));
  EXPECT_EQ(refused[1].key, "nested");
  EXPECT_THAT(refused[1].reason, HasSubstr("whose member 0 is a stack"));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor gaps, dict.GetRagged("gaps"));
  EXPECT_THAT(gaps.values().Flat<float>(), IsOkAndHolds(ElementsAre(0, 3, 4)));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack across,
                            dict.GetLazyStack("across"));
  EXPECT_EQ(across.batch_shape(), Shape({2, 2}));
  EXPECT_EQ(across.stack_dim(), 1);
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack same,
                            dict.GetNonTensorStack("grid/same"));
  EXPECT_THAT(same.values(), ElementsAre("\"a\"", "\"a\"", "\"a\"", "\"b\"",
                                         "\"b\"", "\"b\""));
}

TEST(ConsolidatedKindsTest, RowsApartAreNotMappedWritable) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(kOthers));
  const std::string path = FreshPath("apart.bin");
  WriteInPlace(path, bytes);
  EXPECT_THAT(LoadConsolidated(path, {.mode = Mode::kMapShared}),
              IsInvalidArgument("one behind the other"));
}

TensorDict Episode(int64_t steps) {
  TensorDict dict;
  RILL_EXPECT_OK(dict.Set(
      "next/x", Values<float>(std::vector<float>(steps, 0.5F), {steps})));
  RILL_EXPECT_OK(dict.Set("u8", Values<uint8_t>({7}, {1})));
  RILL_EXPECT_OK(dict.Set("note", NonTensor{absl::StrCat(steps)}));
  return dict;
}

TEST(ConsolidatedKindsTest, LazyStackExample) {
  const std::string path = FreshPath("episodes.bin");
  std::vector<TensorDict> members;
  for (int64_t n = 0; n < 12; ++n) members.push_back(Episode(n));
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack episodes,
                            LazyStack::Create(std::move(members)));
  episodes.Lock();
  RILL_ASSERT_OK(SaveConsolidatedLazyStack(episodes, path));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kMapShared, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const LazyStack loaded,
                              LoadConsolidatedLazyStack(path, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(episodes));
    EXPECT_TRUE(loaded.is_locked());
  }
  EXPECT_THAT(LoadConsolidated(path),
              IsInvalidArgument("LoadConsolidatedLazyStack"));
  RILL_ASSERT_OK(SaveConsolidated(Episode(1), path));
  EXPECT_THAT(LoadConsolidatedLazyStack(path),
              IsInvalidArgument("LoadConsolidated"));
}

TEST(ConsolidatedKindsTest, RoundTripKeepsEveryKind) {
  const std::string path = FreshPath("kinds.bin");
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("a", Values<uint8_t>({1, 2}, {2})));
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack stack,
                            LazyStack::Create({Episode(2), Episode(3)}));
  RILL_ASSERT_OK(dict.Set("in/episodes", std::move(stack)));
  // Elements of 16 bytes, and deep inside: all tensors lie at multiples of
  // that.
  TensorDict wide;
  RILL_ASSERT_OK(wide.Set("z", Values<std::complex<double>>({{1, 2}}, {1})));
  RILL_ASSERT_OK_AND_ASSIGN(stack, LazyStack::Create({wide, wide}));
  RILL_ASSERT_OK(dict.Set("wide", std::move(stack)));
  RILL_ASSERT_OK_AND_ASSIGN(
      RaggedTensor rows, RaggedTensor::FromRows({Values<int8_t>({1}, {1, 1}),
                                                 Values<int8_t>({}, {0, 1})}));
  RILL_ASSERT_OK(dict.Set("rows", std::move(rows)));
  RILL_ASSERT_OK_AND_ASSIGN(NonTensorStack names,
                            NonTensorStack::Create({2}, {"[1]", "null"}));
  RILL_ASSERT_OK(dict.Set("names", std::move(names)));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kMapShared, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadConsolidated(path, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(dict));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict shared,
                            LoadConsolidated(path, {.mode = Mode::kMapShared}));
  RILL_ASSERT_OK_AND_ASSIGN(rows, shared.GetRagged("rows"));
  rows.values().data<int8_t>()[0] = 9;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, LoadConsolidated(path));
  RILL_ASSERT_OK_AND_ASSIGN(rows, again.GetRagged("rows"));
  EXPECT_EQ(rows.values().data<int8_t>()[0], 9);
}

TEST(ConsolidatedKindsTest, NoRows) {
  const std::string path = FreshPath("none.bin");
  TensorDict dict({0});
  RILL_ASSERT_OK_AND_ASSIGN(RaggedTensor rows,
                            RaggedTensor::Create(Values<float>({}, {0}),
                                                 Values<int64_t>({}, {0, 2})));
  RILL_ASSERT_OK(dict.Set("rows", std::move(rows)));
  RILL_ASSERT_OK_AND_ASSIGN(NonTensorStack none,
                            NonTensorStack::Create({0}, {}));
  RILL_ASSERT_OK(dict.Set("names", std::move(none)));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
}

TEST(ConsolidatedKindsTest, WhatThePeersFileCannotHoldIsRefusedWhenSaved) {
  const std::string path = FreshPath("refused.bin");
  TensorDict dict({2});
  RILL_ASSERT_OK_AND_ASSIGN(
      RaggedTensor rows,
      RaggedTensor::FromRows(
          {Values<float>({1, 2}, {1, 2}), Values<float>({3, 4}, {2, 1})}));
  RILL_ASSERT_OK(dict.Set("rows", std::move(rows)));
  EXPECT_THAT(SaveConsolidated(dict, path), IsInvalidArgument("use SaveTdz"));
  TensorDict many({5000});
  RILL_ASSERT_OK_AND_ASSIGN(NonTensorStack names,
                            NonTensorStack::Filled({5000}, {"1"}));
  RILL_ASSERT_OK(many.Set("names", std::move(names)));
  EXPECT_THAT(SaveConsolidated(many, path), IsInvalidArgument("got 5000"));
  EXPECT_FALSE(PathExists(path));
}

TEST(ConsolidatedKindsTest, StacksAreChecked) {
  const auto load = [](absl::string_view stack) {
    return LoadConsolidated(WriteConsolidated(
        "written.bin", "", Dict("", absl::StrCat(",\"s\":", stack))));
  };
  const std::string member = absl::StrReplaceAll(
      Dict(""),
      {{"[null]", "[]"}, {"\"batch_size\":[2]", "\"batch_size\":[]"}});
  const auto lazy = [&](absl::string_view members, int dim = 0) {
    return load(Stack("LazyStackedTensorDict", "", members, dim));
  };
  const std::string two = absl::StrCat(",\"1\":", member, ",\"0\":", member);
  RILL_EXPECT_OK(lazy(two));
  EXPECT_THAT(lazy(""), IsDataLoss("without members"));
  EXPECT_THAT(lazy(absl::StrCat(",\"1\":", member)), IsDataLoss("member"));
  EXPECT_THAT(lazy(absl::StrCat(",\"00\":", member)), IsDataLoss("member"));
  EXPECT_THAT(lazy(absl::StrCat(two, ",\"x\":", member)), IsDataLoss("member"));
  EXPECT_THAT(lazy(two, 1), IsDataLoss("got 1, want one in [0, 0]"));
  EXPECT_THAT(lazy(two, -1), IsDataLoss("stack_dim"));
  EXPECT_THAT(lazy(two, 9), IsDataLoss("stack_dim"));
  EXPECT_THAT(lazy(absl::StrCat(",\"0\":", member, ",\"1\":", Dict(""))),
              IsDataLoss("batch shape"));
  // Both classes hold values.
  for (const char* cls : {"NonTensorStack", "LazyStackedTensorDict"}) {
    RILL_EXPECT_OK(load(Stack(cls, R"("1":[7,[],null],"0":["a"])", "")));
    EXPECT_THAT(load(Stack(cls, R"("0":[7,[],null])", "")),
                IsInvalidArgument("[1]"));
    EXPECT_THAT(load(Stack(cls, R"("0":[7,[]],"1":[7,[3]])", "")),
                IsDataLoss());
    EXPECT_THAT(
        load(Stack(cls, R"("0":[7,[]])", absl::StrCat(",\"1\":", member))),
        IsInvalidArgument("a value"));
  }
  // A few bytes that ask for eight terabytes.
  EXPECT_THAT(
      load(Stack("NonTensorStack",
                 R"("0":[7,[1000000000000]],"1":[7,[1000000000000]])", "", 1)),
      IsInvalidArgument("values of one stack"));
}

TEST(ConsolidatedKindsTest, JaggedTensorsAreChecked) {
  std::string data(12, '\1');
  data.resize(16);
  for (const int64_t offset : {0, 2, 3}) AppendLittle<int64_t>(offset, &data);
  for (const int64_t length : {1, 1}) AppendLittle<int64_t>(length, &data);
  const auto load = [&](absl::string_view values, absl::string_view offsets,
                        absl::string_view more = "") {
    return LoadConsolidated(WriteConsolidated(
        "written.bin", data,
        Dict(absl::StrCat("\"<NJT_VALUES>j\":", values,
                          ",\"<NJT_OFFSETS>j\":", offsets, more))));
  };
  const std::string v = R"(["torch.int32",[3],0,16,4])";
  const std::string o = R"(["torch.int64",[3],16,40,0,1])";
  const std::string lengths = R"("<NJT_LENGTHS>j":["torch.int64",[2],40,56,0])";
  RILL_EXPECT_OK(load(v, o));
  RILL_EXPECT_OK(load(v, absl::StrReplaceAll(o, {{",0,1]", ",0]"}})));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            load(v, o, absl::StrCat(",", lengths)));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows, dict.GetRagged("j"));
  EXPECT_EQ(rows.values().num_elements(), 2);
  for (const absl::string_view offsets :
       {R"(["torch.int64",[3],16,40,0,0])", R"(["torch.int64",[3],16,40,0,2])",
        R"(["torch.int64",[3],16,40,0,1.0])",
        R"(["torch.float64",[3],16,40,0])",
        R"(["torch.int64",[3,1],16,40,0,1])", R"(["torch.int64",[0],16,16,0])",
        R"(["torch.int64",[3],16,48,0,1])", R"(["torch.int64",[3],0,24,0,1])",
        R"(["torch.int64",[3],24,48,0,1])"}) {
    EXPECT_THAT(load(v, offsets), IsDataLoss()) << offsets;
  }
  EXPECT_THAT(
      load(v, R"(["torch.int64",[2],16,32,0,1])"),
      IsInvalidArgument("jagged tensor"));  // One row, of a batch of two.
  EXPECT_THAT(load(R"(["torch.int32",[2],0,8,0])", o), IsDataLoss("offset 2"));
  EXPECT_THAT(load(R"(["torch.qint8",[3],0,8,5])", o),
              IsInvalidArgument("qint8"));
  EXPECT_THAT(load(v, o, R"(,"<NJT_LENGTHS>j":["torch.int64",[1],40,48,0])"),
              IsDataLoss());
  EXPECT_THAT(LoadConsolidated(WriteConsolidated(
                  "written.bin", data, Dict("\"<NJT_VALUES>j\":" + v))),
              IsDataLoss("<NJT_OFFSETS>"));
  EXPECT_THAT(LoadConsolidated(WriteConsolidated(
                  "written.bin", data, Dict("\"<NJT_OFFSETS>j\":" + o))),
              IsDataLoss("<NJT_VALUES>"));
  EXPECT_THAT(LoadConsolidated(WriteConsolidated("written.bin", data,
                                                 Dict("\"<NJT>j\":" + v))),
              IsDataLoss("<NJT_VALUES>"));
}

}  // namespace
}  // namespace rill
