// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/top_k_writer.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/slots/generations.h"
#include "rill/storage/dense_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

using Reduction = TopKWriter::Reduction;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Rows [n] of a rank and a number that goes with it.
TensorDict Ranked(const std::vector<float>& ranks,
                  const std::vector<int64_t>& numbers) {
  const auto n = static_cast<int64_t>(ranks.size());
  TensorDict rows({n});
  RILL_EXPECT_OK(rows.Set("next/reward", *Tensor::From<float>(ranks, {n, 1})));
  RILL_EXPECT_OK(rows.Set("number", *Tensor::From<int64_t>(numbers, {n})));
  return rows;
}
TensorDict Ranked(const std::vector<float>& ranks) {
  std::vector<int64_t> numbers(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    numbers[i] = static_cast<int64_t>(1000 * ranks[i]);
  }
  return Ranked(ranks, numbers);
}

std::shared_ptr<Storage> Dense(int64_t capacity, Device device = Device::Cpu(),
                               int64_t lanes = 1) {
  return *DenseStorage::Create(
      {.capacity = capacity, .lanes = lanes, .device = device});
}

std::unique_ptr<Writer> Make(std::shared_ptr<Storage> storage,
                             const TopKWriter::Options& options = {}) {
  auto writer = TopKWriter::Create(options);
  EXPECT_THAT(writer, IsOk());
  RILL_EXPECT_OK((*writer)->Attach(std::move(storage)));
  return *std::move(writer);
}

std::vector<float> Stored(const Storage& storage) {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < storage.size(); ++slot) slots.push_back(slot);
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  if (slots.empty()) return {};
  rows = *rows.To(Device::Cpu());
  const float* const ranks = rows.Find("next/reward")->data<float>();
  const int64_t* const numbers = rows.Find("number")->data<int64_t>();
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(numbers[i], static_cast<int64_t>(1000 * ranks[i]));
  }
  return {ranks, ranks + slots.size()};
}

absl::Status RunExample(std::shared_ptr<Storage> storage,
                        const TensorDict& steps) {
  RILL_ASSIGN_OR_RETURN(auto writer, TopKWriter::Create({.k = 100}));
  RILL_RETURN_IF_ERROR(writer->Attach(storage));
  RILL_RETURN_IF_ERROR(writer->Extend(steps).status());
  return absl::OkStatus();
}

TEST(TopKWriterTest, Example) {
  const auto storage = Dense(100);
  RILL_ASSERT_OK(RunExample(storage, Ranked({3, 1, 2})));
  EXPECT_THAT(Stored(*storage), ElementsAre(3, 1, 2));
}

// TorchRL's own example: one place, ranks 0 to 9, 10 to 19, 0 to 9.
TEST(TopKWriterTest, OnePlaceHoldsTheBestEverSeen) {
  const auto storage = Dense(1);
  const auto writer = Make(storage);
  const auto offer = [&](int64_t first) {
    std::vector<float> ranks;
    for (int64_t i = first; i < first + 10; ++i) {
      ranks.push_back(static_cast<float>(i));
    }
    RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                              writer->Extend(Ranked(ranks)));
    EXPECT_EQ(result.rows_written + result.rows_dropped, 10);
  };
  offer(0);
  EXPECT_THAT(Stored(*storage), ElementsAre(9));
  offer(10);
  EXPECT_THAT(Stored(*storage), ElementsAre(19));
  offer(0);
  EXPECT_THAT(Stored(*storage), ElementsAre(19));
}

