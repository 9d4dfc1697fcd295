// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/consolidated.h"

#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/test_dicts.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::ExpectEveryFaultIsReturned;
using formats_internal::Sample;
using formats_internal::Values;
using formats_internal::WriteConsolidated;
using formats_internal::WriteInPlace;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = LoadMemmapOptions::Mode;

constexpr char kPeers[] = "formats/testdata/tensordict/J.bin";

std::string Json(absl::string_view leaves, absl::string_view more = "") {
  return absl::StrCat(
      R"({"cls":"TensorDict","non_tensors":{},"leaves":{)", leaves,
      R"(},"cls_metadata":{"device":null,"names":[],"batch_size":[],)",
      R"("is_locked":false})", more, "}");
}

TEST(ConsolidatedTest, Example) {
  const std::string path = FreshPath("example.bin");
  TensorDict steps({2});
  RILL_ASSERT_OK(steps.Set("next/reward", Values<float>({5, 6}, {2, 1})));
  RILL_ASSERT_OK(SaveConsolidated(steps, path));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict loaded, LoadConsolidated(path));
  RILL_EXPECT_OK(loaded.CheckEqual(steps));
}

TEST(ConsolidatedTest, LoadsThePeersFileValueForValue) {
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                              LoadConsolidated(kPeers, {.mode = mode}));
    EXPECT_EQ(dict.batch_shape(), Shape({3}));
    EXPECT_THAT(dict.Keys(), ElementsAre("obs", "next", "u8", "h", "bf", "i64",
                                         "a\\/b c", "a.b"));
    EXPECT_THAT(dict.Flat<float>("obs"),
                IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4, 5)));
    EXPECT_EQ(dict.Find("obs")->shape(), Shape({3, 2}));
    EXPECT_THAT(dict.Flat<bool>("next/done"),
                IsOkAndHolds(ElementsAre(false, false, true)));
    EXPECT_THAT(dict.Flat<double>("next/reward"),
                IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<uint8_t>("u8"), IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<int64_t>("i64"), IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<float>("a\\/b c"),
                IsOkAndHolds(ElementsAre(1, 1, 1)));
    EXPECT_THAT(dict.Flat<float>("a.b"), IsOkAndHolds(ElementsAre(1, 1, 1)));
    EXPECT_EQ(dict.Find("h")->data<Float16>()[2].bits, 0x3C00);
    EXPECT_EQ(dict.Find("bf")->data<BFloat16>()[2].bits, 0x3F80);
  }
}

TEST(ConsolidatedTest, SavingThePeersFileGivesItsBytes) {
  const std::string path = FreshPath("again.bin");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadConsolidated(kPeers));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string want, ReadFile(kPeers));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(want));
}

TEST(ConsolidatedTest, RoundTripKeepsEverything) {
  const std::string path = FreshPath("round.bin");
  TensorDict dict = Sample();
  dict.Lock();
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kMapShared, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadConsolidated(path, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(dict));
    EXPECT_TRUE(loaded.is_locked());
    RILL_ASSERT_OK_AND_ASSIGN(const NonTensor note,
                              loaded.GetNonTensor("note"));
    EXPECT_EQ(note.json, R"(["x",{"y":null}])");
  }
  const TensorDict nothing;
  RILL_ASSERT_OK(SaveConsolidated(nothing, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  EXPECT_TRUE(loaded.empty());
}

TEST(ConsolidatedTest, NamesOfDimensionsAreKept) {
  const std::string path = FreshPath("named.bin");
  TensorDict dict({2, 1, 1});
  RILL_ASSERT_OK(dict.Set("x", Values<float>({5, 6}, {2, 1, 1})));
  RILL_ASSERT_OK(dict.SetDimNames({"batch", "", "time"}));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  EXPECT_THAT(ReadFile(path),
              IsOkAndHolds(HasSubstr(R"("names":["batch",null,"time"])")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  EXPECT_THAT(loaded.dim_names(), ElementsAre("batch", "", "time"));
  const auto load = [](absl::string_view names) {
    return LoadConsolidated(WriteConsolidated(
        "names.bin", "",
        absl::StrReplaceAll(
            Json(""), {{"\"names\":[]", absl::StrCat("\"names\":", names)},
                       {"\"batch_size\":[]", "\"batch_size\":[1,1]"}})));
  };
  RILL_EXPECT_OK(load("[null,\"t\"]"));
  RILL_EXPECT_OK(load("null"));
  EXPECT_THAT(load("[\"t\",\"t\"]"), IsDataLoss("names"));
  EXPECT_THAT(load("[\"t\"]"), IsDataLoss("names"));
}

TEST(ConsolidatedTest, StridedLeavesAreWrittenRowMajor) {
  const std::string path = FreshPath("strided.bin");
  const Tensor tall = Values<float>({0, 1, 2, 3, 4, 5}, {3, 2});
  const std::vector<int> dims = {1, 0};
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide, tall.Permute(dims));
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("x", wide));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  EXPECT_THAT(loaded.Flat<float>("x"),
              IsOkAndHolds(ElementsAre(0, 2, 4, 1, 3, 5)));
}

// TorchRL cannot view 16-byte elements at a multiple of 8, so none is there.
TEST(ConsolidatedTest, WideElementsLieAtMultiplesOfTheirSize) {
  const std::string path = FreshPath("wide.bin");
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set("a", Values<uint8_t>({1}, {1})));
  RILL_ASSERT_OK(dict.Set("z", Values<std::complex<double>>({{1, 2}}, {1})));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
  EXPECT_THAT(bytes, HasSubstr(R"("a":["torch.uint8",[1],0,16,15])"));
  EXPECT_THAT(bytes, HasSubstr(R"("z":["torch.complex128",[1],16,32,0])"));
}

