// SPDX-License-Identifier: Apache-2.0
// Entries that are neither tensors nor dictionaries, in directories and
// archives: what TorchRL wrote of them, and the same bytes from us.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/test_dicts.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;
using formats_internal::ExpectSameFiles;
using formats_internal::Fixture;
using formats_internal::Floats;
using formats_internal::ListFiles;
using formats_internal::WriteInPlace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDictType[] = R"("_type":"<class 'tensordict._td.TensorDict'>")";

// --- A value a row -----------------------------------------------------------

TEST(MemmapKindsTest, ValuesOfRowsLoadAndSaveAsThePeers) {
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(
      TensorDict dict,
      LoadMemmapDirectory(Fixture("D"), {.refused = &refused}));
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensorStack rows,
                            dict.GetNonTensorStack("ls"));
  EXPECT_EQ(rows.shape(), Shape({2}));
  EXPECT_THAT(rows.values(), ElementsAre("\"p\"", "\"q\""));
  EXPECT_THAT(dict.GetNonTensor("s"), IsOkAndHolds(NonTensor{"\"a string!\""}));
  EXPECT_THAT(dict.GetNonTensor("num"), IsOkAndHolds(NonTensor{"3"}));
  const std::string again = FreshPath("values");
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, again));
  for (const absl::string_view entry : {"ls", "s", "num"}) {
    ExpectSameFiles(JoinPath(again, entry), JoinPath(Fixture("D"), entry));
  }
}

TEST(MemmapKindsTest, PicklesAreRefusedByNameAndTheRestLoads) {
  EXPECT_THAT(
      LoadMemmapDirectory(Fixture("D")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("D/obj/other.pickle"), HasSubstr("runs code"),
                     HasSubstr("LoadMemmapOptions::refused"))));
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(
      const TensorDict dict,
      LoadMemmapDirectory(Fixture("D"), {.refused = &refused}));
  EXPECT_THAT(dict.Keys(), ElementsAre("x", "s", "num", "ls"));
  ASSERT_EQ(refused.size(), 2);
  EXPECT_EQ(refused[0].key, "obj");
  EXPECT_THAT(refused[0].reason, HasSubstr("other.pickle"));
  EXPECT_EQ(refused[1].key, "lo");
  EXPECT_THAT(refused[1].reason, HasSubstr("pickle.pkl"));
}

TEST(MemmapKindsTest, ValuesOfRowsKeepTheirShape) {
  const std::string directory = FreshPath("rows");
  TensorDict dict({2, 3});
  const std::vector<std::string> values = {"1",    "\"two\"",   "[3,3]",
                                           "null", "{\"a\":5}", "true"};
  RILL_ASSERT_OK_AND_ASSIGN(auto rows, NonTensorStack::Create({2, 3}, values));
  RILL_ASSERT_OK(dict.Set("rows", rows));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  EXPECT_THAT(ReadFile(JoinPath(directory, "rows/meta.json")),
              IsOkAndHolds(HasSubstr(
                  R"("data":[[1,"two",[3,3]],[null,{"a":5},true]])")));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
  // A list that does not fit the batch is reported.
  WriteInPlace(JoinPath(directory, "rows/meta.json"),
               R"({"_type":"<class 'tensordict.tensorclass.NonTensorStack'>",)"
               R"("stack_dim":0,"device":null,"data":[[1,2,3],[4,5]]})");
  EXPECT_THAT(LoadMemmapDirectory(directory),
              IsDataLoss("got [4,5], want a list of 3"));
}

// --- Lazy stacks -------------------------------------------------------------

TEST(MemmapKindsTest, LazyStacksLoadAndSaveAsThePeers) {
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LoadMemmapLazyStack(Fixture("E")));
  ASSERT_EQ(stack.size(), 2);
  EXPECT_EQ(stack.stack_dim(), 0);
  EXPECT_THAT(stack.members()[0].Flat<float>("x"),
              IsOkAndHolds(ElementsAre(1, 1)));
  EXPECT_THAT(stack.members()[1].Flat<float>("x"),
              IsOkAndHolds(ElementsAre(1, 1, 1)));
  EXPECT_THAT(stack.members()[1].Flat<float>("y"),
              IsOkAndHolds(ElementsAre(0)));
  const std::string again = FreshPath("lazy");
  RILL_ASSERT_OK(SaveMemmapLazyStack(stack, again));
  ExpectSameFiles(again, Fixture("E"));
}

