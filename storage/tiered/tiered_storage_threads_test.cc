// SPDX-License-Identifier: Apache-2.0
// A reader never gets an older row than observers had been told of when it
// began, nor another slot's, nor half a row, whichever tier it comes from.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/testing/device_under_test.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/tiered/tiered_storage.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kCapacity = 24;
constexpr int64_t kWidth = 40;

// Rows of which every number is `first`, `first` + 1, ...
TensorDict Rows(int64_t first, int64_t count) {
  std::vector<int64_t> wide;
  std::vector<int64_t> versions;
  for (int64_t i = first; i < first + count; ++i) {
    wide.insert(wide.end(), kWidth, i);
    versions.push_back(i);
  }
  TensorDict rows({count});
  RILL_EXPECT_OK(
      rows.Set("wide", *Tensor::From<int64_t>(wide, {count, kWidth})));
  RILL_EXPECT_OK(
      rows.Set("policy_version", *Tensor::From<int64_t>(versions, {count, 1})));
  return rows;
}

// The newest number that each slot is known to hold.
class Told : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override {}
  void OnWrite(const WriteEvent& event) override {
    size_t i = 0;
    for (const SlotRange& range : event.written) {
      for (Slot slot = range.first; slot < range.first + range.count; ++slot) {
        numbers[slot] = event.policy_versions[i++];
      }
    }
  }
  void OnClear() override {}

  std::array<std::atomic<int64_t>, kCapacity> numbers = {};
};

// The number that a whole row holds.
int64_t NumberOf(const TensorDict& rows, int64_t row) {
  const int64_t* const wide = rows.Find("wide")->data<int64_t>();
  const int64_t number = rows.Find("policy_version")->data<int64_t>()[row];
  for (int64_t i = 0; i < kWidth; ++i) {
    EXPECT_EQ(wide[row * kWidth + i], number);
  }
  return number;
}

class TieredStorageThreadsTest : public ::testing::TestWithParam<Device> {
 protected:
  // Writes with `write`(i) for i in [0, rounds) while two threads read. The
  // numbers of a slot only grow, and are its own modulo the capacity.
  void ReadWhile(const std::function<void(int64_t)>& write, int64_t rounds) {
    auto below = DenseStorage::Create({.capacity = kCapacity});
    RILL_ASSERT_OK(below);
    RILL_ASSERT_OK_AND_ASSIGN(storage_,
                              TieredStorage::Create({.below = *std::move(below),
                                                     .fast_capacity = 9,
                                                     .device = GetParam()}));
    Told told;
    RILL_ASSERT_OK(storage_->Extend(Rows(0, kCapacity)));
    RILL_ASSERT_OK(storage_->AddObserver(&told));
    std::atomic<bool> is_writing = true;
    std::vector<std::thread> readers;
    for (uint64_t reader = 0; reader < 2; ++reader) {
      readers.emplace_back([&, reader] {
        const Rng rng(reader);
        TensorDict rows;
        // The last ones meet no write, so both tiers give rows.
        for (uint64_t i = 0, last = 0; last < 20; ++i) {
          if (!is_writing) ++last;
          std::vector<Slot> slots;
          std::vector<int64_t> least;
          for (uint32_t k = 0; k < 6; ++k) {
            slots.push_back(rng.UniformInt(i, k, kCapacity));
          }
          for (const Slot slot : slots) least.push_back(told.numbers[slot]);
          RILL_ASSERT_OK(storage_->Read(slots, &rows));
          RILL_ASSERT_OK_AND_ASSIGN(const TensorDict host,
                                    rows.To(Device::Cpu()));
          for (size_t k = 0; k < slots.size(); ++k) {
            const int64_t number = NumberOf(host, static_cast<int64_t>(k));
            EXPECT_EQ(number % kCapacity, slots[k]);
            EXPECT_GE(number, least[k]);
          }
        }
      });
    }
    for (int64_t i = 0; i < rounds; ++i) write(i);
    is_writing = false;
    for (std::thread& reader : readers) reader.join();
    storage_->RemoveObserver(&told);
    EXPECT_GT(storage_->GetStats().fast_rows, 0);
    EXPECT_GT(storage_->GetStats().slow_rows, 0);
    EXPECT_EQ(storage_->GetStats().failed_writes, 0);
  }

  std::unique_ptr<TieredStorage> storage_;
};

TEST_P(TieredStorageThreadsTest, ReadersBesideAppends) {
  int64_t next = kCapacity;
  const Rng rng(7);
  ReadWhile(
      [&](int64_t i) {
        const int64_t count = 1 + rng.UniformInt(i, 0, 14);
        RILL_ASSERT_OK(storage_->Extend(Rows(next, count)));
        next += count;
      },
      400);
}

TEST_P(TieredStorageThreadsTest, ReadersBesideWritesInPlace) {
  const Rng rng(8);
  ReadWhile(
      [&](int64_t i) {
        // A run of slots that starts anywhere and does not wrap.
        const int64_t first = rng.UniformInt(i, 0, kCapacity - 4);
        const std::vector<Slot> slots = {first, first + 1, first + 2,
                                         first + 3};
        RILL_ASSERT_OK(
            storage_->WriteAt(slots, Rows((i + 1) * kCapacity + first, 4)));
      },
      400);
}

TEST_P(TieredStorageThreadsTest, ReadersBesideBoth) {
  const Rng rng(9);
  // Rounds of numbers, each above all of the one before.
  ReadWhile(
      [&](int64_t i) {
        const int64_t base = (2 * i + 1) * kCapacity;
        RILL_ASSERT_OK(storage_->Extend(Rows(base, kCapacity)));
        const int64_t first = rng.UniformInt(i, 0, kCapacity - 1);
        RILL_ASSERT_OK(storage_->WriteAt({first, first + 1},
                                         Rows(base + kCapacity + first, 2)));
      },
      200);
}

INSTANTIATE_TEST_SUITE_P(Devices, TieredStorageThreadsTest,
                         ::testing::Values(Device::Cpu(), DeviceUnderTest()),
                         [](const auto& info) {
                           return info.param.is_cpu() ? "Cpu" : "Device";
                         });

}  // namespace
}  // namespace rill