TEST(ConsolidatedTest, LeavesAreViewsOfOneMapping) {
  const std::string path = FreshPath("views.bin");
  RILL_ASSERT_OK(SaveConsolidated(Sample(), path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict read, LoadConsolidated(path));
  EXPECT_EQ(read.Find("obs")->memory_kind(), MemoryKind::kMappedFile);
  EXPECT_FALSE(read.Find("obs")->is_writable());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict shared,
                            LoadConsolidated(path, {.mode = Mode::kMapShared}));
  shared.Find("obs")->data<float>()[3] = 42;
  EXPECT_EQ(read.Find("obs")->data<float>()[3], 42);
}

TEST(ConsolidatedTest, LeavesThatAreNotAlignedAreCopied) {
  const double value = 2.5;
  const std::string data =
      "." + std::string(reinterpret_cast<const char*>(&value), 8);
  const std::string path = WriteConsolidated(
      "odd.bin", data, Json(R"("x":["torch.float64",[],1,9,0])"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadConsolidated(path));
  EXPECT_EQ(dict.Find("x")->data<double>()[0], 2.5);
  EXPECT_THAT(LoadConsolidated(path, {.mode = Mode::kMapShared}),
              IsInvalidArgument("multiple of 8"));
}

// --- What may be wrong -------------------------------------------------------

TEST(ConsolidatedTest, NamesThatMeanSomethingThereAreRefusedWhenSaved) {
  for (const absl::string_view key :
       {"cls/x", "leaves/x", "non_tensors/x", "cls_metadata/x", "size/x",
        "a/cls/x", "<NJT>x", "next/<NJT_OFFSETS>x", "\xFF"}) {
    TensorDict dict({1});
    RILL_ASSERT_OK(dict.Set(key, Values<float>({1}, {1})));
    EXPECT_THAT(SaveConsolidated(dict, FreshPath("names.bin")),
                IsInvalidArgument("rename the entry"))
        << key;
  }
  TensorDict dict({1});  // As leaves these are like any other.
  RILL_ASSERT_OK(dict.Set("cls", Values<float>({1}, {1})));
  RILL_ASSERT_OK(dict.Set("size", Values<float>({2}, {1})));
  const std::string path = FreshPath("names.bin");
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
}

TEST(ConsolidatedTest, WhatCouldNotBeLoadedIsNotSaved) {
  const std::string path = FreshPath("limits.bin");
  TensorDict dict;
  RILL_ASSERT_OK(
      dict.Set("v", NonTensor{std::string(60, '[') + std::string(60, ']')}));
  RILL_ASSERT_OK(SaveConsolidated(dict, path));
  RILL_ASSERT_OK(
      dict.Set("d/v", NonTensor{std::string(62, '[') + std::string(62, ']')}));
  EXPECT_THAT(SaveConsolidated(dict, path), IsInvalidArgument("depth"));
  RILL_ASSERT_OK(dict.Set("d/v", NonTensor{"{broken"}));
  EXPECT_THAT(SaveConsolidated(dict, path), IsInvalidArgument("value"));
  std::string key = "x";
  for (int i = 0; i < 40; ++i) key = absl::StrCat("d/", key);
  TensorDict deep({1});
  RILL_ASSERT_OK(deep.Set(key, Values<float>({1}, {1})));
  EXPECT_THAT(SaveConsolidated(deep, path), IsInvalidArgument("depth"));
  RILL_EXPECT_OK(LoadConsolidated(path));
}

TEST(ConsolidatedTest, AFailedSaveLeavesTheOldFile) {
  const std::string folder = FreshPath("failed");
  RILL_ASSERT_OK(CreateDirectories(folder));
  const std::string path = JoinPath(folder, "x.bin");
  RILL_ASSERT_OK(SaveConsolidated(Sample(), path));
  ExpectEveryFaultIsReturned(
      [&] { return SaveConsolidated(TensorDict(), path); });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadConsolidated(path));
  RILL_EXPECT_OK(loaded.CheckEqual(Sample()));
  EXPECT_THAT(ListDirectory(folder), IsOkAndHolds(ElementsAre("x.bin")));
}