TEST(MemmapKindsTest, TopLevelStacksAndDictionariesAreToldApart) {
  EXPECT_THAT(LoadMemmapDirectory(Fixture("E")),
              IsInvalidArgument("use LoadMemmapLazyStack"));
  EXPECT_THAT(LoadMemmapLazyStack(Fixture("A")),
              IsInvalidArgument("use LoadMemmapDirectory"));
  EXPECT_THAT(LoadMemmapDirectory(Fixture("D/s")),
              IsInvalidArgument("single value"));
  EXPECT_THAT(LoadMemmapDirectory(Fixture("I.tdz")), IsNotFound("I.tdz"));
}

LazyStack Stack(int members) {
  std::vector<TensorDict> dicts;
  for (int i = 0; i < members; ++i) {
    TensorDict dict;
    EXPECT_THAT(dict.Set("x", Floats(std::vector<float>(i + 1, i), {i + 1})),
                IsOk());
    dicts.push_back(std::move(dict));
  }
  return *LazyStack::Create(std::move(dicts));
}

// TorchRL loads five members after three were saved over five.
TEST(MemmapKindsTest, ASaveLeavesNoMembersOfTheOldStack) {
  const std::string directory = FreshPath("stale");
  RILL_ASSERT_OK(SaveMemmapLazyStack(Stack(12), directory));
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack loaded, LoadMemmapLazyStack(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(Stack(12)));  // 10 and 11 after 9.
  RILL_ASSERT_OK(SaveMemmapLazyStack(Stack(3), directory));
  RILL_ASSERT_OK_AND_ASSIGN(loaded, LoadMemmapLazyStack(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(Stack(3)));
}

TEST(MemmapKindsTest, ReadingStopsAtTheFirstMemberThatIsMissing) {
  const std::string directory = FreshPath("gap");
  RILL_ASSERT_OK(SaveMemmapLazyStack(Stack(4), directory));
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "2")));
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack loaded, LoadMemmapLazyStack(directory));
  EXPECT_EQ(loaded.size(), 2);
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "0")));
  EXPECT_THAT(LoadMemmapLazyStack(directory), IsDataLoss("\"0\""));
  WriteInPlace(JoinPath(directory, "0"), "a file");
  EXPECT_THAT(LoadMemmapLazyStack(directory), IsDataLoss());
}

// A LazyStack's members are dictionaries, so this one cannot be had.
TEST(MemmapKindsTest, StacksOfStacksAreRefusedByNameAndTheRestLoads) {
  const std::string directory = FreshPath("of_stacks");
  TensorDict dict({2, 2});
  RILL_ASSERT_OK(dict.Set("rows/0/x", Floats({1, 2, 3, 4}, {2, 2})));
  RILL_ASSERT_OK(dict.Set("y", Floats({1, 2, 3, 4}, {2, 2})));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  const std::string rows = JoinPath(directory, "rows");
  for (const std::string& folder : {rows, JoinPath(rows, "0")}) {
    RILL_ASSERT_OK(RemoveAll(folder));
    RILL_ASSERT_OK(SaveMemmapLazyStack(Stack(2), folder));
  }
  EXPECT_THAT(LoadMemmapDirectory(directory),
              IsInvalidArgument("whose member 0 is a stack"));
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(
      dict, LoadMemmapDirectory(directory, {.refused = &refused}));
  EXPECT_THAT(dict.Keys(), ElementsAre("y"));
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].key, "rows");
  EXPECT_THAT(LoadMemmapLazyStack(rows, {.refused = &refused}),
              IsInvalidArgument("stack of what is refused"));
}

// --- Ragged leaves -----------------------------------------------------------

TEST(MemmapKindsTest, RaggedLeavesLoadAndSaveAsThePeers) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("H")));
  RILL_ASSERT_OK_AND_ASSIGN(const RaggedTensor rows, dict.GetRagged("n"));
  ASSERT_EQ(rows.num_rows(), 2);
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor first, rows.Row(0));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor second, rows.Row(1));
  EXPECT_THAT(first.Flat<float>(), IsOkAndHolds(ElementsAre(1, 1)));
  EXPECT_THAT(second.Flat<float>(), IsOkAndHolds(ElementsAre(0, 0, 0)));
  const std::string again = FreshPath("ragged");
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, again));
  ExpectSameFiles(again, Fixture("H"));
}

