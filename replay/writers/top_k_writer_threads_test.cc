// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

TensorDict Ranked(const std::vector<float>& ranks) {
  const auto n = static_cast<int64_t>(ranks.size());
  TensorDict rows({n});
  RILL_EXPECT_OK(rows.Set("next/reward", *Tensor::From<float>(ranks, {n, 1})));
  return rows;
}

// Highest first.
std::vector<float> Stored(const Storage& storage) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < storage.size(); ++slot) slots.push_back(slot);
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  const float* const ranks = rows.Find("next/reward")->data<float>();
  std::vector<float> stored(ranks, ranks + slots.size());
  std::sort(stored.begin(), stored.end(), std::greater<>());
  return stored;
}

TEST(TopKWriterThreadsTest, TheBestOfAllThreadsStay) {
  constexpr int64_t kThreads = 3;
  constexpr int64_t kBatches = 40;
  auto dense = DenseStorage::Create({.capacity = 16});
  RILL_ASSERT_OK(dense);
  const std::shared_ptr<Storage> storage = *std::move(dense);
  auto made = TopKWriter::Create({.k = 10});
  RILL_ASSERT_OK(made);
  const std::unique_ptr<Writer> writer = *std::move(made);
  RILL_ASSERT_OK(writer->Attach(storage));
  // Every number of [0, 3 * 3 * 40) once, here and there.
  const auto rank = [](int64_t i) {
    return static_cast<float>(i * 77 % (3 * kThreads * kBatches));
  };
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t batch = 0; batch < kBatches; ++batch) {
        const int64_t first = 3 * (kBatches * thread + batch);
        RILL_ASSERT_OK(writer->Extend(
            Ranked({rank(first), rank(first + 1), rank(first + 2)})));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> want;
  for (int64_t i = 1; i <= 10; ++i) {
    want.push_back(static_cast<float>(3 * kThreads * kBatches - i));
  }
  EXPECT_EQ(Stored(*storage), want);
}

TEST(TopKWriterThreadsTest, WhatOthersWriteMeanwhileIsRankedInTheEnd) {
  auto dense = DenseStorage::Create({.capacity = 4});
  RILL_ASSERT_OK(dense);
  const std::shared_ptr<Storage> storage = *std::move(dense);
  auto made = TopKWriter::Create({});
  RILL_ASSERT_OK(made);
  const std::unique_ptr<Writer> writer = *std::move(made);
  RILL_ASSERT_OK(writer->Attach(storage));
  RILL_ASSERT_OK(writer->Extend(Ranked({1, 2, 3, 4})));
  std::thread other([&] {
    for (int64_t i = 0; i < 100; ++i) {
      RILL_ASSERT_OK(
          storage->WriteAt({i % 4}, Ranked({static_cast<float>(i % 13)})));
    }
  });
  for (int64_t i = 0; i < 100; ++i) {
    RILL_ASSERT_OK(writer->Extend(Ranked({static_cast<float>(i % 11)})));
  }
  other.join();
  std::vector<float> want = Stored(*storage);
  want.back() = 100;
  std::rotate(want.begin(), want.end() - 1, want.end());
  RILL_ASSERT_OK(writer->Extend(Ranked({100})));
  EXPECT_EQ(Stored(*storage), want);
}

}  // namespace
}  // namespace rill
