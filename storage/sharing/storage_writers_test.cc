// SPDX-License-Identifier: Apache-2.0
// A writer that stands still in the middle of its copy holds up nobody but
// those who want its rows. It stands still because a page of its batch cannot
// be read: the fault waits until the test lets it go on.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/dense_storage.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;

struct Gate {
  std::atomic<char*> page{nullptr};
  std::atomic<size_t> bytes{0};
  std::atomic<bool> is_reached{false};
  int pipe[2] = {-1, -1};  // A byte lets the writer go on.

  void Open() { EXPECT_EQ(write(pipe[1], "", 1), 1); }
};
Gate gate;

void WaitAtGate(int /*signal*/, siginfo_t* about, void* /*context*/) {
  char* const at = static_cast<char*>(about->si_addr);
  if (at < gate.page || at >= gate.page + gate.bytes) {
    signal(SIGSEGV, SIG_DFL);  // A fault of the program's own.
    return;
  }
  gate.is_reached = true;
  char byte;
  while (read(gate.pipe[0], &byte, 1) != 1) {
  }
  mprotect(gate.page, gate.bytes, PROT_READ | PROT_WRITE);
}

// Another thread's work, of which a test wants to know that it waits.
class Waiter {
 public:
  explicit Waiter(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          id_ = gettid();
          work();
          is_over_ = true;
        }) {}
  ~Waiter() { thread_.join(); }

  // It sleeps. False where it ended instead.
  bool AwaitSleep() const {
    while (!is_over_) {
      if (id_ != 0 && IsAsleep()) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  bool IsAsleep() const {
    std::ifstream file(absl::StrCat("/proc/self/task/", id_.load(), "/stat"));
    std::string stat;
    std::getline(file, stat);
    return absl::StrContains(stat, ") S ");
  }

  std::atomic<pid_t> id_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

// Rows of one int64 "value" = first, first + 1, ... of which nobody can read
// the page with row `behind` before the gate is open.
TensorDict RowsBehindTheGate(const Shape& shape, int64_t first,
                             int64_t behind = 0) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes =
      (8 * static_cast<size_t>(shape.num_elements()) + page - 1) / page * page;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const int64_t value = first + i;
    std::memcpy(static_cast<char*>(memory) + 8 * i, &value, 8);
  }
  gate.page = static_cast<char*>(memory) +
              8 * static_cast<size_t>(behind) / page * page;
  gate.bytes = page;
  gate.is_reached = false;
  mprotect(gate.page, page, PROT_NONE);
  auto buffer = Buffer::Wrap(
      memory, static_cast<int64_t>(bytes), Device::Cpu(), MemoryKind::kPageable,
      std::shared_ptr<const void>(memory, [bytes](const void* p) {
        munmap(const_cast<void*>(p), bytes);
      }));
  TensorDict rows(shape);
  EXPECT_THAT(rows.Set("value", *Tensor::View(std::move(buffer), DType::kInt64,
                                              shape, /*offset_bytes=*/0)),
              IsOk());
  return rows;
}

TensorDict Rows(const Shape& shape, int64_t first) {
  std::vector<int64_t> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = first + static_cast<int64_t>(i);
  }
  TensorDict rows(shape);
  EXPECT_THAT(rows.Set("value", *Tensor::From<int64_t>(values, shape)), IsOk());
  return rows;
}

struct Kind {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Storage>>(int64_t capacity,
                                                         int64_t lanes)>
      create;
};

// Two lanes of 8, full: lane 0 holds 0 to 7, lane 1 holds 8 to 15.
class StorageWritersTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    struct sigaction action = {};
    action.sa_sigaction = WaitAtGate;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    ASSERT_EQ(pipe(gate.pipe), 0);
    auto created = GetParam().create(16, 2);
    ASSERT_THAT(created, IsOk());
    storage_ = *std::move(created);
    RILL_ASSERT_OK(storage_->Extend(Rows({2, 8}, 0)));
  }
  void TearDown() override {
    sigaction(SIGSEGV, &before_, nullptr);
    for (const int end : gate.pipe) close(end);
  }

  static void AwaitTheGate() {
    while (!gate.is_reached) std::this_thread::yield();
  }
  std::vector<int64_t> Values(const std::vector<Slot>& slots) {
    return ValuesOf(*storage_, slots);
  }
  static std::vector<int64_t> ValuesOf(const Storage& storage,
                                       const std::vector<Slot>& slots) {
    TensorDict rows;
    EXPECT_THAT(storage.Read(slots, &rows), IsOk());
    const auto values = rows.Flat<int64_t>("value");
    EXPECT_THAT(values, IsOk());
    return std::vector<int64_t>(values->begin(), values->end());
  }

  struct sigaction before_ = {};
  std::unique_ptr<Storage> storage_;
};