TEST(ConsolidatedTest, WhatIsNoSuchFileIsToldSo) {
  EXPECT_THAT(LoadConsolidated(FreshPath("nowhere.bin")), IsNotFound());
  const std::string path = FreshPath("other.bin");
  WriteInPlace(path, "");
  EXPECT_THAT(LoadConsolidated(path), IsDataLoss("got 0 bytes"));
  WriteInPlace(path, "some text and nothing else");
  EXPECT_THAT(LoadConsolidated(path), IsDataLoss("length of the JSON"));
  EXPECT_THAT(LoadConsolidated("formats/testdata/tensordict/I.tdz"),
              IsDataLoss());
}

TEST(ConsolidatedTest, EveryTruncationIsDataLoss) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(kPeers));
  const std::string path = FreshPath("short.bin");
  for (size_t size = 0; size < whole.size(); size += 3) {
    WriteInPlace(path, absl::string_view(whole).substr(0, size));
    EXPECT_THAT(LoadConsolidated(path), IsDataLoss()) << size;
    WriteInPlace(path, absl::string_view(whole).substr(size + 1));
    EXPECT_THAT(LoadConsolidated(path), IsDataLoss()) << size;
  }
}

TEST(ConsolidatedTest, OffsetsAreChecked) {
  const std::string data(16, 'x');
  const auto load = [&](absl::string_view leaves, absl::string_view more = "") {
    return LoadConsolidated(
        WriteConsolidated("offsets.bin", data, Json(leaves, more)));
  };
  RILL_EXPECT_OK(load(R"("a":["torch.uint8",[3],0,8,5])"));
  RILL_EXPECT_OK(load(R"("a":["torch.uint8",[0],16,16,0])"));
  for (const absl::string_view leaf :
       {R"("a":["torch.uint8",[3],9,17,5])", R"("a":["torch.uint8",[8],8,0,0])",
        R"("a":["torch.uint8",[3],0,8,4])", R"("a":["torch.uint8",[3],0,8,9])",
        R"("a":["torch.uint8",[3],-8,0,5])",
        R"("a":["torch.uint8",[3],0,8,-5])",
        R"("a":["torch.uint8",[3],0,8.0,5])",
        R"("a":["torch.uint8",[3],18446744073709551608,0,5])",
        R"("a":["torch.uint8",[3],0,9223372036854775807,5])",
        R"("a":["torch.uint8",[3],0,3])", R"("a":["torch.uint8",[3],"0",3,0])",
        R"("a":["torch.uint8",3,0,3,0])", R"("a":{})", R"("a":null)",
        R"("a":["torch.uint8",[3],0,3,0,1])"}) {
    EXPECT_THAT(load(leaf), IsDataLoss()) << leaf;
  }
  EXPECT_THAT(load(R"("a":["torch.uint8",[8],0,8,0],)"
                   R"("b":["torch.uint8",[8],4,12,0])"),
              IsDataLoss("overlap"));
  EXPECT_THAT(load(R"("a":["torch.uint8",[8],0,8,0])",
                   absl::StrCat(",\"b\":", Json("\"c\":[\"torch.uint8\","
                                                "[8],0,8,0]"))),
              IsDataLoss("overlap"));
  EXPECT_THAT(load(R"("a":["torch.uint8",[8],0,8,0])",
                   absl::StrCat(",\"a\":", Json(""))),
              IsDataLoss("twice"));
  EXPECT_THAT(load(R"("a":["torch.int8",[4294967296,4294967296],0,8,0])"),
              IsInvalidArgument("4294967296"));
  EXPECT_THAT(load(R"("a":["torch.float64",[4294967296,1073741824],0,8,0])"),
              IsInvalidArgument("int64"));
}

