// SPDX-License-Identifier: Apache-2.0
// ZipLayout and ParseZipDirectory: what one lays out the other reads, and
// whatever else stands there gives a status.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/formats/zip/crc32.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/formats/zip/raw_zip.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/formats/zip/zip_layout.h"
#include "rill/formats/zip/zip_record.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {
namespace {

using ::testing::AnyOf;
using File = std::pair<std::string, std::string>;  // Name and content.

std::string MakeZip(const std::vector<File>& files, bool is_aligned = true) {
  ZipLayout layout;
  std::string zip;
  for (int i = 0; i < static_cast<int>(files.size()); ++i) {
    RILL_EXPECT_OK(
        layout.Add(files[i].first, files[i].second.size(), is_aligned));
    layout.SetCrc(i, ExtendCrc32(0, files[i].second));
    EXPECT_EQ(layout.header_offset(i), zip.size());
    absl::StrAppend(&zip, layout.Header(i), files[i].second);
  }
  absl::StrAppend(&zip, layout.End());
  EXPECT_EQ(layout.total_bytes(), zip.size());
  return zip;
}

const std::vector<File>& SomeFiles() {
  static const auto* const files =
      new std::vector<File>{{"meta.json", "{}"},
                            {"a.memmap", "0123456789"},
                            {"next/b.memmap", ""},
                            {"next/\xC3\xA9.memmap", std::string(300, 'x')}};
  return *files;
}

absl::StatusOr<std::vector<ZipEntry>> Parse(absl::string_view zip) {
  return ParseZipDirectory("Load: x.tdz", zip);
}

// Overwrites an integer of `zip`.
template <typename T>
void Put(size_t at, T value, std::string* zip) {
  std::memcpy(zip->data() + at, &value, sizeof(T));
}

// Where the `n`-th central record starts.
size_t Central(const std::string& zip, int n) {
  size_t at = LoadLittle<uint32_t>(zip.data() + zip.size() - 6);
  for (; n > 0; --n) {
    at += kZipCentralBytes + LoadLittle<uint16_t>(zip.data() + at + 28) +
          LoadLittle<uint16_t>(zip.data() + at + 30);
  }
  return at;
}

TEST(ZipTest, WhatIsLaidOutIsRead) {
  for (const bool is_aligned : {true, false}) {
    const std::string zip = MakeZip(SomeFiles(), is_aligned);
    RILL_ASSERT_OK_AND_ASSIGN(const auto entries, Parse(zip));
    ASSERT_EQ(entries.size(), SomeFiles().size());
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto& [name, content] = SomeFiles()[i];
      EXPECT_EQ(entries[i].name, name);
      EXPECT_EQ(zip.substr(entries[i].offset, entries[i].size), content);
      EXPECT_EQ(entries[i].crc, ExtendCrc32(0, content));
      if (is_aligned) {
        EXPECT_EQ(entries[i].offset % kZipAlignment, 0);
      }
    }
  }
  EXPECT_THAT(Parse(MakeZip({})), IsOk());
}

TEST(ZipTest, ACommentAndFoldersChangeNothing) {
  std::string zip = MakeZip({{"a/", ""}, {"a/b", "x"}});
  Put<uint16_t>(zip.size() - 2, 3, &zip);
  zip += "PK\x05";
  RILL_ASSERT_OK_AND_ASSIGN(const auto entries, Parse(zip));
  ASSERT_EQ(entries.size(), 1);
  EXPECT_EQ(entries[0].name, "a/b");
}

// Two files of 3 GiB; the memory between the headers is never touched.
TEST(ZipTest, WideSizesAndOffsetsGoThrough) {
  constexpr int64_t kBig = int64_t{3} << 30;
  ZipLayout layout;
  RILL_ASSERT_OK(layout.Add("a.memmap", kBig, true));
  RILL_ASSERT_OK(layout.Add("b.memmap", kBig, true));
  RILL_ASSERT_OK(layout.Add("meta.json", 5, false));
  const int64_t bytes = layout.total_bytes();
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const zip = static_cast<char*>(memory);
  for (int i = 0; i < layout.size(); ++i) {
    const std::string header = layout.Header(i);
    std::memcpy(zip + layout.header_offset(i), header.data(), header.size());
  }
  const std::string end = layout.End();
  std::memcpy(zip + bytes - end.size(), end.data(), end.size());
  const auto entries = Parse(absl::string_view(zip, bytes));
  munmap(memory, bytes);
  RILL_ASSERT_OK(entries);
  EXPECT_EQ((*entries)[1].size, kBig);
  EXPECT_GT((*entries)[2].offset, 2 * kBig);
}

