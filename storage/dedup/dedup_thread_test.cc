// SPDX-License-Identifier: Apache-2.0
// Readers beside writers of a DenseStorage with dedup_next. All of a row is a
// function of its id, so that a next/seen of another row, or half of one,
// shows.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

void Fill(int64_t id, bool is_next, int64_t width, std::byte* row) {
  // Every fifth step is an end.
  const int64_t seen = !is_next ? id : id % 5 == 0 ? -id : id + 1;
  for (int64_t at = 0; at < width; at += 8) {
    std::memcpy(row + at, &seen, sizeof(seen));
  }
}

// Rows first_id, first_id + 1, ...
TensorDict Rows(const Shape& shape, int64_t first_id, int64_t width) {
  TensorDict batch(shape);
  const int64_t n = shape.num_elements();
  auto ids = Tensor::Zeros(DType::kInt64, shape);
  EXPECT_THAT(ids, IsOk());
  for (int64_t i = 0; i < n; ++i) ids->data<int64_t>()[i] = first_id + i;
  RILL_EXPECT_OK(batch.Set("id", *ids));
  for (const bool is_next : {false, true}) {
    auto seen = Tensor::Empty(DType::kUInt8, shape.Concat({width}));
    EXPECT_THAT(seen, IsOk());
    for (int64_t i = 0; i < n; ++i) {
      Fill(first_id + i, is_next, width, seen->raw_data() + i * width);
    }
    RILL_EXPECT_OK(batch.Set(is_next ? "next/seen" : "seen", *seen));
  }
  return batch;
}

void ExpectWhole(const TensorDict& rows, int64_t width) {
  std::vector<std::byte> want(width);
  for (int64_t i = 0; i < rows.batch_shape()[0]; ++i) {
    const int64_t id = rows.Find("id")->data<int64_t>()[i];
    for (const bool is_next : {false, true}) {
      Fill(id, is_next, width, want.data());
      const std::byte* const got =
          rows.Find(is_next ? "next/seen" : "seen")->raw_data() + i * width;
      ASSERT_EQ(std::memcmp(got, want.data(), width), 0)
          << (is_next ? "next/seen" : "seen") << " of " << id;
    }
  }
}

struct Form {
  StorageOrder order;
  int64_t lane_rows;
  int64_t width;  // A multiple of 8.
  int64_t rounds;
};

class DedupThreadTest : public ::testing::TestWithParam<Form> {};

TEST_P(DedupThreadTest, ReadersNeverSeeHalfARow) {
  const auto [order, lane_rows, width, rounds] = GetParam();
  const int64_t capacity = 2 * lane_rows;
  auto created = DenseStorage::Create(
      {.capacity = capacity, .lanes = 2, .order = order, .dedup_next = true});
  ASSERT_THAT(created, IsOk());
  Storage& storage = **created;
  RILL_ASSERT_OK(storage.Extend(Rows({2, lane_rows}, 1, width)).status());
  EXPECT_GT(storage.MemoryUsage().saved, -capacity * width);
  std::atomic<int> writers_left{2};
  std::vector<std::thread> threads;
  // Made before, so that writers write most of the time.
  std::vector<TensorDict> batches;
  std::vector<TensorDict> patches;
  for (int64_t i = 0; i < 8; ++i) {
    batches.push_back(
        Rows({1 + i % 2, 1 + i % (lane_rows + 1)}, 1000 * (i + 1), width));
    patches.push_back(Rows({4}, 1000000 * (i + 1), width));
  }
  threads.emplace_back([&, rounds = rounds] {
    const Rng rng(1);
    for (int64_t i = 0; i < rounds; ++i) {
      const TensorDict& batch = batches[rng.UniformInt(i, 0, 8)];
      const int64_t first = rng.UniformInt(i, 1, 3 - batch.batch_shape()[0]);
      RILL_EXPECT_OK(storage.Extend(batch, {.first_lane = first}).status());
    }
    --writers_left;
  });
  threads.emplace_back([&, rounds = rounds] {
    const Rng rng(2);
    for (int64_t i = 0; i < 4 * rounds; ++i) {
      std::vector<Slot> slots;
      for (uint32_t k = 0; k < 3; ++k) {
        slots.push_back(rng.UniformInt(i, k, capacity));
      }
      // Neighbours of which one follows the other share.
      slots.push_back((slots.back() + 1) % capacity);
      RILL_EXPECT_OK(storage.WriteAt(slots, patches[rng.UniformInt(i, 3, 8)]));
    }
    --writers_left;
  });
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader, width = width] {
      const Rng rng(10 + reader);
      TensorDict rows;
      for (uint64_t i = 0; writers_left > 0 || i < 5; ++i) {
        // Mostly few, so that many miss the slots of a window but not those
        // before them.
        std::vector<Slot> slots;
        for (uint32_t k = 0; k < 1 + i % 4; ++k) {
          slots.push_back(rng.UniformInt(i, k, capacity));
        }
        RILL_ASSERT_OK(storage.Read(slots, &rows));
        ExpectWhole(rows, width);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A read finds whole rows, or says that they are not there.
TEST_P(DedupThreadTest, ReadersMeetClears) {
  const auto [order, lane_rows, width, rounds] = GetParam();
  auto created = DenseStorage::Create(
      {.capacity = lane_rows, .order = order, .dedup_next = true});
  ASSERT_THAT(created, IsOk());
  Storage& storage = **created;
  RILL_ASSERT_OK(storage.Extend(Rows({lane_rows}, 1, width)).status());
  std::atomic<bool> is_writing{true};
  std::thread reader([&, width = width] {
    TensorDict rows;
    for (uint64_t i = 0; is_writing || i < 5; ++i) {
      if (storage.Read({0, 1, 2}, &rows).ok()) ExpectWhole(rows, width);
    }
  });
  for (int64_t i = 1; i <= rounds / 4; ++i) {
    RILL_EXPECT_OK(storage.Clear());
    RILL_EXPECT_OK(
        storage.Extend(Rows({1 + i % lane_rows}, 100 * i, width)).status());
  }
  is_writing = false;
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(
    Forms, DedupThreadTest,
    ::testing::Values(Form{StorageOrder::kLaneMajor, 4, 64, 3000},
                      Form{StorageOrder::kTimeMajor, 100, 16, 300},
                      // A write has many windows.
                      Form{StorageOrder::kLaneMajor, 6, 24000, 300}));

}  // namespace
}  // namespace rill
