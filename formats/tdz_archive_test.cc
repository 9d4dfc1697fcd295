// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/tdz_archive.h"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/test_dicts.h"
#include "rill/formats/zip/raw_zip.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;
using formats_internal::ExpectEveryFaultIsReturned;
using formats_internal::Floats;
using formats_internal::RawEntry;
using formats_internal::RawZip;
using formats_internal::Sample;
using formats_internal::StoredEntry;
using formats_internal::WithRandomByte;
using formats_internal::WriteInPlace;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using Mode = LoadMemmapOptions::Mode;

constexpr char kPeers[] = "formats/testdata/tensordict/I.tdz";

// An archive of files that nobody checked, packed without care for alignment.
void WriteArchive(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<RawEntry> entries;
  for (const auto& [name, content] : files) {
    entries.push_back(StoredEntry(name, content));
  }
  WriteInPlace(path, RawZip(entries));
}

TEST(TdzArchiveTest, Example) {
  const std::string path = FreshPath("example.tdz");
  TensorDict steps({2});
  RILL_ASSERT_OK(steps.Set("next/reward", Floats({5, 6}, {2, 1})));
  RILL_ASSERT_OK(SaveTdz(steps, path));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict loaded, LoadTdz(path));
  RILL_EXPECT_OK(loaded.CheckEqual(steps));
}

TEST(TdzArchiveTest, LoadsThePeersArchiveValueForValue) {
  const std::string directory = FreshPath("peer");
  RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/A", directory));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want,
                            LoadMemmapDirectory(directory));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadTdz(kPeers, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(want));
    EXPECT_EQ(loaded.Keys(), want.Keys());
  }
}

TEST(TdzArchiveTest, LoadsWhatOtherToolsPacked) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict want, LoadTdz(kPeers));
  for (const absl::string_view name :
       {"info_zip", "python_zipfile", "info_zip_deflated",
        "python_zipfile_deflated"}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict loaded,
        LoadTdz(absl::StrCat("formats/testdata/archives/", name, ".tdz")));
    RILL_EXPECT_OK(loaded.CheckEqual(want));
  }
}

// All but the date, which is TorchRL's moment of saving.
TEST(TdzArchiveTest, SavingThePeersArchiveGivesItsBytes) {
  const std::string path = FreshPath("again.tdz");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadTdz(kPeers));
  RILL_ASSERT_OK(SaveTdz(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string want, ReadFile(kPeers));
  RILL_ASSERT_OK_AND_ASSIGN(std::string got, ReadFile(path));
  ASSERT_EQ(got.size(), want.size());
  int dates = 0;
  for (size_t at = 0; at + 30 < got.size(); ++at) {
    const absl::string_view signature(got.data() + at, 4);
    const size_t date = signature == "PK\x03\x04"   ? 10
                        : signature == "PK\x01\x02" ? 12
                                                    : 0;
    if (date == 0) continue;
    std::memcpy(got.data() + at + date, want.data() + at + date, 4);
    ++dates;
  }
  EXPECT_EQ(dates, 22);  // Eleven files, twice.
  EXPECT_TRUE(got == want);
}

TEST(TdzArchiveTest, RoundTripKeepsEverything) {
  const std::string path = FreshPath("round.tdz");
  const TensorDict dict = Sample();
  RILL_ASSERT_OK(SaveTdz(dict, path));
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kMapShared, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadTdz(path, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(dict));
    EXPECT_EQ(loaded.Keys(), dict.Keys());
    RILL_ASSERT_OK_AND_ASSIGN(const NonTensor note,
                              loaded.GetNonTensor("note"));
    EXPECT_EQ(note.json, R"(["x",{"y":null}])");
  }
}