TEST(TopKWriterTest, KeepsWhatSortingKeeps) {
  const Rng rng(31);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const int64_t capacity = 1 + rng.UniformInt(seed, 0, 9);
    const int64_t k = rng.UniformInt(seed, 1, capacity + 1);
    const Device device = seed % 3 == 0 ? Device::Fake(0) : Device::Cpu();
    const auto storage = Dense(capacity, device);
    const auto writer = Make(storage, {.k = k});
    const auto most = static_cast<size_t>(k == 0 ? capacity : k);
    std::vector<float> best;
    for (uint32_t batch = 0; batch < 12; ++batch) {
      std::vector<float> ranks;
      const int64_t n = rng.UniformInt(seed, 10 + batch, 7);
      for (int64_t i = 0; i < n; ++i) {
        const auto draw = static_cast<uint32_t>(100 * batch + 1000 + i);
        ranks.push_back(
            static_cast<float>(rng.UniformInt(seed, draw, 40) - 20));
      }
      const std::vector<float> before = Stored(*storage);
      RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                                writer->Extend(Ranked(ranks)));
      best.insert(best.end(), ranks.begin(), ranks.end());
      std::sort(best.begin(), best.end(), std::greater<>());
      if (best.size() > most) best.resize(most);
      std::vector<float> stored = Stored(*storage);
      int64_t changed = static_cast<int64_t>(stored.size() - before.size());
      for (size_t i = 0; i < before.size(); ++i) {
        changed += stored[i] != before[i];
      }
      EXPECT_EQ(result.rows_written, changed);
      EXPECT_EQ(result.rows_dropped, n - changed);
      std::sort(stored.begin(), stored.end(), std::greater<>());
      ASSERT_EQ(stored, best);
    }
  }
}

TEST(TopKWriterTest, ARowOfManyValuesIsRankedByTheirReduction) {
  // Rows of three steps.
  const std::vector<float> values = {1, 2, 6, 4, 4, 5};
  const std::vector<std::pair<Reduction, int64_t>> winners = {
      {Reduction::kSum, 1},
      {Reduction::kMean, 1},
      {Reduction::kMedian, 1},
      {Reduction::kMin, 1},
      {Reduction::kMax, 0}};
  for (const auto& [reduction, winner] : winners) {
    const auto storage = Dense(1);
    const auto writer =
        Make(storage, {.rank_key = "rank", .reduction = reduction});
    TensorDict rows({2});
    RILL_ASSERT_OK(rows.Set("rank", *Tensor::From<float>(values, {2, 3, 1})));
    RILL_ASSERT_OK(writer->Extend(rows));
    TensorDict best;
    RILL_ASSERT_OK(storage->Read({0}, &best));
    EXPECT_EQ(best.Find("rank")->data<float>()[0], values[3 * winner]);
  }
}

// Rows [n, width] of int64 ranks.
TensorDict RankedWhole(const std::vector<int64_t>& values, int64_t width) {
  const int64_t n = static_cast<int64_t>(values.size()) / width;
  TensorDict rows({n});
  RILL_EXPECT_OK(
      rows.Set("next/reward", *Tensor::From<int64_t>(values, {n, width})));
  return rows;
}
int64_t FirstValueOf(const Storage& storage, Slot slot) {
  TensorDict row;
  RILL_EXPECT_OK(storage.Read({slot}, &row));
  return row.Find("next/reward")->data<int64_t>()[0];
}

TEST(TopKWriterTest, IntegersThatDoublesDoNotTellApartAreOrdered) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int64_t low :
       {int64_t{1} << 53, -(int64_t{1} << 53) - 1, kMax - 1, -kMax - 1}) {
    const auto storage = Dense(1);
    const auto writer = Make(storage);
    RILL_ASSERT_OK(writer->Extend(RankedWhole({low}, 1)));
    RILL_ASSERT_OK(writer->Extend(RankedWhole({low + 1, low}, 1)));
    EXPECT_EQ(FirstValueOf(*storage, 0), low + 1);
    // Also where they are read from the storage.
    const auto another = Make(storage);
    RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                              another->Extend(RankedWhole({low, low + 1}, 1)));
    EXPECT_EQ(result.rows_written, 0);
  }
}

TEST(TopKWriterTest, ReductionsOfIntegersAreExact) {
  constexpr int64_t kBig = int64_t{1} << 53;
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto winner = [](Reduction reduction, int64_t width,
                         const std::vector<int64_t>& values) {
    const auto storage = Dense(1);
    const auto writer = Make(storage, {.reduction = reduction});
    RILL_EXPECT_OK(writer->Extend(RankedWhole(values, width)));
    return FirstValueOf(*storage, 0);
  };
  EXPECT_EQ(winner(Reduction::kMin, 2, {kBig, kBig + 5, kBig + 1, kBig + 2}),
            kBig + 1);
  EXPECT_EQ(winner(Reduction::kMax, 2, {kBig, 0, kBig + 1, 0}), kBig + 1);
  EXPECT_EQ(winner(Reduction::kMedian, 3, {kBig, 0, kHuge, kBig + 1, 0, kHuge}),
            kBig + 1);
  EXPECT_EQ(winner(Reduction::kSum, 2, {kBig, 0, kBig - 1, 2}), kBig - 1);
  // 3 * 2^62 and one more: no int64.
  EXPECT_EQ(winner(Reduction::kSum, 3,
                   {kHuge, kHuge, kHuge, kHuge + 1, kHuge, kHuge}),
            kHuge + 1);
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMean}) {
    EXPECT_EQ(winner(reduction, 3, {-kHuge - 1, -kHuge, -kHuge, 7, 7, 7}), 7);
  }
}

