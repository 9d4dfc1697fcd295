// SPDX-License-Identifier: Apache-2.0
// Behaviour that users of TorchRL's storages and writers count on. The numbers
// are those that our notes on TorchRL give each statement.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/device/device.h"
#include "rill/slots/generations.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

struct Kind {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Storage>>(
      int64_t capacity, int64_t lanes, StorageOrder order)>
      create;
};

class StoragePeerTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Storage> Make(int64_t capacity, int64_t lanes = 1,
                                StorageOrder order = StorageOrder::kLaneMajor) {
    return *GetParam().create(capacity, lanes, order);
  }
};

TensorDict Numbers(const Shape& shape, int64_t first) {
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(first + static_cast<int64_t>(i));
  }
  TensorDict rows(shape);
  EXPECT_THAT(rows.Set("value", *Tensor::From<float>(values, shape)), IsOk());
  return rows;
}

template <typename T = float>
std::vector<T> ValuesOf(const TensorDict& rows, const char* key = "value") {
  const auto host = rows.To(Device::Cpu());
  EXPECT_THAT(host, IsOk());
  const auto values = host->Flat<T>(key);
  EXPECT_THAT(values, IsOk());
  return {values->begin(), values->end()};
}

std::vector<float> ValuesAt(const Storage& storage,
                            const std::vector<Slot>& slots) {
  TensorDict rows;
  EXPECT_THAT(storage.Read(slots, &rows), IsOk());
  return ValuesOf(rows);
}

// Which slots the last write took, in its order.
class LastSlots : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    slots.clear();
    for (const SlotRange& range : event.written) {
      for (int64_t i = 0; i < range.count; ++i) {
        slots.push_back(range.first + i);
      }
    }
  }
  void OnClear() override {}

  std::vector<Slot> slots;
};

TEST_P(StoragePeerTest, W1WritesGoOnAroundTheRing) {
  auto storage = Make(5);
  LastSlots last;
  RILL_ASSERT_OK(storage->AddObserver(&last));
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  EXPECT_THAT(last.slots, ElementsAre(0, 1, 2));
  RILL_ASSERT_OK(storage->Extend(Numbers({4}, 3)));
  EXPECT_THAT(last.slots, ElementsAre(3, 4, 0, 1));
  EXPECT_EQ(storage->size(), 5);
  EXPECT_EQ(storage->cursors()[0].written, 7);
  EXPECT_EQ(storage->cursors()[0].written % 5, 2);
  storage->RemoveObserver(&last);
}

TEST_P(StoragePeerTest, W2OneRowIsABatchOfOne) {
  auto one = Make(4);
  auto many = Make(4);
  for (int64_t i = 0; i < 6; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                              one->Extend(Numbers({1}, i)));
    EXPECT_EQ(result.rows_written, 1);
  }
  RILL_ASSERT_OK(many->Extend(Numbers({6}, 0)).status());
  EXPECT_EQ(one->cursors(), many->cursors());
  EXPECT_EQ(ValuesAt(*one, {0, 1, 2, 3}), ValuesAt(*many, {0, 1, 2, 3}));
}

TEST_P(StoragePeerTest, W3NoRowsMoveNothing) {
  auto storage = Make(4);
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result,
                            storage->Extend(Numbers({0}, 9)));
  EXPECT_EQ(result.rows_written, 0);
  EXPECT_EQ(storage->size(), 3);
  EXPECT_EQ(storage->cursors()[0].written, 3);
}

TEST_P(StoragePeerTest, W4RunsAliasSlotsCopyAndOnlyLiveRowsAreSeen) {
  auto storage = Make(8);
  RILL_ASSERT_OK(storage->Extend(Numbers({5}, 0)));
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease run, storage->Lease({0, 5}));
  TensorDict copy;
  RILL_ASSERT_OK(storage->Read({1, 3}, &copy));
  RILL_ASSERT_OK(storage->WriteAt({3}, Numbers({1}, 30)));
  // On a device a write is enqueued, and a lease waits for it.
  RILL_ASSERT_OK(storage->Lease({3, 1}));
  EXPECT_EQ(ValuesOf(run.rows())[3], 30);
  EXPECT_EQ(ValuesOf(copy)[1], 3);
  EXPECT_THAT(storage->Lease({0, 6}), IsOutOfRange());
}

TEST_P(StoragePeerTest, W5AFailedExtendChangesNothing) {
  auto storage = Make(4);
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  TensorDict other({2});
  RILL_ASSERT_OK(other.Set("value", *Tensor::Zeros(DType::kFloat32, {2, 1})));
  EXPECT_THAT(storage->Extend(other), IsInvalidArgument());
  RILL_ASSERT_OK(other.Set("value", *Tensor::Zeros(DType::kInt32, {2})));
  EXPECT_THAT(storage->Extend(other), IsInvalidArgument());
  EXPECT_THAT(storage->Extend(TensorDict({2})), IsInvalidArgument());
  EXPECT_EQ(storage->size(), 3);
  EXPECT_EQ(storage->cursors()[0].written, 3);
  EXPECT_THAT(ValuesAt(*storage, {0, 1, 2}), ElementsAre(0, 1, 2));
}