TEST(TdzArchiveTest, LeavesAreViewsOfOneMapping) {
  const std::string path = FreshPath("views.tdz");
  RILL_ASSERT_OK(SaveTdz(Sample(), path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict read, LoadTdz(path));
  const Tensor* const obs = read.Find("obs");
  EXPECT_EQ(obs->memory_kind(), MemoryKind::kMappedFile);
  EXPECT_FALSE(obs->is_writable());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(obs->raw_data()) % 64, 0);
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t size, FileSize(path));
  EXPECT_LT(std::abs(read.Find("next/reward")->raw_data() - obs->raw_data()),
            size);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict shared,
                            LoadTdz(path, {.mode = Mode::kMapShared}));
  shared.Find("obs")->data<float>()[3] = 42;
  EXPECT_EQ(obs->data<float>()[3], 42);
  // Its checksum is out of date now, and that is not looked at.
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again, LoadTdz(path));
  EXPECT_EQ(again.Find("obs")->data<float>()[3], 42);
}

TEST(TdzArchiveTest, StridedAndBigLeavesAreWrittenRowMajor) {
  const std::string path = FreshPath("strided.tdz");
  // 9 MiB, so that it goes in pieces.
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor tall,
                            Tensor::Zeros(DType::kInt32, {3, 786432}));
  for (int64_t i = 0; i < tall.num_elements(); ++i) {
    tall.data<int32_t>()[i] = static_cast<int32_t>(i);
  }
  const std::vector<int> dims = {1, 0};
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide, tall.Permute(dims));
  TensorDict dict({786432});
  RILL_ASSERT_OK(dict.Set("x", wide));
  RILL_ASSERT_OK(SaveTdz(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadTdz(path));
  RILL_EXPECT_OK(loaded.CheckEqual(dict));
}

TEST(TdzArchiveTest, EqualDictionariesGiveEqualBytes) {
  const std::string path = FreshPath("one.tdz");
  const std::string other = FreshPath("two.tdz");
  RILL_ASSERT_OK(SaveTdz(Sample(), path));
  RILL_ASSERT_OK(SaveTdz(Sample(), other));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path));
  EXPECT_THAT(ReadFile(other), IsOkAndHolds(bytes));
}

TEST(TdzArchiveTest, ArchivesOfOtherToolsAreCopiedWhereTheyDoNotAlign) {
  const std::string path = FreshPath("foreign.tdz");
  const std::string meta =
      R"({"x":{"shape":[2],"dtype":"torch.float64"},"b":{"shape":[2],)"
      R"("dtype":"torch.uint8"},"shape":[2],)"
      R"("_type":"<class 'tensordict._td.TensorDict'>"})";
  const double values[] = {1.5, -2};
  const std::string bytes(reinterpret_cast<const char*>(values), 16);
  for (int shift = 0; shift < 8; ++shift) {
    WriteArchive(path, {{"meta.json", meta},
                        {"pad", std::string(shift, ' ')},
                        {"x.memmap", bytes},
                        {"b.memmap", "yz"}});
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadTdz(path));
    EXPECT_THAT(dict.Flat<double>("x"), IsOkAndHolds(ElementsAre(1.5, -2)));
    EXPECT_THAT(dict.Flat<uint8_t>("b"), IsOkAndHolds(ElementsAre('y', 'z')));
    EXPECT_EQ(dict.Find("b")->memory_kind(), MemoryKind::kMappedFile);
    const bool is_copied =
        dict.Find("x")->memory_kind() != MemoryKind::kMappedFile;
    const auto shared = LoadTdz(path, {.mode = Mode::kMapShared});
    EXPECT_EQ(shared.ok(), !is_copied);
    if (is_copied) {
      EXPECT_THAT(shared, IsInvalidArgument("x.memmap"));
    }
  }
}

// --- What may be wrong -------------------------------------------------------

TEST(TdzArchiveTest, AFailedSaveLeavesTheOldArchive) {
  const std::string folder = FreshPath("failed");
  RILL_ASSERT_OK(CreateDirectories(folder));
  const std::string path = JoinPath(folder, "x.tdz");
  RILL_ASSERT_OK(SaveTdz(Sample(), path));
  TensorDict other({1});
  RILL_ASSERT_OK(other.Set("x", Floats({1}, {1})));
  ExpectEveryFaultIsReturned([&] { return SaveTdz(other, path); });
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadTdz(path));
  RILL_EXPECT_OK(loaded.CheckEqual(Sample()));
  EXPECT_THAT(ListDirectory(folder), IsOkAndHolds(ElementsAre("x.tdz")));
}

