// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/zip/inflate.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/formats/zip/raw_zip.h"
#include "rill/formats/zip/zip_directory.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {
namespace {

// The first `bytes` of the only entry of a zip file, all of it where negative.
absl::StatusOr<std::string> Unpack(const RawEntry& raw, int64_t bytes = -1) {
  const std::string zip = RawZip({raw});
  RILL_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries,
                        ParseZipDirectory("Test", zip));
  std::string out(bytes < 0 ? entries[0].size : bytes, '?');
  RILL_RETURN_IF_ERROR(
      InflateEntry("Test: \"x\"", entries[0], zip, absl::MakeSpan(out)));
  return out;
}

// Random bytes, in runs so that they compress.
std::string Content(uint32_t seed, int64_t size) {
  const Rng rng(7);
  std::string content;
  for (uint32_t i = 0; static_cast<int64_t>(content.size()) < size; ++i) {
    content.append(1 + rng.UniformInt(seed, 2 * i, 40),
                   static_cast<char>(rng.UniformInt(seed, 2 * i + 1, 256)));
  }
  content.resize(size);
  return content;
}

TEST(InflateTest, GivesTheContentBackWholeOrItsBeginning) {
  uint32_t seed = 0;
  // Around the sizes of the pieces, too.
  for (const int64_t size : {0, 1, 2, 63, 1000, 65535, 65536, 65537, 262143,
                             262144, 262145, 1000003}) {
    const std::string content = Content(++seed, size);
    const RawEntry entry = DeflatedEntry("x", content);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, Unpack(entry));
    EXPECT_TRUE(whole == content) << size;
    for (const int64_t bytes : {int64_t{0}, size / 3, size - size / 100}) {
      RILL_ASSERT_OK_AND_ASSIGN(const std::string head, Unpack(entry, bytes));
      EXPECT_TRUE(head == content.substr(0, bytes)) << size << " " << bytes;
    }
  }
}

TEST(InflateTest, WhatDoesNotCompressComesBack) {
  const Rng rng(3);
  std::string noise(700000, '\0');
  for (size_t i = 0; i < noise.size(); ++i) {
    noise[i] = static_cast<char>(rng.UniformInt(i, 0, 256));
  }
  RawEntry entry = DeflatedEntry("x", noise);
  EXPECT_GE(entry.packed.size(), noise.size());
  EXPECT_THAT(Unpack(entry), IsOkAndHolds(noise));
  entry.packed.resize(600000);
  EXPECT_THAT(Unpack(entry), IsDataLoss("ends after"));
}

TEST(InflateTest, EveryTruncationIsDataLoss) {
  const RawEntry whole = DeflatedEntry("x", Content(1, 3000));
  for (size_t size = 0; size < whole.packed.size(); ++size) {
    RawEntry entry = whole;
    entry.packed.resize(size);
    // With few bytes, the content is more than they could hold.
    ASSERT_THAT(
        Unpack(entry),
        IsDataLoss(size < 3 ? "deflated ones, want at most" : "ends after"))
        << size;
  }
}

// A few bits stand for the same bytes: behind the stream's end, or of a
// distance to bytes that are equal.
TEST(InflateTest, EveryFlippedBitIsDataLossOrTheContent) {
  const std::string content = Content(2, 3000);
  const RawEntry whole = DeflatedEntry("x", content);
  const size_t bits = 8 * whole.packed.size();
  size_t same = 0;
  for (size_t bit = 0; bit < bits; ++bit) {
    RawEntry entry = whole;
    entry.packed[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const auto unpacked = Unpack(entry);
    if (unpacked.ok()) {
      ++same;
      EXPECT_TRUE(*unpacked == content) << bit;
      continue;
    }
    ASSERT_THAT(unpacked, IsDataLoss()) << bit;
    ASSERT_THAT(Unpack(entry, 10), IsDataLoss());
  }
  EXPECT_LT(same, bits / 20);
}

TEST(InflateTest, NoiseNeverCrashes) {
  const Rng rng(5);
  for (uint32_t round = 0; round < 3000; ++round) {
    RawEntry entry{.name = "x", .method = 8};
    entry.packed.resize(1 + rng.UniformInt(round, 0, 60));
    entry.size = rng.UniformInt(round, 1, 1032 * entry.packed.size());
    for (size_t i = 0; i < entry.packed.size(); ++i) {
      entry.packed[i] = static_cast<char>(rng.UniformInt(round, 2 + i, 256));
    }
    ASSERT_THAT(Unpack(entry), IsDataLoss());
  }
}

TEST(InflateTest, ASizeThatIsNotTheStreamsIsDataLoss) {
  const std::string content = Content(3, 5000);
  RawEntry entry = DeflatedEntry("x", content);
  entry.size = 4999;
  EXPECT_THAT(Unpack(entry), IsDataLoss("\"x\": got more bytes when inflated"));
  EXPECT_THAT(Unpack(entry, 10),
              IsDataLoss("more bytes when inflated, want 4999"));
  entry.size = 5001;
  EXPECT_THAT(Unpack(entry),
              IsDataLoss("got 5000 bytes when inflated, want 5001"));
  entry.size = 0;
  EXPECT_THAT(Unpack(entry), IsDataLoss("more bytes when inflated, want 0"));
}

TEST(InflateTest, BytesBehindTheStreamAreDataLoss) {
  for (const size_t more : {1, 1000, 300000}) {
    RawEntry entry = DeflatedEntry("x", Content(4, 500));
    entry.packed.append(more, '\0');
    EXPECT_THAT(Unpack(entry), IsDataLoss("bytes behind the deflate stream"));
  }
}

TEST(InflateTest, AnotherChecksumIsDataLoss) {
  RawEntry entry = DeflatedEntry("x", Content(5, 500));
  ++entry.crc;
  EXPECT_THAT(Unpack(entry), IsDataLoss("\"x\": CRC: got"));
  EXPECT_THAT(Unpack(entry, 0), IsDataLoss("\"x\": CRC: got"));
}

// Nothing is allocated for what a stream cannot hold, and all that it can hold
// comes back.
TEST(InflateTest, TheMostThatAStreamCanHoldIsTheLimit) {
  const std::string zeros(1 << 20, '\0');
  RawEntry entry = DeflatedEntry("x", zeros);
  EXPECT_LT(entry.packed.size(), 1040);  // zlib's is close to the limit.
  EXPECT_THAT(Unpack(entry), IsOkAndHolds(zeros));
  const int64_t most = 1032 * static_cast<int64_t>(entry.packed.size());
  entry.size = most;
  EXPECT_THAT(Unpack(entry), IsDataLoss("bytes when inflated"));
  entry.size = most + 1;
  EXPECT_THAT(Unpack(entry), IsDataLoss("deflated ones, want at most"));
  entry.packed.clear();
  entry.size = 1;
  EXPECT_THAT(Unpack(entry), IsDataLoss("out of 0 deflated ones"));
  entry.size = 0;
  EXPECT_THAT(Unpack(entry), IsDataLoss("ends after 0"));
}

}  // namespace
}  // namespace rill::formats_internal