TEST(ConsolidatedTest, HostileJsonCostsNeitherStackNorTime) {
  const auto load = [](absl::string_view json) {
    return LoadConsolidated(WriteConsolidated("hostile.bin", "", json));
  };
  EXPECT_THAT(load(std::string(1 << 20, '[')), IsInvalidArgument("depth"));
  EXPECT_THAT(load("[1]"), IsDataLoss("want a dictionary"));
  EXPECT_THAT(load("{}"), IsDataLoss("\"cls\""));
  EXPECT_THAT(load("nothing"), IsDataLoss("no JSON"));
  std::string many;
  for (int i = 0; i < 300000; ++i) absl::StrAppend(&many, "\"", i, "\":1,");
  EXPECT_THAT(load(absl::StrCat("{", many, "\"x\":1}")),
              IsInvalidArgument("keys"));
  std::string nested = Json("");
  for (int i = 0; i < 30; ++i) {
    nested = Json("", absl::StrCat(",\"d\":", nested));
  }
  RILL_EXPECT_OK(load(nested));
  for (int i = 0; i < 5; ++i)
    nested = Json("", absl::StrCat(",\"d\":", nested));
  EXPECT_THAT(load(nested), IsInvalidArgument("depth"));
}

TEST(ConsolidatedTest, OtherKindsAreRefusedByNameAndTheRestLoads) {
  const std::string json =
      Json(R"("x":["torch.uint8",[1],0,8,7],"q":["torch.qint8",[1],8,16,7])",
           R"(,"step":{"cls":"Step","leaves":{}})");
  const std::string path =
      WriteConsolidated("kinds.bin", std::string(16, '\1'), json);
  EXPECT_THAT(LoadConsolidated(path), IsInvalidArgument("qint8"));
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadConsolidated(path, {.refused = &refused}));
  EXPECT_THAT(dict.Keys(), ElementsAre("x"));
  ASSERT_EQ(refused.size(), 2);
  EXPECT_EQ(refused[0].key, "q");
  EXPECT_EQ(refused[1].key, "step");
  EXPECT_THAT(refused[1].reason, HasSubstr("\"Step\""));
  EXPECT_THAT(
      LoadConsolidated(WriteConsolidated(
          "kinds.bin", "",
          absl::StrReplaceAll(Json(""), {{"\"TensorDict\"", "\"Other\""}}))),
      IsInvalidArgument("Other"));
}

TEST(ConsolidatedTest, RandomEditsGiveAStatusOrADictionary) {
  const Rng rng(31);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string plain, ReadFile(kPeers));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string kinds,
                            ReadFile("formats/testdata/tensordict/L.bin"));
  const std::string path = FreshPath("edited.bin");
  const std::string alphabet = "0123456789[]{}\",:-.e\\\0\xFFtrue";
  int loaded = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = round % 2 == 0 ? plain : kinds;
    const size_t at = rng.UniformInt(round, 0, bytes.size());
    bytes[at] = alphabet[rng.UniformInt(round, 1, alphabet.size())];
    WriteInPlace(path, bytes);
    const auto dict = LoadConsolidated(path);
    if (dict.ok()) {
      ++loaded;
      EXPECT_THAT(dict->Clone(), IsOk());
    } else {
      EXPECT_THAT(dict.status().code(),
                  AnyOf(absl::StatusCode::kDataLoss,
                        absl::StatusCode::kInvalidArgument));
    }
  }
  EXPECT_GT(loaded, 50);
  EXPECT_LT(loaded, 950);
}

}  // namespace
}  // namespace rill
