// SPDX-License-Identifier: Apache-2.0
// A process that writes to a MemmapStorage is killed (SIGKILL) at any moment,
// again and again on one directory. The next process finds every acknowledged
// row, less those that the one append in flight had retired. Each row is whole.
// RILL_KILLS=1000 makes the run longer.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/flow/sink.h"
#include "rill/slots/live_slots.h"
#include "rill/slots/slot.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 64;
constexpr int64_t kWidth = 1024;  // So that a kill is likely to hit a copy.
constexpr int64_t kMaxSteps = 40;

// Every element of a row says which step of which lane it is of.
int64_t IdOf(int64_t lane, int64_t step) { return step * kLanes + lane + 1; }

TensorDictSpec Spec() {
  TensorDictSpec spec;
  RILL_EXPECT_OK(
      spec.Set("wide", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  RILL_EXPECT_OK(
      spec.Set("next/id", LeafSpec{.dtype = DType::kInt64, .shape = {1}}));
  return spec;
}

// Shared by both processes: how far each lane is acknowledged, and how far it
// may be written by now.
struct Progress {
  std::atomic<int64_t> acknowledged[kLanes];
  std::atomic<int64_t> begun[kLanes];
};

// An append of [count, steps] to lanes [first, ...) whose cursors are `from`.
TensorDict Batch(int64_t first, int64_t count, int64_t steps,
                 const std::vector<Cursor>& from) {
  TensorDict batch({count, steps});
  auto wide = Tensor::Empty(DType::kInt64, Shape({count, steps, kWidth}));
  auto id = Tensor::Empty(DType::kInt64, Shape({count, steps, 1}));
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t row = lane * steps + step;
      const int64_t value =
          IdOf(first + lane, from[first + lane].written + step);
      std::fill_n(wide->data<int64_t>() + row * kWidth, kWidth, value);
      id->data<int64_t>()[row] = value;
    }
  }
  RILL_EXPECT_OK(batch.Set("wide", *wide));
  RILL_EXPECT_OK(batch.Set("next/id", *id));
  return batch;
}

// Appends to lanes [from, to), some of them or all, until it is killed.
[[noreturn]] void AppendForEver(Storage* storage, int64_t from, int64_t to,
                                const Rng& rng, Progress* progress) {
  for (uint64_t i = 0;; ++i) {
    const std::vector<Cursor> cursors = storage->cursors();
    const int64_t first = from + rng.UniformInt(i, 0, to - from);
    const int64_t count = 1 + rng.UniformInt(i, 1, to - first);
    const int64_t steps = 1 + rng.UniformInt(i, 2, kMaxSteps);
    const TensorDict batch = Batch(first, count, steps, cursors);
    for (int64_t lane = first; lane < first + count; ++lane) {
      progress->begun[lane] = cursors[lane].written + steps;
    }
    const auto result = storage->Extend(batch, {.first_lane = first});
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      _exit(3);
    }
    for (int64_t lane = first; lane < first + count; ++lane) {
      progress->acknowledged[lane] = cursors[lane].written + steps;
    }
  }
}

enum class Writers { kOne, kOneALane };

// Writes until it is killed.
[[noreturn]] void WriteForEver(const MemmapStorage::Options& options,
                               Writers writers, uint64_t round,
                               Progress* progress) {
  auto storage = MemmapStorage::Open(options);
  if (!storage.ok()) _exit(2);
  std::vector<std::thread> others;
  if (writers == Writers::kOneALane) {
    for (int64_t lane = 1; lane < kLanes; ++lane) {
      others.emplace_back([&, lane] {
        AppendForEver(storage->get(), lane, lane + 1,
                      Rng(round, RngStream::kUser, lane), progress);
      });
    }
  }
  AppendForEver(storage->get(), 0, others.empty() ? kLanes : 1, Rng(round),
                progress);
}

// Kills the child some rows, and some instructions, after now.
void KillSoon(pid_t child, const Progress& progress, const Rng& rng,
              uint64_t round) {
  const int64_t rows =
      progress.acknowledged[0] + rng.UniformInt(round, 0, 4 * kLaneCapacity);
  int how = 0;
  while (progress.acknowledged[0] <= rows) {
    ASSERT_EQ(waitpid(child, &how, WNOHANG), 0) << "ended by itself: " << how;
  }
  volatile int64_t spins = rng.UniformInt(round, 1, 1'000'000);
  while (spins > 0) spins = spins - 1;
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, &how, 0), child);
  ASSERT_TRUE(WIFSIGNALED(how)) << "exited with " << WEXITSTATUS(how);
}

struct KillCase {
  StorageLayout layout;
  Writers writers;
};

