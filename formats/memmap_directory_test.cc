// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/memmap_directory.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/mapped_file.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/test_dicts.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::ExpectEveryFaultIsReturned;
using formats_internal::Fixture;
using formats_internal::Floats;
using formats_internal::Sample;
using formats_internal::WriteInPlace;
using ::testing::ElementsAre;
using Mode = LoadMemmapOptions::Mode;

TEST(MemmapDirectoryTest, Example) {
  const std::string directory = FreshPath("example");
  TensorDict steps({2});
  RILL_ASSERT_OK(steps.Set("next/reward", Floats({5, 6}, {2, 1})));
  RILL_ASSERT_OK(SaveMemmapDirectory(steps, directory));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict loaded, LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(steps));
}

// --- What TorchRL wrote ------------------------------------------------------

TEST(MemmapDirectoryTest, LoadsThePeersDtypesNamesAndNesting) {
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                              LoadMemmapDirectory(Fixture("A"), {mode}));
    EXPECT_EQ(dict.batch_shape(), Shape({3}));
    EXPECT_THAT(dict.Flat<float>("obs"),
                IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4, 5)));
    EXPECT_THAT(dict.Flat<bool>("next/done"),
                IsOkAndHolds(ElementsAre(false, false, true)));
    EXPECT_THAT(dict.Flat<double>("next/reward"),
                IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<uint8_t>("u8"), IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<int64_t>("i64"), IsOkAndHolds(ElementsAre(0, 1, 2)));
    EXPECT_THAT(dict.Flat<float>("a\\/b c"),
                IsOkAndHolds(ElementsAre(1, 1, 1)));
    EXPECT_THAT(dict.Flat<float>("a.b"), IsOkAndHolds(ElementsAre(1, 1, 1)));
    RILL_ASSERT_OK_AND_ASSIGN(const auto half, dict.Flat<Float16>("h"));
    EXPECT_EQ(half[0].bits, 0x3C00);
    RILL_ASSERT_OK_AND_ASSIGN(const auto brain, dict.Flat<BFloat16>("bf"));
    EXPECT_EQ(brain[0].bits, 0x3F80);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor empty, dict.Get("empty"));
    EXPECT_EQ(empty.shape(), Shape({3, 0}));
    EXPECT_EQ(dict.num_leaves(), 10);
  }
}

// Every byte of a save is TorchRL's.
TEST(MemmapDirectoryTest, SavingWhatThePeerWroteGivesItsFiles) {
  const std::string directory = FreshPath("again");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("A")));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  for (const absl::string_view folder : {"", "/next"}) {
    const std::string peers = Fixture(absl::StrCat("A", folder));
    const std::string ours = absl::StrCat(directory, folder);
    RILL_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(peers));
    EXPECT_THAT(ListDirectory(ours), IsOkAndHolds(names));
    for (const std::string& name : names) {
      if (IsDirectory(JoinPath(peers, name))) continue;
      RILL_ASSERT_OK_AND_ASSIGN(const std::string want,
                                ReadFile(JoinPath(peers, name)));
      EXPECT_THAT(ReadFile(JoinPath(ours, name)), IsOkAndHolds(want)) << name;
    }
  }
}

TEST(MemmapDirectoryTest, LeavesThatThePeerLostAreNotSeen) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("C")));
  EXPECT_THAT(dict.LeafKeys(), ElementsAre("x"));
  EXPECT_EQ(dict.batch_shape(), Shape({3}));
}

TEST(MemmapDirectoryTest, NamedDimensionsLoadWithoutTheirNames) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("G")));
  EXPECT_EQ(dict.batch_shape(), Shape({2, 3}));
}

TEST(MemmapDirectoryTest, ThePeersTextsLoadAsValues) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("F/_tensordict")));
  RILL_ASSERT_OK_AND_ASSIGN(const NonTensor name, dict.GetNonTensor("name"));
  EXPECT_EQ(name.json, "\"z\"");
}

// --- Ours --------------------------------------------------------------------

TEST(MemmapDirectoryTest, RoundTripKeepsEverything) {
  const std::string directory = FreshPath("round");
  const TensorDict dict = Sample();
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kMapShared, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadMemmapDirectory(directory, {mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(dict));
    EXPECT_EQ(loaded.Keys(), dict.Keys());
    RILL_ASSERT_OK_AND_ASSIGN(const NonTensor note,
                              loaded.GetNonTensor("note"));
    EXPECT_EQ(note.json, R"(["x",{"y":null}])");
  }
}

