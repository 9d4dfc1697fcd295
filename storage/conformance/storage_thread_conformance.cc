// SPDX-License-Identifier: Apache-2.0
// Readers and writers at once. Rows are functions of their ids, so that a row
// that is half one and half another shows.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/conformance/storage_oracle.h"
#include "rill/tensors/dtype.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// The ids of rows, read back from a leaf that tells them; the rows must be
// wholly theirs.
std::vector<int64_t> WholeRows(const TensorDict& rows) {
  std::vector<int64_t> ids;
  auto host = rows.To(Device::Cpu());
  EXPECT_THAT(host, IsOk());
  auto versions = host->Flat<int64_t>("policy_version");
  EXPECT_THAT(versions, IsOk());
  for (const int64_t version : *versions) ids.push_back(version / 3);
  RILL_EXPECT_OK(host->CheckEqual(ConformanceRows(rows.batch_shape(), ids)));
  return ids;
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
        WholeRows(rows);
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
  std::thread extends([&storage, &writers_left] {
    for (int64_t i = 1; i <= 6; ++i) {
      const std::vector<int64_t> ids = SlotsFrom(100000 * i, 2 * 600);
      RILL_EXPECT_OK(storage.Extend(ConformanceRows({2, 600}, ids), {}));
    }
    --writers_left;
  });
  std::thread writes_in_place([&storage, &writers_left] {
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
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&storage, &writers_left, reader] {
      const Rng rng(100 + reader);
      TensorDict rows;
      for (uint64_t i = 0; writers_left > 0 || i < 5; ++i) {
        std::vector<Slot> slots;
        for (uint32_t k = 0; k < 64; ++k) {
          slots.push_back(rng.UniformInt(i, k, 2 * kLaneRows));
        }
        RILL_ASSERT_OK(storage.Read(slots, &rows));
        WholeRows(rows);
      }
    });
  }
  for (std::thread& thread : readers) thread.join();
  extends.join();
  writes_in_place.join();
}

// A row is shown whole: its values, which a copy of the row goes by, do not
// change while it is looked at.
TEST_P(StorageConformanceTest, RowsDoNotChangeWhileTheyAreShown) {
  constexpr int64_t kRows = 200;
  auto subject = Make(kRows, 1);
  Storage& storage = subject->storage();
  subject->ExtendAll(kRows);
  const TensorDictSpec rows_spec = storage.spec();
  const auto& leaves = rows_spec.leaves();
  std::atomic<bool> is_writing{true};
  std::thread writer([&storage, &is_writing] {
    for (int64_t i = 1; i <= 60; ++i) {
      RILL_EXPECT_OK(
          storage.Extend(ConformanceRows({1, 50}, SlotsFrom(1000 * i, 50))));
    }
    is_writing = false;
  });
  const Rng rng(9);
  for (uint64_t round = 0; is_writing || round < 5; ++round) {
    std::vector<Slot> slots;
    for (uint32_t k = 0; k < 30; ++k) {
      slots.push_back(rng.UniformInt(round, k, kRows));
    }
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      const LeafSpec& spec = leaves[leaf].spec;
      const int64_t bytes = spec.shape.num_elements() * DTypeSize(spec.dtype);
      const auto show = [&](size_t, const std::byte* row) {
        const std::vector<std::byte> before(row, row + bytes);
        std::this_thread::yield();
        EXPECT_TRUE(std::equal(before.begin(), before.end(), row));
        return absl::OkStatus();
      };
      RILL_EXPECT_OK(storage.ShowRows(slots, leaf, show));
    }
  }
  writer.join();
}