// Writes of others to the storage are seen at the next batch.
TEST(TopKWriterTest, RowsOfOthersAreRankedToo) {
  const auto storage = Dense(4);
  RILL_ASSERT_OK(storage->Extend(Ranked({5, 1})));  // Before it came.
  const auto writer = Make(storage, {.k = 3});
  RILL_ASSERT_OK(writer->Extend(Ranked({2, 4})));
  EXPECT_THAT(Stored(*storage), ElementsAre(5, 4, 2));
  RILL_ASSERT_OK(storage->Extend(Ranked({7})));  // One more than k.
  RILL_ASSERT_OK(writer->Extend(Ranked({1, 3})));
  EXPECT_THAT(Stored(*storage), ElementsAre(5, 4, 3, 7));
  RILL_ASSERT_OK(writer->WriteAt({0}, Ranked({-1})));
  RILL_ASSERT_OK(writer->Extend(Ranked({0})));
  EXPECT_THAT(Stored(*storage), ElementsAre(0, 4, 3, 7));
  const std::string directory = JoinPath(::testing::TempDir(), "top_k");
  RILL_ASSERT_OK(storage->Save(directory));
  const auto other = Dense(4);
  const auto resumed = Make(other, {.k = 3});
  RILL_ASSERT_OK(resumed->Extend(Ranked({9, 9, 9})));
  RILL_ASSERT_OK(other->Load(directory));
  RILL_ASSERT_OK(resumed->Extend(Ranked({5, 2})));
  EXPECT_THAT(Stored(*other), ElementsAre(5, 4, 3, 7));
}

TEST(TopKWriterTest, W8_AnEmptiedStorageStartsAnew) {
  const auto storage = Dense(2);
  const auto writer = Make(storage);
  RILL_ASSERT_OK(writer->Extend(Ranked({8, 9})));
  RILL_ASSERT_OK(storage->Clear());
  RILL_ASSERT_OK(writer->Extend(Ranked({1})));
  RILL_ASSERT_OK(writer->Extend(Ranked({2, 3})));
  EXPECT_THAT(Stored(*storage), UnorderedElementsAre(2, 3));
}

TEST(TopKWriterTest, W9_GenerationsCountReplacedRowsOnly) {
  const auto storage = Dense(3);
  Generations generations;
  RILL_ASSERT_OK(storage->AddObserver(&generations));
  const auto writer = Make(storage);
  RILL_ASSERT_OK(writer->Extend(Ranked({4, 5})));
  EXPECT_EQ(generations.Get(2), -1);
  // The free place is taken, then given to a better row of the same batch.
  RILL_ASSERT_OK(writer->Extend(Ranked({1, 2, 3})));
  EXPECT_THAT(Stored(*storage), ElementsAre(4, 5, 3));
  for (const Slot slot : {0, 1, 2}) EXPECT_EQ(generations.Get(slot), 0);
  RILL_ASSERT_OK(writer->Extend(Ranked({2, 6})));
  EXPECT_EQ(generations.Get(0), 0);
  EXPECT_EQ(generations.Get(2), 1);
  RILL_ASSERT_OK(writer->Extend(Ranked({3, 4, 1})));  // None is better.
  EXPECT_EQ(generations.Get(0), 0);
  storage->RemoveObserver(&generations);
}