TEST_P(StoragePeerTest, W6UnknownAndMissingKeysAreNamed) {
  auto storage = Make(4);
  RILL_ASSERT_OK(storage->Extend(Numbers({1}, 0)));
  TensorDict more = Numbers({1}, 1);
  RILL_ASSERT_OK(more.Set("extra", *Tensor::Zeros(DType::kFloat32, {1})));
  EXPECT_THAT(storage->Extend(more), IsInvalidArgument("unknown {extra}"));
  TensorDict none({1});
  RILL_ASSERT_OK(none.Set("vaule", *Tensor::Zeros(DType::kFloat32, {1})));
  EXPECT_THAT(storage->Extend(none), IsInvalidArgument("no {value}"));
  EXPECT_EQ(storage->size(), 1);
}

TEST_P(StoragePeerTest, W7NothingIsCastInSilence) {
  auto storage = Make(4);
  RILL_ASSERT_OK(storage->Extend(Numbers({1}, 0)));
  TensorDict wide({1});
  RILL_ASSERT_OK(wide.Set("value", *Tensor::Zeros(DType::kFloat64, {1})));
  EXPECT_THAT(storage->Extend(wide), IsInvalidArgument("float64"));
}

TEST_P(StoragePeerTest, W8ClearedStoragesAreEmptyAndSaySo) {
  auto storage = Make(4);
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  RILL_ASSERT_OK(storage->Clear());
  EXPECT_EQ(storage->size(), 0);
  EXPECT_EQ(storage->cursors()[0].written, 0);
  TensorDict rows;
  EXPECT_THAT(storage->Read({0}, &rows), IsOutOfRange("no row is stored"));
}

// Rows that a batch drops were never there: a slot that such a batch would
// have written twice counts once.
TEST_P(StoragePeerTest, W9GenerationsCountWritesAndOutliveClearing) {
  auto storage = Make(3);
  Generations generations;
  RILL_ASSERT_OK(storage->AddObserver(&generations));
  const auto values = [&] {
    return std::vector<int64_t>{generations.Get(0), generations.Get(1),
                                generations.Get(2)};
  };
  RILL_ASSERT_OK(storage->Extend(Numbers({2}, 0)));
  EXPECT_THAT(values(), ElementsAre(0, 0, -1));
  RILL_ASSERT_OK(storage->Extend(Numbers({2}, 0)));
  EXPECT_THAT(values(), ElementsAre(1, 0, 0));
  RILL_ASSERT_OK(storage->WriteAt({1}, Numbers({1}, 7)));
  EXPECT_THAT(values(), ElementsAre(1, 1, 0));
  const Draw old = {.slot = 1, .generation = 1};
  EXPECT_TRUE(generations.IsCurrent(old));
  RILL_ASSERT_OK(storage->Clear());
  EXPECT_FALSE(generations.IsCurrent(old));
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  EXPECT_FALSE(generations.IsCurrent(old));
  storage->RemoveObserver(&generations);
}

TEST_P(StoragePeerTest, W11CountersGoBeyondTwoToThe32) {
  auto storage = Make(7, 1);
  constexpr int64_t kSteps = (int64_t{1} << 32) + 3;
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor one,
                            Tensor::From<float>(std::vector<float>{5.0f}, {1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor many, one.Expand({kSteps}));
  TensorDict batch({kSteps});
  RILL_ASSERT_OK(batch.Set("value", many));
  RILL_ASSERT_OK_AND_ASSIGN(const ExtendResult result, storage->Extend(batch));
  EXPECT_EQ(result.rows_written, 7);
  EXPECT_EQ(result.rows_dropped, kSteps - 7);
  RILL_ASSERT_OK(storage->Extend(Numbers({1}, 9)));
  EXPECT_EQ(storage->cursors()[0].written, kSteps + 1);
  EXPECT_THAT(ValuesAt(*storage, {kSteps % 7, (kSteps + 1) % 7}),
              ElementsAre(9, 5));
}

TEST_P(StoragePeerTest, W12WhatWasReadStaysAsItWas) {
  auto storage = Make(3);
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  TensorDict sample;
  RILL_ASSERT_OK(storage->Read({2, 0}, &sample));
  RILL_ASSERT_OK(storage->Extend(Numbers({3}, 50)));
  EXPECT_THAT(ValuesOf(sample), ElementsAre(2, 0));
}

// [time, lane] in TorchRL's order: step t of lane l is slot l * 5 + t.
TEST_P(StoragePeerTest, M1LanesAndStepsAreOneNumber) {
  auto storage = Make(10, 2, StorageOrder::kTimeMajor);
  RILL_ASSERT_OK(storage->Extend(Numbers({2, 5}, 0)));
  EXPECT_EQ(storage->size(), 10);
  const Lanes lanes = storage->lanes();
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read({9, 0, 7, 4}, &rows));
  EXPECT_EQ(rows.batch_shape(), Shape({4}));
  EXPECT_THAT(ValuesOf(rows), ElementsAre(9, 0, 7, 4));
  EXPECT_EQ(lanes.LaneOf(7), 1);
  EXPECT_EQ(lanes.PositionOf(7), 2);
}

