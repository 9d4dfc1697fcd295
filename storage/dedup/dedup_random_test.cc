// SPDX-License-Identifier: Apache-2.0
// DenseStorage with dedup_next beside a plain oracle, at random: a million
// operations over all forms. Values come from so small a set that rows also
// share by chance, and flags say nothing of what is shared.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// All bytes of a leaf of a row are one value; flags are 0 or 1.
constexpr size_t kLeaves = 6;
constexpr const char* kKeys[kLeaves] = {"seen",       "next/seen", "state",
                                        "next/state", "next/done", "action"};
constexpr size_t kSeen = 0;
constexpr size_t kState = 2;
constexpr size_t kDone = 4;
using Row = std::vector<uint8_t>;  // One value a leaf.

class RandomRun {
 public:
  RandomRun(const Lanes& lanes, StorageLayout layout, StorageOrder order,
            int64_t width, uint64_t seed)
      : lanes_(lanes),
        widths_{width, width, 6, 6, 1, 1},
        rng_(seed),
        rows_(lanes.num_slots()),
        written_(lanes.count),
        coming_(lanes.count, Row(kLeaves)) {
    TensorDictSpec spec;
    for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
      const LeafSpec one =
          leaf == kDone ? LeafSpec::Binary({1})
                        : LeafSpec::Unbounded(DType::kUInt8, {widths_[leaf]});
      RILL_EXPECT_OK(spec.Set(kKeys[leaf], one));
    }
    auto storage = DenseStorage::Create({.capacity = lanes.num_slots(),
                                         .lanes = lanes.count,
                                         .layout = layout,
                                         .order = order,
                                         .spec = spec,
                                         .dedup_next = true});
    EXPECT_THAT(storage, IsOk());
    storage_ = *std::move(storage);
  }

  void Step() {
    const int64_t kind = Below(1000);
    if (kind < 500) {
      Extend();
    } else if (kind < 700) {
      WriteAt();
    } else if (kind < 998) {
      Check(SomeLive(1 + Below(6)));
    } else {
      RILL_ASSERT_OK(storage_->Clear());
      std::fill(rows_.begin(), rows_.end(), std::nullopt);
      std::fill(written_.begin(), written_.end(), 0);
    }
  }

  void CheckAll() {
    std::vector<Slot> live;
    for (Slot slot = 0; slot < lanes_.num_slots(); ++slot) {
      if (rows_[slot].has_value()) live.push_back(slot);
    }
    ASSERT_EQ(storage_->size(), static_cast<int64_t>(live.size()));
    Check(live);
  }

 private:
  int64_t Below(int64_t n) { return rng_.UniformInt(draws_++, 0, n); }
  uint8_t Value() { return static_cast<uint8_t>(Below(3)); }

  // The next step of a lane: what it sees is nearly always what the one before
  // said, and flags know nothing of it.
  Row NextRow(int64_t lane) {
    Row row = coming_[lane];
    for (const size_t leaf : {kSeen, kState}) {
      row[leaf + 1] = Value();
      coming_[lane][leaf] = Below(8) == 0 ? Value() : row[leaf + 1];
    }
    row[kDone] = static_cast<uint8_t>(Below(2));
    row[kDone + 1] = Value();
    return row;
  }

  TensorDict Batch(const Shape& shape, const std::vector<Row>& rows,
                   const std::vector<size_t>& leaves) {
    TensorDict batch(shape);
    for (const size_t leaf : leaves) {
      auto tensor = Tensor::Empty(leaf == kDone ? DType::kBool : DType::kUInt8,
                                  shape.Concat({widths_[leaf]}));
      EXPECT_THAT(tensor, IsOk());
      std::byte* at = tensor->raw_data();
      for (const Row& row : rows) {
        std::memset(at, row[leaf], widths_[leaf]);
        at += widths_[leaf];
      }
      RILL_EXPECT_OK(batch.Set(kKeys[leaf], *std::move(tensor)));
    }
    return batch;
  }

  void Extend() {
    const int64_t first = Below(lanes_.count);
    const int64_t count = 1 + Below(lanes_.count - first);
    const int64_t steps =
        Below(4) == 0 ? Below(2 * lanes_.capacity + 2) : 1 + Below(3);
    std::vector<Row> rows;
    for (int64_t lane = first; lane < first + count; ++lane) {
      for (int64_t step = 0; step < steps; ++step) {
        rows.push_back(NextRow(lane));
        rows_[lanes_.SlotOf(lane, written_[lane]++ % lanes_.capacity)] =
            rows.back();
      }
    }
    RILL_ASSERT_OK(storage_
                       ->Extend(Batch({count, steps}, rows, {0, 1, 2, 3, 4, 5}),
                                {.first_lane = first})
                       .status());
  }

  std::vector<Slot> SomeLive(int64_t n) {
    std::vector<Slot> slots;
    for (int64_t i = 0; i < n; ++i) {
      const Slot slot = Below(lanes_.num_slots());
      if (rows_[slot].has_value()) slots.push_back(slot);
    }
    return slots;
  }

  void WriteAt() {
    const std::vector<Slot> slots = SomeLive(1 + Below(5));
    std::vector<size_t> leaves;
    for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
      if (Below(2) == 0) leaves.push_back(leaf);
    }
    if (leaves.empty()) return;
    std::vector<Row> rows;
    for (const Slot slot : slots) {
      Row row(kLeaves);
      for (uint8_t& value : row) value = Value();
      row[kDone] &= 1;
      rows.push_back(row);
      for (const size_t leaf : leaves) (*rows_[slot])[leaf] = row[leaf];
    }
    const int64_t n = static_cast<int64_t>(slots.size());
    RILL_ASSERT_OK(storage_->WriteAt(slots, Batch({n}, rows, leaves)));
  }

  void Check(const std::vector<Slot>& slots) {
    if (slots.empty()) return;
    RILL_ASSERT_OK(storage_->Read(slots, &out_));
    for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
      const auto* at =
          reinterpret_cast<const uint8_t*>(out_.Find(kKeys[leaf])->raw_data());
      for (const Slot slot : slots) {
        const uint8_t want = (*rows_[slot])[leaf];
        ASSERT_EQ(at[0], want) << kKeys[leaf] << " of slot " << slot;
        // All bytes are the first one.
        ASSERT_EQ(std::memcmp(at, at + 1, widths_[leaf] - 1), 0)
            << kKeys[leaf] << " of slot " << slot;
        at += widths_[leaf];
      }
    }
  }

  const Lanes lanes_;
  const int64_t widths_[kLeaves];
  const Rng rng_;
  uint64_t draws_ = 0;
  std::vector<std::optional<Row>> rows_;  // By slot; empty: not live.
  std::vector<int64_t> written_;          // By lane.
  std::vector<Row> coming_;               // What a lane sees next.
  std::unique_ptr<Storage> storage_;
  TensorDict out_;
};