// A ring that had gone round, in a larger one: the places behind its cursor are
// free, wherever that is.
TEST(TopKWriterTest, PlacesOfARingThatGrewAreTakenFirst) {
  const std::string directory = JoinPath(::testing::TempDir(), "top_k_grown");
  for (const int64_t before : {0, 3, 4, 6, 7, 14, 15}) {
    RILL_ASSERT_OK(RemoveAll(directory));
    const auto small = Dense(4);
    for (int64_t i = 0; i < before; ++i) {
      RILL_ASSERT_OK(small->Extend(Ranked({static_cast<float>(50 + i)})));
    }
    RILL_ASSERT_OK(small->Save(directory));
    const auto storage = Dense(8);
    RILL_ASSERT_OK(storage->Load(directory, {.accept_other_capacity = true}));
    const auto writer = Make(storage, {.k = 7});
    std::vector<float> want;
    for (int64_t i = std::max<int64_t>(before - 4, 0); i < before; ++i) {
      want.push_back(static_cast<float>(50 + i));
    }
    float rank = 0;
    for (const int64_t batch : {2, 6}) {
      std::vector<float> ranks;
      for (int64_t i = 0; i < batch; ++i) ranks.push_back(rank += 1);
      RILL_ASSERT_OK(writer->Extend(Ranked(ranks)));
      want.insert(want.end(), ranks.begin(), ranks.end());
      std::sort(want.begin(), want.end(), std::greater<>());
      want.resize(std::min<size_t>(want.size(), 7));
    }
    EXPECT_EQ(storage->size(), 7) << before;
    std::vector<float> got;
    for (Slot slot = 0; slot < 8; ++slot) {
      TensorDict row;
      if (!storage->Read({slot}, &row).ok()) continue;
      got.push_back(row.Find("next/reward")->data<float>()[0]);
      EXPECT_EQ(row.Find("number")->data<int64_t>()[0],
                static_cast<int64_t>(1000 * got.back()));
    }
    EXPECT_THAT(got, UnorderedElementsAreArray(want)) << before;
  }
}

TEST(TopKWriterTest, BatchesThatDoNotFitChangeNothing) {
  const auto storage = Dense(3);
  const auto writer = Make(storage);
  RILL_ASSERT_OK(writer->Extend(Ranked({4, 5})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(writer->Extend(Ranked({7, nan}, {0, 0})),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("next/reward"), HasSubstr("row 1"))));
  TensorDict bad = Ranked({1, 9});
  RILL_ASSERT_OK(bad.Rename("next/reward", "reward"));
  EXPECT_THAT(writer->Extend(bad), IsNotFound("reward"));
  bad = Ranked({-1});  // Of a rank that would not be kept, too.
  RILL_ASSERT_OK(bad.Delete("number"));
  EXPECT_THAT(writer->Extend(bad), IsInvalidArgument("number"));
  bad = Ranked({1, 9});
  RILL_ASSERT_OK(bad.Set("next/reward", *Tensor::From<uint64_t>({1, 9}, {2})));
  EXPECT_THAT(writer->Extend(bad),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr("next/reward"), HasSubstr("uint64"))));
  EXPECT_THAT(writer->Extend(*Ranked({1, 9}).Unsqueeze(1)),
              IsInvalidArgument("[2, 1]"));
  RILL_ASSERT_OK(writer->Extend(*Ranked({6, 3}).Unsqueeze(0)));
  EXPECT_THAT(Stored(*storage), ElementsAre(4, 5, 6));
  RILL_ASSERT_OK(writer->Extend(Ranked({})));
}

TEST(TopKWriterTest, OptionsAndStoragesThatDoNotFitAreRefused) {
  EXPECT_THAT(TopKWriter::Create({.k = -1}), IsInvalidArgument("k: got -1"));
  EXPECT_THAT(TopKWriter::Create({.rank_key = ""}),
              IsInvalidArgument("rank_key"));
  RILL_ASSERT_OK_AND_ASSIGN(const auto writer, TopKWriter::Create({.k = 5}));
  EXPECT_THAT(writer->Attach(Dense(4)), IsInvalidArgument("k = 5"));
  EXPECT_THAT(writer->Attach(Dense(10, Device::Cpu(), 2)),
              IsInvalidArgument("2 lanes"));
  EXPECT_THAT(writer->Attach(nullptr), IsInvalidArgument());
  EXPECT_THAT(writer->Extend(Ranked({1})), IsFailedPrecondition());
}

}  // namespace
}  // namespace rill