TEST(MemmapDirectoryTest, StridedLeavesAreWrittenRowMajor) {
  const std::string directory = FreshPath("strided");
  TensorDict dict({2});
  const Tensor tall = Floats({0, 1, 2, 3, 4, 5}, {3, 2});
  const std::vector<int> dims = {1, 0};
  RILL_ASSERT_OK_AND_ASSIGN(Tensor wide, tall.Permute(dims));
  RILL_ASSERT_OK(dict.Set("x", wide));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, directory));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  EXPECT_THAT(loaded.Flat<float>("x"),
              IsOkAndHolds(ElementsAre(0, 2, 4, 1, 3, 5)));
}

TEST(MemmapDirectoryTest, ASaveReplacesTheOldTreeWhole) {
  const std::string directory = FreshPath("replaced");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  TensorDict small({1});
  RILL_ASSERT_OK(small.Set("obs", Floats({9}, {1, 1})));
  RILL_ASSERT_OK(SaveMemmapDirectory(small, directory));
  EXPECT_THAT(ListDirectory(directory),
              IsOkAndHolds(ElementsAre("meta.json", "obs.memmap")));
  EXPECT_THAT(FileSize(JoinPath(directory, "obs.memmap")), IsOkAndHolds(4));
}

TEST(MemmapDirectoryTest, SomebodysDirectoryIsNotReplaced) {
  const std::string directory = FreshPath("somebodys");
  RILL_ASSERT_OK(CreateDirectories(directory));
  WriteInPlace(JoinPath(directory, "thesis.tex"), "x");
  EXPECT_THAT(SaveMemmapDirectory(Sample(), directory),
              IsFailedPrecondition("thesis.tex"));
  EXPECT_THAT(ListDirectory(directory),
              IsOkAndHolds(ElementsAre("thesis.tex")));
}

TEST(MemmapDirectoryTest, AFailedSaveLeavesTheOldTree) {
  const std::string directory = FreshPath("kept");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  TensorDict other({1});
  RILL_ASSERT_OK(other.Set("x", Floats({1}, {1})));
  ExpectEveryFaultIsReturned(
      [&] { return SaveMemmapDirectory(other, directory); });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  RILL_EXPECT_OK(loaded.CheckEqual(Sample()));
}

TEST(MemmapDirectoryTest, ReservedAndCollidingNamesAreRefused) {
  const std::string directory = FreshPath("names");
  for (const absl::string_view key :
       {"shape", "device", "_type", "next/shape"}) {
    TensorDict dict({1});
    RILL_ASSERT_OK(dict.Set(key, Floats({1}, {1})));
    EXPECT_THAT(SaveMemmapDirectory(dict, directory),
                IsInvalidArgument("rename the entry"))
        << key;
  }
  TensorDict colliding({1});
  RILL_ASSERT_OK(colliding.Set("a", Floats({1}, {1})));
  RILL_ASSERT_OK(colliding.Set("a.memmap/b", Floats({1}, {1})));
  EXPECT_THAT(SaveMemmapDirectory(colliding, directory), IsInvalidArgument());
  TensorDict meta({1});
  RILL_ASSERT_OK(meta.Set("meta.json/b", Floats({1}, {1})));
  EXPECT_THAT(SaveMemmapDirectory(meta, directory), IsInvalidArgument());
  EXPECT_FALSE(PathExists(directory));
}

TEST(MemmapDirectoryTest, MappingsAreReadOnlyOrSharedWithTheFile) {
  const std::string directory = FreshPath("shared");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict read,
                            LoadMemmapDirectory(directory));
  EXPECT_FALSE(read.Find("obs")->is_writable());
  EXPECT_EQ(read.Find("obs")->memory_kind(), MemoryKind::kMappedFile);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict shared,
                            LoadMemmapDirectory(directory, {Mode::kMapShared}));
  shared.Find("obs")->data<float>()[3] = 42;
  EXPECT_EQ(read.Find("obs")->data<float>()[3], 42);
}

TEST(MemmapDirectoryTest, CreatedFilesAreZeroReservedAndWritable) {
  const std::string directory = FreshPath("created");
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("a/x", LeafSpec::Unbounded(DType::kInt32, {2})));
  RILL_ASSERT_OK(spec.Set("none", LeafSpec::Unbounded(DType::kInt8, {0})));
  {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict files,
                              CreateMemmapDirectory(spec, {3}, directory));
    RILL_ASSERT_OK_AND_ASSIGN(const auto values, files.Flat<int32_t>("a/x"));
    EXPECT_THAT(values, ElementsAre(0, 0, 0, 0, 0, 0));
    values[5] = 7;
  }
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                            LoadMemmapDirectory(directory));
  EXPECT_THAT(loaded.Flat<int32_t>("a/x"),
              IsOkAndHolds(ElementsAre(0, 0, 0, 0, 0, 7)));
  EXPECT_EQ(TensorDictSpec::Of(loaded), spec);
  EXPECT_THAT(CreateMemmapDirectory(spec, {3}, directory),
              IsFailedPrecondition());
}

