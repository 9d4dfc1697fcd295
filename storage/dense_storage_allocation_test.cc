// SPDX-License-Identifier: Apache-2.0
// Steady reading and writing allocates nothing and meets no page fault.
// Replaces the program's global operator new, so it is a test of its own.
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

void* operator new(size_t bytes) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* data = std::malloc(bytes)) return data;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t /*bytes*/) noexcept { std::free(data); }

namespace rill {
namespace {

struct Form {
  StorageLayout layout;
  StorageOrder order;
  bool dedup_next = false;
};

class AllocationTest : public ::testing::TestWithParam<Form> {
 protected:
  std::unique_ptr<Storage> Make() {
    return *DenseStorage::Create({.capacity = 64,
                                  .lanes = 2,
                                  .layout = GetParam().layout,
                                  .order = GetParam().order,
                                  .dedup_next = GetParam().dedup_next});
  }
};

TEST_P(AllocationTest, SteadyReadsAllocateNothing) {
  auto storage = Make();
  RILL_ASSERT_OK(storage->Extend(ConformanceRows({2, 32}, SlotsFrom(1, 64))));
  const std::vector<Slot> slots = {5, 60, 1, 33, 33, 0, 17, 40};
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read(slots, &rows));
  const int64_t before = num_allocations;
  for (int i = 0; i < 100; ++i) RILL_ASSERT_OK(storage->Read(slots, &rows));
  EXPECT_EQ(num_allocations - before, 0);
}

TEST_P(AllocationTest, SteadyWritesAllocateNothing) {
  auto storage = Make();
  class Reader final : public LiveSlots {
    ValuesRead values_read() const override { return {}; }
  } live;
  RILL_ASSERT_OK(storage->AddObserver(&live));
  const TensorDict batch = ConformanceRows({2, 5}, SlotsFrom(1, 10));
  // Enough for every wrap of the ring to have been seen.
  for (int i = 0; i < 40; ++i) RILL_ASSERT_OK(storage->Extend(batch));
  const int64_t before = num_allocations;
  for (int i = 0; i < 100; ++i) RILL_ASSERT_OK(storage->Extend(batch));
  EXPECT_EQ(num_allocations - before, 0);
  EXPECT_EQ(live.size(), 64);
  storage->RemoveObserver(&live);
}

int64_t NumFaults() {
  rusage usage;
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt + usage.ru_majflt;
}

// The fewest in ten rounds: a fault that the system made for reasons of its own
// (a page moved or merged) is not in all of them.
template <typename Fn>
int64_t FewestFaults(Fn fn) {
  int64_t fewest = INT64_MAX;
  for (int round = 0; round < 10; ++round) {
    const int64_t before = NumFaults();
    fn();
    fewest = std::min(fewest, NumFaults() - before);
  }
  return fewest;
}

TEST_P(AllocationTest, SteadyReadsAndWritesMeetNoPageFault) {
  auto storage = Make();
  const TensorDict batch = ConformanceRows({2, 20}, SlotsFrom(1, 40));
  // Enough for every slot and every wrap to have been seen.
  for (int i = 0; i < 20; ++i) RILL_ASSERT_OK(storage->Extend(batch));
  const std::vector<Slot> slots = SlotsFrom(0, 64);
  TensorDict rows;
  RILL_ASSERT_OK(storage->Read(slots, &rows));
  EXPECT_EQ(FewestFaults([&] {
              for (int i = 0; i < 20; ++i) {
                RILL_ASSERT_OK(storage->Extend(batch));
                RILL_ASSERT_OK(storage->Read(slots, &rows));
              }
            }),
            0);
}

TEST(FaultCounterTest, CountsFreshPages) {
  constexpr size_t kBytes = size_t{64} << 10;
  EXPECT_GT(FewestFaults([] {
              void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              ASSERT_NE(data, MAP_FAILED);
              *static_cast<volatile char*>(data) = 1;
              munmap(data, kBytes);
            }),
            0);
}

TEST(AllocationCounterTest, CountsWhatIsAllocated) {
  const int64_t before = num_allocations;
  auto value = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(num_allocations - before, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, AllocationTest,
    ::testing::Values(
        Form{StorageLayout::kRows, StorageOrder::kLaneMajor},
        Form{StorageLayout::kRows, StorageOrder::kTimeMajor},
        Form{StorageLayout::kColumns, StorageOrder::kLaneMajor},
        Form{StorageLayout::kColumns, StorageOrder::kTimeMajor},
        Form{StorageLayout::kRows, StorageOrder::kTimeMajor, true},
        Form{StorageLayout::kColumns, StorageOrder::kLaneMajor, true}));

}  // namespace
}  // namespace rill