class DedupRandomTest
    : public ::testing::TestWithParam<std::pair<StorageLayout, StorageOrder>> {
 protected:
  void Runs(int64_t steps, int64_t width) {
    uint64_t seed = 0;
    for (const int64_t lanes : {1, 2, 3}) {
      for (const int64_t capacity : {1, 2, 3, 5, 9}) {
        const auto [layout, order] = GetParam();
        RandomRun run({.count = lanes, .capacity = capacity}, layout, order,
                      width, ++seed);
        for (int64_t step = 0; step < steps; ++step) {
          run.Step();
          if (step % 64 == 0) run.CheckAll();
          if (HasFatalFailure()) {
            FAIL() << lanes << " lanes of " << capacity << ", step " << step;
          }
        }
        run.CheckAll();
      }
    }
  }
};

TEST_P(DedupRandomTest, RowsReadAsTheyWereWritten) {
  Runs(/*steps=*/17000, /*width=*/5);  // 15 sizes, 4 forms: 1.02 million.
}

// A window holds two rows.
TEST_P(DedupRandomTest, RowsOfManyWindowsToo) {
  Runs(/*steps=*/150, /*width=*/30000);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, DedupRandomTest,
    ::testing::Values(
        std::pair(StorageLayout::kRows, StorageOrder::kLaneMajor),
        std::pair(StorageLayout::kRows, StorageOrder::kTimeMajor),
        std::pair(StorageLayout::kColumns, StorageOrder::kLaneMajor),
        std::pair(StorageLayout::kColumns, StorageOrder::kTimeMajor)));

}  // namespace
}  // namespace rill