// Writes a ragged leaf of `shapes` [n, d] over `bytes` bytes of values.
std::string WriteRagged(const std::vector<int64_t>& shapes, int64_t n,
                        int64_t d, int64_t bytes) {
  const std::string directory = FreshPath("table");
  RILL_EXPECT_OK(CreateDirectories(directory));
  WriteInPlace(JoinPath(directory, "meta.json"),
               absl::StrCat(R"({"r":{"shape":[)", n, ",", d,
                            R"(],"dtype":"torch.uint8","is_nested":true},)",
                            R"("shape":[)", n, "],", kDictType, "}"));
  WriteInPlace(JoinPath(directory, "r.shape.memmap"),
               absl::string_view(reinterpret_cast<const char*>(shapes.data()),
                                 8 * shapes.size()));
  WriteInPlace(JoinPath(directory, "r.memmap"), std::string(bytes, '\7'));
  return directory;
}

TEST(MemmapKindsTest, TablesOfShapesAreChecked) {
  RILL_EXPECT_OK(LoadMemmapDirectory(WriteRagged({2, 3}, 2, 1, 5)));
  RILL_EXPECT_OK(LoadMemmapDirectory(WriteRagged({2, 3}, 2, 1, 64)));  // Slack.
  RILL_EXPECT_OK(LoadMemmapDirectory(WriteRagged({0, 0}, 2, 1, 0)));
  RILL_EXPECT_OK(LoadMemmapDirectory(WriteRagged({}, 3, 0, 3)));
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({2, 3}, 2, 1, 4)), IsDataLoss());
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({2, -1}, 2, 1, 64)),
              IsDataLoss());
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({2}, 2, 1, 64)), IsDataLoss());
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({kHuge, 4}, 1, 2, 64)),
              IsDataLoss());
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({kHuge, kHuge, kHuge}, 3, 1, 64)),
              IsDataLoss());
  EXPECT_THAT(LoadMemmapDirectory(WriteRagged({1, 1}, 1000000000, 1, 64)),
              IsDataLoss());
  // Rows without sizes: the table has no bytes, so no file bounds their number.
  const std::string scalars = WriteRagged({}, int64_t{1} << 59, 0, 5);
  EXPECT_THAT(LoadMemmapDirectory(scalars), IsDataLoss());
  RILL_ASSERT_OK(RemoveAll(JoinPath(scalars, "r.memmap")));
  EXPECT_THAT(LoadMemmapDirectory(scalars), IsDataLoss("entry \"r\""));
  const std::string missing = WriteRagged({2, 3}, 2, 1, 5);
  RILL_ASSERT_OK(RemoveAll(JoinPath(missing, "r.shape.memmap")));
  EXPECT_THAT(LoadMemmapDirectory(missing), IsDataLoss());
}

TEST(MemmapKindsTest, RaggedLeavesOfAnotherBatchAreRefusedByName) {
  const std::string directory = WriteRagged({2, 3}, 2, 1, 5);
  WriteInPlace(
      JoinPath(directory, "meta.json"),
      absl::StrCat(R"({"r":{"shape":[2,1],"dtype":"torch.uint8",)",
                   R"("is_nested":true},"shape":[],)", kDictType, "}"));
  EXPECT_THAT(LoadMemmapDirectory(directory), IsInvalidArgument("got 2 rows"));
  std::vector<RefusedEntry> refused;
  RILL_EXPECT_OK(LoadMemmapDirectory(directory, {.refused = &refused}));
  EXPECT_EQ(refused.size(), 1);
}

// --- Classes -----------------------------------------------------------------

TEST(MemmapKindsTest, ClassesLoadAsTheirTensorsAndFields) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, LoadMemmapDirectory(Fixture("F")));
  EXPECT_EQ(dict.batch_shape(), Shape({2}));
  EXPECT_THAT(dict.Flat<float>("a"), IsOkAndHolds(ElementsAre(1, 1)));
  EXPECT_THAT(dict.GetNonTensor("name"), IsOkAndHolds(NonTensor{"\"z\""}));

  const std::string directory = FreshPath("class");
  RILL_ASSERT_OK(CopyTree(Fixture("F"), JoinPath(directory, "c")));
  WriteInPlace(
      JoinPath(directory, "meta.json"),
      absl::StrCat(R"({"c":{"type":"MyTC"},"shape":[],)", kDictType, "}"));
  WriteInPlace(JoinPath(directory, "c/meta.json"),
               R"({"_type":"<class '__main__.MyTC'>","note":[1,null],"a":7})");
  RILL_ASSERT_OK_AND_ASSIGN(dict, LoadMemmapDirectory(directory));
  EXPECT_THAT(dict.GetNonTensor("c/note"), IsOkAndHolds(NonTensor{"[1,null]"}));
  EXPECT_THAT(dict.Flat<float>("c/a"), IsOkAndHolds(ElementsAre(1, 1)));

  WriteInPlace(JoinPath(directory, "c/other.pickle"), "cos\nsystem\n");
  EXPECT_THAT(LoadMemmapDirectory(directory),
              IsInvalidArgument("c/other.pickle"));
  std::vector<RefusedEntry> refused;
  RILL_ASSERT_OK_AND_ASSIGN(
      dict, LoadMemmapDirectory(directory, {.refused = &refused}));
  EXPECT_TRUE(dict.Contains("c/a"));
  ASSERT_EQ(refused.size(), 1);
  EXPECT_EQ(refused[0].key, "c/other.pickle");

  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "c/_tensordict")));
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "c/other.pickle")));
  EXPECT_THAT(LoadMemmapDirectory(directory), IsInvalidArgument("MyTC"));
}

