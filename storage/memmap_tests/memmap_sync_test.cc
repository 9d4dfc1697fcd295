// SPDX-License-Identifier: Apache-2.0
// The order in which Sync brings files to the disk, by what a loss of power
// would leave: each file as it was when it was last synced.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/slots/slot.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;

// The bytes that are on the disk for certain. The sync of number `fail_at`
// fails.
class Disk {
 public:
  explicit Disk(std::string directory) : directory_(std::move(directory)) {}

  // Everything as it is now.
  void TakeAll() {
    for (const std::string& name : formats_internal::ListFiles(directory_)) {
      Take(JoinPath(directory_, name));
    }
  }

  // Sync of `storage`; tells the files in the order of their syncs.
  absl::Status Sync(Storage* storage, int fail_at,
                    std::vector<std::string>* order) {
    order->clear();
    const ScopedFaultHook hook(
        [&](absl::string_view point, absl::string_view path) -> absl::Status {
          if (point != "file.sync") return absl::OkStatus();
          if (static_cast<int>(order->size()) == fail_at) {
            return absl::DataLossError("the disk is gone");
          }
          order->push_back(std::string(path.substr(directory_.size() + 1)));
          Take(std::string(path));
          return absl::OkStatus();
        });
    return storage->Sync();
  }

  // The disk after a loss of power.
  std::string AfterLossOfPower() const {
    const std::string copy = FreshPath("after");
    RILL_EXPECT_OK(CopyTree(directory_, copy));
    for (const auto& [path, content] : synced_) {
      formats_internal::WriteInPlace(
          JoinPath(copy, path.substr(directory_.size() + 1)), content);
    }
    return copy;
  }

 private:
  void Take(const std::string& path) {
    auto content = ReadFile(path);
    RILL_ASSERT_OK(content.status());
    synced_[path] = *std::move(content);
  }

  const std::string directory_;
  std::map<std::string, std::string> synced_;
};

// The rows of ids 1 to `rows` are there, and no others.
void ExpectHolds(const std::string& directory, int64_t rows) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            MemmapStorage::Open({.directory = directory}));
  ASSERT_EQ(storage->cursors()[0].written, rows);
  TensorDict read;
  RILL_ASSERT_OK(storage->Read(SlotsFrom(0, rows), &read));
  RILL_EXPECT_OK(read.CheckEqual(ConformanceRows({rows}, SlotsFrom(1, rows))));
}

class MemmapSyncTest : public ::testing::TestWithParam<StorageLayout> {};

TEST_P(MemmapSyncTest, RowsComeToTheDiskBeforeTheRecordThatTellsOfThem) {
  const std::string directory = FreshPath("sync");
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                            MemmapStorage::Create({.directory = directory,
                                                   .capacity = 100,
                                                   .layout = GetParam(),
                                                   .spec = ConformanceSpec()}));
  Disk disk(directory);
  disk.TakeAll();
  std::vector<std::string> order;
  int64_t written = 0;
  const auto extend = [&] {
    RILL_ASSERT_OK(
        storage->Extend(ConformanceRows({5}, SlotsFrom(written + 1, 5)))
            .status());
    written += 5;
  };
  extend();
  RILL_ASSERT_OK(disk.Sync(storage.get(), -1, &order));
  ExpectHolds(disk.AfterLossOfPower(), written);
  const std::vector<std::string> all = order;
  ASSERT_EQ(all.back(), "rill.commit");
  // Every file of rows, and nothing but.
  int64_t row_files = 0;
  for (const std::string& name : formats_internal::ListFiles(directory)) {
    if (!absl::EndsWith(name, ".memmap") && name != "rows.bin") continue;
    ++row_files;
    EXPECT_THAT(all, ::testing::Contains(name));
  }
  ASSERT_EQ(static_cast<int64_t>(all.size()), row_files + 1);

  // Whichever sync fails, the record on the disk tells of nothing that is not
  // there; the next Sync makes up for it.
  int64_t synced = written;
  for (int fail_at = 0; fail_at <= row_files; ++fail_at) {
    extend();
    EXPECT_THAT(disk.Sync(storage.get(), fail_at, &order), IsDataLoss());
    ASSERT_EQ(static_cast<int>(order.size()), fail_at);
    ExpectHolds(disk.AfterLossOfPower(), synced);
    if (fail_at % 2 == 0) continue;
    RILL_ASSERT_OK(disk.Sync(storage.get(), -1, &order));
    EXPECT_EQ(order, all);
    synced = written;
    ExpectHolds(disk.AfterLossOfPower(), synced);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, MemmapSyncTest,
                         ::testing::Values(StorageLayout::kRows,
                                           StorageLayout::kColumns),
                         [](const auto& info) {
                           return std::string(StorageLayoutName(info.param));
                         });

}  // namespace
}  // namespace rill