// A storage's content, as an oracle that took the same rows one after the
// other.
StorageOracle OracleOf(const Storage& storage) {
  const Lanes& lanes = storage.lanes();
  StorageOracle oracle(lanes);
  const std::vector<Cursor> cursors = storage.cursors();
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t written = cursors[lane].written;
    const int64_t live = std::min(written, lanes.capacity);
    oracle.Extend(lane, 1, written - live, SlotsFrom(0, written - live));
    std::vector<Slot> slots;
    for (int64_t step = written - live; step < written; ++step) {
      slots.push_back(lanes.SlotOf(lane, step % lanes.capacity));
    }
    TensorDict rows;
    EXPECT_THAT(storage.Read(slots, &rows), IsOk());
    oracle.Extend(lane, 1, live, WholeRows(rows));
  }
  return oracle;
}

// Every batch is in its lane as it was given, one behind the other, whichever
// threads wrote beside it. Observers know what is stored.
TEST_P(StorageConformanceTest, WritersSideBySideLeaveWholeBatchesInOrder) {
  constexpr int64_t kLaneRows = 64;
  constexpr int64_t kBatch = 8;
  constexpr int64_t kWriters = 4;
  auto subject = Make(2 * kLaneRows, 2);
  Storage& storage = subject->storage();
  subject->ExtendAll(3);
  std::vector<std::thread> writers;
  for (int64_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&storage, writer] {
      const int64_t lane = writer % 2;
      for (int64_t i = 0; i < 60; ++i) {
        const int64_t id = 100000 * (writer + 1) + kBatch * i;
        RILL_ASSERT_OK(
            storage.Extend(ConformanceRows({1, kBatch}, SlotsFrom(id, kBatch)),
                           {.first_lane = lane}));
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  const StorageOracle oracle = OracleOf(storage);
  EXPECT_EQ(subject->mirror().Compare(oracle), "");
  std::vector<int64_t> newest(kWriters + 1, 0);
  for (int64_t lane = 0; lane < 2; ++lane) {
    const int64_t written = oracle.cursors()[lane].written;
    ASSERT_EQ(written, 3 + kWriters / 2 * 60 * kBatch);
    for (int64_t step = written - 56; step < written; step += kBatch) {
      const auto id_at = [&](int64_t at) {
        return oracle.Id(lane * kLaneRows + at % kLaneRows, /*leaf=*/0);
      };
      const int64_t id = id_at(step);
      EXPECT_EQ(id % kBatch, 0);
      for (int64_t k = 0; k < kBatch; ++k) EXPECT_EQ(id_at(step + k), id + k);
      int64_t& last = newest[id / 100000];  // Of this writer.
      EXPECT_GT(id, last);
      last = id;
    }
  }
}

// Appends and writes in place of some of the same rows.
TEST_P(StorageConformanceTest, WritersOfTheSameRowsTakeTurns) {
  auto subject = Make(12, 3);
  Storage& storage = subject->storage();
  subject->ExtendAll(4);
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&storage, writer] {
      const Rng rng(writer);
      for (uint64_t i = 0; i < 100; ++i) {
        const int64_t id = static_cast<int64_t>(1000 * (writer + 1) + 10 * i);
        const int64_t lane = rng.UniformInt(i, 0, 3);
        if (rng.UniformInt(i, 1, 2) == 0) {
          const int64_t steps = 1 + rng.UniformInt(i, 2, 6);
          const int64_t lanes = 1 + rng.UniformInt(i, 3, 3 - lane);
          std::vector<int64_t> ids;
          for (int64_t k = 0; k < lanes * steps; ++k) ids.push_back(id + k);
          RILL_ASSERT_OK(storage.Extend(ConformanceRows({lanes, steps}, ids),
                                        {.first_lane = lane}));
        } else {
          std::vector<Slot> slots;
          for (uint32_t k = 0; k < 4; ++k) {
            slots.push_back(rng.UniformInt(i, 4 + k, 12));
          }
          RILL_ASSERT_OK(
              storage.WriteAt(slots, ConformanceRows({4}, SlotsFrom(id, 4))));
        }
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  EXPECT_EQ(subject->mirror().Compare(OracleOf(storage)), "");
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
          WholeRows(rows);
        } else {
          EXPECT_THAT(status, IsOutOfRange());
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