// As Python's zipfile has them: above 2^31 - 1, not from there on.
TEST(ZipTest, FieldsAreWideAboveTheLimitOnly) {
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1;
  constexpr int64_t kCentral = kZipCentralBytes + 1;       // A name of a byte.
  constexpr int64_t kLocal = kZipLocalBytes + 1 + 4 + 16;  // Always wide.
  constexpr int64_t kWideEnd = kZip64EndBytes + kZip64LocatorBytes;
  for (const int64_t above : {0, 1}) {
    ZipLayout sizes;
    RILL_ASSERT_OK(sizes.Add("a", kLimit + above, false));
    EXPECT_EQ(sizes.End().size(),
              kCentral + above * (4 + 16) + kWideEnd + kZipEndBytes);
    ZipLayout offsets;
    RILL_ASSERT_OK(offsets.Add("a", kLimit - kLocal + above, false));
    EXPECT_EQ(offsets.End().size(), kCentral + above * kWideEnd + kZipEndBytes);
    RILL_ASSERT_OK(offsets.Add("b", 0, false));
    EXPECT_EQ(offsets.End().size(),
              2 * kCentral + above * (4 + 8) + kWideEnd + kZipEndBytes);
    const std::string end = offsets.End();
    // Volumes.
    EXPECT_EQ(LoadLittle<uint32_t>(end.data() + end.size() - kZipEndBytes - 4),
              1);
    ZipLayout counts;
    const int64_t count = 65535 + above;
    for (int64_t i = 0; i < count; ++i) {
      RILL_ASSERT_OK(counts.Add("a", 0, false));
    }
    EXPECT_EQ(counts.End().size(),
              count * kCentral + above * kWideEnd + kZipEndBytes);
  }
}

TEST(ZipTest, MoreThan65535FilesGoThrough) {
  std::vector<File> files;
  for (int i = 0; i < 66000; ++i) files.push_back({absl::StrCat(i), ""});
  RILL_ASSERT_OK_AND_ASSIGN(const auto entries, Parse(MakeZip(files, false)));
  EXPECT_EQ(entries.size(), files.size());
}

TEST(ZipTest, SizesThatNoFileHasAreRefusedWhenLaidOut) {
  ZipLayout layout;
  EXPECT_THAT(layout.Add(std::string(65536, 'a'), 1, true),
              IsInvalidArgument("name"));
  RILL_EXPECT_OK(layout.Add(std::string(65535, 'a'), 1, true));
  EXPECT_THAT(layout.Add("a", INT64_MAX - 10, true), IsInvalidArgument("size"));
  RILL_ASSERT_OK(layout.Add("a", int64_t{1} << 61, true));
  EXPECT_THAT(layout.Add("b", int64_t{1} << 61, true),
              IsInvalidArgument("size"));
}

// --- What may be wrong -------------------------------------------------------

TEST(ZipTest, WhatIsNoZipFileIsDataLoss) {
  EXPECT_THAT(Parse(""), IsDataLoss("got 0 bytes"));
  EXPECT_THAT(Parse(std::string(70000, 'x')),
              IsDataLoss("none or was cut short"));
  EXPECT_THAT(Parse(std::string(22, '\0')),
              IsDataLoss("none or was cut short"));
}

TEST(ZipTest, EveryTruncationIsDataLoss) {
  const std::string zip = MakeZip(SomeFiles());
  for (size_t size = 0; size < zip.size(); ++size) {
    ASSERT_THAT(Parse(absl::string_view(zip).substr(0, size)), IsDataLoss())
        << size;
  }
}

TEST(ZipTest, BytesMissingInTheMiddleAreDataLoss) {
  const std::string zip = MakeZip(SomeFiles());
  for (size_t at = 0; at + 40 < zip.size(); at += 7) {
    std::string cut = zip;
    cut.erase(at, 3);
    ASSERT_THAT(Parse(cut), IsDataLoss()) << at;
  }
}

TEST(ZipTest, DeflatedEntriesAreListedWithBothSizes) {
  const std::string content(5000, 'x');
  const RawEntry raw = DeflatedEntry("a/x.memmap", content);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto entries,
      Parse(RawZip({StoredEntry("a/meta.json", "{}"), raw})));
  ASSERT_EQ(entries.size(), 2);
  EXPECT_FALSE(entries[0].is_deflated);
  EXPECT_EQ(entries[0].packed_size, 2);
  EXPECT_TRUE(entries[1].is_deflated);
  EXPECT_EQ(entries[1].packed_size, raw.packed.size());
  EXPECT_EQ(entries[1].size, content.size());
  EXPECT_EQ(entries[1].crc, raw.crc);
}

