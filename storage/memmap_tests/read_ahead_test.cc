// SPDX-License-Identifier: Apache-2.0
// Rows that are not in memory (storage/rows/read_ahead.h).
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;
constexpr int64_t kSlots = 2000;
constexpr int64_t kBatch = 64;

int64_t MajorFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

// Brings what nobody has mapped to the disk and takes it out of memory.
void Evict(const std::string& directory) {
  for (const std::string& name : formats_internal::ListFiles(directory)) {
    const int fd = open(JoinPath(directory, name).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << name;
    EXPECT_EQ(fdatasync(fd), 0);
    EXPECT_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
  }
}

struct Form {
  StorageLayout layout;
  StorageOrder order;
};

class ReadAheadTest : public ::testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    TensorDictSpec spec;
    RILL_ASSERT_OK(
        spec.Set("id", LeafSpec{.dtype = DType::kInt64, .shape = {}}));
    // A row a page and more.
    RILL_ASSERT_OK(spec.Set("next/wide",
                            LeafSpec{.dtype = DType::kUInt8, .shape = {5000}}));
    options_ = {.directory = FreshPath("ahead"),
                .capacity = kSlots,
                .lanes = kLanes,
                .layout = GetParam().layout,
                .order = GetParam().order,
                .spec = spec};
    RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                              MemmapStorage::Create(options_));
    RILL_ASSERT_OK_AND_ASSIGN(TensorDict rows,
                              spec.Zero({kLanes, kSlots / kLanes}));
    int64_t* const ids = rows.Find("id")->data<int64_t>();
    uint8_t* const wide = rows.Find("next/wide")->data<uint8_t>();
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      ids[slot] = slot;
      wide[slot * 5000] = wide[slot * 5000 + 4999] = slot % 251;
    }
    RILL_ASSERT_OK(storage->Extend(rows).status());
  }

  // Reads random batches of the slots below `bound`; the rows must be theirs.
  void ReadBatches(const Storage& storage, uint64_t batches,
                   int64_t batch_rows = kBatch, int64_t bound = kSlots) {
    TensorDict rows;
    for (uint64_t batch = 0; batch < batches; ++batch) {
      std::vector<Slot> slots;
      for (int64_t k = 0; k < batch_rows; ++k) {
        slots.push_back(
            Rng(1).UniformInt(batch, static_cast<uint32_t>(k), bound));
      }
      RILL_ASSERT_OK(storage.Read(slots, &rows));
      const int64_t* const ids = rows.Find("id")->data<int64_t>();
      const uint8_t* const wide = rows.Find("next/wide")->data<uint8_t>();
      for (size_t k = 0; k < slots.size(); ++k) {
        ASSERT_EQ(ids[k], slots[k]);
        ASSERT_EQ(wide[k * 5000], slots[k] % 251);
        ASSERT_EQ(wide[k * 5000 + 4999], slots[k] % 251);
      }
    }
  }

  MemmapStorage::Options options_;
};

TEST_P(ReadAheadTest, RowsThatAreNotInMemoryComeABatchAtATime) {
  Evict(options_.directory);
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options_));
  const int64_t before = MajorFaults();
  ReadBatches(*storage, 20);
  // One and a half pages a row otherwise.
  EXPECT_LT(MajorFaults() - before, 20 * kBatch / 2);
}

TEST_P(ReadAheadTest, BatchesAreAnnouncedAgainWhenRowsComeFromTheDiskAgain) {
  Evict(options_.directory);
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options_));
  ReadBatches(*storage, 50, 8, /*bound=*/8);  // In memory soon.
  const int64_t before = MajorFaults();
  ReadBatches(*storage, 250, 8);
  // Two pages a row and more otherwise, of 1,264 rows.
  EXPECT_LT(MajorFaults() - before, 250 * 8 * 2 / 3);
}

TEST_P(ReadAheadTest, AppendsOverRowsThatAreNotInMemoryComeAPieceAtATime) {
  Evict(options_.directory);
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options_));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict row,
                            options_.spec.Zero({kLanes, 1}));
  const int64_t before = MajorFaults();
  for (int64_t step = 0; step < 600; ++step) {
    RILL_ASSERT_OK(storage->Extend(row).status());
  }
  // A fault a page otherwise, but for the first piece of each run.
  EXPECT_LT(MajorFaults() - before, 600);
}

TEST_P(ReadAheadTest, RowsAreTheSameWithMemoryAndWithout) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options_));
  ReadBatches(*storage, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ReadAheadTest,
    ::testing::Values(Form{StorageLayout::kRows, StorageOrder::kLaneMajor},
                      Form{StorageLayout::kColumns, StorageOrder::kLaneMajor},
                      Form{StorageLayout::kRows, StorageOrder::kTimeMajor}));

}  // namespace
}  // namespace rill