// A million rows, each of which carries its own checksum.
TEST_P(StoragePeerTest, F3ReadersBesideWritersMeetNoTornRow) {
  constexpr int64_t kLaneRows = 256;
  constexpr int64_t kBatch = 128;
  constexpr int64_t kReads = 500'000;  // A reader.
  auto storage = Make(2 * kLaneRows, 2);
  const auto rows_of = [](uint64_t salt, int64_t lanes) {
    const Rng rng(salt);
    std::vector<uint64_t> words;
    for (int64_t row = 0; row < lanes * kBatch; ++row) {
      uint64_t sum = 0;
      for (uint32_t k = 0; k < 7; ++k) {
        words.push_back(rng.Bits64(row, k));
        sum += words.back();
      }
      words.push_back(sum);
    }
    TensorDict rows({lanes, kBatch});
    EXPECT_THAT(rows.Set("words",
                         *Tensor::From<int64_t>(
                             absl::MakeConstSpan(
                                 reinterpret_cast<const int64_t*>(words.data()),
                                 words.size()),
                             {lanes, kBatch, 8})),
                IsOk());
    return rows;
  };
  RILL_ASSERT_OK(storage->Extend(rows_of(1, 2)));
  RILL_ASSERT_OK(storage->Extend(rows_of(2, 2)));
  std::atomic<int> readers_left{2};
  std::vector<std::thread> threads;
  for (int64_t lane = 0; lane < 2; ++lane) {
    threads.emplace_back([&, lane] {
      const TensorDict batches[2] = {rows_of(10 + lane, 1),
                                     rows_of(20 + lane, 1)};
      for (int64_t i = 0; readers_left > 0; ++i) {
        RILL_EXPECT_OK(storage->Extend(batches[i % 2], {.first_lane = lane}));
      }
    });
  }
  std::atomic<int64_t> torn{0};
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      const Rng rng(reader);
      TensorDict rows;
      std::vector<Slot> slots(250);
      for (int64_t read = 0; read < kReads;
           read += static_cast<int64_t>(slots.size())) {
        for (size_t k = 0; k < slots.size(); ++k) {
          slots[k] =
              rng.UniformInt(read, static_cast<uint32_t>(k), 2 * kLaneRows);
        }
        RILL_EXPECT_OK(storage->Read(slots, &rows));
        const auto words = ValuesOf<int64_t>(rows, "words");
        for (size_t row = 0; row < slots.size(); ++row) {
          uint64_t sum = 0;
          for (size_t k = 0; k < 7; ++k) {
            sum += static_cast<uint64_t>(words[8 * row + k]);
          }
          torn += sum != static_cast<uint64_t>(words[8 * row + 7]);
        }
      }
      --readers_left;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
}

absl::StatusOr<std::unique_ptr<Storage>> MakeMemmap(int64_t capacity,
                                                    int64_t lanes,
                                                    StorageOrder order) {
  static std::atomic<int> number{0};
  const std::string directory = JoinPath(
      ::testing::TempDir(), "storage_peer_" + std::to_string(number++));
  RemoveAll(directory).IgnoreError();
  return MemmapStorage::Create({.directory = directory,
                                .capacity = capacity,
                                .lanes = lanes,
                                .order = order});
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StoragePeerTest,
    ::testing::Values(
        Kind{"Rows",
             [](int64_t capacity, int64_t lanes, StorageOrder order) {
               return DenseStorage::Create({.capacity = capacity,
                                            .lanes = lanes,
                                            .layout = StorageLayout::kRows,
                                            .order = order});
             }},
        Kind{"Columns",
             [](int64_t capacity, int64_t lanes, StorageOrder order) {
               return DenseStorage::Create({.capacity = capacity,
                                            .lanes = lanes,
                                            .layout = StorageLayout::kColumns,
                                            .order = order});
             }},
        Kind{"Device",
             [](int64_t capacity, int64_t lanes, StorageOrder order) {
               return DenseStorage::Create({.capacity = capacity,
                                            .lanes = lanes,
                                            .order = order,
                                            .device = Device::Fake(0)});
             }},
        Kind{"Memmap", MakeMemmap}),
    [](const auto& info) { return info.param.name; });

TEST(MemmapPeerTest, W10WhatLiesInADirectoryIsNotTakenAndStays) {
  const std::string directory =
      JoinPath(::testing::TempDir(), "storage_peer_w10");
  RILL_ASSERT_OK(RemoveAll(directory));
  const MemmapStorage::Options options = {.directory = directory,
                                          .capacity = 4};
  {
    RILL_ASSERT_OK_AND_ASSIGN(const auto storage,
                              MemmapStorage::Create(options));
    RILL_ASSERT_OK(storage->Extend(Numbers({3}, 0)));
  }
  EXPECT_THAT(MemmapStorage::Create(options), IsFailedPrecondition());
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options));
  EXPECT_THAT(ValuesAt(*storage, {0, 1, 2}), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace rill