// --- All of them -------------------------------------------------------------

TEST(MemmapKindsTest, RoundTripInDirectoriesAndArchives) {
  TensorDict dict({2});
  RILL_ASSERT_OK_AND_ASSIGN(auto names,
                            NonTensorStack::Create({2}, {"\"left\"", "null"}));
  RILL_ASSERT_OK(dict.Set("info/names", std::move(names)));
  RILL_ASSERT_OK(dict.Set("stack", Stack(2)));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto rows,
      RaggedTensor::FromRows({Floats({1, 2}, {2, 1}), Floats({3}, {1, 1})}));
  RILL_ASSERT_OK(dict.Set("rows", std::move(rows)));
  const std::string directory = FreshPath("all");
  const std::string archive = FreshPath("all.tdz");
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  RILL_ASSERT_OK(SaveTdz(dict, archive));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict from_directory,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(from_directory.CheckEqual(dict));
  EXPECT_EQ(from_directory.Keys(), dict.Keys());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict from_archive, LoadTdz(archive));
  RILL_EXPECT_OK(from_archive.CheckEqual(dict));

  RILL_ASSERT_OK(SaveTdzLazyStack(Stack(11), archive));
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack, LoadTdzLazyStack(archive));
  RILL_EXPECT_OK(stack.CheckEqual(Stack(11)));
  EXPECT_THAT(LoadTdz(archive), IsInvalidArgument("LoadTdzLazyStack"));
}

// "n" as a ragged leaf and "n.shape" as a tensor want the same file.
TEST(MemmapKindsTest, NamesOfTablesCollideWithNobodys) {
  TensorDict dict({1});
  RILL_ASSERT_OK_AND_ASSIGN(auto rows,
                            RaggedTensor::FromRows({Floats({1, 2}, {2})}));
  RILL_ASSERT_OK(dict.Set("n", std::move(rows)));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, FreshPath("tables")));
  RILL_ASSERT_OK(dict.Set("n.shape", Floats({1}, {1})));
  EXPECT_THAT(SaveMemmapDirectory(dict, FreshPath("tables")),
              IsInvalidArgument("rename the entry"));
}

// --- What stands in TorchRL's list of behaviours -----------------------------

TEST(MemmapKindsTest, C1EveryDtypeScalarsAndStridedInputGoRoundTrip) {
  TensorDict dict;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf, Tensor::Zeros(dtype, {2, 3}));
    for (int64_t b = 0; b < leaf.size_bytes(); ++b) {
      leaf.raw_data()[b] =
          static_cast<std::byte>(dtype == DType::kBool ? b % 2 : b * 7 + 1);
    }
    const std::string name(DTypeName(dtype));
    RILL_ASSERT_OK(dict.Set(absl::StrCat(name, "/rows"), leaf));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor row, leaf.Index(1));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor scalar, row.Index(1));
    RILL_ASSERT_OK(dict.Set(absl::StrCat(name, "/scalar"), scalar));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor none, Tensor::Zeros(dtype, {4, 0}));
    RILL_ASSERT_OK(dict.Set(absl::StrCat(name, "/none"), none));
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor column, leaf.Select(1, 2));
    RILL_ASSERT_OK(dict.Set(absl::StrCat(name, "/column"), column));
  }
  const std::string directory = FreshPath("c1");
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
  EXPECT_FALSE(PathExists(JoinPath(directory, "int64/none.memmap")));
}

TEST(MemmapKindsTest, C2SpacedJsonAndUnknownFieldsAreRead) {
  const std::string directory = FreshPath("c2");
  RILL_ASSERT_OK(CreateDirectories(directory));
  WriteInPlace(
      JoinPath(directory, "meta.json"),
      absl::StrCat("{\n \"x\": {\"device\": \"cuda:3\", \"shape\": [2],"
                   " \"dtype\": \"torch.uint8\", \"new\": {\"a\": 1}},"
                   " \"version\": 7, \"list\": [1], \"shape\": [2], "
                   "\"device\": \"None\", ",
                   kDictType, "}"));
  WriteInPlace(JoinPath(directory, "x.memmap"), "ab");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(directory));
  EXPECT_THAT(dict.Keys(), ElementsAre("x"));
  EXPECT_THAT(dict.Flat<uint8_t>("x"), IsOkAndHolds(ElementsAre('a', 'b')));
}