TEST(ZipTest, DeflatedSizesThatAreNotThereAreDataLoss) {
  const RawEntry whole = DeflatedEntry("x", std::string(500, 'x'));
  RawEntry raw = whole;
  raw.size = 1032 * raw.packed.size();
  EXPECT_THAT(Parse(RawZip({raw})), IsOk());
  ++raw.size;
  EXPECT_THAT(Parse(RawZip({raw})), IsDataLoss("\"x\": size: got"));
  // Stored, the two sizes are one.
  raw.size = whole.size;
  raw.method = 0;
  EXPECT_THAT(Parse(RawZip({raw})), IsDataLoss("stored bytes, want 500"));
  // The stream would reach into the central directory.
  std::string zip = RawZip({whole});
  const size_t local = kZipLocalBytes + 1 + 4;
  Put<uint64_t>(local + 8, whole.packed.size() + 1, &zip);
  Put<uint32_t>(Central(zip, 0) + 20, whole.packed.size() + 1, &zip);
  EXPECT_THAT(Parse(zip), IsDataLoss("bytes before the central directory"));
}

TEST(ZipTest, OtherCompressionIsRefusedByNameWithWhatToDo) {
  for (const auto& [method, name] :
       {std::pair(9, "deflate64"), std::pair(12, "bzip2"),
        std::pair(14, "lzma"), std::pair(77, "unknown")}) {
    RawEntry raw = StoredEntry("a.memmap", "0123456789");
    raw.method = static_cast<uint16_t>(method);
    const std::string zip = RawZip({StoredEntry("meta.json", "{}"), raw});
    EXPECT_THAT(Parse(zip), IsInvalidArgument(absl::StrCat(
                                "\"a.memmap\": method: got ", method, " (",
                                name, "), want 0 (stored) or 8 (deflate)")));
    EXPECT_THAT(Parse(zip), IsInvalidArgument("zip -0"));
  }
}

TEST(ZipTest, EncryptionAndVolumesAreRefused) {
  std::string zip = MakeZip(SomeFiles());
  Put<uint16_t>(Central(zip, 0) + 8, 1, &zip);
  EXPECT_THAT(Parse(zip), IsInvalidArgument("encrypted"));
  zip = MakeZip(SomeFiles());
  Put<uint16_t>(zip.size() - 18, 1, &zip);
  EXPECT_THAT(Parse(zip), IsInvalidArgument("volumes"));
}

TEST(ZipTest, NamesThatLeadOutAreRefused) {
  for (const char* const name :
       {"../a", "a/../../b", "/etc/passwd", "", ".", "a//b", "\xFF", "a/./b"}) {
    EXPECT_THAT(Parse(MakeZip({{name, "x"}})), IsInvalidArgument("name"))
        << name;
  }
  EXPECT_THAT(Parse(MakeZip({{std::string("a\0b", 3), "x"}})),
              IsInvalidArgument("name"));
}

TEST(ZipTest, NamesTwiceAreDataLoss) {
  EXPECT_THAT(Parse(MakeZip({{"a", "x"}, {"b", ""}, {"a", "y"}})),
              IsDataLoss("\"a\": got it twice"));
}

TEST(ZipTest, OverlappingContentsAreDataLoss) {
  // Both records name the first header, and so the same content.
  const std::string one = MakeZip({{"a", "x"}}, /*is_aligned=*/false);
  const size_t central = Central(one, 0);
  const std::string record = one.substr(central, one.size() - 22 - central);
  std::string zip =
      one.substr(0, central) + record + record + one.substr(one.size() - 22);
  Put<uint16_t>(zip.size() - 14, 2, &zip);
  Put<uint16_t>(zip.size() - 12, 2, &zip);
  Put<uint32_t>(zip.size() - 10, 2 * record.size(), &zip);
  EXPECT_THAT(Parse(zip), IsDataLoss("inside"));
  // A content that holds another entry.
  std::string outer = MakeZip({{"a", MakeZip({{"b", "y"}}, false)}}, false);
  RILL_ASSERT_OK_AND_ASSIGN(const auto entries, Parse(outer));
  const size_t at = Central(outer, 0);
  const std::string first = outer.substr(at, outer.size() - 22 - at);
  std::string second = first;
  Put<uint32_t>(42, static_cast<uint32_t>(entries[0].offset), &second);
  second[kZipCentralBytes] = 'b';
  Put<uint32_t>(16, ExtendCrc32(0, "y"), &second);
  Put<uint32_t>(20, 1, &second);
  Put<uint32_t>(24, 1, &second);
  zip = outer.substr(0, at) + first + second + outer.substr(outer.size() - 22);
  Put<uint16_t>(zip.size() - 14, 2, &zip);
  Put<uint16_t>(zip.size() - 12, 2, &zip);
  Put<uint32_t>(zip.size() - 10, 2 * first.size(), &zip);
  EXPECT_THAT(Parse(zip), IsDataLoss("\"b\": it starts at"));
}