TEST_P(StorageWritersTest, AnAppendHoldsUpNobodyWithOtherRows) {
  const TensorDict stuck = RowsBehindTheGate({1, 3}, 100);
  std::thread writer(
      [&] { RILL_EXPECT_OK(storage_->Extend(stuck, {.first_lane = 0})); });
  AwaitTheGate();
  RILL_EXPECT_OK(storage_->Extend(Rows({1, 2}, 200), {.first_lane = 1}));
  RILL_EXPECT_OK(storage_->WriteAt({12, 5}, Rows({2}, 300)));
  EXPECT_THAT(Values({8, 9, 10, 5, 12}), ElementsAre(200, 201, 10, 301, 300));
  EXPECT_EQ(storage_->size(), 16);
  EXPECT_EQ(storage_->cursors()[0].written, 8);
  EXPECT_EQ(storage_->cursors()[1].written, 10);
  gate.Open();
  writer.join();
  EXPECT_THAT(Values({0, 1, 2, 3}), ElementsAre(100, 101, 102, 3));
  EXPECT_EQ(storage_->cursors()[0].written, 11);
}

// The events of an observer, in their order.
class Journal : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent& event) override { Add("retire", event); }
  void OnWrite(const WriteEvent& event) override { Add("write", event); }
  void OnClear() override {}

  std::vector<std::string> calls;

 private:
  void Add(const char* what, const WriteEvent& event) {
    calls.push_back(absl::StrCat(what, " ", event.written[0].first, "+",
                                 event.written[0].count));
  }
};

TEST_P(StorageWritersTest, ObserversHearOfALanesWritesInTheirOrder) {
  Journal journal;
  RILL_ASSERT_OK(storage_->AddObserver(&journal));
  journal.calls.clear();
  const TensorDict stuck = RowsBehindTheGate({1, 3}, 100);
  std::thread first([&] { RILL_EXPECT_OK(storage_->Extend(stuck)); });
  AwaitTheGate();
  std::thread second([&] {
    RILL_EXPECT_OK(storage_->Extend(Rows({1, 2}, 200)));
  });
  while (Values({3, 4}) != std::vector<int64_t>{200, 201}) {
    std::this_thread::yield();
  }
  // The lane's second write is copied; another lane's is published meanwhile.
  RILL_EXPECT_OK(storage_->Extend(Rows({1, 1}, 300), {.first_lane = 1}));
  gate.Open();
  first.join();
  second.join();
  storage_->RemoveObserver(&journal);
  EXPECT_THAT(journal.calls,
              ElementsAre("retire 0+3", "retire 3+2", "retire 8+1", "write 8+1",
                          "write 0+3", "write 3+2"));
}

TEST_P(StorageWritersTest, RowsThatAreBeingWrittenAreLentWhenTheyAreThere) {
  const TensorDict stuck = RowsBehindTheGate({1, 3}, 100);
  std::thread writer([&] { RILL_EXPECT_OK(storage_->Extend(stuck)); });
  AwaitTheGate();
  RILL_ASSERT_OK_AND_ASSIGN(const SlotLease others, storage_->Lease({3, 5}));
  {
    const Waiter reader([&] {
      const auto lease = storage_->Lease({0, 3});
      ASSERT_THAT(lease, IsOk());
      EXPECT_TRUE(lease->valid());
      EXPECT_THAT(*lease->rows().Flat<int64_t>("value"),
                  ElementsAre(100, 101, 102));
    });
    EXPECT_TRUE(reader.AwaitSleep());
    EXPECT_TRUE(others.valid());
    gate.Open();
  }
  writer.join();
}

TEST_P(StorageWritersTest,
       AppendsToOneLaneAreCopiedTogetherAndPublishedInTurn) {
  const TensorDict stuck = RowsBehindTheGate({1, 3}, 100);
  std::thread first([&] { RILL_EXPECT_OK(storage_->Extend(stuck)); });
  AwaitTheGate();
  std::thread second([&] {
    RILL_EXPECT_OK(storage_->Extend(Rows({1, 2}, 200)));
  });
  // Its rows come before it is published.
  while (Values({3, 4}) != std::vector<int64_t>{200, 201}) {
    std::this_thread::yield();
  }
  EXPECT_EQ(storage_->cursors()[0].written, 8);
  gate.Open();
  first.join();
  second.join();
  EXPECT_THAT(Values({0, 1, 2, 3, 4, 5}),
              ElementsAre(100, 101, 102, 200, 201, 5));
  EXPECT_EQ(storage_->cursors()[0].written, 13);
}