TEST(MemmapKindsTest, C3FileNamesAreThePeers) {
  TensorDict dict({1});
  for (const absl::string_view key :
       {"a\\/b c", "a.b", "..", "%", "\xC3\xA9", ".", "a\\\\b", "x:y"}) {
    RILL_ASSERT_OK(dict.Set(key, Floats({1}, {1})));
  }
  const std::string directory = FreshPath("c3");
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  EXPECT_THAT(ListFiles(directory),
              ::testing::UnorderedElementsAre(
                  "a%2Fb%20c.memmap", "a.b.memmap", "%2E%2E.memmap",
                  "%25.memmap", "\xC3\xA9.memmap", "%2E.memmap", "a%5Cb.memmap",
                  "x%3Ay.memmap", "meta.json"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
}

TEST(MemmapKindsTest, C4RawNamesOfOlderSavesAreFoundFoldersToo) {
  const std::string directory = FreshPath("c4");
  RILL_ASSERT_OK(CreateDirectories(JoinPath(directory, "a d")));
  WriteInPlace(JoinPath(directory, "meta.json"),
               absl::StrCat(R"({"a b":{"shape":[1],"dtype":"torch.uint8"},)",
                            R"("a d":{"type":"TensorDict"},"shape":[1],)",
                            kDictType, "}"));
  WriteInPlace(JoinPath(directory, "a b.memmap"), "x");
  WriteInPlace(JoinPath(directory, "a d/meta.json"),
               absl::StrCat(R"({"shape":[1],)", kDictType, "}"));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(directory));
  EXPECT_THAT(dict.Flat<uint8_t>("a b"), IsOkAndHolds(ElementsAre('x')));
  EXPECT_NE(dict.FindDict("a d"), nullptr);
}

TEST(MemmapKindsTest, C5ReservedNamesAreRefusedWhenSavedInEveryKind) {
  for (const absl::string_view name : {"shape", "device", "_type"}) {
    TensorDict leaf({1});
    RILL_ASSERT_OK(leaf.Set(name, Floats({1}, {1})));
    TensorDict value({1});
    RILL_ASSERT_OK(value.Set(name, NonTensor{"1"}));
    TensorDict stack({2});
    RILL_ASSERT_OK(stack.Set(name, Stack(2)));
    TensorDict ragged({1});
    RILL_ASSERT_OK_AND_ASSIGN(auto rows,
                              RaggedTensor::FromRows({Floats({1}, {1})}));
    RILL_ASSERT_OK(ragged.Set(name, std::move(rows)));
    for (const TensorDict& dict : {leaf, value, stack, ragged}) {
      EXPECT_THAT(SaveMemmapDirectory(dict, FreshPath("c5")),
                  IsInvalidArgument(name));
    }
  }
  // TorchRL lost them when it saved; their files stand, nothing tells of them.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("C")));
  EXPECT_THAT(dict.Keys(), ElementsAre("x"));
}

TEST(MemmapKindsTest, C6ShortPayloadsAreErrorsAndStayAsTheyAre) {
  const std::string directory = FreshPath("c6");
  RILL_ASSERT_OK(CopyTree(Fixture("A"), directory));
  const std::string file = JoinPath(directory, "next/reward.memmap");
  WriteInPlace(file, std::string(23, 'x'));
  for (const auto mode :
       {LoadMemmapOptions::Mode::kMapReadOnly,
        LoadMemmapOptions::Mode::kMapShared, LoadMemmapOptions::Mode::kCopy}) {
    EXPECT_THAT(LoadMemmapDirectory(directory, {.mode = mode}),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("next/reward.memmap"),
                               HasSubstr("got 23 bytes, want 24"))));
    EXPECT_THAT(ReadFile(file), IsOkAndHolds(std::string(23, 'x')));
  }
}

TEST(MemmapKindsTest, C11DirectoriesAndArchivesOfThePeerGoRoundTrip) {
  for (const absl::string_view name : {"A", "B", "G", "H"}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                              LoadMemmapDirectory(Fixture(name)));
    const std::string again = FreshPath("c11");
    RILL_ASSERT_OK(SaveMemmapDirectory(dict, again));
    ExpectSameFiles(again, Fixture(name));
  }
}

}  // namespace
}  // namespace rill
