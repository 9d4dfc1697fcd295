// SPDX-License-Identifier: Apache-2.0
// Readers and writers at once. Rows are functions of their ids, so that a row
// that is half one and half another shows.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// The ids of rows, read back from a leaf that tells them; the rows must be
// wholly theirs.
void ExpectWholeRows(const TensorDict& rows) {
  auto host = rows.To(Device::Cpu());
  ASSERT_THAT(host, IsOk());
  auto versions = host->Flat<int64_t>("policy_version");
  ASSERT_THAT(versions, IsOk());
  std::vector<int64_t> ids;
  for (const int64_t version : *versions) ids.push_back(version / 3);
  RILL_ASSERT_OK(host->CheckEqual(ConformanceRows(rows.batch_shape(), ids)));
}

TEST_P(StorageConformanceTest, ReadersNeverSeeHalfARow) {
  auto subject = Make(8, 2);
  Storage& storage = subject->storage();
  subject->ExtendAll(4);  // From now on every slot is live.
  std::atomic<bool> is_writing{true};
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&storage, &is_writing, reader] {
      const Rng rng(reader);
      TensorDict rows;
      for (uint64_t i = 0; is_writing || i < 20; ++i) {
        std::vector<Slot> slots;
        for (uint32_t k = 0; k < 4; ++k) {
          slots.push_back(rng.UniformInt(i, k, 8));
        }
        RILL_ASSERT_OK(storage.Read(slots, &rows));
        ExpectWholeRows(rows);
        EXPECT_EQ(storage.size(), 8);
      }
    });
  }
  std::vector<std::thread> writers;
  for (int64_t lane = 0; lane < 2; ++lane) {
    writers.emplace_back([&storage, lane] {
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t steps = 1 + i % 5;
        const std::vector<int64_t> ids =
            SlotsFrom(1000 * (lane + 1) + 6 * i, steps);
        RILL_ASSERT_OK(storage.Extend(ConformanceRows({1, steps}, ids),
                                      {.first_lane = lane}));
        if (i % 10 == 0) {
          const std::vector<int64_t> row = {ids[0]};
          RILL_ASSERT_OK(
              storage.WriteAt({lane * 4}, ConformanceRows({1}, row)));
        }
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  is_writing = false;
  for (std::thread& thread : threads) thread.join();
}

// Batches of many windows, of several lanes, and rows here and there.
TEST_P(StorageConformanceTest, ReadersNeverSeeHalfARowOfLongBatches) {
  constexpr int64_t kLaneRows = 700;
  auto subject = Make(2 * kLaneRows, 2);
  Storage& storage = subject->storage();
  subject->ExtendAll(kLaneRows);
  std::atomic<int> writers_left{2};
  std::vector<std::thread> threads;
  threads.emplace_back([&storage, &writers_left] {
    for (int64_t i = 1; i <= 6; ++i) {
      const std::vector<int64_t> ids = SlotsFrom(100000 * i, 2 * 600);
      RILL_EXPECT_OK(storage.Extend(ConformanceRows({2, 600}, ids), {}));
    }
    --writers_left;
  });
  threads.emplace_back([&storage, &writers_left] {
    const Rng rng(7);
    for (uint64_t i = 0; i < 30; ++i) {
      std::vector<Slot> slots;
      for (uint32_t k = 0; k < 300; ++k) {
        slots.push_back(rng.UniformInt(i, k, 2 * kLaneRows));
      }
      RILL_EXPECT_OK(storage.WriteAt(
          slots, ConformanceRows({300}, SlotsFrom(1000 * (i + 1), 300))));
    }
    --writers_left;
  });
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&storage, &writers_left, reader] {
      const Rng rng(100 + reader);
      TensorDict rows;
      for (uint64_t i = 0; writers_left > 0 || i < 5; ++i) {
        std::vector<Slot> slots;
        for (uint32_t k = 0; k < 64; ++k) {
          slots.push_back(rng.UniformInt(i, k, 2 * kLaneRows));
        }
        RILL_ASSERT_OK(storage.Read(slots, &rows));
        ExpectWholeRows(rows);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A read finds rows or says that they are not there.
TEST_P(StorageConformanceTest, ReadersMeetClearsAndLoads) {
  const std::string directory =
      JoinPath(::testing::TempDir(), "storage_meets_readers");
  auto subject = Make(8);
  Storage& storage = subject->storage();
  subject->ExtendAll(5);
  RILL_ASSERT_OK(storage.Save(directory));
  std::atomic<bool> is_writing{true};
  std::vector<std::thread> threads;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&storage, &is_writing] {
      TensorDict rows;
      for (uint64_t i = 0; is_writing || i < 5; ++i) {
        const absl::Status status = storage.Read({4, 0, 3, 1}, &rows);
        if (status.ok()) {
          ExpectWholeRows(rows);
        } else {
          EXPECT_THAT(status, StatusIs(absl::StatusCode::kOutOfRange));
        }
      }
    });
  }
  for (int64_t i = 1; i <= 10; ++i) {
    RILL_EXPECT_OK(storage.Load(directory));
    RILL_EXPECT_OK(storage.Extend(ConformanceRows({6}, SlotsFrom(10 * i, 6))));
    if (i % 2 == 0) {
      RILL_EXPECT_OK(storage.Clear());
    }
    RILL_EXPECT_OK(storage.Extend(ConformanceRows({3}, SlotsFrom(90 * i, 3))));
    if (i % 4 == 0) {
      RILL_EXPECT_OK(storage.Clear());
    }
  }
  is_writing = false;
  for (std::thread& thread : threads) thread.join();
}

TEST_P(StorageConformanceTest, ObserversComeAndGoWhileOthersWrite) {
  auto subject = Make(8);
  Storage& storage = subject->storage();
  std::thread writer([&storage] {
    for (int64_t i = 0; i < 50; ++i) {
      const std::vector<int64_t> ids = SlotsFrom(10 * i, 3);
      RILL_ASSERT_OK(storage.Extend(ConformanceRows({1, 3}, ids), {}));
    }
  });
  for (int i = 0; i < 20; ++i) {
    MirrorObserver visitor;
    RILL_EXPECT_OK(storage.AddObserver(&visitor));
    storage.RemoveObserver(&visitor);
    EXPECT_GE(visitor.num_calls(), 1);
  }
  writer.join();
  EXPECT_EQ(storage.cursors()[0].written, 150);
}

}  // namespace
}  // namespace rill