class MemmapKillTest : public ::testing::TestWithParam<KillCase> {
 protected:
  void SetUp() override {
    void* const shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    progress_ = new (shared) Progress();
    options_ = {.directory = FreshPath("killed"),
                .capacity = kLanes * kLaneCapacity,
                .lanes = kLanes,
                .layout = GetParam().layout,
                .spec = Spec()};
    RILL_ASSERT_OK(MemmapStorage::Create(options_).status());
  }
  void TearDown() override { munmap(progress_, sizeof(Progress)); }

  // Opens what the dead has left and checks it.
  void Check(const std::string& when);
  void CheckRows(const Storage& storage, const LiveSlots& live,
                 const std::string& when);

  MemmapStorage::Options options_;
  Progress* progress_ = nullptr;
  int64_t gone_[kLanes] = {};  // Steps below may be gone.
  int64_t appends_lost_ = 0;
  int64_t rows_retired_ = 0;
};

void MemmapKillTest::Check(const std::string& when) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto storage, MemmapStorage::Open(options_));
  const std::vector<Cursor> cursors = storage->cursors();
  const Lanes lanes = storage->lanes();
  LiveSlots live;
  RILL_ASSERT_OK(storage->AddObserver(&live));
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const int64_t written = cursors[lane].written;
    const int64_t acknowledged = progress_->acknowledged[lane];
    const int64_t begun =
        std::max<int64_t>(progress_->begun[lane], acknowledged);
    // All that was acknowledged, and maybe the one that was not.
    ASSERT_TRUE(written == acknowledged || written == begun)
        << when << ": lane " << lane << " has " << written << ", acknowledged "
        << acknowledged << ", begun " << begun;
    appends_lost_ += written < begun;
    // Steps that neither the ring nor an append in flight, this one or one
    // before it, has taken.
    gone_[lane] = std::max(gone_[lane], begun - kLaneCapacity);
    const int64_t oldest = std::max(gone_[lane], written - kLaneCapacity);
    for (int64_t step = oldest; step < written; ++step) {
      ASSERT_TRUE(live.Contains(lanes.SlotOf(lane, step % kLaneCapacity)))
          << when << ": step " << step << " of lane " << lane;
    }
    // A process that goes on starts from here.
    progress_->acknowledged[lane] = written;
    progress_->begun[lane] = written;
  }
  CheckRows(*storage, live, when);
  storage->RemoveObserver(&live);
}

// Every row that is live is whole, and that of the newest step of its slot.
void MemmapKillTest::CheckRows(const Storage& storage, const LiveSlots& live,
                               const std::string& when) {
  if (live.size() == 0) return;
  const Lanes lanes = storage.lanes();
  const std::vector<Cursor> cursors = storage.cursors();
  std::vector<Slot> slots;
  std::vector<int64_t> want;
  for (int64_t n = 0; n < live.size(); ++n) {
    slots.push_back(live.Nth(n));
    const int64_t lane = lanes.LaneOf(slots.back());
    int64_t step = cursors[lane].written - 1;
    while (step % kLaneCapacity != lanes.PositionOf(slots.back())) --step;
    want.push_back(IdOf(lane, step));
  }
  TensorDict rows;
  RILL_ASSERT_OK(storage.Read(slots, &rows)) << when;
  const Tensor* const wide = rows.Find("wide");
  const Tensor* const ids = rows.Find("next/id");
  for (size_t row = 0; row < want.size(); ++row) {
    ASSERT_EQ(ids->data<int64_t>()[row], want[row]) << when;
    const int64_t* const elements = wide->data<int64_t>() + row * kWidth;
    ASSERT_EQ(std::count(elements, elements + kWidth, want[row]), kWidth)
        << when << ": slot " << slots[row];
  }
  for (const Cursor& cursor : cursors) {
    rows_retired_ += std::min(cursor.written, kLaneCapacity);
  }
  rows_retired_ -= live.size();
}

TEST_P(MemmapKillTest, EveryAcknowledgedRowIsThereAndWhole) {
  const int64_t kills = KillCount();
  const Rng rng(23);
  for (int64_t round = 0; round < kills; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      WriteForEver(options_, GetParam().writers, round, progress_);
    KillSoon(child, *progress_, rng, round);
    Check(absl::StrCat("after kill ", round));
    if (HasFatalFailure()) return;
  }
  int64_t written = 0;
  for (const auto& lane : progress_->acknowledged) written += lane;
  EXPECT_GT(written, 0);
  std::printf("%s\n",
              absl::StrCat(kills, " kills, ", written, " rows written, ",
                           appends_lost_, " lanes' appends not finished, ",
                           rows_retired_, " rows retired by them")
                  .c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, MemmapKillTest,
    ::testing::Values(KillCase{StorageLayout::kRows, Writers::kOne},
                      KillCase{StorageLayout::kColumns, Writers::kOne},
                      KillCase{StorageLayout::kRows, Writers::kOneALane}),
    [](const auto& info) {
      return absl::StrCat(
          StorageLayoutName(info.param.layout),
          info.param.writers == Writers::kOne ? "" : "OneWriterALane");
    });

}  // namespace
}  // namespace rill