// Leaves without bytes have no file that would be found.
TEST(MemmapDirectoryTest, CreatedFilesReplaceNone) {
  const std::string directory = FreshPath("created_twice");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  const std::string meta = JoinPath(directory, "meta.json");
  RILL_ASSERT_OK_AND_ASSIGN(const std::string before, ReadFile(meta));
  for (const int64_t size : {0, 2}) {
    TensorDictSpec spec;
    RILL_ASSERT_OK(spec.Set("x", {.dtype = DType::kInt32, .shape = {size}}));
    EXPECT_THAT(CreateMemmapDirectory(spec, {3}, directory),
                IsFailedPrecondition("meta.json"));
    EXPECT_THAT(ReadFile(meta), IsOkAndHolds(before));
    EXPECT_FALSE(PathExists(JoinPath(directory, "x.memmap")));
  }
}

// --- What may be wrong on the disk -------------------------------------------

TEST(MemmapDirectoryTest, NoDirectoryIsNotFound) {
  EXPECT_THAT(LoadMemmapDirectory(FreshPath("nowhere")),
              IsNotFound("meta.json"));
}

TEST(MemmapDirectoryTest, ShortAndMissingFilesAreDataLossLongOnesAreNot) {
  const std::string directory = FreshPath("lengths");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  const std::string file = JoinPath(directory, "obs.memmap");
  ASSERT_EQ(truncate(file.c_str(), 17), 0);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict longer,
                            LoadMemmapDirectory(directory));
  EXPECT_EQ(longer.Find("obs")->num_elements(), 4);
  ASSERT_EQ(truncate(file.c_str(), 15), 0);
  EXPECT_THAT(LoadMemmapDirectory(directory),
              IsDataLoss("got 15 bytes, want 16"));
  EXPECT_THAT(FileSize(file), IsOkAndHolds(15));  // Nothing was mended.
  RILL_ASSERT_OK(RemoveAll(file));
  EXPECT_THAT(LoadMemmapDirectory(directory), IsDataLoss("16 bytes"));
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "next")));
  EXPECT_THAT(LoadMemmapDirectory(directory), IsDataLoss());
}

TEST(MemmapDirectoryTest, LinksBelowTheDirectoryAreRefused) {
  const std::string directory = FreshPath("links");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  const std::string file = JoinPath(directory, "obs.memmap");
  RILL_ASSERT_OK(RemoveAll(file));
  ASSERT_EQ(symlink("/etc/passwd", file.c_str()), 0);
  const auto refused = IsInvalidArgument("symbolic link");
  EXPECT_THAT(LoadMemmapDirectory(directory), refused);
  RILL_ASSERT_OK(RemoveAll(file));
  WriteInPlace(file, std::string(16, 'x'));
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory, "next")));
  ASSERT_EQ(symlink(::testing::TempDir().c_str(),
                    JoinPath(directory, "next").c_str()),
            0);
  EXPECT_THAT(LoadMemmapDirectory(directory), refused);
}

TEST(MemmapDirectoryTest, KeysCannotNameFilesOutside) {
  const std::string directory = FreshPath("outside");
  const std::string secret = FreshPath("secret.memmap");
  WriteInPlace(secret, std::string(4, 's'));
  RILL_ASSERT_OK(CreateDirectories(directory));
  for (const absl::string_view key : {"../secret", "..", "/secret"}) {
    WriteInPlace(
        JoinPath(directory, "meta.json"),
        absl::StrCat(R"({")", key,
                     R"(":{"shape":[4],"dtype":"torch.uint8"},"shape":[4],)",
                     R"("_type":"<class 'tensordict._td.TensorDict'>"})"));
    EXPECT_THAT(LoadMemmapDirectory(directory), IsDataLoss()) << key;
  }
}

TEST(MemmapDirectoryTest, OlderFilesMayBearTheKeyItself) {
  const std::string directory = FreshPath("older");
  RILL_ASSERT_OK(SaveMemmapDirectory(Sample(), directory));
  WriteInPlace(JoinPath(directory, "meta.json"),
               R"({"a b":{"shape":[2],"dtype":"torch.uint8"},"shape":[2],)"
               R"("_type":"<class 'tensordict._td.TensorDict'>"})");
  WriteInPlace(JoinPath(directory, "a b.memmap"), "xy");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(directory));
  EXPECT_THAT(dict.Flat<uint8_t>("a b"), IsOkAndHolds(ElementsAre('x', 'y')));
}

