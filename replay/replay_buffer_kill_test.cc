// SPDX-License-Identifier: Apache-2.0
// A process that saves a replay buffer over the one it opened is killed
// (SIGKILL), at every operation on files and at random instructions between
// them. The buffer that opens then is exactly the old or the new one, by the
// bytes of its rows and by its next batches.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/replay/replay_buffer.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/testing/kill_count.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/testing/fake_row_counter.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 2;
constexpr int64_t kLaneCapacity = 300;
constexpr int64_t kSteps = 7;  // A round appends so many to each lane.
// Rows of 5 MB in all are saved in 16 or 17 chunks, of which a round changes
// some: the others are linked.
constexpr int64_t kWidth = 1 << 13;
constexpr int64_t kFirstRounds = 50;
constexpr int64_t kSavesAChild = 3;

ReplayBuffer::Options OptionsOf() {
  ReplayBuffer::Options options;
  options.storage = MakeStorage(kLanes * kLaneCapacity, kLanes);
  options.sampler = *MakePrioritizedSampler();
  options.transforms.push_back(MakeFakeRowCounter());
  options.batch_size = 16;
  options.seed = 9;
  options.prefetch = 1;
  return options;
}

TensorDict Steps(int64_t lanes, int64_t time, int64_t first) {
  TensorDict steps = NumberedSteps(lanes, time, first);
  auto pixels = Tensor::Empty(DType::kUInt8, {lanes, time, kWidth});
  RILL_EXPECT_OK(pixels);
  for (int64_t i = 0; i < lanes * time; ++i) {
    std::fill_n(pixels->data<uint8_t>() + i * kWidth, kWidth,
                static_cast<uint8_t>((first + i) % 251));
  }
  RILL_EXPECT_OK(steps.Set("pixels", *pixels));
  return steps;
}

uint32_t CrcOf(const TensorDict& rows) {
  absl::crc32c_t crc(0);
  rows.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    crc = absl::ExtendCrc32c(crc, key);
    crc = absl::ExtendCrc32c(
        crc, absl::string_view(reinterpret_cast<const char*>(leaf.raw_data()),
                               leaf.size_bytes()));
  });
  return static_cast<uint32_t>(crc);
}

uint32_t CrcOfRows(const Storage& storage) {
  const Lanes lanes = storage.lanes();
  const std::vector<Cursor> cursors = storage.cursors();
  std::vector<Slot> slots;
  for (int64_t lane = 0; lane < lanes.count; ++lane) {
    const int64_t end = cursors[lane].written;
    for (int64_t step = std::max<int64_t>(0, end - lanes.capacity); step < end;
         ++step) {
      slots.push_back(lanes.SlotOf(lane, step % lanes.capacity));
    }
  }
  TensorDict rows;
  RILL_EXPECT_OK(storage.Read(slots, &rows));
  return CrcOf(rows);
}

// The round of a buffer.
int64_t RoundOf(const ReplayBuffer& buffer) {
  return buffer.storage().cursors()[0].written / kSteps;
}

// Writes, writes over, samples, gives priorities. The sum of the batch; 0 after
// a failure.
uint32_t Work(ReplayBuffer& buffer) {
  const int64_t round = RoundOf(buffer);
  if (!buffer.Extend(Steps(kLanes, kSteps, kSteps * round)).ok()) {
    return 0;
  }
  auto changed = Steps(1, 2, 500 + round).Squeeze(0);
  const Slot slot = round * kSteps % kLaneCapacity;
  if (!changed.ok() ||
      !buffer.WriteAt({slot, slot + kLaneCapacity}, *changed).ok()) {
    return 0;
  }
  const auto batch = buffer.Sample();
  if (!batch.ok()) return 0;
  if (!buffer.UpdatePriorities(*batch, ActionsModulo(*batch, 11)).ok()) {
    return 0;
  }
  return CrcOf(*batch);
}

// Shared by both processes.
struct Progress {
  std::atomic<int64_t> saved;       // The round of the last save that returned.
  std::atomic<int64_t> operations;  // Of saves so far.
};

class ReplayBufferKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    progress_ = new (shared) Progress();
    root_ = JoinPath(::testing::TempDir(), "replay_buffer_kill");
    RILL_ASSERT_OK(RemoveAll(root_));
    RILL_ASSERT_OK(CreateDirectories(root_));
    path_ = JoinPath(root_, "saved");
  }
  void TearDown() override {
    munmap(progress_, sizeof(Progress));
    RILL_EXPECT_OK(RemoveAll(root_));
  }

  // The history that every process goes through, and a save at its
  // kFirstRounds. Nobody forks while its threads are there.
  void Begin(int64_t rounds) {
    auto buffer = ReplayBuffer::Create(OptionsOf());
    RILL_ASSERT_OK(buffer);
    for (int64_t round = 0; round < kFirstRounds + rounds; ++round) {
      rows_.push_back(round == 0 ? 0 : CrcOfRows((*buffer)->storage()));
      if (round == kFirstRounds) {
        ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
          ++operations_;
          return absl::OkStatus();
        });
        RILL_ASSERT_OK((*buffer)->Save(path_));
      }
      batches_.push_back(Work(**buffer));
      ASSERT_NE(batches_.back(), 0u);
    }
    progress_->saved = kFirstRounds;
  }

  // Opens, and saves again after each of `saves` rounds. Dies at operation
  // `kill_at` of them, counted from 1 on; 0: waits for that.
  [[noreturn]] void SaveInChild(int64_t saves, int64_t kill_at) {
    {
      auto buffer = ReplayBuffer::Open(path_, OptionsOf());
      if (!buffer.ok()) _exit(2);
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (++progress_->operations == kill_at) kill(getpid(), SIGKILL);
        return absl::OkStatus();
      });
      for (int64_t i = 0; i < saves; ++i) {
        if (Work(**buffer) == 0) _exit(3);
        if (!(*buffer)->Save(path_).ok()) _exit(4);
        progress_->saved = RoundOf(**buffer);
      }
    }
    if (kill_at > 0) _exit(0);
    for (;;) pause();
  }

  // The opened buffer is the last save that returned, or the next one, whole.
  void Check(const std::string& when) {
    auto opened = ReplayBuffer::Open(path_, OptionsOf());
    ASSERT_THAT(opened, IsOk()) << when;
    const int64_t round = RoundOf(**opened);
    const int64_t saved = progress_->saved;
    ASSERT_TRUE(round == saved || round == saved + 1)
        << when << ": got round " << round << ", saved " << saved;
    ++(round == saved ? old_stood_ : new_stood_);
    ASSERT_EQ(CrcOfRows((*opened)->storage()), rows_[round]) << when;
    for (int64_t i = round; i < round + 3; ++i) {
      ASSERT_EQ(Work(**opened), batches_[i]) << when << ", batch of " << i;
    }
    progress_->saved = round;
    // Files that the dead process has left beside block nobody, but take disk
    // space.
    const auto names = ListDirectory(root_);
    RILL_ASSERT_OK(names);
    for (const std::string& name : *names) {
      if (name == "saved") continue;
      ++left_beside_;
      RILL_ASSERT_OK(RemoveAll(JoinPath(root_, name)));
    }
  }

  Progress* progress_ = nullptr;
  std::string root_, path_;
  int64_t operations_ = 0;  // Of one save.
  // By round: sum of the rows, and of the batch that the round samples.
  std::vector<uint32_t> rows_, batches_;
  int64_t old_stood_ = 0;
  int64_t new_stood_ = 0;
  int64_t left_beside_ = 0;
};

TEST_F(ReplayBufferKillTest, C9_AtEveryOperationTheOldOrTheNewOpens) {
  // All of them in a long run; else every fourth.
  const int64_t stride = KillCount() >= 200 ? 1 : 4;
  Begin(/*rounds=*/10);
  int64_t kills = 0;
  int64_t kill_at = 1;
  for (bool is_done = false; !is_done; ++kills, kill_at += stride) {
    progress_->operations = 0;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) SaveInChild(/*saves=*/1, kill_at);
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    is_done = WIFEXITED(how) && WEXITSTATUS(how) == 0;  // Past its last one.
    ASSERT_TRUE(is_done || WIFSIGNALED(how))
        << "exited with " << WEXITSTATUS(how);
    Check(absl::StrCat("killed at operation ", kill_at));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(kill_at, 40);
  EXPECT_GT(old_stood_, 40 / stride);
  if (stride == 1) {
    EXPECT_GE(new_stood_, 1);  // The last: the sync of the parent.
  }
  std::printf("%s\n", absl::StrCat(kills, " of ", kill_at, " operations: ",
                                   old_stood_, " times the old one, ",
                                   new_stood_, " times the new one")
                          .c_str());
}

TEST_F(ReplayBufferKillTest, C9_AtAnyInstructionTheOldOrTheNewOpens) {
  const int64_t kills = KillCount();
  const Rng rng(31);
  Begin(/*rounds=*/kills * (kSavesAChild + 1) + 4);
  const int64_t first = progress_->saved;
  for (int64_t round = 0; round < kills; ++round) {
    progress_->operations = 0;
    const int64_t before = progress_->saved;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) SaveInChild(kSavesAChild, /*kill_at=*/0);
    // Some operations of its first saves, and some instructions, from now.
    const int64_t operations =
        rng.UniformInt(round, 0, kSavesAChild * operations_);
    int how = 0;
    while (progress_->operations < operations &&
           progress_->saved < before + kSavesAChild) {
      ASSERT_EQ(waitpid(child, &how, WNOHANG), 0) << "ended by itself: " << how;
      sched_yield();
    }
    volatile int64_t spins = rng.UniformInt(round, 1, 3'000'000);
    while (spins > 0) spins = spins - 1;
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how)) << "exited with " << WEXITSTATUS(how);
    Check(absl::StrCat("after kill ", round));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(progress_->saved, first);
  EXPECT_GT(left_beside_, kills / 10);  // It did die while it saved.
  std::printf("%s\n", absl::StrCat(kills, " kills, ", progress_->saved - first,
                                   " saves, ", left_beside_, " not finished, ",
                                   new_stood_, " finished and not acknowledged")
                          .c_str());
}

}  // namespace
}  // namespace rill
