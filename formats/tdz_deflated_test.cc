// SPDX-License-Identifier: Apache-2.0
// Archives whose entries are deflated.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/test_dicts.h"
#include "rill/formats/zip/raw_zip.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::DeflatedEntry;
using formats_internal::RawEntry;
using formats_internal::RawZip;
using formats_internal::StoredEntry;
using formats_internal::Values;
using formats_internal::WithRandomByte;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Mode = LoadMemmapOptions::Mode;

constexpr char kPeers[] = "formats/testdata/tensordict/N.tdz";
constexpr char kStored[] = "formats/testdata/tensordict/I.tdz";

// The content of kPeers.
TensorDict Want() {
  auto want = LoadTdz(kStored);
  RILL_EXPECT_OK(want);
  std::vector<int32_t> counted(6000);
  for (int32_t i = 0; i < 6000; ++i) counted[i] = i % 100;
  RILL_EXPECT_OK(want->Set("long", Values<int32_t>(counted, {3, 2000})));
  return *want;
}

// An archive of one tensor "x" of two doubles, in `entry`.
std::string ArchiveOf(const RawEntry& entry) {
  return RawZip(
      {StoredEntry("meta.json",
                   R"({"x":{"shape":[2],"dtype":"torch.float64"},"shape":[2],)"
                   R"("_type":"<class 'tensordict._td.TensorDict'>"})"),
       entry});
}

std::string DoubleBytes(const std::vector<double>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     8 * values.size());
}

TEST(TdzDeflatedTest, LoadsThePeersArchiveValueForValue) {
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded,
                              LoadTdz(kPeers, {.mode = mode}));
    RILL_EXPECT_OK(loaded.CheckEqual(Want()));
    // In memory of its own, so that it may be written.
    EXPECT_NE(loaded.Find("obs")->memory_kind(), MemoryKind::kMappedFile);
    EXPECT_TRUE(loaded.Find("obs")->is_writable());
  }
}

TEST(TdzDeflatedTest, SavedAgainItIsStored) {
  const std::string path = FreshPath("stored.tdz");
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict loaded, LoadTdz(kPeers));
  RILL_ASSERT_OK(SaveTdz(loaded, path));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict again,
                            LoadTdz(path, {.mode = Mode::kMapShared}));
  RILL_EXPECT_OK(again.CheckEqual(Want()));
}

TEST(TdzDeflatedTest, WhatIsStoredBesideStaysMapped) {
  const std::string path = FreshPath("mixed.tdz");
  const std::string meta =
      R"({"x":{"shape":[2],"dtype":"torch.float64"},"b":{"shape":[2],)"
      R"("dtype":"torch.uint8"},"shape":[2],)"
      R"("_type":"<class 'tensordict._td.TensorDict'>"})";
  WriteInPlace(path, RawZip({DeflatedEntry("x.memmap", DoubleBytes({1.5, -2})),
                             StoredEntry("b.memmap", "yz"),
                             DeflatedEntry("meta.json", meta)}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadTdz(path));
  EXPECT_THAT(dict.Flat<double>("x"), IsOkAndHolds(ElementsAre(1.5, -2)));
  EXPECT_THAT(dict.Flat<uint8_t>("b"), IsOkAndHolds(ElementsAre('y', 'z')));
  EXPECT_EQ(dict.Find("b")->memory_kind(), MemoryKind::kMappedFile);
  EXPECT_NE(dict.Find("x")->memory_kind(), MemoryKind::kMappedFile);
}

TEST(TdzDeflatedTest, MappingItWritableIsRefusedWithWhatToDo) {
  const std::string path = FreshPath("writable.tdz");
  WriteInPlace(path, ArchiveOf(DeflatedEntry("x.memmap", DoubleBytes({1, 2}))));
  EXPECT_THAT(LoadTdz(path, {.mode = Mode::kMapShared}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("x.memmap\": got it compressed"),
                             HasSubstr("load it read-only and save it"))));
}

TEST(TdzDeflatedTest, OtherCompressionIsRefusedByName) {
  const std::string path = FreshPath("other.tdz");
  for (const auto& [method, name] :
       {std::pair(12, "bzip2"), std::pair(14, "lzma")}) {
    RawEntry entry = StoredEntry("x.memmap", DoubleBytes({1, 2}));
    entry.method = static_cast<uint16_t>(method);
    WriteInPlace(path, ArchiveOf(entry));
    EXPECT_THAT(LoadTdz(path),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("x.memmap"), HasSubstr(name))));
  }
}

