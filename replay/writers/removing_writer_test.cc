// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/removing_writer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/samplers/prioritized/prioritized_selector.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/uniform_selector.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Rows of numbers, with these priorities where there are any.
TensorDict Rows(const std::vector<int64_t>& numbers,
                const std::vector<float>& priorities = {}) {
  const auto n = static_cast<int64_t>(numbers.size());
  TensorDict rows({n});
  RILL_EXPECT_OK(rows.Set("number", *Tensor::From<int64_t>(numbers, {n})));
  if (!priorities.empty()) {
    RILL_EXPECT_OK(rows.Set("priority", *Tensor::From<float>(priorities, {n})));
  }
  return rows;
}
TensorDict Range(int64_t first, int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return Rows(numbers);
}

std::shared_ptr<Storage> Dense(int64_t capacity, int64_t lanes = 1) {
  return *DenseStorage::Create({.capacity = capacity, .lanes = lanes});
}

std::unique_ptr<Writer> Make(std::shared_ptr<Storage> storage,
                             RemovingWriterOptions options = {}) {
  auto writer = MakeRemovingWriter(std::move(options));
  RILL_EXPECT_OK(writer->Attach(std::move(storage)));
  return writer;
}

// By slot.
std::vector<int64_t> Stored(const Storage& storage) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < storage.size(); ++slot) slots.push_back(slot);
  if (slots.empty()) return {};
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  const int64_t* const numbers = rows.Find("number")->data<int64_t>();
  return {numbers, numbers + slots.size()};
}

absl::Status RunExample(std::shared_ptr<Storage> storage,
                        const TensorDict& steps) {
  RILL_ASSIGN_OR_RETURN(auto lowest, MakeMinHeapSelector());
  const auto writer = MakeRemovingWriter({.remover = std::move(lowest)});
  RILL_RETURN_IF_ERROR(writer->Attach(storage));
  RILL_RETURN_IF_ERROR(writer->Extend(steps).status());
  return absl::OkStatus();
}

TEST(RemovingWriterTest, Example) {
  const auto storage = Dense(3);
  RILL_ASSERT_OK(RunExample(storage, Rows({0, 1, 2}, {3, 1, 2})));
  EXPECT_THAT(Stored(*storage), ElementsAre(0, 1, 2));
}

TEST(RemovingWriterTest, FifoPutsRowsWhereARingDoes) {
  const Rng rng(/*seed=*/3);
  for (const int64_t capacity : {1, 2, 7, 16}) {
    const auto ring = Dense(capacity);
    const auto storage = Dense(capacity);
    const auto writer = Make(storage);
    int64_t number = 0;
    for (uint32_t step = 0; step < 60; ++step) {
      const int64_t count = rng.UniformInt(capacity, step, 2 * capacity + 3);
      RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult want,
                                ring->Extend(Range(number, count)));
      RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult got,
                                writer->Extend(Range(number, count)));
      EXPECT_EQ(got.rows_written, want.rows_written);
      EXPECT_EQ(got.rows_dropped, want.rows_dropped);
      number += count;
      ASSERT_EQ(Stored(*storage), Stored(*ring)) << "step " << step;
    }
  }
}

TEST(RemovingWriterTest, RowsThatAreMeantToGoGo) {
  const auto lowest = Dense(4);
  const auto highest = Dense(4);
  const auto newest = Dense(4);
  const auto min = Make(lowest, {.remover = *MakeMinHeapSelector()});
  const auto max = Make(highest, {.remover = *MakeMaxHeapSelector()});
  const auto lifo = Make(newest, {.remover = MakeLifoSelector()});
  for (Writer* const writer : {min.get(), max.get(), lifo.get()}) {
    RILL_ASSERT_OK(writer->Extend(Rows({0, 1, 2, 3}, {3, 1, 4, 2})));
    RILL_ASSERT_OK(writer->Extend(Rows({4, 5}, {9, 0.5})));
    RILL_ASSERT_OK(writer->Extend(Rows({6}, {1})));
  }
  // Lowest: 1 and 3 go, then 5. Highest: 2 and 0, then 4.
  EXPECT_THAT(Stored(*lowest), ElementsAre(0, 4, 2, 6));
  EXPECT_THAT(Stored(*highest), ElementsAre(5, 1, 6, 3));
  // 3 and 2, then the newer of the two.
  EXPECT_THAT(Stored(*newest), ElementsAre(0, 1, 6, 4));
}