TEST_P(StorageWritersTest, AWriteInPlaceHoldsUpOnlyWhoWantsItsRows) {
  const TensorDict stuck = RowsBehindTheGate({2}, 100);
  std::thread writer([&] { RILL_EXPECT_OK(storage_->WriteAt({4, 9}, stuck)); });
  AwaitTheGate();
  RILL_EXPECT_OK(storage_->WriteAt({5, 8}, Rows({2}, 300)));
  RILL_EXPECT_OK(storage_->Extend(Rows({1, 4}, 400)));  // Slots 0 to 3.
  {
    const Waiter same(
        [&] { RILL_EXPECT_OK(storage_->WriteAt({9}, Rows({1}, 500))); });
    const Waiter next([&] {
      RILL_EXPECT_OK(storage_->Extend(Rows({1, 1}, 600)));
    });
    EXPECT_TRUE(same.AwaitSleep());
    EXPECT_TRUE(next.AwaitSleep());
    EXPECT_THAT(Values({0, 1, 2, 3, 5, 8}),
                ElementsAre(400, 401, 402, 403, 300, 301));
    EXPECT_EQ(storage_->cursors()[0].written, 12);
    gate.Open();
  }
  writer.join();
  EXPECT_THAT(Values({4, 9}), ElementsAre(600, 500));
  EXPECT_EQ(storage_->cursors()[0].written, 13);
}

// Three windows of 8192 rows, and the writer stands still in the second.
TEST_P(StorageWritersTest, AReaderNeverWaitsForABatch) {
  constexpr int64_t kRows = 3 * 8192;
  auto created = GetParam().create(kRows, 1);
  ASSERT_THAT(created, IsOk());
  Storage& storage = **created;
  RILL_ASSERT_OK(storage.Extend(Rows({kRows}, 0)));
  const TensorDict stuck =
      RowsBehindTheGate({kRows}, 1000000, /*behind=*/12000);
  std::thread writer([&] { RILL_EXPECT_OK(storage.Extend(stuck)); });
  AwaitTheGate();
  EXPECT_THAT(ValuesOf(storage, {5, 8000}), ElementsAre(1000005, 1008000));
  EXPECT_THAT(ValuesOf(storage, {17000, kRows - 1}),
              ElementsAre(17000, kRows - 1));
  {
    const Waiter reader([&] {
      EXPECT_THAT(ValuesOf(storage, {12000, 17000}),
                  ElementsAre(1012000, AnyOf(17000, 1017000)));
    });
    EXPECT_TRUE(reader.AwaitSleep());
    gate.Open();
  }
  writer.join();
  EXPECT_THAT(ValuesOf(storage, {0, kRows - 1}),
              ElementsAre(1000000, 1000000 + kRows - 1));
}

// Batches of several windows over a ring that holds little more than one; all
// words of a row are its number.
TEST_P(StorageWritersTest, RowsOfManyWindowsAreWhole) {
  constexpr int64_t kWords = 1024;  // Eight rows a window.
  constexpr int64_t kRing = 40;
  constexpr int64_t kBatch = 28;
  auto created = GetParam().create(kRing, 1);
  ASSERT_THAT(created, IsOk());
  Storage& storage = **created;
  const auto batch_of = [](int64_t n, int64_t first) {
    auto words = Tensor::Empty(DType::kInt64, {n, kWords});
    EXPECT_THAT(words, IsOk());
    for (int64_t i = 0; i < n * kWords; ++i) {
      words->data<int64_t>()[i] = first + i / kWords;
    }
    TensorDict batch({n});
    RILL_EXPECT_OK(batch.Set("words", *std::move(words)));
    return batch;
  };
  RILL_ASSERT_OK(storage.Extend(batch_of(kRing, 1)));
  std::vector<TensorDict> batches;
  for (int64_t i = 1; i < 5; ++i) batches.push_back(batch_of(kBatch, 100 * i));
  std::atomic<bool> is_over{false};
  std::atomic<int> readers_there{0};
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      const Rng rng(reader);
      TensorDict rows;
      for (uint64_t i = 0; !is_over; ++i) {
        std::vector<Slot> slots;
        for (uint32_t k = 0; k < 1 + i % 24; ++k) {
          slots.push_back(rng.UniformInt(i, k, kRing));
        }
        RILL_ASSERT_OK(storage.Read(slots, &rows));
        const int64_t* word = rows.Find("words")->data<int64_t>();
        for (size_t k = 0; k < slots.size(); ++k, word += kWords) {
          const bool is_whole =
              std::all_of(word, word + kWords,
                          [&](int64_t value) { return value == word[0]; });
          ASSERT_TRUE(is_whole) << "slot " << slots[k] << " of read " << i;
        }
        if (i == 0) ++readers_there;
      }
    });
  }
  while (readers_there < 2) std::this_thread::yield();
  for (size_t i = 0; i < 300; ++i) {
    RILL_EXPECT_OK(storage.Extend(batches[i % batches.size()]));
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StorageWritersTest,
    ::testing::Values(Kind{"Rows",
                           [](int64_t capacity, int64_t lanes) {
                             return DenseStorage::Create(
                                 {.capacity = capacity, .lanes = lanes});
                           }},
                      Kind{"Memmap",
                           [](int64_t capacity, int64_t lanes) {
                             const std::string directory = JoinPath(
                                 ::testing::TempDir(),
                                 absl::StrCat("storage_writers_", capacity));
                             RemoveAll(directory).IgnoreError();
                             return MemmapStorage::Create(
                                 {.directory = directory,
                                  .capacity = capacity,
                                  .lanes = lanes});
                           }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rill