TEST(TdzArchiveTest, ReservedNamesAreRefusedWhenSaved) {
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set("next/shape", Floats({1}, {1})));
  EXPECT_THAT(SaveTdz(dict, FreshPath("reserved.tdz")),
              IsInvalidArgument("SaveTdz: key: got \"shape\""));
}

TEST(TdzArchiveTest, WhatIsNotThereIsNotFound) {
  EXPECT_THAT(LoadTdz(FreshPath("nowhere.tdz")), IsNotFound("nowhere.tdz"));
  const std::string path = FreshPath("other.tdz");
  WriteArchive(path, {{"readme.txt", "x"}});
  EXPECT_THAT(LoadTdz(path), IsNotFound("meta.json"));
  WriteInPlace(path, "");
  EXPECT_THAT(LoadTdz(path), IsDataLoss());
  WriteInPlace(path, "some text, and no zip file at all");
  EXPECT_THAT(LoadTdz(path), IsDataLoss("zip file"));
}

TEST(TdzArchiveTest, ChangedMetaIsFoundByItsChecksum) {
  RILL_ASSERT_OK_AND_ASSIGN(std::string zip, ReadFile(kPeers));
  const size_t at = zip.find("torch.float32");
  zip[at + 12] = '9';
  const std::string path = FreshPath("changed.tdz");
  WriteInPlace(path, zip);
  EXPECT_THAT(LoadTdz(path), IsDataLoss("meta.json\": CRC: got"));
}

TEST(TdzArchiveTest, ShortAndMissingPayloadsAreDataLoss) {
  const std::string path = FreshPath("short.tdz");
  const std::string meta =
      R"({"x":{"shape":[2],"dtype":"torch.float64"},"shape":[2],)"
      R"("_type":"<class 'tensordict._td.TensorDict'>"})";
  WriteArchive(path, {{"meta.json", meta}, {"x.memmap", "fifteen bytes.."}});
  EXPECT_THAT(LoadTdz(path), IsDataLoss("x.memmap\": got 15 bytes, want 16"));
  WriteArchive(path, {{"meta.json", meta}});
  EXPECT_THAT(LoadTdz(path), IsDataLoss("16 bytes"));
  WriteArchive(path, {{"meta.json", meta}, {"x.memmap/y", "a folder"}});
  EXPECT_THAT(LoadTdz(path), IsDataLoss());
  WriteArchive(path, {{"meta.json", meta}, {"x.memmap", std::string(17, 'l')}});
  EXPECT_THAT(LoadTdz(path), IsOk());  // As with files: the tail is not read.
}

TEST(TdzArchiveTest, EveryTruncationIsDataLoss) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string zip, ReadFile(kPeers));
  const std::string path = FreshPath("truncated.tdz");
  for (size_t size = 0; size < zip.size(); size += 13) {
    WriteInPlace(path, absl::string_view(zip).substr(0, size));
    EXPECT_THAT(LoadTdz(path), IsDataLoss()) << size;
  }
}

TEST(TdzArchiveTest, RandomEditsGiveAStatusOrADictionary) {
  const Rng rng(29);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(kPeers));
  const std::string path = FreshPath("edited.tdz");
  int loaded = 0;
  for (int round = 0; round < 800; ++round) {
    WriteInPlace(path, WithRandomByte(whole, rng, round));
    const auto dict = LoadTdz(path);
    if (dict.ok()) {
      ++loaded;
      EXPECT_THAT(dict->Clone(), IsOk());
    } else {
      EXPECT_THAT(dict.status().code(),
                  AnyOf(absl::StatusCode::kDataLoss,
                        absl::StatusCode::kInvalidArgument));
    }
  }
  EXPECT_GT(loaded, 100);  // Zeros between, payloads, dates.
  EXPECT_LT(loaded, 750);
}

}  // namespace
}  // namespace rill