// As with files: fewer bytes are an error, the tail of more is not read.
TEST(TdzDeflatedTest, OtherSizesThanTheTensorsAreFound) {
  const std::string path = FreshPath("sizes.tdz");
  WriteInPlace(path, ArchiveOf(DeflatedEntry("x.memmap", "fifteen bytes..")));
  EXPECT_THAT(LoadTdz(path), IsDataLoss("x.memmap\": got 15 bytes, want 16"));
  WriteInPlace(path,
               ArchiveOf(DeflatedEntry("x.memmap", DoubleBytes({1, 2, 3}))));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, LoadTdz(path));
  EXPECT_THAT(dict.Flat<double>("x"), IsOkAndHolds(ElementsAre(1, 2)));
}

TEST(TdzDeflatedTest, BrokenStreamsAreDataLossThatNamesTheEntry) {
  const std::string path = FreshPath("broken.tdz");
  const RawEntry whole = DeflatedEntry("x.memmap", DoubleBytes({1.1, 2.7}));
  const auto load = [&](const RawEntry& entry) {
    WriteInPlace(path, ArchiveOf(entry));
    return LoadTdz(path);
  };
  RILL_EXPECT_OK(load(whole));
  for (size_t size = 0; size < whole.packed.size(); ++size) {
    RawEntry entry = whole;
    entry.packed.resize(size);
    EXPECT_THAT(load(entry), IsDataLoss("x.memmap")) << size;
  }
  RawEntry entry = whole;
  entry.packed.push_back('\0');
  EXPECT_THAT(load(entry), IsDataLoss("x.memmap\": got 1 bytes behind"));
  entry = whole;
  ++entry.size;
  EXPECT_THAT(load(entry),
              IsDataLoss("x.memmap\": got 16 bytes when inflated"));
  entry = whole;
  ++entry.crc;
  EXPECT_THAT(load(entry), IsDataLoss("x.memmap\": CRC: got"));
  entry = whole;
  entry.size = int64_t{1} << 31;
  EXPECT_THAT(load(entry),
              IsDataLoss("\"x.memmap\": size: got 2147483648 bytes"));
}

TEST(TdzDeflatedTest, ABrokenMetaIsDataLoss) {
  const std::string path = FreshPath("meta.tdz");
  RawEntry meta = DeflatedEntry("meta.json", std::string(500, ' '));
  ++meta.crc;
  WriteInPlace(path, RawZip({meta}));
  EXPECT_THAT(LoadTdz(path), IsDataLoss("meta.json\": CRC: got"));
  meta.packed.pop_back();
  WriteInPlace(path, RawZip({meta}));
  EXPECT_THAT(LoadTdz(path), IsDataLoss("meta.json\": got a deflate stream"));
}

TEST(TdzDeflatedTest, EveryTruncationIsDataLoss) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string zip, ReadFile(kPeers));
  const std::string path = FreshPath("truncated.tdz");
  for (size_t size = 0; size < zip.size(); size += 5) {
    WriteInPlace(path, absl::string_view(zip).substr(0, size));
    ASSERT_THAT(LoadTdz(path), IsDataLoss()) << size;
  }
}

// The checksums see to it that no other values come back.
TEST(TdzDeflatedTest, RandomEditsGiveAStatusOrTheValues) {
  const Rng rng(31);
  RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(kPeers));
  const TensorDict want = Want();
  const std::string path = FreshPath("edited.tdz");
  int loaded = 0;
  for (int round = 0; round < 800; ++round) {
    WriteInPlace(path, WithRandomByte(whole, rng, round));
    const auto dict = LoadTdz(path);
    if (dict.ok()) {
      ++loaded;
      RILL_EXPECT_OK(dict->CheckEqual(want)) << round;
    } else {
      EXPECT_THAT(dict.status().code(),
                  AnyOf(absl::StatusCode::kDataLoss,
                        absl::StatusCode::kInvalidArgument));
    }
  }
  EXPECT_GT(loaded, 50);  // Dates, attributes.
  EXPECT_LT(loaded, 600);
}

}  // namespace
}  // namespace rill