// The name of "a/b" is "a%2Fb", and older files may bear "a%2Fb" as it is. One
// folder for both, 32 deep, would be 2^32 to read.
TEST(MemmapDirectoryTest, TwoEntriesInOneFolderAreDataLoss) {
  const std::string root = FreshPath("twice");
  std::string path = root;
  for (int i = 0; i < 30; ++i) {
    RILL_ASSERT_OK(CreateDirectories(path));
    WriteInPlace(
        JoinPath(path, "meta.json"),
        R"({"a/b":{"type":"TensorDict"},"a%2Fb":{"type":"TensorDict"},)"
        R"("shape":[],"_type":"<class 'tensordict._td.TensorDict'>"})");
    path = JoinPath(path, "a%2Fb");
  }
  RILL_ASSERT_OK(CreateDirectories(path));
  WriteInPlace(JoinPath(path, "meta.json"),
               R"({"shape":[],"_type":"<class 'tensordict._td.TensorDict'>"})");
  EXPECT_THAT(LoadMemmapDirectory(root), IsDataLoss("got it for two entries"));
}

TEST(MemmapDirectoryTest, DepthIsLimitedBothWays) {
  std::string key = "x";
  for (int i = 0; i < 40; ++i) key = absl::StrCat("d/", key);
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set(key, Floats({1}, {1})));
  EXPECT_THAT(SaveMemmapDirectory(dict, FreshPath("deep")),
              IsInvalidArgument("depth"));

  const std::string root = FreshPath("deep");
  std::string path = root;
  const std::string meta = R"({"d":{"type":"TensorDict"},"shape":[],)"
                           R"("_type":"<class 'tensordict._td.TensorDict'>"})";
  for (int i = 0; i < 40; ++i) {
    RILL_ASSERT_OK(CreateDirectories(path));
    WriteInPlace(JoinPath(path, "meta.json"), meta);
    path = JoinPath(path, "d");
  }
  EXPECT_THAT(LoadMemmapDirectory(root), IsInvalidArgument("depth"));
}

// A directory made by the plan is what CreateMemmapDirectory makes.
TEST(MemmapDirectoryTest, PlanNamesEveryFileAndItsSize) {
  TensorDictSpec spec;
  RILL_ASSERT_OK(spec.Set("x/a b", {.dtype = DType::kInt16, .shape = {3}}));
  RILL_ASSERT_OK(spec.Set("x/none", {.dtype = DType::kInt8, .shape = {0}}));
  RILL_ASSERT_OK(spec.Set("y", {.dtype = DType::kBool, .shape = {}}));
  RILL_ASSERT_OK_AND_ASSIGN(const MemmapDirectoryPlan plan,
                            PlanMemmapDirectory(spec, {2, 5}));
  ASSERT_EQ(plan.leaves.size(), 3);
  EXPECT_EQ(plan.leaves[0].path, "x/a%20b.memmap");
  EXPECT_EQ(plan.leaves[0].bytes, 60);
  EXPECT_EQ(plan.leaves[1].bytes, 0);
  EXPECT_EQ(plan.leaves[2].path, "y.memmap");
  EXPECT_EQ(plan.leaves[2].bytes, 10);
  ASSERT_EQ(plan.texts.size(), 2);
  EXPECT_EQ(plan.texts[0].path, "meta.json");

  const std::string made = FreshPath("plan");
  RILL_ASSERT_OK(CreateMemmapDirectory(spec, {2, 5}, made).status());
  for (const MemmapDirectoryPlan::Text& text : plan.texts) {
    EXPECT_THAT(ReadFile(JoinPath(made, text.path)),
                IsOkAndHolds(text.content));
  }
  for (const size_t leaf : {0, 2}) {
    EXPECT_THAT(FileSize(JoinPath(made, plan.leaves[leaf].path)),
                IsOkAndHolds(plan.leaves[leaf].bytes));
  }
}

TEST(MemmapDirectoryTest, MissingParentsNameThePath) {
  const std::string root = FreshPath("memmap_parents");
  const std::string path = JoinPath(root, "at/all");
  const auto refuses = [&](const std::string& caller) {
    return IsNotFound(caller + ": directory: got \"" + path + "\"");
  };
  EXPECT_THAT(SaveMemmapDirectory(Sample(), path),
              refuses("SaveMemmapDirectory"));
  EXPECT_THAT(CreateMemmapDirectory(TensorDictSpec::Of(Sample()), {2}, path),
              refuses("CreateMemmapDirectory"));
  EXPECT_FALSE(PathExists(root));
}

}  // namespace
}  // namespace rill
