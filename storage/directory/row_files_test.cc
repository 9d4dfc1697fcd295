// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/directory/row_files.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/device/buffer.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/small_disk.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

constexpr int64_t kRowBytes = 4096;
constexpr int64_t kDiskBytes = 1 << 20;

// Rows of a page each, in a file whose pieces are larger than the disk.
std::unique_ptr<RowFiles> MapPages(const std::string& directory) {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("x", LeafSpec::Unbounded(DType::kUInt8, {kRowBytes})));
  const Lanes lanes = {.count = 1, .capacity = 1 << 20};
  auto layout = RowLayout::Create(spec, lanes, StorageLayout::kRows,
                                  StorageOrder::kLaneMajor);
  RILL_EXPECT_OK(layout);
  return *RowFiles::Map(*layout, lanes, directory, RowFiles::Mode::kCreate);
}

absl::Status Reserve(RowFiles& files, int64_t first, int64_t count) {
  const SlotRange range = {.first = first, .count = count};
  return files.Reserve({&range, 1});
}

void Write(RowFiles& files, int64_t row) {
  std::memset(files.buffer()->data() + row * kRowBytes, 1, kRowBytes);
}

// SIGBUS, where a page is not there, fails the test.
TEST(RowFilesTest, ADiskThatIsSmallerThanAPieceTakesRowsUpToItsLastPage) {
  RunOnSmallDisk(kDiskBytes, [](const std::string& disk) {
    const auto files = MapPages(disk);
    int64_t rows = 0;
    while (Reserve(*files, rows, 1).ok()) Write(*files, rows++);
    EXPECT_GE(rows, kDiskBytes / kRowBytes - 8);
    EXPECT_THAT(Reserve(*files, rows, 1), IsResourceExhausted());
    RILL_EXPECT_OK(Reserve(*files, 0, rows));
  });
}

TEST(RowFilesTest, WhatFailsTakesNoPageFromRowsThatAreNotWrittenYet) {
  RunOnSmallDisk(kDiskBytes, [](const std::string& disk) {
    const auto files = MapPages(disk);
    RILL_ASSERT_OK(Reserve(*files, 3, 2));
    // By their count, as many of the rows that fail seem to be there already.
    RILL_ASSERT_OK(Reserve(*files, 1000, 16));
    const int64_t free =
        static_cast<int64_t>(std::filesystem::space(disk).available);
    EXPECT_THAT(Reserve(*files, 0, free / kRowBytes + 8),
                IsResourceExhausted());
    // Somebody else takes the rest.
    std::string rest(kDiskBytes, 'r');
    for (int i = 0; !rest.empty(); ++i) {
      const std::string path = absl::StrCat(disk, "/rest", i);
      if (!WriteFileAtomically(path, rest).ok()) rest.resize(rest.size() / 2);
    }
    EXPECT_THAT(Reserve(*files, 5, 1), IsResourceExhausted());
    Write(*files, 3);
    Write(*files, 4);
  });
}

}  // namespace
}  // namespace rill::storage_internal