TEST(RemovingWriterTest, WrittenPrioritiesAreHeard) {
  const auto storage = Dense(3);
  const auto writer = Make(storage, {.remover = *MakeMinHeapSelector()});
  RILL_ASSERT_OK(writer->Extend(Rows({0, 1, 2}, {1, 2, 3})));
  TensorDict priority({1});
  RILL_ASSERT_OK(priority.Set("priority", *Tensor::From<float>({0.5}, {1})));
  RILL_ASSERT_OK(writer->WriteAt({2}, priority));
  RILL_ASSERT_OK(writer->Extend(Rows({3}, {4})));
  EXPECT_THAT(Stored(*storage), ElementsAre(0, 1, 3));
}

TEST(RemovingWriterTest, VictimsOfABatchAreDifferentAndOnlyTheSeedsAffair) {
  const auto run = [](uint64_t seed) {
    const auto storage = Dense(20);
    const auto writer =
        Make(storage, {.remover = MakeUniformSelector(), .seed = seed});
    RILL_EXPECT_OK(writer->Extend(Range(0, 20)));
    for (int64_t first = 20; first < 200; first += 9) {
      const auto result = writer->Extend(Range(first, 9));
      RILL_EXPECT_OK(result);
      EXPECT_EQ(result->rows_written, 9);
      const std::vector<int64_t> stored = Stored(*storage);
      for (int64_t number = first; number < first + 9; ++number) {
        EXPECT_THAT(stored, ::testing::Contains(number));
      }
    }
    return Stored(*storage);
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

// All but one are next to never drawn.
TEST(RemovingWriterTest, RemoverThatNamesOneRowOnlyTakesAllTheSame) {
  const auto storage = Dense(4);
  const auto writer =
      Make(storage, {.remover = *PrioritizedSelector::Create({.alpha = 1})});
  RILL_ASSERT_OK(
      writer->Extend(Rows({0, 1, 2, 3}, {1e-20f, 1e-20f, 1e20f, 1e-20f})));
  RILL_ASSERT_OK(writer->Extend(Rows({4}, {1e-20f})));
  EXPECT_THAT(Stored(*storage), ElementsAre(0, 1, 4, 3));
  RILL_ASSERT_OK(writer->Extend(Rows({5}, {1e20f})));
  RILL_ASSERT_OK(writer->Extend(Rows({6, 7, 8, 9}, {1, 1, 1, 1})));
  EXPECT_THAT(Stored(*storage), UnorderedElementsAre(6, 7, 8, 9));
}

TEST(RemovingWriterTest, WhatDoesNotFitChangesNothing) {
  EXPECT_THAT(MakeRemovingWriter()->Attach(Dense(8, /*lanes=*/2)),
              IsInvalidArgument("got 2 lanes, want 1"));
  const auto storage = Dense(3);
  const auto writer =
      Make(storage, {.remover = *PrioritizedSelector::Create({.epsilon = 0})});
  RILL_ASSERT_OK(writer->Extend(Rows({0, 1, 2}, {0, 0, 0})));
  EXPECT_THAT(writer->Extend(Rows({3})), IsInvalidArgument());
  EXPECT_THAT(writer->Extend(TensorDict()), IsInvalidArgument("want [time]"));
  EXPECT_THAT(writer->Extend(Rows({3}, {1})),
              IsFailedPrecondition(
                  "RemovingWriter::Extend: PrioritizedRemover::Plan: sum "
                  "of the priorities of 3 rows: got 0"));
  EXPECT_THAT(Stored(*storage), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace rill