TEST(ZipTest, HeadersThatContradictTheDirectoryAreDataLoss) {
  const std::string whole = MakeZip(SomeFiles());
  const size_t central = Central(whole, 1);
  const size_t local = LoadLittle<uint32_t>(whole.data() + central + 42);
  struct Change {
    size_t at;
    uint32_t value;
  };
  for (const Change change :
       {Change{local + 14, 1}, Change{central + 16, 1},      // CRC.
        Change{central + 24, 9}, Change{central + 20, 9},    // Sizes.
        Change{central + 24, 11}, Change{local + 22, 7},     //
        Change{local + kZipLocalBytes, 0x61616161},          // Name.
        Change{central + 42, 1},                             // Offset.
        Change{central + 42, 0x7FFFFFFF}, Change{local, 0},  // Signature.
        Change{central, 0}}) {
    std::string zip = whole;
    Put<uint32_t>(change.at, change.value, &zip);
    EXPECT_THAT(Parse(zip), IsDataLoss()) << change.at << " " << change.value;
  }
}

TEST(ZipTest, SizesBehindTheContentMayBeZeroInItsHeader) {
  std::string zip = MakeZip({{"a", "xyz"}}, /*is_aligned=*/false);
  Put<uint16_t>(6, 8, &zip);
  Put<uint32_t>(14, 0, &zip);
  const size_t wide = kZipLocalBytes + 1 + 4;
  Put<uint64_t>(wide, 0, &zip);
  Put<uint64_t>(wide + 8, 0, &zip);
  EXPECT_THAT(Parse(zip), IsDataLoss("contradict"));
  Put<uint16_t>(Central(zip, 0) + 8, 8, &zip);
  RILL_ASSERT_OK_AND_ASSIGN(const auto entries, Parse(zip));
  EXPECT_EQ(zip.substr(entries[0].offset, entries[0].size), "xyz");
}

// Each field of each record, at its bounds.
TEST(ZipTest, AbsurdFieldsNeverCrash) {
  const std::string whole = MakeZip(SomeFiles());
  int broken = 0;
  for (size_t at = 0; at + 8 <= whole.size(); ++at) {
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{0xFFFFFFFF}, uint64_t{0x7FFFFFFF}, ~uint64_t{0},
          uint64_t{1} << 63}) {
      for (const bool is_wide : {false, true}) {
        std::string zip = whole;
        if (is_wide) {
          Put<uint64_t>(at, value, &zip);
        } else {
          Put<uint32_t>(at, static_cast<uint32_t>(value), &zip);
        }
        const auto entries = Parse(zip);
        if (!entries.ok()) {
          ++broken;
          EXPECT_THAT(entries.status().code(),
                      AnyOf(absl::StatusCode::kDataLoss,
                            absl::StatusCode::kInvalidArgument));
          continue;
        }
        for (const ZipEntry& entry : *entries) {
          ASSERT_GE(entry.offset, 0);
          ASSERT_GE(entry.size, 0);
          ASSERT_LE(entry.size,
                    static_cast<int64_t>(zip.size()) - entry.offset);
        }
      }
    }
  }
  EXPECT_GT(broken, 1000);
}

TEST(ZipTest, RandomEditsNeverCrash) {
  const Rng rng(11);
  const std::string whole = MakeZip(SomeFiles());
  for (int round = 0; round < 6000; ++round) {
    std::string zip = whole;
    const int64_t edits = 1 + rng.UniformInt(round, 0, 4);
    for (uint32_t i = 0; i < edits; ++i) {
      const size_t at = rng.UniformInt(round, 2 * i + 1, zip.size());
      zip[at] = static_cast<char>(rng.UniformInt(round, 2 * i + 2, 256));
    }
    const auto entries = Parse(zip);
    if (!entries.ok()) continue;
    for (const ZipEntry& entry : *entries) {
      ASSERT_LE(entry.offset + entry.size, static_cast<int64_t>(zip.size()));
    }
  }
}

}  // namespace
}  // namespace rill::formats_internal
